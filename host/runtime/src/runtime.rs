//! Seam between the hub and an agent's implementation: a component, a remote agent, or a Rust
//! value.

use crate::{
    ended::Ended,
    failure::Failure,
    health_report::HealthReport,
    limits::RunCapacity,
    run::{Call, Work},
};
use a2a_hub_core::{grant::Ask, task::recovery::Resumability};
use a2a_hub_protocol::{id::TaskId, task::Task};
use std::{
    future::poll_fn,
    pin::Pin,
    task::{Context, Poll},
};

/// A piece of the hub's own work for an agent.
pub type HubWork = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Implementation of an agent. The hub stores, counts, queues and cancels the same way for each.
#[async_trait::async_trait]
pub trait Runtime: Send + Sync {
    /// Capabilities that the agent requests; its operator grants a part of them.
    fn ask(&self) -> &Ask;

    /// SHA-256 digest, in hexadecimal, of the agent's component; none for a remote agent.
    fn digest(&self) -> Option<&str> {
        None
    }

    /// Capacity of which a run uses one unit; none if a run uses none on this machine.
    fn run_capacity(&self) -> Option<RunCapacity> {
        None
    }

    /// True if the agent can have effects only through its ports.
    fn is_enclosed(&self) -> bool {
        false
    }

    /// Starts the agent on a task. Its events go to the task port of `call`.
    fn start(&self, call: Call, work: Work) -> Box<dyn Run>;

    /// Follows a task that the agent was given before this process started; none if its work ends
    /// with the hub.
    fn follow(&self, call: Call, task: Task) -> Option<Box<dyn Run>> {
        drop((call, task));
        None
    }

    /// State that the agent still has of a task after a restart.
    async fn resumability(&self, task: &TaskId) -> Resumability;

    /// Checks the agent's health. The caller sets the time limit.
    async fn health(&self, call: Call) -> Result<HealthReport, Failure>;

    /// Lets the agent clean up after a cancelled task. The caller sets the time limit.
    async fn clean_up(&self, call: Call, task: &TaskId) -> Result<(), Failure>;

    /// Runs some of the hub's own work for the agent, such as storing its events, with the agent's
    /// current priority and on its CPU account, if it has one.
    async fn run_hub_work(&self, work: HubWork) {
        work.await;
    }

    /// Drops what is remembered of a task that has ended.
    async fn forget(&self, task: &TaskId) {
        let _ = task;
    }

    /// True if the agent has been replaced, so that the hub registers it again.
    fn is_renewed(&self) -> bool {
        false
    }
}

/// One run of an agent on a task. Dropping it ends the work on this machine, and the programs that
/// the agent started with it.
#[async_trait::async_trait]
pub trait Run: Send {
    /// Polls for the end of the run; pending forever once it has been returned.
    fn poll_ended(&mut self, cx: &mut Context<'_>) -> Poll<Ended>;

    /// Cancels the run: all waits of the agent, and all its later requests, fail with
    /// [`Failure::Cancelled`].
    fn cancel(&self);

    /// Disconnects from the run; returns true if the agent continues regardless, so that the next
    /// process can follow it.
    async fn detach(&mut self) -> bool {
        false
    }

    /// Ends the run now, whatever it does.
    async fn end(&mut self);
}

impl dyn Run + '_ {
    /// Waits for the end of the run. Cancel-safe; pending forever after the end.
    pub async fn ended(&mut self) -> Ended {
        poll_fn(|cx| self.poll_ended(cx)).await
    }
}
