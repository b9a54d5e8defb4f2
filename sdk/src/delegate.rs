//! Other agents, through the hub.

use std::time::Duration;

use serde_json::Value;

use crate::host::{CallHandle, Host};
use crate::hub::Hub;
use crate::{Context, Event, Failure, Message, Run, Update};

/// A task given to another agent. Dropping it cancels that task.
pub struct Call(pub(crate) <Hub as Host>::Call);

impl Context {
    /// The cards of the agents this one may call and that are not known to be unwell, each with its `agentId`.
    pub fn agents(&self) -> Result<Vec<Value>, Failure> {
        let json = self.hub.agents()?;
        serde_json::from_str(&json)
            .map_err(|e| Failure::Internal(format!("the hub's list of agents is no JSON: {e}")))
    }

    /// Gives a message to another agent.
    pub fn call(&self, agent: &str, message: impl Into<Message>) -> Result<Call, Failure> {
        self.hub.call(agent, &message.into()).map(Call)
    }
}

impl Call {
    /// The next thing that agent tells.
    pub fn next(&self, timeout: Option<Duration>) -> Result<Update, Failure> {
        CallHandle::next(&self.0, timeout)
    }

    /// Waits to the end, ignoring what is told meanwhile.
    pub fn outcome(self) -> Run {
        self.outcome_with(|_| Ok(()))
    }

    /// Waits to the end and hands over each event that is told meanwhile.
    pub fn outcome_with(self, mut each: impl FnMut(Event) -> Result<(), Failure>) -> Run {
        loop {
            match self.next(None)? {
                Update::Event(event) => each(event)?,
                Update::Finished(outcome) => return Ok(outcome),
            }
        }
    }

    /// Cancels the other agent's task.
    pub fn cancel(&self) {
        CallHandle::cancel(&self.0);
    }
}
