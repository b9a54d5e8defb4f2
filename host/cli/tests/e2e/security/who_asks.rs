//! Tests that an agent's program, which runs as the hub's user, is never taken for the operator: on
//! the unix socket, over HTTP, with the token, or with tricks that hide its process's ancestry.

use crate::stage::{artifact, eventually, said, send, state};
use a2a_hub_tests::{
    Client, TestHub, descendants,
    knock::{KNOCK, arguments, unconfined},
    test_guests,
};
use anyhow::Result;
use serde_json::json;
use std::{fs, time::Duration};

/// Script that removes its marks, kills its minder and then connects; it writes the answer to a
/// file because its output is closed.
const ORPHAN: &str = "env -i PATH=\"$PATH\" setsid sh -c \
    'kill -9 '$PPID'; sleep 1; python3 knock.py unix \"$@\" > orphan.txt.new; mv orphan.txt.new orphan.txt' -";

async fn hub() -> Result<TestHub> {
    let hub = TestHub::builder().config(unconfined()).plugin("guest", test_guests()?);
    let hub = hub.start().await?;
    fs::write(hub.workspace().join("knock.py"), KNOCK)?;
    Ok(hub)
}

#[tokio::test]
async fn agent_program_is_never_operator() -> Result<()> {
    let hub = hub().await?;
    let client = Client::http(&hub);
    let ask = arguments(&hub, "hub/status", &json!({}));
    let its_agents = "the agent `guest` at work on task";
    for (how, whose) in [
        ("unix", its_agents),
        ("http", its_agents),
        ("token", its_agents),
        ("thread", its_agents),
        ("daemon", its_agents),
        // The process is unknown or the agent's, depending on whether the hub checks before or
        // after its exit.
        ("heir", "may not do this"),
        ("in-flight", "may not do this"),
    ] {
        let task = send(&client, "guest", &format!("sh python3 knock.py {how} {ask}")).await?;
        assert_eq!(state(&task), "completed", "{how}: {}", said(&task));
        let told = artifact(&task);
        assert!(told.contains(whose) && !told.contains("\"uptime\""), "{how}: {told}");
    }
    // Meanwhile, callers outside of the hub's process tree are served.
    assert!(Client::unix(&hub).call("hub/status", json!({})).await.is_ok());
    assert!(client.call("hub/status", json!({})).await.is_ok());
    Ok(())
}

#[tokio::test]
async fn program_without_minder_is_anonymous() -> Result<()> {
    let hub = hub().await?;
    let client = Client::http(&hub);
    let ask = arguments(&hub, "hub/status", &json!({}));
    let task = send(&client, "guest", &format!("sh {ORPHAN} {ask} & wait")).await?;
    assert!(["completed", "failed"].contains(&state(&task)), "{task}");
    let answer = hub.workspace().join("orphan.txt");
    eventually(Duration::from_secs(30), || answer.exists()).await?;
    let told = fs::read_to_string(answer)?;
    assert!(told.contains("somebody whom the hub does not know"), "{told}");
    // The process stays below the hub, which reaps it in the end.
    let zombies = || {
        let below = descendants(hub.pid());
        below.iter().any(|pid| {
            fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|it| it.contains(") Z "))
        })
    };
    send(&client, "guest", "sh kill -9 $PPID").await?;
    eventually(Duration::from_secs(10), || !zombies()).await
}
