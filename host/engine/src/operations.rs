//! The hub: authorizes and carries out every operation.

mod a2a;
mod authorize;
mod automation;
mod background;
mod baselines;
mod boards;
mod check_directory;
mod client_context;
mod find_agents;
mod handoff;
mod history;
mod live_config;
mod notifiers;
mod owner;
mod parts;
mod read_task;
mod reload;
mod reply;
mod resolve_names;
mod reviews;
mod schedules;
mod send_message;
mod starting_hub;
mod tenants;
mod timestamp;
mod topics;
mod triggers;
mod warnings;
mod worktrees;

pub use client_context::ClientContext;
pub use live_config::{LiveConfig, ReadConfig, SetLevel};
use parts::HubParts;
pub use reply::{Reply, ReplyStream};
pub use starting_hub::StartingHub;
use worktrees::WorktreeOperations;

use crate::{
    devices::Devices,
    error::HubError,
    observability::metrics::{Metrics, Snapshot},
    people::People,
    push::AdmittedConfig,
    tasks::{PermissionOperations, ResponseMode, Subscription, TaskHistory},
};
use a2a_hub_agents::{Agent, card_of, card_of_group, card_of_hub, lately};
use a2a_hub_core::{
    access_control::{Caller, Principal},
    context_memory::inherit::{Inherit, nothing_to_inherit},
    task::idempotency,
};
use a2a_hub_protocol::{
    error::{A2aError, ErrorKind},
    hub::openrpc,
    id::{AgentId, TaskId},
    message::Role,
    operation::{
        AgentBrief, Answer, HealthStatus, HubStatus, OpenStreams, Operation, Pong, SendMessage,
        Wait,
    },
    push::OfferedPush,
    task::Task,
};
use a2a_hub_store::TaskCounts;
use serde_json::json;
use std::ops::Deref;
use std::sync::{Arc, atomic::Ordering};
use tokio::time::{Instant, timeout};

/// The hub, to which every transport hands its operations. Cheap to clone.
#[derive(Clone)]
pub struct Hub(Arc<HubParts>);

impl Deref for Hub {
    type Target = HubParts;

    fn deref(&self) -> &HubParts {
        &self.0
    }
}

impl Hub {
    fn set_default(&self, agent: Option<AgentId>) {
        *self.default_agent.lock() = agent;
    }

    /// Agent that handles messages which name no agent.
    pub fn default_agent(&self) -> Option<AgentId> {
        self.default_agent.lock().clone()
    }

    /// Devices of the operator, which prove their requests.
    pub fn devices(&self) -> Arc<Devices> {
        Arc::clone(&self.devices)
    }

    /// People whom the operator let in, whose keys identify callers.
    pub fn people(&self) -> Arc<People> {
        Arc::clone(&self.people)
    }

    /// Refuses new tasks from now on. Existing tasks can still be read, answered and cancelled.
    pub fn close(&self) {
        self.closed.store(true, Ordering::Relaxed);
        if let Some(topics) = &self.topics {
            topics.close();
        }
    }

    /// Authorizes and carries out an operation. Every operation passes through here, whatever its
    /// transport. `client_context` says which agent, or the whole hub, a client of official A2A
    /// addresses; a client of the hub's own dialect has none.
    pub async fn handle(
        &self,
        caller: impl Into<Caller>,
        client_context: Option<&ClientContext>,
        mut operation: Operation,
    ) -> Result<Reply, A2aError> {
        if let Some(endpoint) = client_context {
            endpoint.address(&mut operation);
        }
        let (caller, admitted) = self.pass_gate(caller.into(), &mut operation).await?;
        admitted.finish(match client_context {
            // Boxed: an operation's future is as large as the largest future that it awaits.
            Some(client_context) => {
                Box::pin(self.perform_for(&caller, client_context, operation)).await
            }
            None => Box::pin(self.perform(&caller, operation)).await,
        })
    }

    /// Checks an operation, and resolves the names in it, before anything is done or read: the one
    /// gate of [`handle`](Self::handle) and [`view_task`](Self::view_task). A refusal is counted.
    async fn pass_gate(
        &self,
        caller: Caller,
        operation: &mut Operation,
    ) -> Result<(Caller, Measured<'_>), A2aError> {
        let caller = self.at_work_now(caller)?;
        let admitted = self.admit(&caller.principal, operation)?;
        let caller = match self.set_tenant(caller, operation).await {
            Ok(placed) => placed,
            Err(why) => return admitted.finish(Err(why)),
        };
        self.name_by_id(operation);
        match self.require_within(&caller.principal, operation).await {
            Ok(()) => Ok((caller, admitted)),
            Err(why) => admitted.finish(Err(why)),
        }
    }

    /// Checks that the caller may perform the operation, and logs a refusal. The result is counted
    /// either way.
    fn admit(&self, caller: &Principal, operation: &Operation) -> Result<Measured<'_>, A2aError> {
        let (metrics, begun) = (self.events.metrics(), Instant::now());
        let measured = Measured { metrics, operation: operation.name(), begun };
        match self.may(caller, operation) {
            Ok(()) => Ok(measured),
            Err(denied) => {
                tracing::warn!(denied = %denied.message, "an operation was refused");
                measured.finish(Err(denied))
            }
        }
    }

    async fn perform(&self, caller: &Caller, operation: Operation) -> Result<Reply, HubError> {
        Ok(Reply::One(match operation {
            Operation::SendMessage(send) => self.send(caller, send).await?,
            Operation::StreamMessage(mut send) => {
                send.form.streams = true;
                let subscription = self.start(caller, send, ResponseMode::Stream).await?;
                return Ok(Reply::Stream(ReplyStream::Task(subscription)));
            }
            Operation::GetTask { id, history_length } => {
                Answer::Task(Box::new(latest(self.tasks.get(&id).await?.task, history_length)))
            }
            Operation::CancelTask { id } => {
                Answer::Task(Box::new(self.tasks.cancel(&id, caller.principal.clone()).await?))
            }
            Operation::Resubscribe { id, after } => {
                let subscription = self.tasks.resubscribe(&id, after).await?;
                return Ok(Reply::Stream(ReplyStream::Task(subscription)));
            }
            Operation::SetPushConfig { task, push } => {
                let sent = self.tasks.get(&task).await?.seq;
                let push = Box::pin(self.pushes.admit(push)).await?;
                Answer::PushConfig(Box::new(self.pushes.set(task, push, sent).await?))
            }
            Operation::GetPushConfig { task, id } => {
                self.tasks.get(&task).await?;
                Answer::PushConfig(Box::new(self.pushes.get(&task, id.as_ref()).await?))
            }
            Operation::ListPushConfigs { task } => {
                self.tasks.get(&task).await?;
                Answer::PushConfigs(self.pushes.of_task(&task).await?)
            }
            Operation::DeletePushConfig { task, id } => {
                self.tasks.get(&task).await?;
                self.pushes.delete(&task, &id).await?;
                Answer::PushConfigDeleted
            }
            Operation::RetryDeliveries { task } => {
                self.tasks.get(&task).await?;
                Answer::Deliveries(self.pushes.retry(&task).await?)
            }
            Operation::ListPushKeys => Answer::PushKeys(self.published_keys()),
            Operation::Search(query) => Box::pin(history::search(&self.tasks, query)).await?,
            Operation::Usage(query) => Box::pin(history::usage(&self.tasks, query)).await?,
            Operation::GetTree(query) => Answer::Tree(Box::pin(self.tasks.tree(&query)).await?),
            Operation::GetTimeline(query) => {
                Answer::Timeline(Box::pin(TaskHistory(&self.tasks).timeline(&query)).await?)
            }
            Operation::DeleteContext { id: context } => {
                let tasks = self.contexts.forget(&context).await?;
                Answer::Forgotten { context, tasks }
            }
            Operation::HandOver(request) => {
                Answer::Task(Box::new(Box::pin(self.hand_over(caller, request)).await?))
            }
            Operation::RetryNow { task } => {
                Answer::Task(Box::new(Box::pin(self.tasks.retry_now(&task)).await?))
            }
            Operation::Worktree(request) => {
                let operations = WorktreeOperations::new(&self.tasks)?;
                Box::pin(operations.perform(request, caller)).await?
            }
            Operation::Review(request) => {
                let submit = self.submit_as(caller);
                Box::pin(reviews::perform(&self.0, caller, request, submit)).await?
            }
            Operation::Topic(request) => {
                Answer::Topic(Box::pin(topics::perform(self, caller, request)).await?)
            }
            Operation::Board(request) => {
                Answer::Board(Box::pin(boards::perform(self, caller, request)).await?)
            }
            operation @ (Operation::ListDeliveries { .. }
            | Operation::ListTasks(_)
            | Operation::PageTasks(_)
            | Operation::ListContexts(_)
            | Operation::GetContext { .. }
            | Operation::Question(_)
            | Operation::Notice(_)) => Box::pin(self.perform_on_visible(caller, operation)).await?,
            Operation::Permission(request) => Answer::Permission(
                Box::pin(PermissionOperations(&self.tasks).perform(caller, request)).await?,
            ),
            Operation::Device(request) => Answer::Device(self.devices.perform(request).await?),
            Operation::People(request) => Box::pin(self.perform_on_people(caller, request)).await?,
            Operation::Ping => {
                let version = env!("CARGO_PKG_VERSION").to_owned();
                Answer::Pong(Pong { version, starting: None })
            }
            Operation::Status => Answer::Status(self.status().await?),
            Operation::ReadMetrics { streams } => Answer::Metrics(self.metrics(streams).await?),
            Operation::ReloadConfig => Answer::Reloaded(Box::pin(self.reload()).await?),
            Operation::ListSchedules => self.list_schedules(caller).await?,
            Operation::RunSchedule { name } => Box::pin(self.run_schedule(&name)).await?,
            Operation::PauseSchedule { name } => self.pause_schedule(&name, true).await?,
            Operation::ResumeSchedule { name } => self.pause_schedule(&name, false).await?,
            Operation::AcceptSchedule { name } => self.accept_schedule(caller, &name).await?,
            Operation::Trigger(request) => {
                Box::pin(self.perform_on_triggers(caller, request)).await?
            }
            Operation::Notifier(request) => {
                let notifiers = self.notifiers.as_ref();
                Answer::Notifier(Box::pin(notifiers::perform(notifiers, request)).await?)
            }
            Operation::ListPlugins => Answer::Plugins(self.plugins.plugins().await),
            Operation::RefreshPlugins => {
                Answer::PluginsRefreshed(Box::pin(self.plugins.refresh()).await)
            }
            operation @ (Operation::AddPlugin(_)
            | Operation::GrantPlugin(_)
            | Operation::DenyPlugin { .. }
            | Operation::RevokePlugin { .. }
            | Operation::RemovePlugin { .. }
            | Operation::BackUp { .. }) => {
                Box::pin(self.perform_as_owner(caller, operation)).await?
            }
            Operation::ListAgents { include_health } => {
                self.list(&caller.principal, include_health).await
            }
            Operation::FindAgents(query) => {
                Answer::Found(Box::pin(self.search(&caller.principal, &query)).await?)
            }
            Operation::GetAgent { id } => self.describe(&*self.agent(Some(id))?),
            Operation::CheckAgent { id } => {
                Answer::Health(self.agent(Some(id))?.ask(Instant::now(), true).await?)
            }
            Operation::RegisterAgent { id, component } => {
                self.describe(&*Box::pin(self.plugins.register(&id, component)).await?)
            }
            Operation::DeregisterAgent { id } => {
                let deregistered = self.plugins.deregister(&id).await;
                Answer::Deregistered(deregistered.map_err(|why| self.registry_error(why))?)
            }
            Operation::ReloadAgent { id, accept } => {
                let reloaded = Box::pin(self.plugins.reload(&id, accept.as_deref())).await;
                self.describe(&*reloaded.map_err(|why| self.registry_error(why))?)
            }
            Operation::WatchHub(watch) => {
                let events = Box::pin(self.watch(caller, watch)).await?;
                return Ok(Reply::Stream(ReplyStream::Hub(events)));
            }
            Operation::Discover => Answer::Discovery(openrpc::discover(env!("CARGO_PKG_VERSION"))),
            Operation::GetCard { agent: None } => {
                Answer::Card(Box::new(card_of_hub(&self.agents.all(), &self.since)))
            }
            Operation::GetCard { agent: Some(id) } => {
                let group = self.routes.group(&id).and_then(|agents| {
                    let there = agents.iter().filter_map(|id| self.agents.find(id));
                    card_of_group(&id, &there.collect::<Vec<_>>())
                });
                Answer::Card(Box::new(match group {
                    Some(card) => card,
                    None => card_of(&*self.agent(Some(id))?),
                }))
            }
            Operation::ListCards => {
                let listed = self.agents.listed();
                let visible = listed.iter().filter(|agent| self.sees(&caller.principal, agent));
                Answer::Cards(visible.map(|agent| card_of(agent)).collect())
            }
        }))
    }

    async fn send(&self, caller: &Caller, send: Box<SendMessage>) -> Result<Answer, HubError> {
        let (history_length, wait) = (send.history_length, send.wait);
        let response = match wait {
            Wait::ToTheEnd => ResponseMode::AtEnd,
            Wait::AtMost(_) => ResponseMode::AtEndOrLater,
            Wait::No => ResponseMode::TaskOnly,
        };
        let mut subscription = self.start(caller, send, response).await?;
        let task = subscription.task().clone();
        let answer = match wait {
            Wait::ToTheEnd => Some(self.wait_until_settled(&mut subscription).await?),
            Wait::AtMost(max_wait) => timeout(max_wait, self.wait_until_settled(&mut subscription))
                .await
                .ok()
                .transpose()?,
            Wait::No => None,
        };
        Ok(match answer {
            Some(Answer::Task(task)) => Answer::Task(Box::new(latest(*task, history_length))),
            Some(answer) => answer,
            None => {
                let mut task = self.tasks.get(&task).await?.task;
                if subscription.is_repeated() {
                    idempotency::mark(&mut task.metadata);
                }
                Answer::Task(Box::new(latest(task, history_length)))
            }
        })
    }

    async fn start(
        &self,
        caller: &Caller,
        send: Box<SendMessage>,
        response: ResponseMode,
    ) -> Result<Subscription, HubError> {
        if send.message.role != Role::User {
            return Err(A2aError::invalid("message.role", "a client speaks as `user`").into());
        }
        match send.message.task_id.clone() {
            // Boxed because it is the larger future.
            Some(task) => Box::pin(self.go_on(caller, task, *send)).await,
            None => match &caller.principal {
                Principal::AgentTask { task, .. } => {
                    let (hub, by, task) = (self.clone(), caller.clone(), task.clone());
                    let submission = Box::pin(async move { hub.give(&by, &task, *send).await });
                    self.tasks.see_through(submission).await
                }
                Principal::Operator
                | Principal::OperatorHttp
                | Principal::OperatorToken
                | Principal::Device { .. }
                | Principal::Automation { .. }
                | Principal::Client(_)
                | Principal::Person { .. }
                | Principal::Anonymous => {
                    if Inherit::from_metadata(send.message.metadata.as_ref())?.is_some() {
                        return Err(nothing_to_inherit().into());
                    }
                    self.start_anew(caller, send, response).await
                }
            },
        }
    }

    /// Sends a message to an existing task. A repeated message (the same in all that the agent
    /// receives) is not delivered again: it would answer whatever question is open by now.
    async fn go_on(
        &self,
        caller: &Caller,
        task: TaskId,
        send: SendMessage,
    ) -> Result<Subscription, HubError> {
        let is_remembered = self.repeats.are_remembered();
        let request = is_remembered.then(|| idempotency::request(caller, &task, &send));
        let SendMessage { message, agent, push, client, after, .. } = send;
        if let Some(named) = agent {
            let its = self.tasks.head(&task).await?.agent;
            let is_of = |group: Vec<AgentId>| group.contains(&its);
            if named != its && !self.routes.group(&named).is_some_and(is_of) {
                let why = format!(
                    "the message names `{named}`, and task `{task}` is one of `{its}`; leave one of the two out"
                );
                return Err(A2aError::invalid("message.metadata.targetAgent", why).into());
            }
        }
        if let by @ Principal::AgentTask { .. } = &caller.principal {
            return self.tasks.answer_descendant(&task, message, by.clone()).await;
        }
        let push = self.receiver(push).await?;
        let (hub, by) = (self.clone(), caller.principal.clone());
        let config_id = push.as_ref().map(AdmittedConfig::id);
        let answered = Box::pin(async move {
            let claim = hub.claim(&by, request.as_ref()).await;
            if claim.as_ref().is_some_and(|claim| claim.task().is_some()) {
                return hub.tasks.repeat(&task, after.unwrap_or(0)).await;
            }
            // All checks come before the first change.
            if let Some(id) = config_id {
                hub.pushes.require_capacity(&task, id.as_ref()).await?;
            }
            let subscription = hub.tasks.answer(&task, message, client, after, by).await?;
            if let Some(claim) = claim {
                claim.begun(task);
            }
            Ok(subscription)
        });
        self.begin(push, answered).await
    }

    fn require_open(&self) -> Result<(), A2aError> {
        if !self.closed.load(Ordering::Relaxed) {
            return Ok(());
        }
        let why = "the hub is stopping and takes no new tasks; `a2a-hub start` starts it again";
        let refusal = A2aError::new(ErrorKind::AgentUnavailable, why);
        Err(refusal.with(json!({ "reason": "stopping" })))
    }

    /// Checks that notifications may be sent to the receiver that a message names, if it names one.
    async fn receiver(
        &self,
        push: Option<OfferedPush>,
    ) -> Result<Option<AdmittedConfig>, HubError> {
        Ok(match push {
            Some(push) => Some(Box::pin(self.pushes.admit(push)).await?),
            None => None,
        })
    }

    /// Starts or continues a task, and stores the push receiver that the client sent with its
    /// message. The work runs to completion even if the client disconnects.
    async fn begin(
        &self,
        push: Option<AdmittedConfig>,
        submission: impl Future<Output = Result<Subscription, HubError>> + Send + 'static,
    ) -> Result<Subscription, HubError> {
        let pushes = self.pushes.clone();
        let begun = async move {
            let subscription = submission.await?;
            if let Some(push) = push {
                pushes.set(subscription.task().clone(), push, subscription.after()).await?;
            }
            Ok(subscription)
        };
        self.tasks.see_through(begun).await
    }

    fn agent(&self, id: Option<AgentId>) -> Result<Arc<Agent>, HubError> {
        let Some(id) = id.or_else(|| self.default_agent()) else {
            let why = "name the agent that is to hear the message, or a skill that it must have (`targetSkill`)";
            let skills = self.routes.skills();
            return Err(A2aError::invalid("message.metadata.targetAgent", why)
                .with(json!({ "field": "message.metadata.targetAgent", "agents": self.listed_names(), "skills": skills }))
                .into());
        };
        self.agents.find(&id).ok_or_else(|| {
            if let Some(agents) = self.routes.group(&id) {
                let why = format!("`{id}` is a group of agents; name one of them");
                let refusal = A2aError::new(ErrorKind::AgentNotFound, why);
                return refusal.with(json!({ "agents": agents })).into();
            }
            self.no_agent(&id).into()
        })
    }

    /// Summaries of all agents.
    fn briefs(&self) -> Vec<AgentBrief> {
        let brief = |agent: &Arc<Agent>| {
            let health = agent.health();
            AgentBrief {
                id: agent.id.clone(),
                name: agent.card.name.clone(),
                status: health.status,
                error_message: health.error_message,
                fix: health.fix,
                breaker: agent.breaker(),
                load: self.tasks.load(&agent.id),
                latency_ms: self.routes.latency_ms(&agent.id),
                kept: agent.idle_count(),
                unlisted: agent.is_unlisted(),
            }
        };
        self.agents.all().iter().map(brief).collect()
    }

    /// Metrics of the hub; available even if the store fails.
    async fn metrics(&self, streams: OpenStreams) -> Result<String, HubError> {
        let now = Snapshot {
            uptime: self.started.elapsed(),
            tallies: self.tasks.tally().await.ok(),
            stored_bytes: self.tasks.stored_bytes().await.ok(),
            can_store: !self.tasks.can_be_stored().await.is_failing(),
            backlog: self.tasks.backlog(),
            agents: self.briefs(),
            guests: self.agents.run_capacity(),
            streams,
            certificate_expires_at: self.tls.as_ref().map(|tls| tls.status().expires_at),
        };
        let text = self.events.metrics().text(&now);
        Ok(text.map_err(|why| A2aError::new(ErrorKind::Internal, why.to_string()))?)
    }

    async fn status(&self) -> Result<HubStatus, HubError> {
        let tallies = self.tasks.tally().await?;
        let counts = TaskCounts::from_tallies(&tallies);
        let waiting = tallies.iter().filter(|tally| tally.state.is_interrupted());
        let agents = self.briefs();
        let count = |status| agents.iter().filter(|agent| agent.status == status).count();
        Ok(HubStatus {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            uptime: u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX),
            groups: self.routes.groups(),
            active_tasks: counts.live,
            waiting_tasks: waiting.map(|tally| tally.tasks).sum(),
            expiring_questions: self.events.metrics().expiring_questions().count(),
            total_tasks: counts.total,
            storage: self.tasks.can_be_stored().await,
            warnings: self.warnings_now(),
            certificate_expires_at: self.tls.as_ref().map(|tls| tls.status().expires_at_text()),
            starting: None,
            stopping: self.closed.load(Ordering::Relaxed),
            total: agents.len(),
            healthy: count(HealthStatus::Healthy),
            degraded: count(HealthStatus::Degraded),
            unhealthy: count(HealthStatus::Unhealthy),
            unknown: count(HealthStatus::Unknown),
            compiling_plugins: self.agents.compiling(),
            rejected_plugins: self.agents.rejected(),
            agents,
        })
    }

    /// Describes an agent, with its known health.
    fn describe(&self, agent: &Agent) -> Answer {
        Answer::Agent(Box::new(self.agents.info(agent, Some(agent.health()))))
    }

    async fn list(&self, caller: &Principal, include_health: bool) -> Answer {
        let is_visible = |agent: &Agent| self.sees(caller, agent);
        Answer::Agents(if include_health {
            let checked = self.agents.check(lately()).await.into_iter();
            let visible = checked.filter(|(agent, _)| is_visible(agent));
            visible.map(|(agent, health)| self.agents.info(&agent, Some(health))).collect()
        } else {
            let all = self.agents.all();
            let visible = all.iter().filter(|agent| is_visible(agent));
            visible.map(|agent| self.agents.info(agent, None)).collect()
        })
    }
}

/// An operation in progress; its result and duration are counted. An operation whose client
/// disconnects is not counted.
struct Measured<'a> {
    metrics: &'a Metrics,
    operation: &'static str,
    begun: Instant,
}

impl Measured<'_> {
    fn finish<T>(self, reply: Result<T, impl Into<A2aError>>) -> Result<T, A2aError> {
        self.metrics.answered(self.operation, reply.is_ok(), self.begun.elapsed());
        reply.map_err(Into::into)
    }
}

/// Keeps only the latest `length` messages of the task.
fn latest(mut task: Task, length: Option<usize>) -> Task {
    length.into_iter().for_each(|length| task.keep_latest(length));
    task
}
