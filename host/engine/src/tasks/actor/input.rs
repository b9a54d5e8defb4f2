//! Input of a task at work: matches a client's message to the open question, and tracks the
//! messages that the agent has yet to receive.

use super::{ActorEvent, SignalPayload, TaskActor};
use crate::tasks::{
    command::{Input, RunInput},
    errors::not_asked,
    guest_port::GuestRequest,
};
use a2a_hub_core::task::{metadata, question};
use a2a_hub_protocol::{
    event::TaskEvent, id::MessageId, question::Question as Asked, task::TaskState,
};
use a2a_hub_runtime::{Ended, port::tasks::ClientAnswer};

impl TaskActor {
    /// Accepts a client's message if it fits the open question; otherwise replies with the question
    /// that is open.
    pub(in crate::tasks) fn hear(&self, input: Input, payload: &mut SignalPayload) -> Option<()> {
        let Input { message, answers, client, by, told } = input;
        let task = self.recorder.task();
        // A message while no question is open is no answer.
        let is_asked = self.lifecycle.asks() || self.lifecycle.stands();
        let asked = Asked::of(task.metadata.as_ref()).filter(|_| is_asked);
        if let Err(gone) = question::admit(asked.as_ref(), answers) {
            // The sender may be gone; then nobody needs the reply.
            let _ = told.send(Err(not_asked(task, asked.as_ref(), &gone)));
            return None;
        }
        payload.events = vec![TaskEvent::Input(message.clone())];
        (payload.told, payload.by) = (Some(told), Some(by.clone()));
        if self.lifecycle.stands() {
            payload.standing = asked.clone().map(|asked| (asked, message.clone()));
        }
        // If no agent waits for the message, a new run receives it.
        let heard = match asked.and_then(|asked| asked.replaces) {
            Some(lost) => question::heard_after_restart(message.clone(), lost),
            None => message.clone(),
        };
        let directory = metadata::working_directory(task);
        let (live, goes_on, at) = (true, true, 0);
        let (client_now, by) = (client.clone(), Some(by));
        let start =
            RunInput { message: heard, client: client_now, directory, live, goes_on, at, by };
        payload.start = Some(Box::new(start));
        payload.answer = Some(ClientAnswer { message, client });
        Some(())
    }

    /// Measures the time to the agent's first output. A run that only fails is not counted: it
    /// would pass for the fastest.
    pub(in crate::tasks) fn count_first_word(&mut self, happening: &ActorEvent) {
        let speaks = match happening {
            ActorEvent::Said(GuestRequest::Emit(_) | GuestRequest::Ask(_))
            | ActorEvent::Ended(Ended::Reply(_)) => true,
            ActorEvent::Ended(Ended::Status { state, .. }) => *state == TaskState::Completed,
            ActorEvent::Ended(Ended::Failed(_))
            | ActorEvent::Said(_)
            | ActorEvent::Command(_)
            | ActorEvent::Turn(_)
            | ActorEvent::Time
            | ActorEvent::Withdrawn => false,
        };
        if speaks && let Some(begun) = self.guest.as_mut().and_then(|guest| guest.begun.take()) {
            self.recorder.metrics().first_word(&self.agent.id, begun.elapsed());
        }
    }

    /// Messages that the agent has not received.
    pub(in crate::tasks) fn unheard(&self) -> Vec<MessageId> {
        self.unheard.iter().map(|start| start.message.message_id.clone()).collect()
    }

    /// Sets the message's index, once it is the last in the task's history.
    pub(in crate::tasks) fn recorded(&self, mut start: Box<RunInput>) -> Box<RunInput> {
        start.at = self.recorder.task().history.len().saturating_sub(1);
        start
    }
}
