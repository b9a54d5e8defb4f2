//! Signals of the hub process: to stop, repeatedly, and to reload the configuration; and signals of
//! waiting commands. Systems other than Unix have Ctrl-C only.

mod leave_signal;
#[cfg(any(test, not(unix), feature = "without-unix"))]
#[cfg_attr(
    all(unix, not(feature = "without-unix")),
    expect(unreachable_pub, reason = "tested on Unix too")
)]
mod portable;
#[cfg(all(unix, not(feature = "without-unix")))]
mod unix;

pub use leave_signal::LeaveSignal;
#[cfg(not(all(unix, not(feature = "without-unix"))))]
pub use portable::CtrlCOnly as LeaveSignals;
#[cfg(all(unix, not(feature = "without-unix")))]
pub use unix::{Hangup, LeaveSignals, SignalRequest, Signals, end_at_once};
