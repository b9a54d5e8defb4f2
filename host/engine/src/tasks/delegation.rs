//! Delegation from an agent at work to other agents: its calls become tasks of those agents, and
//! children of its task.
//!
//! Two subscribers follow a child, each at its own pace: the guest, which polls for updates, and
//! the hub, which relays the child's questions to the parent's client and the answers back.

pub(super) mod boards;
pub(super) mod call_errors;
pub(super) mod child_call;
pub(super) mod child_message;
pub(super) mod child_routing;
mod child_worktree;
pub(super) mod conversation_access;
pub(super) mod directory;
pub(super) mod lent_permit;
pub(super) mod memory_transfer;
pub(super) mod program_calls;
pub(super) mod question_relay;
pub(super) mod recorded_calls;
mod tree_limits;

use super::{
    NewTask, ResponseMode, SubmitError, Subscription, Tasks,
    command::ActorCommand,
    delegation::{
        call_errors::{failed, no_child, refused},
        child_call::ChildCall,
        lent_permit::LentTurn,
        memory_transfer::{GiverTask, hand_over, requested_transfer},
        question_relay::QuestionRelay,
        recorded_calls::RecordedCalls,
    },
    guest_port::{AnswerRequests, GuestRequest},
    permissions::TaskRules,
    ports::{Handoff, OtherTasks, ProgramCalls, RunKind},
};
use a2a_hub_agents::Agent;
use a2a_hub_config::Permissions;
use a2a_hub_core::{
    access_control::Principal,
    context_memory::inherit::Inherit,
    grant::delegate::Callee,
    routing::Routing,
    task::{
        metadata,
        tree_budget::{Exhausted, Usage},
    },
};
use a2a_hub_process::{Panicked, run_blocking};
use a2a_hub_protocol::{
    client::ClientCapabilities,
    event::StatusUpdate,
    id::{AgentId, ContextId, TaskId},
    message::Metadata,
    operation::{AgentQuery, FoundAgents},
    parent::Parent,
    scheduled::AutomatedRun,
    task::Task,
};
use a2a_hub_runtime::{
    Ended, Failure, WrapRun, directories,
    port::{
        delegate::{CallPort, ChildRequest, ChildTask, DelegatePort, JoinChild},
        tasks::WaitsFor,
    },
};
use a2a_hub_store::{
    KnownChildren, StoredTask,
    feed::{EndsAt, Lent},
};
use a2a_hub_worktrees::Worktrees;
use futures::{
    FutureExt as _,
    future::{BoxFuture, join_all},
};
use parking_lot::Mutex as SyncMutex;
use serde_json::Value;
use std::{collections::BTreeSet, fs, slice, sync::Arc, time::Duration};
use tokio::{
    sync::{Mutex, mpsc},
    time::Instant,
};
use tracing::Instrument as _;

/// Time limit for ending the children of a finished task; longer than each child's own limit.
const END_DEADLINE: Duration = Duration::from_secs(60);

/// Delegation calls of one task's agent. Cheap to clone, except for the task.
#[derive(Clone)]
pub(super) struct Delegation {
    pub(super) tasks: Tasks,
    /// The calling agent.
    pub(super) agent: Arc<Agent>,
    /// Its task, as of the beginning of this run.
    pub(super) task: Task,
    /// The actor of that task.
    queue: mpsc::Sender<GuestRequest>,
    /// Held while a child's question is open before the client: one at a time.
    asking: Arc<Mutex<()>>,
    /// Children whose questions are relayed.
    relayed_children: Arc<SyncMutex<BTreeSet<TaskId>>>,
    known_children: Arc<Mutex<KnownChildren>>,
}

impl Delegation {
    fn principal(&self) -> Principal {
        Principal::AgentTask { agent: self.agent.id.clone(), task: self.task.id.clone() }
    }

    fn call(&self, subscription: Subscription) -> ChildCall {
        ChildCall::new(self.tasks.clone(), Arc::clone(&self.agent), self.principal(), subscription)
    }

    /// Working directory of the child: the parent's, or one below it, to which no link leads: a
    /// program that works there could have made it.
    async fn directory(&self, wanted: Option<String>) -> Result<Option<String>, Failure> {
        let parent_directory = metadata::working_directory(&self.task);
        let Some(wanted) = wanted else { return Ok(parent_directory) };
        let is_inside = match &parent_directory {
            Some(parent_directory) => {
                directories::contain(slice::from_ref(parent_directory), &wanted)
                    && !leads_out(parent_directory, &wanted).await?
            }
            // The client named no directory; the agent's own grant decides.
            None => !directories::climbs(&wanted) && self.agent.may_work_in(&wanted),
        };
        if is_inside {
            return Ok(Some(wanted));
        }
        Err(Failure::Denied(format!(
            "have another agent work in `{wanted}`: it works in the directory of this task{}, or in one below",
            parent_directory.map(|own| format!(", `{own}`")).unwrap_or_default()
        )))
    }

    /// Facts that a child has from this task: its schedule or trigger, and the limits of the tree.
    fn facts_of_child(&self, answers: bool) -> Metadata {
        let run = AutomatedRun::from_metadata(self.task.metadata.as_ref());
        let mut facts = run.map(|run| run.for_child(answers).facts()).unwrap_or_default();
        facts.extend(metadata::tree_limits(&self.task));
        facts
    }

    /// Existing child with this key. Fails if the key belongs to a child of another agent.
    async fn known(&self, key: &str, agent: &AgentId) -> Result<Option<TaskId>, Failure> {
        match self.child_under(key).await? {
            Some(known) if known.agent != *agent => Err(Failure::Invalid(format!(
                "call `{agent}` with the key `{key}`: this task has called `{}` with that key; take another key",
                known.agent
            ))),
            known => Ok(known.map(|known| known.task)),
        }
    }

    /// Starts a child, and begins to relay its questions.
    pub(super) async fn begin(
        &self,
        request: ChildRequest,
        child: Arc<Agent>,
        callee: Callee,
        routing: Option<Box<Routing>>,
    ) -> Result<Subscription, Failure> {
        let ChildRequest { message, key, timeout_ms, budget, context_id, inherit, .. } = request;
        self.agent.require_trusted_command(&child, &self.task, &message)?;
        self.require_scopes(&child, &callee)?;
        let inherit = requested_transfer(inherit, &message)?;
        let answers = request.answers_questions;
        let workspace =
            self.child_workspace(&child, &callee, &message, request.working_directory).await?;
        let context_id = match context_id {
            Some(named) => Some(self.conversation(named, &child.id).await?),
            None => None,
        };
        let of_message = child_message::budget(&message)?;
        let ancestors = self.tasks.trees().ancestors(&self.task.id);
        self.require_no_deadlock(&ancestors, &child, context_id.as_ref())?;
        let limits = child.config.tree_limits().narrowed(budget).narrowed(of_message);
        let id = TaskId::fresh();
        let grown = self.tasks.trees().add_child(&self.task.id, id.clone(), limits);
        grown.map_err(|why| no_child(&why))?;
        let parent = Parent {
            task: self.task.id.clone(),
            root: ancestors.last().unwrap_or(&self.task.id).clone(),
            depth: u32::try_from(ancestors.len()).unwrap_or(u32::MAX),
            key,
            budget,
        };
        let is_reentrant = self.tasks.is_at_work(&ancestors, &child.id);
        let message =
            child_message::build(&self.task, message, (&id, &callee), context_id, &workspace);
        let handed_over = async {
            let giver = self.giver(inherit.as_ref()).await?;
            hand_over(&giver, (&child, &self.principal()), message, inherit).await
        };
        let (message, inherited, fresh) = match handed_over.await {
            Ok(handed_over) => handed_over,
            Err(why) => {
                self.tasks.trees().remove(&id);
                return Err(why);
            }
        };
        let new = Box::new(NewTask {
            id: None,
            permissions: Some(self.agent.lends(&callee, &self.task))
                .filter(|permissions| *permissions != Permissions::default()),
            facts: Some(self.facts_of_child(answers)).filter(|facts| !facts.is_empty()),
            inherited,
            agent: Arc::clone(&child),
            message,
            working_directory: workspace.directory,
            worktree: workspace.base,
            timeout_ms,
            response: ResponseMode::Stream,
            client: ClientCapabilities::default(),
            request: None,
            by: self.principal(),
            tenant: self.task.context_id.tenant().clone(),
            limits,
            // The message contains it.
            trace: None,
            routing,
        });
        match self.tasks.submit_as(id.clone(), new, Some(parent), is_reentrant).await {
            Ok(subscription) => {
                self.relay_questions(&callee, &subscription, answers);
                Ok(subscription.until(EndsAt::Over))
            }
            Err(why) => {
                self.tasks.trees().remove(&id);
                self.tasks.abandon_worktree(&id).await;
                if let Some(memory) = fresh {
                    memory.abandon().await;
                }
                Err(match &why {
                    SubmitError::Busy { .. } => Failure::Unavailable(why.to_string()),
                    SubmitError::Worktree(of) if of.is_callers_fault() => {
                        Failure::Invalid(why.to_string())
                    }
                    SubmitError::Directory(_) => Failure::Denied(why.to_string()),
                    SubmitError::Worktree(_) => Failure::Unavailable(why.to_string()),
                    SubmitError::Storage(why) => failed("call another agent", why),
                })
            }
        }
    }

    /// Agent and task whose memory a child gets: this one or, for a flow, a child that it names.
    async fn giver(&self, inherit: Option<&Inherit>) -> Result<GiverTask, Failure> {
        let Some(from) = inherit.and_then(|inherit| inherit.from.as_ref()) else {
            return Ok((Arc::clone(&self.agent), self.task.clone()));
        };
        let action = format!("hand over the memory of task `{from}`");
        let denied = |rule: &str| Err(Failure::Denied(format!("{action}: {rule}")));
        if !self.agent.is_flow() {
            return denied(
                "only flows name the giver, by `inherit` of a step; leave `memoryFrom` out",
            );
        }
        let children = self.tasks.children(&self.task.id).await;
        let children = children.map_err(|why| failed(&action, &why))?;
        if !children.iter().any(|child| child.task == *from) {
            return denied("it is no child of this flow's task");
        }
        let StoredTask { agent, task, .. } = self.tasks.get(from).await.map_err(refused)?;
        match self.tasks.directory.agent(&agent) {
            Some(agent) => Ok((agent, task)),
            None => Err(Failure::Unavailable(format!(
                "{action}: its agent `{agent}` is not there any more"
            ))),
        }
    }

    /// Refuses a child that would wait for one of its ancestors, which holds its conversation's
    /// lock.
    fn require_no_deadlock(
        &self,
        ancestors: &[TaskId],
        child: &Agent,
        context: Option<&ContextId>,
    ) -> Result<(), Failure> {
        let Some(context) = context.filter(|_| child.one_per_context()) else { return Ok(()) };
        let has_it = |task: &&TaskId| {
            let running = self.tasks.find(task);
            running.is_some_and(|it| it.agent == child.id && it.context == *context)
        };
        match [&self.task.id].into_iter().chain(ancestors).find(has_it) {
            None => Ok(()),
            Some(task) => Err(Failure::Invalid(format!(
                "go on with conversation `{context}`: `{}` does one task of a conversation at a time, and is at work on task `{task}` of it, \
                 below which this one would stand; leave the conversation out",
                child.id
            ))),
        }
    }

    /// Relays the child's questions, and cancels the child once its parent may no longer call that
    /// agent.
    fn relay_questions(&self, child: &Callee, subscription: &Subscription, answers: bool) {
        if let Some(follow) = self.tasks.listen(subscription.task(), subscription.after()) {
            self.start_relay(child, None, follow, answers);
        }
    }

    /// Relays for a child of an earlier run. Questions that were answered before are skipped.
    pub(super) async fn relay_questions_again(
        &self,
        child: &TaskId,
        answers: bool,
    ) -> Result<(), Failure> {
        let StoredTask { agent, seq, task } = self.tasks.get(child).await.map_err(refused)?;
        if let Some(follow) = self.tasks.listen(child, seq) {
            let child = Callee { agent, skill: metadata::first_skill(&task) };
            let now = StatusUpdate { status: task.status, metadata: task.metadata };
            self.start_relay(&child, Some(now), follow, answers);
        }
        Ok(())
    }

    /// Starts a child in a task that completes even if the caller is dropped, so that no child is
    /// half started.
    async fn to_its_end(
        &self,
        begun: impl Future<Output = Result<Subscription, Failure>> + Send + 'static,
    ) -> Result<Subscription, Failure> {
        let broke = |why: tokio::task::JoinError| match why.is_panic() {
            true => Err(Failure::Internal(Panicked::from(why).to_string())),
            // The runtime shuts down, and all its tasks with it.
            false => Err(Failure::Cancelled),
        };
        self.tasks.actors.spawn(begun.in_current_span()).await.unwrap_or_else(broke)
    }

    fn start_relay(
        &self,
        child: &Callee,
        now: Option<StatusUpdate>,
        follow: Subscription,
        answers: bool,
    ) {
        if !self.relayed_children.lock().insert(follow.task().clone()) {
            return;
        }
        let relay = QuestionRelay {
            tasks: self.tasks.clone(),
            by: self.principal(),
            queue: self.queue.clone(),
            asking: Arc::clone(&self.asking),
            parent: Arc::clone(&self.agent),
            child: child.clone(),
            answers,
        };
        let (parent, child) = (Arc::clone(&self.agent), child.clone());
        let looking = async move {
            let (tasks, by, task) = (relay.tasks.clone(), relay.by.clone(), follow.task().clone());
            tokio::select! {
                () = relay.hand_on(now, follow) => {}
                () = parent.may_no_longer_call(&child) => {
                    // The child may have ended in the meantime.
                    let _ = tasks.cancel(&task, by).await;
                }
            }
        };
        self.tasks.actors.spawn(looking.in_current_span());
    }
}

/// True if a link below `base` leads out of it on the way to `wanted`. A missing path leads
/// nowhere.
async fn leads_out(base: &str, wanted: &str) -> Result<bool, Failure> {
    let (base, wanted) = (base.to_owned(), wanted.to_owned());
    let escapes = run_blocking(move || {
        let real = fs::canonicalize(&base).ok().zip(fs::canonicalize(&wanted).ok());
        real.is_some_and(|(base, wanted)| !wanted.starts_with(base))
    });
    escapes.await.map_err(|why| Failure::Internal(why.to_string()))
}

#[async_trait::async_trait]
impl DelegatePort for Delegation {
    async fn agents(&self) -> Vec<Value> {
        self.agent.peers()
    }

    async fn find(&self, query: AgentQuery) -> Result<FoundAgents, Failure> {
        self.agent.find_peers(query).await
    }

    async fn start(&self, request: ChildRequest) -> Result<Box<dyn CallPort>, Failure> {
        let subscription = self.open(request).await?;
        Ok(Box::new(self.call(subscription)))
    }

    async fn join(&self, child: &JoinChild) -> Result<Box<dyn CallPort>, Failure> {
        self.tasks.phase.until_started().await;
        let head = self.tasks.head(&child.task).await.map_err(refused)?;
        if head.parent.as_ref() != Some(&self.task.id) {
            let why = format!("join `{}`: it is no child of this task", child.task);
            return Err(Failure::Denied(why));
        }
        let subscription = self.tasks.follow(&child.task, 0).await.map_err(refused)?;
        self.relay_questions_again(&child.task, child.answers_questions).await?;
        let mut call = self.call(subscription);
        for _ in 0..child.received {
            call.next().await?;
        }
        Ok(Box::new(call))
    }

    async fn children(&self) -> Result<Vec<ChildTask>, Failure> {
        let children = self.tasks.children(&self.task.id).await;
        children.map_err(|why| failed("list children", &why))
    }
}

#[async_trait::async_trait]
impl ProgramCalls for Delegation {
    async fn open(&self, request: ChildRequest) -> Result<Subscription, Failure> {
        // Until recovery is complete, the running ancestors and the load of agents are unknown.
        self.tasks.phase.until_started().await;
        if self.tasks.phase.is_stopping() {
            // The child would be shut down as it begins.
            return Err(Failure::HubNotUp("call another agent: the hub is stopping".to_owned()));
        }
        let is_script = AgentId::parse(&request.agent).is_ok_and(|it| self.agent.calls_script(&it));
        // No group takes the commands of a flow.
        if !is_script && let Some(wanted) = self.wanted(&request)? {
            let this = self.clone();
            let open = Box::pin(async move { this.open_routed(request, wanted).await });
            return self.to_its_end(open).await;
        }
        let action = format!("call `{}`", request.agent);
        let named = Callee::parse(&request.agent);
        let named = named.map_err(|why| Failure::Invalid(format!("{action}: {why}")))?;
        let agent = self.agent.peer_called(&named.agent);
        let named = Callee { agent: agent.clone(), ..named };
        // A child that exists is joined even if its agent has left since.
        if let Some(key) = &request.key
            && let Some(known) = self.known(key, &agent).await?
        {
            return self.join_again(&known, request.answers_questions).await;
        }
        let callee = self.agent.callee(&named, metadata::named_skill(&request.message))?;
        self.require_reach(&agent)?;
        let child = self.tasks.directory.agent(&agent);
        let child = child.ok_or_else(|| Failure::Unavailable(format!("{action}: it has left")))?;
        let this = self.clone();
        let begun = async move {
            this.require_available(&child).await?;
            this.begin(request, child, callee, None).await
        };
        self.to_its_end(begun).await
    }

    async fn lend(&self) -> Box<dyn Lent> {
        // An actor that is gone needs no run permit.
        let _ = self.queue.send(GuestRequest::Rest(WaitsFor::Agents)).await;
        Box::new(LentTurn::new(self.queue.clone(), self.tasks.actors.clone()))
    }
}

impl Tasks {
    /// Removes a finished task from its tree, and adds its usage to its ancestors.
    pub(super) fn leave_tree(&self, task: &TaskId, used: Usage) {
        self.report(task, used);
        self.trees().remove(task);
    }

    /// True if one of these tasks belongs to this agent.
    fn is_at_work(&self, tasks: &[TaskId], agent: &AgentId) -> bool {
        let running = self.running();
        tasks.iter().any(|task| running.get(task).is_some_and(|it| it.agent == *agent))
    }
}

#[async_trait::async_trait]
impl OtherTasks for Tasks {
    fn rules(&self, agent: &Arc<Agent>, task: &Task) -> Arc<dyn AnswerRequests> {
        Arc::new(TaskRules::new(self.clone(), task, agent))
    }

    fn worktrees(&self) -> Option<&Worktrees> {
        Self::worktrees(self).ok()
    }

    fn delegation(
        &self,
        caller: &Arc<Agent>,
        task: &Task,
        queue: mpsc::Sender<GuestRequest>,
        run: RunKind,
    ) -> Arc<dyn DelegatePort> {
        let (tasks, agent) = (self.clone(), Arc::clone(caller));
        let (asking, relayed_children, known_children) = Default::default();
        let task_of = task.clone();
        let (hub, actor) = (tasks.clone(), queue.clone());
        let delegation = Arc::new(Delegation {
            tasks,
            agent,
            task: task_of,
            queue,
            asking,
            relayed_children,
            known_children,
        });
        if let Some(running) = self.running().get_mut(&task.id) {
            let calls: Arc<dyn ProgramCalls> = delegation.clone();
            running.calls = Some(Arc::downgrade(&calls));
        }
        let earlier_children =
            if run.follows_another { self.trees().children(&task.id) } else { Vec::new() };
        for child in earlier_children {
            let of_run = Arc::clone(&delegation);
            self.actors.spawn(async move {
                if let Err(why) = of_run.relay_questions_again(&child, false).await {
                    tracing::debug!(%child, %why, "child task of an earlier run has ended already");
                }
            });
        }
        match run.is_recorded {
            true => Arc::new(RecordedCalls::new(delegation, hub, actor)),
            false => delegation,
        }
    }

    fn old_task_over(&self, handoff: Handoff) -> BoxFuture<'static, Option<Ended>> {
        Box::pin(self.clone().end_old_task(handoff))
    }

    fn hand_on(&self, agent: &Agent, task: &Task) -> Option<WrapRun> {
        self.wrap_to_hand_on(agent, task)
    }

    fn report(&self, task: &TaskId, used: Usage) {
        let exhausted = self.trees().report(task, used);
        let Some(Exhausted { of, descendants, why }) = exhausted else { return };
        tracing::info!(task = %of, %why, "budget exhausted, ending descendant tasks");
        let tasks = self.clone();
        self.actors.spawn(async move {
            for descendant in descendants {
                let Some(running) = tasks.find(&descendant) else { continue };
                // The final state tells whether the task received the command or had just ended.
                let _ = running.commands.send(ActorCommand::Exhausted(why.clone())).await;
            }
        });
    }

    fn has_children(&self, task: &TaskId) -> bool {
        !self.trees().children(task).is_empty()
    }

    fn children_over(&self, task: &TaskId) -> BoxFuture<'static, ()> {
        self.clone().until_childless(task.clone()).boxed()
    }

    async fn end_children(&self, task: &TaskId, by: &Principal) -> bool {
        let mut children = self.trees().close(task);
        let were_any = !children.is_empty();
        let until = Instant::now() + END_DEADLINE;
        while !children.is_empty() && Instant::now() < until {
            let ends = children.iter().map(|child| async move {
                if self.find(child).is_none() {
                    // Its end is being stored, or its programs are being reaped.
                    tokio::time::sleep(super::POLL_INTERVAL).await;
                } else if let Err(why) = self.cancel(child, by.clone()).await {
                    let why = refused(why);
                    tracing::debug!(%task, %child, %why, "child task has ended already");
                }
            });
            join_all(ends).await;
            children = self.trees().children(task);
        }
        for child in children {
            // Does not delay the parent's end; the child's own log tells its state.
            tracing::error!(%task, %child, "child task did not end in time, ending the parent without it");
            self.trees().remove(&child);
        }
        were_any
    }
}
