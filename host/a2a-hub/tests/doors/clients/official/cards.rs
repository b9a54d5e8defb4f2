//! Tests of the agent cards: their well-known paths, both versions, and the extensions.

use super::{Endpoint, v1, v03};
use crate::{
    hub::InProcessHub,
    stage::{bearer, hub_with_guest},
};
use a2a_hub_tests::GrpcClient;
use anyhow::{Context as _, Result};
use axum::{Json, Router, routing::get};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::{net::TcpListener, task::JoinSet};

#[tokio::test]
async fn cards_are_served_at_client_paths() -> Result<()> {
    let hub = hub_with_guest().await?;
    let at = |path: &str| format!("http://{}{path}", hub.http());
    for (base, endpoint) in [("", "/a2a"), ("/a2a", "/a2a"), ("/agents/guest", "/agents/guest")] {
        let file = format!("{base}/.well-known/agent-card.json");
        let client = reqwest::Client::new();
        let both = client.get(at(&file)).send().await?;
        for name in ["etag", "last-modified", "cache-control", "vary"] {
            assert!(both.headers().contains_key(name), "{file}: {name}");
        }
        let tag = both.headers()["etag"].clone();
        let both: Value = serde_json::from_str(&both.text().await?)?;
        assert_eq!(
            (&both["url"], &both["protocolVersion"]),
            (&json!(at(endpoint)), &json!("0.3.0"))
        );
        let bindings: Vec<_> = both["supportedInterfaces"]
            .as_array()
            .context("no interfaces")?
            .iter()
            .map(|it| {
                format!("{} {}", it["protocolBinding"], it["protocolVersion"]).replace('"', "")
            })
            .collect();
        let official = ["JSONRPC 1.0", "HTTP+JSON 1.0", "GRPC 1.0", "JSONRPC 0.3", "HTTP+JSON 0.3"];
        assert_eq!(bindings[..5], official, "{file}");
        let members = |of: &str| Some(both.get(of)?.as_object()?.keys().cloned().collect());
        let only_theirs: [(&str, &[&str]); 2] = [
            ("provider", &["organization", "url"]),
            ("capabilities", &["pushNotifications", "streaming"]),
        ];
        for (of, theirs) in only_theirs {
            let members: Vec<String> = members(of).context("no such member")?;
            assert!(members.iter().all(|it| it == "extensions" || theirs.contains(&it.as_str())));
        }
        let old = both["additionalInterfaces"].as_array().context("none of 0.3")?;
        let is_url = |it: &Value| {
            it["transport"] == "GRPC"
                || it["url"].as_str().is_some_and(|url| url.starts_with("http://"))
        };
        assert!(!old.is_empty() && old.iter().all(is_url), "{file}: {old:?}");
        let grpc = &both["supportedInterfaces"][2];
        assert_eq!(grpc["url"], hub.http());
        // A client of 0.3 cannot name an agent over gRPC.
        let tenant = (endpoint == "/agents/guest").then_some("guest");
        assert_eq!(grpc.get("tenant").and_then(Value::as_str), tenant, "{file}");
        assert_eq!(bindings.iter().any(|it| it == "GRPC 0.3"), tenant.is_none(), "{file}");
        assert_eq!(both["supportedInterfaces"][1]["url"], at(&format!("{endpoint}/rest")));
        assert_eq!(both.get("security"), None, "the hub's own user needs no token");
        let again = client.get(at(&file)).header("If-None-Match", tag);
        assert_eq!(again.send().await?.status(), 304, "{file}");

        let new = client.get(at(&file)).header("A2A-Version", "1.0").send().await?;
        let new: Value = serde_json::from_str(&new.text().await?)?;
        assert_eq!((new.get("url"), &new["name"]), (None, &both["name"]), "{file}");
        let asked = client.get(at(&format!("{file}?A2A-Version=1.0"))).send().await?;
        assert_eq!(serde_json::from_str::<Value>(&asked.text().await?)?, new, "{file}");
        let head = client.head(at(&file)).send().await?;
        assert_eq!((head.status().as_u16(), head.headers().contains_key("etag")), (200, true));
        let put = client.put(at(&file)).send().await?;
        assert_eq!(put.status(), 405, "{file}");
        let allowed = put.headers()["allow"].to_str()?;
        assert!(allowed.contains("GET") && allowed.contains("HEAD"), "{file}: {allowed}");
    }
    let (_, whole) = reqwest_json(&at("/.well-known/agent-card.json")).await?;
    let takes = whole["defaultInputModes"].as_array().context("it takes nothing")?;
    assert!(takes.contains(&json!("*/*")) && takes.contains(&json!("text/plain")), "{takes:?}");
    // The well-known cards of the Local Hub lead to each agent's endpoint too.
    for (path, url) in [("agents/guest.json", "/agents/guest"), ("agent.json", "/")] {
        let (_, card) = reqwest_json(&at(&format!("/.well-known/{path}"))).await?;
        let told =
            (&card["url"], &card["protocolVersion"], &card["capabilities"]["pushNotifications"]);
        assert_eq!(told, (&json!(at(url)), &json!("0.3.0"), &json!(true)), "{path}");
    }

    let config = "public_url = \"https://hub.example/x\"\nroot_agent = \"echo\"";
    let other = InProcessHub::builder().config(config).start().await?;
    let card = format!("http://{}/.well-known/agent-card.json", other.http());
    assert_eq!(reqwest::get(&card).await?.status(), 401, "other machines reach this hub");
    let card =
        reqwest::Client::new().get(&card).header("Authorization", bearer(&other)?).send().await?;
    let card: Value = serde_json::from_str(&card.text().await?)?;
    assert_eq!(
        (&card["name"], &card["url"]),
        (&json!("echo"), &json!("https://hub.example/x/agents/echo"))
    );
    Ok(())
}

async fn reqwest_json(url: &str) -> Result<(u16, Value)> {
    let answer = reqwest::get(url).await?;
    Ok((answer.status().as_u16(), serde_json::from_str(&answer.text().await?)?))
}

/// The extended card requires the token. The hub's own user needs no token, and then a card has no
/// security scheme and declares no extended card. A client that sends the token is authenticated by
/// it and gets the extended card.
#[tokio::test]
async fn extended_card_requires_token() -> Result<()> {
    let hub = hub_with_guest().await?;
    let shown = bearer(&hub)?;
    let methods = ["GetExtendedAgentCard", "agent/getAuthenticatedExtendedCard"];
    for path in ["/agents/guest", "/a2a"] {
        let unknown = Endpoint::of(&hub, path);
        let known = Endpoint::of(&hub, path).with("authorization", &shown);
        for version in ["1.0", "0.3"] {
            let card = async |endpoint: Endpoint<'_>| -> Result<Value> {
                let asked = endpoint.with("a2a-version", version);
                let found = asked.ask(Method::GET, "/.well-known/agent-card.json", None).await?;
                Ok(serde_json::from_str(&found.text().await?)?)
            };
            let public = card(Endpoint::of(&hub, path)).await?;
            let declared =
                (public["capabilities"].get("extendedAgentCard"), public.get("securitySchemes"));
            assert_eq!(declared, (None, None), "{path} {version}");
            assert_ne!(public.get("supportsAuthenticatedExtendedCard"), Some(&json!(true)));

            let public = card(Endpoint::of(&hub, path).with("authorization", &shown)).await?;
            assert_eq!(public["capabilities"]["extendedAgentCard"], true, "{path} {version}");
            assert!(public["securitySchemes"]["hubToken"].is_object(), "{public}");
            let (method, below) = if version == "1.0" {
                (methods[0], "extendedAgentCard")
            } else {
                (methods[1], "v1/card")
            };
            let extended = known.result(method, json!({})).await?;
            assert_eq!(known.rest(Method::GET, below, None).await?, (200, extended.clone()));
            assert_ne!(extended, public, "{path} {version}");
            let more = extended["capabilities"]["extensions"].as_array().and_then(|all| all.last());
            let more = more.context("it says no more")?;
            assert_eq!(more["uri"], "urn:a2a-hub:operated:v1");
            assert_eq!(more["params"]["agents"]["guest"]["maxRunning"], 100, "{more}");

            assert_eq!(unknown.refusal(method, json!({})).await?.0, -32004, "{path} {version}");
            assert_eq!(unknown.rest(Method::GET, below, None).await?.0, 400, "{path} {version}");
        }
    }
    for (grpc, method) in
        [(GrpcClient::v1(&hub)?, methods[0]), (GrpcClient::v03(&hub)?, "GetAgentCard")]
    {
        assert!(grpc.call(method, json!({})).await.is_err(), "{method}");
        let (card, _) = grpc.with("authorization", &shown)?.call(method, json!({})).await?;
        let more = card["capabilities"]["extensions"].as_array().and_then(|all| all.last());
        let more = more.context("it says no more")?;
        assert_eq!(more["params"]["agents"]["guest"]["maxRunning"], 100, "{card}");
    }
    Ok(())
}

/// Streaming methods are rejected for an agent whose card declares no streaming. Agents of the SDK
/// stream by default, so this one is a remote agent.
#[tokio::test]
async fn non_streaming_agent_rejects_streams() -> Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}", listener.local_addr()?);
    let card = json!({"name": "mute", "description": "does not stream", "version": "1",
        "capabilities": {"streaming": false}, "skills": [],
        "supportedInterfaces": [{"url": url, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}]});
    let router = Router::new().route("/.well-known/agent-card.json", get(async || Json(card)));
    let mut serving = JoinSet::new();
    serving.spawn(async move { axum::serve(listener, router).await });
    let hub =
        InProcessHub::builder().config(format!("[remote.mute]\nurl = '{url}'\n")).start().await?;
    let mute = Endpoint::of(&hub, "/agents/mute");
    let card = mute.ask(Method::GET, "/.well-known/agent-card.json", None).await?;
    let card: Value = serde_json::from_str(&card.text().await?)?;
    assert_eq!(card["capabilities"]["streaming"], false);
    for (method, params) in [("SendStreamingMessage", v1("hi")), ("message/stream", v03("hi"))] {
        let refused = mute.refusal(method, params).await?;
        assert_eq!(refused, (-32004, "UNSUPPORTED_OPERATION".to_owned()), "{method}");
    }
    let (status, refused) = mute.rest(Method::POST, "message:stream", Some(v1("hi"))).await?;
    let reason = &refused["error"]["details"][0]["reason"];
    assert_eq!((status, reason), (400, &json!("UNSUPPORTED_OPERATION")));
    Ok(())
}

#[tokio::test]
async fn extension_header_activates_extension() -> Result<()> {
    let hub = hub_with_guest().await?;
    for name in ["A2A-Extensions", "X-A2A-Extensions"] {
        let guest = Endpoint::of(&hub, "/agents/guest").with(name, "urn:unknown, urn:a2a-hub:test");
        let request =
            json!({"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": v1("reply hi")});
        let answer = guest.ask(Method::POST, "", Some(request)).await?;
        assert_eq!(answer.headers()[name], "urn:a2a-hub:test");
    }
    // The agent activates an extension that the hub relays, also on the endpoints of all agents.
    for path in ["/a2a", "/"] {
        let whole = Endpoint::of(&hub, path).with("A2A-Extensions", "urn:a2a-hub:test");
        let mut params = v1("terms");
        params["metadata"] = json!({ "targetAgent": "guest" });
        let request = json!({"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": params});
        let answer = whole.ask(Method::POST, "", Some(request)).await?;
        assert_eq!(answer.headers()["a2a-extensions"], "urn:a2a-hub:test", "{path}");
        let answer: Value = serde_json::from_str(&answer.text().await?)?;
        let told = &answer["result"]["task"]["status"]["message"]["parts"][0]["text"];
        assert_eq!(told, "urn:a2a-hub:test; ", "{path}");
    }
    Ok(())
}
