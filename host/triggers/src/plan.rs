//! Plan of a trigger: the step that is due, by what was observed and by the time.
//!
//! ```text
//!             observe                  debounce over
//! no event ───────────► events pending ────────────► Start ──► held until a poll after it
//!                            │ run at work               │
//!                            ├ skip: no run              └ limit reached: Stop, until resumed
//!                            └ queue: wait, replace
//! ```
//!
//! Two rules keep a trigger from firing for its own effects for ever. With [`Overlap::Skip`],
//! changes count for no run until a poll after the run's end has seen them all: they may be
//! its own. And whatever the cause, more than [`TriggerPlan::limit`] runs within an hour stop the
//! trigger until the operator resumes it.

use crate::{
    heads::{self, Heads},
    trigger_event::{Happenings, TriggerEvent},
};
use a2a_hub_clock::schedule::Overlap;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Period of the limit, in milliseconds.
const HOUR_MS: i64 = 60 * 60 * 1_000;

/// Longest wait of an event for a pause among further ones, as a multiple of the debounce time.
const LONGEST_HOLD: i64 = 10;

/// Rules of a trigger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TriggerPlan {
    /// Rule for events during a run.
    pub overlap: Overlap,
    /// Pause without events that a run waits for.
    pub debounce: Duration,
    /// Most runs within an hour; one more event stops the trigger.
    pub limit: u32,
}

/// Number of webhooks that a trigger remembers, so that none starts two runs.
pub const MAX_DELIVERIES: usize = 512;

/// Period in which a trigger takes [`MAX_DELIVERIES`] webhooks at most, in milliseconds: twice the
/// difference of clocks that a signature allows, so that none is forgotten while it is valid.
const DELIVERY_PERIOD_MS: i64 = 10 * 60 * 1_000;

/// Time for which a webhook is remembered, in milliseconds: GitHub delivers one again for three
/// days.
const REMEMBERED_MS: i64 = 4 * 24 * 60 * 60 * 1_000;

/// Durable state of a trigger.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TriggerState {
    /// Configuration that the state belongs to: with another one, nothing happened before.
    pub rule: String,
    /// Tenant whose events were observed; empty for the default one. Its cursors say nothing about
    /// another tenant.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub tenant: String,
    /// Branches as last read; none before the first poll.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub heads: Option<Heads>,
    /// Position of the latest message of topics that was read; none before the first poll.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub topics_after: Option<u64>,
    /// Number of groups of events so far.
    pub number: u64,
    /// Events that wait for their run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pending: Option<PendingEvents>,
    /// Events whose run is being started: its task may exist already. Later events are others'.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub starting: Option<PendingEvents>,
    /// Latest webhooks, oldest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub deliveries: Vec<KnownDelivery>,
    /// Starts of runs within the last hour.
    pub starts_ms: Vec<i64>,
    /// True from the start of a run to the first poll after its end.
    pub held: bool,
    /// True if the operator paused the trigger.
    pub paused: bool,
    /// True if the limit stopped the trigger.
    pub stopped: bool,
    /// Start of the latest run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_ms: Option<i64>,
    /// Id of the task of the latest run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_task: Option<String>,
    /// Note about events without a run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// Webhook that a trigger took.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct KnownDelivery {
    /// See [`VerifiedWebhook::key`](crate::webhook::VerifiedWebhook::key).
    pub key: String,
    /// Time in milliseconds since the Unix epoch.
    pub at_ms: i64,
}

/// Result of a look whether a webhook is new.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeliveryNews {
    /// It is new, and recorded.
    New,
    /// It was taken before.
    Repeated,
    /// Too many came within the last minutes.
    RateLimited,
}

/// Group of events that gets one run.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PendingEvents {
    /// Number of the group.
    pub number: u64,
    /// Time of the first event, in milliseconds since the Unix epoch.
    pub first_ms: i64,
    /// Time of the latest event.
    pub latest_ms: i64,
    /// True if the events came while another run was being started. They wait for its end where
    /// events during a run are skipped, since they are not its effects.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub waits: bool,
    /// The events.
    #[serde(flatten)]
    pub happenings: Happenings,
}

/// Step that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TriggerStep {
    /// Nothing is due before this time, in milliseconds since the Unix epoch; without a time, only
    /// an event or the end of a run makes something due.
    Wait(Option<i64>),
    /// Start a run.
    Start,
    /// Cancel the previous run, and start another one.
    Replace,
    /// Start no run for the events: the previous run is still at work.
    Skip,
    /// Start no run, and stop the trigger: the limit is reached.
    Stop,
}

impl TriggerState {
    /// Adapts the state to the configured rule; returns true if it changed.
    pub fn follow(&mut self, rule: &str) -> bool {
        if self.rule == rule {
            return false;
        }
        rule.clone_into(&mut self.rule);
        self.forget_events();
        true
    }

    /// Adapts the state to the tenant for which the runs begin; events of another one start none.
    pub fn follow_tenant(&mut self, tenant: &str) {
        if self.tenant != tenant {
            tenant.clone_into(&mut self.tenant);
            self.forget_events();
        }
    }

    /// Drops the events that wait for a run, and the baseline of later ones.
    pub fn forget_events(&mut self) {
        (self.heads, self.topics_after) = (None, None);
        (self.pending, self.starting) = (None, None);
    }

    /// True if events count for runs now.
    pub fn is_active(&self) -> bool {
        !self.paused && !self.stopped
    }

    /// Replaces the known branches; returns the events in between.
    pub fn see_heads(&mut self, heads: Heads) -> Vec<TriggerEvent> {
        let changes = self.heads.as_ref().map(|before| heads::changes(before, &heads));
        self.heads = Some(heads);
        changes.unwrap_or_default()
    }

    /// Records a webhook by its key, unless it is known.
    pub fn take_delivery(&mut self, key: &str, now_ms: i64) -> DeliveryNews {
        self.deliveries.retain(|known| now_ms.saturating_sub(known.at_ms) < REMEMBERED_MS);
        if self.deliveries.iter().any(|known| known.key == key) {
            return DeliveryNews::Repeated;
        }
        let is_full = self.deliveries.len() >= MAX_DELIVERIES;
        if let Some(oldest) = self.deliveries.first().filter(|_| is_full) {
            if (0..DELIVERY_PERIOD_MS).contains(&now_ms.saturating_sub(oldest.at_ms)) {
                return DeliveryNews::RateLimited;
            }
            self.deliveries.remove(0);
        }
        self.deliveries.push(KnownDelivery { key: key.to_owned(), at_ms: now_ms });
        DeliveryNews::New
    }

    /// Records events of a poll that began after `is_running`, the state of the latest run, was
    /// known. Returns true if they wait for a run.
    pub fn observe(
        &mut self,
        plan: &TriggerPlan,
        events: Vec<TriggerEvent>,
        is_running: bool,
        now_ms: i64,
    ) -> bool {
        let was_busy = self.held;
        self.held &= is_running;
        if events.is_empty() || !self.is_active() {
            return false;
        }
        if plan.overlap == Overlap::Skip && (was_busy || is_running) {
            self.note = Some(skipped(events.len()));
            return false;
        }
        if self.pending.is_none() {
            self.number += 1;
        }
        let pending = self.pending.get_or_insert_with(|| PendingEvents {
            number: self.number,
            first_ms: now_ms,
            latest_ms: now_ms,
            waits: false,
            happenings: Happenings::default(),
        });
        pending.latest_ms = now_ms;
        events.into_iter().for_each(|event| pending.happenings.add(event));
        if pending.happenings.is_empty() {
            self.pending = None;
        }
        self.pending.is_some()
    }

    /// Events of the run that is to be started. They are frozen: once the state is stored, the task
    /// can be created, and a hub that is killed then finds it by the same events.
    pub fn begin_run(&mut self) -> Option<PendingEvents> {
        if self.starting.is_none() {
            self.starting = self.pending.take();
        }
        self.starting.clone()
    }

    /// Lets the events wait again, because no task was created. Later events join them.
    pub fn postpone_run(&mut self) {
        let Some(mut starting) = self.starting.take() else { return };
        if let Some(later) = self.pending.take() {
            starting.latest_ms = later.latest_ms;
            starting.happenings.join(later.happenings);
        }
        self.pending = Some(starting);
    }

    /// Records the start of a run as this task.
    pub fn started(&mut self, task: &str, now_ms: i64) {
        self.starts_ms.retain(|start| is_recent(*start, now_ms));
        self.starts_ms.push(now_ms);
        if let Some(pending) = self.pending.as_mut().filter(|_| self.starting.is_some()) {
            pending.waits = true;
        }
        (self.starting, self.note, self.held) = (None, None, true);
        (self.last_ms, self.last_task) = (Some(now_ms), Some(task.to_owned()));
    }

    /// Drops the pending events, whose run is skipped.
    pub fn skip(&mut self) {
        let count = self.pending.take().map_or(0, |pending| pending.happenings.count());
        self.note = Some(skipped(count));
    }

    /// Stops the trigger, because its limit is reached.
    pub fn stop(&mut self, limit: u32) {
        (self.pending, self.stopped) = (None, true);
        let runs = if limit == 1 { "one run".to_owned() } else { format!("{limit} runs") };
        self.note = Some(format!(
            "it was stopped: an event came after {runs} within an hour; it may fire for its own effects"
        ));
    }

    /// Pauses or resumes the trigger. Events during a pause get no run.
    pub fn pause(&mut self, paused: bool) {
        if !paused && self.is_active() {
            return;
        }
        if !paused && self.stopped {
            (self.stopped, self.note) = (false, None);
            self.starts_ms.clear();
        }
        self.forget_events();
        self.paused = paused;
    }
}

impl TriggerPlan {
    /// Step of a trigger at this time. `is_running` says if its latest run is still at work.
    pub fn step(&self, state: &TriggerState, is_running: bool, now_ms: i64) -> TriggerStep {
        if state.starting.is_some() && state.is_active() {
            let replaces = is_running && self.overlap == Overlap::Replace;
            return if replaces { TriggerStep::Replace } else { TriggerStep::Start };
        }
        let Some(pending) = state.pending.as_ref().filter(|_| state.is_active()) else {
            return TriggerStep::Wait(None);
        };
        let debounce = i64::try_from(self.debounce.as_millis()).unwrap_or(HOUR_MS);
        let settled = pending.latest_ms.saturating_add(debounce);
        let longest = debounce.saturating_mul(LONGEST_HOLD).saturating_add(pending.first_ms);
        let due = settled.min(longest);
        // A clock that was set back must not hold the events until it catches up.
        if (pending.latest_ms..due).contains(&now_ms) {
            return TriggerStep::Wait(Some(due));
        }
        match self.overlap {
            Overlap::Skip if is_running && pending.waits => return TriggerStep::Wait(None),
            Overlap::Skip if is_running => return TriggerStep::Skip,
            Overlap::Queue if is_running => return TriggerStep::Wait(None),
            Overlap::Skip | Overlap::Queue | Overlap::Replace => {}
        }
        let recent = state.starts_ms.iter().filter(|start| is_recent(**start, now_ms)).count();
        if recent >= usize::try_from(self.limit).unwrap_or(usize::MAX) {
            return TriggerStep::Stop;
        }
        if is_running { TriggerStep::Replace } else { TriggerStep::Start }
    }
}

/// True if a start is less than an hour away, in either direction: a clock may be set back.
fn is_recent(start_ms: i64, now_ms: i64) -> bool {
    now_ms.abs_diff(start_ms) < HOUR_MS.unsigned_abs()
}

fn skipped(events: usize) -> String {
    let events = if events == 1 { "one event".to_owned() } else { format!("{events} events") };
    format!("{events} during the latest run got no run, since they may be its own effects")
}

#[cfg(test)]
mod tests;
