//! State machine of a task that the hub runs: takes signals of the agent, the client, the queue and
//! the clock, and returns effects.
//!
//! ```text
//!              permit          asks            answer          permit
//!  ┌────────┐ ─────► ┌─────────┐ ──► ┌────────┐ ────► ┌───────────┐ ──► Working
//!  │ Queued │        │ Working │     │ Asking │       │ Returning │
//!  └───▲────┘        └─────────┘     └────────┘       └───────────┘
//!      │ answer
//!  ┌────────┐     any of them: agent's end, cancel, deadline, hub's shutdown ──► Over
//!  │ Parked │     hub's shutdown with an agent at work: Leaving ──► Over
//!  └───▲────┘
//!      └── Asking, if its agent is evicted to free capacity
//! A question that its agent withdraws leads to Returning, like an answer.
//! A used-up quota leads to Waiting, and its reset to Queued.
//! ```
//!
//! The state machine does no I/O. The task's actor in the hub carries out the [`Effect`]s of a
//! [`Signal`] in their order. Consecutive records form one write, which precedes the next effect of
//! another kind. So an effect never reports anything that is not stored yet.

mod answer_deadline;
mod answer_time;
mod effect;
mod fault;
mod quota_wait;
mod reading;
mod signal;

pub use effect::{Effect, Record};
pub use fault::{Fault, TaskTimeouts};
pub use signal::Signal;

use crate::task::{recovery::Resumability, state, unattended::Interruption};
use a2a_hub_protocol::task::TaskState;
use answer_deadline::AnswerDeadline;
use std::time::{Duration, Instant};

/// Time that a silent agent counts as starting; after it the task is reported as working.
pub const QUIET: Duration = Duration::from_millis(100);

/// State of one task that the hub runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lifecycle {
    phase: Phase,
    /// State that was recorded last.
    state: TaskState,
    timeouts: TaskTimeouts,
    /// Number of client messages that arrived during the agent's work and that the agent has not
    /// received.
    pending_messages: usize,
    /// True if the recorded question is still pending although the agent is being replayed and has
    /// not reached it yet.
    question_pending: bool,
    /// Rule for the end of the process during the agent's work.
    interruption: Interruption,
}

/// Limit of messages that wait for a working agent: more than a person types meanwhile.
pub const MAX_PENDING_MESSAGES: usize = 16;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Waits for a run permit. If the entry is in the record, no agent has seen the task.
    Queued {
        entry: AgentEntry,
        deadline: Instant,
    },
    /// Waits for the client without an agent: the task was evicted, or the process that ran the
    /// agent is gone.
    Evicted {
        answer: AnswerDeadline,
    },
    /// The agent runs and holds a run permit.
    Working {
        quiet_until: Option<Instant>,
        deadline: Instant,
    },
    /// The agent's question to the client is open until the `answer` or its deadline.
    Asking {
        /// Instant since when the agent only waits, with its run permit released; `None` while it
        /// works on besides its question.
        still: Option<Instant>,
        answer: AnswerDeadline,
        deadline: Instant,
    },
    /// The answer has arrived; the task waits for a run permit.
    Returning {
        deadline: Instant,
    },
    /// The quota of the agent's account is used up: the task waits for the reset without an agent
    /// and without a run permit.
    Waiting {
        entry: AgentEntry,
        /// Next look at the clock.
        until: Instant,
        /// Rest of the task's time limit, which does not run.
        remaining: Duration,
    },
    /// The hub shuts down and has asked whether the agent continues without it.
    Leaving,
    Over,
}

/// Way in which a task reaches its agent once it has a run permit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AgentEntry {
    /// New task whose run permit was free at once; it was never reported as queued.
    New,
    /// Task that was reported as queued; no agent has seen it.
    Queued,
    /// The agent starts with a client message: an answer that came after its run was gone, or a
    /// queued message.
    Again,
    /// The agent is replayed from the start up to the point it had reached.
    Replay,
    /// The agent is remote and kept working all the time.
    Follow,
    /// The agent's run is gone; the hub supervises the children of that run.
    Tend,
    /// The agent's run ended because its quota was used up; the agent continues its work in another
    /// run.
    Continue,
}

impl Lifecycle {
    /// Creates a task in `state` that reaches its agent with its run permit.
    pub fn queued(
        state: TaskState,
        entry: AgentEntry,
        timeouts: TaskTimeouts,
        now: Instant,
    ) -> Self {
        let deadline = now + timeouts.task;
        let phase = Phase::Queued { entry, deadline };
        Self::new(phase, state, timeouts)
    }

    /// Creates a task in `state` that waits for its client, without an agent.
    pub fn evicted(state: TaskState, timeouts: TaskTimeouts, now: Instant) -> Self {
        let phase = Phase::Evicted { answer: AnswerDeadline::after(now, timeouts.answer) };
        Self::new(phase, state, timeouts)
    }

    fn new(phase: Phase, state: TaskState, timeouts: TaskTimeouts) -> Self {
        let interruption = Interruption::AskClient;
        Self { phase, state, timeouts, pending_messages: 0, question_pending: false, interruption }
    }

    /// Sets the rule for the end of the process during the agent's work.
    pub fn with_interruption(self, interruption: Interruption) -> Self {
        Self { interruption, ..self }
    }

    /// Sets the number of client messages in the log that the agent has not received.
    pub fn keeping(self, pending_messages: usize) -> Self {
        Self { pending_messages, ..self }
    }

    /// Sets whether the record has an unanswered question of an agent that is being replayed.
    pub fn with_pending_question(self, question_pending: bool) -> Self {
        Self { question_pending, ..self }
    }

    /// True if the recorded question is pending although no agent waits for its answer yet.
    pub fn has_pending_question(&self) -> bool {
        self.question_pending
    }

    /// Timeouts of the task and its answers.
    pub fn timeouts(&self) -> TaskTimeouts {
        self.timeouts
    }

    /// True if the task needs no further step in this process.
    pub fn is_over(&self) -> bool {
        self.phase == Phase::Over
    }

    /// True if the task waits for a message of the client.
    pub fn asks(&self) -> bool {
        matches!(self.phase, Phase::Asking { .. } | Phase::Evicted { .. })
    }

    /// True if the agent asks, and only waits for the answer.
    pub fn only_waits(&self) -> bool {
        matches!(self.phase, Phase::Asking { still: Some(_), .. })
    }

    /// True if the task waits for a run permit, with an answer or for its start.
    pub fn returns(&self) -> bool {
        matches!(self.phase, Phase::Returning { .. } | Phase::Queued { .. })
    }

    /// Instant at which [`Signal::Time`] is due next. The warning before the deadline of an answer
    /// is no signal: [`warn_at`](Self::warn_at) has its instant.
    pub fn wake_at(&self) -> Option<Instant> {
        match self.phase {
            Phase::Queued { deadline, .. } | Phase::Returning { deadline } => Some(deadline),
            Phase::Asking { still: None, answer, deadline } => Some(answer.until().min(deadline)),
            Phase::Evicted { answer } | Phase::Asking { answer, .. } => Some(answer.until()),
            Phase::Working { quiet_until, deadline } => {
                Some(quiet_until.map_or(deadline, |quiet| quiet.min(deadline)))
            }
            Phase::Waiting { until, .. } => Some(until),
            Phase::Leaving | Phase::Over => None,
        }
    }

    /// Applies a signal and returns the effects. A signal that does not fit the phase changes
    /// nothing.
    pub fn step(&mut self, now: Instant, signal: Signal) -> Vec<Effect> {
        let effects = match signal {
            Signal::Turn => self.turn(now),
            Signal::AgentEvent { .. } => self.agent_event(),
            Signal::AgentQuestion { state, timeout, waits } => {
                self.agent_question(now, state, timeout, waits)
            }
            Signal::Waits(waits) => self.waits(now, waits),
            Signal::WentOn => self.went_on(),
            Signal::Withdrawn => self.withdrawn(now),
            Signal::Ended(state) => self.ended(now, state),
            Signal::Tended => self.tended(now),
            Signal::QuotaUsedUp(until) => self.quota_used_up(now, until),
            Signal::AccountClosed(until) => self.account_closed(now, until),
            Signal::QuotaReset => self.quota_reset(now),
            Signal::Lost(fault) if self.has_agent() => self.end(vec![failed(fault)]),
            Signal::ClientMessage => self.client_message(now),
            Signal::Read => self.read(),
            Signal::Cancel => self.cut_short(Record::Canceled),
            Signal::Exhausted => self.cut_short(Record::Itself),
            Signal::Park => self.park(),
            Signal::Shutdown => self.shutdown(),
            Signal::Detached(goes_on) if self.phase == Phase::Leaving => self.detached(goes_on),
            Signal::Resumability(hold) if self.phase == Phase::Leaving => self.stopped(hold),
            Signal::Time => self.time(now),
            Signal::Lost(_) | Signal::Detached(_) | Signal::Resumability(_) => Vec::new(),
        };
        self.follow_records(signal, &effects);
        effects
    }

    /// Follows the recorded state.
    fn follow_records(&mut self, signal: Signal, effects: &[Effect]) {
        for effect in effects {
            let Effect::Record(record) = effect else { continue };
            // An event of the agent besides its question leaves the question pending.
            let keeps_question = *record == Record::Itself
                && matches!(signal, Signal::AgentEvent { .. } | Signal::ClientMessage);
            self.question_pending &= keeps_question;
            self.state = match record {
                Record::Working | Record::Interim | Record::Waits | Record::Continues => {
                    TaskState::Working
                }
                Record::Canceled => TaskState::Canceled,
                Record::Failed(_) => TaskState::Failed,
                Record::Interrupted | Record::Stranded => TaskState::InputRequired,
                Record::Evicted | Record::Again => self.state,
                Record::Itself => signal.state().unwrap_or(self.state),
            };
        }
    }

    fn turn(&mut self, now: Instant) -> Vec<Effect> {
        match self.phase {
            Phase::Queued { entry: AgentEntry::Follow, deadline } => {
                self.phase = Phase::Working { quiet_until: None, deadline };
                vec![Effect::Follow]
            }
            Phase::Queued { entry: AgentEntry::Tend, deadline } => {
                self.phase = Phase::Working { quiet_until: None, deadline };
                // A child's question stays pending until it is relayed again; any other question is
                // obsolete.
                let is_over = self.state.is_interrupted() && !self.question_pending;
                let working = is_over.then_some(Effect::Record(Record::Working));
                working.into_iter().chain([Effect::Tend]).collect()
            }
            Phase::Queued { entry: AgentEntry::Continue, deadline } => {
                self.phase = Phase::Working { quiet_until: None, deadline };
                vec![Effect::Record(Record::Continues), Effect::Start]
            }
            Phase::Queued { entry, deadline } => {
                self.phase = Phase::Working { quiet_until: Some(now + QUIET), deadline };
                // From here on the agent may have acted, so a queued task must not be started
                // twice. A replayed agent's question stays pending until the replay reaches it.
                let waited = entry == AgentEntry::Queued
                    || (self.state.is_interrupted() && entry != AgentEntry::Replay);
                let working = waited.then_some(Effect::Record(Record::Working));
                working.into_iter().chain([Effect::Start]).collect()
            }
            Phase::Returning { deadline } => {
                self.phase = Phase::Working { quiet_until: None, deadline };
                vec![Effect::Record(Record::Working), Effect::Answer]
            }
            Phase::Evicted { .. }
            | Phase::Working { .. }
            | Phase::Asking { .. }
            | Phase::Waiting { .. }
            | Phase::Leaving
            | Phase::Over => Vec::new(),
        }
    }

    fn agent_event(&mut self) -> Vec<Effect> {
        if !self.has_agent() {
            return Vec::new();
        }
        self.end_quiet_period();
        self.begun().into_iter().chain([Effect::Record(Record::Itself)]).collect()
    }

    fn went_on(&mut self) -> Vec<Effect> {
        if !self.has_agent() {
            return Vec::new();
        }
        self.end_quiet_period();
        vec![Effect::Record(Record::Working)]
    }

    fn agent_question(
        &mut self,
        now: Instant,
        state: TaskState,
        timeout: Option<Duration>,
        waits: bool,
    ) -> Vec<Effect> {
        let Some(deadline) = self.deadline_at(now) else { return Vec::new() };
        let longest = self.timeouts.answer;
        let time = timeout.map_or(longest, |timeout| timeout.min(longest));
        let answer = AnswerDeadline::after(now, time);
        self.phase = Phase::Asking { still: waits.then_some(now), answer, deadline };
        // Closes an earlier question, asked in another state or recorded.
        let working = !state::allows(self.state, state);
        let working = working.then_some(Effect::Record(Record::Working));
        let back = waits.then_some(Effect::GiveTurnBack);
        working.into_iter().chain([Effect::Record(Record::Itself)]).chain(back).collect()
    }

    /// Records that an asking agent only waits or works again: the time that it only waits does not
    /// count as the task's.
    fn waits(&mut self, now: Instant, waits: bool) -> Vec<Effect> {
        let at = self.deadline_at(now);
        if let (Phase::Asking { still, deadline, .. }, Some(at)) = (&mut self.phase, at)
            && still.is_some() != waits
        {
            (*still, *deadline) = (waits.then_some(now), at);
        }
        Vec::new()
    }

    /// Deadline of an agent that continues now; the time that it waited for the client is added.
    fn deadline_at(&self, now: Instant) -> Option<Instant> {
        match self.phase {
            Phase::Working { deadline, .. } | Phase::Returning { deadline } => Some(deadline),
            Phase::Asking { still, deadline, .. } => Some(deadline + waited(still, now)),
            Phase::Queued { .. }
            | Phase::Evicted { .. }
            | Phase::Waiting { .. }
            | Phase::Leaving
            | Phase::Over => None,
        }
    }

    /// Closes the question without an answer; the agent continues with its next run permit.
    fn withdrawn(&mut self, now: Instant) -> Vec<Effect> {
        let (Phase::Asking { .. }, Some(deadline)) = (self.phase, self.deadline_at(now)) else {
            return Vec::new();
        };
        self.phase = Phase::Returning { deadline };
        vec![Effect::ComeBack]
    }

    /// Starts another run with the oldest message that no run has received.
    fn again(&mut self, now: Instant) -> Vec<Effect> {
        self.pending_messages -= 1;
        let deadline = self.deadline_at(now);
        let run_end = [Effect::Record(Record::Interim), Effect::Retire];
        let then = match (&mut self.phase, deadline) {
            (Phase::Working { quiet_until, .. }, _) => {
                *quiet_until = None;
                vec![Effect::Start]
            }
            // The agent ended while it was asking, and had released its run permit.
            (Phase::Asking { .. } | Phase::Returning { .. }, Some(deadline)) => {
                self.phase = Phase::Queued { entry: AgentEntry::Again, deadline };
                vec![Effect::GiveTurnBack, Effect::ComeBack]
            }
            (_, _) => Vec::new(),
        };
        run_end.into_iter().chain(then).collect()
    }

    fn ended(&mut self, now: Instant, state: TaskState) -> Vec<Effect> {
        if !self.has_agent() {
            return Vec::new();
        }
        // An agent that completed its work receives the messages that arrived meanwhile; an agent
        // that failed receives no more.
        if state == TaskState::Completed && self.pending_messages > 0 {
            return self.again(now);
        }
        let mut effects = Vec::new();
        if !state::allows(self.state, state) {
            effects.push(Effect::Record(Record::Working));
        }
        effects.push(Effect::Record(Record::Itself));
        self.end(effects)
    }

    /// Ends the supervision of an earlier run's children: restarts the agent with a message that
    /// arrived meanwhile, or by the rule for interruptions; otherwise waits for the client.
    fn tended(&mut self, now: Instant) -> Vec<Effect> {
        if !self.has_agent() {
            return Vec::new();
        }
        if self.pending_messages > 0 {
            self.pending_messages -= 1;
            self.phase =
                Phase::Queued { entry: AgentEntry::Again, deadline: now + self.timeouts.task };
            let interim = Effect::Record(Record::Interim);
            return vec![interim, Effect::Retire, Effect::GiveTurnBack, Effect::ComeBack];
        }
        let working = !state::allows(self.state, TaskState::InputRequired);
        let working = working.then_some(Effect::Record(Record::Working));
        let asks = [Effect::Record(Record::Stranded), Effect::Retire, Effect::GiveTurnBack];
        let effects = working.into_iter().chain(asks);
        if std::mem::take(&mut self.interruption) == Interruption::StartAgain {
            self.interruption = Interruption::Fail;
            self.phase =
                Phase::Queued { entry: AgentEntry::Again, deadline: now + self.timeouts.task };
            return effects.chain([Effect::Record(Record::Again), Effect::ComeBack]).collect();
        }
        self.phase = Phase::Evicted { answer: AnswerDeadline::after(now, self.timeouts.answer) };
        effects.collect()
    }

    fn client_message(&mut self, now: Instant) -> Vec<Effect> {
        if std::mem::take(&mut self.question_pending) {
            // The agent receives it when it asks again.
            return vec![Effect::Record(Record::Itself), Effect::Acknowledge];
        }
        match self.phase {
            Phase::Asking { still, deadline, .. } => {
                self.phase = Phase::Returning { deadline: deadline + waited(still, now) };
            }
            Phase::Evicted { .. } => {
                let deadline = now + self.timeouts.task;
                self.phase = Phase::Queued { entry: AgentEntry::Again, deadline };
            }
            Phase::Queued { .. }
            | Phase::Working { .. }
            | Phase::Returning { .. }
            | Phase::Waiting { .. }
                if self.pending_messages < MAX_PENDING_MESSAGES =>
            {
                self.pending_messages += 1;
                return vec![Effect::Record(Record::Itself), Effect::Keep, Effect::Acknowledge];
            }
            Phase::Queued { .. }
            | Phase::Working { .. }
            | Phase::Returning { .. }
            | Phase::Waiting { .. }
            | Phase::Leaving
            | Phase::Over => return vec![Effect::Refuse],
        }
        vec![Effect::Record(Record::Itself), Effect::ComeBack, Effect::Acknowledge]
    }

    /// Ends the task in any phase, and records how.
    fn cut_short(&mut self, record: Record) -> Vec<Effect> {
        let record = Effect::Record(record);
        match self.phase {
            Phase::Queued { entry: AgentEntry::New | AgentEntry::Queued, .. }
            | Phase::Waiting { entry: AgentEntry::New | AgentEntry::Queued, .. } => {
                self.end(vec![record])
            }
            // An agent had the task before, and a remote agent may still work on it.
            Phase::Queued {
                entry:
                    AgentEntry::Again
                    | AgentEntry::Follow
                    | AgentEntry::Replay
                    | AgentEntry::Tend
                    | AgentEntry::Continue,
                ..
            }
            | Phase::Waiting { .. }
            | Phase::Evicted { .. } => self.end(vec![Effect::CleanUp, record]),
            Phase::Working { .. } | Phase::Asking { .. } | Phase::Returning { .. } => {
                self.end(vec![Effect::Stop, Effect::CleanUp, record])
            }
            Phase::Leaving | Phase::Over => Vec::new(),
        }
    }

    /// Stops the waiting agent; the answer restarts it.
    fn park(&mut self) -> Vec<Effect> {
        let Phase::Asking { still: Some(_), answer, .. } = self.phase else { return Vec::new() };
        self.phase = Phase::Evicted { answer };
        vec![Effect::Record(Record::Evicted), Effect::Stop]
    }

    /// Leaves a task without an agent, or one that waits for its client, to the next process.
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

    fn detached(&mut self, goes_on: bool) -> Vec<Effect> {
        if goes_on {
            return self.end(Vec::new());
        }
        // A task that waits for its client keeps waiting, in the next process.
        if self.state.is_interrupted() {
            return self.end(vec![Effect::Stop]);
        }
        vec![Effect::Stop, Effect::AskHold]
    }

    /// Handles the agent's stop at the hub's shutdown.
    fn stopped(&mut self, hold: Resumability) -> Vec<Effect> {
        let is_working = self.state == TaskState::Working;
        let interrupted = vec![Effect::Record(Record::Interrupted)];
        self.end(match (hold, self.interruption) {
            // The next process replays the agent.
            (Resumability::Replay, _) => Vec::new(),
            (_, Interruption::StartAgain) if is_working => interrupted,
            // The next process starts the agent, of which nothing is recorded.
            (_, Interruption::StartAgain) => Vec::new(),
            (Resumability::Session, Interruption::AskClient) if is_working => interrupted,
            (Resumability::Session | Resumability::Nothing | Resumability::Work, _) => {
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
            Phase::Evicted { .. } => self.end(vec![failed(Fault::Unanswered)]),
            Phase::Working { quiet_until: Some(_), deadline } if now < deadline => {
                self.end_quiet_period();
                self.begun()
            }
            Phase::Working { .. } | Phase::Returning { .. } => {
                self.end(vec![Effect::Stop, failed(Fault::TooLong)])
            }
            Phase::Asking { still: None, deadline, .. } if deadline <= now => {
                self.end(vec![Effect::Stop, failed(Fault::TooLong)])
            }
            Phase::Asking { .. } => self.withdrawn(now),
            Phase::Waiting { .. } => self.quota_reset(now),
            Phase::Leaving | Phase::Over => Vec::new(),
        }
    }

    /// Records that the agent works, if the task is still submitted.
    fn begun(&self) -> Vec<Effect> {
        let submitted = self.state == TaskState::Submitted;
        submitted.then_some(Effect::Record(Record::Working)).into_iter().collect()
    }

    fn end_quiet_period(&mut self) {
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

/// Time that an agent has only waited, if it only waits since `still`.
fn waited(still: Option<Instant>, now: Instant) -> Duration {
    still.map_or(Duration::ZERO, |since| now - since)
}

fn failed(fault: Fault) -> Effect {
    Effect::Record(Record::Failed(fault))
}

#[cfg(test)]
mod tests;
