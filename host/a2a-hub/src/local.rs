//! Agents of one process that call one another by direct calls: Localized A2A (L-A2A). No socket and no port; JSON-RPC as values
//! where that is wanted, and typed messages, which nobody encodes, where both sides are Rust.
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

pub use callbacks::TooMany;
pub use event::TaskEventValue;
pub use request::Request;

use a2a_hub_agents::native::{Native, Stage};
use a2a_hub_core::access::Principal;
use a2a_hub_hub::{Reply, ReplyStream};
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
use request::{Call, read};
use serde_json::{Value, json};
use std::{
    collections::{BTreeSet, HashSet},
    sync::Arc,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// An agent that is a value of this program.
pub trait Agent: Send + Sync + 'static {
    /// What it can do: others find it by that.
    fn card(&self) -> AgentCard;

    /// Does one task. Several may be under way at once. One that panics ends its task as failed, and no other.
    fn run(&self, stage: Stage) -> impl Future<Output = Ended> + Send;
}

/// A card with these skills, which are named as their ids are.
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

/// The id of the agent of that name: names of programs have underscores, and ids of agents have hyphens in their place.
///
/// # Errors
///
/// If it is no name of an agent but for that.
pub fn agent_id(name: &str) -> Result<AgentId, InvalidAgentId> {
    AgentId::parse(name.replace('_', "-"))
}

/// The agent as the hub runs it; it may call others only where a rule says so.
pub(crate) fn native(agent: impl Agent, calls_others: bool) -> Native {
    let agent = Arc::new(agent);
    let native = Native::new(move |stage| {
        let agent = Arc::clone(&agent);
        async move { agent.run(stage).await }
    });
    if calls_others { native.calling_others() } else { native }
}

/// Who may call whom.
pub(crate) type Rules = BTreeSet<(AgentId, AgentId)>;

/// The hub as the program that holds it calls it, or one of its agents. Cheap to clone. Whoever holds one keeps the hub's store open, also
/// after the hub's shutdown.
#[derive(Clone)]
pub struct Local {
    shared: Arc<Shared>,
    /// The agent that speaks; the program itself if none does.
    speaks: Option<AgentId>,
}

struct Shared {
    engine: a2a_hub_hub::Hub,
    rules: Rules,
    callbacks: Callbacks,
    /// Tasks with ids of their callers' that are about to begin.
    beginning: Mutex<HashSet<TaskId>>,
}

/// An agent of the hub, to be called. Cheap to clone.
#[derive(Clone)]
pub struct LocalAgent {
    local: Local,
    id: AgentId,
}

impl Local {
    pub(crate) fn new(
        engine: a2a_hub_hub::Hub,
        rules: Rules,
        running: TaskTracker,
        stop: CancellationToken,
    ) -> Self {
        let callbacks = Callbacks::new(engine.clone(), running, stop);
        let shared = Shared { engine, rules, callbacks, beginning: Mutex::default() };
        Self { shared: Arc::new(shared), speaks: None }
    }

    /// The same for an agent, which may call those that a rule lets it call, and nothing else. It is the program's own code that says
    /// so: whoever holds this speaks as that agent.
    ///
    /// # Errors
    ///
    /// If no agent can be called so.
    pub fn speaking_as(&self, agent: &str) -> Result<Self, InvalidAgentId> {
        Ok(Self { speaks: Some(agent_id(agent)?), ..self.clone() })
    }

    /// The agent of that name, if there is one.
    pub fn agent(&self, name: &str) -> Option<LocalAgent> {
        let id = self.shared.engine.named(&agent_id(name).ok()?).ok()?;
        Some(LocalAgent { local: self.clone(), id })
    }

    /// Carries out a request of JSON-RPC 2.0, a value or its text, and answers with a response: for the agent that
    /// `params.metadata.targetAgent` names, or `targetSkill` finds. It takes `tasks/send` of L-A2A and all methods of the Local Hub but
    /// its streams, whose place callbacks take. A request without an `id` is a notification, and answered with `null`.
    pub async fn call(&self, request: impl Into<Request>) -> Value {
        self.respond(request.into(), None).await
    }

    /// Has a function of the program hear each event of a task, from its first on, also of a task that is not there yet. It runs on a
    /// thread of its own: one that blocks holds up nobody but itself, and one that panics hears no more.
    ///
    /// # Errors
    ///
    /// If too many are waiting or listening.
    pub fn subscribe(
        &self,
        task: impl Into<String>,
        callback: impl FnMut(TaskEventValue) + Send + 'static,
    ) -> Result<(), TooMany> {
        self.shared.callbacks.add(TaskId::new(task.into()), Box::new(callback))
    }

    async fn respond(&self, request: Request, agent: Option<&AgentId>) -> Value {
        let Call { id, method, params } = match read(request) {
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

    /// Any method of the hub's own.
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
            return Err(A2aError::new(ErrorKind::Authentication, why));
        }
        match self.shared.engine.handle(&Principal::Operator, None, operation).await? {
            Reply::One(answer) => Ok(hub::answer::write(answer, "")),
            Reply::Stream(_) => Err(A2aError::new(ErrorKind::Internal, "a stream came of it")),
        }
    }

    /// `tasks/send` of L-A2A.
    async fn send_task(&self, params: Value, agent: Option<&AgentId>) -> Result<Value, A2aError> {
        let (id, send) = request::send_task(params)?;
        let task = self.begin_or_go_on(id, send, agent).await?;
        result_of(task)
    }

    /// Gives the message to its agent, and hears the task out: as that of this id, if one is wanted.
    async fn begin_or_go_on(
        &self,
        id: Option<TaskId>,
        mut send: SendMessage,
        agent: Option<&AgentId>,
    ) -> Result<Task, A2aError> {
        let Some(id) = id else { return self.send(send, agent).await };
        let engine = &self.shared.engine;
        let look = Operation::GetTask { id: id.clone(), history_length: Some(0) };
        let is_there = match engine.handle(&Principal::Operator, None, look).await {
            Ok(_) => true,
            Err(why) if why.kind == ErrorKind::TaskNotFound => false,
            Err(why) => return Err(why),
        };
        let _beginning = Beginning::of(&self.shared, &id)?;
        if is_there {
            send.message.task_id = Some(id.clone());
        } else {
            send.own_id = Some(id.clone());
        }
        if !self.shared.callbacks.has(&id) {
            return self.send(send, agent).await;
        }
        self.address(&mut send, agent)?;
        let stream = Operation::StreamMessage(Box::new(send));
        let reply = engine.handle(&Principal::Operator, None, stream).await?;
        self.shared.callbacks.begun(&id);
        if let Reply::Stream(ReplyStream::Task(mut heard)) = reply {
            while let Some(event) = heard.next().await {
                if event.is_err() {
                    break;
                }
            }
        }
        let look = Operation::GetTask { id: id.clone(), history_length: None };
        let task = task_of(engine.handle(&Principal::Operator, None, look).await?)?;
        if task.status.state.is_final() {
            self.shared.callbacks.heard_out(&id).await;
        }
        Ok(task)
    }

    /// Gives a message to an agent, and waits until its task is over or asks something. Nothing of it is encoded on the way.
    async fn send(&self, mut send: SendMessage, agent: Option<&AgentId>) -> Result<Task, A2aError> {
        self.address(&mut send, agent)?;
        send.wait = Wait::ToTheEnd;
        let operation = Operation::SendMessage(Box::new(send));
        task_of(self.shared.engine.handle(&Principal::Operator, None, operation).await?)
    }

    /// The message is for this agent, if one is named beside it, and the one who speaks may call whom it is for.
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
        Err(A2aError::new(ErrorKind::Authentication, why))
    }
}

impl LocalAgent {
    /// Its id on this hub.
    pub fn id(&self) -> &AgentId {
        &self.id
    }

    /// Carries out a request as [`Local::call`] does; a message in it is for this agent.
    pub async fn call(&self, request: impl Into<Request>) -> Value {
        self.local.respond(request.into(), Some(&self.id)).await
    }

    /// Gives it a message, and waits until the task is over or asks something. The message is handed over as it is: nothing encodes
    /// it, unless the hub's store is on a disk.
    ///
    /// # Errors
    ///
    /// If it may not be called, does not take the message, or answers it without a task.
    pub async fn send(&self, message: Message) -> Result<Task, A2aError> {
        self.local.send(SendMessage::new(message, None)?, Some(&self.id)).await
    }

    /// The same, as the task of this id.
    ///
    /// # Errors
    ///
    /// The same, and if there is a task of that id which is over.
    pub async fn send_as(
        &self,
        task: impl Into<String>,
        message: Message,
    ) -> Result<Task, A2aError> {
        let (id, send) = (request::own_id(task.into())?, SendMessage::new(message, None)?);
        self.local.begin_or_go_on(Some(id), send, Some(&self.id)).await
    }
}

/// A task with an id of its caller's that is about to begin: no other one of that id begins meanwhile.
struct Beginning<'s> {
    shared: &'s Shared,
    id: TaskId,
}

impl<'s> Beginning<'s> {
    fn of(shared: &'s Shared, id: &TaskId) -> Result<Self, A2aError> {
        if !shared.beginning.lock().insert(id.clone()) {
            let why =
                format!("another call with the task `{id}` is under way; take another id, or wait");
            return Err(A2aError::invalid("params.task_id", why));
        }
        Ok(Self { shared, id: id.clone() })
    }
}

impl Drop for Beginning<'_> {
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

/// What `tasks/send` answers: the agent's last words as a text; the whole task where there are none, or where it asks something.
fn result_of(task: Task) -> Result<Value, A2aError> {
    let said = task.status.message.as_ref().map(Message::joined_text).unwrap_or_default();
    match task.status.state {
        TaskState::Completed if !said.is_empty() => Ok(Value::String(said)),
        TaskState::Failed | TaskState::Rejected | TaskState::Canceled => {
            let state = task.status.state.name();
            let why = if said.is_empty() { format!("the task is {state}") } else { said };
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
