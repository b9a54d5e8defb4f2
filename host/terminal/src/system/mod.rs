//! Calls of the system about terminals and Ctrl-C, once for Unix and once for other systems.

#[cfg(any(test, not(unix), feature = "without-unix"))]
#[cfg_attr(
    all(unix, not(feature = "without-unix")),
    expect(dead_code, unreachable_pub, reason = "tested on Unix too")
)]
mod portable;
#[cfg(all(unix, not(feature = "without-unix")))]
mod unix;

#[cfg(not(all(unix, not(feature = "without-unix"))))]
use portable as here;
#[cfg(all(unix, not(feature = "without-unix")))]
use unix as here;

#[cfg(not(all(unix, not(feature = "without-unix"))))]
pub use portable::CtrlCListener as Interrupts;
#[cfg(all(unix, not(feature = "without-unix")))]
pub use unix::Interrupts;

pub(crate) use here::{discard_input, is_stdout_closed, read_line, size, understands_escapes};

/// Output stream of this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OutputStream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}
