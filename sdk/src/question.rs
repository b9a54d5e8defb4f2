//! A question to the client that the agent does not stand still for: it hears its program meanwhile.

use std::time::Duration;

use crate::bindings::a2a::hub::wait::First;
use crate::host::{Host, PosedQuestion};
use crate::hub::Hub;
use crate::{Child, Context, Failure, Message, Need};

/// A question that waits for the client. Dropping it withdraws it, and the task is at work again.
pub struct OpenQuestion(pub(crate) <Hub as Host>::Question);

/// What came first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Came {
    /// The client's answer: [`OpenQuestion::answer`] has it.
    Answer,
    /// Something that the program tells, be it its end.
    Output,
}

impl Context {
    /// Leaves the task in input-required or auth-required until the client answers, and returns at once. After `timeout`
    /// without an answer, that is [`Failure::Timeout`]. With 32 questions open, one more is [`Failure::Exhausted`].
    pub fn pose(
        &self,
        need: Need,
        prompt: impl Into<Message>,
        timeout: Option<Duration>,
    ) -> Result<OpenQuestion, Failure> {
        self.hub.pose(need, &prompt.into(), timeout).map(OpenQuestion)
    }

    /// Waits for an answer, or for something that a program tells, whichever comes first. Neither is taken by that.
    pub fn first_of(&self, question: &OpenQuestion, child: &Child) -> Result<Came, Failure> {
        if child.has_line() {
            return Ok(Came::Output);
        }
        match self.hub.first_of(&question.0, &child.process) {
            First::Answer => Ok(Came::Answer),
            First::Output => Ok(Came::Output),
            First::Cancelled => Err(Failure::Cancelled),
        }
    }
}

impl OpenQuestion {
    /// The answer; waits for it if it is not there.
    pub fn answer(self) -> Result<Message, Failure> {
        self.0.answer()
    }
}
