//! Stand-in for an agent's run that ended with the previous process while its children continue: it
//! relays the children's questions and answers until they are over.

use crate::tasks::{
    Tasks,
    actor::{GUEST_CHANNEL_CAPACITY, TaskActor, running_task::RunningTask},
    ports::RunKind,
};
use a2a_hub_core::task::lifecycle::Fault;
use a2a_hub_protocol::{id::TaskId, task::TaskState};
use a2a_hub_runtime::{Ended, Run, port::delegate::DelegatePort};
use futures::future::BoxFuture;
use std::{
    sync::Arc,
    task::{Context, Poll},
};
use tokio::{sync::mpsc, time::sleep};
use tokio_util::sync::CancellationToken;

/// Run that only waits for the children.
struct Tending {
    over: BoxFuture<'static, ()>,
    cancelled: CancellationToken,
    /// Relays the children's questions.
    _calls: Arc<dyn DelegatePort>,
}

impl TaskActor {
    /// Relays for the children of an earlier run.
    pub(in crate::tasks) fn tend(&mut self) -> Result<(), Fault> {
        let Some(tasks) = &self.tasks else { return Err(Fault::AgentReplaced) };
        let (queue, requests) = mpsc::channel(GUEST_CHANNEL_CAPACITY);
        let task = self.recorder.task();
        let run = RunKind { is_recorded: false, follows_another: true };
        let calls = tasks.delegation(&self.agent, task, queue, run);
        let (all, cancelled) = (tasks.children_over(&task.id), CancellationToken::new());
        let until = cancelled.clone();
        let over = async move {
            let _ = until.run_until_cancelled(all).await;
        };
        let run = Tending { over: Box::pin(over), cancelled, _calls: calls };
        self.guest = Some(RunningTask::tending(Box::new(run), requests));
        // The run only waits for others, so it releases its permit.
        self.permits.release_for_whole_run();
        Ok(())
    }
}

#[async_trait::async_trait]
impl Run for Tending {
    fn poll_ended(&mut self, cx: &mut Context<'_>) -> Poll<Ended> {
        let (state, message, metadata) = (TaskState::Completed, None, None);
        self.over.as_mut().poll(cx).map(|()| Ended::Status { state, message, metadata })
    }

    fn cancel(&self) {
        self.cancelled.cancel();
    }

    /// The next process finds the task as it is, and does the same.
    async fn detach(&mut self) -> bool {
        true
    }

    async fn end(&mut self) {}
}

impl Tasks {
    /// Waits until the children of a task are over.
    pub(in crate::tasks) async fn until_childless(self, parent: TaskId) {
        loop {
            let children = self.trees().children(&parent);
            if children.is_empty() {
                return;
            }
            for child in children {
                let Some(running) = self.find(&child) else { continue };
                let Some(mut subscription) = self.listen(&child, running.listener.seq()) else {
                    continue;
                };
                while subscription.next().await.is_some() {}
            }
            // A child's end is being stored, or its programs are being reaped.
            sleep(crate::tasks::POLL_INTERVAL).await;
        }
    }
}
