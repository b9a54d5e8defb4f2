//! What a client says to a task at work: whether it answers what the task asks, and what its agent is still to hear.

use super::{
    actor::{Happening, Payload, TaskActor},
    command::{Input, Start},
    port::GuestRequest,
    refused::not_asked,
};
use a2a_hub_core::{facts, question};
use a2a_hub_protocol::{
    event::TaskEvent, id::MessageId, question::Question as Asked, task::TaskState,
};
use a2a_hub_runtime::{Ended, port::tasks::Answer};

impl TaskActor {
    /// What the client says, if it may be for what the task asks now; otherwise the client is told what that is.
    pub(super) fn hear(&self, input: Input, payload: &mut Payload) -> Option<()> {
        let Input { message, answers, client, by, told } = input;
        let task = self.recorder.task();
        // What is said while nothing is asked answers nothing.
        let is_asked = self.lifecycle.asks() || self.lifecycle.stands();
        let asked = Asked::of(task.metadata.as_ref()).filter(|_| is_asked);
        if let Err(gone) = question::admit(asked.as_ref(), answers) {
            // Who asked may have gone; there is nobody to tell then.
            let _ = told.send(Err(not_asked(task, asked.as_ref(), &gone)));
            return None;
        }
        payload.events = vec![TaskEvent::Input(message.clone())];
        (payload.told, payload.by) = (Some(told), Some(by.clone()));
        if self.lifecycle.stands() {
            payload.standing = asked.clone().map(|asked| (asked, message.clone()));
        }
        // If no agent waits for it, one is started with it.
        let heard = match asked.and_then(|asked| asked.replaces) {
            Some(lost) => question::heard_after_restart(message.clone(), lost),
            None => message.clone(),
        };
        let directory = facts::working_directory(task);
        let (streamed, goes_on, at) = (true, true, 0);
        let (client_now, by) = (client.clone(), Some(by));
        let start =
            Start { message: heard, client: client_now, directory, streamed, goes_on, at, by };
        payload.start = Some(Box::new(start));
        payload.answer = Some(Answer { message, client });
        Some(())
    }

    /// Counts how long the agent's first word took. One that only fails has said nothing: it would pass for the quickest.
    pub(super) fn count_first_word(&mut self, happening: &Happening) {
        let speaks = match happening {
            Happening::Said(GuestRequest::Emit(_) | GuestRequest::Ask(_))
            | Happening::Ended(Ended::Reply(_)) => true,
            Happening::Ended(Ended::Status { state, .. }) => *state == TaskState::Completed,
            Happening::Ended(Ended::Failed(_))
            | Happening::Said(_)
            | Happening::Command(_)
            | Happening::Turn(_)
            | Happening::Time
            | Happening::Withdrawn => false,
        };
        if speaks && let Some(begun) = self.guest.as_mut().and_then(|guest| guest.begun.take()) {
            self.recorder.metrics().first_word(&self.agent.id, begun.elapsed());
        }
    }

    /// The messages that the agent has not heard.
    pub(super) fn unheard(&self) -> Vec<MessageId> {
        self.unheard.iter().map(|start| start.message.message_id.clone()).collect()
    }

    /// What the client said, once it is the last in the task's history.
    pub(super) fn recorded(&self, mut start: Box<Start>) -> Box<Start> {
        start.at = self.recorder.task().history.len().saturating_sub(1);
        start
    }
}
