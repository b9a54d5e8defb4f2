//! Signal to a command that waits.

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
