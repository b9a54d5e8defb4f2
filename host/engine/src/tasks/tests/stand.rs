//! Test bench for tasks: the hub's task service, its store, and restarts.

use super::*;
use a2a_hub_agents::{AgentVersion, FindAgent};
use parking_lot::Mutex;
use tokio::sync::watch;

/// Task service of a hub, and its store.
pub(super) struct Stand {
    pub(super) storage: Arc<MemoryStorage>,
    pub(super) known: Arc<BenchAgents>,
    pub(super) tasks: Tasks,
}

/// Agents of a test bench, set by its test.
#[derive(Default)]
pub(super) struct BenchAgents {
    find: Mutex<Option<Arc<Find>>>,
    /// Number of agents that are loading.
    pub(super) on_their_way: watch::Sender<usize>,
}

type Find = dyn Fn(&AgentId) -> Option<Arc<Agent>> + Send + Sync;

#[async_trait::async_trait]
impl FindAgent for BenchAgents {
    fn find(&self, id: &AgentId) -> Option<Arc<Agent>> {
        self.find.lock().as_ref()?(id)
    }

    fn is_settled(&self) -> bool {
        *self.on_their_way.borrow() == 0
    }

    async fn settled(&self) {
        self.on_their_way.subscribe().wait_for(|agents| *agents == 0).await.unwrap();
    }

    async fn version(&self, id: &AgentId, _: &AgentVersion) -> Result<Arc<Agent>, String> {
        Err(format!("there is no other {id}"))
    }
}

impl Stand {
    /// Creates a hub that is up.
    pub(super) fn new() -> Self {
        let storage = Arc::new(MemoryStorage::default());
        Self::up(storage.clone(), storage)
    }

    /// Creates a hub with that store, which is up.
    pub(super) fn up(store: Arc<dyn TaskStore>, storage: Arc<MemoryStorage>) -> Self {
        let stand = Self::starting(store, storage);
        stand.tasks.phase.up();
        stand
    }

    /// Creates a hub with that store, which has recovered nothing yet.
    pub(super) fn starting(store: Arc<dyn TaskStore>, storage: Arc<MemoryStorage>) -> Self {
        let known = Arc::new(BenchAgents::default());
        let directory = Directory::by_name(known.clone());
        Self { tasks: Tasks::new(store, Events::default(), directory), known, storage }
    }

    /// Sets the lookup of agents.
    pub(super) fn know(
        &self,
        find: impl Fn(&AgentId) -> Option<Arc<Agent>> + Send + Sync + 'static,
    ) {
        *self.known.find.lock() = Some(Arc::new(find));
    }

    /// Recovers the tasks of the previous process, with this lookup of agents.
    pub(super) async fn recover(
        &self,
        find: impl Fn(&AgentId) -> Option<Arc<Agent>> + Send + Sync + 'static,
    ) -> Recovered {
        self.know(find);
        self.tasks.recover().await.unwrap()
    }

    /// Two hubs, one with a local and one with a remote store.
    pub(super) fn each() -> [Self; 2] {
        let storage = Arc::new(MemoryStorage::default());
        let distant = Arc::new(Distant::new(storage.clone()));
        [Self::new(), Self::up(distant, storage)]
    }

    /// The next process, after this one was killed.
    pub(super) fn next_hub(&self) -> Self {
        Self::starting(self.storage.clone(), self.storage.clone())
    }

    pub(super) async fn submit(&self, agent: &Arc<Agent>, text: &str) -> TaskId {
        self.submit_message(agent, Message::text(Role::User, text)).await
    }

    pub(super) async fn submit_message(&self, agent: &Arc<Agent>, message: Message) -> TaskId {
        self.try_submit(agent, message).await.unwrap()
    }

    pub(super) async fn try_submit(
        &self,
        agent: &Arc<Agent>,
        message: Message,
    ) -> Result<TaskId, SubmitError> {
        self.submit_for(agent, message, ResponseMode::AtEnd).await
    }

    /// Submits for this principal.
    pub(super) async fn submit_by(
        &self,
        agent: &Arc<Agent>,
        message: Message,
        by: Principal,
    ) -> TaskId {
        let new = NewTask { by, ..new_task(agent, message, ResponseMode::AtEnd) };
        self.tasks.submit(Box::new(new)).await.unwrap().task().clone()
    }

    /// Submits as a run of a schedule or trigger: the metadata says which.
    pub(super) async fn submit_run(
        &self,
        agent: &Arc<Agent>,
        text: &str,
        facts: Metadata,
    ) -> TaskId {
        let message = Message::text(Role::User, text);
        let new = NewTask { facts: Some(facts), ..new_task(agent, message, ResponseMode::AtEnd) };
        self.tasks.submit(Box::new(new)).await.unwrap().task().clone()
    }

    /// Submits for a client that takes the answer in this form.
    pub(super) async fn submit_for(
        &self,
        agent: &Arc<Agent>,
        message: Message,
        response: ResponseMode,
    ) -> Result<TaskId, SubmitError> {
        let new = new_task(agent, message, response);
        Ok(self.tasks.submit(Box::new(new)).await?.task().clone())
    }

    pub(super) async fn answer(&self, task: &TaskId, text: &str) -> Result<(), HubError> {
        let message = Message::text(Role::User, text);
        let by = Principal::Client("ci".to_owned());
        self.tasks.answer(task, message, ClientCapabilities::default(), None, by).await.map(drop)
    }

    /// Waits until the task is in that state.
    pub(super) async fn until(&self, task: &TaskId, state: TaskState) -> Task {
        let reached = async {
            loop {
                let stored = self.tasks.get(task).await.unwrap().task;
                if stored.status.state == state {
                    return stored;
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        // Time is paused: this is longer than anything the tests wait for.
        timeout(Duration::from_secs(2_000), reached).await.unwrap()
    }

    /// States and messages of the task, in order.
    pub(super) async fn story(&self, task: &TaskId) -> String {
        let events = self.tasks.storage.events(task, 0, usize::MAX).await.unwrap();
        let told = events.into_iter().map(|event| match event.event {
            TaskEvent::Created(_) => "created".to_owned(),
            TaskEvent::Status(update) => {
                let said = update.status.message.map(|message| message.joined_text());
                let state = update.status.state.name();
                said.map_or_else(|| state.to_owned(), |said| format!("{state} “{said}”"))
            }
            TaskEvent::Artifact(_) => "artifact".to_owned(),
            TaskEvent::Input(message) => format!("said “{}”", message.joined_text()),
            TaskEvent::Reply(message) => format!("reply “{}”", message.joined_text()),
        });
        told.collect::<Vec<_>>().join(", ")
    }
}

fn new_task(agent: &Arc<Agent>, message: Message, response: ResponseMode) -> NewTask {
    NewTask {
        id: None,
        permissions: None,
        facts: None,
        inherited: None,
        agent: Arc::clone(agent),
        tenant: message.context_id.as_ref().map(|it| it.tenant().clone()).unwrap_or_default(),
        message,
        working_directory: None,
        worktree: None,
        timeout_ms: None,
        response,
        client: ClientCapabilities::default(),
        request: None,
        by: Principal::Operator,
        limits: agent.config.tree_limits(),
        trace: None,
        routing: None,
    }
}
