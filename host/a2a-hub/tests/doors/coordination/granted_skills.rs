//! Tests of grants that name skills: the calls that they allow, and the skill that the called agent
//! gets.

use crate::hub::InProcessHub;
use a2a_hub::{
    Builder, ChildRequest, Ended, Hub, Native, Principal, Reply, Stage, completed,
    config::Config,
    local::card,
    protocol::{
        error::A2aError,
        id::AgentId,
        message::{Message, Role},
        operation::{Answer, Operation, SendMessage, Wait},
        task::Task,
    },
};
use a2a_hub_tests::{
    Client, message_to,
    tenants::{Web, new_key, scoped_key},
    test_guests,
};
use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::sync::Notify;

fn id(name: &str) -> AgentId {
    AgentId::parse(name).expect("a good name")
}

/// Agent that answers with the skill that its message names.
fn worker() -> Native {
    Native::new(|stage: Stage| async move {
        let skill = |message: &Message| {
            let facts = message.metadata.clone().unwrap_or_default();
            facts.get("targetSkill").map_or("none".to_owned(), |it| it.to_string().replace('"', ""))
        };
        let first = skill(&stage.work.message);
        completed(&format!("works for {first}"))
    })
}

/// Agent that calls the callee of its message; a second word is the skill in the metadata.
fn caller() -> Native {
    Native::new(|stage: Stage| async move {
        let text = stage.text();
        if text == "peers" {
            let peers = match &stage.delegate {
                Some(delegate) => delegate.agents().await,
                None => Vec::new(),
            };
            let of = |peer: &Value| {
                let skills = peer["skills"].as_array().cloned().unwrap_or_default();
                let ids: Vec<_> =
                    skills.iter().map(|it| it["id"].as_str().unwrap_or_default()).collect();
                format!("{}: {}", peer["name"].as_str().unwrap_or_default(), ids.join(" "))
            };
            return completed(&peers.iter().map(of).collect::<Vec<_>>().join(", "));
        }
        let (callee, skill) = text.split_once(' ').unwrap_or((&text, ""));
        let mut request = ChildRequest::new(callee, Message::text(Role::User, "hi"));
        if !skill.is_empty() {
            request.message.metadata = json!({ "targetSkill": skill }).as_object().cloned();
        }
        match stage.outcome_of(request).await {
            Ok(Ended::Status { message: Some(message), .. }) => completed(&message.joined_text()),
            Ok(_) => completed("nothing"),
            Err(why) => completed(&why.to_string()),
        }
    })
    .calling_others()
}

fn builder(config: &str) -> Result<Builder> {
    let mut config: Config = toml::from_str(config)?;
    config.http.enabled = false;
    config.socket.enabled = false;
    let worker_card = card("Worker", "Works", &["review", "test", "write"]);
    let boss = card("Boss", "Calls", &["call"]);
    Ok(Hub::in_memory().config(config).agent(id("worker"), worker_card, worker()).agent(
        id("boss"),
        boss,
        caller(),
    ))
}

async fn handle(hub: &Hub, by: &Principal, text: &str, facts: Value) -> Result<Task, A2aError> {
    let message =
        Message { metadata: facts.as_object().cloned(), ..Message::text(Role::User, text) };
    let send = SendMessage::new(message, None)?;
    match hub.handle(by, Operation::SendMessage(Box::new(send))).await? {
        Reply::One(Answer::Task(task)) => Ok(*task),
        Reply::One(_) | Reply::Stream(_) => panic!("no task came of it"),
    }
}

async fn ask(hub: &Hub, text: &str) -> Result<String, A2aError> {
    let task = handle(hub, &Principal::Operator, text, json!({ "targetAgent": "boss" })).await?;
    Ok(task.status.message.as_ref().map(Message::joined_text).unwrap_or_default())
}

#[tokio::test]
async fn only_granted_skill_is_called() -> Result<()> {
    let hub = builder("agents.boss.grant.delegate = ['worker/review']")?.start().await?;
    for callee in ["worker", "worker/review", "worker review", "skill-free review"] {
        let callee = callee.replace("skill-free", "");
        assert_eq!(ask(&hub, &callee).await?, "works for review", "{callee:?}");
    }
    for callee in ["worker/write", "worker write", "worker/Review", "worker/review2"] {
        let refused = ask(&hub, callee).await?;
        let rule = "only the skills `review` of `worker` are granted";
        assert!(refused.contains(rule), "{callee}: {refused}");
    }
    let by_skill = ask(&hub, " write").await?;
    assert!(by_skill.contains("`write`") && !by_skill.contains("works"), "{by_skill}");
    assert!(ask(&hub, "worker/").await?.contains("the id of a skill"));
    assert_eq!(ask(&hub, "peers").await?, "Worker: review");
    hub.shutdown().await;

    // Of several granted skills, the call names one.
    let config = "agents.boss.grant.delegate = ['worker/review', 'worker/test', 'worker/gone']";
    let hub = builder(config)?.start().await?;
    assert!(ask(&hub, "worker").await?.contains("`gone`, `review`, `test`"));
    assert_eq!(ask(&hub, "worker/test").await?, "works for test");
    let missing = ask(&hub, "worker/gone").await?;
    assert!(missing.contains("the agent has no such skill"), "{missing}");
    hub.shutdown().await;

    // Without such a grant, metadata of a message to a named agent chooses no skill, and a name does.
    let hub = builder("agents.boss.grant.delegate = ['worker']")?.start().await?;
    assert_eq!(ask(&hub, "worker review").await?, "works for none");
    assert_eq!(ask(&hub, "worker/write").await?, "works for write");
    assert!(ask(&hub, "worker/wirte").await?.contains("did you mean `write`"));
    assert_eq!(ask(&hub, "peers").await?, "Worker: review test write");
    hub.shutdown().await;
    Ok(())
}

#[tokio::test]
async fn program_calls_only_granted_skill() -> Result<()> {
    let (begun, release) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (started, waits) = (Arc::clone(&begun), Arc::clone(&release));
    let busy = Native::new(move |stage: Stage| {
        let (started, waits) = (Arc::clone(&started), Arc::clone(&waits));
        async move {
            started.notify_one();
            waits.notified().await;
            // Programs can call while the agent works.
            drop(stage);
            completed("done")
        }
    });
    let hub = builder("agents.busy.grant.delegate = ['worker/review']")?
        .agent(id("busy"), card("Busy", "Waits", &["wait"]), busy.calling_others())
        .start()
        .await?;
    let message = Message::text(Role::User, "work");
    let message =
        Message { metadata: json!({ "targetAgent": "busy" }).as_object().cloned(), ..message };
    let work = SendMessage { wait: Wait::No, ..SendMessage::new(message, None)? };
    let operation = Operation::SendMessage(Box::new(work));
    let Reply::One(Answer::Task(task)) = hub.handle(&Principal::Operator, operation).await? else {
        panic!("no task came of it")
    };
    begun.notified().await;
    let program = Principal::AgentTask { agent: id("busy"), task: task.id };
    let facts = |skill: &str| json!({ "targetAgent": "worker", "targetSkill": skill });
    let done = handle(&hub, &program, "hi", facts("review")).await?;
    let text = done.status.message.as_ref().map(Message::joined_text).unwrap_or_default();
    assert_eq!(text, "works for review");
    let refused = handle(&hub, &program, "hi", facts("write")).await.unwrap_err();
    assert!(refused.message.contains("only the skills `review`"), "{}", refused.message);
    release.notify_waiters();
    hub.shutdown().await;
    Ok(())
}

/// A key for one skill of an agent, which answers questions as well, names no other skill then.
#[tokio::test]
async fn narrowed_key_keeps_its_skill() -> Result<()> {
    let hub = InProcessHub::builder().plugin("guest", test_guests()?).start().await?;
    let operator = Client::unix(&hub);
    let found = operator.call("hub/agents/get", json!({ "agentId": "guest" })).await?;
    let skill = found["card"]["skills"][0]["id"].as_str().context("no skill")?.to_owned();
    new_key(&hub, "ada").await?;
    let send_scope = format!("send:guest/{skill}");
    let key = scoped_key(&hub, "ada", &["read", "answer", "approve", &send_scope]).await?;
    let ada = Web::of(&hub, format!("Bearer {key}"));
    let send = |text: &str, skill: &str, task: Option<&Value>| {
        let mut params = message_to("guest", text);
        params["message"]["metadata"]["targetSkill"] = json!(skill);
        if let Some(task) = task {
            params["message"]["taskId"] = task.clone();
        }
        params
    };
    let asked = ada.call("/", "message/send", send("ask Really?", &skill, None)).await?;
    let task = &asked["result"]["id"];
    assert_eq!(asked["result"]["status"]["state"], "input-required", "{asked}");
    let other = ada.call("/", "message/send", send("yes", "other", Some(task))).await?;
    let why = other["error"]["message"].as_str().with_context(|| other.to_string())?;
    assert!(why.contains("sends messages to"), "{why}");
    let same = ada.call("/", "message/send", send("yes", &skill, Some(task))).await?;
    assert_eq!(same["result"]["status"]["state"], "completed", "{same}");
    Ok(())
}
