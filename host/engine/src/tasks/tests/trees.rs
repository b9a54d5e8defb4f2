//! Trees of tasks: agents that call others; each is a fake that follows the script in its message.

mod beside;
mod budgets;
mod continuing;
mod deadlines;
mod directories;
mod inbox;
mod keys;
mod permitted;
mod reach;
mod recovered;
mod spending;
mod standing;
mod starting;
mod unattended;

use super::{Stand, config};
use crate::{error::HubError, tests::scripted_agent::Fake};
use a2a_hub_agents::Agent;
use a2a_hub_agents::native::{Stage, completed};
use a2a_hub_config::AgentConfig;
use a2a_hub_core::{access_control::Principal, task::recovery::Resumability};
use a2a_hub_protocol::client::ClientCapabilities;
use a2a_hub_protocol::{
    error::A2aError,
    event::TaskEvent,
    id::{AgentId, QuestionId, TaskId},
    message::{Message, Metadata, Role},
    question::Question,
    task::{Task, TaskState},
};
use a2a_hub_runtime::{
    Ended, Failure,
    port::{
        delegate::{ChildRequest, Update},
        tasks::{Emitted, Need},
    },
};
use a2a_hub_store::HeadFilter;
use futures::future::join_all;
use proptest::{collection::vec, prelude::*, test_runner::TestRunner};
use serde_json::{Value, json};
use std::{collections::HashMap, sync::Arc, time::Duration};

/// Agents of a test bench by name; each may call every other.
struct AgentIds(HashMap<AgentId, Arc<Agent>>);

const NAMES: [&str; 3] = ["a", "b", "c"];

/// Fake agent that follows the JSON in its message: runs all `calls` concurrently, then does `ask`,
/// `tokens`, `work` or `fail`; it completes with `end`, or with its children's results if `end` is
/// left out.
async fn follow_script(stage: Stage) -> Ended {
    match perform(&stage).await {
        Ok(said) => completed(&said),
        Err(why) => Ended::Failed(why),
    }
}

async fn perform(stage: &Stage) -> Result<String, Failure> {
    let script: Value = serde_json::from_str(&stage.text()).unwrap_or_default();
    let none = Vec::new();
    let calls = script["calls"].as_array().unwrap_or(&none);
    let of = |call: &Value| {
        let message = Message::text(Role::User, call["do"].to_string());
        let key = call["key"].as_str().map(str::to_owned);
        let context_id = call["in"].as_str().map(str::to_owned);
        let agent = call["agent"].as_str().unwrap_or("?");
        ChildRequest { key, context_id, ..ChildRequest::new(agent, message) }
    };
    let ends = join_all(calls.iter().map(|call| async {
        if call["left"] == json!(true) {
            return stage.call(of(call)).await.map(|_| "left".to_owned());
        }
        stage.outcome_of(of(call)).await.map(|ended| told(&ended))
    }));
    let ends: Vec<_> = ends.await.into_iter().collect::<Result<_, _>>()?;
    if let Some(ask) = script["ask"].as_str() {
        let mut prompt = Message::text(Role::Agent, ask);
        if script["kind"] == json!("permission") {
            let kind = json!({ "kind": "permission" });
            prompt.metadata = Some(Metadata::from_iter([("question".to_owned(), kind)]));
        }
        let answer = stage.port.ask(Need::Input, prompt, None).await?;
        return Ok(answer.message.joined_text());
    }
    if let Some(tokens) = script["tokens"].as_u64() {
        let usage = json!({ "input_tokens": tokens, "output_tokens": 0 });
        let model = ("model".to_owned(), script["model"].clone());
        let metadata = Some(Metadata::from_iter([("usage".to_owned(), usage), model]));
        stage.port.emit(vec![Emitted::Working { message: None, metadata }]).await?;
    }
    if let Some(ms) = script["work"].as_u64() {
        tokio::select! {
            () = tokio::time::sleep(Duration::from_millis(ms)) => {}
            () = stage.cancelled.cancelled() => return Err(Failure::Cancelled),
        }
    }
    if script["fail"] == json!(true) {
        return Err(Failure::Internal("told to fail".to_owned()));
    }
    Ok(script["end"].as_str().map_or_else(|| ends.join(" "), str::to_owned))
}

fn told(ended: &Ended) -> String {
    match ended {
        Ended::Reply(message) => message.joined_text(),
        Ended::Status { state, message, .. } => {
            let said = message.as_ref().map(Message::joined_text).unwrap_or_default();
            if *state == TaskState::Completed { said } else { format!("{}!", state.name()) }
        }
        Ended::Failed(why) => why.to_string(),
    }
}

fn stand_of(config: &AgentConfig, fake: &Fake) -> (Stand, AgentIds) {
    let stand = Stand::new();
    let agents = agents_of(&stand, config, fake);
    (stand, agents)
}

fn agents_of(stand: &Stand, config: &AgentConfig, fake: &Fake) -> AgentIds {
    let named = |name: &&str| {
        let agent = fake.clone().calling_others().agent_among(name, config.clone(), &NAMES);
        (agent.id.clone(), agent)
    };
    let agents: HashMap<_, _> = NAMES.iter().map(named).collect();
    let known = agents.clone();
    stand.know(move |id| known.get(id).cloned());
    AgentIds(agents)
}

fn usual() -> (Stand, AgentIds) {
    stand_of(&config(), &Fake::new(follow_script))
}

impl AgentIds {
    fn named(&self, name: &str) -> &Arc<Agent> {
        &self.0[&AgentId::parse(name).unwrap()]
    }
}

impl Stand {
    async fn begin(&self, agents: &AgentIds, agent: &str, script: Value) -> TaskId {
        self.submit(agents.named(agent), &script.to_string()).await
    }

    /// Current children of the task, oldest first.
    async fn below(&self, task: &TaskId) -> Vec<Task> {
        let mut below = Vec::new();
        for child in self.tasks.children(task).await.unwrap() {
            below.push(self.tasks.get(&child.task).await.unwrap().task);
        }
        below
    }

    async fn only_child(&self, task: &TaskId) -> Task {
        let reached = async {
            loop {
                if let [child] = &self.below(task).await[..] {
                    return child.clone();
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(60), reached).await.unwrap()
    }

    async fn answer_to(
        &self,
        task: &Task,
        question: &QuestionId,
        text: &str,
    ) -> Result<(), HubError> {
        let mut message = Message::text(Role::User, text);
        message.metadata = Some(Metadata::from_iter([("question".to_owned(), json!(question))]));
        let client = ClientCapabilities::default();
        let by = Principal::Operator;
        self.tasks.answer(&task.id, message, client, None, by).await.map(drop)
    }
}

fn said(task: &Task) -> String {
    task.status.message.as_ref().map(Message::joined_text).unwrap_or_default()
}

fn fact<'a>(task: &'a Task, name: &str) -> &'a Value {
    task.metadata.as_ref().and_then(|facts| facts.get(name)).unwrap_or(&Value::Null)
}

#[tokio::test(start_paused = true)]
async fn call_creates_child_task() {
    let (stand, agents) = usual();
    let script = json!({"calls": [{"agent": "b", "do": {"calls": [{"agent": "c", "do": {"end": "deep"}}]}}]});
    let root = stand.begin(&agents, "a", script).await;
    let done = stand.until(&root, TaskState::Completed).await;
    assert_eq!(said(&done), "deep");
    let child = stand.only_child(&root).await;
    let grandchild = stand.only_child(&child.id).await;
    assert_eq!(fact(&child, "parentTaskId"), &json!(root));
    assert_eq!(fact(&grandchild, "parentTaskId"), &json!(child.id));
    assert_eq!(fact(&grandchild, "x-workflow-id"), &json!(root));
    assert_eq!(fact(&grandchild, "x-parent-span-id"), fact(&child, "x-span-id"));
    assert_ne!(child.context_id, done.context_id, "a conversation of its own");
    let all = HeadFilter { workflow: Some(root.to_string()), ..HeadFilter::default() };
    assert_eq!(stand.tasks.storage.heads(all).await.unwrap().len(), 3);
    assert!(stand.tasks.trees().is_empty(), "nothing is kept of what is over");
}

#[tokio::test(start_paused = true)]
async fn ungranted_call_is_denied() {
    let stand = Stand::new();
    let fake = Fake::new(follow_script);
    let lone = fake.agent_called("a", config());
    let b = fake.agent_called("b", config());
    let granted = fake.calling_others().agent_among("a", config(), &["c"]);
    let known = Arc::clone(&b);
    stand.know(move |_| Some(Arc::clone(&known)));
    let call = json!({"calls": [{"agent": "b", "do": {"end": "done"}}]}).to_string();
    for (agent, why) in [(&lone, "asks for no other agents"), (&granted, "delegate = [\"b\"]")] {
        let root = stand.submit(agent, &call).await;
        let failed = stand.until(&root, TaskState::Failed).await;
        assert!(said(&failed).contains(why), "{}", said(&failed));
        assert_eq!(stand.below(&root).await, []);
    }
}

#[tokio::test(start_paused = true)]
async fn cancelling_root_ends_tree_leaves_first() {
    let (stand, agents) = usual();
    let long = json!({"work": 50_000});
    let script = json!({"calls": [
        {"agent": "b", "do": {"calls": [{"agent": "c", "do": long}, {"agent": "b", "do": long}]}},
        {"agent": "c", "do": long},
    ]});
    let root = stand.begin(&agents, "a", script).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    stand.tasks.cancel(&root, Principal::Operator).await.unwrap();
    let all = HeadFilter { workflow: Some(root.to_string()), ..HeadFilter::default() };
    let heads = stand.tasks.storage.heads(all).await.unwrap();
    assert_eq!(heads.len(), 5);
    for head in &heads {
        assert_eq!(head.state, TaskState::Canceled, "{head:?}");
        let parent = heads.iter().find(|it| Some(&it.task) == head.parent.as_ref());
        assert!(parent.is_none_or(|parent| head.updated <= parent.updated), "{head:?} {parent:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn ended_parent_cancels_its_children() {
    let (stand, agents) = usual();
    for (end, state) in [
        (json!({"end": "early"}), TaskState::Completed),
        (json!({"fail": true}), TaskState::Failed),
    ] {
        let mut script = end;
        script["calls"] = json!([{"agent": "b", "left": true, "do": {"work": 50_000}}]);
        let root = stand.begin(&agents, "a", script).await;
        let ended = stand.until(&root, state).await;
        let child = stand.only_child(&root).await;
        assert_eq!(child.status.state, TaskState::Canceled);
        assert!(child.status.timestamp <= ended.status.timestamp);
    }
}

#[tokio::test(start_paused = true)]
async fn question_is_relayed_up_and_answer_down() {
    for kind in ["input", "permission"] {
        let (stand, agents) = usual();
        let deep = json!({"ask": "May I?", "kind": kind});
        let script =
            json!({"calls": [{"agent": "b", "do": {"calls": [{"agent": "c", "do": deep}]}}]});
        let root = stand.begin(&agents, "a", script).await;
        let asks = stand.until(&root, TaskState::InputRequired).await;
        assert_eq!(said(&asks), "b > c asks:\nMay I?");
        let asked = Question::from_metadata(asks.metadata.as_ref()).unwrap();
        let child = stand.only_child(&root).await;
        let grandchild = stand.only_child(&child.id).await;
        assert_eq!((json!(asked.kind), asked.task.as_ref()), (json!(kind), Some(&grandchild.id)));
        let wrong = stand.answer_to(&asks, &QuestionId::new("other"), "no").await;
        assert!(A2aError::from(wrong.unwrap_err()).message.contains(asked.id.as_str()));
        stand.answer_to(&asks, &asked.id, "yes").await.unwrap();
        assert_eq!(said(&stand.until(&root, TaskState::Completed).await), "yes");
        let late = stand.answer_to(&asks, &asked.id, "no").await;
        assert!(late.is_err(), "an answer is taken once");
        let heard = stand.story(&grandchild.id).await;
        assert_eq!(heard.matches("said “yes”").count(), 1, "{heard}");
    }
}

#[tokio::test(start_paused = true)]
async fn children_questions_are_asked_sequentially() {
    let (stand, agents) = usual();
    let ask = |text: &str| json!({"agent": "b", "do": {"ask": text}});
    let root = stand.begin(&agents, "a", json!({"calls": [ask("first?"), ask("second?")]})).await;
    let asks = stand.until(&root, TaskState::InputRequired).await;
    let first = Question::from_metadata(asks.metadata.as_ref()).unwrap();
    // The child itself may be answered as well.
    let child = stand.tasks.get(first.task.as_ref().unwrap()).await.unwrap().task;
    stand.answer_to(&child, &first.id, "one").await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    let asks = stand.until(&root, TaskState::InputRequired).await;
    let second = Question::from_metadata(asks.metadata.as_ref()).unwrap();
    assert_ne!(first.id, second.id, "the one that was answered is not asked any more");
    stand.answer_to(&asks, &second.id, "two").await.unwrap();
    let done = said(&stand.until(&root, TaskState::Completed).await);
    assert!(done == "one two" || done == "two one", "{done}");
}

#[tokio::test(start_paused = true)]
async fn caller_answers_input_but_not_permission() {
    for (kind, ended) in [("input", "blue"), ("permission", "for the client")] {
        let stand = Stand::new();
        let fake = Fake::new(move |stage: Stage| async move {
            if stage.text() != "answer" {
                return follow_script(stage).await;
            }
            let ask = json!({"ask": "Which?", "kind": kind}).to_string();
            let request = ChildRequest {
                answers_questions: true,
                ..ChildRequest::new("b", Message::text(Role::User, ask))
            };
            let mut call = stage.call(request).await.unwrap();
            loop {
                match call.next().await {
                    Ok(Update::Finished(ended)) => return ended,
                    Ok(Update::Status(update)) if update.status.state.is_interrupted() => {
                        let answer = Message::text(Role::Agent, "blue");
                        if let Err(why) = call.answer(answer).await {
                            return completed(&why.to_string());
                        }
                    }
                    Ok(Update::Status(_) | Update::Artifact(_)) => {}
                    Err(why) => return Ended::Failed(why),
                }
            }
        });
        let agents = agents_of(&stand, &config(), &fake);
        let root = stand.submit(agents.named("a"), "answer").await;
        let done = stand.until(&root, TaskState::Completed).await;
        assert!(said(&done).contains(ended), "{}", said(&done));
    }
}

#[tokio::test(start_paused = true)]
async fn mutual_calls_with_one_permit_finish() {
    let one = AgentConfig { max_running: Some(1), max_queued: 0, ..config() };
    let (stand, agents) = stand_of(&one, &Fake::new(follow_script));
    let call = |agent: &str, then: Value| json!({"calls": [{"agent": agent, "do": then}]});
    for script in [
        call("b", call("a", json!({"work": 300, "end": "there and back"}))),
        call("a", call("a", json!({"work": 300, "end": "there and back"}))),
    ] {
        let root = stand.begin(&agents, "a", script).await;
        let done = stand.until(&root, TaskState::Completed).await;
        assert_eq!(said(&done), "there and back");
    }
}

#[tokio::test(start_paused = true)]
async fn self_calls_of_many_tasks_finish() {
    let eight = AgentConfig { max_running: Some(8), ..config() };
    let (stand, agents) = stand_of(&eight, &Fake::new(follow_script));
    let script = json!({"calls": [{"agent": "a", "do": {"work": 1_000, "end": "done"}}]});
    let begun = join_all((0..24).map(|_| stand.begin(&agents, "a", script.clone()))).await;
    for root in begun {
        assert_eq!(said(&stand.until(&root, TaskState::Completed).await), "done");
    }
}

#[tokio::test(start_paused = true)]
async fn exceeded_budget_refuses_child_with_reason() {
    let (stand, _agents) = usual();
    let call = |then: Value| json!({"calls": [{"agent": "b", "do": then}]});
    let deep = call(call(call(json!({"end": "too deep"}))));
    let wide = json!({"calls": vec![json!({"agent": "b", "do": {"work": 100}}); 3]});
    for (script, limits, told) in
        [(deep, (2, 100), "the depth of 2"), (wide, (8, 2), "the budget of 2 tasks")]
    {
        let mut config = config();
        config.limits.tree.depth = Some(limits.0);
        config.limits.tree.tasks = Some(limits.1);
        let narrow = Fake::new(follow_script).calling_others().agent_among("a", config, &NAMES);
        let root = stand.submit(&narrow, &script.to_string()).await;
        let failed = match told.starts_with("the depth") {
            // Its ancestors receive the refused task's failure.
            true => {
                stand.until(&root, TaskState::Completed).await;
                let child = stand.only_child(&root).await;
                stand.only_child(&child.id).await
            }
            false => stand.until(&root, TaskState::Failed).await,
        };
        assert!(said(&failed).contains(told), "{}", said(&failed));
    }
}

/// While a program waits, another task uses its agent's only run permit.
#[tokio::test(start_paused = true)]
async fn program_gets_end_after_permit_is_reclaimed() {
    let one = AgentConfig { max_running: Some(1), ..config() };
    let (stand, agents) = stand_of(&one, &Fake::new(follow_script));
    let caller = stand.begin(&agents, "a", json!({"work": 30_000, "end": "done"})).await;
    stand.until(&caller, TaskState::Working).await;
    let work = json!({"work": 1_000, "end": "soon"}).to_string();
    let begun = tokio::time::Instant::now();
    let call = ChildRequest::new("b", Message::text(Role::User, work));
    let mut heard = stand.tasks.give(&caller, call).await.unwrap();
    let other = stand.begin(&agents, "a", json!({"work": 10_000, "end": "late"})).await;
    stand.until(&other, TaskState::Working).await;
    let mut last = None;
    // A subscriber may poll with interruptions, and misses nothing.
    loop {
        match tokio::time::timeout(Duration::from_millis(300), heard.next()).await {
            Ok(Some(event)) => last = Some(event.unwrap()),
            Ok(None) => break,
            Err(_) => {}
        }
    }
    assert!(matches!(&last.unwrap().event, TaskEvent::Status(end) if end.status.state.is_final()));
    assert!(begun.elapsed() >= Duration::from_secs(10), "{:?}", begun.elapsed());
    assert!(stand.tasks.get(&other).await.unwrap().task.status.state.is_final());
    assert_eq!(said(&stand.until(&caller, TaskState::Completed).await), "done");
}

#[tokio::test(start_paused = true)]
async fn exhausted_budget_ends_descendants_not_owner() {
    let (stand, _agents) = usual();
    let mut config = config();
    config.limits.tree.tokens = Some(100);
    let narrow = Fake::new(follow_script).calling_others().agent_among("a", config, &NAMES);
    let long = json!({"agent": "c", "do": {"work": 60_000, "end": "too late"}});
    let script = json!({"calls": [
        {"agent": "b", "do": {"tokens": 60, "work": 60_000}},
        {"agent": "c", "do": {"calls": [long], "end": "never"}},
        {"agent": "b", "do": {"calls": [{"agent": "c", "do": {"tokens": 40, "work": 60_000}}]}},
    ]});
    let begun = tokio::time::Instant::now();
    let root = stand.submit(&narrow, &script.to_string()).await;
    let done = stand.until(&root, TaskState::Completed).await;
    assert_eq!(said(&done), "failed! failed! failed!", "its own agent goes on, and hears of it");
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    let mut left = vec![root.clone()];
    let mut below = Vec::new();
    while let Some(task) = left.pop() {
        let children = stand.tasks.children(&task).await.unwrap();
        left.extend(children.iter().map(|child| child.task.clone()));
        below.extend(children);
    }
    assert_eq!(below.len(), 5);
    for child in below {
        let task = stand.tasks.get(&child.task).await.unwrap().task;
        assert_eq!(task.status.state, TaskState::Failed);
        assert_eq!(task.metadata.as_ref().unwrap()["reason"], "limit_exceeded");
        let why = format!("the budget of 100 tokens of task `{root}` is used up");
        assert!(said(&task).starts_with(&why), "{}", said(&task));
    }
}

#[tokio::test(start_paused = true)]
async fn same_key_joins_existing_child() {
    let (stand, agents) = usual();
    let keyed = json!({"agent": "b", "key": "draft", "do": {"work": 100, "end": "once"}});
    let script = json!({"calls": [keyed, {"agent": "c", "do": {"work": 10}}]});
    let root = stand.begin(&agents, "a", script).await;
    stand.until(&root, TaskState::Completed).await;
    assert_eq!(stand.tasks.children(&root).await.unwrap()[0].key.as_deref(), Some("draft"));

    let fake = Fake::new(|stage: Stage| async move {
        if stage.text() != "twice" {
            return follow_script(stage).await;
        }
        let work = json!({"work": 100, "end": "once"}).to_string();
        let keyed = |agent: &str| ChildRequest {
            key: Some("draft".to_owned()),
            ..ChildRequest::new(agent, Message::text(Role::User, work.clone()))
        };
        let first = stage.outcome_of(keyed("b")).await.unwrap();
        let again = stage.outcome_of(keyed("b")).await.unwrap();
        let other = stage.call(keyed("c")).await.err().unwrap();
        completed(&format!("{} {} {other}", told(&first), told(&again)))
    });
    let stand = Stand::new();
    let agents = agents_of(&stand, &config(), &fake);
    let root = stand.submit(agents.named("a"), "twice").await;
    let done = said(&stand.until(&root, TaskState::Completed).await);
    assert!(done.starts_with("once once call `c` with the key `draft`"), "{done}");
    stand.only_child(&root).await;
}

#[tokio::test(start_paused = true)]
async fn recovered_child_ends_with_its_parent() {
    let fake = Fake::new(follow_script).holding(Resumability::Session);
    let (stand, agents) = stand_of(&config(), &fake);
    let ask = json!({"calls": [{"agent": "b", "do": {"ask": "Which?"}}]});
    let root = stand.begin(&agents, "a", ask).await;
    stand.until(&root, TaskState::InputRequired).await;
    let child = stand.only_child(&root).await;

    // The parent waits for its client; its child waits with it, and ends with it.
    let next = stand.next_hub();
    let agents = agents_of(&next, &config(), &fake);
    next.recover(move |id: &AgentId| agents.0.get(id).cloned()).await;
    let (root_now, child_now) =
        (next.tasks.get(&root).await.unwrap(), next.tasks.get(&child.id).await.unwrap());
    assert_eq!(root_now.task.status.state, TaskState::InputRequired);
    assert_eq!(child_now.task.status.state, TaskState::InputRequired);
    next.tasks.cancel(&root, Principal::Operator).await.unwrap();
    assert_eq!(next.tasks.get(&child.id).await.unwrap().task.status.state, TaskState::Canceled);

    // If the parent fails, the child fails with it.
    let (stand, agents) = usual();
    let root =
        stand.begin(&agents, "a", json!({"calls": [{"agent": "b", "do": {"work": 50_000}}]})).await;
    let child = stand.only_child(&root).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let next = stand.next_hub();
    let agents = agents_of(&next, &config(), &Fake::new(follow_script));
    next.recover(move |id: &AgentId| agents.0.get(id).cloned()).await;
    for task in [&root, &child.id] {
        assert_eq!(next.tasks.get(task).await.unwrap().task.status.state, TaskState::Failed);
    }
}

/// Strategy for scripts with this many levels.
fn script(levels: u32) -> BoxedStrategy<Value> {
    let leaf = prop_oneof![
        6 => (0_u32..400).prop_map(|ms| json!({"work": ms, "end": "ok"})),
        1 => (0_u32..400).prop_map(|ms| json!({"work": ms, "fail": true})),
        1 => Just(json!({"ask": "Which?"})),
    ];
    leaf.prop_recursive(levels, 24, 4, |inner| {
        let call = (0..NAMES.len(), any::<bool>(), inner);
        let call = call.prop_map(|(to, left, then)| {
            json!({"agent": NAMES[to], "left": left && then["ask"].is_null(), "do": then})
        });
        (vec(call, 1..4), 0_u32..200).prop_map(|(calls, ms)| json!({"calls": calls, "work": ms}))
    })
    .boxed()
}

/// Every tree ends, no child after its parent, and nothing is left over, whatever the agents call,
/// and whether tasks are cancelled or answered or not.
#[test]
fn every_random_tree_ends() {
    let limits = (1_u32..4, 1_usize..3);
    let strategy = (script(5), limits, 0_u64..1_500, any::<bool>());
    let config = ProptestConfig { cases: 150, ..ProptestConfig::default() };
    let mut runner = TestRunner::new(config);
    let outcome = runner.run(&strategy, |(script, (depth, running), cancel_after, cancels)| {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        let runtime = builder.enable_all().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let mut config = super::config();
            config.max_running = Some(running);
            config.limits.tree.depth = Some(depth + 1);
            let (stand, agents) = stand_of(&config, &Fake::new(follow_script));
            let root = stand.begin(&agents, "a", script).await;
            tokio::time::sleep(Duration::from_millis(cancel_after)).await;
            if cancels {
                // It may have ended by now.
                let _ = stand.tasks.cancel(&root, Principal::Operator).await;
            }
            // Answers every question until all is over.
            let over = async {
                loop {
                    let task = stand.tasks.get(&root).await.unwrap().task;
                    if task.status.state.is_final() {
                        return;
                    }
                    if let Some(asked) = Question::from_metadata(task.metadata.as_ref()) {
                        let _ = stand.answer_to(&task, &asked.id, "this").await;
                    }
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
            };
            tokio::time::timeout(Duration::from_secs(600), over).await.expect("the tree ends");
            tokio::time::sleep(Duration::from_millis(200)).await;
            let heads = stand.tasks.storage.heads(HeadFilter::default()).await.unwrap();
            for head in &heads {
                assert!(head.state.is_final(), "{head:?}");
                let parent = heads.iter().find(|it| Some(&it.task) == head.parent.as_ref());
                assert!(parent.is_none_or(|parent| head.updated <= parent.updated), "{head:?}");
                let log = stand.tasks.storage.events(&head.task, 0, usize::MAX).await.unwrap();
                let ends = log.iter().filter(|event| match &event.event {
                    TaskEvent::Status(update) => update.status.state.is_final(),
                    TaskEvent::Reply(_) => true,
                    TaskEvent::Created(_) | TaskEvent::Artifact(_) | TaskEvent::Input(_) => false,
                });
                assert_eq!(ends.count(), 1, "an end is told once");
            }
            assert!(stand.tasks.trees().is_empty());
            assert!(stand.tasks.running().is_empty());
        });
        Ok(())
    });
    outcome.unwrap();
}
