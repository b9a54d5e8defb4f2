//! Marks of a task's open questions: set aside by a person, or close to the deadline.

use crate::observability::expiring_questions::ExpiringQuestion;
use a2a_hub_protocol::{
    event::TaskEvent, id::QuestionId, message::Metadata, question::Question as AgentQuestion,
    task::Task,
};
use tokio::time::Instant;

/// Marks of the open question and of the queued ones.
#[derive(Default)]
pub(in crate::tasks) struct QuestionMarks {
    set_aside: Vec<SetAside>,
    /// Set while the hub counts the open question as one whose deadline is near.
    pub(in crate::tasks) expiring: Option<ExpiringQuestion>,
}

/// A question that a person set aside.
struct SetAside {
    id: QuestionId,
    /// Instant at which the mark ends, if a person set it before a restart; the mark ends with the
    /// question otherwise.
    until: Option<Instant>,
    /// True if the store has the mark, or needs none.
    is_stored: bool,
}

impl QuestionMarks {
    /// Marks a question as set aside, in place of an earlier mark.
    pub(in crate::tasks) fn set_aside(
        &mut self,
        id: QuestionId,
        until: Option<Instant>,
        is_stored: bool,
    ) {
        self.remove(&id);
        self.set_aside.push(SetAside { id, until, is_stored });
    }

    /// Ids of the questions that are set aside now.
    pub(in crate::tasks) fn ids(&self) -> Vec<QuestionId> {
        let now = Instant::now();
        let is_valid = |mark: &&SetAside| mark.until.is_none_or(|until| now < until);
        self.set_aside.iter().filter(is_valid).map(|mark| mark.id.clone()).collect()
    }

    /// Removes the mark of a question.
    pub(in crate::tasks) fn remove(&mut self, id: &QuestionId) {
        self.set_aside.retain(|mark| mark.id != *id);
    }

    /// Removes the marks of all questions but these.
    pub(in crate::tasks) fn retain(&mut self, is_open: impl Fn(&QuestionId) -> bool) {
        self.set_aside.retain(|mark| is_open(&mark.id));
    }

    /// True if the store lacks the mark of a question.
    pub(in crate::tasks) fn has_unstored(&self) -> bool {
        self.set_aside.iter().any(|mark| !mark.is_stored)
    }

    /// Returns true once if the store lacks the mark of this question.
    pub(in crate::tasks) fn take_unstored(&mut self, id: &QuestionId) -> bool {
        let unstored = self.set_aside.iter_mut().find(|mark| mark.id == *id && !mark.is_stored);
        unstored.is_some_and(|mark| {
            mark.is_stored = true;
            true
        })
    }

    /// Marks the question of an event like the open one of the task, which it replaces. The old
    /// mark stays, for the event may not be stored; the store copies the mark itself.
    pub(in crate::tasks) fn inherit(&mut self, task: &Task, event: &TaskEvent) {
        let TaskEvent::Status(update) = event else { return };
        let id = |metadata: Option<&Metadata>| Some(AgentQuestion::from_metadata(metadata)?.id);
        let replaced = id(task.metadata.as_ref());
        let mark = self.set_aside.iter().find(|mark| Some(&mark.id) == replaced.as_ref());
        if let (Some(until), Some(new)) =
            (mark.map(|mark| mark.until), id(update.metadata.as_ref()))
        {
            self.set_aside(new, until, true);
        }
    }
}
