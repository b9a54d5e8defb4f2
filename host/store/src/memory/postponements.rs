//! Times until which questions are set aside, in memory.

use super::{MemoryLog, MemoryStorage};
use crate::{
    QuestionPostponements, StorageError,
    questions::{QuestionChange, changes},
};
use a2a_hub_protocol::{
    event::TaskEvent,
    id::{QuestionId, TaskId},
};
use std::sync::Arc;

/// Question of a task, with the time until which it is set aside.
struct SetAsideQuestion {
    id: QuestionId,
    until: Option<String>,
    is_open: bool,
    is_answered: bool,
}

/// Questions that a task asked itself; `postponed` has the times of those that were set aside.
fn set_aside(
    events: &[Arc<TaskEvent>],
    postponed: &[(QuestionId, String)],
) -> Vec<SetAsideQuestion> {
    let mut questions: Vec<SetAsideQuestion> = Vec::new();
    for change in changes(0, events) {
        match change {
            QuestionChange::Opened { id, replaces, .. } => {
                // Without an open one, a status between the two has closed the latest.
                let before = questions.iter().rfind(|it| it.is_open).or(questions.last());
                let before = before.filter(|it| replaces && !it.is_answered);
                let inherited = before.and_then(|before| before.until.clone());
                questions.iter_mut().for_each(|question| question.is_open = false);
                if let Some(again) = questions.iter_mut().find(|question| question.id == id) {
                    again.is_open = !again.is_answered;
                    continue;
                }
                let mark = postponed.iter().find(|(known, _)| *known == id);
                let until = mark.map(|(_, until)| until.clone()).or(inherited);
                questions.push(SetAsideQuestion { id, until, is_open: true, is_answered: false });
            }
            QuestionChange::Answered { .. } => {
                for question in questions.iter_mut().filter(|question| question.is_open) {
                    (question.is_open, question.is_answered) = (false, true);
                }
            }
            QuestionChange::Closed { .. } => {
                questions.iter_mut().for_each(|question| question.is_open = false);
            }
            QuestionChange::Ruled { .. } => {}
        }
    }
    questions
}

/// The open question of a task with this id.
fn open_question(log: &MemoryLog, id: &QuestionId) -> Option<SetAsideQuestion> {
    let questions = set_aside(&log.events, &log.postponed);
    questions.into_iter().find(|question| question.id == *id && question.is_open)
}

#[async_trait::async_trait]
impl QuestionPostponements for MemoryStorage {
    async fn postpone_question(
        &self,
        task: &TaskId,
        id: &QuestionId,
        until: &str,
    ) -> Result<bool, StorageError> {
        let mut inner = self.to_write()?;
        let log = inner.logs.get_mut(task).filter(|log| open_question(log, id).is_some());
        let Some(log) = log else { return Ok(false) };
        log.postponed.retain(|(known, _)| known != id);
        log.postponed.push((id.clone(), until.to_owned()));
        Ok(true)
    }

    async fn postponed_until(
        &self,
        task: &TaskId,
        id: &QuestionId,
    ) -> Result<Option<String>, StorageError> {
        let inner = self.lock();
        let question = inner.logs.get(task).and_then(|log| open_question(log, id));
        Ok(question.and_then(|question| question.until))
    }
}
