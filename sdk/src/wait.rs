//! Waiting for several things at once: programs, and other agents.

use std::time::Duration;

use crate::host::{Host, Pollable};
use crate::{Call, Child, Context};

/// Something [`Context::wait`] can wait for.
pub enum Source<'a> {
    /// A program, ready when it has a line, more output, or an end to tell.
    Child(&'a Child),
    /// Another agent, ready when it has an update to tell.
    Call(&'a Call),
}

impl Context {
    /// Waits until one of several sources is ready; returns the indices of those that are. Empty when the time is up
    /// or the task was cancelled.
    pub fn wait(&self, sources: &[Source<'_>], timeout: Option<Duration>) -> Vec<usize> {
        let buffered = |source: &Source<'_>| matches!(source, Source::Child(c) if c.has_line());
        let ready: Vec<usize> = (0..sources.len()).filter(|&i| buffered(&sources[i])).collect();
        if !ready.is_empty() {
            return ready;
        }
        let sources: Vec<_> = sources
            .iter()
            .map(|source| match source {
                Source::Child(child) => Pollable::Process(&child.process),
                Source::Call(call) => Pollable::Call(&call.0),
            })
            .collect();
        self.hub.poll(&sources, timeout)
    }
}
