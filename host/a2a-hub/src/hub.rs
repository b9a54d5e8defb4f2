//! A hub that runs: what it is made of, and how it is taken apart.

use crate::local::Local;
use a2a_hub_agents::{Agents, Joined, PluginFolder};
use a2a_hub_config::Config;
use a2a_hub_core::access::Principal;
use a2a_hub_hub::{
    LiveConfig, Reply, StartingHub, contexts::Contexts, events::Events, push::Pushes,
    routes::Routes, spans::Spans, tasks::Tasks,
};
use a2a_hub_process::Supervisor;
use a2a_hub_protocol::{error::A2aError, id::TaskId, operation::Operation};
use a2a_hub_store::{Storage, StorageError};
use std::{net::SocketAddr, sync::Arc};
use tempfile::TempDir;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// A running hub inside this program. Dropping it leaves its tasks at work with nobody to end their programs: call
/// [`Hub::shutdown`].
pub struct Hub {
    pub(crate) parts: Parts,
    pub(crate) engine: a2a_hub_hub::Hub,
    pub(crate) live: Option<Arc<LiveConfig>>,
    pub(crate) http: Option<SocketAddr>,
    /// Cancelled when nothing new is to be begun.
    pub(crate) stop: CancellationToken,
    /// What serves clients and looks after the hub.
    pub(crate) running: TaskTracker,
    pub(crate) local: Local,
    /// The directory of a hub that keeps nothing, which goes with it.
    pub(crate) _dir: Option<TempDir>,
}

/// What a hub is made of.
pub(crate) struct Parts {
    pub(crate) supervisor: Supervisor,
    pub(crate) events: Events,
    pub(crate) agents: Agents,
    pub(crate) plugins: PluginFolder,
    pub(crate) routes: Routes,
    pub(crate) contexts: Contexts,
    pub(crate) tasks: Tasks,
    pub(crate) spans: Spans,
    pub(crate) pushes: Pushes,
    pub(crate) storage: Arc<dyn Storage>,
    /// What whoever looks after the hub should know of how it was started.
    pub(crate) warnings: Vec<String>,
}

impl Hub {
    /// Carries an operation out as every transport has it done: what `caller` may not do is refused, and who asked stands in
    /// the log with what comes of it.
    pub async fn handle(
        &self,
        caller: &Principal,
        operation: Operation,
    ) -> Result<Reply, A2aError> {
        self.engine.handle(caller, None, operation).await
    }

    /// The hub as its own program calls it, and its agents: by direct calls.
    pub fn local(&self) -> &Local {
        &self.local
    }

    /// Where the hub serves HTTP, if its configuration has it serve any.
    pub fn http_address(&self) -> Option<SocketAddr> {
        self.http
    }

    /// Takes no more operations, ends what is at work, and returns once its programs are gone. Tasks of agents that can be
    /// started again wait for the next hub in the same directory; the others have failed. Those that were cut off are returned.
    pub async fn shutdown(self) -> Vec<TaskId> {
        self.close();
        let mut cut_off = Vec::new();
        self.take_down(|cut| cut_off = cut.to_vec()).await;
        cut_off
    }

    /// What whoever looks after the hub should know of how it was started.
    pub fn warnings(&self) -> &[String] {
        &self.parts.warnings
    }

    /// The configuration that counts now; none for a hub that is not [`reloadable`](crate::Builder::reloadable).
    pub fn config_now(&self) -> Option<Config> {
        self.live.as_ref().map(|live| live.now())
    }

    /// Has the configuration read again, meanwhile. How it went is in the log.
    pub fn reload(&self) {
        let engine = self.engine.clone();
        self.running.spawn(async move {
            drop(engine.handle(&Principal::Operator, None, Operation::ReloadConfig).await);
        });
    }

    /// Takes no more operations. Tasks at work go on.
    pub fn close(&self) {
        self.engine.close();
    }

    /// Waits until no task is at work, and none waits for its turn.
    ///
    /// # Errors
    ///
    /// If the store cannot tell.
    pub async fn idle(&self) -> Result<(), StorageError> {
        self.parts.tasks.idle().await
    }

    /// Gives programs less time to end, from now on: a quarter of a second.
    pub fn hurry(&self) {
        self.parts.supervisor.hurry();
    }

    /// The second half of [`Hub::shutdown`], after [`Hub::close`], for who waits no longer than it likes: `cut_off` is told the tasks that were cut
    /// off, before programs are ended.
    pub async fn take_down(&self, cut_off: impl FnOnce(&[TaskId])) {
        self.stop.cancel();
        self.running.close();
        cut_off(&self.parts.cut_off().await);
        self.parts.take_down().await;
        self.running.wait().await;
    }
}

impl Parts {
    /// The hub of these parts and of its agents, before anything is at work.
    pub(crate) fn whole(&self, joined: Joined) -> StartingHub {
        let Self { routes, contexts, tasks, pushes, events, .. } = self;
        StartingHub::new(
            joined,
            routes.clone(),
            contexts.clone(),
            tasks.clone(),
            pushes.clone(),
            events.clone(),
        )
    }

    /// Ends the tasks that are at work, and tells which.
    async fn cut_off(&self) -> Vec<TaskId> {
        let cut = self.tasks.shutdown().await;
        if !cut.is_empty() {
            let tasks: Vec<_> = cut.iter().map(TaskId::as_str).collect();
            tracing::warn!(tasks = tasks.join(", "), "tasks were cut off");
        }
        cut
    }

    /// Takes the rest apart, in order: programs last.
    async fn take_down(&self) {
        self.pushes.shutdown().await;
        self.spans.close();
        self.events.close();
        self.agents.shutdown().await;
        self.supervisor.shutdown().await;
        self.agents.files_gone().await;
    }
}
