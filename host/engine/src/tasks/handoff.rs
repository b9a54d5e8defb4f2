//! Handoff of a task, by the operator or within a group. The old task ends before the agent of the
//! new one begins.

use super::{
    CANCEL_DEADLINE, NewTask, TaskRefused, Tasks,
    account_quotas::{self, is_quota_failure},
    command::ActorCommand,
    ports::Handoff,
};
use crate::conversations::handoff::{self, Failover, MAX_HANDOFFS, group_of, remaining_budget};
use crate::error::HubError;
use a2a_hub_agents::Agent;
use a2a_hub_config::Permissions;
use a2a_hub_core::{
    access_control::{Caller, Principal},
    task::{metadata, quota::QuotaReaction},
};
use a2a_hub_protocol::{
    budget::{BUDGET, Budget},
    error::A2aError,
    event::TaskEvent,
    id::{AgentId, TaskId},
    message::{Message, Metadata, Role},
    operation::SendMessage,
    task::{Task, TaskState},
};
use a2a_hub_runtime::{Ended, Failure, Run, RunThen, WrapRun, directories};
use a2a_hub_store::{Head, StorageError, StoredTask};
use serde_json::json;
use std::{
    collections::{BTreeMap, BTreeSet},
    future::pending,
};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

/// Largest patch that an agent of another machine gets with the message, in bytes.
const PATCH_LIMIT: usize = 64 << 10;

impl Tasks {
    /// Cancels the old task, and the tasks before it that wait for its turn, unless they are over;
    /// returns the end of the new one if that must not begin.
    pub(super) async fn end_old_task(self, handoff: Handoff) -> Option<Ended> {
        let Handoff { mut old, mut task, mut agent, by, mut reason } = handoff;
        for _ in 0..MAX_HANDOFFS {
            if let Some(running) = self.find(&old) {
                let facts = Some(handoff::fact_of_old(&agent, &task, reason.as_deref()));
                let cancel = ActorCommand::Cancel { by: by.clone(), facts };
                let cancelled = async {
                    // Its last state tells whether it received the command or had just ended.
                    let _ = running.commands.send(cancel).await;
                    running.commands.closed().await;
                };
                if timeout(CANCEL_DEADLINE, cancelled).await.is_err() {
                    let why = format!(
                        "Task `{old}` was told to stop and has not ended; hand it over again once it has: \
                         `a2a-hub task handoff {old} {agent}`"
                    );
                    return Some(ended(TaskState::Failed, why));
                }
            }
            let stored = match self.stored(&old).await {
                // Retention may have deleted it.
                Ok(stored) => stored?,
                Err(why) => return Some(Ended::Failed(Failure::HubNotUp(why.to_string()))),
            };
            let begins = handoff::require_may_begin(&stored.task, &task, reason.is_some());
            if let Err(refused) = begins {
                return Some(ended(TaskState::Rejected, refused));
            }
            (task, agent) = (old, stored.agent);
            reason = handoff::reason(&stored.task).map(str::to_owned);
            old = handoff::predecessor(&stored.task)?;
        }
        None
    }

    /// Message for the agent `to` that goes on with a task of another agent, in the same directory
    /// and with no more permissions and budget than that one had.
    pub async fn handoff_message(
        &self,
        (old, from): (&Task, &AgentId),
        to: &Agent,
        note: Option<&str>,
    ) -> Message {
        let changes = self.changes_for(old, to).await;
        let mut message = handoff::message(old, from, changes.as_deref(), note);
        let facts = message.metadata.get_or_insert_default();
        if let Some(directory) = metadata::working_directory(old).filter(|_| !to.is_elsewhere()) {
            facts.insert("workingDirectory".to_owned(), directory.into());
        }
        if !to.is_elsewhere() {
            facts.extend(directories::member(&directories::additional(old)));
        }
        let permissions = match self.directory.agent(from) {
            Some(from) => from.permissions_in(old),
            None => Permissions::default(),
        };
        if permissions < to.config.permissions {
            facts.insert("permissions".to_owned(), permissions.word().into());
        }
        let first_metadata = old.history.first().and_then(|first| first.metadata.as_ref());
        // An invalid budget was refused when the task was created.
        let budget = Budget::from_metadata(first_metadata).unwrap_or_default();
        let (tasks, used) = self.trees().spent(&old.id).unwrap_or_default();
        let remaining = remaining_budget(budget, tasks, used.tokens, used.cost_usd);
        if !remaining.is_empty() {
            facts.insert(BUDGET.to_owned(), json!(remaining));
        }
        message
    }

    /// Changes of the worktree that the task works in, also if an earlier task of its handoffs got
    /// it: a table of files for an agent that finds them in its directory, and a patch for one of
    /// another machine.
    async fn changes_for(&self, old: &Task, to: &Agent) -> Option<String> {
        let worktrees = self.worktrees.as_ref()?;
        let changes = async {
            let holder = self.worktree_holder(old.id.clone()).await?;
            if worktrees.find(holder.as_str()).is_err() {
                return Ok(None);
            }
            let diff = worktrees.diff(holder.as_str(), !to.is_elsewhere(), PATCH_LIMIT).await?;
            Ok::<_, HubError>(Some(String::from_utf8_lossy(&diff.bytes).into_owned()))
        };
        changes.await.unwrap_or_else(|why| {
            let why = A2aError::from(why);
            tracing::warn!(task = %old.id, %why, "cannot hand over the changes of a task");
            None
        })
    }

    /// Wraps the run of a task's agent, if its group hands tasks over.
    pub(super) fn wrap_to_hand_on(&self, agent: &Agent, task: &Task) -> Option<WrapRun> {
        self.hands_on(agent, group_of(task).as_ref()).then(|| {
            let (tasks, id) = (self.clone(), task.id.clone());
            let wrap = move |run: Box<dyn Run>| -> Box<dyn Run> {
                let cancelled = CancellationToken::new();
                let cancellation = cancelled.clone();
                let then = move |ended| async move {
                    let handoff = Box::pin(tasks.hand_on_or_end(id, ended));
                    let ended = cancellation.run_until_cancelled(handoff).await;
                    ended.unwrap_or(Ended::Failed(Failure::Cancelled))
                };
                Box::new(RunThen::new(run, then, move || cancelled.cancel()))
            };
            Box::new(wrap) as _
        })
    }

    /// Hands the task over if its agent ended for lack of quota or login. The task is cancelled
    /// then; otherwise returns its end.
    async fn hand_on_or_end(self, id: TaskId, ended: Ended) -> Ended {
        let Ended::Status { state, message, metadata } = ended else { return ended };
        let as_it_is = |message| Ended::Status { state, message, metadata: metadata.clone() };
        // A task that another one waits for stays with its agent, as does each during a shutdown.
        let old = match (self.find_head(&id).await, self.stored(&id).await) {
            (Ok(Some(head)), Ok(Some(old))) if head.parent.is_none() => old,
            _ => return as_it_is(message),
        };
        if self.keeps_task(&old, state, metadata.as_ref(), message.as_ref()) {
            return as_it_is(message);
        }
        let next = Failover::for_task(&old.task, state, metadata.as_ref(), message.as_ref());
        let Some(next) = next.filter(|_| !self.phase.is_stopping()) else {
            return as_it_is(message);
        };
        let (tasks, begins) = (self.clone(), next.clone());
        match self.see_through(async move { tasks.begin_next(old, begins).await }).await {
            // The cancellation ends the run.
            Ok(()) => pending().await,
            Err(why) => {
                let why = A2aError::from(why);
                tracing::warn!(task = %id, reason = next.reason(), %why, "cannot hand over the task, it fails");
                as_it_is(Some(next.failed(message, &why.message)))
            }
        }
    }

    /// True if a task whose agent's quota is used up stays with the agent: it waits for the quota,
    /// or is to fail.
    fn keeps_task(
        &self,
        old: &StoredTask,
        state: TaskState,
        facts: Option<&Metadata>,
        message: Option<&Message>,
    ) -> bool {
        let agent = self.directory.agent(&old.agent);
        let Some(agent) = agent.filter(|_| is_quota_failure(state, facts)) else { return false };
        match agent.config.on_quota {
            Some(QuotaReaction::Fail) => true,
            Some(QuotaReaction::Wait) => {
                let decision = account_quotas::decide(&agent, &old.task, facts, message);
                matches!(decision, Some(Ok(_)))
            }
            Some(QuotaReaction::Handoff) | None => false,
        }
    }

    /// Starts the new task at the first agent that takes it, and cancels the old one.
    async fn begin_next(self, old: StoredTask, next: Failover) -> Result<(), HubError> {
        let StoredTask { agent: from, task, .. } = &old;
        let routes = self.directory.routes().ok_or_else(A2aError::internal)?;
        let routing_message = handoff::message(task, from, None, None);
        let may_take = |agent: &AgentId| next.may_take(agent) && metadata::may_reach(task, agent);
        let mut route = self.choose(routes, next.wanted(), &routing_message, &may_take).await?;
        let asker = self.storage.askers(&task.id).await?.into_iter().next();
        let as_agent = || Principal::AgentTask { agent: from.clone(), task: task.id.clone() };
        let by = asker.map_or_else(as_agent, |(_, by)| by);
        let first = self.storage.events(&task.id, 0, 1).await?.pop().map(|first| first.event);
        let Some(TaskEvent::Created(created)) = first else {
            return Err(A2aError::no_task(&task.id).into());
        };
        while let Some(to) = route.agent() {
            let message = self.handoff_message((task, from), &to, None).await;
            let budget = Budget::from_metadata(message.metadata.as_ref())?;
            let mut facts = next.facts();
            facts.extend(metadata::tree_limits(task));
            let send = SendMessage {
                task_metadata: Some(facts),
                timeout_ms: created.timeout_ms,
                client: created.client.clone(),
                ..SendMessage::new(message, None)?
            };
            let caller = Caller { principal: by.clone(), tenant: created.tenant.clone() };
            let routing = route.routing_facts().map(|routing| Box::new(next.explained(*routing)));
            let new = NewTask { routing, ..*NewTask::from_message(&to, send, caller, budget) };
            match self.offer(Box::new(new)).await {
                Ok(subscription) => {
                    let (old, new) = (&task.id, subscription.task());
                    tracing::info!(task = %old, to = %to.id, next = %new, "a task was handed over");
                    let facts = handoff::fact_of_old(&to.id, new, Some(next.reason()));
                    if let Some(running) = self.find(old) {
                        let cancel = ActorCommand::Cancel { by, facts: Some(facts) };
                        // The new task cancels it as well, if that one is quicker.
                        let _ = running.commands.send(cancel).await;
                    }
                    return Ok(());
                }
                Err(TaskRefused::ByAgent(reason, why)) => route.pass(reason, why),
                Err(TaskRefused::ByHub(why)) => return Err(why),
            }
        }
        Err(route.refusal())
    }

    /// Handoffs that the previous process had not completed: the old task was still unfinished.
    pub(super) async fn begun_handoffs(
        &self,
        heads: &[Head],
    ) -> Result<BegunHandoffs, StorageError> {
        let live: BTreeSet<_> = heads.iter().map(|head| &head.task).collect();
        let mut agents = BTreeMap::<_, BTreeSet<_>>::new();
        for head in heads {
            agents.entry(&head.context).or_default().insert(&head.agent);
        }
        let mut begun = BegunHandoffs::default();
        // A handoff leads to another agent of the same conversation.
        for head in heads.iter().filter(|head| agents[&head.context].len() > 1) {
            let task = match self.storage.task(&head.task).await {
                Ok(Some(StoredTask { task, .. })) => task,
                Err(why @ StorageError::Unavailable(_)) => return Err(why),
                // Recovery reports a damaged task.
                Ok(None) | Err(_) => continue,
            };
            let Some(old) = handoff::predecessor(&task).filter(|old| live.contains(old)) else {
                continue;
            };
            begun.new.insert(head.task.clone());
            if let Some(reason) = handoff::reason(&task) {
                let facts = handoff::fact_of_old(&head.agent, &head.task, Some(reason));
                begun.old.insert(old, facts);
            }
        }
        Ok(begun)
    }
}

/// Handoffs that a killed process had begun.
#[derive(Default)]
pub(super) struct BegunHandoffs {
    /// Old tasks whose agents had failed, each with the metadata of its end.
    pub(super) old: BTreeMap<TaskId, Metadata>,
    /// New tasks. Their agents have not started: they wait for the end of the old tasks.
    pub(super) new: BTreeSet<TaskId>,
}

fn ended(state: TaskState, why: String) -> Ended {
    Ended::Status { state, message: Some(Message::text(Role::Agent, why)), metadata: None }
}
