//! Transfer of context memory to a child.

use super::{Stand, config};
use crate::tests::scripted_agent::Fake;
use a2a_hub_agents::Agent;
use a2a_hub_agents::native::{Stage, completed};
use a2a_hub_core::{
    context_memory::{
        inherit::{Inherit, Scope},
        model::{Change, Decision, Item, Thought},
        transfer::{Inherited, Rule},
    },
    failure_reason::FailureReason,
};
use a2a_hub_protocol::{
    id::{AgentId, TaskId},
    message::{Message, Metadata, Role},
    task::{Task, TaskState},
};
use a2a_hub_runtime::{Ended, Failure, port::delegate::ChildRequest};
use serde_json::{Value, json};
use std::{collections::HashMap, sync::Arc};

const PLANNER: &str = "planner";
const CODER: &str = "coder";

/// Context memory of the planner before its call.
fn mind() -> Vec<Change> {
    let item = |id: &str, data: Value, metadata: Value| {
        let (kind, metadata) = ("semantic".to_owned(), metadata.as_object().cloned());
        Change::Remember(Item { id: id.to_owned(), kind, data, metadata })
    };
    let thought = |content: &str, private| {
        Change::Thought(Thought { content: content.to_owned(), at: None, private })
    };
    let (key, value) = ("database".to_owned(), json!("sqlite"));
    vec![
        Change::Goal(Some("Ship the parser".to_owned())),
        thought("The grammar is small", false),
        thought("hunter2 is my password", true),
        Change::Decide(Decision { key, value, ..Decision::default() }),
        item("fact1", json!({"info": "the cache is warm"}), json!({"score": 0.9})),
        item("eventA", json!({"action": "interacted"}), Value::Null),
        item("own", json!("hunter2"), json!({"private": true})),
    ]
}

/// The planner stores its memory and calls the coder, which reports its own memory.
async fn perform(stage: Stage, asked: Inherit) -> Ended {
    let memory = stage.memory.clone();
    if stage.text().starts_with("code") {
        let Some(memory) = memory else { return completed("nothing") };
        let (working, items) =
            (memory.working().await.unwrap(), memory.recall("", 10).await.unwrap());
        return completed(&json!({"working": working, "items": items}).to_string());
    }
    memory.unwrap().change(mind()).await.unwrap();
    let message = Message::text(Role::User, "code with the database and fact1");
    let request = ChildRequest { inherit: Some(asked), ..ChildRequest::new(CODER, message) };
    stage.outcome_of(request).await.unwrap_or_else(Ended::Failed)
}

struct Scene {
    stand: Stand,
    planner: Arc<Agent>,
}

impl Scene {
    /// Creates a planner that requests this transfer, and a coder with this much memory, or none.
    fn new(asked: Inherit, coder: Option<u64>) -> Self {
        let stand = Stand::new();
        let fake = Fake::new(move |stage| perform(stage, asked.clone())).calling_others();
        let planner = fake.clone().remembering(1 << 20).agent_among(PLANNER, config(), &[CODER]);
        let coder = match coder {
            Some(bytes) => fake.remembering(bytes).agent_among(CODER, config(), &[]),
            None => fake.agent_called(CODER, config()),
        };
        let known: HashMap<AgentId, Arc<Agent>> =
            [&planner, &coder].map(|agent| (agent.id.clone(), Arc::clone(agent))).into();
        stand.know(move |id| known.get(id).cloned());
        Self { stand, planner }
    }

    /// The coder's memory, the record of the transfer, and the coder's task.
    async fn played(&self) -> (Value, Inherited, Task) {
        let root = self.stand.submit(&self.planner, "plan").await;
        let done = self.stand.until(&root, TaskState::Completed).await;
        let said = done.status.message.as_ref().map(Message::joined_text).unwrap_or_default();
        let child = self.stand.tasks.children(&root).await.unwrap().remove(0);
        let child = self.stand.tasks.get(&child.task).await.unwrap().task;
        let fact = Inherited::from_metadata(child.metadata.as_ref()).unwrap();
        (serde_json::from_str(&said).unwrap_or_default(), fact, child)
    }
}

fn everything(scope: Scope) -> Inherit {
    Inherit { working_memory: true, memory: true, scope, ..Inherit::default() }
}

#[tokio::test(start_paused = true)]
async fn child_starts_with_transferred_memory() {
    let (told, fact, child) = Scene::new(everything(Scope::Full), Some(1 << 20)).played().await;
    assert_eq!(told["working"]["goal"], "Ship the parser");
    assert_eq!(told["working"]["thoughts"][0]["content"], "The grammar is small");
    assert_eq!(told["working"]["decisions"][0]["value"], "sqlite");
    let fact1 = json!({"id": "fact1", "type": "semantic", "data": {"info": "the cache is warm"}, "metadata": {"score": 0.9}});
    assert_eq!(
        told["items"][0], fact1,
        "an item arrives as it left, and what is meant comes first"
    );
    assert_eq!(told["items"].as_array().unwrap().len(), 2);
    assert!(fact.delivered && fact.from.agent.as_str() == PLANNER);
    let private = fact.stayed.iter().find(|stayed| stayed.rule == Rule::Private).unwrap();
    assert_eq!((private.what.thoughts, private.what.items), (1, 1));
    let all = serde_json::to_string(&(told, child)).unwrap();
    assert!(!all.contains("hunter2"), "what is private is nowhere: {all}");
}

#[tokio::test(start_paused = true)]
async fn minimal_and_summary_scopes_limit_transfer() {
    let (told, fact, _) = Scene::new(everything(Scope::Minimal), Some(1 << 20)).played().await;
    assert_eq!(told["working"]["goal"], Value::Null);
    assert_eq!(told["working"]["decisions"][0]["key"], "database");
    let items = told["items"].as_array().unwrap();
    assert_eq!(
        items.iter().map(|item| item["id"].as_str().unwrap()).collect::<Vec<_>>(),
        ["fact1"]
    );
    assert_eq!(fact.went.names, ["database", "fact1"]);

    let (told, fact, _) = Scene::new(everything(Scope::Summary), Some(1 << 20)).played().await;
    assert_eq!(told["working"], json!({}));
    assert_eq!(told["items"][0]["data"]["decided"], json!(["database: sqlite"]));
    assert!(fact.went.insights && fact.went.items == 0);
}

#[tokio::test(start_paused = true)]
async fn refused_transfer_is_explained_in_task() {
    let (told, fact, _) = Scene::new(everything(Scope::Full), None).played().await;
    assert_eq!(told, Value::Null);
    assert!(!fact.delivered);
    let why = "nothing from planner";
    assert!(
        fact.line().starts_with(why) && fact.line().contains("`coder` is not granted `memory`")
    );

    // Half of its capacity is reserved for its own memory.
    let (told, fact, _) = Scene::new(everything(Scope::Full), Some(600)).played().await;
    assert_eq!(told["working"], json!({}));
    assert!(fact.line().contains("half of what it may keep"), "{}", fact.line());
}

#[tokio::test(start_paused = true)]
async fn inheritance_request_is_read_from_metadata() {
    let asked = Inherit::default();
    let stand = Scene::new(asked, Some(1 << 20));
    let metadata = json!({"inheritWorkingMemory": true, "memoryScope": "minimal", "note": 1});
    let root = stand.stand.submit(&stand.planner, "plan").await;
    stand.stand.until(&root, TaskState::Completed).await;
    let child = &stand.stand.tasks.children(&root).await.unwrap()[0];
    let child = stand.stand.tasks.get(&child.task).await.unwrap().task;
    assert!(
        Inherited::from_metadata(child.metadata.as_ref()).is_none_or(|fact| fact.went.items == 0)
    );
    let said = metadata.as_object().cloned();
    let asked = Inherit::from_metadata(said.as_ref()).unwrap().unwrap();
    assert_eq!((asked.working_memory, asked.scope), (true, Scope::Minimal));
}

#[tokio::test(start_paused = true)]
async fn child_error_reaches_caller_unchanged() {
    let stand = Stand::new();
    let thrown = Metadata::from_iter([
        ("reason".to_owned(), json!("quota_of_vendor")),
        ("fix".to_owned(), json!("buy more")),
    ]);
    let (of_child, text) = (thrown.clone(), "429: \u{1b}[31mtoo many\nrequests");
    let fake = Fake::new(move |stage: Stage| {
        let thrown = thrown.clone();
        async move {
            if stage.text() == "child" {
                let (state, message) = (TaskState::Failed, Some(Message::text(Role::Agent, text)));
                return Ended::Status { state, message, metadata: Some(thrown) };
            }
            let slow = stage.text() == "slow";
            if slow {
                stage.cancelled.cancelled().await;
                return Ended::Failed(Failure::Cancelled);
            }
            let (agent, what) =
                if stage.text() == "late" { (CODER, "slow") } else { (CODER, "child") };
            let timeout_ms = Some(50);
            let message = Message::text(Role::User, what);
            let request = ChildRequest { timeout_ms, ..ChildRequest::new(agent, message) };
            match stage.outcome_of(request).await {
                Ok(Ended::Status { state, message, metadata }) => {
                    let said = message.map(|message| message.joined_text());
                    completed(
                        &json!({"state": state.name(), "text": said, "metadata": metadata})
                            .to_string(),
                    )
                }
                Ok(Ended::Reply(_) | Ended::Failed(_)) => completed("another end"),
                Err(why) => completed(&format!("{why:?}")),
            }
        }
    })
    .calling_others();
    let planner = fake.agent_among(PLANNER, config(), &[CODER]);
    let coder = fake.agent_called(CODER, config());
    stand.know(move |id| (*id == coder.id).then(|| Arc::clone(&coder)));
    let heard = async |message: &str| -> Value {
        let root: TaskId = stand.submit(&planner, message).await;
        let done = stand.until(&root, TaskState::Completed).await;
        serde_json::from_str(&done.status.message.unwrap().joined_text()).unwrap()
    };
    let told = heard("call").await;
    assert_eq!((&told["state"], &told["text"]), (&json!("failed"), &json!(text)));
    for (name, value) in &of_child {
        assert_eq!(told["metadata"][name], *value, "{told}");
    }
    // The child's timeout is reported as such.
    let told = heard("late").await;
    assert_eq!(told["state"], "failed");
    assert_eq!(told["metadata"]["reason"], FailureReason::Timeout.name(), "{told}");
}

#[tokio::test(start_paused = true)]
async fn only_flow_names_giver_of_memory() {
    let from = Some(TaskId::new("another-task"));
    let scene = Scene::new(Inherit { from, ..everything(Scope::Full) }, Some(1 << 20));
    let root = scene.stand.submit(&scene.planner, "plan").await;
    let task = scene.stand.until(&root, TaskState::Failed).await;
    let why = task.status.message.as_ref().map(Message::joined_text).unwrap_or_default();
    assert!(why.contains("only flows name the giver"), "{why}");
    assert_eq!(scene.stand.tasks.children(&root).await.unwrap(), [], "no child begins");
}
