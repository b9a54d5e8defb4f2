//! Schedules: the planned times of a cron expression, and the step that is due at a given time.
//!
//! ```text
//! planned times   ──┬──────┬──────┬──────┬──────┬──► time
//!                   done until           latest due  now
//!                          └ missed: no run of their own
//! ```
//!
//! A planned time is an instant, so a clock change neither repeats nor loses one. Everything up to
//! [`State::done_until_ms`] is dealt with: a clock that goes back finds nothing due, and a clock
//! that goes forward finds the missed times, of which at most the latest gets a run.

use croner::{
    Cron,
    parser::{CronParser, Seconds, Year},
};
use jiff::{
    SignedDuration, Timestamp, Zoned,
    tz::{AmbiguousOffset, TimeZone},
};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Delay up to which a run counts as on time: more than the hub's pause between two looks at the
/// clock, and enough to start again after a crash.
const ON_TIME: SignedDuration = SignedDuration::from_mins(1);

/// Lead of the recorded time over the clock from which the clock counts as corrected: it was wrong
/// when the time was recorded, and the schedule would pause until then.
const CLOCK_WAS_WRONG: SignedDuration = SignedDuration::from_hours(24);

/// Limit up to which missed times are counted: a year of minutes would take a while.
pub const MAX_COUNTED: u32 = 1_000;

/// Most characters of a field that an error quotes.
const MAX_QUOTED: usize = 40;

/// Error of a cron expression.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidCron {
    /// The expression has another number of fields.
    #[error(
        "it has {0} fields and needs five: minute, hour, day of month, month, day of week, such as \"0 3 * * *\""
    )]
    Fields(usize),
    /// A field is invalid.
    #[error(
        "its {name} is `{written}`, and may be {values}, `*`, a list such as `1,3`, a range such as `1-5`, or steps such as `*/2`"
    )]
    Field {
        /// Name of the field.
        name: &'static str,
        /// Text of the field.
        written: String,
        /// Values of the field.
        values: &'static str,
    },
    /// The fields are valid alone, and not together.
    #[error(
        "its five fields do not fit together; write them such as \"0 3 * * *\" for each day at 3:00"
    )]
    Form,
    /// No day matches.
    #[error("no day ever matches it; choose a day of month that its month has")]
    Never,
}

/// Planned times: a cron expression in a time zone. A time of day that a clock change skips is
/// planned right after the gap; one that occurs twice, for its first occurrence. Expressions with
/// `*` or `/` in hours or minutes follow the clock's hands instead.
#[derive(Clone, Debug)]
pub struct Times {
    cron: Cron,
    zone: TimeZone,
    /// True if hours and minutes are values, lists or ranges: times of day.
    is_by_day: bool,
}

impl Times {
    /// Parses a cron expression of five fields.
    pub fn parse(cron: &str, zone: TimeZone) -> Result<Self, InvalidCron> {
        let fields = cron.split_whitespace().count();
        if fields != 5 {
            return Err(InvalidCron::Fields(fields));
        }
        let is_by_day =
            cron.split_whitespace().take(2).all(|field| !field.contains(['*', '/', '?']));
        let cron = parse(cron).ok_or_else(|| problem(cron))?;
        let times = Self { cron, zone, is_by_day };
        match times.after(Timestamp::UNIX_EPOCH) {
            Some(_) => Ok(times),
            None => Err(InvalidCron::Never),
        }
    }

    /// First planned time after `time`.
    pub fn after(&self, time: Timestamp) -> Option<Timestamp> {
        if self.is_by_day {
            let mut day = self.reading(time);
            loop {
                day = self.cron.find_next_occurrence(&day, false).ok()?;
                // Skipped times share one instant, and repeated ones may have passed.
                if let Some(found) = self.instant(&day).filter(|found| *found > time) {
                    return Some(found);
                }
            }
        }
        let found = self.cron.find_next_occurrence(&time.to_zoned(self.zone.clone()), false);
        found.ok().map(|found| found.timestamp()).filter(|found| *found > time)
    }

    /// Last planned time at `time` or before it.
    pub fn until(&self, time: Timestamp) -> Option<Timestamp> {
        if self.is_by_day {
            // After the clock went back, later readings have passed already.
            let back = self.offset(time - SignedDuration::from_hours(25)) - self.offset(time);
            let back = SignedDuration::from_secs(back.max(0).into());
            let mut day = self.reading(time).checked_add(back).ok()?;
            let mut is_inclusive = true;
            loop {
                day = self.cron.find_previous_occurrence(&day, is_inclusive).ok()?;
                is_inclusive = false;
                if let Some(found) = self.instant(&day).filter(|found| *found <= time) {
                    return Some(found);
                }
            }
        }
        let found = self.cron.find_previous_occurrence(&time.to_zoned(self.zone.clone()), true);
        found.ok().map(|found| found.timestamp()).filter(|found| *found <= time)
    }

    /// Reading of the clock at a time, as a time of a zone without changes.
    fn reading(&self, time: Timestamp) -> Zoned {
        let reading = time.to_zoned(self.zone.clone()).datetime();
        reading.to_zoned(TimeZone::UTC).unwrap_or_else(|_| time.to_zoned(TimeZone::UTC))
    }

    /// Instant of a reading: the first one of two, or the end of the gap that skips it.
    fn instant(&self, reading: &Zoned) -> Option<Timestamp> {
        let found = self.zone.to_ambiguous_timestamp(reading.datetime());
        if let AmbiguousOffset::Gap { .. } = found.offset() {
            let later = found.later().ok()?;
            let change = self.zone.preceding(later + SignedDuration::from_secs(1)).next()?;
            return Some(change.timestamp());
        }
        found.earlier().ok()
    }

    /// Offset of the zone from UTC, in seconds.
    fn offset(&self, time: Timestamp) -> i32 {
        self.zone.to_offset(time).seconds()
    }

    /// The time in the zone of the schedule (RFC 3339), for people.
    pub fn format_local(&self, time: Timestamp) -> String {
        time.to_zoned(self.zone.clone()).strftime("%Y-%m-%dT%H:%M:%S%:z").to_string()
    }
}

/// Fields of an expression in their order, with their values.
const FIELDS: [(&str, &str); 5] = [
    ("minute", "0 to 59"),
    ("hour", "0 to 23"),
    ("day of month", "1 to 31"),
    ("month", "1 to 12 or JAN to DEC"),
    ("day of week", "0 (Sunday) to 6 or SUN to SAT"),
];

fn parse(cron: &str) -> Option<Cron> {
    let parser = CronParser::builder().seconds(Seconds::Disallowed).year(Year::Disallowed);
    parser.build().parse(cron).ok()
}

/// Finds the first field that is invalid alone.
fn problem(cron: &str) -> InvalidCron {
    let fields = cron.split_whitespace().zip(FIELDS).enumerate();
    let mut wrong = fields.filter(|(index, (written, _))| {
        let mut alone = ["*"; FIELDS.len()];
        alone[*index] = *written;
        parse(&alone.join(" ")).is_none()
    });
    match wrong.next() {
        Some((_, (written, (name, values)))) => {
            let written = written.chars().take(MAX_QUOTED).collect();
            InvalidCron::Field { name, written, values }
        }
        None => InvalidCron::Form,
    }
}

/// Rule for a planned time at which the previous run is still at work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Overlap {
    /// The planned time gets no run.
    #[default]
    Skip,
    /// The run starts after the previous one; at most one waits.
    Queue,
    /// The previous run is cancelled.
    Replace,
}

/// Rule for planned times at which the hub did not run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Missed {
    /// The latest of them gets a run as soon as the hub runs.
    #[default]
    Once,
    /// None of them gets a run.
    Skip,
}

/// A schedule: its planned times, and its rules.
#[derive(Clone, Debug)]
pub struct SchedulePlan {
    /// Planned times.
    pub times: Times,
    /// Rule for overlapping runs.
    pub overlap: Overlap,
    /// Rule for missed times.
    pub missed: Missed,
    /// Upper bound of the delay of a run after its planned time.
    pub jitter: Duration,
}

/// Durable state of a schedule.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct State {
    /// Expression and zone that the state belongs to: with other ones, planned times of the past
    /// were not missed.
    pub rule: String,
    /// Time up to which planned times are dealt with, in milliseconds since the Unix epoch.
    pub done_until_ms: i64,
    /// Planned time whose run waits for the end of the previous one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queued_ms: Option<i64>,
    /// True if the operator paused the schedule.
    pub paused: bool,
    /// Planned time of the latest run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_planned_ms: Option<i64>,
    /// Id of the task of the latest run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_task: Option<String>,
    /// Note about planned times without a run, such as missed ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

impl State {
    /// State of a schedule that is seen for the first time.
    pub fn new(rule: &str, now: Timestamp) -> Self {
        let done_until_ms = now.as_millisecond();
        Self { rule: rule.to_owned(), done_until_ms, ..Self::default() }
    }

    /// Adapts the state to the configured rule and to a corrected clock; returns true if it
    /// changed.
    pub fn follow(&mut self, rule: &str, now: Timestamp) -> bool {
        let is_ahead = at(self.done_until_ms).duration_since(now) > CLOCK_WAS_WRONG;
        if self.rule == rule && !is_ahead {
            return false;
        }
        rule.clone_into(&mut self.rule);
        self.done_until_ms = now.as_millisecond();
        self.queued_ms = None;
        true
    }

    /// Pauses or resumes the schedule. Planned times during the pause count as dealt with.
    pub fn pause(&mut self, paused: bool, now: Timestamp) {
        if self.paused && !paused {
            self.done_until_ms = self.done_until_ms.max(now.as_millisecond());
            self.queued_ms = None;
        }
        self.paused = paused;
    }

    /// Marks a planned time as dealt with.
    pub fn done(&mut self, planned: Timestamp) {
        let planned = planned.as_millisecond();
        self.done_until_ms = self.done_until_ms.max(planned);
        if self.queued_ms == Some(planned) {
            self.queued_ms = None;
        }
    }

    /// Marks a planned time as waiting for the end of the previous run.
    pub fn queue(&mut self, planned: Timestamp) {
        self.done(planned);
        self.queued_ms = Some(planned.as_millisecond());
    }
}

/// A planned time that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Due {
    /// Planned time.
    pub planned: Timestamp,
    /// Number of earlier planned times that get no run; [`MAX_COUNTED`] means that many or more.
    pub missed: u32,
    /// True if the hub did not run at the planned time.
    pub is_late: bool,
}

/// Reason for a planned time without a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Skipped {
    /// The previous run is still at work.
    Running,
    /// Another run already waits for the previous one.
    Queued,
    /// The hub did not run at that time.
    Missed,
}

/// Step that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Nothing is due before this time; without a time, nothing is due at all.
    Wait(Option<Timestamp>),
    /// Start a run.
    Start(Due),
    /// Cancel the previous run, and start another one.
    Replace(Due),
    /// Let the run wait for the previous one.
    Queue(Due),
    /// Start no run for the planned time.
    Skip(Due, Skipped),
}

impl SchedulePlan {
    /// Step of the schedule `name` at the time `now`. `is_running` says if its latest run is still
    /// at work.
    pub fn step(&self, name: &str, state: &State, is_running: bool, now: Timestamp) -> Step {
        if state.paused {
            return Step::Wait(None);
        }
        if let Some(queued) = state.queued_ms.filter(|_| !is_running) {
            return Step::Start(Due { planned: at(queued), missed: 0, is_late: false });
        }
        let done = at(state.done_until_ms);
        let Some(due) = self.due(name, done, now) else {
            return Step::Wait(self.times.after(done).map(|next| next + self.delay(name, next)));
        };
        match self.overlap {
            _ if due.is_late && self.missed == Missed::Skip => Step::Skip(due, Skipped::Missed),
            _ if !is_running => Step::Start(due),
            Overlap::Skip => Step::Skip(due, Skipped::Running),
            Overlap::Queue if state.queued_ms.is_some() => Step::Skip(due, Skipped::Queued),
            Overlap::Queue => Step::Queue(due),
            Overlap::Replace => Step::Replace(due),
        }
    }

    /// Next planned time that a schedule in this state gets a run for.
    pub fn next(&self, state: &State, now: Timestamp) -> Option<Timestamp> {
        let after = at(state.done_until_ms).max(now);
        (!state.paused).then(|| self.times.after(after)).flatten()
    }

    /// Latest planned time after `done` whose delay is over.
    fn due(&self, name: &str, done: Timestamp, now: Timestamp) -> Option<Due> {
        let mut planned = self.times.until(now).filter(|planned| *planned > done)?;
        while planned + self.delay(name, planned) > now {
            let before = planned - SignedDuration::from_secs(1);
            planned = self.times.until(before).filter(|planned| *planned > done)?;
        }
        let (mut missed, mut earlier) = (0, self.times.after(done));
        while let Some(time) = earlier.filter(|time| *time < planned && missed < MAX_COUNTED) {
            missed += 1;
            earlier = self.times.after(time);
        }
        let late = now.duration_since(planned + self.delay(name, planned));
        Some(Due { planned, missed, is_late: late > ON_TIME })
    }

    /// Delay of a run after its planned time, by name and time: the same in each process, and
    /// shorter than the pause to the next planned time, so that runs keep their order.
    fn delay(&self, name: &str, planned: Timestamp) -> SignedDuration {
        let jitter_ms = self.jitter.as_millis();
        if jitter_ms == 0 {
            return SignedDuration::ZERO;
        }
        let pause = self.times.after(planned).map(|next| next.duration_since(planned).as_millis());
        let pause = pause.and_then(|pause| u128::try_from(pause).ok()).unwrap_or(jitter_ms);
        // FNV-1a: stable over versions, unlike the hasher of the standard library.
        let bytes = name.bytes().chain(planned.as_second().to_le_bytes());
        let hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        let delay = u128::from(hash) % jitter_ms.min(pause).max(1);
        SignedDuration::from_millis(i64::try_from(delay).unwrap_or_default())
    }
}

/// Time of a number of milliseconds since the Unix epoch.
pub fn at(ms: i64) -> Timestamp {
    Timestamp::from_millisecond(ms).unwrap_or(Timestamp::UNIX_EPOCH)
}

#[cfg(test)]
mod tests;
