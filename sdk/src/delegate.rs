//! Other agents, through the hub.

use std::time::Duration;

use serde_json::Value;

use crate::host::{CallHandle, Host};
use crate::hub::Hub;
use crate::{ChildTask, Context, Event, Failure, Message, Outcome, Run, Update};

/// A task given to another agent, as a child of this one. Dropping it cancels that task, unless it has ended.
pub struct Call(pub(crate) <Hub as Host>::Call);

/// How a call is made, beyond whom it is for and what it says. Whatever is left out is as with [`Context::call`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CallOptions {
    pub(crate) key: Option<String>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) max_depth: Option<u32>,
    pub(crate) max_tasks: Option<u32>,
    pub(crate) max_tokens: Option<u64>,
    pub(crate) max_cost_usd: Option<f64>,
    pub(crate) working_directory: Option<String>,
    pub(crate) context_id: Option<String>,
    pub(crate) answers_questions: bool,
}

impl CallOptions {
    /// A call like any other.
    pub fn new() -> Self {
        Self::default()
    }

    /// What this agent calls the child. To call the same agent again with the same key is to join the child that there is, also
    /// after a restart of the hub.
    pub fn key(mut self, key: impl Into<String>) -> Self {
        self.key = Some(key.into());
        self
    }

    /// How long the child may take; the other agent's own limit counts all the same.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// How many levels of tasks there may be below the child.
    pub fn max_depth(mut self, depth: u32) -> Self {
        self.max_depth = Some(depth);
        self
    }

    /// How many tasks there may be below the child in all.
    pub fn max_tasks(mut self, tasks: u32) -> Self {
        self.max_tasks = Some(tasks);
        self
    }

    /// Tokens that the tasks below the child may use, as their agents report them.
    pub fn max_tokens(mut self, tokens: u64) -> Self {
        self.max_tokens = Some(tokens);
        self
    }

    /// Dollars that the tasks below the child may cost, as their agents report them.
    pub fn max_cost_usd(mut self, cost: f64) -> Self {
        self.max_cost_usd = Some(cost);
        self
    }

    /// Where the child works: the directory of this task, or one below.
    pub fn working_directory(mut self, directory: impl Into<String>) -> Self {
        self.working_directory = Some(directory.into());
        self
    }

    /// The conversation of an earlier child of the same agent, to go on with it.
    pub fn context_id(mut self, context: impl Into<String>) -> Self {
        self.context_id = Some(context.into());
        self
    }

    /// This agent answers the child's questions, with [`Call::answer`]. Without this they go to the client of this task, and so do
    /// requests for permission and for logins in any case.
    pub fn answers_questions(mut self) -> Self {
        self.answers_questions = true;
        self
    }
}

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
                    let state = format!("{:?}", status.state).to_lowercase();
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
