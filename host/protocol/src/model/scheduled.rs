//! Runs of schedules: the part of a task's metadata that says which schedule started it.

use crate::model::message::Metadata;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// Metadata member of a task that a schedule started, and of the tasks below it.
pub const SCHEDULE: &str = "schedule";

/// Rule for questions of a scheduled task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum AnswerRule {
    /// A question counts as unanswered at once, since nobody watches the run.
    #[default]
    Deny,
    /// The task waits for the operator, as any other task does.
    Inbox,
}

/// Origin of a scheduled task: the value of [`SCHEDULE`].
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct ScheduledRun {
    /// Name of the schedule.
    pub name: String,
    /// Planned time: RFC 3339 in UTC with milliseconds.
    pub planned: String,
    /// Rule for questions.
    pub answers: AnswerRule,
}

impl ScheduledRun {
    /// Run that a task belongs to, by its metadata.
    pub fn of(facts: Option<&Metadata>) -> Option<Self> {
        Self::deserialize(facts?.get(SCHEDULE)?).ok()
    }

    /// Run of a child task. An agent that `answers` its child's questions keeps the time for that.
    #[must_use]
    pub fn for_child(self, answers: bool) -> Self {
        Self { answers: if answers { AnswerRule::Inbox } else { self.answers }, ..self }
    }

    /// Members of the metadata of a task of this run.
    pub fn facts(&self) -> Metadata {
        Metadata::from_iter([(SCHEDULE.to_owned(), json!(self))])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn run_round_trips_through_metadata() {
        let (name, planned) = ("nightly".to_owned(), "2026-06-01T03:00:00.000Z".to_owned());
        let run = ScheduledRun { name, planned, answers: AnswerRule::Deny };
        assert_eq!(ScheduledRun::of(Some(&run.facts())), Some(run.clone()));
        assert_eq!(ScheduledRun::of(Some(&Metadata::new())), None);
        assert_eq!(run.clone().for_child(false), run);
        assert_eq!(run.for_child(true).answers, AnswerRule::Inbox);
    }
}
