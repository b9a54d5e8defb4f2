//! What becomes of the tasks of an earlier run of the hub.

use super::{
    Tasks,
    actor::{Begin, Start},
    feed::Feed,
};
use crate::{
    agents::{Agent, Agents},
    storage::{Head, HeadFilter, StorageError, StoredTask},
    telemetry,
};
use a2a_hub_core::recovery::{Left, Recovery};
use a2a_hub_protocol::{
    event::{StatusUpdate, TaskEvent},
    message::{Message, Metadata, Role},
    task::{Task, TaskState, TaskStatus},
};
use serde_json::json;
use std::{sync::Arc, time::Duration};

/// The fact that tells a task still waits for its turn.
pub(super) const QUEUED: &str = "queued";

/// The fact that tells why a task is where it is.
pub(super) const REASON: &str = "reason";

/// The reason of a task that its client must send on its way again.
pub(super) const RECOVERY: &str = "recovery";

/// How many tasks of an earlier run there were, by what became of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recovered {
    /// They had not begun, and begin now.
    pub started: usize,
    /// They wait for their client.
    pub waiting: usize,
    /// Their agents, which are elsewhere, went on, and are listened to again.
    pub followed: usize,
    /// They were cut off.
    pub failed: usize,
}

impl Tasks {
    /// Takes up what an earlier run of the hub left unfinished. The agents must be there by now.
    pub async fn recover(&self, agents: &Agents) -> Result<Recovered, StorageError> {
        let left = HeadFilter { live_only: true, ..HeadFilter::default() };
        let mut recovered = Recovered::default();
        // Oldest first: those who waited keep their order.
        for head in self.storage.heads(left).await?.into_iter().rev() {
            let Some(stored) = self.storage.task(&head.task).await? else { continue };
            let agent = agents.find(&head.agent);
            let left = Left {
                state: head.state,
                queued: has_fact(&stored.task, QUEUED),
                hold: match &agent {
                    Some(agent) => Some(agent.hold(&head.task).await),
                    None => None,
                },
            };
            match (left.recovery(), agent) {
                (Recovery::Leave, _) => {}
                (Recovery::Start, Some(agent)) => {
                    recovered.started += 1;
                    self.start_again(stored, agent).await?;
                }
                (Recovery::Ask(state), Some(agent)) => {
                    recovered.waiting += 1;
                    self.ask_again(stored, agent, state).await?;
                }
                (Recovery::Follow, Some(agent)) => {
                    recovered.followed += 1;
                    self.follow_again(stored, agent).await?;
                }
                (Recovery::Fail, _)
                | (Recovery::Start | Recovery::Ask(_) | Recovery::Follow, None) => {
                    recovered.failed += 1;
                    self.end(&head, &stored.task).await?;
                }
            }
        }
        Ok(recovered)
    }

    async fn start_again(&self, stored: StoredTask, agent: Arc<Agent>) -> Result<(), StorageError> {
        let StoredTask { seq, task, .. } = stored;
        // A log begins with the client's message.
        let Some(message) = task.history.first().cloned() else { return Ok(()) };
        let admitted = self.turns.come_back(&agent);
        let directory = working_directory(&task);
        let start = Start { message, directory, streamed: true, goes_on: true, admitted };
        let patience = self.patience_again(&task, &agent).await?;
        self.spawn(task, seq, agent, Feed::new(seq), patience, Begin::Work(Box::new(start)));
        Ok(())
    }

    async fn follow_again(
        &self,
        stored: StoredTask,
        agent: Arc<Agent>,
    ) -> Result<(), StorageError> {
        let StoredTask { seq, task, .. } = stored;
        let patience = self.patience_again(&task, &agent).await?;
        let admitted = self.turns.come_back(&agent);
        self.spawn(task, seq, agent, Feed::new(seq), patience, Begin::Follow(admitted));
        Ok(())
    }

    /// As long as the task was given when it began.
    async fn patience_again(&self, task: &Task, agent: &Agent) -> Result<Duration, StorageError> {
        let first = self.storage.events(&task.id, 0, 1).await?.pop();
        let said = first.and_then(|first| match first.event {
            TaskEvent::Created(created) => created.timeout_ms,
            TaskEvent::Status(_)
            | TaskEvent::Artifact(_)
            | TaskEvent::Input(_)
            | TaskEvent::Reply(_) => None,
        });
        Ok(super::patience(agent, said))
    }

    async fn ask_again(
        &self,
        stored: StoredTask,
        agent: Arc<Agent>,
        state: TaskState,
    ) -> Result<(), StorageError> {
        let StoredTask { mut seq, mut task, .. } = stored;
        // A hub that restarts every day need not say so every day. But where the client has answered already, what was
        // asked is history, and it must be told that nobody heard it.
        let is_told = fact(&task, REASON) == Some(RECOVERY) && task.status.message.is_some();
        if !is_told || task.status.state != state {
            let event = interrupted(&task, state);
            seq = self.storage.append(&task.id, seq, vec![Arc::new(event.clone())]).await?;
            a2a_hub_core::task::apply(&mut task, &event)?;
        }
        let patience = self.patience_again(&task, &agent).await?;
        self.spawn(task, seq, agent, Feed::new(seq), patience, Begin::Parked);
        Ok(())
    }

    async fn end(&self, head: &Head, task: &Task) -> Result<(), StorageError> {
        let text = if task.status.state == TaskState::Working {
            "The hub was restarted while the agent was at work; what it had done by then is kept."
        } else {
            "The hub was restarted, and the agent that had this task cannot go on with it."
        };
        let event = status(TaskState::Failed, Some(note(task, text)), "hub_restarted");
        self.storage.append(&head.task, head.seq, vec![Arc::new(event)]).await?;
        Ok(())
    }
}

/// That a task waits for its client, for the hub that ran it is gone.
pub(super) fn interrupted(task: &Task, state: TaskState) -> TaskEvent {
    let (waits, asked) = (task.status.state.is_interrupted(), &task.status.message);
    let message = match asked {
        // What was asked still stands.
        Some(asked) if waits => asked.clone(),
        None if waits => note(
            task,
            "The hub was restarted before the agent heard the answer; send any message to go on.",
        ),
        Some(_) | None => note(
            task,
            "The hub was restarted while the agent was at work; send any message to go on.",
        ),
    };
    status(state, Some(message), RECOVERY)
}

/// Something the hub says in the agent's place.
fn note(task: &Task, text: &str) -> Message {
    Message {
        task_id: Some(task.id.clone()),
        context_id: Some(task.context_id.clone()),
        ..Message::text(Role::Agent, text)
    }
}

fn status(state: TaskState, message: Option<Message>, reason: &str) -> TaskEvent {
    let status = TaskStatus { state, message, timestamp: telemetry::timestamp() };
    let facts = Metadata::from_iter([(REASON.to_owned(), json!(reason))]);
    TaskEvent::Status(StatusUpdate { status, metadata: Some(facts) })
}

/// A fact of a task that is a text.
pub(super) fn fact<'a>(task: &'a Task, name: &str) -> Option<&'a str> {
    task.metadata.as_ref()?.get(name)?.as_str()
}

pub(super) fn has_fact(task: &Task, name: &str) -> bool {
    task.metadata.as_ref().is_some_and(|facts| facts.contains_key(name))
}

/// Where the client would have the work done, as it said last.
pub(super) fn working_directory(task: &Task) -> Option<String> {
    let said = task.history.iter().rev().filter_map(|message| message.metadata.as_ref());
    let mut directories = said.filter_map(|facts| facts.get("workingDirectory")?.as_str());
    directories.next().map(str::to_owned)
}
