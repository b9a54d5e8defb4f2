//! Questions to the client that the agent waits for together with its program's output.

use std::time::Duration;

use crate::bindings::a2a::hub::wait::First;
use crate::host::{Host, PosedQuestion};
use crate::hub::Hub;
use crate::{Child, Context, Failure, Message, Need};

/// Open question to the client. Dropping it withdraws it and sets the task back to work.
pub struct OpenQuestion(pub(crate) <Hub as Host>::Question);

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
