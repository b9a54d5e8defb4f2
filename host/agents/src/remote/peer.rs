//! Client of a remote agent, and the mapping of local task and context ids to remote ones.

use a2a_hub_client::{A2aClient, ClientError, RemoteTaskStream};
use a2a_hub_core::plugin::installation::InstallationId;
use a2a_hub_protocol::{
    event::StreamResponse,
    id::{AgentId, ContextId, TaskId},
    operation::SendMessage,
    task::Task,
};
use a2a_hub_store::{AgentMemory, StorageError};
use futures::stream::{self, BoxStream, StreamExt as _};
use std::{fmt, sync::Arc};

/// Events of one remote task, in order.
pub(super) type Responses = BoxStream<'static, Result<StreamResponse, ClientError>>;

/// Requests to a remote agent about a task.
#[async_trait::async_trait]
pub(super) trait RemoteClient: Send + Sync {
    /// Sends a message and streams the response.
    async fn stream(&self, send: SendMessage) -> Result<Responses, ClientError>;

    /// Subscribes to a task of the remote agent.
    fn subscribe(&self, task: TaskId) -> Responses;

    /// Reads a task of the remote agent.
    async fn get(&self, task: TaskId) -> Result<Task, ClientError>;

    /// Cancels a task of the remote agent.
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

fn responses(stream: RemoteTaskStream) -> Responses {
    let next = |mut stream: RemoteTaskStream| async move { Some((stream.next().await?, stream)) };
    stream::unfold(stream, next).boxed()
}

/// Bytes of id mappings stored for one agent: enough for ten thousand contexts.
pub(super) const MAX_NAMES: u64 = 1 << 20;

/// A remote agent with the persistent mapping of ids. Cheap to clone.
#[derive(Clone)]
pub(super) struct RemotePeer {
    id: AgentId,
    client: Arc<dyn RemoteClient>,
    storage: Arc<dyn AgentMemory>,
}

impl fmt::Debug for RemotePeer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Peer").field("id", &self.id).finish_non_exhaustive()
    }
}

impl RemotePeer {
    /// Peer for the agent `id`, reached through `client`.
    pub(super) fn new(
        id: AgentId,
        client: Arc<dyn RemoteClient>,
        storage: Arc<dyn AgentMemory>,
    ) -> Self {
        Self { id, client, storage }
    }

    /// Storage owner of the id mapping.
    fn owner(&self) -> InstallationId {
        InstallationId::from(&self.id)
    }

    /// True if the remote agent has accepted this task and named it.
    pub(super) async fn has(&self, task: &TaskId) -> bool {
        self.task(task).await.is_some()
    }

    /// Cancels the remote task of a local task, by the given remote id or the stored one, if it
    /// still runs.
    pub(super) async fn stop(
        &self,
        task: &TaskId,
        named: Option<TaskId>,
    ) -> Result<(), ClientError> {
        let found = match named {
            Some(theirs) => Some(theirs),
            None => self.task(task).await,
        };
        let Some(theirs) = found else { return Ok(()) };
        let stopped = self.client.cancel(theirs).await;
        self.forget(task).await;
        stopped
    }

    pub(super) fn client(&self) -> &dyn RemoteClient {
        &*self.client
    }

    /// Remote id of a local task that is not over.
    pub(super) async fn task(&self, ours: &TaskId) -> Option<TaskId> {
        self.known(&task_key(ours)).await.map(TaskId::new)
    }

    /// Remote id of a local context.
    pub(super) async fn context(&self, ours: &ContextId) -> Option<ContextId> {
        self.known(&context_key(ours)).await.map(ContextId::new)
    }

    pub(super) async fn remember(
        &self,
        ours: (&TaskId, &ContextId),
        theirs: (&TaskId, &ContextId),
    ) {
        self.store_id(&task_key(ours.0), theirs.0.as_str()).await;
        if !theirs.1.as_str().is_empty() {
            self.store_id(&context_key(ours.1), theirs.1.as_str()).await;
        }
    }

    /// Drops the remote id of a finished task.
    pub(super) async fn forget(&self, ours: &TaskId) {
        if let Err(why) = self.storage.forget(&self.owner(), &task_key(ours)).await {
            tracing::warn!(agent = %self.id, %why, "cannot delete the remote id of a task");
        }
    }

    async fn known(&self, key: &str) -> Option<String> {
        let found = self.storage.recall(&self.owner(), key).await;
        String::from_utf8(found.ok().flatten()?).ok()
    }

    /// Stores a remote id. A failure costs the context its continuity, not the task. If the storage
    /// is full, the oldest contexts are dropped.
    async fn store_id(&self, key: &str, name: &str) {
        let stored = match name.len() {
            ..=MAX_NAME => self.remember_name(key, name).await,
            bytes => Err(format!("a name of {bytes} bytes is too long")),
        };
        if let Err(why) = stored {
            tracing::warn!(agent = %self.id, why, "cannot store a remote id");
        }
    }

    async fn remember_name(&self, key: &str, name: &str) -> Result<(), String> {
        let owner = self.owner();
        let keep = || self.storage.remember(&owner, key, name.as_bytes().to_vec(), MAX_NAMES);
        match keep().await {
            Err(StorageError::Full { .. }) => {}
            result => return result.map_err(|why| why.to_string()),
        }
        let keys = self.storage.keys(&owner, PREFIX).await.map_err(|why| why.to_string())?;
        // Generated ids begin with their time, so their order is chronological.
        let oldest = keys.iter().filter(|key| key.contains(CONTEXT)).take(FORGOTTEN);
        for name in oldest {
            self.storage.forget(&owner, name).await.map_err(|why| why.to_string())?;
        }
        keep().await.map_err(|why| why.to_string())
    }
}

/// Key prefix of all mappings, and the part that marks contexts.
const PREFIX: &str = "remote/";
const CONTEXT: &str = "context/";

/// Longest remote id, in bytes: generated ids are shorter.
const MAX_NAME: usize = 1 << 10;

/// Number of contexts that are dropped at once.
const FORGOTTEN: usize = 1_000;

fn task_key(ours: &TaskId) -> String {
    format!("remote/task/{ours}")
}

fn context_key(ours: &ContextId) -> String {
    match ours.tenant().name() {
        // Tenant names contain no colon, so no context id of the default tenant can match this
        // prefix.
        Some(tenant) => format!("remote/tenant:{tenant}/context/{ours}"),
        None => format!("remote/context/{ours}"),
    }
}
