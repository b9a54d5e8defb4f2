//! Questions of a task to its client: asked one at a time, as the task's record shows only one; and
//! eviction of the agent while it waits.

use super::{SignalPayload, TaskActor, recorder::Unstorable};
use crate::tasks::{
    command::{QuestionState, QueuedQuestion},
    guest_port::{GuestQuestion, GuestRequest},
};
use a2a_hub_clock as clock;
use a2a_hub_core::{
    grant::Resume,
    task::{lifecycle::Signal, metadata, question},
};
use a2a_hub_protocol::{id::QuestionId, question::Question as AgentQuestion, task::TaskState};
use a2a_hub_runtime::{Failure, port::tasks::Need};
use std::time::Duration;
use tokio::time::Instant;

impl TaskActor {
    /// Asks a question of the agent or of one of its children. A question that was answered before
    /// a restart gets its answer at once. A question asked while another is open is queued.
    pub(in crate::tasks) fn ask(
        &mut self,
        question: Box<GuestQuestion>,
        payload: &mut SignalPayload,
    ) -> Option<Signal> {
        let has_open_question = self.guest.as_ref().is_some_and(|guest| guest.answer_tx.is_some());
        let Some(question) = self.answered_before(question) else {
            // The task continues although its log says that it waits.
            let logged_waiting =
                !has_open_question && self.recorder.task().status.state.is_interrupted();
            return logged_waiting.then_some(Signal::WentOn);
        };
        if has_open_question {
            let waits = question.waits;
            self.guest.as_mut()?.questions.push_back(question);
            if waits && self.lifecycle.asks() {
                self.permits.release();
            }
            return waits.then_some(Signal::Waits(true));
        }
        self.open_question(*question, payload)
    }

    /// Asks a question while none is open, or in place of the open one.
    fn open_question(
        &mut self,
        question: GuestQuestion,
        payload: &mut SignalPayload,
    ) -> Option<Signal> {
        let GuestQuestion { id, need, prompt, timeout, answer, of_child, waits, .. } = question;
        if let Err(full) = self.recorder.require_history_capacity() {
            // A guest that has ended needs no answer.
            let why = format!(
                "ask: {full}; end the run, and let the client begin another task of the conversation"
            );
            let _ = answer.send(Err(Failure::Exhausted(why)));
            let logged_waiting = self.recorder.task().status.state.is_interrupted();
            return logged_waiting.then_some(Signal::WentOn);
        }
        let (state, task, now) = (need.state(), self.recorder.task(), clock::now());
        let is_childs = of_child.is_some();
        payload.events = match of_child {
            // The question is in the record since before the restart.
            Some(child_question) if metadata::asks_for_child(task, &child_question) => Vec::new(),
            Some(child_question) => {
                vec![metadata::child_question(task, state, &child_question, prompt, now)]
            }
            None => vec![metadata::agent_question(task, state, id, prompt, now)],
        };
        if let Some(guest) = &mut self.guest {
            (guest.answer_tx, guest.answer, guest.asks_for_child) = (Some(answer), None, is_childs);
        }
        Some(Signal::AgentQuestion { state, timeout, waits: waits || self.permits.is_lent() })
    }

    /// True if the agent waits for the answer to its own question, whatever else it does.
    pub(in crate::tasks) fn agent_question_is_open(&self) -> bool {
        let guest = self.guest.as_ref().filter(|guest| !guest.asks_for_child);
        let answer_tx = guest.and_then(|guest| guest.answer_tx.as_ref());
        self.lifecycle.asks() && answer_tx.is_some_and(|answer_tx| !answer_tx.is_closed())
    }

    /// Asks a queued question in place of the open one, which is queued first: the client answers
    /// it by its id. Does nothing if no queued question of the agent has this id.
    pub(in crate::tasks) async fn bring_forward(
        &mut self,
        id: &QuestionId,
    ) -> Result<(), Unstorable> {
        let until = self.lifecycle.answer_until();
        let (only_waits, task) = (self.lifecycle.only_waits(), self.recorder.task());
        if !self.lifecycle.asks() || self.recorder.require_history_capacity().is_err() {
            return Ok(());
        }
        let open = AgentQuestion::from_metadata(task.metadata.as_ref());
        let (Some(open), Some(prompt)) = (open, task.status.message.clone()) else { return Ok(()) };
        let is_login = task.status.state == TaskState::AuthRequired;
        let need = if is_login { Need::Auth } else { Need::Input };
        let opened_at = task.status.timestamp.clone();
        let Some(guest) = &mut self.guest else { return Ok(()) };
        let is_it = |question: &GuestQuestion| {
            question.id == *id && question.of_child.is_none() && !question.answer.is_closed()
        };
        let Some(at) = guest.questions.iter().position(|question| is_it(question)) else {
            return Ok(());
        };
        let Some(answer) = guest.answer_tx.take() else { return Ok(()) };
        let Some(wanted) = guest.questions.remove(at) else { return Ok(()) };
        let remaining =
            until.map(|until| until.saturating_duration_since(Instant::now().into_std()));
        let of_child = guest.asks_for_child.then(|| open.clone());
        guest.questions.push_front(Box::new(GuestQuestion {
            id: open.id,
            opened_at,
            need,
            prompt,
            timeout: remaining,
            answer,
            of_child,
            waits: only_waits,
        }));
        let mut payload = SignalPayload::default();
        match self.open_question(*wanted, &mut payload) {
            Some(signal) => self.carry_out(signal, &mut payload).await,
            None => Ok(()),
        }
    }

    /// Describes the open question's deadline, and the queued questions of the agent itself.
    pub(in crate::tasks) fn question_state(&self) -> QuestionState {
        let now = Instant::now().into_std();
        let remaining = |until: std::time::Instant| until.saturating_duration_since(now);
        let guest = self.guest.as_ref().filter(|_| self.lifecycle.asks());
        let queued = guest
            .into_iter()
            .flat_map(|guest| &guest.questions)
            .filter(|question| question.of_child.is_none() && !question.answer.is_closed());
        let queued = queued.map(|question| QueuedQuestion {
            id: question.id.clone(),
            opened_at: question.opened_at.clone(),
            kind: question::kind(question.need.state(), &question.prompt),
            prompt: question.prompt.clone(),
        });
        QuestionState {
            expires_in: self.lifecycle.answer_until().map(remaining),
            set_aside: self.set_aside.clone(),
            queued: queued.collect(),
        }
    }

    /// Sets the open question or a queued one aside, for at most the longest time for an answer.
    /// Returns false if the task does not ask it.
    pub(in crate::tasks) fn postpone(&mut self, id: &QuestionId, time: Duration) -> bool {
        let open = AgentQuestion::from_metadata(self.recorder.task().metadata.as_ref());
        let now = Instant::now().into_std();
        let is_open = open.is_some_and(|open| open.id == *id);
        let queued = self
            .guest
            .as_mut()
            .and_then(|guest| guest.questions.iter_mut().find(|question| question.id == *id));
        let is_known = match queued {
            _ if is_open => self.lifecycle.postpone(now, time).is_some(),
            // Its time begins once it is asked.
            Some(queued) => {
                queued.timeout = Some(time);
                true
            }
            None => false,
        };
        if is_known && !self.set_aside.contains(id) {
            self.set_aside.push(id.clone());
        }
        is_known
    }

    /// Notes that the open question, if any, is closed, and how: a message that names no question may be
    /// meant for it, and not for the next one.
    pub(in crate::tasks) fn question_closed(&mut self, by_unnamed_answer: bool) {
        if !self.lifecycle.asks() {
            return;
        }
        self.question_closed_at = (!by_unnamed_answer).then(Instant::now);
        if let Some(closed) = AgentQuestion::from_metadata(self.recorder.task().metadata.as_ref()) {
            self.set_aside.retain(|id| *id != closed.id);
        }
    }

    /// Next queued question, once none is open. Skips questions whose asker is gone.
    pub(in crate::tasks) fn next_question(&mut self) -> Option<GuestRequest> {
        let guest = self.guest.as_mut().filter(|guest| guest.answer_tx.is_none())?;
        while let Some(question) = guest.questions.pop_front() {
            if !question.answer.is_closed() {
                return Some(GuestRequest::Ask(question));
            }
        }
        None
    }

    /// Delivers the answer that the agent waits for, or a timeout.
    pub(in crate::tasks) fn answer(&mut self) {
        let Some(guest) = &mut self.guest else { return };
        let answer = guest.answer.take().ok_or(Failure::Timeout);
        if let Some(answer_tx) = guest.answer_tx.take() {
            // A guest that has ended needs no answer.
            let _ = answer_tx.send(answer);
        }
        // The question was a child's, and the agent still waits for others.
        if !self.permits.waits_for_no_work() {
            self.permits.release();
        }
    }

    /// Registers an agent that waits for its client for eviction, or counts it as waiting; undoes
    /// that once the agent continues.
    pub(in crate::tasks) fn update_eviction(&mut self) {
        // A run that only relays for children uses no capacity.
        let has_agent = self.guest.as_ref().is_some_and(|guest| !guest.tends);
        let waits = has_agent && self.lifecycle.only_waits();
        let is_free = waits && self.can_be_let_go();
        self.idle.update(waits, is_free, || self.permits.count_wait(&self.agent));
    }

    /// True if the agent may be evicted and started again with the answer: it waits for its own
    /// client only, and no child works for it.
    pub(in crate::tasks) fn can_be_let_go(&self) -> bool {
        let asks_itself = self.guest.as_ref().is_some_and(|guest| !guest.asks_for_child);
        let has_children =
            self.tasks.as_ref().is_some_and(|tasks| tasks.has_children(&self.recorder.task().id));
        asks_itself
            && self.lifecycle.only_waits()
            && self.permits.waits_for_no_work()
            && self.agent.resume() == Resume::Session
            && !has_children
    }
}
