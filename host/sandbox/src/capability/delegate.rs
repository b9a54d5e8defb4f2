//! Delegation to other agents through the hub: discovery, and calls.

use super::timeout::deadline;
use crate::store::{
    bindings::a2a::hub::{
        delegate::{Child, Host, HostCall, HostOptions, MemoryScope, Update},
        types::{self, Message},
    },
    convert::{
        bytes_of_message, failure_to_guest, message_from_guest, state_to_guest, update_to_guest,
    },
    redaction::Hide as _,
    replay::mixed_up,
    resources::{CallOptions, Delegated},
    state::GuestState,
};
use a2a_hub_core::{
    context_memory::{
        inherit::{Inherit, MAX_NAMES, Scope},
        utilisation::MemoryBudget,
    },
    task::replay::CallIdentity,
};
use a2a_hub_protocol::{hub::agent_query, id::MessageId, message as protocol};
use a2a_hub_runtime::{
    Failure,
    port::{
        delegate::{self, ChildRequest, DelegatePort, JoinChild},
        journal::JournalAnswer,
        tasks::{TaskPort, WaitsFor},
    },
};
use serde_json::{Value, json};
use std::{sync::Arc, time::Duration};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use wasmtime::component::Resource;

/// Time that a guest waits for others before its task's run permit is lent to another task.
const LEND: Duration = Duration::from_millis(100);

/// Longest agent query, in bytes of JSON.
const MAX_QUERY: usize = 64 << 10;

/// Cost of an agent search, in bytes that the hub could read instead: a millisecond.
const FIND_COSTS: usize = 50_000;

impl GuestState {
    fn delegation(&self, action: &str) -> Result<Arc<dyn DelegatePort>, Failure> {
        self.ports.delegate.clone().ok_or_else(|| {
            self.ports.tell_refused("delegate");
            Failure::Denied(format!(
                "{action}: not granted; the manifest must ask with `agents = true` in `[delegate]`, and the operator allows it \
                 with `delegate = [\"*\"]`, or the names of some, in `[agents.{0}.grant]` of the hub's configuration, or to a \
                 plug-in with `a2a-hub plugin grant {0} --delegate NAME`",
                self.agent
            ))
        })
    }

    async fn find_agents(&mut self, query: &str) -> Result<String, Failure> {
        let action = "find agents";
        let port = self.require_in_step(action).and_then(|()| self.delegation(action))?;
        if query.len() > MAX_QUERY {
            return Err(Failure::Invalid(format!(
                "{action}: the question is longer than {MAX_QUERY} bytes; say it shorter"
            )));
        }
        let invalid = |why: String| Failure::Invalid(format!("{action}: {why}"));
        let query = serde_json::from_str(query).map_err(|why| invalid(why.to_string()))?;
        let query = agent_query(query).map_err(|why| invalid(why.message))?;
        // The hub's search is charged to the guest's CPU account.
        self.account.before(FIND_COSTS).await;
        let found = self.on_the_hub(async move { port.find(query).await }).await?;
        Ok(json!(found).to_string())
    }

    async fn call_agent(
        &mut self,
        agent: String,
        message: Message,
        options: CallOptions,
    ) -> wasmtime::Result<Result<Resource<Delegated>, Failure>> {
        let action = "call another agent";
        let port = match self.require_outside_step(action).and_then(|()| self.delegation(action)) {
            Ok(port) => port,
            Err(why) => return Ok(Err(why)),
        };
        self.account.before(bytes_of_message(&message)).await;
        let mut request = match message_from_guest(message) {
            Ok(message) => self.request(agent, message, options),
            Err(why) => return Ok(Err(why)),
        };
        if let Some(replay) = &mut self.replay {
            // A call without a record joins its existing child, if any.
            request.key.get_or_insert(replay.next_call());
        }
        let key = request.key.as_deref().unwrap_or_default();
        let identity = CallIdentity::new("delegate.call", &format!("{} {key}", request.agent));
        let answers_questions = request.answers_questions;
        let call = match self.recall(&identity)? {
            Some(JournalAnswer::Called(called)) => called.map(|task| {
                Delegated::recalled(port, JoinChild { task, received: 0, answers_questions })
            }),
            Some(_) => return Err(mixed_up()),
            None => {
                let call = start_call(self.cancel.clone(), port, request).await;
                let called = call.as_ref().map(|call| call.task().clone()).map_err(Clone::clone);
                self.record_answer(identity, JournalAnswer::Called(called)).await?;
                call
            }
        };
        let full = |_| {
            Failure::Exhausted(
                "call another agent: too many handles are open; drop some".to_owned(),
            )
        };
        Ok(call.and_then(|call| self.table.push(call).map_err(full)))
    }

    fn request(
        &self,
        agent: String,
        mut message: protocol::Message,
        options: CallOptions,
    ) -> ChildRequest {
        // The called agent must not see this agent's secrets.
        message.hide(&self.redaction.secrets);
        let CallOptions {
            key,
            timeout_ms,
            budget,
            working_directory,
            context_id,
            answers_questions,
            inherit,
        } = options;
        let inherit = Some(inherit).filter(Inherit::is_requested);
        ChildRequest {
            agent,
            message,
            key,
            timeout_ms,
            budget,
            working_directory,
            context_id,
            answers_questions,
            inherit,
        }
    }

    async fn next_update(
        &mut self,
        call: &Resource<Delegated>,
        timeout_ms: Option<u32>,
    ) -> wasmtime::Result<Result<delegate::Update, Failure>> {
        if let Err(why) = self.require_outside_step("hear another agent") {
            return Ok(Err(why));
        }
        let identity = CallIdentity::new("call.next", self.table.get(call)?.task().as_str());
        if let Some(recorded) = self.recall(&identity)? {
            let JournalAnswer::Update(update) = recorded else { return Err(mixed_up()) };
            if let Ok(update) = &update {
                self.table.get_mut(call)?.recall(update);
            }
            return Ok(update);
        }
        let update = self.live_update(call, timeout_ms).await?;
        self.record_answer(identity, JournalAnswer::Update(update.clone())).await?;
        Ok(update)
    }

    async fn live_update(
        &mut self,
        call: &Resource<Delegated>,
        timeout_ms: Option<u32>,
    ) -> wasmtime::Result<Result<delegate::Update, Failure>> {
        let (cancel, port) = (self.cancel.clone(), self.ports.tasks.clone());
        let call = self.table.get_mut(call)?;
        let received = async {
            tokio::select! {
                biased;
                () = cancel.cancelled() => Err(Failure::Cancelled),
                update = call.next() => update,
                () = deadline(timeout_ms) => Err(Failure::Timeout),
            }
        };
        Ok(lending(port, WaitsFor::Agents, received).await)
    }

    /// Sends a child the answer to its question, or a further message.
    async fn tell_child(
        &mut self,
        call: Resource<Delegated>,
        message: Message,
        kind: ToChild,
    ) -> wasmtime::Result<Result<(), Failure>> {
        let (name, action) = match kind {
            ToChild::Answer => ("call.answer", "answer another agent"),
            ToChild::Further => ("call.send", "send another agent a message"),
        };
        if let Err(why) = self.require_outside_step(action) {
            return Ok(Err(why));
        }
        self.account.before(bytes_of_message(&message)).await;
        let identity = CallIdentity::new(name, self.table.get(&call)?.task().as_str());
        Ok(match (self.recall(&identity)?, message_from_guest(message)) {
            (Some(JournalAnswer::Answered(taken)), _) => taken,
            (Some(_), _) => return Err(mixed_up()),
            (None, Ok(mut message)) => {
                message.hide(&self.redaction.secrets);
                if let Some(replay) = &self.replay {
                    // A deterministic id, so that a repeat after a restart is the same message.
                    message.message_id = MessageId::new(replay.next_message(&identity.about));
                }
                let cancel = self.cancel.clone();
                let call = self.table.get_mut(&call)?;
                let taken = async {
                    let port = call.port().await?;
                    match kind {
                        ToChild::Answer => port.answer(message).await,
                        ToChild::Further => port.send(message).await,
                    }
                };
                let taken = until_cancelled(&cancel, taken).await;
                self.record_answer(identity, JournalAnswer::Answered(taken.clone())).await?;
                taken
            }
            (None, Err(why)) => Err(why),
        })
    }

    fn set(
        &mut self,
        options: &Resource<CallOptions>,
        set: impl FnOnce(&mut CallOptions),
    ) -> wasmtime::Result<()> {
        set(self.table.get_mut(options)?);
        Ok(())
    }
}

/// Message to a child.
#[derive(Clone, Copy)]
enum ToChild {
    /// The answer to its question.
    Answer,
    /// A further message, for an agent at work.
    Further,
}

async fn start_call(
    cancel: CancellationToken,
    port: Arc<dyn DelegatePort>,
    request: ChildRequest,
) -> Result<Delegated, Failure> {
    if cancel.is_cancelled() {
        return Err(Failure::Cancelled);
    }
    until_cancelled(&cancel, port.start(request)).await.map(Delegated::new)
}

/// Awaits the hub's answer, or the cancellation: a hub that is not up may take long.
async fn until_cancelled<T>(
    cancel: &CancellationToken,
    answer: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    tokio::select! {
        answer = answer => answer,
        () = cancel.cancelled() => Err(Failure::Cancelled),
    }
}

/// Waits for other agents or for the client. During a long wait the run permit is lent to other
/// tasks of the agent and reacquired afterwards.
pub(super) async fn lending<T>(
    port: Option<Arc<dyn TaskPort>>,
    waits_for: WaitsFor,
    waits: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    let mut waits = std::pin::pin!(waits);
    if let Ok(done) = timeout(LEND, &mut waits).await {
        return done;
    }
    let Some(port) = port else { return waits.await };
    port.release_permit(waits_for).await;
    let done = waits.await;
    // A cancelled task needs no permit.
    match &done {
        Err(Failure::Cancelled) => done,
        Ok(_) | Err(_) => port.reacquire_permit(waits_for).await.and(done),
    }
}

impl Host for GuestState {
    async fn agents(&mut self) -> wasmtime::Result<Result<String, types::Failure>> {
        let action = "ask for other agents";
        let port = self.require_in_step(action).and_then(|()| self.delegation(action));
        let agents = match port {
            Ok(port) => until_cancelled(&self.cancel, async { Ok(port.agents().await) }).await,
            Err(why) => Err(why),
        };
        let agents = agents.map(|agents| Value::from(agents).to_string());
        Ok(agents.map_err(failure_to_guest))
    }

    async fn find(&mut self, query: String) -> wasmtime::Result<Result<String, types::Failure>> {
        Ok(self.find_agents(&query).await.map_err(failure_to_guest))
    }

    async fn children(&mut self) -> wasmtime::Result<Result<Vec<Child>, types::Failure>> {
        let action = "list children";
        let identity = CallIdentity::new("delegate.children", "");
        let children =
            match self.require_outside_step(action).and_then(|()| self.delegation(action)) {
                Err(why) => Err(why),
                Ok(port) => match self.recall(&identity)? {
                    Some(JournalAnswer::Children(children)) => children,
                    Some(_) => return Err(mixed_up()),
                    None => {
                        let children = until_cancelled(&self.cancel, port.children()).await;
                        self.record_answer(identity, JournalAnswer::Children(children.clone()))
                            .await?;
                        children
                    }
                },
            };
        let to_guest = |child: delegate::ChildTask| Child {
            task_id: child.task.to_string(),
            agent: child.agent.to_string(),
            key: child.key,
            state: state_to_guest(child.state),
        };
        let children = children.map(|children| children.into_iter().map(to_guest).collect());
        Ok(children.map_err(failure_to_guest))
    }
}

impl HostOptions for GuestState {
    async fn new(&mut self) -> wasmtime::Result<Resource<CallOptions>> {
        Ok(self.table.push(CallOptions::default())?)
    }

    async fn set_key(&mut self, it: Resource<CallOptions>, key: String) -> wasmtime::Result<()> {
        self.set(&it, |options| options.key = Some(key))
    }

    async fn set_timeout_ms(
        &mut self,
        it: Resource<CallOptions>,
        timeout: u64,
    ) -> wasmtime::Result<()> {
        self.set(&it, |options| options.timeout_ms = Some(timeout))
    }

    async fn set_max_depth(
        &mut self,
        it: Resource<CallOptions>,
        depth: u32,
    ) -> wasmtime::Result<()> {
        self.set(&it, |options| options.budget.depth = Some(depth))
    }

    async fn set_max_tasks(
        &mut self,
        it: Resource<CallOptions>,
        tasks: u32,
    ) -> wasmtime::Result<()> {
        self.set(&it, |options| options.budget.tasks = Some(tasks))
    }

    async fn set_max_tokens(
        &mut self,
        it: Resource<CallOptions>,
        tokens: u64,
    ) -> wasmtime::Result<()> {
        self.set(&it, |options| options.budget.tokens = Some(tokens))
    }

    async fn set_max_cost_usd(
        &mut self,
        it: Resource<CallOptions>,
        cost: f64,
    ) -> wasmtime::Result<()> {
        self.set(&it, |options| options.budget.cost_usd = Some(cost.max(0.0)))
    }

    async fn set_working_directory(
        &mut self,
        it: Resource<CallOptions>,
        directory: String,
    ) -> wasmtime::Result<()> {
        self.set(&it, |options| options.working_directory = Some(directory))
    }

    async fn set_context_id(
        &mut self,
        it: Resource<CallOptions>,
        context: String,
    ) -> wasmtime::Result<()> {
        self.set(&it, |options| options.context_id = Some(context))
    }

    async fn set_answers_questions(
        &mut self,
        it: Resource<CallOptions>,
        answers: bool,
    ) -> wasmtime::Result<()> {
        self.set(&it, |options| options.answers_questions = answers)
    }

    async fn set_inherit_working_memory(
        &mut self,
        it: Resource<CallOptions>,
        inherits: bool,
    ) -> wasmtime::Result<()> {
        self.set(&it, |options| options.inherit.working_memory = inherits)
    }

    async fn set_inherit_memory(
        &mut self,
        it: Resource<CallOptions>,
        inherits: bool,
        query: Option<String>,
    ) -> wasmtime::Result<()> {
        self.set(&it, |options| {
            options.inherit.memory = inherits;
            options.inherit.query = query;
        })
    }

    async fn set_memory_scope(
        &mut self,
        it: Resource<CallOptions>,
        scope: MemoryScope,
    ) -> wasmtime::Result<()> {
        let scope = match scope {
            MemoryScope::Full => Scope::Full,
            MemoryScope::Minimal => Scope::Minimal,
            MemoryScope::Summary => Scope::Summary,
        };
        self.set(&it, |options| options.inherit.scope = scope)
    }

    async fn set_memory_names(
        &mut self,
        it: Resource<CallOptions>,
        mut names: Vec<String>,
    ) -> wasmtime::Result<()> {
        names.truncate(MAX_NAMES);
        self.set(&it, |options| options.inherit.names = names)
    }

    async fn set_memory_budget(
        &mut self,
        it: Resource<CallOptions>,
        bytes: Option<u64>,
        tokens: Option<u64>,
    ) -> wasmtime::Result<()> {
        let limit =
            |value: Option<u64>| value.map(|said| usize::try_from(said).unwrap_or(usize::MAX));
        let budget = MemoryBudget { bytes: limit(bytes), tokens: limit(tokens) };
        self.set(&it, |options| options.inherit.budget = budget)
    }

    async fn drop(&mut self, options: Resource<CallOptions>) -> wasmtime::Result<()> {
        self.table.delete(options)?;
        Ok(())
    }
}

impl HostCall for GuestState {
    async fn start(
        &mut self,
        agent: String,
        message: Message,
    ) -> wasmtime::Result<Result<Resource<Delegated>, types::Failure>> {
        let called = self.call_agent(agent, message, CallOptions::default()).await?;
        Ok(called.map_err(failure_to_guest))
    }

    async fn start_with(
        &mut self,
        agent: String,
        message: Message,
        options: Resource<CallOptions>,
    ) -> wasmtime::Result<Result<Resource<Delegated>, types::Failure>> {
        let options = self.table.get(&options)?.clone();
        Ok(self.call_agent(agent, message, options).await?.map_err(failure_to_guest))
    }

    async fn next(
        &mut self,
        call: Resource<Delegated>,
        timeout_ms: Option<u32>,
    ) -> wasmtime::Result<Result<Update, types::Failure>> {
        let update = self.next_update(&call, timeout_ms).await?;
        Ok(update.and_then(update_to_guest).map_err(failure_to_guest))
    }

    async fn task_id(&mut self, call: Resource<Delegated>) -> wasmtime::Result<String> {
        Ok(self.table.get(&call)?.task().to_string())
    }

    async fn answer(
        &mut self,
        call: Resource<Delegated>,
        message: Message,
    ) -> wasmtime::Result<Result<(), types::Failure>> {
        Ok(self.tell_child(call, message, ToChild::Answer).await?.map_err(failure_to_guest))
    }

    async fn send(
        &mut self,
        call: Resource<Delegated>,
        message: Message,
    ) -> wasmtime::Result<Result<(), types::Failure>> {
        Ok(self.tell_child(call, message, ToChild::Further).await?.map_err(failure_to_guest))
    }

    async fn cancel(&mut self, call: Resource<Delegated>) -> wasmtime::Result<()> {
        let agent = self.agent.clone();
        let call = self.table.get_mut(&call)?;
        let cancelled = match call.port().await {
            Ok(port) => port.cancel().await,
            Err(why) => Err(why),
        };
        if let Err(why) = cancelled {
            tracing::warn!(%agent, child = %call.task(), %why, "cannot cancel child task");
        }
        Ok(())
    }

    async fn drop(&mut self, call: Resource<Delegated>) -> wasmtime::Result<()> {
        let call = self.table.delete(call)?;
        // The guest continues while the hub ends the dropped child.
        self.hub.spawn(call.let_go());
        Ok(())
    }
}
