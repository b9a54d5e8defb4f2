//! Exit status of the program.

pub use a2a_hub_terminal::exit::Exit;
use clap::ValueEnum;

/// Text at the end of `--help` and of the manual.
pub const EXIT_CODES: &str = "\
Exit status:
  0    the command succeeded
  1    the task failed, was rejected, or was cancelled by another client
  2    the command, the configuration or the hub is at fault, or a stream ended before its task
  3    the task waits for an answer or a login
  130  Ctrl-C, or the reader of the output closed it; `send` cancels its task unless you detach";

/// Scheme of exit statuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ExitScheme {
    /// Exit codes of this program, which tell what became of a task
    Hub,
    /// Exit codes of the official A2A CLI, which tell only whether the command did its job
    A2a,
}

impl ExitScheme {
    /// Status of the process for `exit`. `ends_task` is true for a command whose status tells
    /// what became of a task, which is no failure of the command (`a2a-cli` 0.2, section 9.6).
    pub fn status(self, exit: Exit, ends_task: bool) -> u8 {
        match (self, exit) {
            (Self::A2a, Exit::TaskFailed | Exit::NeedsInput) if ends_task => 0,
            // 2 and 3 have other meanings there.
            (Self::A2a, Exit::Fault | Exit::TaskFailed | Exit::NeedsInput) => 1,
            (Self::A2a, Exit::Done | Exit::Interrupted) | (Self::Hub, _) => exit as u8,
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
            assert_eq!([true, false].map(|is| ExitScheme::Hub.status(exit, is)), [hub; 2]);
            assert_eq!(ExitScheme::A2a.status(exit, true), of_task, "{exit:?}");
            assert_eq!(ExitScheme::A2a.status(exit, false), of_command, "{exit:?}");
        }
    }
}
