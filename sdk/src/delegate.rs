//! Other agents, through the hub.

use std::time::Duration;

use serde_json::Value;

use crate::host::{CallHandle, Host};
use crate::hub::Hub;
use crate::{CallOptions, ChildTask, Context, Event, Failure, Message, Outcome, Run, Update};

/// A task given to another agent, as a child of this one. Dropping it cancels that task, unless it has ended.
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
        self.call_with(agent, message, &CallOptions::default())
    }

    /// The same, made so.
    pub fn call_with(
        &self,
        agent: &str,
        message: impl Into<Message>,
        options: &CallOptions,
    ) -> Result<Call, Failure> {
        self.hub.call(agent, &message.into(), options).map(Call)
    }

    /// The tasks that were given to other agents for this one, oldest first, those that are over among them.
    pub fn children(&self) -> Result<Vec<ChildTask>, Failure> {
        self.hub.children()
    }
}

impl Call {
    /// The next thing that agent tells.
    pub fn next(&self, timeout: Option<Duration>) -> Result<Update, Failure> {
        CallHandle::next(&self.0, timeout)
    }

    /// The id of that agent's task.
    pub fn task_id(&self) -> String {
        CallHandle::task_id(&self.0)
    }

    /// Answers what that agent asks: an event of the state `input-required` tells what.
    pub fn answer(&self, message: impl Into<Message>) -> Result<(), Failure> {
        CallHandle::answer(&self.0, &message.into())
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

    /// Waits to the end and returns what that agent said last; a failure if it did not complete its task.
    pub fn text(self) -> Result<String, Failure> {
        match self.outcome()? {
            Outcome::Message(message) => Ok(message.text()),
            Outcome::Status(status) => {
                let said = status.message.map(|message| message.text()).unwrap_or_default();
                if status.state == crate::TaskState::Completed {
                    Ok(said)
                } else {
                    let state = name(status.state);
                    Err(Failure::Unavailable(format!("the other agent's task is {state}: {said}")))
                }
            }
        }
    }

    /// Cancels the other agent's task, and returns once it has ended.
    pub fn cancel(&self) {
        CallHandle::cancel(&self.0);
    }
}
/// A state as A2A 0.3 calls it.
fn name(state: crate::TaskState) -> &'static str {
    use crate::TaskState as S;
    match state {
        S::Submitted => "submitted",
        S::Working => "working",
        S::InputRequired => "input-required",
        S::AuthRequired => "auth-required",
        S::Completed => "completed",
        S::Failed => "failed",
        S::Canceled => "canceled",
        S::Rejected => "rejected",
    }
}
