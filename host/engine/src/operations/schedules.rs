//! Schedules: sends their messages at the planned times, and lets the operator run and pause them.
//!
//! A run is created in three steps: the plan says which planned time is due, the task is created
//! under the id of that planned time, and the time is marked as dealt with. A hub that is killed
//! between two of them repeats the step: the planned time is due again, and finds its task.

use super::{
    Hub,
    automation::{
        ATTEMPTS, AutomationRunner, OwnedRuns, OwnerInfo, RunRefusal, find_named, is_at_work,
        owned, replace, start_run, state_of, suspension_error,
    },
    triggers::TriggerOperations,
};
use crate::error::HubError;
use a2a_hub_automation::{
    Schedules,
    message::of_schedule,
    schedules::{KnownState, Planned, task_of},
    triggers::{WebhookRefusal, WebhookResult},
};
use a2a_hub_clock::schedule::{Due, MAX_COUNTED, Skipped, Step, at};
use a2a_hub_config::Schedule;
use a2a_hub_core::{
    access_control::Caller,
    identity::{AutomationKind, AutomationSuspended},
};
use a2a_hub_protocol::{
    error::{A2aError, ErrorKind},
    id::TaskId,
    operation::{Answer, ScheduleInfo, ScheduleRun, TriggerRequest},
    scheduled::ScheduledRun,
};
use a2a_hub_triggers::webhook::WebhookRequest;
use jiff::Timestamp;
use std::{collections::BTreeMap, sync::Arc, time::Duration};
use tokio::time::timeout;

/// Longest pause between two looks at the clock: timers neither follow a clock that is set, nor
/// count the time that a machine sleeps.
const POLL_INTERVAL: Duration = Duration::from_secs(2);

impl Hub {
    /// Carries schedules and triggers out, for as long as the hub runs.
    pub async fn keep_automations(self) {
        let triggers = async {
            if let Ok(triggers) = TriggerOperations::new(&self) {
                triggers.run_loop().await;
            }
        };
        tokio::join!(self.keep_schedules(), triggers);
    }

    /// Carries the schedules out, for as long as the hub runs.
    async fn keep_schedules(&self) {
        let Some(schedules) = self.schedules.clone() else { return };
        loop {
            let is_closed = self.require_open().is_err();
            let pause =
                if is_closed { Some(POLL_INTERVAL) } else { self.carry_out_schedules().await };
            match pause {
                // Either end of the wait is a reason to look again.
                Some(pause) => drop(timeout(pause, schedules.changed.notified()).await),
                None => schedules.changed.notified().await,
            }
        }
    }

    /// Carries out what is due now. Returns the pause until the next look; none if the
    /// configuration has no schedules.
    async fn carry_out_schedules(&self) -> Option<Duration> {
        let schedules = self.schedules.clone()?;
        let planned = schedules.all();
        let mut states = match schedules.states(&planned).await {
            Ok(states) => states,
            Err(why) => {
                tracing::warn!(%why, "cannot read the states of the schedules, trying again");
                return Some(POLL_INTERVAL);
            }
        };
        let mut pause = POLL_INTERVAL;
        for (name, planned) in &planned {
            let Some(known_state) = states.get_mut(name) else { continue };
            match Box::pin(self.carry_out_due(&schedules, name, planned, known_state)).await {
                Ok(Some(next)) => {
                    let remaining = next.duration_since(schedules.now());
                    pause = pause.min(Duration::try_from(remaining).unwrap_or_default());
                }
                Ok(None) => {}
                Err(why) => {
                    let why = A2aError::from(why);
                    tracing::warn!(schedule = name, %why, "cannot carry out a schedule, trying again");
                }
            }
        }
        (!planned.is_empty()).then_some(pause)
    }

    /// Carries out the steps of one schedule that are due; returns the time of the next one.
    async fn carry_out_due(
        &self,
        schedules: &Schedules,
        name: &str,
        planned: &Planned,
        known_state: &mut KnownState,
    ) -> Result<Option<Timestamp>, HubError> {
        loop {
            let last = known_state.state.last_task.as_ref();
            let is_running = is_at_work(self, last, &mut known_state.is_over).await?;
            let step = planned.plan.step(name, &known_state.state, is_running, schedules.now());
            let mut state = known_state.state.clone();
            let mut is_over = known_state.is_over;
            match step {
                Step::Wait(next) => return Ok(next),
                Step::Queue(due) => {
                    state.queue(due.planned);
                    state.note = missed_note(due);
                }
                Step::Skip(due, why) => {
                    state.done(due.planned);
                    let at = planned.plan.times.format_local(due.planned);
                    let note = skipped_note(&at, due, why);
                    tracing::warn!(schedule = name, "{note}");
                    state.note = Some(note);
                }
                Step::Start(due) | Step::Replace(due) => {
                    let by = match self.schedule_runner(name, &planned.config) {
                        Ok(runner) => runner.by,
                        Err(suspended) => {
                            state.done(due.planned);
                            let at = planned.plan.times.format_local(due.planned);
                            let note = format!("{at} got no run: {suspended}");
                            tracing::warn!(schedule = name, "{note}");
                            state.note = Some(note);
                            schedules.store(name, &state).await?;
                            *known_state = KnownState { state, is_over, attempts: 0 };
                            continue;
                        }
                    };
                    if let (Step::Replace(_), Some(before)) = (step, &state.last_task) {
                        replace(self, &by, &TaskId::new(before.as_str())).await?;
                    }
                    let run = run_of(name, &planned.config, due.planned);
                    let id = task_of(&run, due.planned);
                    match start_run(self, &by, of_schedule(&planned.config, &run), id).await {
                        Ok(task) => {
                            state.last_planned_ms = Some(due.planned.as_millisecond());
                            state.note = missed_note(due);
                            if let Some(note) = &state.note {
                                tracing::warn!(schedule = name, %task, "{note}");
                            }
                            tracing::info!(schedule = name, %task, "a schedule started a task");
                            (state.last_task, is_over) = (Some(task.to_string()), false);
                        }
                        Err(RunRefusal::Unknown(why)) => return Err(why),
                        Err(RunRefusal::Refused(_)) if known_state.attempts + 1 < ATTEMPTS => {
                            known_state.attempts += 1;
                            return Ok(None);
                        }
                        Err(RunRefusal::Refused(why)) => {
                            let at = planned.plan.times.format_local(due.planned);
                            let note = format!("the run of {at} did not start: {why}");
                            tracing::warn!(schedule = name, "{note}");
                            state.note = Some(note);
                        }
                    }
                    state.done(due.planned);
                }
            }
            schedules.store(name, &state).await?;
            *known_state = KnownState { state, is_over, attempts: 0 };
        }
    }

    /// Carries out a request for triggers.
    pub(super) async fn perform_on_triggers(
        &self,
        caller: &Caller,
        request: TriggerRequest,
    ) -> Result<Answer, HubError> {
        TriggerOperations::new(self)?.perform(caller, request).await
    }

    /// Takes a webhook for the trigger `name`. Its signature is the sender's only right.
    ///
    /// # Errors
    ///
    /// See [`WebhookRefusal`]; the event is not stored then.
    pub async fn take_webhook(
        &self,
        name: String,
        request: WebhookRequest,
    ) -> Result<WebhookResult, WebhookRefusal> {
        self.require_open().map_err(|_| WebhookRefusal::Interrupted)?;
        let triggers = self.triggers.clone().ok_or(WebhookRefusal::Unknown)?;
        let owner = triggers.all().get(&name).and_then(|known| known.config.owner.clone());
        let is_suspended =
            OwnedRuns(self).runner(AutomationKind::Trigger, &name, owner.as_ref()).is_err();
        triggers.take_webhook(name, is_suspended, request).await
    }

    fn schedules(&self) -> Result<Arc<Schedules>, HubError> {
        self.schedules.clone().ok_or_else(|| {
            let why = "this hub was built without schedules";
            A2aError::new(ErrorKind::UnsupportedOperation, why).into()
        })
    }

    fn schedule(schedules: &Schedules, name: &str) -> Result<Arc<Planned>, HubError> {
        find_named(schedules.all(), "schedule", name)
    }

    /// Lists the schedules that a caller sees.
    pub(super) async fn list_schedules(&self, caller: &Caller) -> Result<Answer, HubError> {
        let schedules = self.schedules()?;
        let mut all = Vec::new();
        for name in self.visible_schedules(&schedules, caller).keys() {
            all.push(self.schedule_info(&schedules, name).await?);
        }
        Ok(Answer::Schedules(all))
    }

    fn visible_schedules(
        &self,
        schedules: &Schedules,
        caller: &Caller,
    ) -> BTreeMap<String, Arc<Planned>> {
        let mut all = schedules.all();
        all.retain(|name, it| {
            OwnedRuns(self).sees_automation(caller, &self.schedule_owner(name, &it.config))
        });
        all
    }

    fn schedule_owner(&self, name: &str, config: &Schedule) -> OwnerInfo {
        OwnedRuns(self).owner_info(AutomationKind::Schedule, name, config.owner.as_ref())
    }

    fn schedule_runner(
        &self,
        name: &str,
        config: &Schedule,
    ) -> Result<AutomationRunner, AutomationSuspended> {
        OwnedRuns(self).runner(AutomationKind::Schedule, name, config.owner.as_ref())
    }

    /// Accepts a schedule that passed to the calling person.
    pub(super) async fn accept_schedule(
        &self,
        caller: &Caller,
        name: &str,
    ) -> Result<Answer, HubError> {
        let schedules = self.schedules()?;
        let planned = find_named(self.visible_schedules(&schedules, caller), "schedule", name)?;
        let (kind, config) = (AutomationKind::Schedule, &planned.config);
        let owned = owned(kind, name, config.owner.as_ref())?;
        OwnedRuns(self).accept_automation(caller, &owned, config.agent.as_ref()).await?;
        schedules.changed.notify_one();
        Ok(Answer::Schedule(Box::new(self.schedule_info(&schedules, name).await?)))
    }

    /// Starts a run of a schedule now, for the operator.
    pub(super) async fn run_schedule(&self, name: &str) -> Result<Answer, HubError> {
        let schedules = self.schedules()?;
        let planned = Self::schedule(&schedules, name)?;
        let now = schedules.now();
        let run = run_of(name, &planned.config, now);
        let kind = AutomationKind::Schedule;
        let runner = self.schedule_runner(name, &planned.config);
        let by = runner.map_err(|why| suspension_error(kind, name, &why))?.by;
        let started =
            start_run(self, &by, of_schedule(&planned.config, &run), TaskId::fresh()).await;
        let task = started.map_err(HubError::from)?;
        let mut states = schedules.states(&schedules.all()).await?;
        if let Some(known_state) = states.get_mut(name) {
            let mut state = known_state.state.clone();
            state.last_planned_ms = Some(now.as_millisecond());
            state.last_task = Some(task.to_string());
            schedules.store(name, &state).await?;
            (known_state.state, known_state.is_over) = (state, false);
        }
        Ok(Answer::Task(Box::new(self.tasks.get(&task).await?.task)))
    }

    /// Pauses or resumes a schedule.
    pub(super) async fn pause_schedule(
        &self,
        name: &str,
        paused: bool,
    ) -> Result<Answer, HubError> {
        let schedules = self.schedules()?;
        Self::schedule(&schedules, name)?;
        let mut states = schedules.states(&schedules.all()).await?;
        if let Some(known_state) = states.get_mut(name) {
            let mut state = known_state.state.clone();
            state.pause(paused, schedules.now());
            schedules.store(name, &state).await?;
            known_state.state = state;
        }
        drop(states);
        schedules.changed.notify_one();
        Ok(Answer::Schedule(Box::new(self.schedule_info(&schedules, name).await?)))
    }

    async fn schedule_info(
        &self,
        schedules: &Schedules,
        name: &str,
    ) -> Result<ScheduleInfo, HubError> {
        let planned = Self::schedule(schedules, name)?;
        let state = match schedules.states(&schedules.all()).await?.get_mut(name) {
            Some(known_state) => known_state.state.clone(),
            None => return Err(A2aError::invalid("name", "the schedule was removed").into()),
        };
        let Planned { config, plan } = &*planned;
        let shown = |ms: i64| plan.times.format_local(at(ms));
        let last = match (state.last_planned_ms, &state.last_task) {
            (Some(ms), Some(task)) => {
                let task = TaskId::new(task.as_str());
                let state = state_of(self, &task).await?;
                Some(ScheduleRun { planned: shown(ms), task, state })
            }
            (_, _) => None,
        };
        let next = plan.next(&state, schedules.now()).map(|next| plan.times.format_local(next));
        let owner = self.schedule_owner(name, config);
        Ok(ScheduleInfo {
            name: name.to_owned(),
            agent: config.agent.as_ref().map(ToString::to_string).unwrap_or_default(),
            owner: owner.name,
            offered: owner.offered,
            cron: config.cron.clone().unwrap_or_default(),
            zone: config.zone.clone(),
            on_restart: config.on_restart.word().to_owned(),
            paused: state.paused,
            next,
            last,
            queued: state.queued_ms.map(shown),
            note: state.note,
            warning: self.schedule_warning(name, config),
        })
    }

    /// Warnings about schedules whose next run would fail.
    pub(super) fn schedule_warnings(&self) -> Vec<String> {
        let all = self.schedules.as_ref().map(|schedules| schedules.all()).unwrap_or_default();
        all.iter().filter_map(|(name, it)| self.schedule_warning(name, &it.config)).collect()
    }

    fn schedule_warning(&self, name: &str, config: &Schedule) -> Option<String> {
        if let Err(suspended) = self.schedule_runner(name, config) {
            return Some(format!("the schedule `{name}` starts no runs: {suspended}"));
        }
        let why = self.named(config.agent.as_ref()?).err()?;
        Some(format!(
            "the schedule `{name}` cannot start: {}; set `schedule.{name}.agent` to one of them",
            why.message
        ))
    }
}

fn run_of(name: &str, config: &Schedule, planned: Timestamp) -> ScheduledRun {
    ScheduledRun {
        name: name.to_owned(),
        planned: format!("{planned:.3}"),
        answers: config.answers,
        on_restart: config.on_restart,
    }
}

fn count(missed: u32, noun: &str) -> String {
    match missed {
        1 => format!("one {noun} was"),
        MAX_COUNTED => format!("{MAX_COUNTED} {noun}s or more were"),
        missed => format!("{missed} {noun}s were"),
    }
}

/// Note of a run that comes late, or in place of earlier ones.
fn missed_note(due: Due) -> Option<String> {
    match (due.is_late, due.missed) {
        (false, 0) => None,
        (true, 0) => {
            Some("the hub did not run at the planned time, and started the run late".to_owned())
        }
        (_, missed) => {
            let missed = count(missed, "earlier planned time");
            Some(format!("{missed} missed, and got no run"))
        }
    }
}

fn skipped_note(at: &str, due: Due, why: Skipped) -> String {
    match why {
        Skipped::Running => format!("{at} got no run: the one before it was still at work"),
        Skipped::Queued => format!("{at} got no run: another one waits for the one at work"),
        Skipped::Missed => {
            let missed = count(due.missed.saturating_add(1).min(MAX_COUNTED), "planned time");
            format!("{missed} missed up to {at}, and got no run")
        }
    }
}
