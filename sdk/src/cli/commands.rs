//! Commands of the program that a run has reported.

use super::command_list::CommandList;
use super::program_record::ProgramRecord;
use crate::{Context, Failure, TaskState, TaskStatus};

/// Commands that a run has reported.
#[derive(Debug, Default)]
pub(super) struct ReportedCommands {
    latest: Option<CommandList>,
    is_unsent: bool,
}

impl ReportedCommands {
    /// Notes the program's list. An unchanged one is not reported again.
    pub(super) fn note(&mut self, list: CommandList) {
        if self.latest.as_ref() != Some(&list) {
            self.latest = Some(list);
            self.is_unsent = true;
        }
    }

    /// Status that reports the latest list, unless one has done so.
    pub(super) fn take_unsent(&mut self) -> Option<TaskStatus> {
        let list = self.latest.as_ref().filter(|_| self.is_unsent)?;
        self.is_unsent = false;
        Some(TaskStatus::bare(TaskState::Working).with_metadata(&list.facts()))
    }

    /// Record of the program with the latest list, which is stored for its later turns.
    ///
    /// # Errors
    ///
    /// [`Failure::Cancelled`] only.
    pub(super) fn record(
        &self,
        ctx: &Context,
        program: ProgramRecord,
    ) -> Result<ProgramRecord, Failure> {
        match &self.latest {
            Some(list) => Ok(program.with_commands(list.store(ctx)?)),
            None => Ok(program),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn unchanged_list_is_reported_once() {
        let list = |name: &str| CommandList::parse(&json!([{ "name": name }])).unwrap();
        let mut reported = ReportedCommands::default();
        assert_eq!(reported.take_unsent(), None);
        for (name, is_sent) in [("a", true), ("a", false), ("b", true), ("a", true)] {
            reported.note(list(name));
            assert_eq!(reported.take_unsent().is_some(), is_sent, "{name}");
            assert_eq!(reported.take_unsent(), None);
        }
    }
}
