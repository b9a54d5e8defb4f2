//! A component as a `Runtime`: each task, health check and clean-up runs in a new instance.

use crate::{
    component::plugin::Plugin,
    cpu::scheduler::CpuAccount,
    run::guest::{self, Guest},
};
use a2a_hub_core::{
    grant::{Ask, Resume},
    task::recovery::Resumability,
};
use a2a_hub_protocol::id::TaskId;
use a2a_hub_runtime::{Call, Failure, HealthReport, HubWork, Run, RunCapacity, Runtime, Work};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

#[async_trait::async_trait]
impl Runtime for Plugin {
    fn ask(&self) -> &Ask {
        Plugin::ask(self)
    }

    fn digest(&self) -> Option<&str> {
        Some(Plugin::digest(self))
    }

    fn run_capacity(&self) -> Option<RunCapacity> {
        Some(self.engine.run_capacity())
    }

    fn is_enclosed(&self) -> bool {
        true
    }

    fn start(&self, call: Call, work: Work) -> Box<dyn Run> {
        Box::new(Guest::start(self, call, work))
    }

    async fn resumability(&self, _task: &TaskId) -> Resumability {
        match Plugin::ask(self).resume {
            Resume::Nothing => Resumability::Nothing,
            Resume::Session => Resumability::Session,
            Resume::Replay => Resumability::Replay,
        }
    }

    async fn health(&self, call: Call) -> Result<HealthReport, Failure> {
        guest::health(self, call).await
    }

    async fn run_hub_work(&self, work: HubWork) {
        let account = Arc::new(CpuAccount::of_hub(Arc::clone(&self.share)));
        // The work is never cancelled.
        let _done = self.engine.scheduler.run(&account, &CancellationToken::new(), work).await;
    }

    async fn clean_up(&self, call: Call, task: &TaskId) -> Result<(), Failure> {
        guest::clean_up(self, call, task).await
    }
}
