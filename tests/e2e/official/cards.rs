//! Cards where official clients look for them, and the extensions they tell of.

use super::{Endpoint, v1};
use crate::stage::hub_with_guest;
use a2a_hub_tests::TestHub;
use anyhow::{Context as _, Result};
use reqwest::Method;
use serde_json::{Value, json};

#[tokio::test]
async fn cards_are_found_where_clients_look() -> Result<()> {
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
        let grpc = &both["supportedInterfaces"][2];
        assert_eq!(grpc["url"], hub.http());
        // A client of 0.3 cannot say on gRPC which agent it means.
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
    }
    let endpoint = Endpoint::of(&hub, "/agents/guest");
    let extended = endpoint.result("GetExtendedAgentCard", json!({})).await?;
    assert_eq!(extended["capabilities"]["extendedAgentCard"], true);
    let old = endpoint.result("agent/getAuthenticatedExtendedCard", Value::Null).await?;
    assert_eq!(old["url"], at("/agents/guest"));

    let config = "public_url = \"https://hub.example/x\"\nroot_agent = \"echo\"";
    let other = TestHub::builder().config(config).start().await?;
    let card = reqwest::get(format!("http://{}/.well-known/agent-card.json", other.http())).await?;
    let card: Value = serde_json::from_str(&card.text().await?)?;
    assert_eq!(
        (&card["name"], &card["url"]),
        (&json!("echo"), &json!("https://hub.example/x/agents/echo"))
    );
    Ok(())
}

#[tokio::test]
async fn extensions_are_activated_by_name() -> Result<()> {
    let hub = hub_with_guest().await?;
    for name in ["A2A-Extensions", "X-A2A-Extensions"] {
        let guest = Endpoint::of(&hub, "/agents/guest").with(name, "urn:unknown, urn:a2a-hub:test");
        let request =
            json!({"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": v1("reply hi")});
        let answer = guest.ask(Method::POST, "", Some(request)).await?;
        assert_eq!(answer.headers()[name], "urn:a2a-hub:test");
    }
    Ok(())
}
