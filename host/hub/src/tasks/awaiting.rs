//! What an actor waits for, where there is any of it; else for ever.

use super::{
    port::GuestRequest,
    run_queue::{QueueTicket, RunPermit},
};
use a2a_hub_runtime::{Ended, Failure, Run, port::tasks::Answer};
use std::future::pending;
use tokio::{
    sync::{mpsc, oneshot},
    time::{Instant, sleep_until},
};

pub(super) async fn called(ticket: &mut Option<QueueTicket>) -> RunPermit {
    match ticket {
        Some(ticket) => ticket.turn().await,
        None => pending().await,
    }
}

pub(super) async fn woken(at: Option<Instant>) {
    match at {
        Some(at) => sleep_until(at).await,
        None => pending().await,
    }
}

/// Waits until nobody waits for the answer any more.
pub(super) async fn withdrawn(asked: &mut Option<&mut oneshot::Sender<Result<Answer, Failure>>>) {
    match asked {
        Some(asked) => asked.closed().await,
        None => pending().await,
    }
}

pub(super) async fn heard(said: &mut Option<&mut mpsc::Receiver<GuestRequest>>) -> GuestRequest {
    match said {
        Some(said) => match said.recv().await {
            Some(said) => said,
            None => pending().await,
        },
        None => pending().await,
    }
}

pub(super) async fn ended(run: &mut Option<&mut Box<dyn Run>>) -> Ended {
    match run {
        Some(run) => run.ended().await,
        None => pending().await,
    }
}
