//! Part of a task's log that belongs to one run of its agent: what a replay compares and answers.

use crate::port::tasks::Emitted;
use a2a_hub_core::task::metadata;
use a2a_hub_protocol::{
    event::TaskEvent,
    message::{Message, Metadata, Role},
    question::{QUESTION, Question as AgentQuestion},
};
use std::collections::VecDeque;

/// Facts about the current run, read from the task's log.
#[derive(Debug, Default)]
pub struct RunFacts {
    /// Output of the agent.
    pub emitted: Vec<Emitted>,
    /// Answers of the client.
    pub answers: VecDeque<(AgentQuestion, Message)>,
    /// Question that is open.
    open: Option<AgentQuestion>,
    /// True if the run is over, and the next has not begun.
    pub is_over: bool,
}

impl RunFacts {
    /// Applies the next event of the log.
    pub fn follow(&mut self, event: TaskEvent) {
        match event {
            TaskEvent::Artifact(update) => self.emitted.push(Emitted::Artifact {
                artifact: update.artifact,
                append: update.append,
                last_chunk: update.last_chunk,
            }),
            TaskEvent::Status(update) => {
                let state = update.status.state;
                let facts = update.metadata.as_ref();
                self.is_over |=
                    facts.is_some_and(|facts| facts.contains_key(metadata::PENDING_MESSAGES));
                if state.is_interrupted() {
                    self.open = AgentQuestion::from_metadata(facts)
                        .filter(|_| update.status.message.is_some());
                    return;
                }
                if facts.is_some_and(|facts| facts.contains_key(QUESTION)) {
                    self.open = None;
                }
                let metadata = update.metadata.and_then(metadata::of_agent).filter(is_agents);
                let message = update.status.message;
                if message.is_some() || metadata.is_some() {
                    self.emitted.push(Emitted::Working { message, metadata });
                }
            }
            TaskEvent::Input(message) if message.role == Role::User => {
                self.answers.extend(self.open.take().map(|question| (question, message)));
            }
            TaskEvent::Input(_) | TaskEvent::Created(_) | TaskEvent::Reply(_) => {}
        }
    }
}

/// True if the metadata is the agent's. The hub's own updates only remove facts, by null.
fn is_agents(facts: &Metadata) -> bool {
    facts.values().any(|fact| !fact.is_null())
}
