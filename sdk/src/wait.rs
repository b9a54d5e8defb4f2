//! Waiting for several things at once: programs, answers over HTTP, questions to the client, and other agents.

use std::time::Duration;

use crate::host::{Host, Pollable};
use crate::{Call, Child, Context, Exchange, Failure, OpenQuestion};

/// Something [`Context::wait`] can wait for.
pub enum Source<'a> {
    /// A program, ready when it has a line, more output, or an end to tell.
    Child(&'a Child),
    /// Another agent, ready when it has an update to tell.
    Call(&'a Call),
    /// An answer over HTTP, ready when it has a line, more of its body, or an end to tell.
    Exchange(&'a Exchange),
    /// A question to the client, ready when it is answered.
    Question(&'a OpenQuestion),
}

impl Source<'_> {
    fn has_line(&self) -> bool {
        match self {
            Self::Child(child) => child.has_line(),
            Self::Exchange(exchange) => exchange.has_line(),
            Self::Call(_) | Self::Question(_) => false,
        }
    }
}

impl Context {
    /// Does nothing for so long, without using up anything. [`Failure::Cancelled`] once the task is cancelled.
    pub fn sleep(&self, time: Duration) -> Result<(), Failure> {
        let until = self.hub.any_of(&[], Some(time));
        until.and_then(|_| if self.cancelled() { Err(Failure::Cancelled) } else { Ok(()) })
    }

    /// Waits until one of several sources is ready; returns the indices of those that are. Empty when the time is up.
    pub fn wait(
        &self,
        sources: &[Source<'_>],
        timeout: Option<Duration>,
    ) -> Result<Vec<usize>, Failure> {
        let ready: Vec<usize> = (0..sources.len()).filter(|&i| sources[i].has_line()).collect();
        if !ready.is_empty() {
            return Ok(ready);
        }
        let sources: Vec<_> = sources
            .iter()
            .map(|source| match source {
                Source::Child(child) => Pollable::Process(&child.process),
                Source::Call(call) => Pollable::Call(&call.0),
                Source::Exchange(exchange) => Pollable::Exchange(&exchange.handle),
                Source::Question(question) => Pollable::Question(&question.0),
            })
            .collect();
        self.hub.any_of(&sources, timeout)
    }
}
