//! Exit status of the program.

/// Text at the end of `--help` and of the manual.
pub(crate) const EXIT_CODES: &str = "\
Exit status:
  0    the command succeeded
  1    the task failed, was rejected, or was cancelled by another client
  2    the command, the configuration or the hub is at fault, or a stream ended before its task
  3    the task waits for an answer or a login
  130  Ctrl-C, or the reader of the output closed it; `send` cancels its task";

/// Exit status: documented in `docs/reference/exit-codes.md` and in [`EXIT_CODES`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
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
