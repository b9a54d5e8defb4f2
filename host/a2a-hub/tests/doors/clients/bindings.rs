//! Tests of the hub as a client, on each binding of each version: one guest, behind cards that
//! offer one interface each.

use crate::{
    hub::InProcessHub,
    stage::{GRANT, artifact, get, said, send, state, stream, until},
};
use a2a_hub_client::{A2aClient, ClientError, Outbound};

use a2a_hub_protocol::{
    error::ErrorKind,
    id::TaskId,
    message::{Message, Role},
    operation::SendMessage,
};
use a2a_hub_tests::{Client, message_to, test_guests};
use anyhow::{Context as _, Result, bail};
use axum::{Json, Router, extract::Path, http::StatusCode, routing::get as at};
use serde_json::{Value, json};
use std::{io, net::SocketAddr, time::Duration};
use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinSet,
    time::timeout,
};

/// Interfaces: name in the test, binding and version in the card.
const WAYS: [(&str, &str, &str); 6] = [
    ("rpc1", "JSONRPC", "1.0"),
    ("rpc0", "JSONRPC", "0.3"),
    ("rest1", "HTTP+JSON", "1.0"),
    ("rest0", "HTTP+JSON", "0.3"),
    ("grpc1", "GRPC", "1.0"),
    ("grpc0", "GRPC", "0.3"),
];

/// A hub whose guest is reached through a proxy that can drop its connections, with cards that lead
/// to the proxy.
struct There {
    hub: InProcessHub,
    /// Address of the proxy.
    door: SocketAddr,
    /// Address of the cards, one path for each interface.
    cards: SocketAddr,
    slam: watch::Sender<()>,
    _serving: JoinSet<io::Result<()>>,
}

impl There {
    async fn start() -> Result<Self> {
        let [outside, cards] =
            [TcpListener::bind("127.0.0.1:0").await?, TcpListener::bind("127.0.0.1:0").await?];
        let door = outside.local_addr()?;
        // 0.3 cannot name an agent on gRPC.
        let config = format!("public_url = 'http://{door}'\ndefault_agent = 'guest'\n{GRANT}");
        let hub =
            InProcessHub::builder().config(config).plugin("guest", test_guests()?).start().await?;
        let (slam, slammed) = watch::channel(());
        let mut serving = JoinSet::new();
        serving.spawn(pass_on(outside, hub.http().parse()?, slammed));
        let card = move |Path(way): Path<String>| async move {
            card(&way, door).map(Json).ok_or(StatusCode::NOT_FOUND)
        };
        let router = Router::new().route("/{way}/.well-known/agent-card.json", at(card));
        let cards_at = cards.local_addr()?;
        serving.spawn(async move { axum::serve(cards, router).await });
        Ok(Self { hub, door, cards: cards_at, slam, _serving: serving })
    }

    /// URL of the card that offers only this interface.
    fn card(&self, way: &str) -> String {
        format!("http://{}/{way}", self.cards)
    }

    /// Origin that the cards name, which differs from their own.
    fn origin(&self) -> String {
        format!("http://{}", self.door)
    }

    /// Starts a hub that has the guest as a remote agent, once per interface.
    async fn hub_before(&self) -> Result<InProcessHub> {
        let remotes = WAYS.map(|(way, ..)| {
            let (card, origin) = (self.card(way), self.origin());
            format!("[remote.{way}]\nurl = '{card}'\norigins = ['{origin}']\n")
        });
        InProcessHub::builder().config(remotes.join("\n")).start().await
    }

    async fn agent(&self, way: &str) -> Result<A2aClient> {
        let (outbound, origins) = (Outbound::unguarded(), [self.origin()]);
        Ok(A2aClient::find(outbound, &self.card(way), None, &origins).await?)
    }
}

/// Builds a card that offers one interface, in the form of its version.
fn card(way: &str, door: SocketAddr) -> Option<Value> {
    let (_, binding, version) = WAYS.into_iter().find(|(name, ..)| *name == way)?;
    let url = match binding {
        "GRPC" => door.to_string(),
        "HTTP+JSON" => format!("http://{door}/agents/guest/rest"),
        _ => format!("http://{door}/agents/guest"),
    };
    let mut card = json!({ "name": way, "description": "one way to the guest", "version": "1", "skills": [],
        "capabilities": { "streaming": true } });
    if version == "0.3" {
        card["protocolVersion"] = json!("0.3.0");
        card["preferredTransport"] = json!(binding);
        card["url"] = json!(url);
    } else {
        let tenant = if binding == "GRPC" { "guest" } else { "" };
        card["supportedInterfaces"] = json!([{ "protocolBinding": binding, "protocolVersion": version, "url": url, "tenant": tenant }]);
    }
    Some(card)
}

/// Proxies connections until `slammed` changes, which drops all of them.
async fn pass_on(
    outside: TcpListener,
    inside: SocketAddr,
    slammed: watch::Receiver<()>,
) -> io::Result<()> {
    let mut open = JoinSet::new();
    loop {
        let (mut near, _) = outside.accept().await?;
        let mut slammed = slammed.clone();
        slammed.mark_unchanged();
        open.spawn(async move {
            let mut far = TcpStream::connect(inside).await?;
            tokio::select! {
                passed = copy_bidirectional(&mut near, &mut far) => passed.map(|_| ()),
                _ = slammed.changed() => Ok(()),
            }
        });
    }
}

#[tokio::test]
async fn remote_agent_behaves_same_over_bindings() -> Result<()> {
    let there = There::start().await?;
    let here = there.hub_before().await?;
    for (way, ..) in WAYS {
        live(&Client::http(&here), &Client::http(&there.hub), way).await.context(way)?;
    }
    Ok(())
}

async fn live(client: &Client, theirs: &Client, way: &str) -> Result<()> {
    let done = send(client, way, "flood 3").await?;
    assert_eq!((state(&done), said(&done)), ("completed", "3 pieces"));
    assert_eq!(artifact(&done), "1\n2\n3\n");
    let failed = send(client, way, "fail").await?;
    assert_eq!((state(&failed), &failed["metadata"]["reason"]), ("failed", &json!("told-to")));
    assert_eq!(said(&send(client, way, "reply hi").await?), "hi");

    let asked = send(client, way, "ask").await?;
    assert_eq!((state(&asked), said(&asked)), ("input-required", "what do you say?"));
    let mut answer = message_to(way, "both");
    answer["message"]["taskId"] = asked["id"].clone();
    let done = client.call("message/send", answer).await?;
    assert_eq!((state(&done), said(&done)), ("completed", "both"));
    let mut more = message_to(way, "history");
    more["message"]["contextId"] = asked["contextId"].clone();
    let told = client.call("message/send", more).await?;
    assert_eq!(said(&told), "ask\nwhat do you say?\nboth\nboth", "one conversation");

    let (id, mut updates) = stream(client, way, "tick 1000 100").await?;
    until(&mut updates, |event| event["kind"] == "artifact-update").await?;
    let cancelled = client.call("tasks/cancel", json!({ "id": id })).await?;
    assert_eq!(state(&cancelled), "canceled");
    for _ in 0..50 {
        let tasks = theirs.call("hub/tasks/list", json!({})).await?;
        if state(&tasks[0]) == "canceled" {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    bail!("it goes on there")
}

#[tokio::test]
async fn broken_remote_stream_resumes_over_bindings() -> Result<()> {
    let there = There::start().await?;
    let here = there.hub_before().await?;
    let client = Client::http(&here);
    let mut under_way = Vec::new();
    for (way, ..) in WAYS {
        let (id, mut updates) = stream(&client, way, "tick 40 100").await.context(way)?;
        until(&mut updates, |event| event["kind"] == "artifact-update").await.context(way)?;
        under_way.push((way, id, updates));
    }
    there.slam.send(())?;
    let all: String = (1..=40).map(|n| format!("{n}\n")).collect();
    for (way, id, updates) in under_way {
        timeout(Duration::from_secs(30), updates.rest()).await.context(way)??;
        let done = get(&client, &id).await?;
        assert_eq!((state(&done), artifact(&done)), ("completed", all.clone()), "{way}: {done}");
    }
    Ok(())
}

#[tokio::test]
async fn error_kind_is_same_over_bindings() -> Result<()> {
    let there = There::start().await?;
    for (way, ..) in WAYS {
        refuse(&there.agent(way).await?).await.context(way)?;
    }
    Ok(())
}

async fn refuse(agent: &A2aClient) -> Result<()> {
    let kind = |why: ClientError| {
        let ClientError::Refused(why) = why else { bail!("no refusal: {why}") };
        Ok(why.kind)
    };
    let say = |text: &str| SendMessage::new(Message::text(Role::User, text), None);
    let nobody = TaskId::new("nobody's");
    let Err(why) = agent.get(nobody.clone()).await else { bail!("there is such a task") };
    assert_eq!(kind(why)?, ErrorKind::TaskNotFound);
    let Some(Err(why)) = agent.subscribe(nobody).next().await else {
        bail!("there is such a task")
    };
    assert_eq!(kind(why)?, ErrorKind::TaskNotFound);

    let mut told = agent.stream(say("flood 1")?).await?;
    while let Some(event) = told.next().await {
        event?;
    }
    let done = told.task().cloned().context("it told of no task")?;
    assert!(agent.get(done.clone()).await?.status.state.is_final());
    let Err(why) = agent.cancel(done).await else { bail!("it was over") };
    assert_eq!(kind(why)?, ErrorKind::TaskNotCancelable);

    let mut empty = say("")?;
    empty.message.parts.clear();
    let Err(why) = agent.send(empty, Duration::from_secs(10)).await else { bail!("it was empty") };
    assert_eq!(kind(why)?, ErrorKind::InvalidParams);
    Ok(())
}
