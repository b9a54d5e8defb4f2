//! What an actor waits for.

use super::{
    actor::{Happening, TaskActor},
    port::GuestRequest,
    run_queue::{QueueTicket, RunPermit},
};
use a2a_hub_runtime::{Ended, Failure, Run, port::tasks::Answer};
use futures::FutureExt as _;
use std::{
    future::{pending, ready},
    time::Duration,
};
use tokio::{
    sync::{mpsc, oneshot},
    time::{Instant, sleep_until, timeout},
};

/// How long the first event of a task waits for what the agent says first, to be stored along with it: longer than a busy hub takes to begin, and
/// shorter than anybody notices.
const BIRTH: Duration = Duration::from_millis(100);

/// How many turns the agent is given to say its first word, before a timer is set.
const TURNS: usize = 3;

/// What an actor waits for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Waits {
    /// Whatever happens, or for time to go by.
    ForTime,
    /// Whatever happens, and no timer is set.
    ForOthers,
}

impl TaskActor {
    /// Whatever happens next.
    pub(super) async fn next(&mut self) -> Happening {
        self.next_by(Waits::ForTime).await
    }

    /// Whatever has happened by now.
    fn now(&mut self) -> Option<Happening> {
        self.next_by(Waits::ForOthers).now_or_never()
    }

    async fn next_by(&mut self, waits: Waits) -> Happening {
        let wake_at = self.lifecycle.wake_at().map(Instant::from_std);
        let is_time = wake_at.is_some_and(|at| at <= Instant::now());
        let (ticket, guest) = (&mut self.ticket, &mut self.guest);
        let (mut said, mut run, mut asked) = (None, None, None);
        if let Some(guest) = guest {
            (said, run) = (Some(&mut guest.said), Some(&mut guest.run));
            asked = guest.asked.as_mut().filter(|_| self.lifecycle.asks());
        }
        tokio::select! {
            // Orders and time first, lest a guest that never stops talking put them off; then what was said, which must
            // all be heard before the end.
            biased;
            command = self.commands.recv() => Happening::Command(command),
            turn = called(ticket) => Happening::Turn(turn),
            () = ready(()), if is_time => Happening::Time,
            () = withdrawn(&mut asked) => Happening::Withdrawn,
            said = heard(&mut said) => Happening::Said(said),
            ended = ended(&mut run) => Happening::Ended(ended),
            // A timer is set only where there is nothing else: to set one wakes the thread that waits for the kernel.
            () = woken(wake_at), if waits == Waits::ForTime => Happening::Time,
        }
    }

    /// What happens first, if it does soon: mostly as soon as the agent has had its turn. On a hub with too much to do the agent may not have begun
    /// by the end of that; it is given its turn once more, for a task that is stored by itself is more to do.
    pub(super) async fn first_word(&mut self) -> Option<Happening> {
        for _ in 0..TURNS {
            if let Some(happening) = self.now() {
                return Some(happening);
            }
            tokio::task::yield_now().await;
        }
        if let Ok(happening) = timeout(BIRTH, self.next()).await {
            return Some(happening);
        }
        tokio::task::yield_now().await;
        self.now()
    }
}

// Each of these waits for ever where there is nothing of it.

async fn called(ticket: &mut Option<QueueTicket>) -> RunPermit {
    match ticket {
        Some(ticket) => ticket.turn().await,
        None => pending().await,
    }
}

async fn woken(at: Option<Instant>) {
    match at {
        Some(at) => sleep_until(at).await,
        None => pending().await,
    }
}

/// Waits until nobody waits for the answer any more.
async fn withdrawn(asked: &mut Option<&mut oneshot::Sender<Result<Answer, Failure>>>) {
    match asked {
        Some(asked) => asked.closed().await,
        None => pending().await,
    }
}

async fn heard(said: &mut Option<&mut mpsc::Receiver<GuestRequest>>) -> GuestRequest {
    match said {
        Some(said) => match said.recv().await {
            Some(said) => said,
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
