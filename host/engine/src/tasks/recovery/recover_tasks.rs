//! Recovery of the tasks of the previous process.

use super::{
    client_input::{ClientInput, start},
    pending_questions::Answers,
};
use crate::observability::log_span;
use crate::tasks::{
    Tasks,
    actor::replay,
    command::Begin,
    handoff::BegunHandoffs,
    run_queue::{Asking, ContextLock, PermitRequest},
};
use a2a_hub_agents::Agent;
use a2a_hub_clock as clock;
use a2a_hub_core::{
    access_control::Principal,
    failure_reason::FailureReason,
    task::{
        metadata::{self, QUEUED, REASON, RECOVERY},
        question::{has_undelivered_answer, with_restart_note},
        recovery::{
            Asks, Recovery, Resumability, UnfinishedTask, answered_for_child, renewed_question,
            still_asks,
        },
        tree_budget::Usage,
        unattended::UnattendedRun,
    },
};
use a2a_hub_protocol::{
    budget::Budget,
    error::A2aError,
    event::TaskEvent,
    id::{AgentId, QuestionId, TaskId},
    question::{Question, QuestionKind},
    task::{Task, TaskState},
};
use a2a_hub_store::{Head, HeadFilter, StorageError, StoredTask, feed::Feed};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, atomic::Ordering},
};
use tracing::Instrument as _;

/// Numbers of recovered tasks, by outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recovered {
    /// Had not begun, or are unattended and begin again.
    pub started: usize,
    /// Wait for their client.
    pub waiting: usize,
    /// Agents are replayed from their journals.
    pub replayed: usize,
    /// Remote agents, which continued meanwhile, are followed again.
    pub followed: usize,
    /// Interrupted; they fail.
    pub failed: usize,
    /// Stored data is corrupt.
    pub unreadable: usize,
}

/// State of the recovery.
#[derive(Default)]
struct RecoveryRun {
    recovered: Recovered,
    /// Tasks with unfinished children.
    parents: BTreeSet<TaskId>,
    /// Tasks that continue once their children are recovered, oldest first.
    later: Vec<DeferredTask>,
    /// Handoffs that the previous process had begun.
    handoffs: BegunHandoffs,
    /// Tasks whose agents begin anew, so that the children of their earlier runs end.
    begin_anew: BTreeSet<TaskId>,
    /// New ids of replaced questions, by old id.
    renamed: BTreeMap<QuestionId, QuestionId>,
}

/// A task that continues once its children are recovered, with its conversation's lock.
struct DeferredTask {
    stored: StoredTask,
    agent: Arc<Agent>,
    context_lock: Option<ContextLock>,
    /// True if its agent is replayed; otherwise its children are relayed for.
    replays: bool,
}

impl Tasks {
    /// Agents with tasks that the previous process left unfinished.
    pub async fn awaited_agents(&self) -> Result<BTreeSet<AgentId>, StorageError> {
        let filter = HeadFilter { live_only: true, ..HeadFilter::default() };
        let heads = self.storage.heads(filter).await?;
        Ok(heads.into_iter().map(|head| head.agent).collect())
    }

    /// Recovers the tasks that the previous process left unfinished; the hub is up afterwards.
    /// Called only once the hub is complete
    /// ([`StartingHub::recover`](crate::StartingHub::recover)).
    pub(crate) async fn recover(&self) -> Result<Recovered, StorageError> {
        let filter = HeadFilter { live_only: true, ..HeadFilter::default() };
        let has_tenants = self.storage.has_tenants().await?;
        self.may_have_tenants.store(has_tenants, Ordering::Relaxed);
        let heads = self.storage.heads(filter).await?;
        let parents = heads.iter().filter_map(|head| head.parent.clone()).collect();
        let handoffs = self.begun_handoffs(&heads).await?;
        let mut all = RecoveryRun { parents, handoffs, ..RecoveryRun::default() };
        // Oldest first: waiting tasks keep their order.
        for head in heads.into_iter().rev() {
            let span = log_span::of_head(&head);
            let taken_up = self.recover_task(&head, &mut all);
            match taken_up.instrument(span).await {
                Err(why @ StorageError::Unavailable(_)) => return Err(why),
                // A damaged task must not delay the others.
                Err(why) => {
                    tracing::error!(task = %head.task, %why, "cannot recover a task, leaving it unchanged");
                    all.recovered.unreadable += 1;
                }
                Ok(()) => {}
            }
        }
        // Newest first: each task finds its children recovered, with their current questions.
        for later in std::mem::take(&mut all.later).into_iter().rev() {
            let span = log_span::of_task(&later.stored.task, &later.agent.id);
            self.go_on_with_children(later, &mut all).instrument(span).await?;
        }
        self.phase.up();
        Ok(all.recovered)
    }

    async fn recover_task(&self, head: &Head, all: &mut RecoveryRun) -> Result<(), StorageError> {
        let Some(stored) = self.storage.task(&head.task).await? else { return Ok(()) };
        if let Some(facts) = all.handoffs.old.remove(&head.task) {
            let over = metadata::canceled(&stored.task, Some(facts), clock::now());
            return self.end(head, &stored.task, over).await;
        }
        let agent = match self.agent_of(head).await? {
            Ok(agent) => agent,
            Err(reason) => {
                all.recovered.failed += 1;
                return self.end(head, &stored.task, failed(&stored.task, &reason)).await;
            }
        };
        let unfinished = self.unfinished_task(head, &stored.task, agent.as_deref(), all).await?;
        if let Some(agent) = &agent {
            self.put_in_tree(head, &stored.task, agent).await?;
            let (tasks, used) = self.ended_descendants(&head.task).await?;
            self.trees().count(&head.task, tasks, used);
        }
        let unattended = UnattendedRun::for_task(&stored.task);
        let recovery = unattended
            .as_ref()
            .map_or_else(|| unfinished.recovery(), |run| run.recovery(unfinished));
        match (recovery, agent) {
            (Recovery::Leave, _) => {}
            (Recovery::Fail, _) | (_, None) => {
                self.trees().remove(&head.task);
                // Any other reason counts for unattended runs as well.
                let of_rule =
                    unattended.filter(|_| unfinished.hold.is_some() && !unfinished.is_orphan);
                let why = of_rule.map(|run| run.why_it_fails());
                let why =
                    why.unwrap_or_else(|| why_it_ends(&stored.task, unfinished.is_orphan).into());
                let over = failed(&stored.task, &why);
                self.end(head, &stored.task, over).await?;
                all.recovered.failed += 1;
            }
            (Recovery::Start, Some(agent)) => {
                self.start_again(stored, agent).await?;
                all.recovered.started += 1;
            }
            (Recovery::Again, Some(agent)) => {
                if unfinished.hold != Some(Resumability::Session) {
                    all.begin_anew.insert(head.task.clone());
                }
                self.begin_again(stored, agent, unfinished).await?;
                all.recovered.started += 1;
            }
            (Recovery::Wait, Some(agent)) => {
                let input = ClientInput::read_log(&*self.storage, &stored.task).await?;
                self.park(stored, agent, input, None);
                all.recovered.waiting += 1;
            }
            (Recovery::AwaitQuota, Some(agent)) => {
                let ClientInput { timeout_ms, client, pending_inputs, .. } =
                    ClientInput::read_log(&*self.storage, &stored.task).await?;
                let begin = Begin::AwaitQuota(client, pending_inputs);
                self.keep_waiting(stored, agent, timeout_ms, None, begin);
                all.recovered.waiting += 1;
            }
            (Recovery::Ask(state), Some(agent)) => {
                all.renamed.extend(self.ask_again(stored, agent, state, None).await?);
                all.recovered.waiting += 1;
            }
            (recovery @ (Recovery::Replay | Recovery::Tend), Some(agent)) => {
                // Taken before any task that waits for it.
                let context_lock = self.queue.lock_context(Asking::for_task(&stored.task, &agent));
                let replays = recovery == Recovery::Replay;
                all.later.push(DeferredTask { stored, agent, context_lock, replays });
            }
            (Recovery::Follow, Some(agent)) => {
                self.follow_again(stored, agent).await?;
                all.recovered.followed += 1;
            }
            (Recovery::Cancel, Some(agent)) => {
                self.follow_again(stored, agent).await?;
                self.cancel_orphan(&head.task);
                all.recovered.failed += 1;
            }
        }
        Ok(())
    }

    /// Collects the facts that decide how a task is recovered.
    async fn unfinished_task(
        &self,
        head: &Head,
        task: &Task,
        agent: Option<&Agent>,
        all: &RecoveryRun,
    ) -> Result<UnfinishedTask, StorageError> {
        let hold = match agent {
            Some(agent) => Some(self.task_resumability(agent, &head.task).await?),
            None => None,
        };
        let waits = all.handoffs.new.contains(&head.task);
        Ok(UnfinishedTask {
            state: if waits { TaskState::Submitted } else { head.state },
            queued: waits || metadata::has(task, QUEUED),
            answered: has_undelivered_answer(task),
            hold,
            asks: Asks::for_task(task),
            has_children: all.parents.contains(&head.task),
            waits_for_quota: metadata::waiting_until(task).is_some(),
            // Older tasks were recovered before this one.
            is_orphan: head.parent.as_ref().is_some_and(|parent| {
                let is_it = |later: &DeferredTask| later.stored.task.id == *parent;
                let is_parent_over = self.find(parent).is_none() && !all.later.iter().any(is_it);
                is_parent_over || all.begin_anew.contains(parent)
            }),
        })
    }

    /// Cancels a task at a remote agent whose parent is over.
    fn cancel_orphan(&self, task: &TaskId) {
        let (tasks, orphan) = (self.clone(), task.clone());
        self.actors.spawn(async move {
            if let Err(why) = tasks.cancel(&orphan, Principal::Operator).await {
                let why = A2aError::from(why);
                tracing::warn!(task = %orphan, %why, "cannot cancel an orphaned task at a remote agent");
            }
        });
    }

    /// Agent that continues the task: the current one of its name, or the earlier version whose run
    /// is not over. `Ok(None)` if no agent has that name; `Err` with the reason if the earlier
    /// version cannot continue.
    async fn agent_of(
        &self,
        head: &Head,
    ) -> Result<Result<Option<Arc<Agent>>, String>, StorageError> {
        let Some(agent) = self.directory.agent(&head.agent) else { return Ok(Ok(None)) };
        let version = replay::version(&*self.storage, &head.task).await?;
        let Some(version) = version.filter(|version| !agent.is(version)) else {
            return Ok(Ok(Some(agent)));
        };
        Ok(self.directory.version(&head.agent, &version).await.map(Some))
    }

    pub(super) async fn start_again(
        &self,
        stored: StoredTask,
        agent: Arc<Agent>,
    ) -> Result<(), StorageError> {
        let StoredTask { seq, task, .. } = stored;
        let ClientInput { timeout_ms, client, due, begun_with, mut pending_inputs, mut read } =
            ClientInput::read_log(&*self.storage, &task).await?;
        if due.is_none() {
            read.append(&mut pending_inputs);
            pending_inputs = read;
        }
        // The message that began the task, or an answer that its agent has not received.
        let due = due.or(begun_with).and_then(|at| Some((at, task.history.get(at)?.clone())));
        let Some((at, message)) = due else { return Ok(()) };
        let message = match Question::from_metadata(task.metadata.as_ref()) {
            // A remote agent still waits for the answer.
            Some(question) if agent.resumability(&task.id).await != Resumability::Work => {
                with_restart_note(message, question.replaces.unwrap_or(question.kind))
            }
            Some(_) | None => message,
        };
        let start = start(&task, client, (at, message));
        let begin = |admitted| Begin::Work(start, admitted, pending_inputs);
        self.set_to_work(seq, task, agent, timeout_ms, None, begin);
        Ok(())
    }

    /// Resumability of the task: replay is possible only if its runs were recorded from the
    /// beginning.
    async fn task_resumability(
        &self,
        agent: &Agent,
        task: &TaskId,
    ) -> Result<Resumability, StorageError> {
        let hold = agent.resumability(task).await;
        if hold == Resumability::Replay && replay::seed(&*self.storage, task).await?.is_none() {
            return Ok(Resumability::Nothing);
        }
        Ok(hold)
    }

    /// Continues a task whose children are recovered.
    async fn go_on_with_children(
        &self,
        later: DeferredTask,
        all: &mut RecoveryRun,
    ) -> Result<(), StorageError> {
        let DeferredTask { mut stored, agent, context_lock, replays } = later;
        let children = self.trees().children(&stored.task.id);
        if !replays && (children.is_empty() || !agent.delegates()) {
            self.ask_again(stored, agent, TaskState::InputRequired, context_lock).await?;
            all.recovered.waiting += 1;
            return Ok(());
        }
        let answers = self.refresh_child_questions(&mut stored, &children, replays, all).await?;
        let StoredTask { seq, task, .. } = stored;
        let ClientInput { timeout_ms, client, begun_with, mut pending_inputs, mut read, .. } =
            ClientInput::read_log(&*self.storage, &task).await?;
        if !replays {
            let begin = |admitted| Begin::Tend(admitted, pending_inputs, answers);
            self.set_to_work(seq, task, agent, timeout_ms, context_lock, begin);
            all.recovered.waiting += 1;
            return Ok(());
        }
        // The journal contains the run's input, unless the run had not begun.
        let begun_with = begun_with.and_then(|at| Some((at, task.history.get(at)?.clone())));
        let Some((at, message)) = begun_with else { return Ok(()) };
        let start = start(&task, client, (at, message));
        // The actor leaves out those that the journal has.
        read.append(&mut pending_inputs);
        let begin = |admitted| Begin::Replay(start, admitted, read, answers);
        self.set_to_work(seq, task, agent, timeout_ms, context_lock, begin);
        all.recovered.replayed += 1;
        Ok(())
    }

    /// Updates a relayed question of the task to its child's current one; returns the client's
    /// answers to relayed questions.
    async fn refresh_child_questions(
        &self,
        stored: &mut StoredTask,
        children: &[TaskId],
        replays: bool,
        all: &RecoveryRun,
    ) -> Result<Answers, StorageError> {
        // The agent's own question stays open until the replay reaches it.
        let has_open_question = replays && metadata::asks(&stored.task);
        let mut answers = Answers::none(has_open_question);
        let question = Question::from_metadata(stored.task.metadata.as_ref());
        let Some(question) = question.filter(|asked| asked.task.is_some()) else {
            return Ok(answers);
        };
        for child in children {
            let Some(child) = self.storage.task(child).await? else { continue };
            let renamed = |id: &QuestionId| all.renamed.get(id).cloned();
            if let Some(answer) = answered_for_child(&stored.task, &child.task, renamed) {
                answers.push(answer);
                break;
            }
            if !metadata::asks(&stored.task) {
                continue;
            }
            if still_asks(&question, &child.task) {
                answers.has_open_question = true;
                break;
            }
            if let Some((renewed, prompt)) = renewed_question(&question, &child.task, &child.agent)
            {
                let state = match renewed.kind {
                    QuestionKind::Auth => TaskState::AuthRequired,
                    QuestionKind::Input | QuestionKind::Permission => TaskState::InputRequired,
                };
                let now = clock::now();
                let asks = metadata::child_question(&stored.task, state, &renewed, prompt, now);
                self.ask(stored, state, asks).await?;
                answers.has_open_question = true;
                break;
            }
        }
        Ok(answers)
    }

    /// Puts a task in a waiting state, in place of an agent that is gone.
    async fn ask(
        &self,
        stored: &mut StoredTask,
        state: TaskState,
        asks: TaskEvent,
    ) -> Result<(), StorageError> {
        self.append_to(stored, state, vec![asks]).await
    }

    /// Appends events to the log of a task in one write; the first of them leads to `state`.
    pub(super) async fn append_to(
        &self,
        stored: &mut StoredTask,
        state: TaskState,
        events: Vec<TaskEvent>,
    ) -> Result<(), StorageError> {
        let StoredTask { seq, task, .. } = stored;
        // The state machine has no direct transition between the kinds of questions, only through
        // `working`.
        let is_way = a2a_hub_core::task::state::allows(task.status.state, state);
        let working = (!is_way).then(|| metadata::working(task, clock::now()));
        let events: Vec<_> = working.into_iter().chain(events).map(Arc::new).collect();
        *seq = self.storage.append(&task.id, *seq, events.clone()).await?;
        for event in events {
            a2a_hub_core::task::state::apply(task, &event)?;
        }
        Ok(())
    }

    async fn follow_again(
        &self,
        stored: StoredTask,
        agent: Arc<Agent>,
    ) -> Result<(), StorageError> {
        let StoredTask { seq, task, .. } = stored;
        let ClientInput { timeout_ms, pending_inputs, .. } =
            ClientInput::read_log(&*self.storage, &task).await?;
        let begin = |admitted| Begin::Follow(admitted, pending_inputs);
        self.set_to_work(seq, task, agent, timeout_ms, None, begin);
        Ok(())
    }

    /// Spawns an actor with this initial state, once the task has a run permit; `context_lock` is
    /// set if the task holds its conversation's lock already.
    fn set_to_work(
        &self,
        seq: u64,
        task: Task,
        agent: Arc<Agent>,
        timeout_ms: Option<u64>,
        context_lock: Option<ContextLock>,
        begin: impl FnOnce(PermitRequest) -> Begin,
    ) {
        let asking = Asking::for_task(&task, &agent);
        let admitted = match context_lock {
            Some(_) => self.queue.reacquire(asking),
            None => self.queue.readmit(asking),
        };
        let timeout = crate::tasks::new_task::task_timeout(&agent, timeout_ms);
        let recorder = self.recorder(task, seq, &agent, Feed::new(seq));
        self.spawn(context_lock, recorder, agent, timeout, begin(admitted));
    }

    /// Asks the client in place of an agent that is gone. Returns the ids of the agent's question
    /// and of its replacement, if the agent had asked.
    async fn ask_again(
        &self,
        mut stored: StoredTask,
        agent: Arc<Agent>,
        state: TaskState,
        context_lock: Option<ContextLock>,
    ) -> Result<Option<(QuestionId, QuestionId)>, StorageError> {
        let question_of = |task: &Task| Question::from_metadata(task.metadata.as_ref());
        let lost = question_of(&stored.task);
        // A hub that restarts every day need not repeat the notice.
        let is_notified = metadata::text(&stored.task, REASON) == Some(RECOVERY) && lost.is_some();
        if !is_notified || stored.task.status.state != state {
            let asks = metadata::interrupted(&stored.task, &agent.card.name, state, clock::now());
            self.ask(&mut stored, state, asks).await?;
        }
        let input = ClientInput::read_log(&*self.storage, &stored.task).await?;
        let now = question_of(&stored.task);
        self.park(stored, agent, input, context_lock);
        let agent_question = lost.filter(|lost| lost.task.is_none());
        Ok(agent_question.zip(now).map(|(lost, now)| (lost.id, now.id)))
    }

    /// Spawns an actor that waits for the client without an agent; `context_lock` is set if the
    /// task holds its conversation's lock already.
    fn park(
        &self,
        stored: StoredTask,
        agent: Arc<Agent>,
        input: ClientInput,
        context_lock: Option<ContextLock>,
    ) {
        let begin = Begin::Evicted(input.pending_inputs);
        self.keep_waiting(stored, agent, input.timeout_ms, context_lock, begin);
    }

    /// Spawns an actor that waits without an agent and without a run permit.
    fn keep_waiting(
        &self,
        stored: StoredTask,
        agent: Arc<Agent>,
        timeout_ms: Option<u64>,
        context_lock: Option<ContextLock>,
        begin: Begin,
    ) {
        let StoredTask { seq, task, .. } = stored;
        let timeout = crate::tasks::new_task::task_timeout(&agent, timeout_ms);
        // A waiting task holds its conversation's lock all the while.
        let context_lock =
            context_lock.or_else(|| self.queue.lock_context(Asking::for_task(&task, &agent)));
        let recorder = self.recorder(task, seq, &agent, Feed::new(seq));
        self.spawn(context_lock, recorder, agent, timeout, begin);
    }

    /// Number and usage of the finished tasks below this one.
    async fn ended_descendants(&self, task: &TaskId) -> Result<(u32, Usage), StorageError> {
        let (mut tasks, mut used, mut remaining) = (0_u32, Usage::default(), vec![task.clone()]);
        while let Some(parent) = remaining.pop() {
            let filter = HeadFilter { parent: Some(parent), ..HeadFilter::default() };
            for head in self.storage.heads(filter).await? {
                if head.state.is_final() {
                    tasks = tasks.saturating_add(1);
                    let ended = self.storage.task(&head.task).await?;
                    used.add(Usage::from_metadata(ended.and_then(|it| it.task.metadata).as_ref()));
                }
                remaining.push(head.task);
            }
        }
        Ok((tasks, used))
    }

    /// Adds a recovered task to its tree, with its limits.
    async fn put_in_tree(
        &self,
        head: &Head,
        task: &Task,
        agent: &Agent,
    ) -> Result<(), StorageError> {
        let first_metadata = task.history.first().and_then(|first| first.metadata.as_ref());
        // An invalid budget was refused when the task was created.
        let limits = agent
            .config
            .tree_limits()
            .narrowed(Budget::from_metadata(first_metadata).unwrap_or_default());
        let Some(parent) = &head.parent else {
            self.trees().add_root(task.id.clone(), limits);
            return Ok(());
        };
        let limits = limits.narrowed(self.budget_of(&task.id).await?);
        self.trees().restore_child(parent, task.id.clone(), limits);
        Ok(())
    }

    async fn end(&self, head: &Head, task: &Task, over: TaskEvent) -> Result<(), StorageError> {
        let ClientInput { due, pending_inputs, .. } =
            ClientInput::read_log(&*self.storage, task).await?;
        let due = due.and_then(|at| task.history.get(at)).into_iter();
        let pending_messages = due.chain(pending_inputs.iter().map(|start| &start.message));
        let pending_messages: Vec<_> =
            pending_messages.map(|message| message.message_id.clone()).collect();
        let event = metadata::with_pending_messages(over, &pending_messages);
        self.storage.append(&head.task, head.seq, vec![Arc::new(event.clone())]).await?;
        let mut ended = task.clone();
        a2a_hub_core::task::state::apply(&mut ended, &event)?;
        self.spans.record(&head.agent, &ended);
        Ok(())
    }
}

/// End of a task that cannot continue.
fn failed(task: &Task, why: &str) -> TaskEvent {
    metadata::failed(task, FailureReason::HubRestarted, why, clock::now())
}

/// Description, for people, of the reason why a task cannot continue.
fn why_it_ends(task: &Task, is_orphan: bool) -> &'static str {
    if is_orphan {
        "The hub was restarted, and the task that this one was begun for is over."
    } else if task.status.state == TaskState::Working {
        "The hub was restarted while the agent was at work; what it had done by then is kept."
    } else {
        "The hub was restarted, and the agent that had this task cannot go on with it."
    }
}
