//! Questions to the client that the agent waits for together with its program's output.

use std::time::Duration;

use serde_json::Value;

use crate::bindings::a2a::hub::wait::First;
use crate::host::{Host, PermissionReply, PosedQuestion};
use crate::hub::Hub;
use crate::{Child, Context, Failure, Message, Need};

/// Open question to the client. Dropping it withdraws it and sets the task back to work.
pub struct OpenQuestion(pub(crate) <Hub as Host>::Question);

/// Answer to a request for permission.
pub enum Permission {
    /// A rule of the operator allows it, this time: the name of the rule.
    Allowed(String),
    /// A rule of the operator denies it, with this reason for the program.
    Denied(String),
    /// No rule decides it, and the client is asked.
    Pending(OpenQuestion),
}

/// Event that ended a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitEvent {
    /// Answer of the client; [`OpenQuestion::answer`] returns it.
    Answer,
    /// Output of the program, or its exit.
    Output,
}

impl Context {
    /// Asks the client and returns at once. The task stays in `input-required` or `auth-required`
    /// until the answer arrives. After `timeout` without an answer, the answer is
    /// [`Failure::Timeout`]. With 32 open questions, another one is [`Failure::Exhausted`].
    pub fn pose(
        &self,
        need: Need,
        prompt: impl Into<Message>,
        timeout: Option<Duration>,
    ) -> Result<OpenQuestion, Failure> {
        self.hub.pose(need, &prompt.into(), timeout).map(OpenQuestion)
    }

    /// Requests permission for what a program asks. The operator's rules decide if they can;
    /// otherwise the client is asked with `prompt`, as by [`pose`](Self::pose).
    ///
    /// `facts` is an object with the program's request as it is, so that the hub reads the action
    /// from it: `vendor`, `request`, and if known `method`, `directory`, `call` and `paths` (see
    /// `request-permission` in the contract).
    pub fn request_permission(
        &self,
        facts: &Value,
        prompt: impl Into<Message>,
        timeout: Option<Duration>,
    ) -> Result<Permission, Failure> {
        let reply = self.hub.request_permission(&facts.to_string(), &prompt.into(), timeout)?;
        Ok(match reply {
            PermissionReply::Allowed(rule) => Permission::Allowed(rule),
            PermissionReply::Denied(reason) => Permission::Denied(reason),
            PermissionReply::Pending(question) => Permission::Pending(OpenQuestion(question)),
        })
    }

    /// Reason if a rule of the operator denies a request that the agent would allow without asking.
    pub fn permission_denial(&self, facts: &Value) -> Result<Option<String>, Failure> {
        self.hub.permission_denial(&facts.to_string())
    }

    /// Waits for an answer or for output of a program, whichever comes first. Neither is consumed.
    pub fn first_of(&self, question: &OpenQuestion, child: &Child) -> Result<WaitEvent, Failure> {
        if child.has_line() {
            return Ok(WaitEvent::Output);
        }
        match self.hub.first_of(&question.0, &child.process) {
            First::Answer => Ok(WaitEvent::Answer),
            First::Output => Ok(WaitEvent::Output),
            First::Cancelled => Err(Failure::Cancelled),
        }
    }
}

impl OpenQuestion {
    /// Waits for the answer and returns it.
    pub fn answer(self) -> Result<Message, Failure> {
        self.0.answer()
    }
}
