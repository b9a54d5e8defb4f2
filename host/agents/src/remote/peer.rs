//! The other side of a task that is elsewhere: whom it is asked of, and what that agent calls our tasks and conversations.

use a2a_hub_client::{A2aClient, ClientError, TaskStream};
use a2a_hub_core::installation::InstallationId;
use a2a_hub_protocol::{
    event::StreamResponse,
    id::{AgentId, ContextId, TaskId},
    operation::SendMessage,
    task::Task,
};
use a2a_hub_store::{AgentMemory, StorageError};
use futures::stream::{self, BoxStream, StreamExt as _};
use std::{fmt, sync::Arc};

/// What an agent elsewhere tells of one task, in order.
pub(super) type Responses = BoxStream<'static, Result<StreamResponse, ClientError>>;

/// What is asked of an agent elsewhere for a task.
#[async_trait::async_trait]
pub(super) trait RemoteClient: Send + Sync {
    /// Says something, and listens to what comes of it.
    async fn stream(&self, send: SendMessage) -> Result<Responses, ClientError>;

    /// Listens to a task that it has.
    fn subscribe(&self, task: TaskId) -> Responses;

    /// Looks at a task that it has.
    async fn get(&self, task: TaskId) -> Result<Task, ClientError>;

    /// Has it stop.
    async fn cancel(&self, task: TaskId) -> Result<(), ClientError>;
}

#[async_trait::async_trait]
impl RemoteClient for A2aClient {
    async fn stream(&self, send: SendMessage) -> Result<Responses, ClientError> {
        Ok(responses(self.stream(send).await?))
    }

    fn subscribe(&self, task: TaskId) -> Responses {
        responses(self.subscribe(task))
    }

    async fn get(&self, task: TaskId) -> Result<Task, ClientError> {
        self.get(task).await
    }

    async fn cancel(&self, task: TaskId) -> Result<(), ClientError> {
        self.cancel(task).await.map(drop)
    }
}

fn responses(stream: TaskStream) -> Responses {
    let next = |mut stream: TaskStream| async move { Some((stream.next().await?, stream)) };
    stream::unfold(stream, next).boxed()
}

/// How many bytes of names are remembered of one agent: those of ten thousand conversations.
pub(super) const MAX_NAMES: u64 = 1 << 20;

/// An agent elsewhere, with its names for what is ours, which outlive the hub. Cheap to clone.
#[derive(Clone)]
pub(super) struct Peer {
    id: AgentId,
    client: Arc<dyn RemoteClient>,
    storage: Arc<dyn AgentMemory>,
}

impl fmt::Debug for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Peer").field("id", &self.id).finish_non_exhaustive()
    }
}

impl Peer {
    /// The agent that is called `id` here and is reached by `client`.
    pub(super) fn new(
        id: AgentId,
        client: Arc<dyn RemoteClient>,
        storage: Arc<dyn AgentMemory>,
    ) -> Self {
        Self { id, client, storage }
    }

    /// What its names are kept under.
    fn owner(&self) -> InstallationId {
        InstallationId::from(&self.id)
    }

    /// Whether it was given a task of ours, and has said what it calls it.
    pub(super) async fn has(&self, task: &TaskId) -> bool {
        self.task(task).await.is_some()
    }

    /// Has it stop what it does for a task of ours, if it still does; by the name that it gave the task, or the one that was kept.
    pub(super) async fn stop(
        &self,
        task: &TaskId,
        named: Option<TaskId>,
    ) -> Result<(), ClientError> {
        let kept = match named {
            Some(theirs) => Some(theirs),
            None => self.task(task).await,
        };
        let Some(theirs) = kept else { return Ok(()) };
        let stopped = self.client.cancel(theirs).await;
        self.forget(task).await;
        stopped
    }

    pub(super) fn client(&self) -> &dyn RemoteClient {
        &*self.client
    }

    /// What it calls a task of ours that it still works on.
    pub(super) async fn task(&self, ours: &TaskId) -> Option<TaskId> {
        self.known(&task_key(ours)).await.map(TaskId::new)
    }

    /// What it calls a conversation of ours.
    pub(super) async fn context(&self, ours: &ContextId) -> Option<ContextId> {
        self.known(&context_key(ours)).await.map(ContextId::new)
    }

    pub(super) async fn remember(
        &self,
        ours: (&TaskId, &ContextId),
        theirs: (&TaskId, &ContextId),
    ) {
        self.keep(&task_key(ours.0), theirs.0.as_str()).await;
        if !theirs.1.as_str().is_empty() {
            self.keep(&context_key(ours.1), theirs.1.as_str()).await;
        }
    }

    /// A task of ours is over: what it is called there is of no use any more.
    pub(super) async fn forget(&self, ours: &TaskId) {
        if let Err(why) = self.storage.forget(&self.owner(), &task_key(ours)).await {
            tracing::warn!(agent = %self.id, %why, "cannot forget the name of a task");
        }
    }

    async fn known(&self, key: &str) -> Option<String> {
        let found = self.storage.recall(&self.owner(), key).await;
        String::from_utf8(found.ok().flatten()?).ok()
    }

    /// What cannot be kept costs a conversation its memory, not the task. Where there is no room, the conversations that began first
    /// give it up.
    async fn keep(&self, key: &str, name: &str) {
        let kept = match name.len() {
            ..=MAX_NAME => self.remember_name(key, name).await,
            bytes => Err(format!("a name of {bytes} bytes is too long")),
        };
        if let Err(why) = kept {
            tracing::warn!(agent = %self.id, why, "cannot keep what an agent elsewhere calls something");
        }
    }

    async fn remember_name(&self, key: &str, name: &str) -> Result<(), String> {
        let owner = self.owner();
        let keep = || self.storage.remember(&owner, key, name.as_bytes().to_vec(), MAX_NAMES);
        match keep().await {
            Err(StorageError::Full { .. }) => {}
            kept => return kept.map_err(|why| why.to_string()),
        }
        let keys = self.storage.keys(&owner, PREFIX).await.map_err(|why| why.to_string())?;
        // Fresh ids begin with their time, so that they are sorted by that.
        let oldest = keys.iter().filter(|key| key.contains(CONTEXT)).take(FORGOTTEN);
        for name in oldest {
            self.storage.forget(&owner, name).await.map_err(|why| why.to_string())?;
        }
        keep().await.map_err(|why| why.to_string())
    }
}

/// What all names are kept under, and what those of conversations have.
const PREFIX: &str = "remote/";
const CONTEXT: &str = "context/";

/// How long a name may be, in bytes: whoever makes ids makes shorter ones.
const MAX_NAME: usize = 1 << 10;

/// How many conversations' names are given up at once.
const FORGOTTEN: usize = 1_000;

fn task_key(ours: &TaskId) -> String {
    format!("remote/task/{ours}")
}

fn context_key(ours: &ContextId) -> String {
    match ours.tenant().name() {
        // No name of a tenant holds a colon, and no client's of the default tenant gets in front of it.
        Some(tenant) => format!("remote/tenant:{tenant}/context/{ours}"),
        None => format!("remote/context/{ours}"),
    }
}
