//! Deadlines of a task's open questions: persons move them, and the hub warns of each once.

use super::TaskActor;
use a2a_hub_clock as clock;
use a2a_hub_core::task::metadata;
use a2a_hub_protocol::{
    id::{QuestionId, TaskId},
    question::Question as AgentQuestion,
};
use a2a_hub_store::{StorageError, TaskStore};
use std::{sync::Arc, time::Duration};
use tokio::{sync::oneshot, time::Instant};

impl TaskActor {
    /// Open question of the task's agent itself. The task of a child handles the postponement and
    /// the warning of a question that this task relays.
    fn direct_question(&self) -> Option<AgentQuestion> {
        let task = self.recorder.task();
        let is_open = self.lifecycle.asks() && metadata::asks(task);
        let question = AgentQuestion::from_metadata(task.metadata.as_ref());
        question.filter(|question| is_open && question.task.is_none())
    }

    /// Sets the open question or a queued one aside, for at most the longest time for an answer.
    /// Reports whether the task asks it, once the time of an open one is stored.
    pub(in crate::tasks) async fn postpone(
        &mut self,
        id: &QuestionId,
        time: Duration,
        reply_tx: oneshot::Sender<Result<bool, StorageError>>,
    ) {
        let done = self.set_aside(id, time).await;
        if matches!(done, Ok(true)) {
            self.recorder.publish_questions();
        }
        // The sender may be gone; then nobody needs the reply.
        let _ = reply_tx.send(done);
    }

    async fn set_aside(&mut self, id: &QuestionId, time: Duration) -> Result<bool, StorageError> {
        let time = time.min(self.lifecycle.timeouts().answer);
        let task = self.recorder.task();
        let open = AgentQuestion::from_metadata(task.metadata.as_ref());
        let open = open.filter(|_| self.lifecycle.asks()).map(|open| open.id);
        let is_open = open.as_ref() == Some(id);
        if is_open {
            if self.direct_question().is_some() {
                store(Arc::clone(self.recorder.storage()), task.id.clone(), id, time).await?;
            }
            self.lifecycle.postpone(Instant::now().into_std(), time);
            self.question_marks.expiring = None;
        } else {
            let queue = self.guest.iter_mut().flat_map(|guest| &mut guest.questions);
            let Some(queued) = queue.into_iter().find(|queued| queued.id == *id) else {
                return Ok(false);
            };
            // Its time begins once it is asked, and then the store has it.
            queued.timeout = Some(time);
        }
        // Questions that are closed by now need no mark.
        let queue = self.guest.iter().flat_map(|guest| &guest.questions);
        let queued: Vec<_> = queue.map(|question| &question.id).collect();
        self.question_marks.retain(|known| open.as_ref() == Some(known) || queued.contains(&known));
        self.question_marks.set_aside(id.clone(), None, is_open);
        Ok(true)
    }

    /// Sets a question of an earlier process aside, as it was there, or as the one was that it
    /// replaces.
    pub(in crate::tasks) async fn restore_postponement(&mut self) {
        let Some(question) = self.direct_question() else { return };
        let (storage, task) = (Arc::clone(self.recorder.storage()), &self.recorder.task().id);
        let until = match storage.postponed_until(task, &question.id).await {
            Ok(Some(until)) => until,
            Ok(None) => return,
            Err(why) => {
                tracing::warn!(%task, question = %question.id, %why, "cannot read whether a question was set aside, assuming it was not");
                return;
            }
        };
        // A clock that was set back must not leave it aside for ever.
        let time = clock::until(&until).min(self.lifecycle.timeouts().answer);
        if time.is_zero() {
            return;
        }
        let now = Instant::now();
        self.lifecycle.extend_answer_time(now.into_std(), time);
        self.question_marks.set_aside(question.id, Some(now + time), true);
    }

    /// Updates the marks after an event. A question that was set aside while it was queued is
    /// stored as such once it is open; a closed one does not count as expiring any more.
    pub(in crate::tasks) async fn update_question_marks(&mut self) {
        if self.question_marks.expiring.is_some()
            && !self.lifecycle.is_expiring(Instant::now().into_std())
        {
            self.question_marks.expiring = None;
        }
        if !self.question_marks.has_unstored() {
            return;
        }
        // Boxed, as it is rare.
        Box::pin(self.store_opened_postponement()).await;
    }

    async fn store_opened_postponement(&mut self) {
        let (question, until) = (self.direct_question(), self.lifecycle.answer_until());
        let Some((AgentQuestion { id, .. }, until)) = question.zip(until) else { return };
        if !self.question_marks.take_unstored(&id) {
            return;
        }
        let time = until.saturating_duration_since(Instant::now().into_std());
        let (storage, task) =
            (Arc::clone(self.recorder.storage()), self.recorder.task().id.clone());
        if let Err(why) = store(storage, task, &id, time).await {
            let task = &self.recorder.task().id;
            tracing::warn!(%task, question = %id, %why, "cannot store that a question is set aside, a restart forgets it");
        }
    }

    /// Reports the open question as expiring, if that is due: once for each deadline, and only if
    /// the task does not relay it. Returns true if it was due.
    pub(in crate::tasks) fn warn_of_deadline(&mut self) -> bool {
        let now = Instant::now().into_std();
        if !self.lifecycle.take_warning(now) {
            return false;
        }
        let (question, until) = (self.direct_question(), self.lifecycle.answer_until());
        if let Some((AgentQuestion { id, .. }, until)) = question.zip(until) {
            let expires_at = clock::after(until.saturating_duration_since(now));
            let (task, agent) = (&self.recorder.task().id, &self.agent.id);
            tracing::warn!(%task, %agent, question = %id, expires_at, "an open question expires soon, answer it or set it aside: `a2a-hub inbox`");
            self.question_marks.expiring = Some(self.recorder.metrics().expiring_questions().add());
            self.recorder.publish_expiring(id, expires_at);
        }
        true
    }
}

/// Stores for how long the open question of a task is set aside. A log that is older than the
/// store's records of questions cannot have that.
async fn store(
    storage: Arc<dyn TaskStore>,
    task: TaskId,
    id: &QuestionId,
    time: Duration,
) -> Result<(), StorageError> {
    storage.postpone_question(&task, id, &clock::after(time)).await.map(drop)
}
