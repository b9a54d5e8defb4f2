//! A guest at work on a task: what may happen next, and the answer it waits for.

use super::{
    actor::Command,
    port::Said,
    turns::{Place, Turn},
};
use crate::agents::Worker;
use a2a_hub_protocol::message::Message;
use a2a_hub_sandbox::{Ended, Failure};
use tokio::{
    sync::{mpsc, oneshot},
    time::{Instant, sleep_until},
};

/// The state of a task whose guest is at work.
pub(super) struct AtWork {
    pub(super) guest: Worker,
    pub(super) said: mpsc::Receiver<Said>,
    pub(super) deadline: Instant,
    pub(super) quiet_until: Option<Instant>,
    /// Given back while the guest waits for the client.
    pub(super) turn: Option<Turn>,
    pub(super) waiting: Option<Waiting>,
    /// What it is to hear once it has its turn.
    pub(super) answer: Option<Result<Message, Failure>>,
    pub(super) place: Option<Place>,
}

/// The guest waits for the client.
pub(super) struct Waiting {
    pub(super) answer: oneshot::Sender<Result<Message, Failure>>,
    pub(super) until: Instant,
    pub(super) since: Instant,
}

pub(super) enum Next {
    Said(Said),
    Ended(Ended),
    Command(Option<Command>),
    Quiet,
    Deadline,
    NoAnswer,
    Turn(Turn),
}

impl AtWork {
    pub(super) fn new(
        guest: Worker,
        said: mpsc::Receiver<Said>,
        deadline: Instant,
        turn: Turn,
    ) -> Self {
        let (turn, quiet_until) = (Some(turn), None);
        let (waiting, answer, place) = (None, None, None);
        Self { guest, said, deadline, quiet_until, turn, waiting, answer, place }
    }

    pub(super) async fn next(&mut self, commands: &mut mpsc::Receiver<Command>) -> Next {
        let asks = self.waiting.as_ref().filter(|_| self.answer.is_none());
        let answer_until = asks.map(|waiting| waiting.until);
        let deadline = self.waiting.is_none().then_some(self.deadline);
        tokio::select! {
            // Orders first; then what was said, which must all be heard before the end.
            biased;
            command = commands.recv() => Next::Command(command),
            Some(said) = self.said.recv() => Next::Said(said),
            ended = self.guest.ended() => Next::Ended(ended),
            turn = turn(&mut self.place) => Next::Turn(turn),
            () = at(self.quiet_until) => Next::Quiet,
            () = at(answer_until) => Next::NoAnswer,
            () = at(deadline) => Next::Deadline,
        }
    }

    /// Lets the guest go on, if it has its answer and its turn; the time it waited is not counted.
    pub(super) fn go_on(&mut self) {
        if self.turn.is_none() {
            return;
        }
        self.place = None;
        if let (Some(waiting), Some(answer)) = (self.waiting.take(), self.answer.take()) {
            self.deadline += waiting.since.elapsed();
            // A guest that was ended meanwhile needs no answer.
            let _ = waiting.answer.send(answer);
        }
    }
}

async fn turn(place: &mut Option<Place>) -> Turn {
    match place {
        Some(place) => place.turn().await,
        None => std::future::pending().await,
    }
}

async fn at(instant: Option<Instant>) {
    match instant {
        Some(instant) => sleep_until(instant).await,
        None => std::future::pending().await,
    }
}
