//! Event loop of an actor: selects the next event.

use super::{ActorEvent, TaskActor};
use crate::tasks::guest_port::GuestRequest;
use a2a_hub_runtime::{Ended, Failure, Run, port::tasks::ClientAnswer};
use futures::FutureExt as _;
use std::future::{pending, ready};
use tokio::{
    sync::{mpsc, oneshot},
    time::{Instant, sleep_until, timeout_at},
};

/// Number of times the actor yields for the agent's first output before it sets a timer.
const TURNS: usize = 3;

/// Wait mode of the actor.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Waits {
    /// Waits for any event or for the timer.
    ForTime,
    /// Waits for any event, without a timer.
    ForOthers,
}

impl TaskActor {
    /// Waits for the next event.
    pub(in crate::tasks) async fn next(&mut self) -> ActorEvent {
        self.next_by(Waits::ForTime).await
    }

    /// Event that is ready now, if any.
    fn now(&mut self) -> Option<ActorEvent> {
        self.next_by(Waits::ForOthers).now_or_never()
    }

    async fn next_by(&mut self, waits: Waits) -> ActorEvent {
        let times = [self.lifecycle.wake_at(), self.lifecycle.warn_at()];
        let wake_at = times.into_iter().flatten().min().map(Instant::from_std);
        let is_time = wake_at.is_some_and(|at| at <= Instant::now());
        let waits_for_quota = self.lifecycle.waits_for_quota();
        let (permits, guest, quota) = (&mut self.permits, &mut self.guest, &mut self.quota);
        let (mut requests, mut run, mut answer_tx) = (None, None, None);
        if let Some(guest) = guest {
            (requests, run) = (Some(&mut guest.requests), Some(&mut guest.run));
            answer_tx = guest.answer_tx.as_mut().filter(|_| self.lifecycle.asks());
        }
        tokio::select! {
            // Commands and deadlines come first, so that a guest that emits without pause cannot
            // delay them. Output comes before the end: all of it must be handled first.
            biased;
            command = self.commands.recv() => ActorEvent::Command(command),
            turn = permits.granted() => ActorEvent::Turn(turn),
            () = ready(()), if is_time => ActorEvent::Time,
            () = quota.opened(), if waits_for_quota => ActorEvent::Time,
            () = withdrawn(&mut answer_tx) => ActorEvent::Withdrawn,
            said = next_request(&mut requests) => ActorEvent::Request(said),
            ended = ended(&mut run) => ActorEvent::Ended(ended),
            // Last, and only in this mode: setting a timer wakes the thread that polls the kernel.
            () = woken(wake_at), if waits == Waits::ForTime => ActorEvent::Time,
        }
    }

    /// Waits until `deadline` for the next event of a task that is not stored yet. The event mostly
    /// is ready after one poll of the agent. On a busy hub the agent may not have begun when the
    /// time is over, so it is polled once more: storing a task by itself costs more.
    pub(in crate::tasks) async fn first_word(&mut self, deadline: Instant) -> Option<ActorEvent> {
        for _ in 0..TURNS {
            if let Some(event) = self.now() {
                return Some(event);
            }
            tokio::task::yield_now().await;
        }
        if let Ok(event) = timeout_at(deadline, self.next()).await {
            return Some(event);
        }
        tokio::task::yield_now().await;
        self.now()
    }
}

// Each of these is pending forever if its source is absent.

async fn woken(at: Option<Instant>) {
    match at {
        Some(at) => sleep_until(at).await,
        None => pending().await,
    }
}

/// Waits until the answer's receiver is gone.
async fn withdrawn(answer_tx: &mut Option<&mut oneshot::Sender<Result<ClientAnswer, Failure>>>) {
    match answer_tx {
        Some(answer_tx) => answer_tx.closed().await,
        None => pending().await,
    }
}

async fn next_request(requests: &mut Option<&mut mpsc::Receiver<GuestRequest>>) -> GuestRequest {
    match requests {
        Some(requests) => match requests.recv().await {
            Some(request) => request,
            None => pending().await,
        },
        None => pending().await,
    }
}

async fn ended(run: &mut Option<&mut Box<dyn Run>>) -> Ended {
    match run {
        Some(run) => run.ended().await,
        None => pending().await,
    }
}
