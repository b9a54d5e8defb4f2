//! A run before which something else happens, such as the setup of its worktree.

use crate::{Ended, Run};
use std::{
    future::Future,
    mem,
    pin::Pin,
    task::{Context, Poll, ready},
};

/// Future that a run owns.
pub(crate) type Boxed<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Starts the agent.
pub type StartAgent = Box<dyn FnOnce() -> Box<dyn Run> + Send>;

/// A run whose agent starts after a future.
pub struct RunAfter {
    stage: Stage,
    /// Called when the task is cancelled before the agent has started.
    cancel: Box<dyn Fn() + Send + Sync>,
    /// Awaited if the run is ended before the agent has started.
    abandoned: Option<Boxed<()>>,
}

enum Stage {
    /// The future returns the end of the task if the agent cannot start.
    Before(Boxed<Option<Ended>>, StartAgent),
    Running(Box<dyn Run>),
    Over,
}

impl RunAfter {
    /// Awaits `before`, and then starts the agent, unless `before` returns the end of the task.
    /// `cancel` is called when the task is cancelled until then; `before` must return soon then.
    pub fn new(
        before: impl Future<Output = Option<Ended>> + Send + 'static,
        start: StartAgent,
        cancel: impl Fn() + Send + Sync + 'static,
    ) -> Self {
        let stage = Stage::Before(Box::pin(before), start);
        Self { stage, cancel: Box::new(cancel), abandoned: None }
    }

    /// Awaits `abandoned` if the run is ended before the agent has started.
    #[must_use]
    pub fn or_else(mut self, abandoned: impl Future<Output = ()> + Send + 'static) -> Self {
        self.abandoned = Some(Box::pin(abandoned));
        self
    }
}

#[async_trait::async_trait]
impl Run for RunAfter {
    fn poll_ended(&mut self, cx: &mut Context<'_>) -> Poll<Ended> {
        if let Stage::Before(before, _) = &mut self.stage {
            let ended = ready!(before.as_mut().poll(cx));
            let stage = mem::replace(&mut self.stage, Stage::Over);
            match (ended, stage) {
                (None, Stage::Before(_, start)) => self.stage = Stage::Running(start()),
                (Some(ended), _) => return Poll::Ready(ended),
                (None, Stage::Running(_) | Stage::Over) => {}
            }
        }
        match &mut self.stage {
            Stage::Running(run) => run.poll_ended(cx),
            Stage::Before(..) | Stage::Over => Poll::Pending,
        }
    }

    fn cancel(&self) {
        match &self.stage {
            Stage::Running(run) => run.cancel(),
            Stage::Before(..) | Stage::Over => (self.cancel)(),
        }
    }

    async fn detach(&mut self) -> bool {
        match &mut self.stage {
            Stage::Running(run) => run.detach().await,
            Stage::Before(..) | Stage::Over => false,
        }
    }

    async fn end(&mut self) {
        match mem::replace(&mut self.stage, Stage::Over) {
            Stage::Running(mut run) => run.end().await,
            Stage::Before(before, _) => {
                drop(before);
                if let Some(abandoned) = self.abandoned.take() {
                    abandoned.await;
                }
            }
            Stage::Over => {}
        }
    }
}
