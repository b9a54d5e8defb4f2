//! Tests of skills that require scopes: whose messages begin their tasks, over each binding, and
//! what the agents of such tasks may call.

use crate::hub::InProcessHub;
use a2a_hub::{
    ChildRequest, Ended, Native, Stage, completed,
    local::card,
    protocol::{
        card::AgentCard,
        id::{AgentId, MessageId},
        message::{Message, Role},
    },
};
use a2a_hub_tests::{
    Client, GrpcClient, RpcError, message_to,
    tenants::{TENANTS, Web, new_key, scoped_key, token},
};
use anyhow::{Context as _, Result};
use serde_json::{Value, json};

/// Bindings, each with the path of its endpoint.
const BINDINGS: [(&str, &str); 8] = [
    ("Local Hub", "/"),
    ("JSON-RPC 1.0", "/agents/deployer"),
    ("JSON-RPC 0.3", "/agents/deployer"),
    ("REST 1.0", "/agents/deployer/rest/message:send"),
    ("REST 0.3", "/agents/deployer/rest/v1/message:send"),
    ("gRPC 1.0", ""),
    ("gRPC 0.3", ""),
    ("five-step", "/agents/deployer/submit_task"),
];

const GRANTS: &str = "[aliases]\ndeployers = ['deployer', 'second']\n[agents.boss.grant]\n\
    delegate = ['deployer', 'second', 'middle']\n[agents.middle.grant]\ndelegate = ['deployer']\n";

fn id(name: &str) -> AgentId {
    AgentId::parse(name).expect("a good name")
}

/// Card with the skill `status`, which everybody may use, and `deploy`, which requires scopes.
fn guarded() -> AgentCard {
    let mut card = card("Deployer", "Deploys", &["status", "deploy"]);
    let required = json!([{ "schemes": { "oauth": { "list": ["deploy", "prod"] } } }]);
    card.skills[1].other.insert("securityRequirements".to_owned(), required);
    card
}

/// Agent that answers with the skill that its message names.
fn deployer() -> Native {
    Native::new(|stage: Stage| async move {
        if stage.text() == "ask" {
            return match stage.ask("which?", None).await {
                Ok(_) => completed("answered"),
                Err(why) => Ended::Failed(why),
            };
        }
        let facts = stage.work.message.metadata.clone().unwrap_or_default();
        let skill = facts.get("targetSkill").and_then(Value::as_str).unwrap_or("anything");
        completed(&format!("did {skill}"))
    })
}

/// Agent that calls the callee of its message: an agent, with its message after a space.
fn boss() -> Native {
    Native::new(|stage: Stage| async move {
        let text = stage.text();
        let (callee, text) = text.split_once(' ').unwrap_or((&text, "hi"));
        let request = ChildRequest::new(callee, Message::text(Role::User, text));
        match stage.outcome_of(request).await {
            Ok(Ended::Status { message: Some(message), .. }) => completed(&message.joined_text()),
            Ok(_) => completed("nothing"),
            Err(why) => completed(&why.to_string()),
        }
    })
    .calling_others()
}

async fn hub() -> Result<InProcessHub> {
    let caller = |name| card(name, "Calls", &["call"]);
    let builder = InProcessHub::builder().config(format!("{GRANTS}{TENANTS}"));
    let builder = builder.agent(id("deployer"), guarded(), deployer());
    let builder = builder.agent(id("second"), guarded(), deployer());
    let builder = builder.agent(id("boss"), caller("Boss"), boss());
    builder.agent(id("middle"), caller("Middle"), boss()).start().await
}

/// Header of a new key of a person with these scopes.
async fn key(hub: &InProcessHub, person: &str, scopes: &[&str]) -> Result<String> {
    Ok(format!("Bearer {}", scoped_key(hub, person, scopes).await?))
}

/// Lets ada and bob in.
async fn add_people(hub: &InProcessHub) -> Result<()> {
    for person in ["ada", "bob"] {
        new_key(hub, person).await?;
    }
    Ok(())
}

/// Sends a message to the deployer over a binding. Returns the answer as a text, also a refusal.
async fn send(
    hub: &InProcessHub,
    (binding, path): (&str, &str),
    header: &str,
    skill: Option<&str>,
) -> Result<String> {
    let (v1, v03) = (binding.ends_with("1.0"), binding.ends_with("0.3"));
    let part = if v1 { json!({ "text": "hi" }) } else { json!({ "kind": "text", "text": "hi" }) };
    let role = if v1 { "ROLE_USER" } else { "user" };
    let mut message = json!({ "messageId": MessageId::fresh(), "role": role, "parts": [part] });
    let mut facts = json!({ "targetAgent": "deployer" });
    if let Some(skill) = skill {
        facts["targetSkill"] = json!(skill);
    }
    if binding.starts_with("gRPC") {
        let grpc = if v1 { GrpcClient::v1(hub)? } else { GrpcClient::v03(hub)? };
        if v03 {
            (message["content"], message["role"]) = (json!([{ "text": "hi" }]), json!("ROLE_USER"));
            message.as_object_mut().context("no message")?.remove("parts");
        }
        let mut params = json!({ "message": message, "metadata": facts });
        if v03 {
            params["configuration"] = json!({ "blocking": true });
        }
        let sent = grpc.with("authorization", header)?.call("SendMessage", params).await;
        return Ok(match sent {
            Ok((answer, _)) => answer.to_string(),
            Err(RpcError::Refused { message, .. }) => message,
            Err(why) => return Err(why.into()),
        });
    }
    // REST 1.0 and gRPC have the metadata in the request, the others in the message.
    let body = match binding {
        "five-step" => {
            json!({ "requesting_agent_id": "a", "skill_id": skill, "input_data": { "text": "hi" } })
        }
        "REST 1.0" => json!({ "message": message, "metadata": facts }),
        "REST 0.3" => {
            message["metadata"] = facts;
            (message["content"], message["role"]) = (json!([{ "text": "hi" }]), json!("ROLE_USER"));
            json!({ "message": message, "configuration": { "blocking": true } })
        }
        _ => {
            message["metadata"] = facts;
            let method = if v1 { "SendMessage" } else { "message/send" };
            let params = json!({ "message": message, "configuration": { "blocking": true } });
            json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params })
        }
    };
    let asked = reqwest::Client::new().post(format!("http://{}{path}", hub.http()));
    let asked = asked.header("authorization", header);
    let asked = if v1 { asked.header("A2A-Version", "1.0") } else { asked };
    Ok(asked.json(&body).send().await?.text().await?)
}

/// Each binding with each kind of caller and of message: a skill that requires scopes is for the
/// callers that hold all of them, and a message that names no skill may be about that one.
#[tokio::test]
async fn guarded_skill_needs_its_scopes_on_each_binding() -> Result<()> {
    let hub = hub().await?;
    add_people(&hub).await?;
    let most = ["read", "send"];
    let callers = [
        (key(&hub, "ada", &[&most[..], &["card:deploy", "card:prod"]].concat()).await?, true),
        (key(&hub, "ada", &[&most[..], &["card:deploy"]].concat()).await?, false),
        (key(&hub, "bob", &most).await?, false),
        (key(&hub, "bob", &[]).await?, false),
        (token(&hub, "acme")?, false),
    ];
    for (binding, path) in BINDINGS {
        for (n, (header, holds)) in callers.iter().enumerate() {
            for (skill, is_open) in [(Some("status"), true), (Some("deploy"), false), (None, false)]
            {
                if binding == "five-step" && skill.is_none() {
                    continue;
                }
                let answer = send(&hub, (binding, path), header, skill).await?;
                let at = format!("{binding}, caller {n}, {skill:?}: {answer}");
                if is_open || *holds {
                    // A submission of the five-step protocol is answered at once.
                    let done = match skill {
                        _ if binding == "five-step" => "updates_url".to_owned(),
                        Some(skill) => format!("did {skill}"),
                        None => "did anything".to_owned(),
                    };
                    assert!(answer.contains(&done), "{at}");
                } else {
                    assert!(answer.contains("requires `deploy` and `prod`"), "{at}");
                    assert!(!answer.contains("did ") && !answer.contains("updates_url"), "{at}");
                }
            }
        }
    }
    let operator = Client::unix(&hub);
    let done: Value = operator.call("message/send", message_to("deployer", "hi")).await?;
    assert!(done.to_string().contains("did anything"), "{done}");
    // Cards name the scopes for the scheme that the hub has.
    let ada = Web::of(&hub, callers[0].0.clone());
    let (_, card) = ada.get("/agents/deployer/.well-known/agent-card.json").await?;
    let security = &card["skills"][1]["security"][0];
    let scopes = security.as_object().and_then(|it| it.values().next());
    assert_eq!(scopes, Some(&json!(["deploy", "prod"])), "{card:#}");
    Ok(())
}

/// Agents call for the caller that began the tree, groups and later messages included.
#[tokio::test]
async fn delegation_keeps_scopes_of_the_first_caller() -> Result<()> {
    let hub = hub().await?;
    add_people(&hub).await?;
    let scopes = ["read", "send", "answer", "approve", "card:deploy", "card:prod"];
    let (ada, bob) = (key(&hub, "ada", &scopes).await?, key(&hub, "bob", &scopes[..4]).await?);
    let [ada, bob] = [ada, bob].map(|header| Web::of(&hub, header));
    let call = async |by: &Web, params: Value| by.call("/", "message/send", params).await;
    for (agent, text, done) in [
        ("boss", "deployer/deploy", "did deploy"),
        ("boss", "deployer", "did anything"),
        ("boss", "deployers", "did anything"),
        ("boss", "middle deployer/deploy", "did deploy"),
        ("deployers", "hi", "did anything"),
    ] {
        let answer = call(&ada, message_to(agent, text)).await?.to_string();
        assert!(answer.contains(done), "{text}: {answer}");
        let refused = call(&bob, message_to(agent, text)).await?.to_string();
        assert!(!refused.contains(done), "{text}: {refused}");
        assert!(refused.contains("requires `deploy` and `prod`"), "{text}: {refused}");
        assert!(agent == "boss" || refused.contains("PERMISSION_DENIED"), "{refused}");
    }
    for text in ["deployer/status", "middle deployer/status"] {
        let answer = call(&bob, message_to("boss", text)).await?.to_string();
        assert!(answer.contains("did status"), "{text}: {answer}");
    }

    // A further message names no other skill.
    let message = |text: &str, skill: &str, task: &Value| {
        let mut params = message_to("deployer", text);
        params["message"]["metadata"]["targetSkill"] = json!(skill);
        if !task.is_null() {
            params["message"]["taskId"] = task.clone();
        }
        params
    };
    let asked = call(&bob, message("ask", "status", &Value::Null)).await?;
    assert_eq!(asked["result"]["status"]["state"], "input-required", "{asked}");
    let task = &asked["result"]["id"];
    let other = call(&bob, message("yes", "deploy", task)).await?.to_string();
    assert!(other.contains("requires `deploy` and `prod`"), "{other}");
    let same = call(&bob, message("yes", "status", task)).await?.to_string();
    assert!(same.contains("answered"), "{same}");
    Ok(())
}
