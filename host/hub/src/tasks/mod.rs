//! The tasks: one actor each while they live, the log for ever.

mod actor;
mod feed;
mod port;

pub use feed::Subscription;

use crate::{
    agents::Agent,
    storage::{Counts, HeadFilter, Storage, StorageError, StoredTask},
    telemetry,
};
use a2a_hub_protocol::{
    error::{A2aError, ErrorKind},
    event::{Created, Recorded, TaskEvent},
    id::{ContextId, TaskId},
    message::Message,
    task::{Task, TaskState, TaskStatus},
};
use a2a_hub_sandbox::guest::Work;
use actor::{Command, TaskActor};
use feed::{Feed, Listener};
use serde_json::json;
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tokio::sync::{mpsc, oneshot};
use tokio_util::task::TaskTracker;

/// Orders a task takes before those who give them must wait.
const COMMANDS: usize = 8;

/// How often it is looked whether tasks are still at work, when the hub waits for that.
const LOOK: Duration = Duration::from_millis(25);

/// Messages of the conversation so far that an agent is given.
const HISTORY: usize = 50;

/// Starts tasks, finds them, and waits for them at the end. Cheap to clone.
#[derive(Clone)]
pub struct Tasks {
    storage: Arc<dyn Storage>,
    actors: TaskTracker,
    live: Arc<Mutex<HashMap<TaskId, Live>>>,
}

/// A task whose actor runs.
#[derive(Clone)]
struct Live {
    context: ContextId,
    commands: mpsc::Sender<Command>,
    listener: Listener,
}

/// A new piece of work.
pub struct NewTask {
    /// Who is to do it.
    pub agent: Arc<Agent>,
    /// What the client says.
    pub message: Message,
    /// Where the client would have it done.
    pub working_directory: Option<String>,
    /// How long it may take.
    pub patience: Duration,
    /// Whether somebody listens.
    pub live: bool,
}

impl Tasks {
    /// No tasks but those in the log.
    pub fn new(storage: Arc<dyn Storage>) -> Self {
        Self { storage, actors: TaskTracker::new(), live: Arc::default() }
    }

    /// Ends the tasks that an earlier run of the hub left unfinished, and returns how many there were.
    pub async fn recover(&self) -> Result<usize, StorageError> {
        let left = HeadFilter { live_only: true, ..HeadFilter::default() };
        let left = self.storage.heads(left).await?;
        for head in &left {
            let end = Arc::new(actor::abandoned(&head.task));
            self.storage.append(&head.task, head.seq, vec![end]).await?;
        }
        Ok(left.len())
    }

    /// Starts a task. Once this returns, it is in the log.
    pub async fn submit(&self, new: NewTask) -> Result<Subscription, StorageError> {
        let NewTask { agent, mut message, working_directory, patience, live } = new;
        let (id, goes_on) = (TaskId::fresh(), message.context_id.is_some());
        let context = message.context_id.clone().unwrap_or_else(ContextId::fresh);
        message.context_id = Some(context.clone());
        message.task_id = Some(id.clone());
        let history =
            if goes_on { self.storage.conversation(&context, HISTORY).await? } else { Vec::new() };
        let status = TaskStatus {
            state: TaskState::Submitted,
            message: None,
            timestamp: telemetry::timestamp(),
        };
        let task = Task {
            id: id.clone(),
            context_id: context.clone(),
            status,
            artifacts: Vec::new(),
            history: vec![message.clone()],
            metadata: None,
        };
        let created = Created { agent: agent.id.clone(), task: task.clone() };
        let created = TaskEvent::Created(Box::new(created));
        let seq = self.storage.append(&id, 0, vec![Arc::new(created.clone())]).await?;

        let feed = Feed::new(0);
        let recorded = Recorded { task: id.clone(), context: context.clone(), seq, event: created };
        feed.publish([Arc::new(recorded)]);
        let (commands, orders) = mpsc::channel(COMMANDS);
        let handle = Live { context, commands, listener: feed.listener() };
        let subscription = self.subscribe(&id, &handle, 0);
        self.live().insert(id.clone(), handle);

        let work = Work { task: task.clone(), message, history, live };
        let storage = Arc::clone(&self.storage);
        let actor = TaskActor { task, seq, agent, storage, feed, commands: orders, patience };
        let tasks = self.clone();
        self.actors.spawn(async move {
            actor.run(work, working_directory).await;
            tasks.live().remove(&id);
        });
        Ok(subscription)
    }

    /// Says more to a task that waits for it; the subscription hears what follows.
    pub async fn answer(&self, id: &TaskId, message: Message) -> Result<Subscription, A2aError> {
        let Some(live) = self.find(id) else {
            let stored = self.get(id).await?;
            return Err(not_waiting(id, stored.task.status.state));
        };
        if message.context_id.as_ref().is_some_and(|context| *context != live.context) {
            let why = format!("task `{id}` belongs to the context `{}`", live.context);
            return Err(A2aError::invalid("message.contextId", why));
        }
        let heard = live.listener.seq();
        let (told, answer) = oneshot::channel();
        let over = || not_waiting(id, TaskState::Completed);
        live.commands.send(Command::Input(message, told)).await.map_err(|_| over())?;
        answer.await.map_err(|_| over())??;
        Ok(self.subscribe(id, &live, heard))
    }

    /// Stops a task and returns it as it ended. One that came to another end meanwhile cannot be cancelled.
    pub async fn cancel(&self, id: &TaskId) -> Result<Task, A2aError> {
        if let Some(live) = self.find(id) {
            // Whether it hears the order or has just ended is told by how it ends.
            let _ = live.commands.send(Command::Cancel).await;
            live.commands.closed().await;
        } else {
            let stored = self.get(id).await?;
            return Err(not_cancelable(id, stored.task.status.state));
        }
        let task = self.get(id).await?.task;
        let state = task.status.state;
        if state == TaskState::Canceled { Ok(task) } else { Err(not_cancelable(id, state)) }
    }

    /// A task as its log tells it.
    pub async fn get(&self, id: &TaskId) -> Result<StoredTask, A2aError> {
        let stored = self
            .storage
            .task(id)
            .await
            .map_err(|why| A2aError::new(ErrorKind::Internal, why.to_string()))?;
        stored.ok_or_else(|| A2aError::no_task(id))
    }

    /// How many tasks there are.
    pub async fn counts(&self) -> Result<Counts, StorageError> {
        self.storage.counts().await
    }

    /// Waits until no task is at work. Those that wait for their client are left to wait: that may take days.
    pub async fn idle(&self) -> Result<(), StorageError> {
        for state in [TaskState::Submitted, TaskState::Working] {
            let one = HeadFilter { state: Some(state), limit: 1, ..HeadFilter::default() };
            while !self.storage.heads(one.clone()).await?.is_empty() {
                tokio::time::sleep(LOOK).await;
            }
        }
        Ok(())
    }

    /// Stops all tasks, waits until they are in the log, and tells which they were.
    pub async fn shutdown(&self) -> Vec<TaskId> {
        let live: Vec<_> =
            self.live().iter().map(|(id, task)| (id.clone(), task.clone())).collect();
        let mut cut = Vec::new();
        for (id, task) in live {
            // One that has just ended needs no order.
            if task.commands.send(Command::Shutdown).await.is_ok() {
                cut.push(id);
            }
        }
        self.actors.close();
        self.actors.wait().await;
        cut
    }

    fn find(&self, id: &TaskId) -> Option<Live> {
        self.live().get(id).cloned()
    }

    fn subscribe(&self, id: &TaskId, live: &Live, after: u64) -> Subscription {
        let storage = Arc::clone(&self.storage);
        live.listener.subscribe(id.clone(), live.context.clone(), storage, after)
    }

    fn live(&self) -> std::sync::MutexGuard<'_, HashMap<TaskId, Live>> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn not_waiting(id: &TaskId, state: TaskState) -> A2aError {
    let hint =
        if state.is_final() { "send the message without `taskId`" } else { "wait for it to ask" };
    let why = format!("task `{id}` is {}, and takes no message; {hint}", state.name());
    A2aError::new(ErrorKind::UnsupportedOperation, why).with(json!({ "state": state.name() }))
}

fn not_cancelable(id: &TaskId, state: TaskState) -> A2aError {
    let why = format!("task `{id}` is {} and cannot be cancelled", state.name());
    A2aError::new(ErrorKind::TaskNotCancelable, why).with(json!({ "state": state.name() }))
}
