//! Agents of one process that call one another directly: Localized A2A (L-A2A). Needs neither a
//! socket nor a port. Messages are JSON-RPC values or, between Rust callers, typed messages that
//! are never encoded.
//!
//! ```
//! use a2a_hub::{Ended, Hub, Stage, completed, local::{Agent, card}, protocol::card::AgentCard};
//! use serde_json::json;
//!
//! struct DataProcessor;
//!
//! impl Agent for DataProcessor {
//!     fn card(&self) -> AgentCard {
//!         card("Data processor", "Processes data", &["process_data"])
//!     }
//!
//!     async fn run(&self, stage: Stage) -> Ended {
//!         match stage.data(json!({ "data": "processed data" })).await {
//!             Ok(()) => completed("Task completed"),
//!             Err(why) => Ended::Failed(why),
//!         }
//!     }
//! }
//!
//! # #[tokio::main]
//! # async fn main() -> anyhow::Result<()> {
//! let hub = Hub::in_memory().register("data_processor", DataProcessor)?.start().await?;
//! // Before the task is there.
//! hub.local().subscribe("task_123", |event| drop(event.to_value()))?;
//! let request = json!({
//!     "jsonrpc": "2.0",
//!     "method": "tasks/send",
//!     "params": { "task_id": "task_123", "message": "Please process this data." },
//!     "id": 1,
//! });
//! let processor = hub.local().agent("data_processor").expect("it was registered");
//! let response = processor.call(request).await;
//! assert_eq!(response, json!({ "jsonrpc": "2.0", "result": "Task completed", "id": 1 }));
//! hub.shutdown().await;
//! # Ok(())
//! # }
//! ```

mod callbacks;
mod event;
mod request;

pub use callbacks::CallbackLimitError;
pub use event::TaskEventValue;
pub use request::Request;

use a2a_hub_agents::native::{Native, Stage};
use a2a_hub_core::access_control::Principal;
use a2a_hub_engine::{Reply, ReplyStream};
use a2a_hub_protocol::{
    card::{AgentCard, Skill},
    dialect::Dialect,
    error::{A2aError, ErrorKind},
    hub,
    id::{AgentId, InvalidAgentId, TaskId},
    message::{Message, Metadata},
    operation::{Answer, Operation, SendMessage, Wait},
    task::{Task, TaskState},
};
use a2a_hub_runtime::Ended;
use callbacks::Callbacks;
use parking_lot::Mutex;
use request::{ParsedCall, read};
use serde_json::{Value, json};
use std::{
    collections::{BTreeSet, HashSet},
    sync::Arc,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// An agent that is a value of this program.
pub trait Agent: Send + Sync + 'static {
    /// Card of the agent, by which others find it.
    fn card(&self) -> AgentCard;

    /// Executes one task. Several tasks may run concurrently. A panic fails its own task only.
    fn run(&self, stage: Stage) -> impl Future<Output = Ended> + Send;
}

/// Creates a card with these skills, whose ids are also their names.
pub fn card(name: &str, description: &str, capabilities: &[&str]) -> AgentCard {
    let skill = |id: &&str| Skill {
        id: (*id).to_owned(),
        name: (*id).to_owned(),
        description: description.to_owned(),
        tags: Vec::new(),
        other: Metadata::new(),
    };
    AgentCard {
        name: name.to_owned(),
        description: description.to_owned(),
        version: "1.0.0".to_owned(),
        skills: capabilities.iter().map(skill).collect(),
        other: Metadata::new(),
    }
}

/// Converts a program's name to an agent id: agent ids have hyphens in place of underscores.
///
/// # Errors
///
/// If the result is no valid agent id.
pub fn agent_id(name: &str) -> Result<AgentId, InvalidAgentId> {
    AgentId::parse(name.replace('_', "-"))
}

/// Wraps the agent for the hub. Only an agent that a rule allows to call others gets the calls.
pub(crate) fn native(agent: impl Agent, calls_others: bool) -> Native {
    let agent = Arc::new(agent);
    let native = Native::new(move |stage| {
        let agent = Arc::clone(&agent);
        async move { agent.run(stage).await }
    });
    if calls_others { native.calling_others() } else { native }
}

/// Pairs of agents: the caller and the callee that a rule allows.
pub(crate) type CallRules = BTreeSet<(AgentId, AgentId)>;

/// Interface of the hub for direct calls by the embedding program or by one of its agents. Cheap to
/// clone. A clone keeps the hub's store open, even after the hub's shutdown.
#[derive(Clone)]
pub struct Local {
    shared: Arc<LocalInner>,
    /// Agent on whose behalf calls are made; `None` for the program itself.
    speaks: Option<AgentId>,
}

struct LocalInner {
    engine: a2a_hub_engine::Hub,
    rules: CallRules,
    callbacks: Callbacks,
    /// Caller-chosen ids of tasks that are being created.
    beginning: Mutex<HashSet<TaskId>>,
}

/// Handle for calls to one agent of the hub. Cheap to clone.
#[derive(Clone)]
pub struct LocalAgent {
    local: Local,
    id: AgentId,
}

impl Local {
    pub(crate) fn new(
        engine: a2a_hub_engine::Hub,
        rules: CallRules,
        running: TaskTracker,
        stop: CancellationToken,
    ) -> Self {
        let callbacks = Callbacks::new(engine.clone(), running, stop);
        let shared = LocalInner { engine, rules, callbacks, beginning: Mutex::default() };
        Self { shared: Arc::new(shared), speaks: None }
    }

    /// Returns an interface that acts as an agent, which may only call the agents that a rule
    /// allows. Nothing verifies the identity: code that holds this value acts as that agent.
    ///
    /// # Errors
    ///
    /// If `agent` is no valid agent id.
    pub fn speaking_as(&self, agent: &str) -> Result<Self, InvalidAgentId> {
        Ok(Self { speaks: Some(agent_id(agent)?), ..self.clone() })
    }

    /// Returns a handle for the agent of that name, if it exists.
    pub fn agent(&self, name: &str) -> Option<LocalAgent> {
        let id = self.shared.engine.named(&agent_id(name).ok()?).ok()?;
        Some(LocalAgent { local: self.clone(), id })
    }

    /// Executes a JSON-RPC 2.0 request, given as a value or as text, and returns the response.
    /// `params.metadata.targetAgent` names the agent, or `targetSkill` finds one. Supports
    /// `tasks/send` of L-A2A and all methods of the Local Hub except its streams, for which
    /// [`Local::subscribe`] is the replacement. A request without an `id` is a notification and
    /// returns `null`.
    pub async fn call(&self, request: impl Into<Request>) -> Value {
        self.respond(request.into(), None).await
    }

    /// Calls a function with each event of a task, from the first one on; the task need not exist
    /// yet. Each callback has a thread: one that blocks delays only itself, and one that panics
    /// receives no more events.
    ///
    /// # Errors
    ///
    /// If too many callbacks are registered.
    pub fn subscribe(
        &self,
        task: impl Into<String>,
        callback: impl FnMut(TaskEventValue) + Send + 'static,
    ) -> Result<(), CallbackLimitError> {
        self.shared.callbacks.add(TaskId::new(task.into()), Box::new(callback))
    }

    async fn respond(&self, request: Request, agent: Option<&AgentId>) -> Value {
        let ParsedCall { id, method, params } = match read(request) {
            Ok(call) => call,
            Err((id, why)) => return error(&id, &why),
        };
        let done = match method.as_str() {
            "tasks/send" => self.send_task(params, agent).await,
            _ => self.carry_out(&method, params, agent).await,
        };
        match (id, done) {
            (None, _) => Value::Null,
            (Some(id), Ok(result)) => json!({ "jsonrpc": "2.0", "result": result, "id": id }),
            (Some(id), Err(why)) => error(&id, &why),
        }
    }

    /// Executes a method of the Local Hub.
    async fn carry_out(
        &self,
        method: &str,
        params: Value,
        agent: Option<&AgentId>,
    ) -> Result<Value, A2aError> {
        let mut operation = Dialect::Hub.operation(method, params)?;
        if operation.streams() {
            let why = format!(
                "`{method}` is a stream; `subscribe` has a function hear what happens to a task"
            );
            return Err(A2aError::new(ErrorKind::UnsupportedOperation, why));
        }
        if let Operation::SendMessage(send) = &mut operation {
            self.address(send, agent)?;
        } else if let Some(speaks) = &self.speaks {
            let why = format!("`{speaks}` may call agents, and ask nothing else of the hub");
            return Err(A2aError::new(ErrorKind::PermissionDenied, why));
        }
        match self.shared.engine.handle(&Principal::Operator, None, operation).await? {
            Reply::One(answer) => Ok(hub::answer::write(answer, "")),
            Reply::Stream(_) => Err(A2aError::new(ErrorKind::Internal, "a stream came of it")),
        }
    }

    /// Executes `tasks/send` of L-A2A.
    async fn send_task(&self, params: Value, agent: Option<&AgentId>) -> Result<Value, A2aError> {
        let (id, send) = request::send_task(params)?;
        let task = self.begin_or_go_on(id, send, agent).await?;
        result_of(task)
    }

    /// Sends the message to its agent and waits until the task settles; with an id, creates or
    /// continues the task of that id.
    async fn begin_or_go_on(
        &self,
        id: Option<TaskId>,
        mut send: SendMessage,
        agent: Option<&AgentId>,
    ) -> Result<Task, A2aError> {
        let Some(id) = id else { return self.send(send, agent).await };
        let engine = &self.shared.engine;
        let get_task = Operation::GetTask { id: id.clone(), history_length: Some(0) };
        let is_there = match engine.handle(&Principal::Operator, None, get_task).await {
            Ok(_) => true,
            Err(why) if why.kind == ErrorKind::TaskNotFound => false,
            Err(why) => return Err(why),
        };
        let _beginning = TaskIdReservation::acquire(&self.shared, &id)?;
        if is_there {
            send.message.task_id = Some(id.clone());
        } else {
            send.new_task_id = Some(id.clone());
        }
        if !self.shared.callbacks.has(&id) {
            return self.send(send, agent).await;
        }
        self.address(&mut send, agent)?;
        let stream = Operation::StreamMessage(Box::new(send));
        let reply = engine.handle(&Principal::Operator, None, stream).await?;
        self.shared.callbacks.begun(&id);
        if let Reply::Stream(ReplyStream::Task(mut events)) = reply {
            while let Some(event) = events.next().await {
                if event.is_err() {
                    break;
                }
            }
        }
        let get_task = Operation::GetTask { id: id.clone(), history_length: None };
        let task = task_of(engine.handle(&Principal::Operator, None, get_task).await?)?;
        if task.status.state.is_final() {
            self.shared.callbacks.wait_until_processed(&id).await;
        }
        Ok(task)
    }

    /// Sends a message to an agent and waits until the task ends or asks a question. The message is
    /// never encoded.
    async fn send(&self, mut send: SendMessage, agent: Option<&AgentId>) -> Result<Task, A2aError> {
        self.address(&mut send, agent)?;
        send.wait = Wait::ToTheEnd;
        let operation = Operation::SendMessage(Box::new(send));
        task_of(self.shared.engine.handle(&Principal::Operator, None, operation).await?)
    }

    /// Sets the message's agent if one is given separately, and checks that the acting agent may
    /// call it.
    fn address(&self, send: &mut SendMessage, agent: Option<&AgentId>) -> Result<(), A2aError> {
        if let Some(agent) = agent {
            send.agent = Some(agent.clone());
        }
        let Some(speaks) = &self.speaks else { return Ok(()) };
        let callee = send.agent.clone().or_else(|| self.shared.engine.default_agent());
        let is_allowed = |callee: AgentId| self.shared.rules.contains(&(speaks.clone(), callee));
        if callee.clone().is_some_and(is_allowed) {
            return Ok(());
        }
        let whom = callee
            .map_or_else(|| "an agent that it does not name".to_owned(), |it| format!("`{it}`"));
        let why = format!(
            "`{speaks}` may not call {whom}; the program allows it with `allow(\"{speaks}\", …)`"
        );
        Err(A2aError::new(ErrorKind::PermissionDenied, why))
    }
}

impl LocalAgent {
    /// Id of the agent on this hub.
    pub fn id(&self) -> &AgentId {
        &self.id
    }

    /// Executes a request like [`Local::call`]; a message in it goes to this agent.
    pub async fn call(&self, request: impl Into<Request>) -> Value {
        self.local.respond(request.into(), Some(&self.id)).await
    }

    /// Sends a message to the agent and waits until the task ends or asks a question. The message
    /// is passed without encoding, unless the hub's store is on a disk.
    ///
    /// # Errors
    ///
    /// If the call is not allowed, or the agent refuses the message or answers it without a task.
    pub async fn send(&self, message: Message) -> Result<Task, A2aError> {
        self.local.send(SendMessage::new(message, None)?, Some(&self.id)).await
    }

    /// Sends a message like [`LocalAgent::send`], as the task of this id.
    ///
    /// # Errors
    ///
    /// The errors of [`LocalAgent::send`]; and if the task of that id has ended.
    pub async fn send_as(
        &self,
        task: impl Into<String>,
        message: Message,
    ) -> Result<Task, A2aError> {
        let (id, send) = (request::parse_task_id(task.into())?, SendMessage::new(message, None)?);
        self.local.begin_or_go_on(Some(id), send, Some(&self.id)).await
    }
}

/// Reservation of a caller-chosen task id while its task is being created.
struct TaskIdReservation<'s> {
    shared: &'s LocalInner,
    id: TaskId,
}

impl<'s> TaskIdReservation<'s> {
    fn acquire(shared: &'s LocalInner, id: &TaskId) -> Result<Self, A2aError> {
        if !shared.beginning.lock().insert(id.clone()) {
            let why =
                format!("another call with the task `{id}` is under way; take another id, or wait");
            return Err(A2aError::invalid("params.task_id", why));
        }
        Ok(Self { shared, id: id.clone() })
    }
}

impl Drop for TaskIdReservation<'_> {
    fn drop(&mut self) {
        self.shared.beginning.lock().remove(&self.id);
    }
}

fn error(id: &Value, why: &A2aError) -> Value {
    json!({ "jsonrpc": "2.0", "error": Dialect::Hub.write_error(why), "id": id })
}

fn task_of(reply: Reply) -> Result<Task, A2aError> {
    match reply {
        Reply::One(Answer::Task(task)) => Ok(*task),
        Reply::One(_) | Reply::Stream(_) => {
            Err(A2aError::new(ErrorKind::Internal, "no task came of it"))
        }
    }
}

/// Result of `tasks/send`: the agent's last message as text, or the whole task if that is empty or
/// the task asks a question.
fn result_of(task: Task) -> Result<Value, A2aError> {
    let text = task.status.message.as_ref().map(Message::joined_text).unwrap_or_default();
    match task.status.state {
        TaskState::Completed if !text.is_empty() => Ok(Value::String(text)),
        TaskState::Failed | TaskState::Rejected | TaskState::Canceled => {
            let state = task.status.state.name();
            let why = if text.is_empty() { format!("the task is {state}") } else { text };
            let why = A2aError::new(ErrorKind::AgentUnavailable, why);
            Err(why.with(json!({ "taskId": task.id, "state": state })))
        }
        TaskState::Completed
        | TaskState::Submitted
        | TaskState::Working
        | TaskState::InputRequired
        | TaskState::AuthRequired
        | TaskState::Unknown => Ok(hub::answer::write(Answer::Task(Box::new(task)), "")),
    }
}
