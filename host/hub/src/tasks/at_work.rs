//! A guest at work on a task: where it stands with its client and its turn, and what may happen next.

use super::{
    command::Command,
    port::{LatestClient, Said},
    turns::{Place, Turn},
};
use a2a_hub_protocol::message::Message;
use a2a_hub_runtime::{Ended, Failure, Run};
use std::mem;
use tokio::{
    sync::{mpsc, oneshot},
    time::{Instant, sleep_until},
};

/// What a guest hears that asked its client.
pub(super) type Answer = Result<Message, Failure>;

/// A guest at work on a task.
pub(super) struct AtWork {
    pub(super) guest: Box<dyn Run>,
    pub(super) said: mpsc::Receiver<Said>,
    /// When the task has taken too long; moved on by the time that its client took to answer.
    deadline: Instant,
    phase: Phase,
    /// Where the guest waits for its answer, if it does.
    asked: Option<oneshot::Sender<Answer>>,
    /// What it is told of what its client can do with an answer.
    pub(super) client: LatestClient,
}

enum Phase {
    /// It works, or is about to.
    Working {
        _turn: Turn,
        /// When it is told to be at work although it has said nothing so far.
        quiet_until: Option<Instant>,
    },
    /// It waits for the client, and runs nothing meanwhile.
    Asking { since: Instant, until: Instant },
    /// Its answer is there, and it waits for its turn to hear it.
    Returning { place: Place, answer: Answer },
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
    /// A guest that has its task. If it says nothing until `quiet_until`, [`Next::Quiet`] tells.
    pub(super) fn new(
        guest: Box<dyn Run>,
        said: mpsc::Receiver<Said>,
        client: LatestClient,
        turn: Turn,
        deadline: Instant,
        quiet_until: Option<Instant>,
    ) -> Self {
        let phase = Phase::Working { _turn: turn, quiet_until };
        Self { guest, said, deadline, phase, asked: None, client }
    }

    pub(super) async fn next(&mut self, commands: &mut mpsc::Receiver<Command>) -> Next {
        tokio::select! {
            // Orders and time first, lest a guest that never stops talking put them off; then what was said, which must
            // all be heard before the end.
            biased;
            command = commands.recv() => Next::Command(command),
            next = self.phase.next(self.deadline) => next,
            Some(said) = self.said.recv() => Next::Said(said),
            ended = self.guest.ended() => Next::Ended(ended),
        }
    }

    /// It is known to be at work.
    pub(super) fn heard_of(&mut self) {
        if let Phase::Working { quiet_until, .. } = &mut self.phase {
            *quiet_until = None;
        }
    }

    /// It waits for the client from now on, and gives its turn back.
    pub(super) fn ask(&mut self, asked: oneshot::Sender<Answer>, until: Instant) {
        self.asked = Some(asked);
        self.phase = Phase::Asking { since: Instant::now(), until };
    }

    /// Whether a word of the client's is what it waits for.
    pub(super) fn asks(&self) -> bool {
        matches!(self.phase, Phase::Asking { .. })
    }

    /// Its answer is there, and it will hear it when it is its turn.
    pub(super) fn queue(&mut self, answer: Answer, place: Place) {
        self.answered();
        self.phase = Phase::Returning { place, answer };
    }

    /// Its answer is there, and it hears it now.
    pub(super) fn go_on(&mut self, answer: Answer, turn: Turn) {
        self.answered();
        self.phase = Phase::Working { _turn: turn, quiet_until: None };
        self.hear(answer);
    }

    /// It is its turn to hear its answer.
    pub(super) fn called(&mut self, turn: Turn) {
        let working = Phase::Working { _turn: turn, quiet_until: None };
        if let Phase::Returning { answer, .. } = mem::replace(&mut self.phase, working) {
            self.hear(answer);
        }
    }

    /// The time that the client took is not the task's.
    fn answered(&mut self) {
        if let Phase::Asking { since, .. } = self.phase {
            self.deadline += since.elapsed();
        }
    }

    fn hear(&mut self, answer: Answer) {
        if let Some(asked) = self.asked.take() {
            // A guest that was ended meanwhile needs no answer.
            let _ = asked.send(answer);
        }
    }
}

impl Phase {
    /// What the clock brings about, or another task that gives its turn back.
    async fn next(&mut self, deadline: Instant) -> Next {
        match self {
            Self::Working { quiet_until: Some(quiet), .. } if *quiet < deadline => {
                sleep_until(*quiet).await;
                Next::Quiet
            }
            Self::Working { .. } => {
                sleep_until(deadline).await;
                Next::Deadline
            }
            Self::Asking { until, .. } => {
                sleep_until(*until).await;
                Next::NoAnswer
            }
            Self::Returning { place, .. } => tokio::select! {
                turn = place.turn() => Next::Turn(turn),
                () = sleep_until(deadline) => Next::Deadline,
            },
        }
    }
}
