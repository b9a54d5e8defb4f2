//! The limits that the system puts on the hub's own process.

use rustix::process::Signal;
use std::io;
use tokio::signal::unix::{SignalKind, signal};

/// Has a write beyond the limit on the size of files (`ulimit -f`) fail, as one on a full disk does, where it would otherwise end
/// the hub (SIGXFSZ). A handler is not inherited: programs find the signal as it is by default. Call it within a runtime.
pub fn survive_large_files() -> io::Result<()> {
    // The handler stays, and nobody needs to hear of it.
    signal(SignalKind::from_raw(Signal::XFSZ.as_raw())).map(drop)
}
