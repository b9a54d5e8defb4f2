//! Tests of messages to groups and for skills: the chosen agent, the passed-over agents, and the
//! report of the choice.

use a2a_hub::{
    Builder, ChildRequest, Crash, Ended, Failure, Hub, Native, Principal, Reply, Stage, completed,
    config::Config,
    local::card,
    protocol::{
        card::AgentCard,
        error::A2aError,
        id::{AgentId, ContextId},
        message::{Message, Role},
        operation::{Answer, Operation, SendMessage, Wait},
        task::{Task, TaskState},
    },
};
use anyhow::{Result, bail};
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};
use tokio::sync::Notify;

fn id(name: &str) -> AgentId {
    AgentId::parse(name).expect("a good name")
}

/// Agent card of a version with the skill `review`.
fn reviewer(version: &str) -> AgentCard {
    AgentCard { version: version.to_owned(), ..card("Reviewer", "Reviews", &["review"]) }
}

/// Agent that answers with its name or does what the message says.
fn who(name: &'static str) -> Native {
    Native::new(move |stage: Stage| async move {
        match stage.text().as_str() {
            "reject" if name != "c" => {
                let message = Some(Message::text(Role::Agent, "not mine"));
                Ended::Status { state: TaskState::Rejected, message, metadata: None }
            }
            "work and reject" => {
                let _ = stage.report_working("at work").await;
                let message = Some(Message::text(Role::Agent, "after all"));
                Ended::Status { state: TaskState::Rejected, message, metadata: None }
            }
            "fail" if name == "a" => Ended::Failed(Failure::Trapped(Crash::trap("as told"))),
            _ => completed(name),
        }
    })
}

fn builder(config: &str) -> Result<Builder> {
    let mut config: Config = toml::from_str(config)?;
    config.http.enabled = false;
    config.socket.enabled = false;
    Ok(Hub::in_memory().config(config))
}

/// Starts a hub with the reviewers `a`, `b` and `c`.
async fn three(config: &str) -> Result<Hub> {
    let builder = builder(&format!("aliases.reviewer = ['a', 'b', 'c', 'missing']\n{config}"))?;
    let each = ["a", "b", "c"].into_iter();
    each.fold(builder, |it, name| it.agent(id(name), reviewer("1.0.0"), who(name))).start().await
}

async fn handle(hub: &Hub, send: SendMessage) -> Result<Task, A2aError> {
    handle_by(hub, &Principal::Operator, send).await
}

async fn handle_by(hub: &Hub, by: &Principal, send: SendMessage) -> Result<Task, A2aError> {
    match hub.handle(by, Operation::SendMessage(Box::new(send))).await? {
        Reply::One(Answer::Task(task)) => Ok(*task),
        Reply::One(_) | Reply::Stream(_) => panic!("no task came of it"),
    }
}

/// Message with this metadata.
fn message(text: &str, facts: Value) -> SendMessage {
    let Value::Object(facts) = facts else { panic!("{facts}") };
    let message = Message { metadata: Some(facts), ..Message::text(Role::User, text) };
    SendMessage::new(message, None).expect("good facts")
}

async fn ask(hub: &Hub, text: &str, facts: Value) -> Result<Task, A2aError> {
    handle(hub, message(text, facts)).await
}

fn words(task: &Task) -> String {
    task.status.message.as_ref().map(Message::joined_text).unwrap_or_default()
}

fn routing(task: &Task) -> Value {
    task.metadata.as_ref().and_then(|facts| facts.get("routing")).cloned().unwrap_or_default()
}

/// Passed-over agents, each with its reason.
fn passed(task: &Task) -> BTreeMap<String, String> {
    let routing = routing(task);
    let all = routing["passedOver"].as_array().cloned().unwrap_or_default();
    let pair = |it: &Value| {
        let text = |name: &str| it[name].as_str().unwrap_or_default().to_owned();
        (text("agent"), text("reason"))
    };
    all.iter().map(pair).collect()
}

fn pairs<const N: usize>(pairs: [(&str, &str); N]) -> BTreeMap<String, String> {
    pairs.map(|(agent, reason)| (agent.to_owned(), reason.to_owned())).into()
}

#[tokio::test]
async fn group_is_served_round_robin() -> Result<()> {
    let hub = three("").await?;
    let mut served = Vec::new();
    for _ in 0..6 {
        served.push(words(&ask(&hub, "hi", json!({ "targetAgent": "reviewer" })).await?));
    }
    assert_eq!(served, ["a", "b", "c", "a", "b", "c"]);
    let task = ask(&hub, "hi", json!({ "targetSkill": "review" })).await?;
    assert_eq!(words(&task), "a", "a skill has a round of its own");
    let told = routing(&task);
    assert_eq!(told["skill"], "review");
    assert_eq!(
        (&told["agent"], &told["balance"], &told["named"]),
        (&json!("a"), &json!("round-robin"), &Value::Null)
    );
    assert_eq!(passed(&task), pairs([("b", "balance"), ("c", "balance")]));
    // The log has it from the first event on.
    let get = Operation::GetTask { id: task.id.clone(), history_length: None };
    let Reply::One(Answer::Task(stored)) = hub.handle(&Principal::Operator, get).await? else {
        bail!("no task")
    };
    assert_eq!(routing(&stored), told);
    // An agent named by the client is not a choice, so the task has no report.
    let named = ask(&hub, "hi", json!({ "targetAgent": "b" })).await?;
    assert_eq!((words(&named).as_str(), routing(&named)), ("b", Value::Null));
    hub.shutdown().await;
    Ok(())
}

#[tokio::test]
async fn unavailable_agents_are_passed_over() -> Result<()> {
    let release = Arc::new(Notify::new());
    let waits = Arc::clone(&release);
    let busy = Native::new(move |_: Stage| {
        let waits = Arc::clone(&waits);
        async move {
            waits.notified().await;
            completed("busy")
        }
    });
    let config = "
        aliases.reviewer = ['a', 'b', 'busy', 'c']
        breaker.failures = 1
        agents.busy.max_running = 1
        agents.busy.max_queued = 0
    ";
    let builder = builder(config)?.agent(id("busy"), reviewer("1.0.0"), busy);
    let each = ["a", "b", "c"].into_iter();
    let builder = each.fold(builder, |it, name| it.agent(id(name), reviewer("1.0.0"), who(name)));
    let hub = builder.start().await?;

    let failed = ask(&hub, "fail", json!({ "targetAgent": "a" })).await?;
    assert_eq!(failed.status.state, TaskState::Failed, "its breaker is open now");
    let occupying =
        Operation::StreamMessage(Box::new(message("hi", json!({ "targetAgent": "busy" }))));
    let occupied = hub.handle(&Principal::Operator, occupying).await?;
    let mut served = Vec::new();
    for _ in 0..6 {
        let task = ask(&hub, "hi", json!({ "targetAgent": "reviewer" })).await?;
        assert_eq!(passed(&task).get("a").map(String::as_str), Some("breaker"));
        served.push((words(&task), passed(&task).get("busy").cloned().unwrap_or_default()));
    }
    let of = |name: &str| served.iter().filter(|(served, _)| served == name).count();
    assert_eq!((of("a"), of("busy"), of("b") + of("c")), (0, 0, 6), "{served:?}");
    assert!(of("b") >= 2 && of("c") >= 2, "{served:?}");
    assert!(
        served.iter().any(|(_, why)| why == "busy"),
        "it had its turn, and refused: {served:?}"
    );

    // An agent that rejects before any output is followed by the next one; its own task records the
    // rejection.
    let task = ask(&hub, "reject", json!({ "targetAgent": "reviewer" })).await?;
    assert_eq!(words(&task), "c");
    let rejected = routing(&task)["passedOver"].as_array().cloned().unwrap_or_default();
    let rejected: Vec<_> = rejected.iter().filter(|it| it["reason"] == "rejected").collect();
    assert!(rejected.iter().all(|it| it["agent"] == "b" && it["task"].is_string()), "{rejected:?}");
    // After the first output, the client gets the rejection.
    let begun = ask(&hub, "work and reject", json!({ "targetAgent": "reviewer" })).await?;
    assert_eq!((begun.status.state, words(&begun).as_str()), (TaskState::Rejected, "after all"));

    release.notify_waiters();
    drop(occupied);
    hub.shutdown().await;
    Ok(())
}

#[tokio::test]
async fn failed_routing_lists_all_reasons() -> Result<()> {
    let hub =
        three("breaker.failures = 1\naliases.one = ['a']\naliases.nobody = ['missing']").await?;
    ask(&hub, "fail", json!({ "targetAgent": "a" })).await?;
    let told = async |facts: Value| match ask(&hub, "hi", facts).await {
        Ok(task) => format!("{} did it", words(&task)),
        Err(why) => format!("{} {why}", why.kind.hub_code()),
    };
    insta::assert_snapshot!([
        told(json!({ "targetAgent": "one" })).await,
        told(json!({ "targetAgent": "nobody" })).await,
        told(json!({ "targetSkill": "reveiw" })).await,
        told(json!({ "targetAgent": "b", "targetSkill": "write" })).await,
        told(json!({ "targetSkill": "review", "targetVersion": "latest" })).await,
        told(json!({})).await,
    ].join("\n"), @r"
    -32004 find an agent of `one`: `a`: it failed repeatedly, and is left alone for a while
    -32003 no agent of `nobody` is available
    -32003 find an agent with the skill `reveiw`: there is none; did you mean `review`? the skills are review
    -32003 find an agent of `b` with the skill `write`: there is none; the skills are review
    -32602 `message.metadata.targetVersion`: `latest` says no versions (unexpected character 'l' while parsing major version number); say for example `2`, `^2.1` or `>=1.4, <3`
    -32602 `message.metadata.targetAgent`: name the agent that is to hear the message, or a skill that it must have (`targetSkill`)
    ");
    hub.shutdown().await;
    Ok(())
}

#[tokio::test]
async fn older_version_requires_allow_older() -> Result<()> {
    let each = [("old", "1.2.0"), ("older", "1.1.0")].into_iter();
    let with = |builder: Builder| {
        each.clone()
            .fold(builder, |it, (name, version)| it.agent(id(name), reviewer(version), who(name)))
    };
    let hub = with(builder("")?).start().await?;
    let skill =
        |allow: bool| json!({ "targetSkill": "review", "targetVersion": "2", "allowOlder": allow });
    let refused = ask(&hub, "hi", skill(false)).await.unwrap_err();
    assert!(refused.to_string().contains("`old` has 1.2.0, `older` has 1.1.0"), "{refused}");
    let taken = ask(&hub, "hi", skill(true)).await?;
    let told = routing(&taken);
    assert_eq!(
        (&told["agent"], &told["older"], &told["version"]),
        (&json!("old"), &json!(true), &json!("2"))
    );
    hub.shutdown().await;

    let hub = with(builder("")?).agent(id("new"), reviewer("2.1.0"), who("new")).start().await?;
    let taken = ask(&hub, "hi", skill(true)).await?;
    assert_eq!((words(&taken).as_str(), &routing(&taken)["older"]), ("new", &Value::Null));
    assert_eq!(passed(&taken), pairs([("old", "version"), ("older", "version")]));
    hub.shutdown().await;
    Ok(())
}

#[tokio::test]
async fn affinity_keeps_conversation_with_agent() -> Result<()> {
    let hub = three("routing.reviewer.balance = 'affinity'").await?;
    for n in 0..8 {
        let context = ContextId::new(format!("context-{n}"));
        let mut agents = Vec::new();
        for _ in 0..3 {
            let mut send = message("hi", json!({ "targetAgent": "reviewer" }));
            send.message.context_id = Some(context.clone());
            agents.push(words(&handle(&hub, send).await?));
        }
        assert!(agents.windows(2).all(|pair| pair[0] == pair[1]), "{agents:?}");
        // The agent with the latest task of the conversation gets the next one.
        let mut send = message("hi", json!({ "targetAgent": "b" }));
        send.message.context_id = Some(context.clone());
        handle(&hub, send).await?;
        let mut send = message("hi", json!({ "targetAgent": "reviewer" }));
        send.message.context_id = Some(context);
        assert_eq!(words(&handle(&hub, send).await?), "b");
    }
    hub.shutdown().await;
    Ok(())
}

#[tokio::test]
async fn least_loaded_agent_is_chosen() -> Result<()> {
    let hub_config = "
        aliases.reviewer = ['idle', 'loaded']
        routing.balance = 'least-loaded'
    ";
    let is_open = Arc::new(AtomicBool::new(false));
    let open = Arc::clone(&is_open);
    let loaded = Native::new(move |stage: Stage| {
        let open = Arc::clone(&open);
        async move {
            if !open.load(Ordering::Relaxed) {
                stage.cancelled.cancelled().await;
            }
            completed("loaded")
        }
    });
    let builder = builder(hub_config)?.agent(id("idle"), reviewer("1.0.0"), who("idle"));
    let hub = builder.agent(id("loaded"), reviewer("1.0.0"), loaded).start().await?;
    let one = Operation::StreamMessage(Box::new(message("hi", json!({ "targetAgent": "loaded" }))));
    let held = hub.handle(&Principal::Operator, one).await?;
    for _ in 0..4 {
        let task = ask(&hub, "hi", json!({ "targetAgent": "reviewer" })).await?;
        assert_eq!(
            (words(&task).as_str(), passed(&task)),
            ("idle", pairs([("loaded", "balance")]))
        );
    }
    let Reply::One(Answer::Status(status)) =
        hub.handle(&Principal::Operator, Operation::Status).await?
    else {
        bail!("no status")
    };
    let loads: Vec<_> = status.agents.iter().map(|agent| (agent.id.as_str(), agent.load)).collect();
    assert_eq!(loads, [("idle", 0), ("loaded", 1)]);
    assert!(status.agents[0].latency_ms.is_some(), "it has said a word");
    assert_eq!(status.groups.len(), 1);
    is_open.store(true, Ordering::Relaxed);
    drop(held);
    hub.shutdown().await;
    Ok(())
}

#[tokio::test]
async fn repeated_group_message_returns_same_task() -> Result<()> {
    let hub = three("idempotency_window_ms = 60000").await?;
    let send = message("hi", json!({ "targetAgent": "reviewer" }));
    let first = handle(&hub, send.clone()).await?;
    let again = handle(&hub, send.clone()).await?;
    assert_eq!((&first.id, words(&first)), (&again.id, words(&again)));
    let other = ask(&hub, "hi", json!({ "targetAgent": "reviewer" })).await?;
    assert_eq!(words(&other), "b", "what was repeated had no turn");
    let skill = message("hi", json!({ "targetSkill": "review" }));
    let by_skill = SendMessage { message: send.message.clone(), ..skill };
    assert_ne!(handle(&hub, by_skill).await?.id, first.id, "another question");
    hub.shutdown().await;
    Ok(())
}

#[tokio::test]
async fn rejecting_agent_is_passed_over() -> Result<()> {
    let config = "
        aliases.reviewer = ['a', 'b', 'c']
        aliases.alone = ['a']
        agents.boss.grant.delegate = ['a', 'b', 'c']
    ";
    let builder = builder(config)?;
    let each = ["a", "b", "c"].into_iter();
    let builder = each.fold(builder, |it, name| it.agent(id(name), reviewer("1.0.0"), who(name)));
    let boss = card("Boss", "Calls", &["call"]);
    let hub = builder.agent(id("boss"), boss, caller()).start().await?;
    for (what, whom) in [("reject", "reviewer"), ("reviewer reject", "boss")] {
        for _ in 0..12 {
            let task = ask(&hub, what, json!({ "targetAgent": whom })).await?;
            let (state, words) = (task.status.state, words(&task));
            assert_eq!((state, words.as_str()), (TaskState::Completed, "c"), "{whom}");
        }
    }
    // Under one key, the call joins the accepted task and not the rejected ones.
    let twice = ask(&hub, "twice reviewer reject", json!({ "targetAgent": "boss" })).await?;
    assert_eq!(words(&twice), "c c");
    // The caller gets the last agent's rejection.
    let alone = ask(&hub, "alone reject", json!({ "targetAgent": "boss" })).await?;
    assert_eq!(words(&alone), "not mine");
    hub.shutdown().await;
    Ok(())
}

#[tokio::test]
async fn program_repeats_are_deduplicated_per_task() -> Result<()> {
    let (started, release) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (begun, waits) = (Arc::clone(&started), Arc::clone(&release));
    let boss = Native::new(move |stage: Stage| {
        let (begun, waits) = (Arc::clone(&begun), Arc::clone(&waits));
        async move {
            begun.notify_one();
            waits.notified().await;
            // Programs can call while the agent works.
            drop(stage);
            completed("done")
        }
    });
    let builder = builder("idempotency_window_ms = 60000\nagents.boss.grant.delegate = ['b']")?;
    let hub = builder
        .agent(id("b"), reviewer("1.0.0"), who("b"))
        .agent(id("boss"), card("Boss", "Calls", &["call"]), boss.calling_others())
        .start()
        .await?;
    let send = message("hi", json!({ "targetAgent": "b" }));
    let mut given = Vec::new();
    for _ in 0..2 {
        let work = message("work", json!({ "targetAgent": "boss" }));
        let task = handle(&hub, SendMessage { wait: Wait::No, ..work }).await?.id;
        started.notified().await;
        let program = Principal::AgentTask { agent: id("boss"), task };
        let (first, again) = tokio::join!(
            handle_by(&hub, &program, send.clone()),
            handle_by(&hub, &program, send.clone())
        );
        let late = handle_by(&hub, &program, send.clone()).await?;
        let all = [first?, again?, late];
        let repeated = |task: &&Task| {
            task.metadata.as_ref().is_some_and(|facts| facts.contains_key("repeated"))
        };
        assert_eq!(all.iter().filter(repeated).count(), 2, "{all:?}");
        assert!(all.iter().all(|task| task.id == all[0].id && words(task) == "b"), "{all:?}");
        given.push(all[0].id.clone());
    }
    assert_ne!(given[0], given[1], "another task's program means another task");
    release.notify_waiters();
    hub.shutdown().await;
    Ok(())
}

/// Agent that calls the agent or group named in the message, or a skill if the name is `skill:…`.
/// The rest of the message is its text. With `twice` in front, it calls two times under one key.
fn caller() -> Native {
    Native::new(|stage: Stage| async move {
        let text = stage.text();
        let (text, key) = match text.strip_prefix("twice ") {
            Some(rest) => (rest, Some("key".to_owned())),
            None => (text.as_str(), None),
        };
        let (text, what) = text.split_once(' ').unwrap_or((text, "hi"));
        let request = ChildRequest::new(text, Message::text(Role::User, what));
        let mut request = ChildRequest { key, ..request };
        if let Some(skill) = text.strip_prefix("skill:") {
            request.agent.clear();
            request.message.metadata = json!({ "targetSkill": skill }).as_object().cloned();
        }
        let times = if request.key.is_some() { 2 } else { 1 };
        let mut told = Vec::new();
        for _ in 0..times {
            told.push(match stage.outcome_of(request.clone()).await {
                Ok(Ended::Status { message: Some(message), .. }) => message.joined_text(),
                Ok(_) => "nothing".to_owned(),
                Err(why) => why.to_string(),
            });
        }
        completed(&told.join(" "))
    })
    .calling_others()
}

#[tokio::test]
async fn group_is_limited_to_caller_grant() -> Result<()> {
    let config = "
        aliases.reviewer = ['a', 'b', 'c']
        agents.boss.grant.delegate = ['b', 'c']
        agents.lonely.grant.delegate = ['other']
    ";
    let builder = builder(config)?;
    let each = ["a", "b", "c"].into_iter();
    let builder = each.fold(builder, |it, name| it.agent(id(name), reviewer("1.0.0"), who(name)));
    let boss = card("Boss", "Calls", &["call"]);
    let hub = builder
        .agent(id("boss"), boss.clone(), caller())
        .agent(id("lonely"), boss, caller())
        .start()
        .await?;
    let mut served = Vec::new();
    for whom in ["reviewer", "reviewer", "skill:review", "skill:review", "reviewer"] {
        served.push(words(&ask(&hub, whom, json!({ "targetAgent": "boss" })).await?));
    }
    assert_eq!(served, ["b", "c", "b", "c", "b"]);
    for whom in ["reviewer", "skill:review"] {
        let refused = words(&ask(&hub, whom, json!({ "targetAgent": "lonely" })).await?);
        assert!(refused.contains("delegate = ["), "{refused}");
        assert!(
            !refused.contains("`a`") && !refused.contains("`c`"),
            "it is told of nobody: {refused}"
        );
    }
    hub.shutdown().await;
    Ok(())
}
