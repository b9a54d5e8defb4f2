//! Signals of the hub process: to stop, repeatedly, and to reload the configuration; and signals of
//! waiting commands. Systems other than Unix have Ctrl-C only.

#[cfg(any(test, not(unix), feature = "without-unix"))]
#[cfg_attr(
    all(unix, not(feature = "without-unix")),
    expect(unreachable_pub, reason = "tested on Unix too")
)]
mod portable;
#[cfg(all(unix, not(feature = "without-unix")))]
mod unix;

#[cfg(not(all(unix, not(feature = "without-unix"))))]
pub use portable::CtrlCOnly as LeaveSignals;
#[cfg(all(unix, not(feature = "without-unix")))]
pub use unix::{Hangup, LeaveSignals, SignalRequest, Signals, end_at_once};

/// Signal by which the user or the system has a command leave its task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaveSignal {
    /// SIGINT: Ctrl-C.
    Interrupt,
    /// SIGTERM.
    Terminate,
    /// SIGHUP: the terminal was closed, or its connection was lost.
    Hangup,
}
