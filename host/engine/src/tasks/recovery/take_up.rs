//! Recovery of the tasks of the previous process.

use super::pending_questions::Answers;
use crate::tasks::{
    Tasks,
    actor::replay,
    command::{Begin, PendingInputs, RunInput},
    handoff::BegunHandoffs,
    run_queue::{Asking, Lane, PermitRequest},
};
use a2a_hub_agents::Agent;
use a2a_hub_clock as clock;
use a2a_hub_conversations::unheard::Unheard;
use a2a_hub_core::{
    access_control::Principal,
    failure_reason::FailureReason,
    task::{
        metadata::{self, QUEUED, REASON, RECOVERY},
        question::{has_undelivered_answer, heard_after_restart},
        recovery::{
            Asks, Recovery, Resumability, UnfinishedTask, answered_for_child, asked_anew,
            still_asks,
        },
        tree_budget::Usage,
        unattended::UnattendedRun,
    },
};
use a2a_hub_observability::log_span;
use a2a_hub_protocol::{
    budget::Budget,
    client::ClientCapabilities,
    error::A2aError,
    event::TaskEvent,
    id::{AgentId, QuestionId, TaskId},
    message::{Message, Role},
    question::{Question, QuestionKind},
    task::{Task, TaskState},
};
use a2a_hub_store::{Head, HeadFilter, StorageError, StoredTask, feed::Feed};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, atomic::Ordering},
};
use tracing::Instrument as _;

/// Number of events of a log that are read at once.
const PAGE: usize = 1_000;

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
struct TakingUp {
    recovered: Recovered,
    /// Tasks with unfinished children.
    parents: BTreeSet<TaskId>,
    /// Tasks that continue once their children are recovered, oldest first.
    later: Vec<Later>,
    /// Handoffs that the previous process had begun.
    handoffs: BegunHandoffs,
    /// Tasks whose agents begin anew, so that the children of their earlier runs end.
    begin_anew: BTreeSet<TaskId>,
    /// New ids of replaced questions, by old id.
    renamed: BTreeMap<QuestionId, QuestionId>,
}

/// A task that continues once its children are recovered, with its conversation's lock.
struct Later {
    stored: StoredTask,
    agent: Arc<Agent>,
    lane: Option<Lane>,
    /// True if its agent is replayed; otherwise its children are relayed for.
    replays: bool,
}

/// Client's input to an unfinished task.
#[derive(Default)]
struct ClientInput {
    /// Time limit of the client, in milliseconds.
    timeout_ms: Option<u64>,
    /// Capabilities of the client.
    client: ClientCapabilities,
    /// Index, in the task's history, of the message for a run that begins now.
    due: Option<usize>,
    /// Index of the message that the latest run began with.
    begun_with: Option<usize>,
    /// Inputs of later runs.
    kept: PendingInputs,
    /// Messages that the latest run has read at work.
    read: PendingInputs,
}

impl Tasks {
    /// Agents with tasks that the previous process left unfinished.
    pub async fn awaited_agents(&self) -> Result<BTreeSet<AgentId>, StorageError> {
        let left = HeadFilter { live_only: true, ..HeadFilter::default() };
        let heads = self.storage.heads(left).await?;
        Ok(heads.into_iter().map(|head| head.agent).collect())
    }

    /// Recovers the tasks that the previous process left unfinished; the hub is up afterwards.
    /// Called only once the hub is complete
    /// ([`StartingHub::take_up`](crate::StartingHub::take_up)).
    pub(crate) async fn recover(&self) -> Result<Recovered, StorageError> {
        let left = HeadFilter { live_only: true, ..HeadFilter::default() };
        let has_tenants = self.storage.has_tenants().await?;
        self.may_have_tenants.store(has_tenants, Ordering::Relaxed);
        let heads = self.storage.heads(left).await?;
        let parents = heads.iter().filter_map(|head| head.parent.clone()).collect();
        let handoffs = self.begun_handoffs(&heads).await?;
        let mut all = TakingUp { parents, handoffs, ..TakingUp::default() };
        // Oldest first: waiting tasks keep their order.
        for head in heads.into_iter().rev() {
            let span = log_span::of_head(&head);
            let taken_up = self.take_up(&head, &mut all);
            match taken_up.instrument(span).await {
                Err(why @ StorageError::Unavailable(_)) => return Err(why),
                // A damaged task must not delay the others.
                Err(why) => {
                    tracing::error!(task = %head.task, %why, "a task cannot be taken up, and is left as it is");
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

    async fn take_up(&self, head: &Head, all: &mut TakingUp) -> Result<(), StorageError> {
        let Some(stored) = self.storage.task(&head.task).await? else { return Ok(()) };
        if let Some(facts) = all.handoffs.old.remove(&head.task) {
            let over = metadata::canceled(&stored.task, Some(facts), clock::now());
            return self.end(head, &stored.task, over).await;
        }
        let agent = match self.agent_of(head).await? {
            Ok(agent) => agent,
            Err(gone) => {
                all.recovered.failed += 1;
                return self.end(head, &stored.task, failed(&stored.task, &gone)).await;
            }
        };
        let left = self.left(head, &stored.task, agent.as_deref(), all).await?;
        if let Some(agent) = &agent {
            self.put_in_tree(head, &stored.task, agent).await?;
            let (tasks, used) = self.ended_below(&head.task).await?;
            self.trees().count(&head.task, tasks, used);
        }
        let unattended = UnattendedRun::of(&stored.task);
        let how = unattended.as_ref().map_or_else(|| left.recovery(), |run| run.recovery(left));
        match (how, agent) {
            (Recovery::Leave, _) => {}
            (Recovery::Fail, _) | (_, None) => {
                self.trees().fell(&head.task);
                // Any other reason counts for unattended runs as well.
                let of_rule = unattended.filter(|_| left.hold.is_some() && !left.is_orphan);
                let why = of_rule.map(|run| run.why_it_fails());
                let why = why.unwrap_or_else(|| why_it_ends(&stored.task, left.is_orphan).into());
                let over = failed(&stored.task, &why);
                self.end(head, &stored.task, over).await?;
                all.recovered.failed += 1;
            }
            (Recovery::Start, Some(agent)) => {
                self.start_again(stored, agent).await?;
                all.recovered.started += 1;
            }
            (Recovery::Again, Some(agent)) => {
                if left.hold != Some(Resumability::Session) {
                    all.begin_anew.insert(head.task.clone());
                }
                self.begin_again(stored, agent, left).await?;
                all.recovered.started += 1;
            }
            (Recovery::Wait, Some(agent)) => {
                let said = self.said(&stored.task).await?;
                self.park(stored, agent, said, None);
                all.recovered.waiting += 1;
            }
            (Recovery::Ask(state), Some(agent)) => {
                all.renamed.extend(self.ask_again(stored, agent, state, None).await?);
                all.recovered.waiting += 1;
            }
            (how @ (Recovery::Replay | Recovery::Tend), Some(agent)) => {
                // Taken before any task that waits for it.
                let lane = self.queue.hold_lane(Asking::of(&stored.task, &agent));
                let replays = how == Recovery::Replay;
                all.later.push(Later { stored, agent, lane, replays });
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
    async fn left(
        &self,
        head: &Head,
        task: &Task,
        agent: Option<&Agent>,
        all: &TakingUp,
    ) -> Result<UnfinishedTask, StorageError> {
        let hold = match agent {
            Some(agent) => Some(self.hold(agent, &head.task).await?),
            None => None,
        };
        let waits = all.handoffs.new.contains(&head.task);
        Ok(UnfinishedTask {
            state: if waits { TaskState::Submitted } else { head.state },
            queued: waits || metadata::has(task, QUEUED),
            answered: has_undelivered_answer(task),
            hold,
            asks: Asks::of(task),
            has_children: all.parents.contains(&head.task),
            // Older tasks were recovered before this one.
            is_orphan: head.parent.as_ref().is_some_and(|parent| {
                let is_it = |later: &Later| later.stored.task.id == *parent;
                let is_gone = self.find(parent).is_none() && !all.later.iter().any(is_it);
                is_gone || all.begin_anew.contains(parent)
            }),
        })
    }

    /// Cancels a task at a remote agent whose parent is over.
    fn cancel_orphan(&self, task: &TaskId) {
        let (tasks, orphan) = (self.clone(), task.clone());
        self.actors.spawn(async move {
            if let Err(why) = tasks.cancel(&orphan, Principal::Operator).await {
                let why = A2aError::from(why);
                tracing::warn!(task = %orphan, %why, "a task whose parent is over goes on elsewhere");
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
        let ClientInput { timeout_ms, client, due, begun_with, mut kept, mut read } =
            self.said(&task).await?;
        if due.is_none() {
            read.append(&mut kept);
            kept = read;
        }
        // The message that began the task, or an answer that its agent has not received.
        let due = due.or(begun_with).and_then(|at| Some((at, task.history.get(at)?.clone())));
        let Some((at, message)) = due else { return Ok(()) };
        let message = match Question::of(task.metadata.as_ref()) {
            // A remote agent still waits for the answer.
            Some(asked) if agent.resumability(&task.id).await != Resumability::Work => {
                heard_after_restart(message, asked.replaces.unwrap_or(asked.kind))
            }
            Some(_) | None => message,
        };
        let start = start(&task, client, (at, message));
        let begin = |admitted| Begin::Work(start, admitted, kept);
        self.set_to_work(seq, task, agent, timeout_ms, None, begin);
        Ok(())
    }

    /// Resumability of the task: replay is possible only if its runs were recorded from the
    /// beginning.
    async fn hold(&self, agent: &Agent, task: &TaskId) -> Result<Resumability, StorageError> {
        let hold = agent.resumability(task).await;
        if hold == Resumability::Replay && replay::seed(&*self.storage, task).await?.is_none() {
            return Ok(Resumability::Nothing);
        }
        Ok(hold)
    }

    /// Continues a task whose children are recovered.
    async fn go_on_with_children(
        &self,
        later: Later,
        all: &mut TakingUp,
    ) -> Result<(), StorageError> {
        let Later { mut stored, agent, lane, replays } = later;
        let children = self.trees().children(&stored.task.id);
        if !replays && (children.is_empty() || !agent.delegates()) {
            self.ask_again(stored, agent, TaskState::InputRequired, lane).await?;
            all.recovered.waiting += 1;
            return Ok(());
        }
        let answers = self.asked_for_children(&mut stored, &children, replays, all).await?;
        let StoredTask { seq, task, .. } = stored;
        let ClientInput { timeout_ms, client, begun_with, mut kept, mut read, .. } =
            self.said(&task).await?;
        if !replays {
            let begin = |admitted| Begin::Tend(admitted, kept, answers);
            self.set_to_work(seq, task, agent, timeout_ms, lane, begin);
            all.recovered.waiting += 1;
            return Ok(());
        }
        // The journal contains the run's input, unless the run had not begun.
        let begun_with = begun_with.and_then(|at| Some((at, task.history.get(at)?.clone())));
        let Some((at, message)) = begun_with else { return Ok(()) };
        let start = start(&task, client, (at, message));
        // The actor leaves out those that the journal has.
        read.append(&mut kept);
        let begin = |admitted| Begin::Replay(start, admitted, read, answers);
        self.set_to_work(seq, task, agent, timeout_ms, lane, begin);
        all.recovered.replayed += 1;
        Ok(())
    }

    /// Updates a relayed question of the task to its child's current one; returns the client's
    /// answers to relayed questions.
    async fn asked_for_children(
        &self,
        stored: &mut StoredTask,
        children: &[TaskId],
        replays: bool,
        all: &TakingUp,
    ) -> Result<Answers, StorageError> {
        // The agent's own question stays open until the replay reaches it.
        let stands = replays && metadata::asks(&stored.task);
        let mut answers = Answers::none(stands);
        let asked = Question::of(stored.task.metadata.as_ref());
        let Some(asked) = asked.filter(|asked| asked.task.is_some()) else { return Ok(answers) };
        for child in children {
            let Some(child) = self.storage.task(child).await? else { continue };
            let renamed = |id: &QuestionId| all.renamed.get(id).cloned();
            if let Some(answer) = answered_for_child(&stored.task, &child.task, renamed) {
                answers.keep(answer);
                break;
            }
            if !metadata::asks(&stored.task) {
                continue;
            }
            if still_asks(&asked, &child.task) {
                answers.stands = true;
                break;
            }
            if let Some((asked, prompt)) = asked_anew(&asked, &child.task, &child.agent) {
                let state = match asked.kind {
                    QuestionKind::Auth => TaskState::AuthRequired,
                    QuestionKind::Input | QuestionKind::Permission => TaskState::InputRequired,
                };
                let now = clock::now();
                let asks = metadata::asked_for_child(&stored.task, state, &asked, prompt, now);
                self.ask(stored, state, asks).await?;
                answers.stands = true;
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
        let ClientInput { timeout_ms, kept, .. } = self.said(&task).await?;
        let begin = |admitted| Begin::Follow(admitted, kept);
        self.set_to_work(seq, task, agent, timeout_ms, None, begin);
        Ok(())
    }

    /// Spawns an actor with this initial state, once the task has a run permit; `lane` is set if
    /// the task holds its conversation's lock already.
    fn set_to_work(
        &self,
        seq: u64,
        task: Task,
        agent: Arc<Agent>,
        timeout_ms: Option<u64>,
        lane: Option<Lane>,
        begin: impl FnOnce(PermitRequest) -> Begin,
    ) {
        let asking = Asking::of(&task, &agent);
        let admitted = match lane {
            Some(_) => self.queue.go_on(asking),
            None => self.queue.take_up(asking),
        };
        let patience = crate::tasks::new_task::patience(&agent, timeout_ms);
        let recorder = self.recorder(task, seq, &agent, Feed::new(seq));
        self.spawn(lane, recorder, agent, patience, begin(admitted));
    }

    /// Reads the client's input to the task from its log.
    async fn said(&self, task: &Task) -> Result<ClientInput, StorageError> {
        let mut said = ClientInput::default();
        let mut unheard = Unheard::default();
        // The first event contains everything, unless more messages followed; a log may be long.
        let of_client = task.history.iter().filter(|said| said.role == Role::User);
        let page = if of_client.count() > 1 { PAGE } else { 1 };
        let mut seq = 0;
        loop {
            let events = self.storage.events(&task.id, seq, page).await?;
            let is_last = page == 1 || events.len() < page;
            for event in events {
                seq = event.seq;
                unheard.follow(&event.event);
                if let TaskEvent::Created(created) = event.event {
                    (said.timeout_ms, said.client) = (created.timeout_ms, created.client);
                }
            }
            if is_last {
                break;
            }
        }
        let (due, kept) = unheard.places(task);
        let inputs = |places: Vec<usize>| {
            let known =
                places.into_iter().filter_map(|at| Some((at, task.history.get(at)?.clone())));
            known.map(|message| start(task, said.client.clone(), message)).collect()
        };
        let (kept, read) = (inputs(kept), inputs(unheard.read(task)));
        let begun_with = unheard.begun_with(task);
        Ok(ClientInput { due, begun_with, kept, read, ..said })
    }

    /// Asks the client in place of an agent that is gone. Returns the ids of the agent's question
    /// and of its replacement, if the agent had asked.
    async fn ask_again(
        &self,
        mut stored: StoredTask,
        agent: Arc<Agent>,
        state: TaskState,
        lane: Option<Lane>,
    ) -> Result<Option<(QuestionId, QuestionId)>, StorageError> {
        let asked = |task: &Task| Question::of(task.metadata.as_ref());
        let lost = asked(&stored.task);
        // A hub that restarts every day need not repeat the notice.
        let is_told = metadata::text(&stored.task, REASON) == Some(RECOVERY) && lost.is_some();
        if !is_told || stored.task.status.state != state {
            let asks = metadata::interrupted(&stored.task, &agent.card.name, state, clock::now());
            self.ask(&mut stored, state, asks).await?;
        }
        let said = self.said(&stored.task).await?;
        let now = asked(&stored.task);
        self.park(stored, agent, said, lane);
        let own = lost.filter(|lost| lost.task.is_none());
        Ok(own.zip(now).map(|(lost, now)| (lost.id, now.id)))
    }

    /// Spawns an actor that waits for the client without an agent; `lane` is set if the task holds
    /// its conversation's lock already.
    fn park(&self, stored: StoredTask, agent: Arc<Agent>, said: ClientInput, lane: Option<Lane>) {
        let StoredTask { seq, task, .. } = stored;
        let patience = crate::tasks::new_task::patience(&agent, said.timeout_ms);
        // A waiting task holds its conversation's lock all the while.
        let lane = lane.or_else(|| self.queue.hold_lane(Asking::of(&task, &agent)));
        let recorder = self.recorder(task, seq, &agent, Feed::new(seq));
        self.spawn(lane, recorder, agent, patience, Begin::Parked(said.kept));
    }

    /// Number and usage of the finished tasks below this one.
    async fn ended_below(&self, task: &TaskId) -> Result<(u32, Usage), StorageError> {
        let (mut tasks, mut used, mut left) = (0_u32, Usage::default(), vec![task.clone()]);
        while let Some(parent) = left.pop() {
            let below = HeadFilter { parent: Some(parent), ..HeadFilter::default() };
            for head in self.storage.heads(below).await? {
                if head.state.is_final() {
                    tasks = tasks.saturating_add(1);
                    let ended = self.storage.task(&head.task).await?;
                    used.add(Usage::of(ended.and_then(|it| it.task.metadata).as_ref()));
                }
                left.push(head.task);
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
        let said = task.history.first().and_then(|first| first.metadata.as_ref());
        // An invalid budget was refused when the task was created.
        let limits = agent.config.tree_limits().narrowed(Budget::of(said).unwrap_or_default());
        let Some(parent) = &head.parent else {
            self.trees().plant(task.id.clone(), limits);
            return Ok(());
        };
        let limits = limits.narrowed(self.budget_of(&task.id).await?);
        self.trees().adopt(parent, task.id.clone(), limits);
        Ok(())
    }

    async fn end(&self, head: &Head, task: &Task, over: TaskEvent) -> Result<(), StorageError> {
        let ClientInput { due, kept, .. } = self.said(task).await?;
        let due = due.and_then(|at| task.history.get(at)).into_iter();
        let unheard = due.chain(kept.iter().map(|start| &start.message));
        let unheard: Vec<_> = unheard.map(|message| message.message_id.clone()).collect();
        let event = metadata::with_unheard(over, &unheard);
        self.storage.append(&head.task, head.seq, vec![Arc::new(event.clone())]).await?;
        let mut ended = task.clone();
        a2a_hub_core::task::state::apply(&mut ended, &event)?;
        self.spans.of(&head.agent, &ended);
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

/// Input of the agent, from a message of a recovered task and its index in the history.
fn start(
    task: &Task,
    client: ClientCapabilities,
    (at, message): (usize, Message),
) -> Box<RunInput> {
    let directory = metadata::working_directory(task);
    Box::new(RunInput { message, client, directory, live: true, goes_on: true, at, by: None })
}
