//! Tests of context memory, and of the parts that a delegated task inherits.

use crate::{
    command_line::run,
    stage::{artifact, said, send},
};
use a2a_hub_tests::{
    Client, TestHub, hub_binary, message_to,
    minds::{child_of, config},
    test_guests,
};
use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

async fn hub() -> Result<TestHub> {
    let hub = TestHub::builder().config(config()).plugin("guest", test_guests()?);
    hub.plugin("other", test_guests()?).plugin("poor", test_guests()?).start().await
}

/// Returns the context memory that an agent reports.
async fn mind(client: &Client, agent: &str, context: &Value, query: &str) -> Result<Value> {
    let mut message = message_to(agent, &format!("mind {query}"));
    message["message"]["contextId"] = context.clone();
    let told: Value = client.call("message/send", message).await?;
    serde_json::from_str(said(&told)).with_context(|| format!("no mind: {told}"))
}

#[tokio::test]
async fn context_memory_is_scoped_and_durable() -> Result<()> {
    let mut hub = hub().await?;
    let client = Client::http(&hub);
    let first = send(&client, "guest", "think of the parser").await?;
    assert_eq!(said(&first), "it is in mind");
    let context = &first["contextId"];
    let told = mind(&client, "guest", context, "details").await?;
    assert_eq!(told["working"]["goal"], "of the parser");
    assert_eq!(told["working"]["decisions"][0]["reason"], "one file");
    assert_eq!(told["items"][0]["data"]["info"], "details of the parser");
    hub.kill9().await?;
    hub.restart().await?;
    let client = Client::http(&hub);
    assert_eq!(mind(&client, "guest", context, "details").await?, told);
    // Neither another agent in the same conversation nor the same agent in another one finds it.
    for (agent, context) in [("other", context), ("guest", &json!("another"))] {
        let nothing = mind(&client, agent, context, "details").await?;
        assert_eq!((&nothing["working"]["goal"], &nothing["items"]), (&Value::Null, &json!([])));
    }
    client.call("hub/contexts/delete", json!({ "contextId": context })).await?;
    assert_eq!(mind(&client, "guest", context, "details").await?["items"], json!([]));
    let hoarded = send(&client, "guest", "hoard-items 100000").await?;
    let count = said(&hoarded).split(' ').next().and_then(|count| count.parse::<u32>().ok());
    ensure!(count.is_some_and(|count| count < 4096 / 128), "{}", said(&hoarded));
    ensure!(said(&hoarded).contains("bytes it is granted"), "{}", said(&hoarded));
    Ok(())
}

#[tokio::test]
async fn only_programs_can_pass_on_memory() -> Result<()> {
    let hub = hub().await?;
    let client = Client::http(&hub);
    let first = send(&client, "guest", "think of the parser").await?;
    let cli = format!("'{}' --socket '{}'", hub_binary()?.display(), hub.socket().display());
    let command = format!(
        "sh {cli} send other 'mind of the database' --inherit-working-memory --inherit-memory --scope minimal 2>&1"
    );
    let mut message = message_to("guest", &command);
    message["message"]["contextId"] = first["contextId"].clone();
    let sent: Value = client.call("message/send", message).await?;
    let told = artifact(&sent);
    ensure!(
        told.contains("sqlite") && !told.contains("hunter2") && !told.contains("depth"),
        "{told}"
    );

    let mut message = message_to("echo", "hello");
    message["message"]["metadata"]["inheritWorkingMemory"] = json!(true);
    let refused = client.call("message/send", message).await.unwrap_err().to_string();
    ensure!(refused.contains("nothing to inherit"), "{refused}");
    Ok(())
}

#[tokio::test]
async fn task_show_lists_inherited_memory() -> Result<()> {
    let hub = hub().await?;
    let client = Client::http(&hub);
    let call = "think-and-call other minimal mind of the database at depth for fact1";
    let task = send(&client, "guest", call).await?;
    let child = child_of(&client, &task).await?;
    let shown = run(&hub, &["task", "show", child["id"].as_str().context("no id")?]).await?;
    ensure!(
        shown.stdout.contains("memory   1 decision, 1 variable, 1 item from guest"),
        "{}",
        shown.stdout
    );
    ensure!(
        shown.stdout.contains("is private: 1 decision, 1 variable, 1 item, 1 thought"),
        "{}",
        shown.stdout
    );
    Ok(())
}
