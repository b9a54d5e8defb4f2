//! A task while its hub looks after it: what the hub does when the agent, the client, the queue or the clock has its say.
//!
//! ```text
//!              turn            asks            answer          turn
//!  ┌────────┐ ─────► ┌─────────┐ ──► ┌────────┐ ────► ┌───────────┐ ──► Working
//!  │ Queued │        │ Working │     │ Asking │       │ Returning │
//!  └───▲────┘        └─────────┘     └────────┘       └───────────┘
//!      │ answer
//!  ┌────────┐     any of them: the agent's end, a cancel, a deadline or the hub's own end ──► Over
//!  │ Parked │     the hub's end with an agent at work: Leaving ──► Over
//!  └───▲────┘
//!      └── Asking, where its agent is let go to make room
//! A question that its agent takes back is left as by an answer.
//! ```
//!
//! A state machine without the world: each [`Signal`] is answered by [`Effect`]s, which the task's actor in the hub carries
//! out in their order. What is recorded is one write until an effect of another kind comes, so whatever an effect tells
//! somebody is stored by then.

mod effect;
mod fault;

pub use effect::{Effect, Record};
pub use fault::{Fault, Patience};

use crate::{recovery::Resumability, task};
use a2a_hub_protocol::task::TaskState;
use std::time::{Duration, Instant};

/// How long an agent that says nothing is believed to be starting; then its task is told to be at work.
pub const QUIET: Duration = Duration::from_millis(100);

/// A task that its hub looks after.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lifecycle {
    phase: Phase,
    /// As it was recorded last.
    state: TaskState,
    patience: Patience,
    /// Messages of the client's that came while the agent was at work on another, and that it has not heard.
    unheard: usize,
    /// Whether the question stands that the record has: who asked it is run again, and has not come to it yet.
    stands: bool,
}

/// As many messages may wait for an agent that is at work: more than a person types meanwhile.
pub const MAX_UNHEARD: usize = 16;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// It waits for its turn. With an entry in the record that says so, no agent has seen it.
    Queued {
        entry: Entry,
        deadline: Instant,
    },
    /// It waits for its client, and no agent is at work: the hub that had one is gone.
    Parked {
        until: Instant,
    },
    /// Its agent has it, and its turn.
    Working {
        quiet_until: Option<Instant>,
        deadline: Instant,
    },
    /// Its agent asks the client, as long as `until`.
    Asking {
        /// Since when the agent does nothing but wait, and its turn is given back; none while it works on beside its question.
        still: Option<Instant>,
        until: Instant,
        deadline: Instant,
    },
    /// The answer is there, and waits for the task's turn.
    Returning {
        deadline: Instant,
    },
    /// The hub ends, and the agent is asked whether it goes on without it.
    Leaving,
    Over,
}

/// How a task comes to its agent once it is its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    /// It is new, and its turn is there already: it was never told to be waiting.
    New,
    /// It was told to be waiting for its turn, and no agent has seen it.
    Queued,
    /// Its client answered after the agent that had asked was gone.
    Again,
    /// Its agent is run again from the start, and comes to where it was.
    Replay,
    /// Its agent is elsewhere and was at work all the time.
    Follow,
    /// Its agent's run is gone, and the children of that run are looked after.
    Tend,
}

/// Something that happened to a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// It is the task's turn.
    Turn,
    /// The agent told something; `working` if it was a status.
    Told {
        /// Whether it says that the task is at work.
        working: bool,
    },
    /// The agent asks the client.
    Asked {
        /// The state in which the task waits.
        state: TaskState,
        /// How long the agent waits for the answer.
        patience: Option<Duration>,
        /// Whether the agent does nothing but wait.
        waits: bool,
    },
    /// The agent that asks does nothing but wait from now on, or no longer.
    Waits(bool),
    /// The agent goes on, and does not ask what the record says that the task waits for.
    WentOn,
    /// The agent takes back what it asks.
    Withdrawn,
    /// The agent ended, with this state of the task.
    Ended(TaskState),
    /// The children of an earlier run are over, which were looked after in its place.
    Tended,
    /// The agent could not be given the task.
    Lost(Fault),
    /// The client says more: what the task waits for, or else something that its agent is to hear.
    Said,
    /// Somebody cancels the task.
    Cancel,
    /// A budget is used up that the task is under: it fails, and the thing itself says which.
    Exhausted,
    /// Others need the room that the agent takes up while it waits for the client; it can be started again.
    Park,
    /// The hub ends in order (graceful shutdown).
    Shutdown,
    /// The answer to [`Effect::Leave`]: whether the agent goes on without the hub.
    Left(bool),
    /// The answer to [`Effect::AskHold`].
    Resumability(Resumability),
    /// It is as late as [`Lifecycle::wake_at`] told, or later.
    Time,
}

impl Lifecycle {
    /// A task in `state` that comes to its agent once it is its turn.
    pub fn queued(state: TaskState, entry: Entry, patience: Patience, now: Instant) -> Self {
        let deadline = now + patience.task;
        let phase = Phase::Queued { entry, deadline };
        Self { phase, state, patience, unheard: 0, stands: false }
    }

    /// A task in `state` that waits for its client, without an agent at work.
    pub fn parked(state: TaskState, patience: Patience, now: Instant) -> Self {
        let phase = Phase::Parked { until: now + patience.answer };
        Self { phase, state, patience, unheard: 0, stands: false }
    }

    /// The same, with so many messages of its client's in the log that its agent has not heard.
    pub fn keeping(self, unheard: usize) -> Self {
        Self { unheard, ..self }
    }

    /// The same, with a question in the record that is not answered, of an agent that is run again.
    pub fn standing(self, stands: bool) -> Self {
        Self { stands, ..self }
    }

    /// Whether the question stands that the record has, although nobody waits for its answer yet.
    pub fn stands(&self) -> bool {
        self.stands
    }

    /// How long the task and its answers may take.
    pub fn patience(&self) -> Patience {
        self.patience
    }

    /// Whether nothing more happens to it in this hub.
    pub fn is_over(&self) -> bool {
        self.phase == Phase::Over
    }

    /// Whether a message of the client's is what it waits for.
    pub fn asks(&self) -> bool {
        matches!(self.phase, Phase::Asking { .. } | Phase::Parked { .. })
    }

    /// Whether the agent asks, and does nothing but wait for the answer.
    pub fn only_waits(&self) -> bool {
        matches!(self.phase, Phase::Asking { still: Some(_), .. })
    }

    /// Whether an answer is there that waits for the task's turn, or the task waits for its first one.
    pub fn returns(&self) -> bool {
        matches!(self.phase, Phase::Returning { .. } | Phase::Queued { .. })
    }

    /// When [`Signal::Time`] is due next.
    pub fn wake_at(&self) -> Option<Instant> {
        match self.phase {
            Phase::Queued { deadline, .. } | Phase::Returning { deadline } => Some(deadline),
            Phase::Asking { still: None, until, deadline } => Some(until.min(deadline)),
            Phase::Parked { until } | Phase::Asking { until, .. } => Some(until),
            Phase::Working { quiet_until, deadline } => {
                Some(quiet_until.map_or(deadline, |quiet| quiet.min(deadline)))
            }
            Phase::Leaving | Phase::Over => None,
        }
    }

    /// What is to be done now that this happened. What does not belong to where the task stands changes nothing.
    pub fn step(&mut self, now: Instant, signal: Signal) -> Vec<Effect> {
        let effects = match signal {
            Signal::Turn => self.turn(now),
            Signal::Told { .. } => self.told(),
            Signal::Asked { state, patience, waits } => self.asked(now, state, patience, waits),
            Signal::Waits(waits) => self.waits(now, waits),
            Signal::WentOn => self.went_on(),
            Signal::Withdrawn => self.withdrawn(now),
            Signal::Ended(state) => self.ended(now, state),
            Signal::Tended => self.tended(now),
            Signal::Lost(fault) if self.has_agent() => self.end(vec![failed(fault)]),
            Signal::Said => self.said(now),
            Signal::Cancel => self.cut_short(Record::Canceled),
            Signal::Exhausted => self.cut_short(Record::Itself),
            Signal::Park => self.park(),
            Signal::Shutdown => self.shutdown(),
            Signal::Left(goes_on) if self.phase == Phase::Leaving => self.left(goes_on),
            Signal::Resumability(hold) if self.phase == Phase::Leaving => self.stopped(hold),
            Signal::Time => self.time(now),
            Signal::Lost(_) | Signal::Left(_) | Signal::Resumability(_) => Vec::new(),
        };
        self.follow_records(signal, &effects);
        effects
    }

    /// Keeps up with what is recorded.
    fn follow_records(&mut self, signal: Signal, effects: &[Effect]) {
        for effect in effects {
            let Effect::Record(record) = effect else { continue };
            // What the agent tells beside its question leaves the question as it is.
            let is_beside =
                *record == Record::Itself && matches!(signal, Signal::Told { .. } | Signal::Said);
            self.stands &= is_beside;
            self.state = match record {
                Record::Working | Record::Interim => TaskState::Working,
                Record::Canceled => TaskState::Canceled,
                Record::Failed(_) => TaskState::Failed,
                Record::Interrupted | Record::Stranded => TaskState::InputRequired,
                Record::Parked => self.state,
                Record::Itself => signal.state().unwrap_or(self.state),
            };
        }
    }

    fn turn(&mut self, now: Instant) -> Vec<Effect> {
        match self.phase {
            Phase::Queued { entry: Entry::Follow, deadline } => {
                self.phase = Phase::Working { quiet_until: None, deadline };
                vec![Effect::Follow]
            }
            Phase::Queued { entry: Entry::Tend, deadline } => {
                self.phase = Phase::Working { quiet_until: None, deadline };
                // What a child asks stands until it is handed on again; whatever else was asked is not asked any more.
                let is_over = self.state.is_interrupted() && !self.stands;
                let working = is_over.then_some(Effect::Record(Record::Working));
                working.into_iter().chain([Effect::Tend]).collect()
            }
            Phase::Queued { entry, deadline } => {
                self.phase = Phase::Working { quiet_until: Some(now + QUIET), deadline };
                // From here on the agent may have done something: one that waited until now must not be started twice.
                // What one has asked that is run again stands until it is there.
                let waited = entry == Entry::Queued
                    || (self.state.is_interrupted() && entry != Entry::Replay);
                let working = waited.then_some(Effect::Record(Record::Working));
                working.into_iter().chain([Effect::Start]).collect()
            }
            Phase::Returning { deadline } => {
                self.phase = Phase::Working { quiet_until: None, deadline };
                vec![Effect::Record(Record::Working), Effect::Answer]
            }
            Phase::Parked { .. }
            | Phase::Working { .. }
            | Phase::Asking { .. }
            | Phase::Leaving
            | Phase::Over => Vec::new(),
        }
    }

    fn told(&mut self) -> Vec<Effect> {
        if !self.has_agent() {
            return Vec::new();
        }
        self.heard_of();
        self.begun().into_iter().chain([Effect::Record(Record::Itself)]).collect()
    }

    fn went_on(&mut self) -> Vec<Effect> {
        if !self.has_agent() {
            return Vec::new();
        }
        self.heard_of();
        vec![Effect::Record(Record::Working)]
    }

    fn asked(
        &mut self,
        now: Instant,
        state: TaskState,
        patience: Option<Duration>,
        waits: bool,
    ) -> Vec<Effect> {
        let Some(deadline) = self.deadline_at(now) else { return Vec::new() };
        let longest = self.patience.answer;
        let until = now + patience.map_or(longest, |patience| patience.min(longest));
        self.phase = Phase::Asking { still: waits.then_some(now), until, deadline };
        // What it asked before in another way, or what stands in its record, is asked no more.
        let working = !task::allows(self.state, state);
        let working = working.then_some(Effect::Record(Record::Working));
        let back = waits.then_some(Effect::GiveTurnBack);
        working.into_iter().chain([Effect::Record(Record::Itself)]).chain(back).collect()
    }

    /// An agent that asks stops working beside its question, or goes on: the time that it only waits is not the task's.
    fn waits(&mut self, now: Instant, waits: bool) -> Vec<Effect> {
        let at = self.deadline_at(now);
        if let (Phase::Asking { still, deadline, .. }, Some(at)) = (&mut self.phase, at)
            && still.is_some() != waits
        {
            (*still, *deadline) = (waits.then_some(now), at);
        }
        Vec::new()
    }

    /// Until when an agent at work may take, if it goes on now: what it waited for its client comes on top.
    fn deadline_at(&self, now: Instant) -> Option<Instant> {
        match self.phase {
            Phase::Working { deadline, .. } | Phase::Returning { deadline } => Some(deadline),
            Phase::Asking { still, deadline, .. } => Some(deadline + waited(still, now)),
            Phase::Queued { .. } | Phase::Parked { .. } | Phase::Leaving | Phase::Over => None,
        }
    }

    /// Nobody need answer: the agent goes on once it is the task's turn.
    fn withdrawn(&mut self, now: Instant) -> Vec<Effect> {
        let (Phase::Asking { .. }, Some(deadline)) = (self.phase, self.deadline_at(now)) else {
            return Vec::new();
        };
        self.phase = Phase::Returning { deadline };
        vec![Effect::ComeBack]
    }

    /// Another run, with the oldest message that no run has heard.
    fn again(&mut self, now: Instant) -> Vec<Effect> {
        self.unheard -= 1;
        let deadline = self.deadline_at(now);
        let told = [Effect::Record(Record::Interim), Effect::Retire];
        let then = match (&mut self.phase, deadline) {
            (Phase::Working { quiet_until, .. }, _) => {
                *quiet_until = None;
                vec![Effect::Start]
            }
            // It ended beside its own question, for which it had given its turn back.
            (Phase::Asking { .. } | Phase::Returning { .. }, Some(deadline)) => {
                self.phase = Phase::Queued { entry: Entry::Again, deadline };
                vec![Effect::GiveTurnBack, Effect::ComeBack]
            }
            (_, _) => Vec::new(),
        };
        told.into_iter().chain(then).collect()
    }

    fn ended(&mut self, now: Instant, state: TaskState) -> Vec<Effect> {
        if !self.has_agent() {
            return Vec::new();
        }
        // An agent that did what it was at hears what its client has said since. One that gave up hears no more.
        if state == TaskState::Completed && self.unheard > 0 {
            return self.again(now);
        }
        let mut effects = Vec::new();
        if !task::allows(self.state, state) {
            effects.push(Effect::Record(Record::Working));
        }
        effects.push(Effect::Record(Record::Itself));
        self.end(effects)
    }

    /// No child of an earlier run is left: the agent is started again with what its client has said meanwhile, or once its client says
    /// something.
    fn tended(&mut self, now: Instant) -> Vec<Effect> {
        if !self.has_agent() {
            return Vec::new();
        }
        if self.unheard > 0 {
            self.unheard -= 1;
            self.phase = Phase::Queued { entry: Entry::Again, deadline: now + self.patience.task };
            let told = Effect::Record(Record::Interim);
            return vec![told, Effect::Retire, Effect::GiveTurnBack, Effect::ComeBack];
        }
        self.phase = Phase::Parked { until: now + self.patience.answer };
        let working = !task::allows(self.state, TaskState::InputRequired);
        let working = working.then_some(Effect::Record(Record::Working));
        let asks = [Effect::Record(Record::Stranded), Effect::Retire, Effect::GiveTurnBack];
        working.into_iter().chain(asks).collect()
    }

    fn said(&mut self, now: Instant) -> Vec<Effect> {
        if std::mem::take(&mut self.stands) {
            // The agent hears it when it asks again.
            return vec![Effect::Record(Record::Itself), Effect::Acknowledge];
        }
        match self.phase {
            Phase::Asking { still, deadline, .. } => {
                self.phase = Phase::Returning { deadline: deadline + waited(still, now) };
            }
            Phase::Parked { .. } => {
                let deadline = now + self.patience.task;
                self.phase = Phase::Queued { entry: Entry::Again, deadline };
            }
            Phase::Queued { .. } | Phase::Working { .. } | Phase::Returning { .. }
                if self.unheard < MAX_UNHEARD =>
            {
                self.unheard += 1;
                return vec![Effect::Record(Record::Itself), Effect::Keep, Effect::Acknowledge];
            }
            Phase::Queued { .. }
            | Phase::Working { .. }
            | Phase::Returning { .. }
            | Phase::Leaving
            | Phase::Over => return vec![Effect::Refuse],
        }
        vec![Effect::Record(Record::Itself), Effect::ComeBack, Effect::Acknowledge]
    }

    /// It ends, wherever it is, and the record tells how.
    fn cut_short(&mut self, record: Record) -> Vec<Effect> {
        let record = Effect::Record(record);
        match self.phase {
            Phase::Queued { entry: Entry::New | Entry::Queued, .. } => self.end(vec![record]),
            // An agent had it before, and may be at work on it elsewhere.
            Phase::Queued {
                entry: Entry::Again | Entry::Follow | Entry::Replay | Entry::Tend,
                ..
            }
            | Phase::Parked { .. } => self.end(vec![Effect::CleanUp, record]),
            Phase::Working { .. } | Phase::Asking { .. } | Phase::Returning { .. } => {
                self.end(vec![Effect::Stop, Effect::CleanUp, record])
            }
            Phase::Leaving | Phase::Over => Vec::new(),
        }
    }

    /// Its agent is let go, and started again with the answer.
    fn park(&mut self) -> Vec<Effect> {
        let Phase::Asking { still: Some(_), until, .. } = self.phase else { return Vec::new() };
        self.phase = Phase::Parked { until };
        vec![Effect::Record(Record::Parked), Effect::Stop]
    }

    /// What no agent has, and what waits for its client, is left as it is, for the next hub.
    fn shutdown(&mut self) -> Vec<Effect> {
        if self.has_agent() {
            self.phase = Phase::Leaving;
            return vec![Effect::Leave];
        }
        if self.phase != Phase::Leaving {
            self.phase = Phase::Over;
        }
        Vec::new()
    }

    fn left(&mut self, goes_on: bool) -> Vec<Effect> {
        if goes_on {
            return self.end(Vec::new());
        }
        // What waits for its client goes on waiting, for the next hub.
        if self.state.is_interrupted() {
            return self.end(vec![Effect::Stop]);
        }
        vec![Effect::Stop, Effect::AskHold]
    }

    /// The agent is stopped for the hub's end.
    fn stopped(&mut self, hold: Resumability) -> Vec<Effect> {
        let is_working = self.state == TaskState::Working;
        self.end(match hold {
            // The next hub runs it again.
            Resumability::Replay => Vec::new(),
            Resumability::Session if is_working => vec![Effect::Record(Record::Interrupted)],
            Resumability::Session | Resumability::Nothing | Resumability::Work => {
                vec![failed(Fault::HubStopped)]
            }
        })
    }

    fn time(&mut self, now: Instant) -> Vec<Effect> {
        if self.wake_at().is_none_or(|then| now < then) {
            return Vec::new();
        }
        match self.phase {
            Phase::Queued { .. } => self.end(vec![failed(Fault::Queued)]),
            Phase::Parked { .. } => self.end(vec![failed(Fault::Unanswered)]),
            Phase::Working { quiet_until: Some(_), deadline } if now < deadline => {
                self.heard_of();
                self.begun()
            }
            Phase::Working { .. } | Phase::Returning { .. } => {
                self.end(vec![Effect::Stop, failed(Fault::TooLong)])
            }
            Phase::Asking { still: None, deadline, .. } if deadline <= now => {
                self.end(vec![Effect::Stop, failed(Fault::TooLong)])
            }
            Phase::Asking { .. } => self.withdrawn(now),
            Phase::Leaving | Phase::Over => Vec::new(),
        }
    }

    /// That the agent is at work, unless that was recorded.
    fn begun(&self) -> Vec<Effect> {
        let submitted = self.state == TaskState::Submitted;
        submitted.then_some(Effect::Record(Record::Working)).into_iter().collect()
    }

    fn heard_of(&mut self) {
        if let Phase::Working { quiet_until, .. } = &mut self.phase {
            *quiet_until = None;
        }
    }

    fn has_agent(&self) -> bool {
        matches!(self.phase, Phase::Working { .. } | Phase::Asking { .. } | Phase::Returning { .. })
    }

    fn end(&mut self, effects: Vec<Effect>) -> Vec<Effect> {
        self.phase = Phase::Over;
        effects
    }
}

impl Signal {
    /// The state in which the thing itself leaves the task, if it says.
    fn state(self) -> Option<TaskState> {
        match self {
            Self::Told { working: true } => Some(TaskState::Working),
            Self::Asked { state, .. } | Self::Ended(state) => Some(state),
            Self::Exhausted => Some(TaskState::Failed),
            Self::Told { working: false }
            | Self::Turn
            | Self::WentOn
            | Self::Waits(_)
            | Self::Withdrawn
            | Self::Tended
            | Self::Lost(_)
            | Self::Said
            | Self::Cancel
            | Self::Park
            | Self::Shutdown
            | Self::Left(_)
            | Self::Resumability(_)
            | Self::Time => None,
        }
    }
}

/// How long an agent has done nothing but wait that does so since then.
fn waited(still: Option<Instant>, now: Instant) -> Duration {
    still.map_or(Duration::ZERO, |since| now - since)
}

fn failed(fault: Fault) -> Effect {
    Effect::Record(Record::Failed(fault))
}

#[cfg(test)]
mod tests;
