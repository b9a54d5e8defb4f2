//! Tests of triggers: the messages that the hub sends after commits, changes of files and ends of
//! tasks.

use crate::{
    hub::InProcessHub,
    stage::{GRANT, eventually_async, get, said, state},
};
use a2a_hub_tests::{Client, message_to, tenants::Web, test_guests};
use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use std::{fs, path::Path, time::Duration};
use tokio::time::sleep;

/// Limit of a wait for the hub's next look.
const SOON: Duration = Duration::from_secs(60);

/// Time in which the hub looks at every source, and starts what is due.
const LOOKS: Duration = Duration::from_secs(4);

const ONE: &str = "1111111111111111111111111111111111111111";
const TWO: &str = "2222222222222222222222222222222222222222";

/// Settings of a trigger after the kind of its events.
const RUN: &str = "
    message = 'look'
    permissions = 'read-only'
    budget = { tasks = 5, depth = 1 }
    debounce = '0s'
";

async fn start(config: &str) -> Result<InProcessHub> {
    let hub = InProcessHub::builder().config(format!("{GRANT}\n{config}"));
    hub.plugin("guest", test_guests()?).start().await
}

async fn trigger(client: &Client, name: &str) -> Result<Value> {
    let all = client.call("hub/triggers/list", json!({})).await?;
    let mut all = all.as_array().cloned().unwrap_or_default().into_iter();
    all.find(|it| it["name"] == name).with_context(|| format!("no trigger {name}"))
}

/// Waits for a run of a trigger after the task `before` that is in this state.
async fn ran(client: &Client, name: &str, before: Option<&Value>, wanted: &str) -> Result<Value> {
    let before = before.map(|task| task["id"].clone());
    let is_so = async || {
        let last = trigger(client, name).await.unwrap_or_default()["last"].clone();
        last["state"] == wanted && before.as_ref() != Some(&last["task"])
    };
    let waited = eventually_async(SOON, is_so).await;
    let found = trigger(client, name).await?;
    waited.with_context(|| format!("{wanted}: {found}"))?;
    get(client, found["last"]["task"].as_str().context("no task")?).await
}

/// Data of what happened, which the run got.
fn fact(task: &Value) -> &Value {
    &task["history"][0]["parts"][2]["data"]["trigger"]
}

async fn tasks(client: &Client) -> Result<usize> {
    let all = client.call("hub/tasks/list", json!({ "limit": 100 })).await?;
    Ok(all.as_array().context("no list")?.len())
}

fn commit(repository: &Path, branch: &str, commit: &str) -> Result<()> {
    let heads = repository.join(".git/refs/heads");
    fs::create_dir_all(&heads)?;
    Ok(fs::write(heads.join(branch), format!("{commit}\n"))?)
}

#[tokio::test]
async fn commit_starts_one_run() -> Result<()> {
    let dir = tempfile::tempdir()?;
    commit(dir.path(), "main", ONE)?;
    let path = dir.path().display();
    let config = format!(
        "[trigger.review]\non = 'commit'\ndirectory = '{path}'\nbranches = ['main']\nagent = 'echo'\n{RUN}"
    );
    let mut hub = start(&config).await?;
    let client = Client::http(&hub);
    sleep(LOOKS).await;
    assert_eq!(tasks(&client).await?, 0, "known commits are no events");
    commit(dir.path(), "other", TWO)?;
    commit(dir.path(), "main", TWO)?;
    let task = ran(&client, "review", None, "completed").await?;
    let run = &task["metadata"]["trigger"];
    assert_eq!((&run["name"], &run["answers"]), (&json!("review"), &json!("deny")), "{task}");
    let events = json!([{ "branch": "main", "before": ONE, "after": TWO }]);
    assert_eq!(fact(&task)["events"], events, "{task}");
    ensure!(said(&task).contains("no instruction to follow"), "{task}");
    let message = &task["history"][0]["metadata"];
    assert_eq!(
        (&message["permissions"], &message["workingDirectory"]),
        (&json!("read-only"), &json!(dir.path()))
    );

    // A commit while no hub runs is an event, too, and each is one once.
    sleep(LOOKS).await;
    hub.stop().await?;
    commit(dir.path(), "main", ONE)?;
    hub.restart().await?;
    let client = Client::http(&hub);
    let again = ran(&client, "review", Some(&task), "completed").await?;
    assert_eq!(fact(&again)["events"][0]["after"], ONE);
    sleep(LOOKS).await;
    assert_eq!(tasks(&client).await?, 2);
    Ok(())
}

/// Each way in which a trigger begins to count: a start, a reload, the end of a pause.
#[tokio::test]
async fn change_right_after_beginning_counts() -> Result<()> {
    let dir = tempfile::tempdir()?;
    commit(dir.path(), "main", ONE)?;
    fs::write(dir.path().join("a.rs"), "1")?;
    let path = dir.path().display();
    let of = |name: &str, on: &str| {
        format!(
            "[trigger.{name}]\non = {on}\ndirectory = '{path}'\nagent = 'echo'\noverlap = 'queue'\n{RUN}"
        )
    };
    let (commits, files) = ("'commit'", "'file'\npaths = ['*.rs']");
    let config = format!("{}\n{}", of("commits", commits), of("files", files));
    let hub = start(&config).await?;
    commit(dir.path(), "main", TWO)?;
    fs::write(dir.path().join("a.rs"), "22")?;
    let client = Client::http(&hub);
    ran(&client, "commits", None, "completed").await?;
    ran(&client, "files", None, "completed").await?;

    hub.configure(&format!("{GRANT}\n{config}\n{}\n{}", of("more", commits), of("edits", files)))?;
    client.call("hub/reload", json!({})).await?;
    commit(dir.path(), "main", ONE)?;
    fs::write(dir.path().join("a.rs"), "333")?;
    ran(&client, "more", None, "completed").await?;
    ran(&client, "edits", None, "completed").await?;

    for name in ["more", "edits"] {
        client.call("hub/triggers/pause", json!({ "name": name })).await?;
    }
    let before = [trigger(&client, "more").await?, trigger(&client, "edits").await?]
        .map(|found| json!({ "id": found["last"]["task"] }));
    for name in ["more", "edits"] {
        client.call("hub/triggers/resume", json!({ "name": name })).await?;
    }
    commit(dir.path(), "main", TWO)?;
    fs::write(dir.path().join("a.rs"), "4444")?;
    ran(&client, "more", Some(&before[0]), "completed").await?;
    ran(&client, "edits", Some(&before[1]), "completed").await?;
    Ok(())
}

#[tokio::test]
async fn changed_files_start_runs_until_limit() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let path = dir.path().display();
    let config = format!(
        "[trigger.lint]\non = 'file'\ndirectory = '{path}'\npaths = ['src/**/*.rs']\nagent = 'echo'\nlimit = 2\noverlap = 'queue'\n{RUN}"
    );
    let hub = start(&config).await?;
    let client = Client::http(&hub);
    fs::create_dir(dir.path().join("src"))?;
    sleep(LOOKS).await;
    fs::write(dir.path().join("src/notes.txt"), "no match")?;
    fs::write(dir.path().join("src/a.rs"), "1")?;
    let first = ran(&client, "lint", None, "completed").await?;
    assert_eq!(fact(&first)["events"], json!([{ "path": "src/a.rs", "change": "created" }]));
    fs::write(dir.path().join("src/a.rs"), "22")?;
    ran(&client, "lint", Some(&first), "completed").await?;
    fs::remove_file(dir.path().join("src/a.rs"))?;
    let stopped = async || trigger(&client, "lint").await.is_ok_and(|it| it["stopped"] == true);
    eventually_async(SOON, stopped).await?;
    let warned = async || {
        let status = client.call("hub/status", json!({})).await.unwrap_or_default();
        status["warnings"].to_string().contains("`a2a-hub trigger resume lint` lets it go on")
    };
    eventually_async(SOON, warned).await?;
    assert_eq!(tasks(&client).await?, 2);

    let resumed = client.call("hub/triggers/resume", json!({ "name": "lint" })).await?;
    assert_eq!((&resumed["stopped"], resumed.get("warning")), (&json!(false), None));
    sleep(LOOKS).await;
    fs::write(dir.path().join("src/b.rs"), "1")?;
    let runs = async || tasks(&client).await.is_ok_and(|tasks| tasks == 3);
    eventually_async(SOON, runs).await?;
    Ok(())
}

/// The run waits for its client while files change: they may be its own doing.
#[tokio::test]
async fn changes_during_run_start_none() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let path = dir.path().display();
    let config = format!(
        "[trigger.fix]\non = 'file'\ndirectory = '{path}'\npaths = ['**']\nagent = 'guest'\nanswers = 'inbox'\n{}",
        RUN.replace("look", "ask")
    );
    let hub = start(&config).await?;
    let client = Client::http(&hub);
    sleep(LOOKS).await;
    fs::write(dir.path().join("a"), "1")?;
    let task = ran(&client, "fix", None, "input-required").await?;
    fs::write(dir.path().join("a"), "22")?;
    let noted = async || trigger(&client, "fix").await.is_ok_and(|it| it["note"].is_string());
    eventually_async(SOON, noted).await?;
    let mut answer = message_to("guest", "blue");
    answer["message"]["taskId"] = task["id"].clone();
    fs::write(dir.path().join("a"), "333")?;
    assert_eq!(state(&client.call("message/send", answer).await?), "completed");
    sleep(LOOKS).await;
    assert_eq!(tasks(&client).await?, 1);
    let missing = client.call("hub/triggers/run", json!({ "name": "fx" })).await;
    let why = missing.err().context("it is unknown")?.to_string();
    ensure!(why.contains("no trigger is called `fx`; did you mean `fix`?"), "{why}");
    Ok(())
}

/// Two triggers whose tasks fail, each of which is an event for the other and for itself.
#[tokio::test]
async fn ended_task_starts_no_circle() -> Result<()> {
    let of = |name: &str| {
        let run = RUN.replace("look", "fail");
        format!(
            "[trigger.{name}]\non = 'task'\nagent_is = 'guest'\nstate = 'failed'\nagent = 'guest'\noverlap = 'queue'\n{run}"
        )
    };
    let hub = start(&format!("{}\n{}", of("one"), of("two"))).await?;
    let client = Client::http(&hub);
    sleep(LOOKS).await;
    let failed = client.call("message/send", message_to("guest", "fail")).await?;
    assert_eq!(state(&failed), "failed", "{failed}");
    let one = ran(&client, "one", None, "failed").await?;
    ran(&client, "two", None, "failed").await?;
    let event = &fact(&one)["events"][0];
    assert_eq!((&event["task"], &event["state"]), (&failed["id"], &json!("failed")), "{one}");
    sleep(LOOKS * 3).await;
    // Each has a run for the client's task, and one for the other's run at most.
    let count = tasks(&client).await?;
    ensure!((3..=5).contains(&count), "{count}");
    sleep(LOOKS).await;
    assert_eq!(tasks(&client).await?, count, "no circle");
    Ok(())
}

#[tokio::test]
async fn reload_adds_trigger_and_names_error() -> Result<()> {
    let hub = start("").await?;
    let client = Client::http(&hub);
    assert_eq!(client.call("hub/triggers/list", json!({})).await?, json!([]));
    let of = |agent: &str| {
        format!(
            "{GRANT}\n[trigger.review]\non = 'commit'\ndirectory = '/no/such'\nagent = '{agent}'\n{RUN}"
        )
    };
    hub.configure(&of("ecko"))?;
    let told = client.call("hub/reload", json!({})).await?;
    assert_eq!(told["needsRestart"], json!([]), "{told}");
    let warns = async |wanted: &str| {
        let status = client.call("hub/status", json!({})).await.unwrap_or_default();
        status["warnings"].to_string().contains(wanted)
    };
    ensure!(warns("no agent is called `ecko`; did you mean `echo`?").await);
    hub.configure(&of("echo"))?;
    client.call("hub/reload", json!({})).await?;
    eventually_async(SOON, async || warns("`/no/such` cannot be read").await).await?;
    let paused = client.call("hub/triggers/pause", json!({ "name": "review" })).await?;
    assert_eq!((&paused["paused"], paused.get("warning")), (&json!(true), None), "{paused}");
    let run = client.call("hub/triggers/run", json!({ "name": "review" })).await?;
    assert_eq!(fact(&run)["events"], json!([]), "{run}");
    Ok(())
}

/// A trigger of ada follows the topics of her tenant, and no message from before she was added.
#[tokio::test]
async fn owned_trigger_sees_its_tenant_only() -> Result<()> {
    let config = format!(
        "[tenants.acme]\n[trigger.listen]\non = 'topic'\ntopic = 'news'\nagent = 'echo'\nowner = 'ada'\n{RUN}"
    );
    let hub = start(&config).await?;
    let client = Client::unix(&hub);
    let publish = async |tenant: Option<&str>, text: &str| -> Result<()> {
        let mut message = json!({ "topic": "news", "text": text });
        if let (Some(tenant), Some(message)) = (tenant, message.as_object_mut()) {
            message.insert("tenant".to_owned(), json!(tenant));
        }
        client.call("hub/topics/publish", message).await?;
        Ok(())
    };
    publish(Some("acme"), "too early").await?;
    sleep(LOOKS).await;
    let held = trigger(&client, "listen").await?;
    let warning = held["warning"].as_str().context("no warning")?;
    ensure!(warning.contains("its owner `ada` was removed, or was never added"), "{warning}");
    assert_eq!((held.get("last"), &held["pending"]), (None, &json!(0)), "{held}");

    let person = json!({ "name": "ada", "role": "member", "tenant": "acme" });
    client.call("hub/people/add", person).await?;
    sleep(LOOKS).await;
    publish(None, "of nobody's tenant").await?;
    publish(Some("acme"), "of her tenant").await?;
    let has_run = async || {
        let found = trigger(&client, "listen").await.unwrap_or_default();
        found["last"]["state"] == "completed"
    };
    eventually_async(SOON, has_run).await.context("no run")?;
    let found = trigger(&client, "listen").await?;
    assert_eq!((&found["owner"], found.get("warning")), (&json!("ada"), None), "{found}");
    let task = json!({ "id": found["last"]["task"], "tenant": "acme" });
    let task = client.call("tasks/get", task).await?.to_string();
    ensure!(task.contains("of her tenant"), "{task}");
    ensure!(!task.contains("of nobody's tenant") && !task.contains("too early"), "{task}");
    let list = json!({ "limit": 100, "tenant": "acme" });
    let all = client.call("hub/tasks/list", list).await?;
    assert_eq!(all.as_array().map(Vec::len), Some(1), "one message starts one run: {all}");

    // The warning about its owner ends during a pause, too.
    client.call("hub/triggers/pause", json!({ "name": "listen" })).await?;
    let warns = async |wanted: bool| {
        let found = trigger(&client, "listen").await;
        found.is_ok_and(|it| it.get("warning").is_some() == wanted)
    };
    client.call("hub/people/remove", json!({ "name": "ada" })).await?;
    eventually_async(SOON, async || warns(true).await).await.context("no warning")?;
    let person = json!({ "name": "ada", "role": "member", "tenant": "acme" });
    client.call("hub/people/add", person).await?;
    eventually_async(SOON, async || warns(false).await).await.context("the warning stays")?;
    Ok(())
}

/// The end of a task that may reach some agents only starts no run at another one.
#[tokio::test]
async fn limited_task_starts_no_run_after_it() -> Result<()> {
    let of_task = "on = 'task'\nagent_is = 'guest'\nstate = 'failed'\nagent = 'echo'";
    let hub = start(&format!("[trigger.after]\n{of_task}\n{RUN}")).await?;
    let client = Client::unix(&hub);
    client.call("hub/people/add", json!({ "name": "ada", "role": "member" })).await?;
    let scopes = json!(["read", "send:guest:alone"]);
    let terms = json!({ "person": "ada", "scopes": scopes, "forMs": 0 });
    let key = client.call("hub/keys/new", terms).await?;
    let secret = key["secret"].as_str().context("no secret")?;
    sleep(LOOKS).await;
    let limited = Web::of(&hub, format!("Bearer {secret}")).send("fail").await?;
    assert_eq!(state(&limited), "failed", "{limited}");
    let other = client.call("message/send", message_to("guest", "fail")).await?;
    let run = ran(&client, "after", None, "completed").await?;
    let events = fact(&run)["events"].as_array().cloned().unwrap_or_default();
    let tasks: Vec<_> = events.iter().map(|event| &event["task"]).collect();
    assert_eq!(tasks, [&other["id"]], "{run}");
    Ok(())
}
