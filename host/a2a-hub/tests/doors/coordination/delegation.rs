//! Tests of delegation between agents: components, and the programs that they start.

use crate::{
    hub::InProcessHub,
    stage::{eventually_async, no_program_left, said, send, state, stream, until},
};
use a2a_hub_tests::{
    Client,
    delegation::{granted, tree},
    message_to, test_guests,
};
use anyhow::Result;
use serde_json::{Value, json};
use std::time::Duration;

async fn hub_that_calls(agents: &str) -> Result<InProcessHub> {
    InProcessHub::builder().config(granted(agents)).plugin("guest", test_guests()?).start().await
}

#[tokio::test]
async fn component_calls_agents_and_gets_results() -> Result<()> {
    let hub = hub_that_calls("'echo', 'guest'").await?;
    let client = Client::http(&hub);
    let task = send(&client, "guest", "call echo hello there").await?;
    assert_eq!((state(&task), said(&task)), ("completed", "echo said: hello there"));
    let deep = send(&client, "guest", "call guest call guest call echo deep").await?;
    assert_eq!(said(&deep), "guest said: guest said: echo said: deep");
    let tasks = tree(&client, &deep["id"]).await?;
    assert_eq!(tasks.len(), 4);
    for pair in tasks.windows(2) {
        assert_eq!(pair[1]["metadata"]["parentTaskId"], pair[0]["id"]);
        assert_eq!(pair[1]["metadata"]["x-workflow-id"], deep["id"]);
    }
    let both = send(&client, "guest", "call-both echo hello").await?;
    assert_eq!(said(&both), "one TaskState::Completed, two TaskState::Completed");
    let dropped = send(&client, "guest", "call-and-drop guest sh sleep 600").await?;
    assert_eq!(said(&dropped), "TaskState::Canceled after true", "{dropped}");

    let refused = send(&client, "guest", "call codex hello").await?;
    assert_eq!(state(&refused), "failed");
    assert!(said(&refused).contains("delegate = [\"codex\"]"), "{}", said(&refused));
    Ok(())
}

#[tokio::test]
async fn cancel_ends_programs_of_task_tree() -> Result<()> {
    let hub = hub_that_calls("'guest'").await?;
    let client = Client::http(&hub);
    let (task, mut updates) =
        stream(&client, "guest", "call guest call guest sh sleep 600").await?;
    until(&mut updates, |event| state(event) == "working").await?;
    let runs = async || tree(&client, &json!(task)).await.is_ok_and(|tasks| tasks.len() == 3);
    eventually_async(Duration::from_secs(20), runs).await?;
    client.call("tasks/cancel", json!({ "id": task })).await?;
    for task in tree(&client, &json!(task)).await? {
        assert_eq!(state(&task), "canceled", "{task}");
    }
    no_program_left(&hub.data_dir(), Duration::from_secs(5)).await
}

#[tokio::test]
async fn child_question_is_answered_by_root_client() -> Result<()> {
    let hub = hub_that_calls("'guest'").await?;
    let client = Client::http(&hub);
    let task = send(&client, "guest", "call guest call guest ask which colour").await?;
    assert_eq!(state(&task), "input-required");
    assert!(said(&task).starts_with("guest > guest asks:\n"), "{}", said(&task));
    assert_eq!(task["metadata"]["question"]["path"], json!(["guest", "guest"]));
    let mut answer = message_to("guest", "reply blue");
    answer["message"]["taskId"] = task["id"].clone();
    let done: Value = client.call("message/send", answer.clone()).await?;
    assert_eq!(state(&done), "completed");
    assert!(said(&done).starts_with("guest said: guest said: "), "{}", said(&done));
    let again = client.call("message/send", answer.clone()).await?;
    assert_eq!((said(&again), &again["metadata"]["repeated"]), (said(&done), &json!(true)));
    answer["message"]["messageId"] = json!("another");
    assert!(client.call("message/send", answer).await.is_err(), "it is taken once");
    Ok(())
}

#[tokio::test]
async fn self_delegation_needs_one_run_permit() -> Result<()> {
    let config = granted("'guest'").replace("max_running = 100", "max_running = 1");
    let hub =
        InProcessHub::builder().config(config).plugin("guest", test_guests()?).start().await?;
    let client = Client::http(&hub);
    let task = send(&client, "guest", "call guest call guest sh sleep 0.3; echo well").await?;
    assert_eq!(state(&task), "completed", "{task}");
    Ok(())
}

#[tokio::test]
async fn task_tree_budget_is_enforced() -> Result<()> {
    let config =
        format!("{}\n    [agents.guest.limits.tree]\n    depth = 2\n", granted("'guest', 'echo'"));
    let hub =
        InProcessHub::builder().config(config).plugin("guest", test_guests()?).start().await?;
    let client = Client::http(&hub);
    let deep = send(&client, "guest", "call guest call guest call echo deep").await?;
    assert!(said(&deep).contains("the depth of 2"), "{}", said(&deep));
    let mut narrow = message_to("guest", "call-both echo hello");
    narrow["message"]["metadata"]["budget"] = json!({ "tasks": 1 });
    let refused: Value = client.call("message/send", narrow.clone()).await?;
    assert_eq!(state(&refused), "failed");
    assert!(said(&refused).contains("the budget of 1 tasks"), "{}", said(&refused));
    narrow["message"]["metadata"]["budget"] = json!({ "task": 1 });
    let wrong = client.call("message/send", narrow).await.unwrap_err();
    assert!(format!("{wrong:?}").contains("metadata.budget"), "{wrong:?}");
    let mut of_request = message_to("guest", "call-both echo hello");
    of_request["metadata"] = json!({ "budget": { "tasks": 1 } });
    let refused: Value = client.call("message/send", of_request).await?;
    assert!(said(&refused).contains("the budget of 1 tasks"), "{}", said(&refused));
    Ok(())
}

#[tokio::test]
async fn task_tree_is_returned_whole() -> Result<()> {
    let hub = hub_that_calls("'echo', 'guest'").await?;
    let client = Client::http(&hub);
    let asks = send(&client, "guest", "call guest call guest ask which colour").await?;
    let tree = async |params: Value| Client::unix(&hub).call("hub/tasks/tree", params).await;
    let told = tree(json!({ "id": asks["id"] })).await?;
    let of = |name: &str| {
        told["tasks"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|it| it[name].clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(of("depth"), [0, 1, 2]);
    assert_eq!(of("agentId"), ["guest"; 3]);
    assert_eq!(of("state"), ["input-required"; 3]);
    assert_eq!(of("parentId")[1..], of("id")[..2]);
    assert_eq!(of("asked")[2], "ask which colour");
    let questions = of("question");
    assert_eq!(questions[0]["id"], questions[2]["id"], "it keeps its name on its way up");
    assert_eq!((&questions[2]["kind"], &told["cut"]), (&json!("input"), &json!(false)));
    let cut = tree(json!({ "id": asks["id"], "depth": 1 })).await?;
    let last = &cut["tasks"][1];
    assert_eq!(
        (&cut["cut"], &cut["tasks"][2], &last["hidden"]),
        (&json!(true), &Value::Null, &json!(1))
    );

    client.call("tasks/cancel", json!({ "id": asks["id"] })).await?;
    Ok(())
}
