//! Tests that an agent's program, which runs as the hub's own user, never acts as the operator. The
//! tests of the program `a2a-hub`, which owns its process, cover the tricks to pass as the
//! operator.

use crate::{
    hub::InProcessHub,
    stage::{artifact, get, send, state, stream, until},
};
use a2a_hub_tests::{
    Client,
    knock::{KNOCK, arguments, unconfined},
    test_guests,
};
use anyhow::Result;
use serde_json::json;
use std::fs;

async fn hub() -> Result<InProcessHub> {
    let hub = InProcessHub::builder().config(unconfined()).plugin("guest", test_guests()?);
    let hub = hub.start().await?;
    fs::write(hub.workspace().join("knock.py"), KNOCK)?;
    Ok(hub)
}

#[tokio::test]
async fn agent_program_cannot_answer_for_client() -> Result<()> {
    let hub = hub().await?;
    let client = Client::http(&hub);
    let (task, mut updates) = stream(&client, "guest", "ask which colour").await?;
    until(&mut updates, |event| state(event) == "input-required").await?;
    let yes = json!({ "message": { "kind": "message", "role": "user", "messageId": "m", "taskId": task,
        "parts": [{ "kind": "text", "text": "yes" }] } });
    for (method, params) in [
        ("message/send", &yes),
        ("tasks/cancel", &json!({ "id": task })),
        ("tasks/get", &json!({ "id": task })),
        ("hub/agents/register", &json!({ "agentId": "mine", "path": "/tmp/x.wasm" })),
        ("hub/reload", &json!({})),
        ("hub/notices/list", &json!({})),
        ("hub/notices/read", &json!({ "all": true })),
    ] {
        let ask = arguments(&hub, method, params);
        for how in ["unix", "token"] {
            let said = send(&client, "guest", &format!("sh python3 knock.py {how} {ask}")).await?;
            let told = artifact(&said);
            let is_refused = told.contains("\"error\"") && !told.contains("\"result\"");
            assert!(is_refused, "{method} {how}: {told}");
        }
    }
    assert_eq!(state(&get(&client, &task).await?), "input-required", "nobody answered");
    Ok(())
}
