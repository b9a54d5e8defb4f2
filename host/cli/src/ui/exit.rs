//! Exit status of the program.

use clap::ValueEnum;

/// Text at the end of `--help` and of the manual.
pub(crate) const EXIT_CODES: &str = "\
Exit status:
  0    the command succeeded
  1    the task failed, was rejected, or was cancelled by another client
  2    the command, the configuration or the hub is at fault, or a stream ended before its task
  3    the task waits for an answer or a login
  130  Ctrl-C, or the reader of the output closed it; `send` cancels its task";

/// ExitScheme of exit statuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExitScheme {
    /// Exit codes of this program, which tell what became of a task
    Hub,
    /// Exit codes of the official A2A CLI, which tell only whether the command did its job
    A2a,
}

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

impl Exit {
    /// Status of the process in this scheme. `ends_task` is true for a command whose status tells
    /// what became of a task, which is no failure of the command (`a2a-cli` 0.2, section 9.6).
    pub(crate) fn status(self, scheme: ExitScheme, ends_task: bool) -> u8 {
        match (scheme, self) {
            (ExitScheme::A2a, Self::TaskFailed | Self::NeedsInput) if ends_task => 0,
            // 2 and 3 have other meanings there.
            (ExitScheme::A2a, Self::Fault | Self::TaskFailed | Self::NeedsInput) => 1,
            (ExitScheme::A2a, Self::Done | Self::Interrupted) | (ExitScheme::Hub, _) => self as u8,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn task_outcome_is_status_of_one_scheme() {
        for (exit, hub, of_task, of_command) in [
            (Exit::Done, 0, 0, 0),
            (Exit::TaskFailed, 1, 0, 1),
            (Exit::Fault, 2, 1, 1),
            (Exit::NeedsInput, 3, 0, 1),
            (Exit::Interrupted, 130, 130, 130),
        ] {
            assert_eq!([true, false].map(|is| exit.status(ExitScheme::Hub, is)), [hub; 2]);
            assert_eq!(exit.status(ExitScheme::A2a, true), of_task, "{exit:?}");
            assert_eq!(exit.status(ExitScheme::A2a, false), of_command, "{exit:?}");
        }
    }
}
