//! What becomes of the tasks of an earlier run of the hub.

use super::{
    Tasks,
    command::{Begin, Start},
    facts::{QUEUED, REASON, RECOVERY, fact, has_fact, working_directory},
    feed::Feed,
};
use crate::{
    agents::{Agent, Agents},
    clock,
};
use a2a_hub_core::{
    question::{after_restart, heard_after_restart, kind},
    reason::FailureReason,
    recovery::{Hold, Left, Recovery},
};
use a2a_hub_protocol::{
    client::ClientCapabilities,
    event::{StatusUpdate, TaskEvent},
    message::{Message, Metadata, Role},
    question::Question,
    task::{Task, TaskState, TaskStatus},
};
use a2a_hub_store::{Head, HeadFilter, StorageError, StoredTask};
use serde_json::json;
use std::sync::Arc;

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
    /// What is stored of them makes no sense.
    pub unreadable: usize,
}

impl Tasks {
    /// Takes up what an earlier run of the hub left unfinished. The agents must be there by now.
    pub async fn recover(&self, agents: &Agents) -> Result<Recovered, StorageError> {
        let left = HeadFilter { live_only: true, ..HeadFilter::default() };
        let mut recovered = Recovered::default();
        // Oldest first: those who waited keep their order.
        for head in self.storage.heads(left).await?.into_iter().rev() {
            match self.take_up(&head, agents, &mut recovered).await {
                Err(why @ StorageError::Unavailable(_)) => return Err(why),
                // One that is damaged must not keep the others waiting.
                Err(why) => {
                    tracing::error!(task = %head.task, %why, "a task cannot be taken up, and is left as it is");
                    recovered.unreadable += 1;
                }
                Ok(()) => {}
            }
        }
        Ok(recovered)
    }

    async fn take_up(
        &self,
        head: &Head,
        agents: &Agents,
        recovered: &mut Recovered,
    ) -> Result<(), StorageError> {
        let Some(stored) = self.storage.task(&head.task).await? else { return Ok(()) };
        let agent = agents.find(&head.agent);
        let left = Left {
            state: head.state,
            queued: has_fact(&stored.task, QUEUED),
            answered: is_answered(&stored.task),
            hold: match &agent {
                Some(agent) => Some(agent.hold(&head.task).await),
                None => None,
            },
        };
        match (left.recovery(), agent) {
            (Recovery::Leave, _) => {}
            (Recovery::Start, Some(agent)) => {
                self.start_again(stored, agent).await?;
                recovered.started += 1;
            }
            (Recovery::Wait, Some(agent)) => {
                self.park(stored.seq, stored.task, agent).await?;
                recovered.waiting += 1;
            }
            (Recovery::Ask(state), Some(agent)) => {
                self.ask_again(stored, agent, state).await?;
                recovered.waiting += 1;
            }
            (Recovery::Follow, Some(agent)) => {
                self.follow_again(stored, agent).await?;
                recovered.followed += 1;
            }
            (Recovery::Fail, _)
            | (Recovery::Start | Recovery::Wait | Recovery::Ask(_) | Recovery::Follow, None) => {
                self.end(head, &stored.task).await?;
                recovered.failed += 1;
            }
        }
        Ok(())
    }

    async fn start_again(&self, stored: StoredTask, agent: Arc<Agent>) -> Result<(), StorageError> {
        let StoredTask { seq, task, .. } = stored;
        // What the client said last: the message that began the task, or an answer that its agent has not heard.
        let Some(message) = task.history.last().cloned() else { return Ok(()) };
        let message = match Question::of(task.metadata.as_ref()) {
            // An agent elsewhere still waits for the answer.
            Some(asked) if agent.hold(&task.id).await != Hold::Work => {
                heard_after_restart(message, asked.replaces.unwrap_or(asked.kind))
            }
            Some(_) | None => message,
        };
        let admitted = self.turns.come_back(&agent);
        let directory = working_directory(&task);
        let (timeout_ms, client) = self.began(&task).await?;
        let start = Start { message, client, directory, streamed: true, goes_on: true, admitted };
        let patience = super::patience(&agent, timeout_ms);
        self.spawn(task, seq, agent, Feed::new(seq), patience, Begin::Work(Box::new(start)));
        Ok(())
    }

    async fn follow_again(
        &self,
        stored: StoredTask,
        agent: Arc<Agent>,
    ) -> Result<(), StorageError> {
        let StoredTask { seq, task, .. } = stored;
        let (timeout_ms, client) = self.began(&task).await?;
        let patience = super::patience(&agent, timeout_ms);
        let admitted = self.turns.come_back(&agent);
        self.spawn(task, seq, agent, Feed::new(seq), patience, Begin::Follow(admitted, client));
        Ok(())
    }

    /// How long the task was given when it began, in milliseconds, and what its client can do with an answer.
    async fn began(&self, task: &Task) -> Result<(Option<u64>, ClientCapabilities), StorageError> {
        let first = self.storage.events(&task.id, 0, 1).await?.pop();
        let said = first.and_then(|first| match first.event {
            TaskEvent::Created(created) => Some((created.timeout_ms, created.client)),
            TaskEvent::Status(_)
            | TaskEvent::Artifact(_)
            | TaskEvent::Input(_)
            | TaskEvent::Reply(_) => None,
        });
        Ok(said.unwrap_or_default())
    }

    async fn ask_again(
        &self,
        stored: StoredTask,
        agent: Arc<Agent>,
        state: TaskState,
    ) -> Result<(), StorageError> {
        let StoredTask { mut seq, mut task, .. } = stored;
        // A hub that restarts every day need not say so every day.
        let replaced = Question::of(task.metadata.as_ref()).is_some();
        let is_told = fact(&task, REASON) == Some(RECOVERY) && replaced;
        if !is_told || task.status.state != state {
            let event = interrupted(&task, &agent, state);
            seq = self.storage.append(&task.id, seq, vec![Arc::new(event.clone())]).await?;
            a2a_hub_core::task::apply(&mut task, &event)?;
        }
        self.park(seq, task, agent).await
    }

    async fn park(&self, seq: u64, task: Task, agent: Arc<Agent>) -> Result<(), StorageError> {
        let (timeout_ms, _) = self.began(&task).await?;
        let patience = super::patience(&agent, timeout_ms);
        self.spawn(task, seq, agent, Feed::new(seq), patience, Begin::Parked);
        Ok(())
    }

    async fn end(&self, head: &Head, task: &Task) -> Result<(), StorageError> {
        let text = if task.status.state == TaskState::Working {
            "The hub was restarted while the agent was at work; what it had done by then is kept."
        } else {
            "The hub was restarted, and the agent that had this task cannot go on with it."
        };
        let event =
            status(TaskState::Failed, Some(note(task, text)), FailureReason::HubRestarted.name());
        self.storage.append(&head.task, head.seq, vec![Arc::new(event)]).await?;
        Ok(())
    }
}

/// Whether the client answered what the task asked, and the agent has not heard the answer: what was asked is history.
fn is_answered(task: &Task) -> bool {
    let last = task.history.last();
    task.status.state.is_interrupted()
        && task.status.message.is_none()
        && last.is_some_and(|said| said.role == Role::User)
}

/// That a task waits for its client, for the hub that ran it is gone: another question than its agent had asked, if it had.
pub(super) fn interrupted(task: &Task, agent: &Agent, state: TaskState) -> TaskEvent {
    let waits = task.status.state.is_interrupted();
    let asked = task.status.message.as_ref().filter(|_| waits);
    let lost = asked.map(|prompt| {
        let known = Question::of(task.metadata.as_ref());
        (known.map_or_else(|| kind(state, prompt), |asked| asked.kind), prompt.joined_text())
    });
    let text = after_restart(
        &agent.card.name,
        lost.as_ref().map(|(kind, prompt)| (*kind, prompt.as_str())),
    );
    let prompt = note(task, &text);
    let replaces = lost.map(|(kind, _)| kind);
    let question = Question { replaces, ..Question::fresh(kind(state, &prompt)) };
    let mut event = status(state, Some(prompt), RECOVERY);
    if let TaskEvent::Status(StatusUpdate { metadata: Some(facts), .. }) = &mut event {
        facts.extend([question.member()]);
    }
    event
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
    let status = TaskStatus { state, message, timestamp: clock::now() };
    let facts = Metadata::from_iter([(REASON.to_owned(), json!(reason))]);
    TaskEvent::Status(StatusUpdate { status, metadata: Some(facts) })
}
