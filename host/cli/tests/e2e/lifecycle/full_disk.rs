//! Tests of a temporarily full disk: the hub refuses what it cannot store, and recovers once space
//! is free.

use crate::{
    command_line::{Ran, finish, run},
    stage::{
        eventually, eventually_async, get, hub_with_guest, no_program_left, said, send, state,
        stream, until,
    },
};
use a2a_hub_tests::{
    Client, Receiver, RpcError, TestHub, Updates, hub_binary, message_to, test_guests,
};
use anyhow::{Context as _, Result};
use rustix::process::{Pid, Resource, Rlimit, prlimit};
use serde_json::{Value, json};
use std::{
    fs::{self, Permissions},
    os::unix::fs::PermissionsExt as _,
    path::Path,
    process::Stdio,
    time::Duration,
};
use tokio::{process::Command, time::timeout};

/// Number of repetitions: recovery must work more than once.
const ROUNDS: u32 = 3;

/// Time in which the hub must recover once space is free.
const SOON: Duration = Duration::from_secs(10);

/// Prevents a running hub from writing to files (RLIMIT_FSIZE of 0), as if the disk were full, or
/// allows it again.
fn set_room(hub: &TestHub, is_there: bool) -> Result<()> {
    let pid = Pid::from_raw(i32::try_from(hub.pid())?);
    let current = (!is_there).then_some(0);
    prlimit(pid, Resource::Fsize, Rlimit { current, maximum: None })?;
    Ok(())
}

/// Starts a hub, and subscribes to its events.
async fn hub_with_news() -> Result<(TestHub, Updates)> {
    let hub = hub_with_guest().await?;
    let mut events = Client::unix(&hub).stream("hub/events", json!({})).await?;
    events.next().await.context("the stream is empty")??;
    Ok((hub, events))
}

/// Sends a GET request; returns the HTTP status and the body.
async fn http_get(hub: &TestHub, path: &str) -> Result<(u16, Value)> {
    let got = reqwest::get(format!("http://{}{path}", hub.http())).await?;
    Ok((got.status().as_u16(), serde_json::from_str(&got.text().await?)?))
}

/// Asserts that a request was refused with reason `storage`.
fn unstored(what: &str, refused: Result<Value, RpcError>) {
    match refused {
        Err(RpcError::Refused { code: -32603, data, .. }) if data["reason"] == "storage" => {}
        other => panic!("{what}: {other:?}"),
    }
}

fn answer_to(task: &Value, text: &str) -> Value {
    let mut params = message_to("guest", text);
    params["message"]["taskId"] = task["id"].clone();
    params
}

fn register(component: &Path) -> Value {
    json!({ "agentId": "parrot", "path": component })
}

#[tokio::test]
async fn full_disk_is_reported_and_recovered() -> Result<()> {
    let (hub, mut events) = hub_with_news().await?;
    let (client, receiver) = (Client::http(&hub), Receiver::start()?);
    let echo = test_guests()?.with_file_name("echo.wasm");
    for _ in 0..ROUNDS {
        let done = send(&client, "echo", "hello").await?;
        let asked = send(&client, "guest", "ask").await?;
        let (at_work, updates) = stream(&client, "guest", "tick 2000 20").await?;
        let push = json!({ "taskId": asked["id"], "pushNotificationConfig": { "id": "p", "url": receiver.url("/") } });
        let context = json!({ "contextId": done["contextId"] });

        set_room(&hub, false)?;
        unstored("a new task", client.call("message/send", message_to("echo", "hello")).await);
        unstored("an answer", client.call("message/send", answer_to(&asked, "now")).await);
        let set = "tasks/pushNotificationConfig/set";
        unstored("a push config", client.call(set, push.clone()).await);
        let forget = client.call("hub/contexts/delete", context.clone()).await;
        unstored("a conversation's end", forget);
        let joined = client.call("hub/agents/register", register(&echo)).await;
        assert!(joined.is_err(), "{joined:?}");
        assert_eq!(
            state(&get(&client, asked["id"].as_str().context("id")?).await?),
            "input-required"
        );

        let failing = until(&mut events, |event| event["type"] == "storage-failing").await?;
        assert!(failing["fix"].as_str().is_some_and(|fix| fix.contains("make room")), "{failing}");
        let (code, health) = http_get(&hub, "/health").await?;
        assert_eq!((code, &health["status"]), (200, &json!("degraded")), "it lives: {health}");
        assert!(health["warnings"][0].as_str().is_some_and(|it| it.contains("make room")));
        let (code, ready) = http_get(&hub, "/ready").await?;
        assert_eq!((code, &ready["reason"]), (503, &json!("storage")), "{ready}");
        let status = client.call("hub/status", json!({})).await?;
        assert_eq!(status["storage"]["status"], "failing", "{status}");
        set_room(&hub, true)?;
        until(&mut events, |event| event["type"] == "storage-recovered").await?;
        eventually_async(SOON, async || {
            get(&client, &at_work).await.is_ok_and(|task| state(&task) == "failed")
        })
        .await?;
        let task = get(&client, &at_work).await?;
        assert_eq!(task["metadata"]["reason"], "storage", "{task}");
        let heard = updates.rest().await?;
        let (last, heard) = heard.split_last().context("nothing was heard")?;
        assert_eq!((state(last), &last["final"]), ("failed", &json!(true)), "{last}");
        assert!(heard.iter().all(|event| event["final"] != json!(true)), "{heard:?}");
        eventually_async(SOON, async || {
            http_get(&hub, "/ready").await.is_ok_and(|(code, _)| code == 200)
        })
        .await?;
        // The index for searches is written again a moment later.
        eventually_async(SOON, async || {
            http_get(&hub, "/health").await.is_ok_and(|(_, health)| health["status"] == "ok")
        })
        .await?;
        assert_eq!(said(&send(&client, "echo", "hello").await?), "hello");
        client.call(set, push).await?;
        let answered = client.call("message/send", answer_to(&asked, "now")).await?;
        assert_eq!((state(&answered), said(&answered)), ("completed", "now"), "its question stood");
        client.call("hub/contexts/delete", context).await?;
        client.call("hub/agents/register", register(&echo)).await?;
        assert_eq!(said(&send(&client, "parrot", "hello").await?), "hello");
        client.call("hub/agents/deregister", json!({ "agentId": "parrot" })).await?;
        assert_eq!(
            client.call("hub/status", json!({})).await?["storage"],
            json!({ "status": "ok" })
        );
    }
    assert!(hub.log().contains("lines of this log were lost"), "{}", hub.log());
    no_program_left(&hub.data_dir(), Duration::from_secs(1)).await
}

#[tokio::test]
async fn status_and_doctor_report_full_disk() -> Result<()> {
    let hub = hub_with_guest().await?;
    set_room(&hub, false)?;
    eventually_async(SOON, async || {
        let shown = run(&hub, &["status"]).await;
        shown.is_ok_and(|ran| ran.stdout.contains("storage failing since"))
    })
    .await?;
    let data = hub.data_dir().display().to_string();
    let doctor = run(&hub, &["--data-dir", &data, "doctor"]).await?;
    assert_eq!(doctor.code, Some(2));
    assert!(doctor.stdout.contains("fail  storage"), "{}", doctor.stdout);
    set_room(&hub, true)?;
    eventually_async(SOON, async || {
        run(&hub, &["status"]).await.is_ok_and(|ran| !ran.stdout.contains("failing"))
    })
    .await
}

/// A delivery state that a worker could not store must not stop its further work.
#[tokio::test]
async fn notifications_resume_after_full_disk() -> Result<()> {
    let (hub, mut events) = hub_with_news().await?;
    let (client, receiver) = (Client::http(&hub), Receiver::start()?);
    receiver.always(Some(503));
    let mut ask = message_to("guest", "ask");
    ask["configuration"] = json!({ "pushNotificationConfig": { "url": receiver.url("/") } });
    let asked = client.call("message/send", ask).await?;
    eventually(SOON, || !receiver.came().is_empty()).await?;
    set_room(&hub, false)?;
    // The next attempt fails as well, and its state cannot be stored.
    until(&mut events, |event| event["type"] == "storage-failing").await?;
    receiver.always(None);
    set_room(&hub, true)?;
    until(&mut events, |event| event["type"] == "storage-recovered").await?;
    client.call("message/send", answer_to(&asked, "now")).await?;
    eventually(SOON, || receiver.taken().iter().any(|task| state(task) == "completed")).await
}

#[tokio::test]
async fn full_disk_hub_stops_and_recovers() -> Result<()> {
    let mut hub = hub_with_guest().await?;
    let client = Client::http(&hub);
    let asked = send(&client, "guest", "ask").await?;
    let (at_work, mut updates) = stream(&client, "guest", "sh sleep 600").await?;
    until(&mut updates, |event| event["status"]["state"] == "working").await?;
    set_room(&hub, false)?;
    let stopped = timeout(SOON, hub.stop()).await.context("it hangs")??;
    assert!(stopped.success(), "{stopped}");
    hub.restart().await?;
    let client = Client::http(&hub);
    let task = get(&client, &at_work).await?;
    assert_eq!((state(&task), &task["metadata"]["reason"]), ("failed", &json!("hub_restarted")));
    let asked = get(&client, asked["id"].as_str().context("no id")?).await?;
    // The task still waits, and states that its run is gone.
    assert_eq!(state(&asked), "input-required");
    let told = "The hub was restarted while test-guests asked: “what do you say?”";
    assert!(said(&asked).starts_with(told), "{asked}");
    Ok(())
}

/// Runs `a2a-hub` through a shell that executes `first` before.
pub(crate) async fn run_after(home: &Path, first: &str, args: &str) -> Result<Ran> {
    run_program_after(&hub_binary()?, home, first, args).await
}

/// Runs another copy of the program through a shell that executes `first` before.
pub(crate) async fn run_program_after(
    hub: &Path,
    home: &Path,
    first: &str,
    args: &str,
) -> Result<Ran> {
    let socket = home.join("hub.sock");
    let line = format!("{first} {} --socket {} {args}", hub.display(), socket.display());
    #[expect(clippy::disallowed_methods, reason = "the command is typed as a user would")]
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(line).current_dir(home).stdin(Stdio::null()).kill_on_drop(true);
    shell.stdout(Stdio::piped()).stderr(Stdio::piped()).env_clear();
    shell.env("HOME", home).env("PATH", std::env::var_os("PATH").unwrap_or_default());
    finish(shell).await
}

#[tokio::test]
async fn unwritable_store_is_not_called_damaged() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let full = run_after(dir.path(), "ulimit -f 0; exec", "start --foreground --no-http").await?;
    assert_eq!(full.code, Some(2), "{}", full.stderr);
    assert!(
        full.stderr.contains("ulimit -f") && !full.stderr.contains("backup"),
        "{}",
        full.stderr
    );

    let data = dir.path().join(".a2a-hub");
    let run = async |args: &str| run_after(dir.path(), "exec", args).await;
    assert_eq!(run("start --no-http").await?.code, Some(0));
    assert_eq!(run("stop").await?.code, Some(0));
    fs::set_permissions(&data, Permissions::from_mode(0o500))?;
    // Root may write everywhere, unless it drops that capability.
    let humbly = if rustix::process::geteuid().is_root() {
        "exec setpriv --bounding-set=-dac_override --inh-caps=-dac_override"
    } else {
        "exec"
    };
    let closed = run_after(dir.path(), humbly, "start --foreground --no-http").await?;
    let doctor = run_after(dir.path(), humbly, "doctor").await?;
    fs::set_permissions(&data, Permissions::from_mode(0o700))?;
    assert_eq!(closed.code, Some(2), "{}", closed.stderr);
    let told = closed.stderr.as_str();
    assert!(told.contains("let the hub's user write") && !told.contains("backup"), "{told}");
    assert_eq!(doctor.code, Some(2), "{}", doctor.stdout);
    assert!(doctor.stdout.contains("fail  data"), "{}", doctor.stdout);
    Ok(())
}
