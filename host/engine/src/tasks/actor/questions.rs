//! Questions of a task to its client: asked one at a time, as the task's record shows only one; and
//! eviction of the agent while it waits.

use super::{SignalPayload, TaskActor, recorder::Unstorable, running_task::RunningTask};
use crate::{
    conversations::refusals::gets_an_answer,
    error::HubError,
    tasks::{
        command::{Input, OpenedQuestion, QuestionState},
        guest_port::{GuestQuestion, GuestRequest},
    },
};
use a2a_hub_clock as clock;
use a2a_hub_core::{
    access_control::Principal,
    grant::Resume,
    task::{lifecycle::Signal, metadata, question},
};
use a2a_hub_protocol::{
    error::A2aError, event::TaskEvent, message::Message, question::Question as AgentQuestion,
    task::TaskState,
};
use a2a_hub_runtime::{Failure, port::tasks::ClientAnswer};
use a2a_hub_store::StorageError;
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
            self.recorder.publish_questions();
            if waits && self.lifecycle.asks() {
                self.permits.release();
            }
            return waits.then_some(Signal::Waits(true));
        }
        let GuestQuestion {
            id,
            opened_at,
            need,
            prompt,
            timeout,
            answer,
            request,
            of_child,
            waits,
        } = *question;
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
            None => vec![metadata::agent_question(task, state, (id, request), prompt, now)],
        };
        if let Some(guest) = &mut self.guest {
            (guest.answer_tx, guest.answer, guest.asks_for_child) = (Some(answer), None, is_childs);
            guest.opened_at = Some(opened_at);
        }
        Some(Signal::AgentQuestion { state, timeout, waits: waits || self.permits.is_lent() })
    }

    /// True if the agent waits for the answer to its own question, whatever else it does.
    pub(in crate::tasks) fn agent_question_is_open(&self) -> bool {
        let guest = self.guest.as_ref().filter(|guest| !guest.asks_for_child);
        let answer_tx = guest.and_then(|guest| guest.answer_tx.as_ref());
        self.lifecycle.asks() && answer_tx.is_some_and(|answer_tx| !answer_tx.is_closed())
    }

    /// Answers a queued question of the agent, which the message names: the question, its answer
    /// and the open question, which stays open, are stored together. Returns a message that names
    /// no such question.
    ///
    /// The queue of an agent that is replayed is left alone: its journal knows the answers in the
    /// order of the questions.
    pub(in crate::tasks) async fn answer_queued(
        &mut self,
        input: Box<Input>,
    ) -> Result<Option<Box<Input>>, Unstorable> {
        let task = self.recorder.task();
        let state = task.status.state;
        let is_it = |question: &GuestQuestion| {
            input.answers.as_ref() == Some(&question.id) && is_answerable(question, state)
        };
        let guest = self.guest.as_mut().filter(|_| self.recording.is_none());
        let queue = guest.map(|guest| &mut guest.questions);
        let index = queue.and_then(|queue| {
            let index = queue.iter().position(|question| is_it(question))?;
            Some((index, queue.remove(index)?))
        });
        let Some((index, question)) = index else { return Ok(Some(input)) };
        let Input { message, client, by, reply_tx, .. } = *input;
        // In the log, another answer would follow the one that the agent has not received.
        let is_delivering = self.guest.as_ref().is_some_and(|guest| guest.answer.is_some());
        let acceptable = match is_delivering {
            true => Err(gets_an_answer(self.recorder.task())),
            false => self.require_acceptable(&message, &client),
        };
        let stored = match acceptable {
            Ok(()) => self.record_queued(&question, &message, &by).await,
            Err(why) => Ok(Err(why)),
        };
        let reply = match stored? {
            Ok(()) => {
                self.question_closed();
                self.question_marks.remove(&question.id);
                if let Some(guest) = &mut self.guest {
                    guest.has_new_answer = true;
                }
                // A guest that has ended needs no answer.
                let _ = question.answer.send(Ok(ClientAnswer { message, client }));
                Ok(())
            }
            Err(why) => {
                if let Some(guest) = &mut self.guest {
                    guest.questions.insert(index.min(guest.questions.len()), question);
                }
                Err(why)
            }
        };
        // The sender may be gone; then nobody needs the reply.
        let _ = reply_tx.send(reply);
        Ok(None)
    }

    /// Stores a queued question with its answer, and repeats the open question.
    async fn record_queued(
        &mut self,
        question: &GuestQuestion,
        message: &Message,
        by: &Principal,
    ) -> Result<Result<(), A2aError>, Unstorable> {
        // What was recorded before is stored by itself: it must not be reverted below.
        self.recorder.flush(None).await?;
        let (task, now) = (self.recorder.task(), clock::now());
        let (state, prompt) = (task.status.state, task.status.message.clone());
        let open = AgentQuestion::from_metadata(task.metadata.as_ref()).zip(prompt);
        let about = (question.id.clone(), question.request.clone());
        let prompt = question.prompt.clone();
        let posed = metadata::agent_question(task, state, about, prompt, now.clone());
        self.recorder.record(posed);
        self.recorder.record(TaskEvent::Input(message.clone()));
        if let Some((open, prompt)) = open {
            let task = self.recorder.task();
            let again = metadata::child_question(task, state, &open, prompt, now);
            self.recorder.record(again);
        }
        match self.recorder.flush(Some(by)).await {
            Ok(()) => Ok(Ok(())),
            Err(Unstorable(why @ StorageError::Unavailable(_))) => {
                self.recorder.take_back().await?;
                Ok(Err(HubError::from(why).into()))
            }
            Err(why) => Err(why),
        }
    }

    /// Describes the open question, its deadline, and the queued questions of the agent itself.
    pub(in crate::tasks) fn question_state(&self) -> QuestionState {
        let task = self.recorder.task();
        let mut state = QuestionState::of_record(task);
        let since = self.guest.as_ref().and_then(|guest| guest.opened_at.as_ref());
        if let (Some(open), Some(since)) = (&mut state.open, since) {
            open.opened_at.clone_from(since);
        }
        let guest = self.guest.as_ref().filter(|_| self.recording.is_none());
        let queue = guest.into_iter().flat_map(|guest| &guest.questions);
        let queued = queue.filter(|question| is_answerable(question, task.status.state));
        let queued = queued.map(|question| OpenedQuestion {
            question: AgentQuestion {
                id: question.id.clone(),
                request: question.request.clone(),
                ..AgentQuestion::fresh(question::kind(question.need.state(), &question.prompt))
            },
            opened_at: question.opened_at.clone(),
            prompt: question.prompt.clone(),
        });
        let now = Instant::now().into_std();
        let until = self.lifecycle.answer_until();
        QuestionState {
            expires_in: until.map(|until| until.saturating_duration_since(now)),
            expiring: self.lifecycle.is_expiring(now),
            set_aside: self.question_marks.ids(),
            queued: queued.collect(),
            ..state
        }
    }

    /// Notes that the open question, if any, is closed otherwise than by a message that names no
    /// question: such a message may be meant for it, and not for the next one.
    pub(in crate::tasks) fn question_closed(&mut self) {
        if self.lifecycle.asks() {
            self.question_closed_at = Some(Instant::now());
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
        let is_idle = |guest: &RunningTask| !guest.asks_for_child && !guest.has_new_answer;
        let asks_itself = self.guest.as_ref().is_some_and(is_idle);
        let has_children =
            self.tasks.as_ref().is_some_and(|tasks| tasks.has_children(&self.recorder.task().id));
        asks_itself
            && self.lifecycle.only_waits()
            && self.permits.waits_for_no_work()
            && self.agent.resume() == Resume::Session
            && !has_children
    }
}

/// True if a client may answer a queued question before its turn, while the task is in this state:
/// one of the agent itself, which works on or has lent its run permit.
fn is_answerable(question: &GuestQuestion, state: TaskState) -> bool {
    question.of_child.is_none()
        && !question.waits
        && question.need.state() == state
        && !question.answer.is_closed()
}
