//! Test hub with one native agent and an in-memory store, and tests that concern several
//! transports.

mod acp;
pub(crate) mod acp_schema;
mod acp_sessions;
mod acp_tools;
mod acp_turns;
mod connections;
mod dispatcher;
mod http_guard;
mod hub_methods;
#[path = "../../../tests/harness/shapes.rs"]
pub(crate) mod json_shapes;
pub(crate) mod line_strategy;
mod mcp;
mod mcp_questions;
mod mcp_skills;
mod mcp_tasks;
mod scripted;
mod shapes;
mod tls;

use crate::{Dispatcher, Lineage, PublicEndpoints};
use a2a_hub_agents::{
    Agents, AgentsSetup, BuiltIn, PluginFolder,
    native::{Native, Stage, completed},
};
use a2a_hub_config::Config;
use a2a_hub_core::access_control::Principal;
use a2a_hub_engine::conversations::contexts::Contexts;
use a2a_hub_engine::observability::hub_events::Events;
use a2a_hub_engine::webhooks::Sender;
use a2a_hub_engine::{
    Hub, Reply, StartingHub,
    push::Pushes,
    routing::Routes,
    tasks::{Directory, Tasks},
};
use a2a_hub_process::Supervisor;
use a2a_hub_protocol::{
    card::{AgentCard, Skill},
    event::TaskEvent,
    id::{AgentId, ArtifactId, ContextId, TenantId},
    message::{Message, Part, Role},
    operation::{Answer, Operation, Page, TaskQuery},
    task::{Artifact, TaskState},
};
use a2a_hub_runtime::{Ended, Failure, port::tasks::Emitted};
use a2a_hub_sandbox::{Engine, EngineSettings};
use a2a_hub_store::memory::MemoryStorage;
use serde_json::{Value, json};
use std::{collections::BTreeSet, path::Path, sync::Arc, time::Duration};
use tempfile::TempDir;

/// A dispatcher with its hub's directory.
pub(crate) struct TestDispatcher {
    pub(crate) dispatcher: Dispatcher,
    _dir: TempDir,
}

/// Lineage that maps every socket to the same principal.
pub(crate) struct Always(pub(crate) Option<Principal>);

impl Lineage for Always {
    fn of_process(&self, _: i32) -> Option<Principal> {
        None
    }

    fn of_sockets(&self, inodes: &[u64]) -> Vec<Option<Principal>> {
        inodes.iter().map(|_| self.0.clone()).collect()
    }
}

/// Status text of the agent that makes the hub panic; see [`panic_if_told`].
pub(crate) const PANIC: &str = "have the hub panic";

/// Text of the panic, which no client may see.
pub(crate) const PANIC_TEXT: &str = "the key is sk-123";

/// Panics if the agent sends [`PANIC`], to simulate a bug of the hub in the middle of a turn.
pub(crate) fn panic_if_told(event: &TaskEvent) {
    if let TaskEvent::Status(update) = event
        && update.status.state == TaskState::Working
        && update.status.message.as_ref().is_some_and(|said| said.joined_text() == PANIC)
    {
        panic!("{PANIC_TEXT}");
    }
}

/// Text that the agent streams in two pieces, and then sends as a whole.
pub(crate) const STREAMED: [&str; 2] = ["One. ", "Two."];

async fn stream(stage: &Stage) -> Result<(), Failure> {
    let whole = STREAMED.concat();
    for (text, append) in [(STREAMED[0], false), (STREAMED[1], true), (&whole, false)] {
        let artifact = Artifact::new(ArtifactId::new("text"), vec![Part::text(text)]);
        stage.port.emit(vec![Emitted::Artifact { artifact, append, last_chunk: false }]).await?;
    }
    Ok(())
}

/// Reports a tool call that it leaves open, a plan, the size of its context and a changed file.
async fn use_tools(stage: &Stage) -> Result<(), Failure> {
    let reports = [
        json!({ "tool": { "id": "1", "title": "ls", "kind": "execute" } }),
        json!({ "tool": { "id": "1", "status": "completed" } }),
        json!({ "tool": { "id": "2", "name": "Read", "kind": "read" } }),
        json!({ "plan": [{ "content": "look", "status": "completed" }] }),
        json!({ "context": { "used": 10, "size": 100 } }),
    ];
    for report in reports {
        let message = Some(Message::text(Role::Agent, "for people"));
        let metadata = report.as_object().cloned();
        stage.port.emit(vec![Emitted::Working { message, metadata }]).await?;
    }
    let diff = "--- /w/a\n+++ /w/a\n@@ -1 +1 @@\n-one\n+two\n";
    let mut artifact = Artifact::new(ArtifactId::new("change:/w/a"), vec![Part::text(diff)]);
    artifact.metadata = json!({ "path": "/w/a", "kind": "file-change" }).as_object().cloned();
    stage.port.emit(vec![Emitted::Artifact { artifact, append: false, last_chunk: true }]).await
}

/// Agent that replies, asks, streams, uses tools, works until canceled, or echoes the message.
async fn play(stage: Stage) -> Ended {
    match stage.text().as_str() {
        "reply" => Ended::Reply(Message::text(Role::Agent, "hi")),
        "ask" => match stage.ask("which one?", None).await {
            Ok(answer) => completed(&answer.message.joined_text()),
            Err(why) => Ended::Failed(why),
        },
        "late" => {
            tokio::time::sleep(Duration::from_millis(600)).await;
            Ended::Reply(Message::text(Role::Agent, "hi"))
        }
        "work" => {
            stage.cancelled.cancelled().await;
            Ended::Failed(Failure::Cancelled)
        }
        "use tools" => match use_tools(&stage).await {
            Ok(()) => completed("done"),
            Err(why) => Ended::Failed(why),
        },
        "stream" => match stream(&stage).await {
            Ok(()) => completed("done"),
            Err(why) => Ended::Failed(why),
        },
        PANIC => {
            let _ = stage.report_working(PANIC).await;
            stage.cancelled.cancelled().await;
            Ended::Failed(Failure::Cancelled)
        }
        said => match said.strip_prefix(scripted::SCRIPT) {
            Some(script) => scripted::perform(&stage, script).await,
            None => completed(said),
        },
    }
}

/// Creates a hub with this agent. Only its plugins folder is written below `dir`.
async fn hub(dir: &Path, tenants: BTreeSet<TenantId>, agent: Native, skills: Vec<Skill>) -> Hub {
    let (config, events) = (Config::default(), Events::default());
    let storage = Arc::new(MemoryStorage::default());
    let few = EngineSettings { max_instances: 1, ..EngineSettings::default() };
    let agents = Agents::new(AgentsSetup {
        config: config.clone(),
        built_in: BuiltIn(&[]),
        data_dir: dir.to_owned(),
        engine: Engine::new(&few).unwrap(),
        supervisor: Supervisor::new("/nonexistent".into(), dir.to_owned(), Duration::ZERO),
        storage: storage.clone(),
        events: Arc::new(events.clone()),
        hub_access: None,
    });
    let routes = Routes::new(agents.clone(), &events);
    let tasks = Tasks::new(storage.clone(), events.clone(), Directory::new(routes.clone()));
    let contexts = Contexts::new(storage.clone(), &config);
    let sender = Sender::new(config.push.rules(), None);
    let (breaker, give_up) = (config.breaker.settings(), config.push.give_up());
    let pushes = Pushes::new(storage, tasks.clone(), Arc::new(sender), breaker, give_up);
    let plugins = PluginFolder::open(dir.join("plugins"), agents).unwrap();
    let streams = ("capabilities".to_owned(), json!({ "streaming": true }));
    let modes = ("defaultInputModes".to_owned(), json!(["text/plain"]));
    let modes = (!skills.is_empty()).then_some(modes);
    let card = AgentCard {
        name: "Fake".to_owned(),
        description: String::new(),
        version: "1".to_owned(),
        skills,
        other: std::iter::once(streams).chain(modes).collect(),
    };
    let id = AgentId::parse("claude-code").unwrap();
    let native = vec![(id, card, Arc::new(agent) as _)];
    let joined = plugins.join_all(native, &BTreeSet::new()).await.unwrap();
    let whole = StartingHub::new(joined, routes, contexts, tasks, pushes, events);
    whole.with_tenants(tenants).recover().await.unwrap().0
}

impl TestDispatcher {
    pub(crate) async fn new() -> Self {
        Self::with_streams(8).await
    }

    pub(crate) async fn with_streams(max: usize) -> Self {
        Self::of_tenants(max, BTreeSet::new()).await
    }

    /// A hub whose agent does not declare that it may answer with a direct message.
    pub(crate) async fn with_tasks_only() -> Self {
        Self::of_agent(8, BTreeSet::new(), Native::new(play), Vec::new()).await
    }

    pub(crate) async fn of_tenants(max: usize, tenants: BTreeSet<TenantId>) -> Self {
        Self::of_agent(max, tenants, Native::new(play).direct_message(), Vec::new()).await
    }

    /// A hub whose agent takes text only, and has these skills.
    pub(crate) async fn with_skills(skills: &[Value]) -> Self {
        let read = |skill: &Value| serde_json::from_value(skill.clone()).unwrap();
        let skills = skills.iter().map(read).collect();
        Self::of_agent(8, BTreeSet::new(), Native::new(play), skills).await
    }

    /// Metadata of the first message of a conversation's latest task.
    pub(crate) async fn latest_message_facts(&self, context: &str) -> Value {
        let query = TaskQuery {
            context: Some(ContextId::new(context)),
            ..TaskQuery::all(Page { limit: 1, offset: 0 })
        };
        let list = Operation::ListTasks(query);
        let listed = self.dispatcher.hub().handle(Principal::Operator, None, list).await;
        let Ok(Reply::One(Answer::Tasks { tasks, .. })) = listed else { panic!("no list") };
        json!(tasks[0].task.history[0].metadata)
    }

    async fn of_agent(
        max: usize,
        tenants: BTreeSet<TenantId>,
        agent: Native,
        skills: Vec<Skill>,
    ) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let hub = hub(dir.path(), tenants, agent, skills).await;
        let endpoints = PublicEndpoints::default();
        let dispatcher = Dispatcher::new(hub, endpoints, max, Duration::from_secs(30));
        Self { dispatcher, _dir: dir }
    }
}
