//! Tasks: one actor for each running task, and a permanent log for all.

mod account_quotas;
mod actor;
mod command;
mod delegation;
mod detach_on_drop;
mod guest_port;
mod handoff;
mod login_user;
mod new_task;
mod permissions;
mod ports;
mod query;
mod recovery;
mod registry;
mod reviews;
mod run_queue;
mod shared;
#[cfg(test)]
mod tests;
mod worktree;
mod worktree_retention;

pub use a2a_hub_store::feed::{EndsAt, Subscription};
pub use delegation::directory::Directory;
pub use new_task::{NewTask, ResponseMode, SubmitError, TaskRefused};
pub(crate) use permissions::PermissionOperations;
pub use query::routing_facts::require_scopes;
pub(crate) use query::{
    notices::Notices, questions::Questions, search::TaskHistory, visible::VisibleTasks,
};
pub use recovery::recover_tasks::Recovered;
pub(crate) use reviews::{ReviewLocks, ReviewRecipient, TaskReviews};

use crate::conversations::refusals::{not_cancelable, not_waiting, require_past_event};
use crate::error::HubError;
use crate::observability::{hub_events::Events, log_span, span_export::Spans};
use a2a_hub_agents::Agent;
use a2a_hub_clock as clock;
use a2a_hub_core::{
    access_control::Principal,
    context_memory::transfer::INHERITED,
    grant::Reports,
    identity::LoginUser,
    routing::ROUTING,
    task::{
        metadata::{
            FLOW_FILE, GRANTED_PERMISSIONS, QUEUED, WAITS_UNTIL, WORKTREE, addressed, queued_after,
        },
        prices::{Prices, UNCOUNTED, uncounted},
        trace_context::{Trace, facts_of_child},
        tree_budget::{Trees, Usage},
    },
};
use a2a_hub_protocol::{
    client::ClientCapabilities,
    error::{A2aError, ErrorKind},
    event::{Created, SequencedEvent, TaskEvent},
    hub::event::HubEventKind,
    id::{AgentId, ContextId, TaskId, TenantId},
    message::{Message, Role},
    operation::StorageCondition,
    parent::Parent,
    question,
    task::{Task, TaskState, TaskStatus},
};
use a2a_hub_store::{
    Head, HeadFilter, Readiness, StorageError, StoredTask, Tally, TaskLog, TaskStore, TaskView,
    feed::Feed, until_usable,
};
use account_quotas::{AccountQuotas, account_of, default_account};
use actor::{
    TaskActor,
    eviction::EvictionQueue,
    recorder::{DeferredCreation, Recorder},
};
use command::{ActorCommand, Begin, Input, PendingInputs, RunInput};
use login_user::login_user;
use new_task::{Settled, Settling};
use parking_lot::MutexGuard;
use permissions::RuleBook;
use ports::OtherTasks as _;
use recovery::phase::HubPhase;
use registry::{ActorHandle, RunningTasks};
use run_queue::{Asking, ContextLock, PermitRequest, RunQueue};
use serde_json::json;
use shared::TasksParts;
use std::{
    ops::Deref,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::{
    sync::{mpsc, oneshot},
    time::timeout,
};
use tokio_util::task::TaskTracker;
use tracing::Instrument as _;

/// Capacity of an actor's command channel; senders wait beyond it.
const COMMANDS: usize = 8;

/// Time that a cancellation waits for the task's end. The deadlines of an agent, its programs and
/// its clean-up add up to less.
const CANCEL_DEADLINE: Duration = Duration::from_secs(30);

/// Polling interval for tasks that are ending.
const POLL_INTERVAL: Duration = Duration::from_millis(25);

/// Starts tasks, finds them, and stops them at shutdown. Cheap to clone.
#[derive(Clone)]
pub struct Tasks(Arc<TasksParts>);

impl Deref for Tasks {
    type Target = TasksParts;

    fn deref(&self) -> &TasksParts {
        &self.0
    }
}

impl Tasks {
    /// Creates the task service, with no tasks but those in the log. `directory` resolves their
    /// agents; `events` receives what happens to them.
    pub fn new(storage: Arc<dyn TaskStore>, events: Events, directory: Directory) -> Self {
        let (actors, running) = (TaskTracker::new(), Arc::default());
        let readiness = Readiness::new(storage.clone());
        let (queue, evictions, cut) =
            (RunQueue::default(), EvictionQueue::default(), Arc::default());
        let (trees, spans, prices) = Default::default();
        let published = events.clone();
        storage.set_notice_listener(Arc::new(move |tenant: &TenantId| {
            published.publish(HubEventKind::NoticesChanged { tenant: tenant.clone() });
        }));
        Self(Arc::new(TasksParts {
            permissions: Arc::new(RuleBook::new(Arc::clone(&storage))),
            storage,
            readiness,
            events,
            spans,
            actors,
            running,
            queue,
            evictions,
            trees,
            prices,
            worktrees: None,
            worktrees_in_use: Arc::default(),
            directory,
            phase: HubPhase::starting(),
            cut,
            quotas: AccountQuotas::default(),
            may_have_tenants: Arc::new(AtomicBool::new(true)),
        }))
    }

    /// True if tasks of tenants other than the default may exist. If none can, nobody needs to
    /// filter by tenant.
    pub fn may_have_tenants(&self) -> bool {
        self.may_have_tenants.load(Ordering::Relaxed)
    }

    /// Sends the spans of tasks to `spans`.
    #[must_use]
    pub fn with_spans(mut self, spans: Spans) -> Self {
        Arc::make_mut(&mut self.0).spans = spans;
        self
    }

    /// Sets the prices of models for the tasks that begin from now on.
    pub fn set_prices(&self, prices: Prices) {
        *self.prices.lock() = Arc::new(prices);
    }

    /// Reason why spans cannot be sent now, if they cannot.
    pub fn span_export_failure(&self) -> Option<String> {
        self.spans.failure()
    }

    /// Starts a task, now or once it gets a run permit. The task is in the log when this returns.
    pub async fn submit(&self, mut new: Box<NewTask>) -> Result<Subscription, SubmitError> {
        let id = new.id.take().unwrap_or_else(TaskId::fresh);
        self.trees().add_root(id.clone(), new.limits);
        let begun = self.submit_as(id.clone(), new, None, false).await;
        if begun.is_err() {
            self.trees().remove(&id);
            self.abandon_worktree(&id).await;
        }
        begun
    }

    /// Account of a new task, which `by` begins, or the party that began the root of its tree.
    async fn account(
        &self,
        agent: &Agent,
        task: &TaskId,
        (by, root): (&Principal, Option<&TaskId>),
        directory: Option<&str>,
    ) -> Result<String, SubmitError> {
        if !agent.may_have_logins() {
            return Ok(default_account(agent).to_owned());
        }
        let user = match root {
            None => LoginUser::of(Some(by)),
            Some(root) => {
                let user = login_user(&*self.storage, root).await;
                user.map_err(SubmitError::Storage)?
            }
        };
        Ok(account_of(agent, task, &user, directory).await)
    }

    /// Starts a task that has its node in the trees. With `is_reentrant`, a task above has the same
    /// agent and waits for this one: this task takes the run permit that the other one lends, ahead
    /// of new tasks.
    async fn submit_as(
        &self,
        id: TaskId,
        new: Box<NewTask>,
        parent: Option<Parent>,
        is_reentrant: bool,
    ) -> Result<Subscription, SubmitError> {
        let NewTask {
            agent,
            mut message,
            working_directory,
            worktree,
            timeout_ms,
            response,
            client,
            request,
            by,
            tenant,
            permissions,
            facts,
            inherited,
            trace,
            routing,
            id: _,
            limits: _,
        } = *new;
        let busy = |why| SubmitError::Busy { agent: agent.id.clone(), why };
        let goes_on = message.context_id.is_some();
        let context = message.context_id.take().unwrap_or_else(ContextId::fresh).of_tenant(&tenant);
        if !tenant.is_default() {
            self.may_have_tenants.store(true, Ordering::Relaxed);
        }
        let asking = Asking { agent: &agent, task: &id, context: &context };
        let root = parent.as_ref().map(|parent| &parent.root);
        let account = self.account(&agent, &id, (&by, root), working_directory.as_deref()).await?;
        let waits_until = self.quotas.closed_until(&agent, &account).map_err(busy)?;
        let admitted = if is_reentrant {
            self.queue.readmit(asking)
        } else {
            self.queue.ask(asking).map_err(busy)?
        };
        let parent_id = parent.as_ref().map(|parent| &parent.task);
        let (of, directory, base) = (&agent, working_directory, worktree);
        let new =
            Settling { id: &id, context: &context, agent: of, parent: parent_id, directory, base };
        let Settled { directory, fact } = self.settle_directory(new, &mut message).await?;
        message.context_id = Some(context.clone());
        message.task_id = Some(id.clone());
        let mut known = match &parent {
            Some(parent) => facts_of_child(&message, &parent.task),
            None => Trace::of_client(&id, message.metadata.as_ref(), trace.as_deref())
                .map(|trace| trace.members())
                .unwrap_or_default(),
        };
        known.extend(facts.into_iter().flatten());
        known.extend(
            permissions
                .map(|permissions| (GRANTED_PERMISSIONS.to_owned(), permissions.word().into())),
        );
        known.extend(routing.map(|routing| (ROUTING.to_owned(), json!(routing))));
        known.extend(agent.flow_digest().map(|it| (FLOW_FILE.to_owned(), json!({ "sha256": it }))));
        known.extend(fact.map(|worktree| (WORKTREE.to_owned(), worktree)));
        known.extend(inherited.map(|fact| (INHERITED.to_owned(), json!(fact))));
        if matches!(admitted, PermitRequest::Later(_)) || waits_until.is_some() {
            known.insert(QUEUED.to_owned(), json!(true));
        }
        let waits = waits_until.is_some();
        known.extend(waits_until.map(|until| (WAITS_UNTIL.to_owned(), until.into())));
        let lock_holder = match &admitted {
            PermitRequest::Later(ticket) => ticket.lock_holder.as_ref(),
            PermitRequest::Now(_) => None,
        };
        let is_uncounted = self.trees().limit_cost(&id)
            && agent.reports() == Some(Reports::Tokens)
            && self.prices.lock().0.is_empty();
        let uncounted = is_uncounted.then(|| uncounted(&agent.card.name));
        known.extend(uncounted.clone().map(|why| (UNCOUNTED.to_owned(), why.into())));
        let message_of = lock_holder.map(|first| queued_after(&agent.card.name, first));
        let message_of = message_of.or(uncounted.map(|why| Message::text(Role::Agent, why)));
        let status = TaskStatus {
            state: TaskState::Submitted,
            message: message_of,
            timestamp: clock::now(),
        };
        let mut task = Task {
            id: id.clone(),
            context_id: context.clone(),
            status,
            artifacts: Vec::new(),
            history: vec![message.clone()],
            metadata: Some(known).filter(|known| !known.is_empty()),
        };
        if let Some(status_message) = task.status.message.take() {
            task.status.message = Some(addressed(&task, status_message));
        }
        let (snapshot, client_capabilities) = (task.clone(), client.clone());
        let agent_id = agent.id.clone();
        let seed = agent.replays().then(actor::replay::fresh_seed).flatten();
        let created = Created {
            agent: agent_id,
            task: snapshot,
            timeout_ms,
            client: client_capabilities,
            request,
            parent,
            seed,
            tenant,
        };
        let may_begin = matches!(admitted, PermitRequest::Now(_))
            && !waits
            && agent.only_answers()
            && response.may_defer(&agent);
        let created = Arc::new(TaskEvent::Created(Box::new(created)));
        let start = RunInput {
            message,
            client,
            directory,
            live: response.is_live(),
            goes_on,
            at: 0,
            by: Some(by.clone()),
        };
        let timeout = new_task::task_timeout(&agent, timeout_ms);
        let begin = Begin::Work(Box::new(start), admitted, PendingInputs::new());
        let feed = Feed::new(0);
        // Subscribed before the first event: nothing has to be read from the log.
        let subscription = feed.listener().subscribe(id.clone(), context.clone(), self.log(), 0);
        let subscription = subscription.with_direct_message(agent.may_reply_directly());
        if may_begin {
            let (stored_tx, stored) = oneshot::channel();
            let recorder = self.recorder(task, 0, &agent, feed);
            let unborn = DeferredCreation::new(by, stored_tx, response.is_unobserved());
            let recorder = recorder.beginning(created, unborn);
            self.spawn(None, recorder, agent, timeout, begin);
            stored.await.unwrap_or_else(|_| Err(new_task::never_stored()))?;
            return Ok(subscription);
        }
        let seq = self.storage.append_by(&id, 0, vec![Arc::clone(&created)], Some(&by)).await?;
        self.events.publish(actor::recorder::created(&task, &agent.id));
        let event = Arc::unwrap_or_clone(created);
        feed.publish([SequencedEvent { task: id, context, seq, event }]);
        self.spawn(None, self.recorder(task, seq, &agent, feed), agent, timeout, begin);
        Ok(subscription)
    }

    /// Creates the recorder of a task whose log ends at event `seq`.
    fn recorder(&self, task: Task, seq: u64, agent: &Agent, feed: Feed) -> Recorder {
        let sinks = (self.events.clone(), self.spans.clone());
        let prices = self.prices.lock().clone();
        Recorder::new(task, seq, agent.id.clone(), Arc::clone(&self.storage), sinks, feed)
            .with_prices(prices)
    }

    /// Spawns an actor for a task; `context_lock` is set if it holds its conversation's lock
    /// already.
    fn spawn(
        &self,
        context_lock: Option<ContextLock>,
        recorder: Recorder,
        agent: Arc<Agent>,
        timeout: Duration,
        begin: Begin,
    ) -> ActorHandle {
        let (commands, orders) = mpsc::channel(COMMANDS);
        let task = recorder.task();
        let (id, context) = (task.id.clone(), task.context_id.clone());
        let span = log_span::of_task(task, &agent.id);
        let weak_commands = commands.downgrade();
        let agent_id = agent.id.clone();
        let (calls, listener) = (None, recorder.listener());
        let running = ActorHandle { agent: agent_id, calls, context, commands, listener };
        self.running().begin(id.clone(), running.clone());
        let of = Arc::clone(&agent);
        let queue = (self.queue.clone(), context_lock);
        let quotas = self.quotas.clone();
        let actor = TaskActor::new(recorder, agent, queue, orders, timeout, begin, quotas);
        let actor = actor
            .with_evictions(self.evictions.clone(), weak_commands)
            .with_recovered_wait()
            .among(Arc::new(self.clone()));
        // Boxed: a future stores its arguments, and so does each future around it. Moving a box
        // moves only a pointer.
        let actor = Box::new(actor);
        let tasks = self.clone();
        let life = async move {
            let (exit_tx, remains) = oneshot::channel();
            let run = async move {
                // The receiver is below and waits to the end.
                let _ = exit_tx.send(actor.run().await);
            };
            // The agent may run on its own threads; those are in the span as well.
            of.run_hub_work(Box::pin(run)).await;
            let remains = remains.await;
            if !remains.as_ref().is_ok_and(|remains| remains.keeps_children) {
                // Whatever the task's end was, its children end too.
                let by = Principal::AgentTask { agent: of.id.clone(), task: id.clone() };
                tasks.end_children(&id, &by).await;
            }
            tasks.running().remove(&id);
            let Ok(remains) = remains else {
                tasks.leave_tree(&id, Usage::default());
                return;
            };
            tasks.leave_tree(&id, remains.used);
            if remains.was_cut {
                tasks.cut().push(id.clone());
            }
            Box::pin(remains.reap()).await;
            tasks.remove_worktrees_after(&id).await;
        };
        self.actors.spawn(life.instrument(span));
        running
    }

    /// Subscribes to the events of a task after event `after`; without `after`, to a snapshot of
    /// the task and the events that follow it.
    pub async fn resubscribe(
        &self,
        id: &TaskId,
        after: Option<u64>,
    ) -> Result<Subscription, HubError> {
        // Looked up before the log is read: events that are received later are newer than those
        // read now.
        let running = self.find(id);
        let stored = self.get(id).await?;
        require_past_event(after, stored.seq)?;
        Ok(match after {
            Some(after) => self.subscribe_to(running, &stored, after),
            None => self.subscribe_from_snapshot(running, stored),
        })
    }

    /// Subscription that opens with the task as read. `running` was looked up before the read.
    fn subscribe_from_snapshot(
        &self,
        running: Option<ActorHandle>,
        stored: StoredTask,
    ) -> Subscription {
        let subscription = self.subscribe_to(running, &stored, stored.seq);
        subscription.opening(stored.agent, stored.task, stored.seq)
    }

    fn subscribe_to(
        &self,
        running: Option<ActorHandle>,
        stored: &StoredTask,
        after: u64,
    ) -> Subscription {
        let StoredTask { seq, task, .. } = stored;
        let listener =
            running.map_or_else(|| Feed::new(*seq).listener(), |running| running.listener);
        listener.subscribe(task.id.clone(), task.context_id.clone(), self.log(), after)
    }

    /// Subscribes again to the task of an earlier, identical request, after event `after`.
    pub async fn repeat(&self, id: &TaskId, after: u64) -> Result<Subscription, HubError> {
        Ok(self.resubscribe(id, Some(after)).await?.repeated())
    }

    /// Subscribes to the events of a task after event `after` until the task is over, also while it
    /// waits for its client.
    pub async fn follow(&self, id: &TaskId, after: u64) -> Result<Subscription, HubError> {
        Ok(self.resubscribe(id, Some(after)).await?.until(EndsAt::Over))
    }

    /// Summary of a task.
    pub async fn head(&self, id: &TaskId) -> Result<Head, HubError> {
        self.storage.head(id).await?.ok_or_else(|| A2aError::no_task(id).into())
    }

    /// Agent and conversation of a task.
    pub async fn whose(&self, id: &TaskId) -> Result<(AgentId, ContextId), HubError> {
        self.storage.whose(id).await?.ok_or_else(|| A2aError::no_task(id).into())
    }

    /// Tenant of a task; `None` for an unknown one.
    pub(crate) async fn tenant_of(&self, id: &TaskId) -> Result<Option<TenantId>, StorageError> {
        if !self.may_have_tenants() {
            return Ok(Some(TenantId::default()));
        }
        let whose = self.storage.whose(id).await?;
        Ok(whose.map(|(_, context)| context.tenant().clone()))
    }

    /// View of a task for clients.
    pub async fn view(&self, id: &TaskId) -> Result<TaskView, HubError> {
        self.storage.view(id).await?.ok_or_else(|| A2aError::no_task(id).into())
    }

    /// Sends a message to an unfinished task, as the answer to its question or as further input.
    /// The subscription receives what follows, or the events after event `after`.
    pub async fn answer(
        &self,
        id: &TaskId,
        message: Message,
        client: ClientCapabilities,
        after: Option<u64>,
        by: Principal,
    ) -> Result<Subscription, HubError> {
        let Some(running) = self.find(id) else {
            let stored = self.get(id).await?;
            return Err(not_waiting(id, stored.task.status.state).into());
        };
        if message
            .context_id
            .as_ref()
            .is_some_and(|context| context.as_str() != running.context.as_str())
        {
            let why = format!("task `{id}` belongs to the context `{}`", running.context);
            return Err(A2aError::invalid("message.contextId", why).into());
        }
        let answers = question::answered(&message)?;
        let seq = running.listener.seq();
        require_past_event(after, seq)?;
        // Subscribed before the task continues: nothing has to be read from the log.
        let follows = self.subscribe(id, &running, after.unwrap_or(seq));
        let (reply_tx, answer) = oneshot::channel();
        let is_further = false;
        let input = Input { message, answers, is_further, client, by, reply_tx };
        self.input(id, input, answer).await?;
        Ok(follows)
    }

    /// Sends a task at work a further message, which answers no question.
    pub(crate) async fn send_further(
        &self,
        id: &TaskId,
        message: Message,
        by: Principal,
    ) -> Result<(), HubError> {
        let (reply_tx, answer) = oneshot::channel();
        let (answers, is_further, client) = (None, true, ClientCapabilities::default());
        self.input(id, Input { message, answers, is_further, client, by, reply_tx }, answer).await
    }

    async fn input(
        &self,
        id: &TaskId,
        input: Input,
        answer: oneshot::Receiver<Result<(), A2aError>>,
    ) -> Result<(), HubError> {
        let input = ActorCommand::Input(Box::new(input));
        let answer = match self.find(id) {
            Some(running) if running.commands.send(input).await.is_ok() => answer.await.ok(),
            Some(_) | None => None,
        };
        match answer {
            Some(answer) => Ok(answer?),
            // The task ended before it received the message.
            None => Err(not_waiting(id, self.get(id).await?.task.status.state).into()),
        }
    }

    /// Stops a task and returns it as it ended. Fails if the task ended otherwise in the meantime.
    pub async fn cancel(&self, id: &TaskId, by: Principal) -> Result<Task, HubError> {
        let Some(running) = self.find(id) else {
            return Err(not_cancelable(id, self.get(id).await?.task.status.state).into());
        };
        let cancelled = async {
            // The final state tells whether the task received the command or had just ended.
            let _ = running.commands.send(ActorCommand::Cancel { by, facts: None }).await;
            running.commands.closed().await;
        };
        if timeout(CANCEL_DEADLINE, cancelled).await.is_err() {
            let why = format!(
                "task `{id}` was told to stop and has not ended yet; ask for it with `tasks/get`"
            );
            return Err(A2aError::new(ErrorKind::Timeout, why).into());
        }
        let task = self.get(id).await?.task;
        let state = task.status.state;
        if state == TaskState::Canceled { Ok(task) } else { Err(not_cancelable(id, state).into()) }
    }

    /// Lets a task that waits for its agent's quota try now. Fails if it does not wait.
    pub async fn retry_now(&self, id: &TaskId) -> Result<Task, HubError> {
        let (reply_tx, reply) = oneshot::channel();
        let retry = ActorCommand::RetryNow(reply_tx);
        let reply = match self.find(id) {
            Some(running) if running.commands.send(retry).await.is_ok() => reply.await.ok(),
            Some(_) | None => None,
        };
        let task = self.get(id).await?.task;
        // The task ended before it received the command.
        reply.unwrap_or_else(|| Err(not_waiting(id, task.status.state)))?;
        Ok(task)
    }

    /// A task, read from its log.
    pub async fn get(&self, id: &TaskId) -> Result<StoredTask, HubError> {
        self.stored(id).await?.ok_or_else(|| A2aError::no_task(id).into())
    }

    /// A task, read from its log; none if it does not exist.
    pub async fn stored(&self, id: &TaskId) -> Result<Option<StoredTask>, StorageError> {
        self.storage.task(id).await
    }

    /// Waits until a failing store works again; waits for `pause` if the store is not known to
    /// fail.
    pub async fn until_usable(&self, pause: Duration) {
        until_usable(&*self.storage, pause).await;
    }

    /// Number of tasks by agent and state.
    pub async fn tally(&self) -> Result<Vec<Tally>, StorageError> {
        self.storage.tally().await
    }

    /// Size of the store in bytes.
    pub async fn stored_bytes(&self) -> Result<u64, StorageError> {
        self.storage.size().await
    }

    /// Number of changes that wait to be stored.
    pub fn backlog(&self) -> usize {
        self.storage.backlog()
    }

    /// Condition of the store, checked now.
    pub async fn can_be_stored(&self) -> StorageCondition {
        self.readiness.now().await
    }

    /// Last known condition of the store; makes no test write.
    pub fn storage_known(&self) -> StorageCondition {
        self.storage.condition().borrow().clone()
    }

    /// Waits until no task is submitted or working. Ignores tasks that wait for their client or for
    /// a quota, which may take days.
    pub async fn idle(&self) -> Result<(), StorageError> {
        for state in [TaskState::Submitted, TaskState::Working] {
            loop {
                let waiting = self.quotas.waiting();
                let (state, limit) = (Some(state), waiting.len() + 1);
                let some = HeadFilter { state, limit, ..HeadFilter::default() };
                let heads = self.storage.heads(some).await?;
                if heads.iter().all(|head| waiting.contains(&head.task)) {
                    break;
                }
                tokio::time::sleep(POLL_INTERVAL).await;
            }
        }
        Ok(())
    }

    /// Stops all tasks, waits until their ends are in the log, and returns those that were
    /// interrupted at work. Tasks that wait for a run permit or for their client resume in the next
    /// process.
    pub async fn shutdown(&self) -> Vec<TaskId> {
        // Set before any task gets its command: from now on no run records a result of another
        // task.
        self.phase.stop();
        let running = self.running().go_down();
        for task in running {
            // A task that has just ended needs no command.
            let _ = task.commands.send(ActorCommand::Shutdown).await;
        }
        self.actors.close();
        self.actors.wait().await;
        std::mem::take(&mut *self.cut())
    }

    fn cut(&self) -> MutexGuard<'_, Vec<TaskId>> {
        self.cut.lock()
    }

    fn trees(&self) -> MutexGuard<'_, Trees> {
        self.trees.lock()
    }

    /// Subscribes to the events of a running task after event `after`, until it is over.
    fn listen(&self, id: &TaskId, after: u64) -> Option<Subscription> {
        let running = self.find(id)?;
        Some(self.subscribe(id, &running, after).until(EndsAt::Over))
    }

    fn find(&self, id: &TaskId) -> Option<ActorHandle> {
        self.running().get(id).cloned()
    }

    fn subscribe(&self, id: &TaskId, running: &ActorHandle, after: u64) -> Subscription {
        running.listener.subscribe(id.clone(), running.context.clone(), self.log(), after)
    }

    fn log(&self) -> Arc<dyn TaskLog> {
        Arc::clone(&self.storage) as _
    }

    fn running(&self) -> MutexGuard<'_, RunningTasks> {
        self.running.lock()
    }
}
