//! Waiting for several sources: programs, HTTP responses, questions to the client, and other
//! agents.

use std::time::Duration;

use crate::host::{Host, Pollable};
use crate::hub::Hub;
use crate::{Call, Child, Context, Exchange, Failure, OpenQuestion, Timer, WaitEvent};

/// Source that [`Context::wait`] can wait for.
pub enum Source<'a> {
    /// Program; ready when it has a line, more output, or an exit.
    Child(&'a Child),
    /// Child task of another agent; ready when it has an update.
    Call(&'a Call),
    /// HTTP response; ready when it has a line, more of its body, or its end.
    Exchange(&'a Exchange),
    /// Question to the client; ready when it is answered.
    Question(&'a OpenQuestion),
    /// Timer; ready when it fires.
    Timer(&'a Timer),
}

impl Source<'_> {
    fn has_line(&self) -> bool {
        match self {
            Self::Child(child) => child.has_line(),
            Self::Exchange(exchange) => exchange.has_line(),
            Self::Call(_) | Self::Question(_) | Self::Timer(_) => false,
        }
    }

    /// Time until a timer fires; `None` for other sources.
    fn rings_in(&self) -> Option<Duration> {
        match self {
            Self::Timer(timer) => timer.remaining(),
            Self::Child(_) | Self::Call(_) | Self::Exchange(_) | Self::Question(_) => None,
        }
    }

    /// Source that the hub waits for; `None` for a timer, which the guest itself keeps.
    fn pollable(&self) -> Option<Pollable<'_, Hub>> {
        match self {
            Self::Child(child) => Some(Pollable::Process(&child.process)),
            Self::Call(call) => Some(Pollable::Call(&call.0)),
            Self::Exchange(exchange) => Some(Pollable::Exchange(&exchange.handle)),
            Self::Question(question) => Some(Pollable::Question(&question.0)),
            Self::Timer(_) => None,
        }
    }
}

impl Context {
    /// Sleeps without using CPU time. Once the task is cancelled, the result is
    /// [`Failure::Cancelled`]. [`Timer`] waits together with other sources.
    pub fn sleep(&self, time: Duration) -> Result<(), Failure> {
        let until = self.hub.any_of(&[], Some(time));
        until.and_then(|_| if self.cancelled() { Err(Failure::Cancelled) } else { Ok(()) })
    }

    /// Waits until at least one source is ready, and returns the indices of those that are; empty
    /// after the timeout.
    pub fn wait(
        &self,
        sources: &[Source<'_>],
        timeout: Option<Duration>,
    ) -> Result<Vec<usize>, Failure> {
        let ready: Vec<usize> = (0..sources.len()).filter(|&i| sources[i].has_line()).collect();
        if !ready.is_empty() {
            return Ok(ready);
        }
        let rings_in: Vec<_> = sources.iter().map(Source::rings_in).collect();
        let next = rings_in.iter().flatten().min().copied();
        let max_wait = [timeout, next].into_iter().flatten().min();
        let (places, polled): (Vec<_>, Vec<_>) = sources
            .iter()
            .enumerate()
            .filter_map(|(index, source)| Some((index, source.pollable()?)))
            .unzip();
        let woken = self.hub.any_of(&polled, max_wait)?;
        let mut ready: Vec<_> = woken.into_iter().map(|at| places[at]).collect();
        // The timer that ended the wait is due, even if the clock differs by a microsecond.
        let waited = if ready.is_empty() { max_wait } else { Some(Duration::ZERO) };
        let due = |rings_in: &Option<Duration>| rings_in.is_some_and(|it| Some(it) <= waited);
        ready.extend((0..sources.len()).filter(|&index| due(&rings_in[index])));
        ready.sort_unstable();
        Ok(ready)
    }

    /// Waits for the answer to one of several questions, and returns its index; none if the program
    /// has output, or has exited.
    pub(crate) fn first_answer(
        &self,
        questions: &[&OpenQuestion],
        child: &Child,
    ) -> Result<Option<usize>, Failure> {
        if let [question] = questions {
            let event = self.first_of(question, child)?;
            return Ok((event == WaitEvent::Answer).then_some(0));
        }
        let sources = questions.iter().map(|question| Source::Question(question));
        let sources: Vec<_> = sources.chain([Source::Child(child)]).collect();
        let ready = self.wait(&sources, None)?;
        if ready.is_empty() && self.cancelled() {
            return Err(Failure::Cancelled);
        }
        Ok(ready.into_iter().find(|index| *index < questions.len()))
    }
}
