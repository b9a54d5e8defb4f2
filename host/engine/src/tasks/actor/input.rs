//! Input of a task at work: matches a client's message to the open question, and tracks the
//! messages that the agent has yet to receive.

use super::{ActorEvent, SignalPayload, TaskActor};
use crate::conversations::{
    generation,
    refusals::{asks_now, name_the_question, question_not_open},
};
use crate::tasks::{
    command::{BoardChange, Input, RunInput},
    guest_port::{GuestRequest, MessageReader},
};
use a2a_hub_clock as clock;
use a2a_hub_core::task::{list_limits::ListFull, metadata, open_questions, question, unattended};
use a2a_hub_protocol::boards::next_change;
use a2a_hub_protocol::{
    client::ClientCapabilities,
    error::{A2aError, ErrorKind},
    event::TaskEvent,
    id::MessageId,
    message::Message,
    question::Question as AgentQuestion,
    task::{Task, TaskState},
};
use a2a_hub_runtime::{Ended, Failure, port::tasks::ClientAnswer};

impl TaskActor {
    /// Accepts a client's message if it fits the open question; otherwise replies with the question
    /// that is open.
    pub(in crate::tasks) fn accept_input(
        &self,
        input: Input,
        payload: &mut SignalPayload,
    ) -> Option<()> {
        let Input { message, answers, is_further, client, by, reply_tx } = input;
        let task = self.recorder.task();
        // A message while no question is open is no answer.
        let has_question = self.lifecycle.asks() || self.lifecycle.has_pending_question();
        let open_question =
            AgentQuestion::from_metadata(task.metadata.as_ref()).filter(|_| has_question);
        if is_further && has_question {
            let _ = reply_tx.send(Err(asks_now(task)));
            return None;
        }
        if let Err(stale_question) = question::admit(open_question.as_ref(), answers.clone()) {
            // The sender may be gone; then nobody needs the reply.
            let _ = reply_tx.send(Err(question_not_open(
                task,
                open_question.as_ref(),
                &stale_question,
            )));
            return None;
        }
        let since = self.question_closed_at.map(|at| at.elapsed());
        if let (None, Some(open)) = (&answers, &open_question)
            && !open_questions::admits_unnamed(open.kind, since)
        {
            let _ = reply_tx.send(Err(name_the_question(task, open)));
            return None;
        }
        // An answer is accepted in any case: its question was asked while the history had room.
        if let (false, Err(full)) = (has_question, self.recorder.require_history_capacity()) {
            let _ = reply_tx.send(Err(history_full(task, &full)));
            return None;
        }
        if let Err(why) = self.require_generation(&message, &client) {
            let _ = reply_tx.send(Err(why));
            return None;
        }
        payload.events = vec![TaskEvent::Input(message.clone())];
        (payload.reply_tx, payload.by) = (Some(reply_tx), Some(by.clone()));
        if self.lifecycle.has_pending_question() {
            payload.restored_answer =
                open_question.clone().map(|question| (question, message.clone()));
        }
        // If no agent waits for the message, a new run receives it.
        let run_message = match open_question.and_then(|question| question.replaces) {
            Some(lost) => question::with_restart_note(message.clone(), lost),
            None => message.clone(),
        };
        let directory = metadata::working_directory(task);
        let (live, goes_on, at) = (true, true, 0);
        let (client_now, by) = (client.clone(), Some(by));
        let start =
            RunInput { message: run_message, client: client_now, directory, live, goes_on, at, by };
        payload.start = Some(Box::new(start));
        payload.answer = Some(ClientAnswer { message, client });
        Some(())
    }

    /// Refuses a message that a client wrote for an earlier state of the task. Nobody else appends
    /// to the log, so nothing happens between the check and the message.
    fn require_generation(
        &self,
        message: &Message,
        client: &ClientCapabilities,
    ) -> Result<(), A2aError> {
        let pending = u64::try_from(self.recorder.pending()).unwrap_or(u64::MAX);
        let generation = self.recorder.seq().saturating_add(pending);
        generation::require(&self.recorder.task().id, generation, message, client)
    }

    /// Refuses the answer to a queued question that the history has no room for, or that a client
    /// wrote for an earlier state of the task.
    pub(in crate::tasks) fn require_acceptable(
        &self,
        message: &Message,
        client: &ClientCapabilities,
    ) -> Result<(), A2aError> {
        let capacity = self.recorder.require_history_capacity();
        capacity.map_err(|full| history_full(self.recorder.task(), &full))?;
        self.require_generation(message, client)
    }

    /// Records the hub's message that starts an unattended run again, and sets it as the input of
    /// the next run.
    pub(in crate::tasks) fn record_again(&mut self) {
        let is_known = self.agent.config.history > 0;
        let Some(message) = unattended::again_message(self.recorder.task(), is_known) else {
            return;
        };
        self.recorder.record(TaskEvent::Input(message.clone()));
        let directory = metadata::working_directory(self.recorder.task());
        let client = ClientCapabilities::default();
        let (live, goes_on, at, by) = (true, true, 0, None);
        let start = RunInput { message, client, directory, live, goes_on, at, by };
        self.start = Some(self.recorded(Box::new(start)));
    }

    /// Measures the time to the agent's first output. A run that only fails is not counted: it
    /// would pass for the fastest.
    pub(in crate::tasks) fn count_first_word(&mut self, event: &ActorEvent) {
        let speaks = match event {
            ActorEvent::Request(GuestRequest::Emit(_) | GuestRequest::Ask(_))
            | ActorEvent::Ended(Ended::Reply(_)) => true,
            ActorEvent::Ended(Ended::Status { state, .. }) => *state == TaskState::Completed,
            ActorEvent::Ended(Ended::Failed(_))
            | ActorEvent::Request(_)
            | ActorEvent::Command(_)
            | ActorEvent::Turn(_)
            | ActorEvent::Time
            | ActorEvent::Read
            | ActorEvent::Withdrawn => false,
        };
        if speaks && let Some(begun) = self.guest.as_mut().and_then(|guest| guest.begun.take()) {
            self.recorder.metrics().first_word(&self.agent.id, begun.elapsed());
        }
    }

    /// Next event for the agent: a queued question, or a message that it waits for.
    pub(in crate::tasks) fn next_for_agent(&mut self) -> Option<ActorEvent> {
        if let Some(question) = self.next_question() {
            return Some(ActorEvent::Request(question));
        }
        let reads = self.guest.as_ref()?.reads.is_some();
        (reads && self.lifecycle.may_read()).then_some(ActorEvent::Read)
    }

    /// Registers the agent as a reader of the next message. Without a reader, ends the wait for
    /// one: a message that is already recorded as received was sent before.
    pub(in crate::tasks) fn set_reader<T>(&mut self, reader: Option<MessageReader>) -> Option<T> {
        let guest = self.guest.as_mut()?;
        if let (None, Some(reads)) = (&reader, guest.reads.take()) {
            // A guest that has ended needs no answer.
            let _ = reads.send(Err(Failure::Timeout));
        }
        guest.reads = reader;
        None
    }

    /// Event for the log: the agent reads its oldest message.
    pub(in crate::tasks) fn reading(&self) -> Option<TaskEvent> {
        let message = &self.pending_inputs.front()?.message.message_id;
        Some(metadata::received(self.recorder.task(), message, clock::now()))
    }

    /// Event for the log: a program of the agent changes the blackboard of the flow that called the
    /// task, which reads it there.
    pub(in crate::tasks) fn board_change(&self, change: BoardChange) -> Option<TaskEvent> {
        let BoardChange { id, contribution, reply_tx } = change;
        let task = self.recorder.task();
        let works = self.lifecycle.works() && self.guest.as_ref().is_some_and(|it| !it.tends);
        let change = if works {
            let change = next_change(task.metadata.as_ref(), &id, contribution);
            change.map_err(|why| A2aError::new(ErrorKind::UnsupportedOperation, why.to_string()))
        } else {
            Err(asks_now(task))
        };
        let (reply, change) = match change {
            Ok(change) => (Ok(()), Some(change)),
            Err(why) => (Err(why), None),
        };
        // The program may be gone; then nobody needs the reply.
        let _ = reply_tx.send(reply);
        change.map(|change| metadata::blackboard_change(task, change, clock::now()))
    }

    /// Sends the oldest message to the agent, which reads it.
    pub(in crate::tasks) fn deliver(&mut self) {
        let reads = self.guest.as_mut().and_then(|guest| guest.reads.take());
        if let (Some(reads), Some(input)) = (reads, self.pending_inputs.pop_front()) {
            let RunInput { message, client, .. } = *input;
            // A guest that has ended needs no message.
            let _ = reads.send(Ok(ClientAnswer { message, client }));
        }
    }

    /// Drops the first `known` messages: the journal of the replayed run has them.
    pub(in crate::tasks) fn skip_read(&mut self, known: usize) {
        self.pending_inputs.drain(..known.min(self.pending_inputs.len()));
        self.lifecycle = self.lifecycle.keeping(self.pending_inputs.len());
    }

    /// Messages that the agent has not received.
    pub(in crate::tasks) fn pending_messages(&self) -> Vec<MessageId> {
        self.pending_inputs.iter().map(|start| start.message.message_id.clone()).collect()
    }

    /// Sets the message's index, once it is the last in the task's history.
    pub(in crate::tasks) fn recorded(&self, mut start: Box<RunInput>) -> Box<RunInput> {
        start.at = self.recorder.task().history.len().saturating_sub(1);
        start
    }
}

/// Refuses a further message to a task whose history is full.
fn history_full(task: &Task, full: &ListFull) -> A2aError {
    let why = format!(
        "send a message to task `{}`: {full}; send it without `taskId`, and with the task's `contextId`, once the task is over",
        task.id
    );
    A2aError::new(ErrorKind::UnsupportedOperation, why)
}
