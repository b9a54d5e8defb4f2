//! A run whose end something else follows, such as the handoff of its task.

use crate::{Ended, Run, run_after::Boxed};
use std::{
    future::Future,
    mem,
    task::{Context, Poll, ready},
};

/// Wraps a run.
pub type WrapRun = Box<dyn FnOnce(Box<dyn Run>) -> Box<dyn Run> + Send>;

/// A run that passes its end through a future.
pub struct RunThen {
    stage: ThenStage,
    /// Called when the task is cancelled during the future.
    cancel: Box<dyn Fn() + Send + Sync>,
}

enum ThenStage {
    Running(Box<dyn Run>, Box<dyn FnOnce(Ended) -> Boxed<Ended> + Send>),
    /// The run is over; the future returns the end to report.
    After(Boxed<Ended>),
    Over,
}

impl RunThen {
    /// Awaits `run`, and then the future that `then` makes of its end. `cancel` is called when the
    /// task is cancelled during that future, which must return soon then.
    pub fn new<F>(
        run: Box<dyn Run>,
        then: impl FnOnce(Ended) -> F + Send + 'static,
        cancel: impl Fn() + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Ended> + Send + 'static,
    {
        let then = Box::new(move |ended| Box::pin(then(ended)) as Boxed<Ended>);
        Self { stage: ThenStage::Running(run, then), cancel: Box::new(cancel) }
    }
}

#[async_trait::async_trait]
impl Run for RunThen {
    fn poll_ended(&mut self, cx: &mut Context<'_>) -> Poll<Ended> {
        if let ThenStage::Running(run, _) = &mut self.stage {
            let ended = ready!(run.poll_ended(cx));
            if let ThenStage::Running(_, then) = mem::replace(&mut self.stage, ThenStage::Over) {
                self.stage = ThenStage::After(then(ended));
            }
        }
        let ThenStage::After(then) = &mut self.stage else { return Poll::Pending };
        let ended = ready!(then.as_mut().poll(cx));
        self.stage = ThenStage::Over;
        Poll::Ready(ended)
    }

    fn cancel(&self) {
        match &self.stage {
            ThenStage::Running(run, _) => run.cancel(),
            ThenStage::After(_) | ThenStage::Over => (self.cancel)(),
        }
    }

    async fn detach(&mut self) -> bool {
        match &mut self.stage {
            ThenStage::Running(run, _) => run.detach().await,
            ThenStage::After(_) | ThenStage::Over => false,
        }
    }

    async fn end(&mut self) {
        if let ThenStage::Running(mut run, _) = mem::replace(&mut self.stage, ThenStage::Over) {
            run.end().await;
        }
    }
}
