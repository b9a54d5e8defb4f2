//! Schedules of the configuration: their plans, and their states in the store.

use a2a_hub_clock::schedule::{SchedulePlan, State};
use a2a_hub_config::Schedule;
use a2a_hub_protocol::{id::TaskId, scheduled::ScheduledRun};
use a2a_hub_store::{ScheduleStates, StorageError};
use jiff::Timestamp;
use parking_lot::Mutex;
use ring::digest::{SHA256, digest};
use std::{
    collections::{BTreeMap, btree_map::Entry},
    sync::Arc,
};
use tokio::sync::{Mutex as AsyncMutex, MutexGuard, Notify};

/// Clock of the schedules: the time of day.
pub type WallClock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// A schedule of the configuration, with its plan.
pub struct Planned {
    /// Section of the configuration.
    pub config: Schedule,
    /// Its plan.
    pub plan: SchedulePlan,
}

/// Schedules and their states. The states are locked while a step is carried out, so that none is
/// carried out twice.
pub struct Schedules {
    store: Arc<dyn ScheduleStates>,
    clock: WallClock,
    planned: Mutex<BTreeMap<String, Arc<Planned>>>,
    states: AsyncMutex<Option<States>>,
    /// Notified when something may be due earlier than known.
    pub changed: Notify,
}

/// Cached states, by the names of the schedules.
pub type States = BTreeMap<String, KnownState>;

/// State of a schedule in this process.
#[derive(Default)]
pub struct KnownState {
    /// Durable state.
    pub state: State,
    /// True if the latest run is known to be over.
    pub is_over: bool,
    /// Number of failed attempts to start the run that is due.
    pub attempts: u32,
}

impl Schedules {
    /// Creates the schedules of a configuration, which has been checked.
    pub fn new(
        store: Arc<dyn ScheduleStates>,
        config: &BTreeMap<String, Schedule>,
        clock: WallClock,
    ) -> Self {
        let (planned, states) = (Mutex::new(plans(config)), AsyncMutex::default());
        Self { store, clock, planned, states, changed: Notify::new() }
    }

    /// Replaces the schedules by those of a reloaded configuration.
    pub fn follow(&self, config: &BTreeMap<String, Schedule>) {
        *self.planned.lock() = plans(config);
        self.changed.notify_one();
    }

    /// Current time.
    pub fn now(&self) -> Timestamp {
        (self.clock)()
    }

    /// All schedules, by name.
    pub fn all(&self) -> BTreeMap<String, Arc<Planned>> {
        self.planned.lock().clone()
    }

    /// Locks the states, with one for each of these schedules and for no other.
    pub async fn states(
        &self,
        planned: &BTreeMap<String, Arc<Planned>>,
    ) -> Result<StatesGuard<'_, KnownState>, StorageError> {
        let mut guard = self.states.lock().await;
        let mut states = match guard.take() {
            Some(states) => states,
            None => {
                let stored = self.store.schedules().await?.into_iter();
                stored
                    .map(|(name, state)| (name, KnownState { state, ..KnownState::default() }))
                    .collect()
            }
        };
        let now = self.now();
        let brought = self.bring_up_to_date(&mut states, planned, now).await;
        *guard = Some(states);
        brought.map(|()| StatesGuard::new(guard))
    }

    /// Stores the state of each new schedule, so that a killed hub knows which times it missed, and
    /// deletes those of removed ones.
    async fn bring_up_to_date(
        &self,
        states: &mut States,
        planned: &BTreeMap<String, Arc<Planned>>,
        now: Timestamp,
    ) -> Result<(), StorageError> {
        for (name, planned) in planned {
            let rule = planned.config.rule();
            match states.entry(name.clone()) {
                Entry::Vacant(vacant) => {
                    let state = State::new(&rule, now);
                    self.store.set_schedule(name, &state).await?;
                    vacant.insert(KnownState { state, ..KnownState::default() });
                }
                Entry::Occupied(mut known) => {
                    let mut state = known.get().state.clone();
                    if state.follow(&rule, now) {
                        self.store.set_schedule(name, &state).await?;
                        known.get_mut().state = state;
                    }
                }
            }
        }
        let removed: Vec<_> =
            states.keys().filter(|name| !planned.contains_key(*name)).cloned().collect();
        for name in removed {
            self.store.forget_schedule(&name).await?;
            states.remove(&name);
        }
        Ok(())
    }

    /// Stores a state.
    pub async fn store(&self, name: &str, state: &State) -> Result<(), StorageError> {
        self.store.set_schedule(name, state).await
    }
}

/// Locked states of all schedules or triggers, by their names.
pub struct StatesGuard<'s, S>(MutexGuard<'s, Option<BTreeMap<String, S>>>);

impl<'s, S> StatesGuard<'s, S> {
    pub(crate) fn new(locked: MutexGuard<'s, Option<BTreeMap<String, S>>>) -> Self {
        Self(locked)
    }

    /// State of the schedule or trigger of this name.
    pub fn get_mut(&mut self, name: &str) -> Option<&mut S> {
        self.0.as_mut()?.get_mut(name)
    }
}

/// Plans of the valid schedules; a configuration with an invalid one is refused before.
fn plans(config: &BTreeMap<String, Schedule>) -> BTreeMap<String, Arc<Planned>> {
    let plan = |(name, config): (&String, &Schedule)| match config.plan(name) {
        Ok(plan) => Some((name.clone(), Arc::new(Planned { config: config.clone(), plan }))),
        Err(why) => {
            tracing::warn!(schedule = name, %why, "invalid schedule ignored");
            None
        }
    };
    config.iter().filter_map(plan).collect()
}

/// Id of the task of a planned time: the same in each process, so that the log, which has one task
/// of an id, gets one run of each planned time. The id is a version 7 UUID, which sorts by time.
pub fn task_of(run: &ScheduledRun, planned: Timestamp) -> TaskId {
    task_id(&format!("schedule:{}:{}", run.name, run.planned), planned.as_millisecond())
}

/// Id of a task that follows from the name of a run and its time.
pub fn task_id(run: &str, ms: i64) -> TaskId {
    let digest = digest(&SHA256, run.as_bytes());
    let mut random = [0; 10];
    random.copy_from_slice(&digest.as_ref()[..10]);
    let ms = u64::try_from(ms).unwrap_or_default();
    let id = uuid::Builder::from_unix_timestamp_millis(ms, &random).into_uuid();
    TaskId::new(id.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use a2a_hub_protocol::scheduled::{AnswerRule, RestartRule};

    /// A hub of another version must find the task that this one began.
    #[test]
    fn task_id_follows_from_planned_time() {
        let id = |name: &str, planned: &str| {
            let time: Timestamp = planned.parse().unwrap();
            let (name, planned) = (name.to_owned(), format!("{time:.3}"));
            let (answers, on_restart) = (AnswerRule::Deny, RestartRule::Again);
            task_of(&ScheduledRun { name, planned, answers, on_restart }, time)
        };
        let nightly = id("nightly", "2026-06-01T03:00:00Z");
        assert_eq!(nightly.as_str(), "019e811f-b780-7739-aea5-37eee3339546");
        assert_eq!(nightly.created_ms(), Some(1_780_282_800_000), "it sorts by its time");
        assert_ne!(nightly, id("weekly", "2026-06-01T03:00:00Z"));
        assert_ne!(nightly, id("nightly", "2026-06-01T03:00:01Z"));
    }
}
