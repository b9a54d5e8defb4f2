//! Tests of the Unix socket as a binding of official A2A, as `docs/reference/unix-socket.md`
//! describes it.

use super::{Endpoint, more, v1, v03, ways::lines};
use crate::{hub::InProcessHub, stage::hub_with_guest};
use anyhow::{Context as _, Result};
use reqwest::Method;
use serde_json::{Value, json};
use std::{path::Path, time::Duration};
use tokio::time::sleep;

/// Client on the socket, with its tenant and its version.
struct OnSocket<'a> {
    hub: &'a InProcessHub,
    tenant: Option<&'static str>,
    version: Option<&'static str>,
}

impl OnSocket<'_> {
    async fn lines(&self, method: &str, mut params: Value) -> Result<Vec<Value>> {
        if let Some(tenant) = self.tenant {
            params["tenant"] = json!(tenant);
        }
        if let Some(version) = self.version {
            params["metadata"]["a2a-service-parameters"] = json!({ "A2A-Version": version });
        }
        let request = json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params});
        lines(self.hub, &request).await
    }

    async fn call(&self, method: &str, params: Value) -> Result<Value> {
        let answer = self.lines(method, params).await?.pop().context("no answer")?;
        let result = answer.get("result").cloned();
        result.with_context(|| format!("{method}: {answer}"))
    }

    /// Sends a request that must fail, and returns the error's code and reason.
    async fn refusal(&self, method: &str, params: Value) -> Result<(i64, String)> {
        let answer = self.lines(method, params).await?.pop().context("no answer")?;
        let error = answer.get("error").with_context(|| format!("{method}: {answer}"))?;
        let data = error["data"].get(0).unwrap_or(&error["data"]);
        let reason = data["reason"].as_str().unwrap_or_default().to_owned();
        Ok((error["code"].as_i64().unwrap_or_default(), reason))
    }
}

#[tokio::test]
async fn card_lists_socket_interface() -> Result<()> {
    let hub = hub_with_guest().await?;
    for (path, tenant) in [("/agents/guest", Some("guest")), ("/a2a", None)] {
        let card = Endpoint::of(&hub, path).with("A2A-Version", "1.0");
        let card = card.ask(Method::GET, "/.well-known/agent-card.json", None).await?;
        let card: Value = serde_json::from_str(&card.text().await?)?;
        let interfaces = card["supportedInterfaces"].as_array().context("no interfaces")?;
        let is_socket = |one: &&Value| one["protocolBinding"] == "urn:a2a-hub:unix-ndjson:v1";
        let socket = interfaces.iter().find(is_socket).context("no socket")?;
        assert!(interfaces.last().is_some_and(|last| is_socket(&last)), "it comes last");
        let url = socket["url"].as_str().context("no URL")?;
        let listens = url.strip_prefix("unix://").map(Path::new).context("no unix URL")?;
        assert_eq!(listens.canonicalize()?, hub.socket().canonicalize()?);
        assert_eq!(socket.get("tenant").and_then(Value::as_str), tenant);
        assert_eq!(socket["protocolVersion"], "1.0");

        // A client that uses this URL reaches the agent.
        let client = OnSocket { hub: &hub, tenant, version: Some("1.0") };
        let mut hello = v1("reply hi");
        if tenant.is_none() {
            hello["message"]["metadata"] = json!({ "targetAgent": "guest" });
        }
        let told = client.call("SendMessage", hello).await?;
        assert_eq!(told["message"]["parts"], json!([{ "text": "hi" }]));
    }
    Ok(())
}

#[tokio::test]
async fn v1_operations_are_supported() -> Result<()> {
    let hub = hub_with_guest().await?;
    let guest = OnSocket { hub: &hub, tenant: Some("guest"), version: Some("1.0") };
    let sent = guest.call("SendMessage", v1("ask")).await?;
    let id = sent["task"]["id"].clone();
    assert_eq!(sent["task"]["status"]["state"], "TASK_STATE_INPUT_REQUIRED");
    let got = guest.call("GetTask", json!({ "id": id, "historyLength": 0 })).await?;
    assert_eq!((&got["id"], got.get("history")), (&id, None));
    let page = guest.call("ListTasks", json!({ "pageSize": 1 })).await?;
    assert_eq!((&page["totalSize"], &page["nextPageToken"]), (&json!(1), &json!("")));

    let config = json!({"taskId": id, "id": "c", "url": "http://127.0.0.1:9/news"});
    let set = guest.call("CreateTaskPushNotificationConfig", config.clone()).await?;
    assert_eq!((&set["url"], &set["tenant"]), (&config["url"], &json!("guest")));
    let one = json!({"taskId": id, "id": "c"});
    assert_eq!(guest.call("GetTaskPushNotificationConfig", one.clone()).await?, set);
    let all = guest.call("ListTaskPushNotificationConfigs", json!({ "taskId": id })).await?;
    assert_eq!(all["configs"], json!([set]));
    assert_eq!(guest.call("DeleteTaskPushNotificationConfig", one).await?, Value::Null);

    let answer = async {
        sleep(Duration::from_millis(300)).await;
        guest.lines("SendStreamingMessage", more(&id, "blue")).await
    };
    let (heard, answered) =
        tokio::join!(guest.lines("SubscribeToTask", json!({ "id": id })), answer);
    for told in [heard?, answered?] {
        assert_eq!(told[0]["result"]["task"]["id"], id);
        let last = &told.last().context("no end")?["result"]["statusUpdate"]["status"];
        assert_eq!(last["state"], "TASK_STATE_COMPLETED");
    }
    assert_eq!(guest.refusal("CancelTask", json!({ "id": id })).await?.0, -32002);
    let over = guest.refusal("SubscribeToTask", json!({ "id": id })).await?;
    assert_eq!(over, (-32004, "UNSUPPORTED_OPERATION".to_owned()));
    Ok(())
}

#[tokio::test]
async fn v03_operations_are_supported() -> Result<()> {
    let hub = hub_with_guest().await?;
    let guest = OnSocket { hub: &hub, tenant: Some("guest"), version: Some("0.3") };
    let asked = guest.call("message/send", v03("ask")).await?;
    let id = asked["id"].clone();
    assert_eq!(
        (&asked["kind"], &asked["status"]["state"]),
        (&json!("task"), &json!("input-required"))
    );
    assert_eq!(guest.call("tasks/get", json!({ "id": id })).await?["id"], id);
    let config = json!({"taskId": id, "pushNotificationConfig": {"id": "c", "url": "http://127.0.0.1:9/news"}});
    let set = guest.call("tasks/pushNotificationConfig/set", config).await?;
    assert_eq!(set["pushNotificationConfig"]["id"], "c");
    let one = json!({ "id": id, "pushNotificationConfigId": "c" });
    assert_eq!(guest.call("tasks/pushNotificationConfig/get", one.clone()).await?, set);
    let all = guest.call("tasks/pushNotificationConfig/list", json!({ "id": id })).await?;
    assert_eq!(all, json!([set]));
    assert_eq!(guest.call("tasks/pushNotificationConfig/delete", one).await?, Value::Null);
    let told = guest.lines("tasks/resubscribe", json!({ "id": id })).await?;
    assert_eq!(told[0]["result"]["kind"], "task");
    let mut answer = v03("blue");
    answer["message"]["taskId"] = id.clone();
    let told = guest.lines("message/stream", answer).await?;
    assert_eq!(told.last().context("no end")?["result"]["final"], true, "{told:?}");
    assert_eq!(guest.refusal("tasks/cancel", json!({ "id": id })).await?.0, -32002);
    Ok(())
}

/// The socket serves no extended card. The system authenticates each client of the socket, and no
/// scheme of a card describes that: A2A declares the extended card together with a scheme that
/// authenticates its reader.
#[tokio::test]
async fn extended_card_is_unsupported_on_socket() -> Result<()> {
    let hub = hub_with_guest().await?;
    for tenant in [Some("guest"), None] {
        for (version, method) in
            [("1.0", "GetExtendedAgentCard"), ("0.3", "agent/getAuthenticatedExtendedCard")]
        {
            let client = OnSocket { hub: &hub, tenant, version: Some(version) };
            let refused = client.refusal(method, json!({})).await?;
            assert_eq!(refused, (-32004, "UNSUPPORTED_OPERATION".to_owned()), "{version}");
        }
    }
    Ok(())
}

#[tokio::test]
async fn service_parameters_apply_per_request() -> Result<()> {
    let hub = hub_with_guest().await?;
    let guest = OnSocket { hub: &hub, tenant: Some("guest"), version: Some("1.0") };
    let asked = guest.call("SendMessage", v1("ask")).await?;
    let id = json!({ "id": asked["task"]["id"] });
    let none = (-32001, "TASK_NOT_FOUND".to_owned());
    let echo = OnSocket { tenant: Some("echo"), ..guest };
    assert_eq!(echo.refusal("GetTask", id.clone()).await?, none, "it is another agent's");
    let nobody = OnSocket { tenant: Some("nobody"), ..echo };
    assert_eq!(
        nobody.refusal("GetTask", id.clone()).await?,
        (-32602, "AGENT_NOT_FOUND".to_owned())
    );
    let future = OnSocket { tenant: None, version: Some("99.0"), ..nobody };
    let unknown = (-32009, "VERSION_NOT_SUPPORTED".to_owned());
    assert_eq!(future.refusal("GetTask", id.clone()).await?, unknown);

    // The error codes differ between official 0.3 (also if the version is empty) and the hub's own
    // dialect.
    let nobody = json!({"message": {"messageId": "m", "role": "user", "kind": "message",
        "parts": [{"kind": "text", "text": "x"}], "metadata": {"targetAgent": "nobody"}}});
    for (version, code) in [(Some("0.3"), -32602), (Some(""), -32602), (None, -32003)] {
        let client = OnSocket { tenant: None, version, ..future };
        let refused = client.refusal("message/send", nobody.clone()).await?;
        assert_eq!(refused, (code, "AGENT_NOT_FOUND".to_owned()), "{version:?}");
    }
    let unnamed = OnSocket { tenant: None, version: None, ..future };
    assert_eq!(unnamed.call("GetTask", id.clone()).await?["id"], id["id"]);
    assert!(unnamed.call("hub/status", json!({})).await?["agents"].is_array());
    let wrong = json!({ "id": id["id"], "metadata": { "a2a-service-parameters": "1.0" } });
    assert_eq!(unnamed.refusal("GetTask", wrong).await?.0, -32602);
    // Over HTTP this member is ordinary metadata.
    let wrong = json!({ "id": id["id"], "metadata": { "a2a-service-parameters": "1.0" } });
    let http = Endpoint::of(&hub, "/agents/guest");
    assert_eq!(http.result("GetTask", wrong).await?["id"], id["id"]);
    Ok(())
}
