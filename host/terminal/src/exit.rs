//! Outcome of a command, whose number is the exit status of the program.

/// Exit status, documented in `docs/reference/exit-codes.md`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// The command succeeded.
    Done = 0,
    /// The task failed, was rejected, or was cancelled by another client.
    TaskFailed = 1,
    /// The command, the configuration or the hub is at fault, or a stream ended before its task
    /// did.
    Fault = 2,
    /// The task waits for an answer or a login.
    NeedsInput = 3,
    /// Ctrl-C, or standard output was closed: the task was cancelled.
    Interrupted = 130,
}
