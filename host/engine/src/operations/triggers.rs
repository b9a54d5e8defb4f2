//! Triggers: look for events, send messages after them, and let the operator run and pause them.
//!
//! A poll has three steps, so that a killed hub neither loses events nor runs them twice: the
//! events are stored with what was seen, the task is created under an id that follows from them,
//! and the events are marked as dealt with.

use super::{
    Hub,
    automation::{
        ATTEMPTS, AutomationRunner, OwnedRuns, OwnerInfo, RunRefusal, find_named, is_at_work,
        owned, replace, start_run, state_of, suspension_error,
    },
};
use crate::error::HubError;
use crate::observability::hub_events::Listener;
use a2a_hub_automation::{
    Triggers,
    known_trigger::{KnownTrigger, Sight},
    message::{of_trigger, status_text, time},
    poll::SourcePoll,
    schedules::task_id,
    triggers::{POLL_INTERVAL, TriggerMemory},
};
use a2a_hub_config::{TriggerOn, TriggerSource};
use a2a_hub_core::{
    access_control::{Caller, Principal},
    identity::{AutomationKind, AutomationSuspended},
    task::metadata,
};
use a2a_hub_protocol::{
    error::{A2aError, ErrorKind},
    hub::event::{HubEventKind, StreamEnd},
    id::{AgentId, TaskId, TenantId},
    operation::{Answer, TriggerAnswer, TriggerInfo, TriggerRequest, TriggerRun},
    scheduled::AutomatedRun,
};
use a2a_hub_triggers::{
    plan::{TriggerState, TriggerStep},
    trigger_event::{EndedTask, TriggerEvent},
};
use std::{collections::BTreeMap, future::pending, sync::Arc, time::Duration};
use tokio::time::{Instant, sleep_until};

/// The triggers of a hub. [`Hub::handle`] has checked the caller's rights.
pub(super) struct TriggerOperations<'h> {
    hub: &'h Hub,
    pub(super) triggers: Arc<Triggers>,
}

impl<'h> TriggerOperations<'h> {
    /// Triggers of this hub.
    ///
    /// # Errors
    /// This hub has none.
    pub(super) fn new(hub: &'h Hub) -> Result<Self, HubError> {
        let triggers = hub.triggers.clone().ok_or_else(|| {
            let why = "this hub was built without triggers";
            A2aError::new(ErrorKind::UnsupportedOperation, why)
        })?;
        Ok(Self { hub, triggers })
    }

    /// Carries the triggers out, for as long as the hub runs.
    pub(super) async fn run_loop(&self) {
        let mut listener = None;
        loop {
            let needs_listener = self.triggers.all().values().any(|it| it.of_agent().is_some());
            if !needs_listener {
                listener = None;
            } else if listener.is_none() {
                listener = Some(self.hub.events.subscribe_to_all());
            }
            let is_closed = self.hub.require_open().is_err();
            let pause = if is_closed { Some(POLL_INTERVAL) } else { self.poll_all().await };
            if self.wait(pause, &mut listener).await == Some(StreamEnd::HubStopped) {
                return;
            }
        }
    }

    /// Waits for the next poll, and meanwhile records the tasks that end.
    async fn wait(
        &self,
        pause: Option<Duration>,
        listener: &mut Option<Listener>,
    ) -> Option<StreamEnd> {
        let until = pause.map(|pause| Instant::now() + pause);
        loop {
            let over = async {
                match until {
                    Some(until) => sleep_until(until).await,
                    None => pending().await,
                }
            };
            let next = async {
                match listener.as_mut() {
                    Some(listener) => listener.next().await,
                    None => pending().await,
                }
            };
            tokio::select! {
                () = over => return None,
                () = self.triggers.changed.notified() => return None,
                heard = next => match heard {
                    Ok(event) => self.record_ended_task(&event.what),
                    Err(end) => {
                        tracing::warn!("triggers may have missed ended tasks: too many events at once");
                        *listener = None;
                        return Some(end);
                    }
                }
            }
        }
    }

    /// Records a task that ended, for the triggers that it may concern: those whose runs belong to
    /// the tenant of the task.
    fn record_ended_task(&self, event: &HubEventKind) {
        let HubEventKind::TaskState { task_id, agent_id, state, .. } = event else { return };
        for (name, known) in self.triggers.all() {
            let TriggerSource::Tasks(agent, wanted) = &known.rules.source else { continue };
            if wanted == state
                && self.is_of(agent, agent_id)
                && self.runs_for(&name, &known, event.tenant())
            {
                self.triggers.task_ended(&name, task_id.clone());
            }
        }
    }

    /// True if the runs of a trigger belong to this tenant.
    fn runs_for(&self, name: &str, known: &KnownTrigger, tenant: Option<&TenantId>) -> bool {
        self.runner(name, known).is_ok_and(|runner| tenant == Some(&runner.tenant))
    }

    /// Principal as which a trigger begins tasks now.
    pub(super) fn runner(
        &self,
        name: &str,
        known: &KnownTrigger,
    ) -> Result<AutomationRunner, AutomationSuspended> {
        OwnedRuns(self.hub).runner(AutomationKind::Trigger, name, known.config.owner.as_ref())
    }

    fn owner(&self, name: &str, known: &KnownTrigger) -> OwnerInfo {
        OwnedRuns(self.hub).owner_info(AutomationKind::Trigger, name, known.config.owner.as_ref())
    }

    /// Suspends a trigger whose owner may not begin tasks: no event counts while that lasts.
    async fn suspend(&self, name: &str, why: &AutomationSuspended) -> Result<(), HubError> {
        drop(self.triggers.take_ended(name));
        let mut states = self.triggers.states().await?;
        let Some(memory) = states.get_mut(name) else { return Ok(()) };
        let mut state = memory.state.clone();
        state.forget_events();
        self.save(name, memory, &state).await?;
        (memory.files, memory.next_poll) = (None, None);
        self.triggers.set_problem(name, Some(why.to_string()));
        Ok(())
    }

    /// True if an agent is the one of this name, or one of the group of this name.
    fn is_of(&self, name: &AgentId, agent: &AgentId) -> bool {
        let Ok(id) = self.hub.named(name) else { return false };
        id == *agent || self.hub.routes.group(&id).is_some_and(|group| group.contains(agent))
    }

    /// Polls the sources of all triggers. Returns the pause until the next poll; none if the
    /// configuration has no triggers.
    async fn poll_all(&self) -> Option<Duration> {
        let all = self.triggers.all();
        for (name, known) in &all {
            if let Err(why) = Box::pin(self.poll(name, known)).await {
                let why = A2aError::from(why);
                tracing::warn!(trigger = name, %why, "cannot carry out a trigger, trying again");
            }
        }
        (!all.is_empty()).then_some(POLL_INTERVAL)
    }

    /// Polls the source of a trigger, and carries out the step that is due.
    async fn poll(&self, name: &str, known: &Arc<KnownTrigger>) -> Result<(), HubError> {
        let _looks = self.triggers.looks.lock().await;
        let runner = match self.runner(name, known) {
            Ok(runner) => runner,
            Err(suspended) => return self.suspend(name, &suspended).await,
        };
        let (now, plan) = (Instant::now(), known.rules.plan);
        let (poll, was_running) = {
            let mut states = self.triggers.states().await?;
            let Some(memory) = states.get_mut(name) else { return Ok(()) };
            if memory.state.paused && !memory.state.stopped {
                // A problem of its owner has ended; no poll of the source would clear it.
                self.triggers.set_problem(name, None);
            }
            let is_due = memory.next_poll.is_none_or(|next| next <= now);
            if !memory.state.is_active() {
                // Tasks that end during a pause are no events.
                drop(self.triggers.take_ended(name));
            }
            let is_due = is_due && memory.state.is_active();
            let poll = is_due.then(|| SourcePoll::begin(known, memory.poll.take()));
            (poll, self.is_running(memory).await?)
        };
        let began = poll.as_ref().map(|it| it.began);
        // Other operations on triggers need not wait for the disk.
        let (sight, late) = match poll {
            Some(poll) => match poll.sight().await {
                Ok(sight) => (Some(sight), None),
                Err(late) => (None, Some(late)),
            },
            None => (None, None),
        };
        let mut events =
            if sight.is_some() { self.ended(name, &runner.tenant).await? } else { Vec::new() };

        let mut states = self.triggers.states().await?;
        let Some(memory) = states.get_mut(name) else { return Ok(()) };
        let (mut state, mut files) = (memory.state.clone(), None);
        state.follow_tenant(runner.tenant.as_str());
        let failure = match sight {
            None => late.is_some().then(|| Some(SourcePoll::why_late(name, known))),
            Some(Err(why)) => Some(Some(why)),
            Some(Ok(sight)) => {
                match sight {
                    Sight::Heads(heads) => events.extend(state.see_heads(heads)),
                    Sight::Files(found) => {
                        let before = memory.files.as_ref();
                        events.extend(before.map(|it| it.changes_to(&found)).unwrap_or_default());
                        files = Some(found);
                    }
                    Sight::Reported => {
                        let tenant = &runner.tenant;
                        let messages = self.triggers.see_topics(name, known, tenant, &mut state);
                        events.extend(messages.await?);
                    }
                }
                state.observe(&plan, events, was_running, self.triggers.now_ms());
                Some(None)
            }
        };
        self.save(name, memory, &state).await?;
        if let Some(began) = began {
            match late {
                Some(_) => memory.next_poll = Some(Instant::now() + POLL_INTERVAL),
                None => memory.rest_after(began),
            }
            memory.files = files.or(memory.files.take());
            memory.poll = late;
        }
        self.step(name, known, &runner.by, memory).await?;
        if memory.state.stopped {
            let why = memory.state.note.clone().unwrap_or_default();
            let why = format!("{why}; `a2a-hub trigger resume {name}` lets it go on");
            self.triggers.set_problem(name, Some(why));
        } else if let Some(failure) = failure {
            self.triggers.set_problem(name, failure);
        }
        Ok(())
    }

    /// Carries out the step of a trigger that is due.
    async fn step(
        &self,
        name: &str,
        known: &KnownTrigger,
        by: &Principal,
        memory: &mut TriggerMemory,
    ) -> Result<(), HubError> {
        let (plan, now_ms) = (known.rules.plan, self.triggers.now_ms());
        let is_running = self.is_running(memory).await?;
        let step = plan.step(&memory.state, is_running, now_ms);
        let mut state = memory.state.clone();
        match step {
            TriggerStep::Wait(_) => return Ok(()),
            TriggerStep::Skip => state.skip(),
            TriggerStep::Stop => state.stop(plan.limit),
            TriggerStep::Start | TriggerStep::Replace => {
                let Some(events) = state.begin_run() else { return Ok(()) };
                // Stored first: events that come after a kill must not join those of this run.
                self.save(name, memory, &state).await?;
                if let (TriggerStep::Replace, Some(before)) = (step, &state.last_task) {
                    replace(self.hub, by, &TaskId::new(before.as_str())).await?;
                }
                let run = format!("trigger:{name}:{}:{}", events.first_ms, events.number);
                let id = task_id(&run, events.first_ms);
                let message = of_trigger(name, known, run, Some(events));
                match start_run(self.hub, by, message, id).await {
                    Ok(task) => {
                        tracing::info!(trigger = name, %task, "a trigger started a task");
                        state.started(task.as_str(), now_ms);
                        memory.is_over = false;
                    }
                    Err(RunRefusal::Unknown(why)) => return Err(why),
                    Err(RunRefusal::Refused(_)) if memory.attempts + 1 < ATTEMPTS => {
                        let attempts = memory.attempts + 1;
                        state.postpone_run();
                        self.save(name, memory, &state).await?;
                        memory.attempts = attempts;
                        return Ok(());
                    }
                    Err(RunRefusal::Refused(why)) => {
                        let note = format!("the latest events started no run: {why}");
                        tracing::warn!(trigger = name, "{note}");
                        (state.starting, state.note) = (None, Some(note));
                    }
                }
            }
        }
        self.save(name, memory, &state).await?;
        memory.attempts = 0;
        Ok(())
    }

    /// Stores a state that differs from the known one.
    pub(super) async fn save(
        &self,
        name: &str,
        memory: &mut TriggerMemory,
        state: &TriggerState,
    ) -> Result<(), HubError> {
        if memory.state != *state {
            self.triggers.store(name, state).await?;
            memory.state = state.clone();
        }
        Ok(())
    }

    async fn is_running(&self, memory: &mut TriggerMemory) -> Result<bool, HubError> {
        is_at_work(self.hub, memory.state.last_task.as_ref(), &mut memory.is_over).await
    }

    /// Ended tasks of a tenant since the last poll, without those that the trigger itself led to.
    async fn ended(&self, name: &str, tenant: &TenantId) -> Result<Vec<TriggerEvent>, HubError> {
        let ended = self.triggers.take_ended(name);
        let mut events = Vec::new();
        for id in &ended {
            let stored = match self.hub.tasks.stored(id).await {
                Ok(stored) => stored,
                Err(why) => {
                    // The next poll finds them again.
                    ended.iter().for_each(|id| self.triggers.task_ended(name, id.clone()));
                    return Err(why.into());
                }
            };
            let Some(stored) = stored.filter(|it| it.task.context_id.tenant() == tenant) else {
                continue;
            };
            let run = AutomatedRun::from_metadata(stored.task.metadata.as_ref());
            let after = run.map(|run| run.triggers()).unwrap_or_default();
            if after.iter().any(|it| it == name) {
                tracing::debug!(trigger = name, task = %id, "ignored a task that the trigger caused itself");
                continue;
            }
            if metadata::reachable_agents(&stored.task).is_some() {
                // Its key begins no work at other agents (`send:AGENT:alone`).
                tracing::debug!(trigger = name, task = %id, "ignored a task that may reach some agents only");
                continue;
            }
            events.push(TriggerEvent::Task(EndedTask {
                task: id.to_string(),
                agent: stored.agent.to_string(),
                state: stored.task.status.state.name().to_owned(),
                text: status_text(&stored.task),
                after,
            }));
        }
        Ok(events)
    }

    /// Carries out a request for triggers.
    pub(super) async fn perform(
        &self,
        caller: &Caller,
        request: TriggerRequest,
    ) -> Result<Answer, HubError> {
        match request {
            TriggerRequest::List => {
                let mut all = Vec::new();
                for (name, known) in self.visible(caller) {
                    all.push(self.info(&name, &known).await?);
                }
                Ok(Answer::Trigger(TriggerAnswer::List(all)))
            }
            TriggerRequest::Run(name) => self.run(&name).await,
            TriggerRequest::Pause(name) => self.pause(&name, true).await,
            TriggerRequest::Resume(name) => self.pause(&name, false).await,
            TriggerRequest::Accept(name) => self.accept(caller, &name).await,
        }
    }

    /// Triggers that a caller sees.
    fn visible(&self, caller: &Caller) -> BTreeMap<String, Arc<KnownTrigger>> {
        let mut all = self.triggers.all();
        all.retain(|name, known| {
            OwnedRuns(self.hub).sees_automation(caller, &self.owner(name, known))
        });
        all
    }

    /// Accepts a trigger that passed to the calling person.
    async fn accept(&self, caller: &Caller, name: &str) -> Result<Answer, HubError> {
        let known = find_named(self.visible(caller), "trigger", name)?;
        let owned = owned(AutomationKind::Trigger, name, known.config.owner.as_ref())?;
        OwnedRuns(self.hub).accept_automation(caller, &owned, known.config.agent.as_ref()).await?;
        let looks = self.triggers.looks.lock().await;
        self.record_baseline(name, &known).await?;
        drop(looks);
        self.triggers.changed.notify_one();
        Ok(Answer::Trigger(TriggerAnswer::One(Box::new(self.info(name, &known).await?))))
    }

    fn known(&self, name: &str) -> Result<Arc<KnownTrigger>, HubError> {
        find_named(self.triggers.all(), "trigger", name)
    }

    /// Starts a run without an event.
    async fn run(&self, name: &str) -> Result<Answer, HubError> {
        let (known, now_ms) = (self.known(name)?, self.triggers.now_ms());
        let run = format!("trigger:{name}:{now_ms}:run");
        let message = of_trigger(name, &known, run, None);
        let runner = self.runner(name, &known);
        let by = runner.map_err(|why| suspension_error(AutomationKind::Trigger, name, &why))?.by;
        let started = start_run(self.hub, &by, message, TaskId::fresh()).await;
        let task = started.map_err(HubError::from)?;
        let mut states = self.triggers.states().await?;
        if let Some(memory) = states.get_mut(name) {
            let mut state = memory.state.clone();
            let starting = state.starting.take();
            state.started(task.as_str(), now_ms);
            state.starting = starting;
            self.save(name, memory, &state).await?;
            memory.is_over = false;
        }
        Ok(Answer::Task(Box::new(self.hub.tasks.get(&task).await?.task)))
    }

    /// Pauses or resumes a trigger.
    async fn pause(&self, name: &str, paused: bool) -> Result<Answer, HubError> {
        let known = self.known(name)?;
        let looks = self.triggers.looks.lock().await;
        let mut states = self.triggers.states().await?;
        if let Some(memory) = states.get_mut(name) {
            let mut state = memory.state.clone();
            state.pause(paused);
            if state != memory.state {
                self.save(name, memory, &state).await?;
                (memory.files, memory.next_poll) = (None, None);
                self.triggers.set_problem(name, None);
            }
        }
        drop(states);
        self.record_baseline(name, &known).await?;
        drop(looks);
        self.triggers.changed.notify_one();
        Ok(Answer::Trigger(TriggerAnswer::One(Box::new(self.info(name, &known).await?))))
    }

    async fn info(&self, name: &str, known: &KnownTrigger) -> Result<TriggerInfo, HubError> {
        let state = match self.triggers.states().await?.get_mut(name) {
            Some(memory) => memory.state.clone(),
            None => return Err(A2aError::invalid("name", "the trigger was removed").into()),
        };
        let last = match (state.last_ms, &state.last_task) {
            (Some(ms), Some(task)) => {
                let task = TaskId::new(task.as_str());
                let state = state_of(self.hub, &task).await?;
                Some(TriggerRun { started: time(ms), task, state })
            }
            (_, _) => None,
        };
        let owner = self.owner(name, known);
        Ok(TriggerInfo {
            name: name.to_owned(),
            agent: known.config.agent.as_ref().map(ToString::to_string).unwrap_or_default(),
            owner: owner.name,
            offered: owner.offered,
            on: known.config.on.map(TriggerOn::word).unwrap_or_default().to_owned(),
            watches: known.watches(name),
            on_restart: known.config.on_restart.word().to_owned(),
            paused: state.paused,
            stopped: state.stopped,
            pending: [state.starting, state.pending]
                .into_iter()
                .flatten()
                .map(|pending| pending.happenings.count())
                .sum(),
            last,
            note: state.note,
            warning: self.warning(name, known),
        })
    }

    /// Warnings about triggers whose events would start no run.
    pub(super) fn warnings(&self) -> Vec<String> {
        let all = self.triggers.all();
        all.iter().filter_map(|(name, known)| self.warning(name, known)).collect()
    }

    fn warning(&self, name: &str, known: &KnownTrigger) -> Option<String> {
        let of_key = |key: &str, agent: Option<&AgentId>| {
            let why = self.hub.named(agent?).err()?;
            Some(format!("{}; set `trigger.{name}.{key}` to one of them", why.message))
        };
        let why = of_key("agent", known.config.agent.as_ref())
            .or_else(|| of_key("agent_is", known.of_agent()))
            .or_else(|| self.runner(name, known).err().map(|suspended| suspended.to_string()))
            .or_else(|| self.triggers.problem(name))?;
        Some(format!("the trigger `{name}` starts no runs: {why}"))
    }
}
