//! A running hub: its parts, and their shutdown in order.

use crate::local::Local;
use a2a_hub_agents::{Agents, Joined, PluginFolder};
use a2a_hub_config::Config;
use a2a_hub_core::access_control::Principal;
use a2a_hub_engine::conversations::contexts::Contexts;
use a2a_hub_engine::observability::{hub_events::Events, span_export::Spans};
use a2a_hub_engine::{
    HubSigner, LiveConfig, Reply, StartingHub, push::Pushes, routing::Routes, tasks::Tasks,
    webhooks::Sender,
};
use a2a_hub_process::Supervisor;
use a2a_hub_protocol::{error::A2aError, id::TaskId, operation::Operation};
use a2a_hub_store::{Storage, StorageError};
use std::{net::SocketAddr, sync::Arc};
use tempfile::TempDir;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// A running hub inside this program. Dropping it leaves the programs of running tasks alive: call
/// [`Hub::shutdown`].
pub struct Hub {
    pub(crate) parts: Parts,
    pub(crate) engine: a2a_hub_engine::Hub,
    pub(crate) live: Option<Arc<LiveConfig>>,
    pub(crate) http: Option<SocketAddr>,
    /// Cancelled at the start of the shutdown: no new work begins.
    pub(crate) stop: CancellationToken,
    /// Tasks that serve clients and maintain the hub.
    pub(crate) running: TaskTracker,
    pub(crate) local: Local,
    /// Temporary directory of a hub in memory, removed with the hub.
    pub(crate) _dir: Option<TempDir>,
}

/// Parts of a hub.
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
    /// Signs notifications and cards; none if nothing is signed.
    pub(crate) signer: Option<Arc<HubSigner>>,
    /// Sends notifications and messages of notifiers.
    pub(crate) sender: Arc<Sender>,
    pub(crate) storage: Arc<dyn Storage>,
    /// Warnings about the start, for the operator.
    pub(crate) warnings: Vec<String>,
}

impl Hub {
    /// Executes an operation with the checks of every transport: denies what `caller` may not do,
    /// and logs the caller with the result.
    pub async fn handle(
        &self,
        caller: &Principal,
        operation: Operation,
    ) -> Result<Reply, A2aError> {
        self.engine.handle(caller, None, operation).await
    }

    /// Returns the interface for direct calls by this program and its agents.
    pub fn local(&self) -> &Local {
        &self.local
    }

    /// Returns the address of the HTTP server; `None` if the configuration disables HTTP.
    pub fn http_address(&self) -> Option<SocketAddr> {
        self.http
    }

    /// Refuses further operations, cancels running tasks, and returns once their programs have
    /// exited. Tasks of restartable agents resume with the next hub in the same directory; the
    /// others fail. Returns the tasks that were cut off.
    pub async fn shutdown(self) -> Vec<TaskId> {
        self.close();
        let mut cut_off = Vec::new();
        self.take_down(|cut| cut_off = cut.to_vec()).await;
        cut_off
    }

    /// Returns warnings about the start, for the operator.
    pub fn warnings(&self) -> &[String] {
        &self.parts.warnings
    }

    /// Returns the effective configuration; `None` for a hub that is not
    /// [`reloadable`](crate::Builder::reloadable).
    pub fn config_now(&self) -> Option<Config> {
        self.live.as_ref().map(|live| live.now())
    }

    /// Starts a reload of the configuration in the background. The result is logged.
    pub fn reload(&self) {
        let engine = self.engine.clone();
        self.running.spawn(async move {
            drop(engine.handle(&Principal::Operator, None, Operation::ReloadConfig).await);
        });
    }

    /// Refuses further operations. Running tasks continue.
    pub fn close(&self) {
        self.engine.close();
    }

    /// Waits until no task is running or queued.
    ///
    /// # Errors
    ///
    /// If the store cannot be read.
    pub async fn idle(&self) -> Result<(), StorageError> {
        self.parts.tasks.idle().await
    }

    /// Shortens the time that programs have to exit to 250 ms.
    pub fn hurry(&self) {
        self.parts.supervisor.hurry();
    }

    /// Shuts down after [`Hub::close`], as a future that the caller may drop at a deadline. Calls
    /// `cut_off` with the tasks that were cut off before it ends programs.
    pub async fn take_down(&self, cut_off: impl FnOnce(&[TaskId])) {
        self.stop.cancel();
        self.running.close();
        cut_off(&self.parts.cut_off().await);
        self.parts.take_down().await;
        self.running.wait().await;
    }
}

impl Parts {
    /// Assembles the hub from these parts and its agents, before any task runs.
    pub(crate) fn assemble(&self, joined: Joined) -> StartingHub {
        let Self { routes, contexts, tasks, pushes, signer, events, .. } = self;
        StartingHub::new(
            joined,
            routes.clone(),
            contexts.clone(),
            tasks.clone(),
            pushes.clone(),
            events.clone(),
        )
        .with_signer(signer.clone())
    }

    /// Cancels the running tasks and returns their ids.
    async fn cut_off(&self) -> Vec<TaskId> {
        let cut = self.tasks.shutdown().await;
        if !cut.is_empty() {
            let tasks: Vec<_> = cut.iter().map(TaskId::as_str).collect();
            tracing::warn!(
                tasks = tasks.join(", "),
                "running tasks were interrupted by the shutdown"
            );
        }
        cut
    }

    /// Shuts the other parts down in order: programs last.
    async fn take_down(&self) {
        self.pushes.shutdown().await;
        self.spans.close();
        self.events.close();
        self.agents.shutdown().await;
        self.supervisor.shutdown().await;
        self.agents.wait_for_files().await;
    }
}
