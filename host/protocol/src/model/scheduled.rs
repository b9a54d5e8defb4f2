//! Runs of schedules and triggers: the part of a task's metadata that says which one started it.

use crate::model::message::Metadata;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// Metadata member of a task that a schedule started, and of the tasks below it.
pub const SCHEDULE: &str = "schedule";

/// Metadata member of a task that a trigger started, and of the tasks below it.
pub const TRIGGER: &str = "trigger";

/// Rule for questions of a task that a schedule or trigger started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum AnswerRule {
    /// A question counts as unanswered at once, since nobody watches the run.
    #[default]
    Deny,
    /// The task waits for the operator, as any other task does.
    Inbox,
}

/// Rule for a run at work that the end of the hub interrupts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum RestartRule {
    /// The next hub starts the run again, once.
    #[default]
    Again,
    /// The run fails.
    Fail,
}

impl RestartRule {
    /// Name in the configuration.
    pub fn word(self) -> &'static str {
        match self {
            Self::Again => "again",
            Self::Fail => "fail",
        }
    }

    /// True for the rule of a run without the member, such as that of an older hub.
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
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
    /// Rule for a run that the end of the hub interrupts.
    #[serde(rename = "onRestart", default, skip_serializing_if = "RestartRule::is_default")]
    pub on_restart: RestartRule,
}

/// Origin of a task that a trigger started: the value of [`TRIGGER`].
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct TriggeredRun {
    /// Name of the trigger.
    pub name: String,
    /// Time of the first event: RFC 3339 in UTC with milliseconds.
    pub at: String,
    /// Rule for questions.
    pub answers: AnswerRule,
    /// Rule for a run that the end of the hub interrupts.
    #[serde(rename = "onRestart", default, skip_serializing_if = "RestartRule::is_default")]
    pub on_restart: RestartRule,
    /// Triggers that led to the event, by their tasks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<String>,
}

/// Origin of a task that the hub started by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AutomatedRun {
    /// A schedule, at a planned time.
    Schedule(ScheduledRun),
    /// A trigger, after an event.
    Trigger(TriggeredRun),
}

impl AutomatedRun {
    /// Run that a task belongs to, by its metadata.
    pub fn from_metadata(facts: Option<&Metadata>) -> Option<Self> {
        let facts = facts?;
        let trigger = facts.get(TRIGGER).and_then(|it| TriggeredRun::deserialize(it).ok());
        trigger
            .map(Self::Trigger)
            .or_else(|| ScheduledRun::deserialize(facts.get(SCHEDULE)?).ok().map(Self::Schedule))
    }

    /// Rule for questions of its tasks.
    pub fn answers(&self) -> AnswerRule {
        match self {
            Self::Schedule(run) => run.answers,
            Self::Trigger(run) => run.answers,
        }
    }

    /// Rule for a task of this run that the end of the hub interrupts.
    pub fn on_restart(&self) -> RestartRule {
        match self {
            Self::Schedule(run) => run.on_restart,
            Self::Trigger(run) => run.on_restart,
        }
    }

    /// Section of the configuration that started the run, such as `schedule.nightly`.
    pub fn section(&self) -> String {
        match self {
            Self::Schedule(run) => format!("{SCHEDULE}.{}", run.name),
            Self::Trigger(run) => format!("{TRIGGER}.{}", run.name),
        }
    }

    /// Names of the trigger of this run and of those that led to it.
    pub fn triggers(&self) -> Vec<String> {
        match self {
            Self::Schedule(_) => Vec::new(),
            Self::Trigger(run) => [&run.name].into_iter().chain(&run.after).cloned().collect(),
        }
    }

    /// Run of a child task. An agent that `answers` its child's questions keeps the time for that.
    #[must_use]
    pub fn for_child(self, answers: bool) -> Self {
        let rule = if answers { AnswerRule::Inbox } else { self.answers() };
        match self {
            Self::Schedule(run) => Self::Schedule(ScheduledRun { answers: rule, ..run }),
            Self::Trigger(run) => Self::Trigger(TriggeredRun { answers: rule, ..run }),
        }
    }

    /// Members of the metadata of a task of this run.
    pub fn facts(&self) -> Metadata {
        let (name, run) = match self {
            Self::Schedule(run) => (SCHEDULE, json!(run)),
            Self::Trigger(run) => (TRIGGER, json!(run)),
        };
        Metadata::from_iter([(name.to_owned(), run)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn run_round_trips_through_metadata() {
        let (name, planned) = ("nightly".to_owned(), "2026-06-01T03:00:00.000Z".to_owned());
        let (answers, on_restart) = (AnswerRule::Deny, RestartRule::Fail);
        let run = ScheduledRun { name, planned: planned.clone(), answers, on_restart };
        let (name, after) = ("on-failure".to_owned(), vec!["nightly-build".to_owned()]);
        let triggered = TriggeredRun { name, at: planned, answers, on_restart, after };
        assert_eq!(AutomatedRun::from_metadata(Some(&Metadata::new())), None);
        for run in [AutomatedRun::Schedule(run), AutomatedRun::Trigger(triggered)] {
            assert_eq!(AutomatedRun::from_metadata(Some(&run.facts())), Some(run.clone()));
            assert_eq!(run.clone().for_child(false), run);
            assert_eq!(run.clone().for_child(true).answers(), AnswerRule::Inbox);
            assert_eq!(run.clone().for_child(true).on_restart(), RestartRule::Fail);
            assert_eq!(run.triggers().is_empty(), matches!(run, AutomatedRun::Schedule(_)));
        }
        // A run of an older hub, which knows no such rule.
        let older = json!({ "name": "nightly", "planned": "T", "answers": "deny" });
        let older =
            AutomatedRun::from_metadata(Some(&Metadata::from_iter([(SCHEDULE.to_owned(), older)])));
        let older = older.unwrap_or_else(|| panic!("it is a run"));
        assert_eq!(
            (older.on_restart(), older.section().as_str()),
            (RestartRule::Again, "schedule.nightly")
        );
        assert!(!json!(older.facts()).to_string().contains("onRestart"));
    }
}
