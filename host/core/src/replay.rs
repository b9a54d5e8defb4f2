//! A guest that runs again from its start, and is told what it was told before (durable execution by replay, also known as
//! event sourcing of a run).
//!
//! A guest is a synchronous function: what it does follows from what it is answered. So its progress is the list of those
//! answers, its journal. Each is recorded before the guest hears it. When the hub that ran the guest is gone, the next one
//! starts it anew, answers from the journal as long as there is something in it, and live from there on. What the guest has
//! told, the task's log has already: it is compared, and not told twice.
//!
//! What has an effect on the world, or depends on it, stands in a step, whose answer is one entry of the journal.

use serde::{Deserialize, Serialize};
use std::{
    collections::VecDeque,
    fmt::{self, Display, Formatter},
};

/// How much of what a guest asks is kept of it, in characters: enough to see whether it asks the same again.
const ABOUT: usize = 200;

/// The longest answer of a step that is kept, in bytes.
pub const MAX_KEPT: usize = 1 << 20;

/// The longest key of a step, in bytes.
pub const MAX_KEY: usize = 256;

/// What a guest asks of its hub: which function, and about what.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Asked {
    /// The function, such as `delegate.call`.
    pub what: String,
    /// What sets this call apart from another one of that function; no more than its beginning.
    pub about: String,
}

impl Asked {
    /// A call of `what` about `about`.
    pub fn new(what: &str, about: &str) -> Self {
        Self { what: what.to_owned(), about: about.chars().take(ABOUT).collect() }
    }
}

impl Display for Asked {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { what, about } = self;
        if about.is_empty() {
            write!(f, "`{what}`")
        } else {
            write!(f, "`{what}` of “{about}”")
        }
    }
}

/// What the journal holds: an answer, or where a step begins and ends. `A` is what answers are.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Entry<A> {
    /// What the guest asked, and what it was answered.
    Answer(Asked, A),
    /// A step began.
    Begun(String),
    /// A step that had begun was cut off, and this many events had been told in it.
    CutOff(String, usize),
    /// A step ended.
    Ended {
        /// Its key.
        step: String,
        /// What it came to.
        kept: String,
        /// How many events the guest told in it.
        told: usize,
    },
}

/// An entry, and the time from which on the guest goes on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Recorded<A> {
    /// Milliseconds since the Unix epoch.
    pub at_ms: u64,
    /// The entry.
    pub entry: Entry<A>,
}

/// What becomes of a step whose hub was killed in the middle of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepMode {
    /// Its answer is recorded. One that was cut off is done again.
    Recorded,
    /// Its answer is not recorded: it reads only, and is done in every run. It must come to the same each time.
    Again,
    /// Its answer is recorded. Of one that was cut off, the client is asked whether it is to be done again.
    Ask,
}

/// How a step begins.
#[derive(Clone, Debug, PartialEq)]
pub enum Begun<A> {
    /// It was done before, and came to this.
    Kept(String),
    /// It is to be done; first this is recorded, if anything.
    Work(Option<Recorded<A>>),
    /// It was cut off, and nobody knows how far it had come: this is recorded, if anything, the client is asked, and [`Replay::begin`]
    /// called again if it is to be done.
    CutOff(Option<Recorded<A>>),
}

/// A guest asks something else than it did when its journal was written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the agent does not do again what it did before the hub was restarted: answer {number} of its journal is of {recorded}, and now it \
     asks {asked}; what an agent does must follow from what it is answered alone, and everything else stands in a step"
)]
pub struct Diverged {
    /// Which entry of the journal, counted from 1.
    pub number: usize,
    /// What stands there.
    pub recorded: String,
    /// What the guest does.
    pub asked: String,
}

#[derive(Clone, Debug)]
struct OpenStep {
    key: String,
    mode: StepMode,
    told: usize,
}

/// One run of a guest, with what is left of its journal. `A` is what answers are, `T` what a guest tells.
#[derive(Clone, Debug)]
pub struct Replay<A, T> {
    rest: VecDeque<Recorded<A>>,
    /// How many entries were taken.
    taken: usize,
    /// What the task's log has that the guest has not told again.
    told: VecDeque<T>,
    now_ms: u64,
    step: Option<OpenStep>,
}

impl<A, T> Replay<A, T> {
    /// A run that began at `began_ms`, as its journal and the task's log have it.
    pub fn new(began_ms: u64, journal: Vec<Recorded<A>>, told: Vec<T>) -> Self {
        Self { rest: journal.into(), taken: 0, told: told.into(), now_ms: began_ms, step: None }
    }

    /// Whether all of the journal was heard: from here on the guest is answered live.
    pub fn is_live(&self) -> bool {
        self.rest.is_empty()
    }

    /// How many entries of its journal there are by now.
    pub fn entries(&self) -> usize {
        self.taken
    }

    /// The time that it is for the guest, in milliseconds since the Unix epoch: that of the last answer.
    pub fn now_ms(&self) -> u64 {
        self.now_ms
    }

    /// The key of the step that the guest is in.
    pub fn step(&self) -> Option<&str> {
        self.step.as_ref().map(|step| step.key.as_str())
    }

    /// What the guest is answered, if the journal knows.
    pub fn recall(&mut self, asked: &Asked) -> Result<Option<A>, Diverged> {
        match self.rest.front().map(|it| &it.entry) {
            None => Ok(None),
            Some(Entry::Answer(recorded, _)) if recorded == asked => {
                let Some(Entry::Answer(_, answer)) = self.take() else { return Ok(None) };
                Ok(Some(answer))
            }
            Some(_) => Err(self.diverged(asked.to_string())),
        }
    }

    /// What is to be recorded before the guest hears this answer.
    pub fn answered(&mut self, asked: Asked, answer: A, now_ms: u64) -> Recorded<A> {
        self.record(Entry::Answer(asked, answer), now_ms)
    }

    /// The guest tells something: what the log has in its place, if it has it. Then the two are the same, and it is not told again.
    pub fn tell(&mut self) -> Option<T> {
        if let Some(step) = &mut self.step {
            step.told += 1;
        }
        self.told.pop_front()
    }

    /// The guest begins a step.
    pub fn begin(&mut self, key: &str, mode: StepMode, now_ms: u64) -> Result<Begun<A>, Diverged> {
        if mode == StepMode::Again {
            self.open(key, mode);
            return Ok(Begun::Work(None));
        }
        match self.rest.front().map(|it| &it.entry) {
            None => {
                self.open(key, mode);
                return Ok(Begun::Work(Some(self.record(Entry::Begun(key.to_owned()), now_ms))));
            }
            Some(Entry::Begun(recorded)) if recorded == key => {
                self.take();
            }
            Some(_) => return Err(self.diverged(format!("the step `{key}`"))),
        }
        match self.rest.front().map(|it| &it.entry) {
            Some(Entry::Ended { step, .. }) if step == key => {
                let Some(Entry::Ended { kept, told, .. }) = self.take() else {
                    return Ok(Begun::CutOff(None));
                };
                self.skip(told);
                Ok(Begun::Kept(kept))
            }
            Some(Entry::CutOff(step, told)) if step == key => {
                let told = *told;
                self.take();
                self.skip(told);
                Ok(Begun::CutOff(None))
            }
            Some(_) => Err(self.diverged(format!("the step `{key}`"))),
            None => {
                // What else was told, was told in there.
                let told = std::mem::take(&mut self.told).len();
                if mode == StepMode::Ask {
                    let cut_off = Entry::CutOff(key.to_owned(), told);
                    return Ok(Begun::CutOff(Some(self.record(cut_off, now_ms))));
                }
                self.step = Some(OpenStep { key: key.to_owned(), mode, told });
                Ok(Begun::Work(None))
            }
        }
    }

    /// The guest ends its step: what is to be recorded before it goes on, if anything.
    pub fn end(&mut self, kept: String, now_ms: u64) -> Option<Recorded<A>> {
        let OpenStep { key, mode, told } = self.step.take()?;
        if mode == StepMode::Again {
            return None;
        }
        Some(self.record(Entry::Ended { step: key, kept, told }, now_ms))
    }

    /// That the guest does something else than stands next in its journal.
    pub fn diverged(&self, asked: String) -> Diverged {
        let recorded = self.rest.front().map_or_else(|| "nothing".to_owned(), |it| it.entry.name());
        Diverged { number: self.taken + 1, recorded, asked }
    }

    fn open(&mut self, key: &str, mode: StepMode) {
        self.step = Some(OpenStep { key: key.to_owned(), mode, told: 0 });
    }

    /// So much of what the log has was told in a step that is over.
    fn skip(&mut self, told: usize) {
        self.told.drain(..told.min(self.told.len()));
    }

    fn take(&mut self) -> Option<Entry<A>> {
        let Recorded { at_ms, entry } = self.rest.pop_front()?;
        self.taken += 1;
        self.now_ms = self.now_ms.max(at_ms);
        Some(entry)
    }

    fn record(&mut self, entry: Entry<A>, now_ms: u64) -> Recorded<A> {
        self.taken += 1;
        // A clock that is set back does not turn the guest's time back.
        self.now_ms = self.now_ms.max(now_ms);
        Recorded { at_ms: self.now_ms, entry }
    }
}

impl<A> Entry<A> {
    fn name(&self) -> String {
        match self {
            Self::Answer(asked, _) => asked.to_string(),
            Self::Begun(step) => format!("the step `{step}`"),
            Self::CutOff(step, _) => format!("the step `{step}`, cut off"),
            Self::Ended { step, .. } => format!("the end of the step `{step}`"),
        }
    }
}

#[cfg(test)]
mod tests;
