//! Durable execution of a guest by replay: a restarted guest receives the recorded answers of its
//! earlier run (also known as event sourcing of a run).
//!
//! A guest is a synchronous function: its behaviour depends only on the answers of its host calls.
//! So the list of those answers, the journal, determines its progress. Each answer is recorded
//! before the guest receives it. After the end of the process that ran the guest, the next one
//! starts the guest again, and answers from the journal until it is used up, then live. The guest's
//! events are already in the task's log: they are compared with it, and not sent twice.
//!
//! Code with side effects, or that depends on the outside world, belongs in a step; the result of a
//! step is one entry of the journal.

use serde::{Deserialize, Serialize};
use std::{
    collections::VecDeque,
    fmt::{self, Display, Formatter},
};

/// Maximum length of the recorded description of a call, in characters: enough to recognise the
/// same call.
const ABOUT: usize = 200;

/// Maximum size of a step's recorded result, in bytes.
pub const MAX_RESULT_BYTES: usize = 1 << 20;

/// Maximum length of a step's key, in bytes.
pub const MAX_KEY: usize = 256;

/// Identity of a host call: its function and a description of its arguments.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallIdentity {
    /// Function, such as `delegate.call`.
    pub what: String,
    /// Description that distinguishes calls of the function, truncated.
    pub about: String,
}

impl CallIdentity {
    /// Creates the identity of a call of `function` with the description `about`.
    pub fn new(function: &str, about: &str) -> Self {
        Self { what: function.to_owned(), about: about.chars().take(ABOUT).collect() }
    }
}

impl Display for CallIdentity {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { what: function, about } = self;
        if about.is_empty() {
            write!(f, "`{function}`")
        } else {
            write!(f, "`{function}` of “{about}”")
        }
    }
}

/// Entry of the journal: an answer, or the start or end of a step. `A` is the type of answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Entry<A> {
    /// A call, with its answer.
    Answer(CallIdentity, A),
    /// A step began.
    Begun(String),
    /// A step was interrupted after it had sent this number of events.
    CutOff(String, usize),
    /// A step ended.
    Ended {
        /// Key of the step.
        step: String,
        /// Result of the step.
        kept: String,
        /// Number of events that the guest sent in the step.
        told: usize,
    },
}

/// Journal entry, with the guest's time after it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Recorded<A> {
    /// Milliseconds since the Unix epoch.
    pub at_ms: u64,
    /// Journal entry.
    pub entry: Entry<A>,
}

/// Treatment of a step that was interrupted by the end of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepMode {
    /// The result is recorded. An interrupted step is repeated.
    Recorded,
    /// The result is not recorded: the step only reads, and is repeated in every run. It must
    /// return the same result each time.
    Again,
    /// The result is recorded. The client decides if an interrupted step is repeated.
    Ask,
}

/// Result of the start of a step.
#[derive(Clone, Debug, PartialEq)]
pub enum StepStart<A> {
    /// The step has run before, with this result.
    Done(String),
    /// The step must run; the caller first records the entry, if any.
    Work(Option<Recorded<A>>),
    /// The step was interrupted, and its progress is unknown. The caller records the entry, if any,
    /// asks the client, and calls [`Replay::begin`] again if the client wants a repetition.
    CutOff(Option<Recorded<A>>),
}

/// Error for a guest whose calls differ from those in its journal.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the agent does not do again what it did before the hub was restarted: answer {number} of its journal is of {recorded}, and now it \
     asks {call}; what an agent does must follow from what it is answered alone, and everything else stands in a step"
)]
pub struct Diverged {
    /// Number of the journal entry, counted from 1.
    pub number: usize,
    /// Recorded call.
    pub recorded: String,
    /// Call of the guest.
    pub call: String,
}

#[derive(Clone, Debug)]
struct OpenStep {
    key: String,
    mode: StepMode,
    event_count: usize,
}

/// One run of a guest, with the rest of its journal. `A` is the type of answers, `T` the type of
/// the guest's events.
#[derive(Clone, Debug)]
pub struct Replay<A, T> {
    rest: VecDeque<Recorded<A>>,
    /// Number of entries used.
    taken: usize,
    /// Events in the task's log that the guest has not sent again yet.
    logged_events: VecDeque<T>,
    now_ms: u64,
    step: Option<OpenStep>,
}

impl<A, T> Replay<A, T> {
    /// Creates a run that began at `began_ms`, with its journal and the events of the task's log.
    pub fn new(began_ms: u64, journal: Vec<Recorded<A>>, logged_events: Vec<T>) -> Self {
        Self {
            rest: journal.into(),
            taken: 0,
            logged_events: logged_events.into(),
            now_ms: began_ms,
            step: None,
        }
    }

    /// True if the journal is used up: from here on the guest receives live answers.
    pub fn is_live(&self) -> bool {
        self.rest.is_empty()
    }

    /// Number of journal entries so far.
    pub fn entries(&self) -> usize {
        self.taken
    }

    /// Current time for the guest, in milliseconds since the Unix epoch: the time of the last
    /// answer.
    pub fn now_ms(&self) -> u64 {
        self.now_ms
    }

    /// Key of the step that the guest is in.
    pub fn step(&self) -> Option<&str> {
        self.step.as_ref().map(|step| step.key.as_str())
    }

    /// Returns the recorded answer of a call, if the journal has it.
    pub fn recall(&mut self, call: &CallIdentity) -> Result<Option<A>, Diverged> {
        match self.rest.front().map(|it| &it.entry) {
            None => Ok(None),
            Some(Entry::Answer(recorded, _)) if recorded == call => {
                let Some(Entry::Answer(_, answer)) = self.next_entry() else { return Ok(None) };
                Ok(Some(answer))
            }
            Some(_) => Err(self.diverged(call.to_string())),
        }
    }

    /// Returns the entry to record before the guest receives this answer.
    pub fn record_answer(&mut self, call: CallIdentity, answer: A, now_ms: u64) -> Recorded<A> {
        self.record(Entry::Answer(call, answer), now_ms)
    }

    /// Takes the next event from the log in place of an event that the guest sends. `None` if the
    /// log has no more: then the event is new, and must be sent.
    pub fn replay_event(&mut self) -> Option<T> {
        if let Some(step) = &mut self.step {
            step.event_count += 1;
        }
        self.logged_events.pop_front()
    }

    /// Begins a step.
    pub fn begin(
        &mut self,
        key: &str,
        mode: StepMode,
        now_ms: u64,
    ) -> Result<StepStart<A>, Diverged> {
        if mode == StepMode::Again {
            self.open(key, mode);
            return Ok(StepStart::Work(None));
        }
        match self.rest.front().map(|it| &it.entry) {
            None => {
                self.open(key, mode);
                return Ok(StepStart::Work(Some(
                    self.record(Entry::Begun(key.to_owned()), now_ms),
                )));
            }
            Some(Entry::Begun(recorded)) if recorded == key => {
                self.next_entry();
            }
            Some(_) => return Err(self.diverged(format!("the step `{key}`"))),
        }
        match self.rest.front().map(|it| &it.entry) {
            Some(Entry::Ended { step, .. }) if step == key => {
                let Some(Entry::Ended { kept: result, told: event_count, .. }) = self.next_entry()
                else {
                    return Ok(StepStart::CutOff(None));
                };
                self.skip(event_count);
                Ok(StepStart::Done(result))
            }
            Some(Entry::CutOff(step, event_count)) if step == key => {
                let event_count = *event_count;
                self.next_entry();
                self.skip(event_count);
                Ok(StepStart::CutOff(None))
            }
            Some(_) => Err(self.diverged(format!("the step `{key}`"))),
            None => {
                // All remaining events of the log belong to this step.
                let event_count = std::mem::take(&mut self.logged_events).len();
                if mode == StepMode::Ask {
                    let cut_off = Entry::CutOff(key.to_owned(), event_count);
                    return Ok(StepStart::CutOff(Some(self.record(cut_off, now_ms))));
                }
                self.step = Some(OpenStep { key: key.to_owned(), mode, event_count });
                Ok(StepStart::Work(None))
            }
        }
    }

    /// Ends the current step. Returns the entry to record before the guest continues, if any.
    pub fn end(&mut self, result: String, now_ms: u64) -> Option<Recorded<A>> {
        let OpenStep { key, mode, event_count } = self.step.take()?;
        if mode == StepMode::Again {
            return None;
        }
        Some(self.record(Entry::Ended { step: key, kept: result, told: event_count }, now_ms))
    }

    /// Error for a call that differs from the next entry of the journal.
    pub fn diverged(&self, call: String) -> Diverged {
        let recorded = self.rest.front().map_or_else(|| "nothing".to_owned(), |it| it.entry.name());
        Diverged { number: self.taken + 1, recorded, call }
    }

    fn open(&mut self, key: &str, mode: StepMode) {
        self.step = Some(OpenStep { key: key.to_owned(), mode, event_count: 0 });
    }

    /// Skips the events of a finished step in the log.
    fn skip(&mut self, event_count: usize) {
        self.logged_events.drain(..event_count.min(self.logged_events.len()));
    }

    fn next_entry(&mut self) -> Option<Entry<A>> {
        let Recorded { at_ms, entry } = self.rest.pop_front()?;
        self.taken += 1;
        self.now_ms = self.now_ms.max(at_ms);
        Some(entry)
    }

    fn record(&mut self, entry: Entry<A>, now_ms: u64) -> Recorded<A> {
        self.taken += 1;
        // The guest's time never goes back, even if the clock does.
        self.now_ms = self.now_ms.max(now_ms);
        Recorded { at_ms: self.now_ms, entry }
    }
}

impl<A> Entry<A> {
    fn name(&self) -> String {
        match self {
            Self::Answer(call, _) => call.to_string(),
            Self::Begun(step) => format!("the step `{step}`"),
            Self::CutOff(step, _) => format!("the step `{step}`, cut off"),
            Self::Ended { step, .. } => format!("the end of the step `{step}`"),
        }
    }
}

#[cfg(test)]
mod tests;
