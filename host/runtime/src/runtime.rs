//! The seam between the hub and whatever does an agent's work: a component, an agent elsewhere, or a Rust value.

use crate::{
    ended::Ended,
    failure::Failure,
    limits::Room,
    run::{Call, Report, Work},
};
use a2a_hub_core::{grant::Ask, recovery::Resumability};
use a2a_hub_protocol::{id::TaskId, task::Task};
use std::{
    future::poll_fn,
    pin::Pin,
    task::{Context, Poll},
};

/// Some of the hub's own work for an agent.
pub type HubWork = Pin<Box<dyn Future<Output = ()> + Send>>;

/// What does an agent's work. The hub stores, counts, queues and cancels in the same way whichever it is.
#[async_trait::async_trait]
pub trait Runtime: Send + Sync {
    /// The capabilities that the agent asks for; its operator decides which of them it holds.
    fn ask(&self) -> &Ask;

    /// The SHA-256 digest, in hexadecimal, of the component that does the agent's work; none if the agent is elsewhere.
    fn digest(&self) -> Option<&str> {
        None
    }

    /// The room that a run takes up a place of; none if it takes up none on this machine.
    fn room(&self) -> Option<Room> {
        None
    }

    /// Whether all that the agent can bring about goes through the ports that it is given: it has no other way out.
    fn is_enclosed(&self) -> bool {
        false
    }

    /// Sets the agent to work on a task. What it tells goes to the task port of `call`.
    fn start(&self, call: Call, work: Work) -> Box<dyn Run>;

    /// Listens again to what the agent does for a task that it was given before this hub started; none if its work ends
    /// with the hub.
    fn follow(&self, call: Call, task: Task) -> Option<Box<dyn Run>> {
        drop((call, task));
        None
    }

    /// What the agent still has of a task whose hub is gone.
    async fn resumability(&self, task: &TaskId) -> Resumability;

    /// Asks the agent how it is. The caller bounds how long that may take.
    async fn health(&self, call: Call) -> Result<Report, Failure>;

    /// Lets the agent clean up after a task that was cancelled. The caller bounds how long that may take.
    async fn clean_up(&self, call: Call, task: &TaskId) -> Result<(), Failure>;

    /// Does some of the hub's own work for the agent, such as storing what it tells, as urgently as the agent's own work is done
    /// now; on the agent's account, where there is one.
    async fn on_behalf(&self, work: HubWork) {
        work.await;
    }

    /// A task of the agent has come to a final state: what is remembered of it is of no use any more.
    async fn forget(&self, task: &TaskId) {
        let _ = task;
    }

    /// Whether the agent is another one by now, and the hub has it join anew.
    fn is_renewed(&self) -> bool {
        false
    }
}

/// One run of an agent on a task. Dropping it ends the work on this machine, and the programs that the agent started with it.
#[async_trait::async_trait]
pub trait Run: Send {
    /// Whether the run has ended, and how; after that it is pending for ever.
    fn poll_ended(&mut self, cx: &mut Context<'_>) -> Poll<Ended>;

    /// Asks the agent to stop: whatever it waits for ends with [`Failure::Cancelled`], and so does all that it asks for from
    /// now on.
    fn cancel(&self);

    /// Stops listening, and tells whether the agent goes on all the same, so that the next hub can listen again.
    async fn leave(&mut self) -> bool {
        false
    }

    /// Ends the run now, wherever it is.
    async fn end(&mut self);
}

impl dyn Run + '_ {
    /// How the run ended. May be dropped and called again; after the end it waits for ever.
    pub async fn ended(&mut self) -> Ended {
        poll_fn(|cx| self.poll_ended(cx)).await
    }
}
