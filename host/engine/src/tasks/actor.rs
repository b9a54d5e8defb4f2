//! Actor of one task, from its first event to its last: feeds signals to the task's lifecycle and
//! carries out the resulting effects.

pub(super) mod abort_reason;
pub(super) mod account_quota;
pub(super) mod event_loop;
pub(super) mod eviction;
pub(super) mod exit;
pub(super) mod input;
pub(super) mod permits;
pub(super) mod question_deadlines;
pub(super) mod question_marks;
pub(super) mod questions;
pub(super) mod quota_wait;
pub(super) mod record;
pub(super) mod recorder;
pub(super) mod replay;
pub(super) mod run_journal;
pub(super) mod running_task;
pub(super) mod signal_payload;
pub(super) mod start;
pub(super) mod stop;
pub(super) mod storage_failure;

use super::{
    account_quotas::AccountQuotas,
    actor::{
        abort_reason::AbortReason,
        account_quota::AccountQuota,
        eviction::{EvictionQueue, Idle},
        exit::ActorExit,
        permits::Permits,
        question_marks::QuestionMarks,
        recorder::{Recorder, Unstorable},
        run_journal::RecordedRun,
        running_task::RunningTask,
    },
    command::{ActorCommand, Begin, PendingInputs, RunInput},
    guest_port::{AnsweredRequest, GuestRequest, event, last},
    ports::OtherTasks,
    recovery::pending_questions::Answers,
    run_queue::{Asking, ContextLock, RunQueue},
};
pub(super) use signal_payload::{ActorEvent, SignalPayload};

use crate::conversations::refusals::not_waiting;
use a2a_hub_agents::Agent;
use a2a_hub_clock as clock;
use a2a_hub_core::{
    failure_reason::FailureReason,
    grant::Resume,
    task::{
        lifecycle::{AgentEntry, Effect, Lifecycle, Signal, TaskTimeouts},
        metadata,
        tree_budget::Usage,
        unattended::UnattendedRun,
    },
};
use a2a_hub_protocol::{error::A2aError, task::TaskState};
use a2a_hub_store::StorageError;
use futures::FutureExt as _;
use std::{
    collections::VecDeque,
    panic::AssertUnwindSafe,
    sync::{Arc, atomic::AtomicU64},
    time::Duration,
};
use tokio::{sync::mpsc, time::Instant};

/// Capacity of the channel from a guest to its actor (backpressure); also the largest batch of
/// events that is stored together.
pub(super) const GUEST_CHANNEL_CAPACITY: usize = 64;

pub(super) struct TaskActor {
    pub(super) recorder: Recorder,
    pub(super) agent: Arc<Agent>,
    pub(super) commands: mpsc::Receiver<ActorCommand>,
    pub(super) lifecycle: Lifecycle,
    /// Input of the agent's next run, once the task has a run permit.
    pub(super) start: Option<Box<RunInput>>,
    /// Inputs of later runs, one run each.
    pub(super) pending_inputs: PendingInputs,
    pub(super) permits: Permits,
    /// The agent at work.
    pub(super) guest: Option<RunningTask>,
    pub(super) idle: Idle,
    /// All tasks, to which the agent may delegate.
    pub(super) tasks: Option<Arc<dyn OtherTasks>>,
    /// Journal of the current run, if it is to be replayed after a restart.
    pub(super) recording: Option<RecordedRun>,
    /// Client's answers to questions that the agent will ask again.
    pub(super) answers: Answers,
    pub(super) question_marks: QuestionMarks,
    /// Time at which a question was closed otherwise than by a message that named no question.
    pub(super) question_closed_at: Option<Instant>,
    /// Quota of the agent's account.
    pub(super) quota: AccountQuota,
    /// Last usage that was reported.
    pub(super) reported: Usage,
    /// Bytes of the events that are repeated beside a status.
    pub(super) repeated_bytes: Arc<AtomicU64>,
    /// True if the next run follows an earlier one, which may have left children at work.
    pub(super) goes_on: bool,
    /// Set if the hub's shutdown interrupted the agent at work.
    was_cut: bool,
    /// Set during shutdown: unsaved events are left for recovery.
    going_down: bool,
}

impl TaskActor {
    pub(super) fn new(
        recorder: Recorder,
        agent: Arc<Agent>,
        (queue, context_lock): (RunQueue, Option<ContextLock>),
        commands: mpsc::Receiver<ActorCommand>,
        timeout: Duration,
        begin: Begin,
        quotas: AccountQuotas,
    ) -> Self {
        // A question that nobody answers is over at once: the agent gets its timeout.
        let unattended = UnattendedRun::for_task(recorder.task());
        let denies = unattended.as_ref().is_some_and(UnattendedRun::denies);
        let interruption = unattended.map(|run| run.interruption()).unwrap_or_default();
        let answer = if denies { Duration::ZERO } else { agent.config.answer_timeout() };
        let timeouts = TaskTimeouts { task: timeout, answer };
        let (task, now) = (recorder.task(), Instant::now().into_std());
        let queued = |entry| Lifecycle::queued(task.status.state, entry, timeouts, now);
        let mut answers = Answers::default();
        let mut quota = AccountQuota::new(quotas, &agent, &task.id);
        // A replayed agent rejoins its children itself.
        let mut goes_on = !agent.replays();
        let (lifecycle, start, admitted, pending_inputs) = match begin {
            Begin::Replay(start, admitted, inputs, restored) => {
                answers = restored;
                (queued(AgentEntry::Replay), Some(start), Some(admitted), inputs)
            }
            Begin::Tend(admitted, inputs, restored) => {
                answers = restored;
                (queued(AgentEntry::Tend), None, Some(admitted), inputs)
            }
            Begin::Work(start, admitted, inputs) => {
                let entry = if metadata::has(task, metadata::QUEUED) {
                    AgentEntry::Queued
                } else if task.status.state == TaskState::Submitted {
                    AgentEntry::New
                } else {
                    AgentEntry::Again
                };
                goes_on &= entry == AgentEntry::Again;
                (queued(entry), Some(start), Some(admitted), inputs)
            }
            Begin::Evicted(inputs) => {
                (Lifecycle::evicted(task.status.state, timeouts, now), None, None, inputs)
            }
            Begin::AwaitQuota(client, inputs) => {
                quota.client = client;
                (Lifecycle::waiting(task.status.state, timeouts, now), None, None, inputs)
            }
            Begin::Follow(admitted, inputs) => {
                (queued(AgentEntry::Follow), None, Some(admitted), inputs)
            }
        };
        let lifecycle = lifecycle
            .keeping(pending_inputs.len())
            .with_pending_question(answers.has_open_question);
        let lifecycle = lifecycle.with_interruption(interruption);
        Self {
            recorder,
            agent,
            commands,
            lifecycle,
            start,
            pending_inputs,
            permits: Permits::new(queue, context_lock, admitted),
            guest: None,
            idle: Idle::default(),
            tasks: None,
            recording: None,
            answers,
            question_marks: QuestionMarks::default(),
            question_closed_at: None,
            quota,
            reported: Usage::default(),
            repeated_bytes: Arc::default(),
            goes_on,
            was_cut: false,
            going_down: false,
        }
    }

    /// Registers with `evictions`: this actor's agent can be evicted while it waits, and others can
    /// be evicted for it.
    pub(super) fn with_evictions(
        self,
        evictions: EvictionQueue,
        commands: mpsc::WeakSender<ActorCommand>,
    ) -> Self {
        Self { idle: Idle::new(evictions, commands), ..self }
    }

    /// Lets the agent delegate tasks to others.
    pub(super) fn among(self, tasks: Arc<dyn OtherTasks>) -> Self {
        Self { tasks: Some(tasks), ..self }
    }

    /// Runs the task to its end, and returns what remains to be cleaned up.
    pub(super) async fn run(mut self: Box<Self>) -> ActorExit {
        let done = AssertUnwindSafe(self.until_its_end()).catch_unwind().await;
        // No agent is at work on the task any more, whatever follows.
        self.guest = None;
        self.permits.leave_queue();
        self.idle = Idle::default();
        self.quota.ended(false);
        let is_over = match done {
            Ok(Ok(())) => true,
            // The next process reads the log and decides.
            Ok(Err(_)) if self.going_down => false,
            // The task was never visible to anyone, so nothing has to be ended.
            Ok(Err(_)) | Err(_) if self.recorder.never_was() => true,
            Ok(Err(_)) => self.give_up(AbortReason::Unstored).await,
            Err(_) => self.give_up(AbortReason::Broken).await,
        };
        if is_over {
            self.agent.task_ended(self.recorder.task()).await;
        }
        let is_over_for_good = self.recorder.task().status.state.is_final();
        let (task, used) = (
            self.recorder.task().id.clone(),
            Usage::from_metadata(self.recorder.task().metadata.as_ref()),
        );
        let ((turn, context_lock), was_cut) = (self.permits.into_parts(), self.was_cut);
        // In the next process the agent is replayed and continues with its children, or its
        // children are relayed for.
        let goes_on = self.recording.is_some() || self.agent.resume() == Resume::Session;
        let keeps_children = self.going_down && goes_on && !is_over_for_good;
        ActorExit { agent: self.agent, task, turn, context_lock, used, was_cut, keeps_children }
    }

    async fn until_its_end(&mut self) -> Result<(), Unstorable> {
        self.report();
        self.choose_account().await;
        if self.lifecycle.asks() {
            Box::pin(self.restore_postponement()).await;
        }
        if let Some(turn) = self.permits.take_first() {
            self.happen(ActorEvent::Turn(turn)).await?;
        }
        if self.lifecycle.is_over() {
            self.recorder.be_born().await?;
        }
        while !self.lifecycle.is_over() {
            let event = match self.recorder.deadline() {
                Some(deadline) => self.first_word(deadline).await,
                None => Some(self.next().await),
            };
            if !matches!(event, Some(ActorEvent::Request(_) | ActorEvent::Ended(_))) {
                // Any other event happens to a task that is in the log.
                self.recorder.be_born().await?;
            }
            let Some(event) = event else { continue };
            if let ActorEvent::Ended(_) = event {
                // The output was emitted before the end.
                while let Some(request @ GuestRequest::Emit(_)) = self.queued_up() {
                    self.happen(ActorEvent::Request(request)).await?;
                }
            }
            let mut is_output = matches!(event, ActorEvent::Request(GuestRequest::Emit(_)));
            self.happen(event).await?;
            while let Some(next) = self.next_for_agent() {
                self.happen(next).await?;
            }
            // Stores further output of the guest in the same batch.
            while (1..GUEST_CHANNEL_CAPACITY).contains(&self.recorder.pending())
                && let Some(request) = self.queued_up()
            {
                is_output &= matches!(request, GuestRequest::Emit(_));
                self.happen(ActorEvent::Request(request)).await?;
            }
            if is_output && self.recorder.may_collect() && !self.lifecycle.is_over() {
                // Nobody takes an event before the agent's end, so its output is stored at once.
                continue;
            }
            self.recorder.flush(None).await?;
            self.report();
            self.update_repeated_bytes();
            self.update_eviction();
            self.update_question_marks().await;
        }
        Ok(())
    }

    fn queued_up(&mut self) -> Option<GuestRequest> {
        self.guest.as_mut()?.requests.try_recv().ok()
    }

    /// Passes an event to the lifecycle and carries out the effects. Records are stored before
    /// anyone sees them.
    async fn happen(&mut self, event: ActorEvent) -> Result<(), Unstorable> {
        if let ActorEvent::Request(GuestRequest::Record(recorded, stored_tx)) = event {
            // Boxed, as it is rare: a future reserves space for all that it may await, for the
            // whole life of the task.
            return Box::pin(self.record_entry(&recorded, stored_tx)).await;
        }
        if let ActorEvent::Command(Some(ActorCommand::Postpone(id, time, reply_tx))) = event {
            Box::pin(self.postpone(&id, time, reply_tx)).await;
            return Ok(());
        }
        self.count_first_word(&event);
        if let (ActorEvent::Request(_), Some(guest)) = (&event, &mut self.guest) {
            guest.has_new_answer = false;
        }
        let event = if let ActorEvent::Command(Some(ActorCommand::Input(input))) = event {
            // Boxed, as it is rare.
            let Some(input) = Box::pin(self.answer_queued(input)).await? else { return Ok(()) };
            ActorEvent::Command(Some(ActorCommand::Input(input)))
        } else {
            event
        };
        let (before, had_turn) = (self.lifecycle, self.permits.has_permit());
        let Some((signal, mut payload)) = self.signal(event) else { return Ok(()) };
        if matches!(signal, Signal::Cancel | Signal::Exhausted) {
            // Closes the whole tree to new tasks and ends it from the leaves up.
            self.end_children(payload.by.as_ref()).await;
        }
        let done = self.carry_out(signal, &mut payload).await;
        match (done, payload.reply_tx.take()) {
            (Err(Unstorable(why @ StorageError::Unavailable(_))), Some(reply_tx)) => {
                // The client's message could not be stored and counts as not sent: the task keeps
                // waiting.
                self.lifecycle = before;
                // A task that only waits for its client holds no permit; one that works or queues
                // keeps what it has.
                if before.asks() && !had_turn {
                    self.permits.give_up();
                }
                self.recorder.take_back().await?;
                // The sender may be gone; then nobody needs the reply.
                let _ = reply_tx.send(Err(crate::error::HubError::from(why).into()));
                Ok(())
            }
            // The agent is not evicted: a waiting task keeps waiting.
            (Err(Unstorable(StorageError::Unavailable(_))), None)
                if payload.evicted_tx.is_some() =>
            {
                self.lifecycle = before;
                self.recorder.take_back().await.map(drop)
            }
            (Ok(()), _) if let Some(stored_tx) = payload.stored_tx.take() => {
                self.recorder.flush(None).await?;
                // The guest may have ended.
                let _ = stored_tx.send(());
                Ok(())
            }
            (done, _) => done,
        }
    }

    /// Translates an event to a lifecycle signal. None if the client answered a question that is
    /// not open; the client has its refusal then.
    fn signal(&mut self, actor_event: ActorEvent) -> Option<(Signal, SignalPayload)> {
        let mut payload = SignalPayload::default();
        let signal = match actor_event {
            ActorEvent::Command(Some(ActorCommand::Input(input))) => {
                let names_question = input.answers.is_some();
                self.accept_input(*input, &mut payload)?;
                if names_question {
                    self.question_closed();
                }
                Signal::ClientMessage
            }
            ActorEvent::Command(Some(ActorCommand::Cancel { by, facts })) => {
                payload.by = Some(by);
                payload.facts = facts;
                Signal::Cancel
            }
            ActorEvent::Command(Some(ActorCommand::Exhausted(why))) => {
                let (task, now) = (self.recorder.task(), clock::now());
                let failed = metadata::failed(task, FailureReason::LimitExceeded, &why, now);
                payload.events = vec![failed];
                Signal::Exhausted
            }
            ActorEvent::Command(Some(ActorCommand::ChangeBoard(change))) => {
                payload.events = vec![self.board_change(*change)?];
                Signal::AgentEvent { working: true }
            }
            ActorEvent::Command(Some(ActorCommand::ReportQuestions(reply_tx))) => {
                // The sender may be gone; then nobody needs the reply.
                let _ = reply_tx.send(self.question_state());
                return None;
            }
            // It was carried out before.
            ActorEvent::Command(Some(ActorCommand::Postpone(..))) => return None,
            // The agent may have continued since the request.
            ActorEvent::Command(Some(ActorCommand::Park(_))) if !self.can_be_let_go() => {
                return None;
            }
            ActorEvent::Command(Some(ActorCommand::Park(done))) => {
                payload.evicted_tx = Some(done);
                Signal::Park
            }
            ActorEvent::Command(Some(ActorCommand::Shutdown) | None) => {
                self.going_down = true;
                Signal::Shutdown
            }
            ActorEvent::Turn(turn) => {
                let (signal, was_lent) = self.permits.take_granted(turn);
                // A permit that the agent had lent changes nothing, unless an answer waits for it.
                if was_lent && !self.lifecycle.returns() {
                    return None;
                }
                self.with_account(signal)
            }
            ActorEvent::Request(GuestRequest::Rest(waits_for)) => {
                self.permits.release_permit(waits_for)
            }
            ActorEvent::Request(GuestRequest::Resume(waits_for, call)) => {
                let asking = Asking::for_task(self.recorder.task(), &self.agent);
                self.permits.reacquire_permit(asking, waits_for, call)?
            }
            ActorEvent::Command(Some(ActorCommand::RetryNow(reply_tx))) => {
                self.retry_now(reply_tx)?
            }
            ActorEvent::Time if self.lifecycle.waits_for_quota() => self.quota_time(),
            ActorEvent::Time if self.warn_of_deadline() => return None,
            ActorEvent::Time => {
                self.question_closed();
                Signal::Time
            }
            ActorEvent::Request(GuestRequest::Emit(emitted)) => {
                let (task, now) = (self.recorder.task(), clock::now());
                let events = emitted.into_iter().map(|it| event(task, it)).collect();
                let agent_asks = self.agent_question_is_open();
                payload.events = metadata::with_repeated_question(task, events, agent_asks, now);
                Signal::AgentEvent { working: metadata::is_at_work(&payload.events) }
            }
            ActorEvent::Request(GuestRequest::Ruled(answered, stored_tx)) => {
                let (task, now) = (self.recorder.task(), clock::now());
                let AnsweredRequest { answer, text, .. } = *answered;
                let events = vec![metadata::answered_by_rule(task, &answer, &text, now.clone())];
                let agent_asks = self.agent_question_is_open();
                payload.events = metadata::with_repeated_question(task, events, agent_asks, now);
                payload.stored_tx = Some(stored_tx);
                Signal::AgentEvent { working: metadata::is_at_work(&payload.events) }
            }
            // The entry was stored before.
            ActorEvent::Request(GuestRequest::Record(..)) => return None,
            ActorEvent::Request(GuestRequest::Ask(question)) => self.ask(question, &mut payload)?,
            ActorEvent::Request(GuestRequest::Read(reader)) => return self.set_reader(reader),
            ActorEvent::Read => {
                payload.events = vec![self.reading()?];
                Signal::Read
            }
            ActorEvent::Withdrawn => {
                self.question_closed();
                Signal::Withdrawn
            }
            ActorEvent::Ended(ended) if self.guest.as_ref().is_some_and(|guest| guest.tends) => {
                payload.events = vec![last(self.recorder.task(), ended).1];
                Signal::Tended
            }
            ActorEvent::Ended(ended) => {
                let (state, mut event) = last(self.recorder.task(), ended);
                if let Some(refused) = self.agent.refused_in(&self.recorder.task().id) {
                    event = metadata::with_refused(event, refused);
                }
                self.run_ended(state, event, &mut payload)
            }
        };
        Some((signal, payload))
    }

    pub(super) async fn carry_out(
        &mut self,
        signal: Signal,
        payload: &mut SignalPayload,
    ) -> Result<(), Unstorable> {
        let mut effects = self.step(signal);
        while let Some(effect) = effects.pop_front() {
            // Consecutive records are one write, until someone is to see them. An agent that only
            // answers can start before its task is stored, for nothing that it does is visible
            // earlier.
            let begins = effect == Effect::Start && self.recorder.is_unborn();
            let begins = begins && self.agent.has_capacity();
            if !begins && !matches!(effect, Effect::Record(_) | Effect::ComeBack) {
                self.recorder.flush(payload.by.as_ref()).await?;
            }
            let then = self.act(effect, payload).await;
            let then = then.map(|signal| self.step(signal)).unwrap_or_default();
            then.into_iter().rev().for_each(|effect| effects.push_front(effect));
        }
        // Records that no caller waits for may be batched with later ones.
        match &payload.by {
            Some(by) => self.recorder.flush(Some(by)).await,
            None => Ok(()),
        }
    }

    fn step(&mut self, signal: Signal) -> VecDeque<Effect> {
        let effects = self.lifecycle.step(Instant::now().into_std(), signal);
        self.quota.follow(self.lifecycle.waits_for_quota());
        effects.into()
    }

    /// Carries out an effect, and returns the signal that results from it.
    async fn act(&mut self, effect: Effect, payload: &mut SignalPayload) -> Option<Signal> {
        match effect {
            Effect::Record(record) => {
                if payload.is_last(record) && self.end_children(payload.by.as_ref()).await {
                    // The children ended before the task does.
                    payload.stamp(&clock::now());
                }
                self.record(record, payload).await;
            }
            Effect::ComeBack => return self.requeue(payload),
            Effect::GiveTurnBack => self.permits.give_back(),
            Effect::Start => {
                self.idle.free_capacity_for(&self.agent).await;
                return Box::pin(self.start()).await.err().map(Signal::Lost);
            }
            Effect::Keep => {
                let input = payload.start.take().map(|start| self.recorded(start));
                self.pending_inputs.extend(input);
            }
            Effect::Deliver => self.deliver(),
            Effect::Retire => {
                self.guest = None;
                // Waiters of that run are gone with it.
                self.permits.forget_waits();
                self.goes_on = true;
                self.agent.wait_for_programs(self.recorder.task().id.as_str()).await;
                // A remote agent gets the input as a new task, for its old task is over there.
                self.agent.forget(&self.recorder.task().id).await;
                self.start = self.pending_inputs.pop_front();
            }
            Effect::Pause => {
                self.guest = None;
                self.permits.forget_waits();
                self.goes_on = true;
                self.agent.wait_for_programs(self.recorder.task().id.as_str()).await;
            }
            Effect::Follow => return self.follow().err().map(Signal::Lost),
            Effect::Tend => return self.tend().err().map(Signal::Lost),
            Effect::Answer => self.answer(),
            Effect::Acknowledge => {
                if let Some(answer) = payload.restored_answer.take() {
                    self.answers.push(answer);
                }
                self.reply(payload, Ok(()));
            }
            Effect::Refuse => {
                let task = self.recorder.task();
                let refused = not_waiting(&task.id, task.status.state);
                self.reply(payload, Err(refused));
            }
            Effect::Leave => {
                let goes_on = match &mut self.guest {
                    Some(guest) => guest.run.detach().await,
                    None => false,
                };
                return Some(Signal::Detached(goes_on));
            }
            Effect::Stop => self.stop().await,
            Effect::CleanUp => {
                self.agent.clean_up(self.recorder.task()).await;
            }
            Effect::AskHold => {
                let hold = self.agent.resumability(&self.recorder.task().id).await;
                return Some(Signal::Resumability(self.recordable(hold)));
            }
        }
        None
    }

    fn reply(&self, payload: &mut SignalPayload, answer: Result<(), A2aError>) {
        if let Some(reply_tx) = payload.reply_tx.take() {
            // The sender may be gone; then nobody needs the reply.
            let _ = reply_tx.send(answer);
        }
    }
}
