//! Tests of notices over the hub's doors: what is listed, for whom, and how often.

use crate::{
    hub::InProcessHub,
    stage::{GRANT, eventually_async, listen, send, state},
};
use a2a_hub_tests::{
    Client,
    tenants::{TENANTS, Web, token},
    test_guests,
};
use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use std::time::Duration;

/// Schedules that no test reaches by the clock.
const SCHEDULES: &str = "
    [schedule.broken]
    cron = '0 3 1 1 *'
    zone = 'UTC'
    agent = 'guest'
    message = 'fail'
    permissions = 'read-only'
    budget = { tasks = 5 }
    [schedule.fine]
    cron = '0 3 1 1 *'
    zone = 'UTC'
    agent = 'echo'
    message = 'all is well'
    permissions = 'read-only'
    budget = { tasks = 5 }
";

async fn listed(client: &Client, params: Value) -> Result<Value> {
    Ok(client.call("hub/notices/list", params).await?)
}

/// Waits until this many notices are unread, and returns them.
async fn unread(client: &Client, count: u64) -> Result<Value> {
    let there = async || {
        let found = listed(client, json!({})).await;
        found.is_ok_and(|found| found["unread"] == count)
    };
    let waited = eventually_async(Duration::from_secs(60), there).await;
    let found = listed(client, json!({})).await?;
    waited.with_context(|| format!("{count} notices: {found}"))?;
    Ok(found["notices"].clone())
}

/// A failure of a plain send and of a schedule, and a schedule's result, are listed until one door
/// marks them as read; a restart forgets none.
#[tokio::test]
async fn notices_are_listed_until_read() -> Result<()> {
    let config = format!("{GRANT}{SCHEDULES}");
    let hub = InProcessHub::builder().config(config).plugin("guest", test_guests()?);
    let mut hub = hub.start().await?;
    let client = Client::http(&hub);
    assert_eq!(listed(&client, json!({})).await?, json!({ "notices": [], "unread": 0 }));
    let mut events = listen(&client).await?;
    let failed = send(&client, "guest", "fail").await?;
    assert_eq!(state(&failed), "failed");
    while events.next().await.context("the stream ended")??["type"] != "notices-changed" {}
    send(&client, "echo", "somebody waits for it").await?;
    let notices = unread(&client, 1).await?;
    let notice = &notices[0];
    assert_eq!((&notice["kind"], &notice["taskId"]), (&json!("failed"), &failed["id"]));
    assert_eq!((&notice["agentId"], &notice["title"]), (&json!("guest"), &json!("fail")));
    assert_eq!((&notice["text"], &notice["read"]), (&json!("failed, as told"), &json!(false)));
    assert_eq!(notice["contextId"], failed["contextId"], "{notice}");

    for name in ["broken", "fine"] {
        client.call("hub/schedules/run", json!({ "name": name })).await?;
    }
    unread(&client, 3).await?;
    hub.restart().await?;
    let (client, socket) = (Client::http(&hub), Client::unix(&hub));
    let notices = unread(&client, 3).await?;
    let finished = listed(&socket, json!({ "kinds": ["finished"] })).await?;
    assert_eq!(
        (&finished["unread"], &finished["notices"][0]["title"]),
        (&json!(3), &json!("all is well"))
    );
    assert_eq!(finished["notices"][1], Value::Null, "{finished}");
    let page = listed(&socket, json!({ "limit": 2 })).await?;
    let rest = listed(&socket, json!({ "before": page["next"] })).await?;
    assert_eq!(rest["notices"], json!([notices[2]]), "{page}");

    let request = json!({ "all": true, "until": notices[1]["id"] });
    let which = socket.call("hub/notices/read", request.clone()).await?;
    assert_eq!(which, json!({ "marked": 2 }));
    assert_eq!(socket.call("hub/notices/read", request).await?, json!({ "marked": 0 }));
    assert_eq!(unread(&client, 1).await?, json!([notices[0]]), "it is newer");
    let one = json!({ "ids": [notices[0]["id"], 4_000_000] });
    assert_eq!(client.call("hub/notices/read", one).await?, json!({ "marked": 1 }));
    assert_eq!(unread(&client, 0).await?, json!([]));
    let all = listed(&client, json!({ "includeRead": true })).await?;
    assert_eq!(all["notices"].as_array().map(Vec::len), Some(3), "{all}");
    assert_eq!(all["notices"][2]["readBy"], "operator", "the socket is the operator's: {all}");
    assert!(all["notices"][2]["readAt"].is_string());
    client.call("hub/contexts/delete", json!({ "contextId": failed["contextId"] })).await?;
    let all = listed(&client, json!({ "includeRead": true })).await?;
    assert_eq!(all["notices"].as_array().map(Vec::len), Some(2), "it went with its task: {all}");
    Ok(())
}

/// A tenant neither sees nor marks the notices of another one.
#[tokio::test]
async fn notices_stay_in_their_tenant() -> Result<()> {
    let config = format!("{GRANT}{TENANTS}");
    let hub =
        InProcessHub::builder().config(config).plugin("guest", test_guests()?).start().await?;
    let acme = Web::of(&hub, token(&hub, "acme")?);
    let other = Web::of(&hub, token(&hub, "other")?);
    acme.send("fail").await?;
    let list = async |web: &Web| web.call("/", "hub/notices/list", json!({})).await;
    let notices = list(&acme).await?["result"]["notices"].clone();
    assert_eq!((&notices[0]["title"], &notices[0]["read"]), (&json!("fail"), &json!(false)));
    assert_eq!(list(&other).await?["result"], json!({ "notices": [], "unread": 0 }));
    for request in [json!({ "all": true }), json!({ "ids": [notices[0]["id"]] })] {
        let marked = other.call("/", "hub/notices/read", request).await?;
        assert_eq!(marked["result"], json!({ "marked": 0 }), "{marked}");
    }
    let operator = Client::http(&hub);
    assert_eq!(unread(&operator, 0).await?, json!([]), "the default tenant has none");
    assert_eq!(list(&acme).await?["result"]["notices"], notices);
    let marked = acme.call("/", "hub/notices/read", json!({ "all": true })).await?;
    assert_eq!(marked["result"], json!({ "marked": 1 }));
    assert_eq!(list(&acme).await?["result"]["unread"], 0);
    Ok(())
}
