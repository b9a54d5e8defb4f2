//! Calls of other agents through the hub.

pub(crate) mod worktree;

use std::time::Duration;

use serde_json::Value;

use crate::host::{CallHandle, Host};
use crate::hub::Hub;
use crate::{CallOptions, ChildTask, Context, Event, Failure, Message, Outcome, Run, Update};

/// Child task that another agent works on. Dropping it cancels the task, unless it has ended.
pub struct Call(pub(crate) <Hub as Host>::Call);

impl Context {
    /// Cards of the agents that this one may call and that are not known to be unhealthy, each with
    /// its `agentId`.
    pub fn agents(&self) -> Result<Vec<Value>, Failure> {
        let json = self.hub.agents()?;
        serde_json::from_str(&json)
            .map_err(|e| Failure::Internal(format!("the hub's list of agents is no JSON: {e}")))
    }

    /// Starts a child task with another agent.
    pub fn call(&self, agent: &str, message: impl Into<Message>) -> Result<Call, Failure> {
        self.call_with(agent, message, &CallOptions::default())
    }

    /// Starts a child task with another agent, with options.
    pub fn call_with(
        &self,
        agent: &str,
        message: impl Into<Message>,
        options: &CallOptions,
    ) -> Result<Call, Failure> {
        let mut message = message.into();
        options.mark(&mut message);
        self.hub.call(agent, &message, options).map(Call)
    }

    /// Child tasks of this task, oldest first, including ended ones.
    pub fn children(&self) -> Result<Vec<ChildTask>, Failure> {
        self.hub.children()
    }
}

impl Call {
    /// Waits for the next event of the child task.
    pub fn next(&self, timeout: Option<Duration>) -> Result<Update, Failure> {
        CallHandle::next(&self.0, timeout)
    }

    /// Id of the child task.
    pub fn task_id(&self) -> String {
        CallHandle::task_id(&self.0)
    }

    /// Answers the child's question, which an event with the state `input-required` carries.
    pub fn answer(&self, message: impl Into<Message>) -> Result<(), Failure> {
        CallHandle::answer(&self.0, &message.into())
    }

    /// Sends the child, which is at work, a further message. An agent that reads it by
    /// [`Context::next_message`] gets it at once; otherwise it starts another run of the child,
    /// after the present one.
    ///
    /// # Errors
    ///
    /// [`Failure::Unavailable`] while the child asks a question, has 16 unread messages, or has
    /// ended.
    pub fn send(&self, message: impl Into<Message>) -> Result<(), Failure> {
        CallHandle::send(&self.0, &message.into())
    }

    /// Waits for the end of the child task and ignores its events.
    pub fn outcome(self) -> Run {
        self.outcome_with(|_| Ok(()))
    }

    /// Waits for the end of the child task and passes each event to `each`.
    pub fn outcome_with(self, mut each: impl FnMut(Event) -> Result<(), Failure>) -> Run {
        loop {
            match self.next(None)? {
                Update::Event(event) => each(event)?,
                Update::Finished(outcome) => return Ok(outcome),
            }
        }
    }

    /// Waits for the end and returns the other agent's last message.
    ///
    /// # Errors
    ///
    /// Fails if the child task did not complete.
    pub fn text(self) -> Result<String, Failure> {
        match self.outcome()? {
            Outcome::Message(message) => Ok(message.text()),
            Outcome::Status(status) => {
                let text = status.message.map(|message| message.text()).unwrap_or_default();
                if status.state == crate::TaskState::Completed {
                    Ok(text)
                } else {
                    let state = name(status.state);
                    Err(Failure::Unavailable(format!("the other agent's task is {state}: {text}")))
                }
            }
        }
    }

    /// Cancels the child task and returns once it has ended.
    pub fn cancel(&self) {
        CallHandle::cancel(&self.0);
    }
}
/// Name of a state in A2A 0.3.
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
