//! Tests of the inbox over the hub's doors: lists, answers, tenants and restarts.

use crate::{
    hub::InProcessHub,
    stage::{GRANT, get, hub_with_guest, resuming_guests, said, send, state},
};
use a2a_hub_tests::{
    Client,
    questions::answer,
    tenants::{TENANTS, Web, token},
    test_guests,
};
use anyhow::{Context as _, Result};
use serde_json::{Value, json};

async fn open(client: &Client) -> Result<Value> {
    Ok(client.call("hub/questions/list", json!({})).await?["questions"].clone())
}

/// Questions of tasks from one door are listed and answered by another one, each once.
#[tokio::test]
async fn question_is_answered_once_over_all_doors() -> Result<()> {
    let hub = hub_with_guest().await?;
    let (web, socket) = (Client::http(&hub), Client::unix(&hub));
    let [one, two] = [send(&web, "guest", "permit").await?, send(&socket, "guest", "ask").await?];
    let listed = open(&web).await?;
    assert_eq!(listed, open(&socket).await?.clone_without_deadlines(&listed));
    let kinds = [&listed[0]["kind"], &listed[1]["kind"]];
    assert_eq!(kinds, ["permission", "input"], "{listed}");
    assert_eq!(listed[0]["text"], "may I?");
    assert_eq!((&listed[0]["path"], &listed[0]["request"]), (&json!(["guest"]), &json!("permit")));
    let only = web.call("hub/questions/list", json!({ "kind": "input" })).await?;
    assert_eq!((&only["total"], &only["questions"][0]["taskId"]), (&json!(1), &two["id"]));

    let request = json!({ "ids": [listed[0]["id"], listed[1]["id"]], "answer": "yes" });
    let results = socket.call("hub/questions/answer", request.clone()).await?;
    assert_eq!((&results[0]["answered"], &results[1]["answered"]), (&json!(true), &json!(true)));
    for task in [&one, &two] {
        let id = task["id"].as_str().context("no id")?;
        client_waits(&web, id).await?;
        let done = get(&web, id).await?;
        assert_eq!((state(&done), said(&done)), ("completed", "yes"));
    }
    let late = web.call("hub/questions/answer", request).await?;
    assert_eq!(late[0]["answered"], false, "{late}");
    let why = late[0]["error"].as_str().context("no reason")?;
    assert!(why.contains("operator answered it before with “yes”"), "{why}");
    let past = web.call("hub/questions/history", json!({ "limit": 1 })).await?;
    assert_eq!(past["questions"][0]["outcome"], "answered", "{past}");
    assert!(past["next"].is_u64(), "there is another page");
    Ok(())
}

/// Waits for the end of a task.
async fn client_waits(client: &Client, id: &str) -> Result<()> {
    while !["completed", "failed"].contains(&state(&get(client, id).await?)) {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    Ok(())
}

trait WithoutDeadlines {
    fn clone_without_deadlines(&self, like: &Value) -> Value;
}

impl WithoutDeadlines for Value {
    /// The same questions with the deadlines of the other list, which was computed before.
    fn clone_without_deadlines(&self, like: &Value) -> Value {
        let mut questions = self.clone();
        for (question, other) in questions
            .as_array_mut()
            .into_iter()
            .flatten()
            .zip(like.as_array().into_iter().flatten())
        {
            question["expiresAt"] = other["expiresAt"].clone();
        }
        questions
    }
}

/// A tenant neither sees nor answers the questions of another one, and an agent's program none.
#[tokio::test]
async fn questions_stay_in_their_tenant() -> Result<()> {
    let config = format!("{GRANT}{TENANTS}");
    let hub =
        InProcessHub::builder().config(config).plugin("guest", test_guests()?).start().await?;
    let acme = Web::of(&hub, token(&hub, "acme")?);
    let other = Web::of(&hub, token(&hub, "other")?);
    acme.send("permit").await?;
    let list = async |web: &Web| web.call("/", "hub/questions/list", json!({})).await;
    let listed = list(&acme).await?;
    let id = &listed["result"]["questions"][0]["id"];
    assert!(id.is_string(), "{listed}");
    assert_eq!(list(&other).await?["result"]["total"], 0);
    let request = json!({ "ids": [id], "answer": "allow" });
    let refused = other.call("/", "hub/questions/answer", request.clone()).await?;
    assert_eq!(refused["result"][0]["answered"], false, "{refused}");
    let later = json!({ "id": id, "forMs": 1000 });
    let refused = other.call("/", "hub/questions/later", later).await?;
    assert!(refused["error"]["message"].as_str().is_some_and(|it| it.contains("no task asks")));
    let operator = Client::http(&hub);
    assert_eq!(open(&operator).await?, json!([]), "the default tenant has none");

    let answered = acme.call("/", "hub/questions/answer", request).await?;
    assert_eq!(answered["result"][0]["answered"], true, "{answered}");
    let past = other.call("/", "hub/questions/history", json!({})).await?;
    assert_eq!(past["result"]["questions"], json!([]));
    Ok(())
}

/// A stop of the hub answers nothing: the question is asked anew, and both are remembered.
#[tokio::test]
async fn restart_replaces_question_in_inbox() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let hub = InProcessHub::builder().config(GRANT).plugin("guest", resuming_guests(dir.path())?);
    let mut hub = hub.start().await?;
    let client = Client::http(&hub);
    let asked = send(&client, "guest", "permit").await?;
    let before = open(&client).await?[0].clone();
    assert_eq!(before["id"], asked["metadata"]["question"]["id"]);
    hub.restart().await?;
    let client = Client::http(&hub);
    let now = open(&client).await?[0].clone();
    assert_eq!((&now["taskId"], &now["interrupted"]), (&before["taskId"], &json!(true)), "{now}");
    assert_ne!(now["id"], before["id"]);
    let stale = json!({ "ids": [before["id"]], "answer": "allow" });
    let stale = client.call("hub/questions/answer", stale).await?;
    assert_eq!(stale[0]["answered"], false, "{stale}");
    assert_eq!(stale[0]["earlier"]["outcome"], "replaced", "{stale}");
    let unnamed = answer(&asked, "hello", None);
    client.call("message/send", unnamed).await?;
    assert_eq!(open(&client).await?, json!([]));
    Ok(())
}

/// A question that was set aside stays so over a restart, as the question that replaces it.
#[tokio::test]
async fn postponed_question_survives_restart() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let hub = InProcessHub::builder().config(GRANT).plugin("guest", resuming_guests(dir.path())?);
    let mut hub = hub.start().await?;
    let client = Client::http(&hub);
    send(&client, "guest", "permit").await?;
    let before = open(&client).await?[0].clone();
    let later = json!({ "id": before["id"], "forMs": 7_200_000 });
    let postponed = client.call("hub/questions/later", later).await?;
    assert_eq!((&postponed["id"], &postponed["setAside"]), (&before["id"], &json!(true)));
    hub.restart().await?;
    let client = Client::http(&hub);
    let now = open(&client).await?[0].clone();
    assert_ne!(now["id"], before["id"]);
    assert_eq!((&now["setAside"], &now["interrupted"]), (&json!(true), &json!(true)), "{now}");
    let [deadline, postponed] = [&now, &postponed].map(|it| it["expiresAt"].as_str());
    assert!(postponed.is_some() && deadline >= postponed, "{deadline:?} {postponed:?}");
    assert!(now["expiring"].is_null(), "{now}");
    let status = client.call("hub/status", json!({})).await?;
    assert_eq!((&status["waitingTasks"], &status["expiringQuestions"]), (&json!(1), &json!(0)));
    Ok(())
}
