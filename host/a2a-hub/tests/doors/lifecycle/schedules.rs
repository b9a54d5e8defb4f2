//! Tests of schedules: the messages that the hub sends at planned times, by a clock of the tests.

use crate::{
    hub::InProcessHub,
    stage::{GRANT, eventually_async, get, said, state},
};
use a2a_hub_tests::{Client, tenants::Web, test_guests};
use anyhow::{Context as _, Result, ensure};
use jiff::Timestamp;
use serde_json::{Value, json};
use std::{
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

/// Limit of a wait for the hub's next look at the clock.
const SOON: Duration = Duration::from_secs(60);

const NIGHTLY: &str = "
    [schedule.nightly]
    cron = '0 3 * * *'
    zone = 'UTC'
    agent = 'echo'
    message = 'hello'
    permissions = 'read-only'
    budget = { tasks = 5, depth = 1 }
";

/// A clock that the test sets.
#[derive(Clone)]
struct TestClock(Arc<AtomicI64>);

impl TestClock {
    fn at(time: &str) -> Result<Self> {
        let clock = Self(Arc::default());
        clock.set(time)?;
        Ok(clock)
    }

    fn set(&self, time: &str) -> Result<()> {
        self.0.store(time.parse::<Timestamp>()?.as_second(), Ordering::Relaxed);
        Ok(())
    }

    async fn hub(&self, config: &str) -> Result<InProcessHub> {
        let now = Arc::clone(&self.0);
        let clock = move || {
            Timestamp::from_second(now.load(Ordering::Relaxed)).unwrap_or(Timestamp::UNIX_EPOCH)
        };
        let hub = InProcessHub::builder().config(config).clock(Arc::new(clock));
        hub.plugin("guest", test_guests()?).start().await
    }
}

async fn schedule(client: &Client, name: &str) -> Result<Value> {
    let all = client.call("hub/schedules/list", json!({})).await?;
    let mut all = all.as_array().cloned().unwrap_or_default().into_iter();
    all.find(|it| it["name"] == name).with_context(|| format!("no schedule {name}"))
}

/// Waits until the latest run of a schedule is that of the planned time, in this state.
async fn ran(client: &Client, name: &str, planned: &str, wanted: &str) -> Result<Value> {
    let is_so = async || {
        let found = schedule(client, name).await.unwrap_or_default();
        found["last"]["planned"] == planned && found["last"]["state"] == wanted
    };
    let waited = eventually_async(SOON, is_so).await;
    let found = schedule(client, name).await?;
    waited.with_context(|| format!("{planned} {wanted}: {found}"))?;
    get(client, found["last"]["task"].as_str().context("no task")?).await
}

/// Tasks of all schedules so far.
async fn tasks(client: &Client) -> Result<usize> {
    let all = client.call("hub/tasks/list", json!({ "limit": 100 })).await?;
    Ok(all.as_array().context("no list")?.len())
}

#[tokio::test]
async fn planned_time_starts_one_task() -> Result<()> {
    let clock = TestClock::at("2026-06-01T02:59:50Z")?;
    let mut hub = clock.hub(NIGHTLY).await?;
    let client = Client::http(&hub);
    let fresh = schedule(&client, "nightly").await?;
    assert_eq!((&fresh["next"], fresh.get("last")), (&json!("2026-06-01T03:00:00+00:00"), None));
    clock.set("2026-06-01T03:00:01Z")?;
    let task = ran(&client, "nightly", "2026-06-01T03:00:00+00:00", "completed").await?;
    let planned = "2026-06-01T03:00:00.000Z";
    let run = json!({ "name": "nightly", "planned": planned, "answers": "deny" });
    assert_eq!((said(&task), &task["metadata"]["schedule"]), ("hello", &run), "{task}");
    let message = &task["history"][0];
    assert_eq!(message["messageId"], format!("schedule:nightly:{planned}"));
    assert_eq!(message["metadata"]["permissions"], "read-only");
    assert_eq!(message["metadata"]["budget"], json!({ "tasks": 5, "depth": 1 }));

    // Neither a clock that goes back nor a restart starts it again.
    clock.set("2026-06-01T02:30:00Z")?;
    hub.restart().await?;
    clock.set("2026-06-01T03:00:30Z")?;
    let client = Client::http(&hub);
    // Three missed times get one run.
    clock.set("2026-06-04T09:00:00Z")?;
    ran(&client, "nightly", "2026-06-04T03:00:00+00:00", "completed").await?;
    let found = schedule(&client, "nightly").await?;
    assert_eq!(found["note"], "2 earlier planned times were missed, and got no run");
    assert_eq!(tasks(&client).await?, 2, "{found}");
    Ok(())
}

/// A kill after the creation of the task leaves the planned time due, and the task in the store.
#[tokio::test]
async fn planned_time_finds_its_task_again() -> Result<()> {
    let clock = TestClock::at("2026-06-01T02:59:50Z")?;
    let config = format!("idempotency_window_ms = 0\n{NIGHTLY}");
    let mut hub = clock.hub(&config).await?;
    clock.set("2026-06-01T03:00:01Z")?;
    let planned = "2026-06-01T03:00:00+00:00";
    let first = ran(&Client::http(&hub), "nightly", planned, "completed").await?;
    hub.stop().await?;
    let db = rusqlite::Connection::open(hub.data_dir().join("hub.db"))?;
    let before = r#"{"rule":"0 3 * * * in UTC","doneUntilMs":1780282790000}"#;
    assert_eq!(db.execute("UPDATE schedules SET state = ?1", [before])?, 1);
    drop(db);
    hub.restart().await?;
    let client = Client::http(&hub);
    let again = ran(&client, "nightly", planned, "completed").await?;
    assert_eq!((&again["id"], tasks(&client).await?), (&first["id"], 1));
    Ok(())
}

#[tokio::test]
async fn paused_schedule_starts_no_task() -> Result<()> {
    let clock = TestClock::at("2026-06-01T02:59:50Z")?;
    let mut hub = clock.hub(NIGHTLY).await?;
    let name = json!({ "name": "nightly" });
    let paused = Client::http(&hub).call("hub/schedules/pause", name.clone()).await?;
    assert_eq!((&paused["paused"], paused.get("next")), (&json!(true), None));
    hub.restart().await?;
    let client = Client::http(&hub);
    assert_eq!(schedule(&client, "nightly").await?["paused"], true, "also after a restart");
    clock.set("2026-06-03T12:00:00Z")?;
    let run = client.call("hub/schedules/run", name.clone()).await?;
    assert_eq!(run["metadata"]["schedule"]["planned"], "2026-06-03T12:00:00.000Z");
    let resumed = client.call("hub/schedules/resume", name).await?;
    assert_eq!(resumed["next"], "2026-06-04T03:00:00+00:00");
    clock.set("2026-06-04T03:00:05Z")?;
    ran(&client, "nightly", "2026-06-04T03:00:00+00:00", "completed").await?;
    assert_eq!(tasks(&client).await?, 2, "the pause missed nothing");
    let unknown = client.call("hub/schedules/pause", json!({ "name": "nightl" })).await;
    let why = unknown.err().context("it is unknown")?.to_string();
    ensure!(why.contains("no schedule is called `nightl`; did you mean `nightly`?"), "{why}");
    Ok(())
}

/// Schedules whose task asks a person: nobody answers, or the operator does.
#[tokio::test]
async fn question_is_denied_or_waits() -> Result<()> {
    let clock = TestClock::at("2026-06-01T02:59:50Z")?;
    let asking = NIGHTLY.replace("'echo'", "'guest'").replace("'hello'", "'ask'");
    let inbox = asking.replace("nightly", "inbox") + "answers = 'inbox'\noverlap = 'queue'\n";
    let hub = clock.hub(&format!("{GRANT}\n{asking}\n{inbox}")).await?;
    let client = Client::http(&hub);
    clock.set("2026-06-01T03:00:01Z")?;
    let planned = "2026-06-01T03:00:00+00:00";
    let denied = ran(&client, "nightly", planned, "failed").await?;
    assert_eq!(denied["metadata"]["reason"], "timeout", "{denied}");
    let waits = ran(&client, "inbox", planned, "input-required").await?;

    // The next run waits for the one that asks.
    clock.set("2026-06-02T03:00:01Z")?;
    let queued = async || {
        let found = schedule(&client, "inbox").await.unwrap_or_default();
        found["queued"] == "2026-06-02T03:00:00+00:00"
    };
    eventually_async(SOON, queued).await?;
    let mut answer = a2a_hub_tests::message_to("guest", "blue");
    answer["message"]["taskId"] = waits["id"].clone();
    assert_eq!(state(&client.call("message/send", answer).await?), "completed");
    ran(&client, "inbox", "2026-06-02T03:00:00+00:00", "input-required").await?;
    Ok(())
}

/// The schedule waits for the run that starts again, and counts no other one.
#[tokio::test]
async fn stopped_hub_starts_run_again_once() -> Result<()> {
    let clock = TestClock::at("2026-06-01T02:59:50Z")?;
    let ticking = NIGHTLY.replace("'echo'", "'guest'").replace("'hello'", "'tick 60 50'");
    let fails = ticking.replace("nightly", "fails") + "on_restart = 'fail'\n";
    let mut hub = clock.hub(&format!("{GRANT}\n{ticking}\n{fails}")).await?;
    clock.set("2026-06-01T03:00:01Z")?;
    let planned = "2026-06-01T03:00:00+00:00";
    for name in ["nightly", "fails"] {
        ran(&Client::http(&hub), name, planned, "working").await?;
    }
    hub.restart().await?;
    let client = Client::http(&hub);
    let task = ran(&client, "nightly", planned, "completed").await?;
    let failed = ran(&client, "fails", planned, "failed").await?;
    assert_eq!(failed["metadata"]["reason"], "hub_stopped", "{failed}");
    assert_eq!(failed["metadata"]["schedule"]["onRestart"], "fail", "{failed}");
    let rules = [schedule(&client, "nightly").await?, schedule(&client, "fails").await?];
    assert_eq!(rules.map(|it| it["onRestart"].clone()), [json!("again"), json!("fail")]);
    let again = task["history"].as_array().context("no history")?;
    let first = format!("schedule:nightly:{}", "2026-06-01T03:00:00.000Z");
    ensure!(again.iter().any(|it| it["messageId"] == format!("{first}:again")), "{task}");
    assert_eq!(tasks(&client).await?, 2, "{task}");
    Ok(())
}

#[tokio::test]
async fn overlapping_run_is_skipped_or_replaced() -> Result<()> {
    let clock = TestClock::at("2026-06-01T02:59:50Z")?;
    let asking = NIGHTLY.replace("'echo'", "'guest'").replace("'hello'", "'ask'");
    let skip = format!("{asking}answers = 'inbox'\n");
    let replace = skip.replace("nightly", "replacing") + "overlap = 'replace'\n";
    let hub = clock.hub(&format!("{GRANT}\n{skip}\n{replace}")).await?;
    let client = Client::http(&hub);
    clock.set("2026-06-01T03:00:01Z")?;
    let planned = "2026-06-01T03:00:00+00:00";
    let first = ran(&client, "replacing", planned, "input-required").await?;
    ran(&client, "nightly", planned, "input-required").await?;
    clock.set("2026-06-02T03:00:01Z")?;
    ran(&client, "replacing", "2026-06-02T03:00:00+00:00", "input-required").await?;
    let replaced = get(&client, first["id"].as_str().context("no id")?).await?;
    assert_eq!(state(&replaced), "canceled");
    let skipped = async || {
        let note = schedule(&client, "nightly").await.unwrap_or_default()["note"].clone();
        note == "2026-06-02T03:00:00+00:00 got no run: the one before it was still at work"
    };
    eventually_async(SOON, skipped).await?;
    Ok(())
}

#[tokio::test]
async fn reload_adds_schedule_and_names_unknown_agent() -> Result<()> {
    let clock = TestClock::at("2026-06-01T02:59:50Z")?;
    let hub = clock.hub("").await?;
    let client = Client::http(&hub);
    assert_eq!(client.call("hub/schedules/list", json!({})).await?, json!([]));
    hub.configure(&NIGHTLY.replace("'echo'", "'ecko'"))?;
    let told = client.call("hub/reload", json!({})).await?;
    assert_eq!(told["needsRestart"], json!([]), "{told}");
    let why =
        "the schedule `nightly` cannot start: no agent is called `ecko`; did you mean `echo`?";
    let found = schedule(&client, "nightly").await?;
    ensure!(found["warning"].as_str().is_some_and(|it| it.contains(why)), "{found}");
    let status = client.call("hub/status", json!({})).await?;
    ensure!(status["warnings"].to_string().contains(why), "{status}");

    hub.configure(NIGHTLY)?;
    client.call("hub/reload", json!({})).await?;
    clock.set("2026-06-01T03:00:01Z")?;
    ran(&client, "nightly", "2026-06-01T03:00:00+00:00", "completed").await?;
    let invalid = NIGHTLY.replace("0 3 * * *", "0 3 * *");
    hub.configure(&invalid)?;
    let refused = client.call("hub/reload", json!({})).await.err().context("it is invalid")?;
    ensure!(refused.to_string().contains("has 4 fields and needs five"), "{refused}");
    Ok(())
}

/// A schedule of ada: it begins its tasks as she, in her tenant, and passes to bob once he accepts.
#[tokio::test]
async fn owned_schedule_runs_as_its_owner() -> Result<()> {
    let clock = TestClock::at("2026-06-01T02:59:50Z")?;
    let owned = NIGHTLY.replace("'echo'", "'guest'").replace("'hello'", "'ask'");
    let config = format!(
        "[tenants.acme]\n[agents.guest]\naliases = ['helper']\n{owned}\nanswers = 'inbox'\nowner = 'ada'\n"
    );
    let mut hub = clock.hub(&config).await?;
    let client = Client::unix(&hub);
    let fresh = schedule(&client, "nightly").await?;
    assert_eq!(fresh["owner"], "ada");
    let warning = fresh["warning"].as_str().context("no warning")?;
    ensure!(warning.contains("its owner `ada` was removed, or was never added"), "{warning}");
    let held = client.call("hub/schedules/run", json!({ "name": "nightly" })).await;
    ensure!(held.unwrap_err().to_string().contains("a2a-hub person add ada"));
    clock.set("2026-06-01T03:00:01Z")?;
    noted(&client, "2026-06-01T03:00:00+00:00 got no run: its owner `ada`").await?;
    let health = reqwest::get(format!("http://{}/health", hub.http())).await?.text().await?;
    ensure!(health.contains("because of their owners: 1") && !health.contains("ada"), "{health}");

    for (name, role) in [("ada", "viewer"), ("bob", "member"), ("eve", "member")] {
        let person = json!({ "name": name, "role": role, "tenant": "acme" });
        client.call("hub/people/add", person).await?;
    }
    clock.set("2026-06-02T03:00:01Z")?;
    noted(&client, "ada is a viewer here, who may not send messages that begin tasks").await?;
    client.call("hub/people/role", json!({ "name": "ada", "role": "member" })).await?;
    clock.set("2026-06-03T03:00:01Z")?;
    let key = async |name: &str, scopes: &[&str]| -> Result<Web> {
        let made = json!({ "person": name, "scopes": scopes });
        let made = client.call("hub/keys/new", made).await?;
        Ok(Web::of(&hub, format!("Bearer {}", made["secret"].as_str().context("no key")?)))
    };
    let ada = key("ada", &[]).await?;
    let first = waiting_task(&client, "2026-06-03T03:00:00+00:00").await?;
    let task = ada.call("/", "tasks/get", json!({ "id": first })).await?;
    assert_eq!(task["result"]["id"], first, "it belongs to her tenant: {task}");
    let seen = ada.call("/", "hub/schedules/list", json!({})).await?;
    assert_eq!(seen["result"][0]["name"], "nightly", "{seen}");
    client.call("hub/people/add", json!({ "name": "zoe", "role": "owner" })).await?;
    let zoe = key("zoe", &[]).await?;
    let unseen = zoe.call("/", "hub/schedules/list", json!({})).await?;
    assert_eq!(unseen["result"], json!([]), "it is of another tenant");

    let removal = |dry_run: bool| json!({ "name": "ada", "to": "bob", "dryRun": dry_run });
    let effects = client.call("hub/people/remove", removal(true)).await?;
    assert_eq!(effects["automation"], json!(["nightly"]), "{effects}");
    assert_eq!((&effects["tasks"], &effects["removed"]), (&json!([first]), &json!(false)));
    let cancelled = ada.call("/", "tasks/cancel", json!({ "id": first })).await?;
    assert_eq!(cancelled["result"]["status"]["state"], "canceled", "it is hers: {cancelled}");
    client.call("hub/people/remove", removal(false)).await?;
    hub.restart().await?;
    let client = Client::unix(&hub);
    let offered = schedule(&client, "nightly").await?;
    assert_eq!((&offered["owner"], &offered["offered"]), (&json!("bob"), &json!(true)));
    clock.set("2026-06-04T03:00:01Z")?;
    noted(&client, "it waits until bob accepts it: `a2a-hub schedule accept nightly`").await?;
    let key = async |name: &str, scopes: &[&str]| -> Result<Web> {
        let made = json!({ "person": name, "scopes": scopes });
        let made = client.call("hub/keys/new", made).await?;
        Ok(Web::of(&hub, format!("Bearer {}", made["secret"].as_str().context("no key")?)))
    };
    let name = json!({ "name": "nightly" });
    for (person, scopes, why) in [
        ("eve", &[][..], "it passed to bob"),
        ("zoe", &[][..], "no schedule is called `nightly`"),
        ("bob", &["read"][..], "it lacks the scope `send`"),
        ("bob", &["send:echo"][..], "sends messages to `echo` only"),
    ] {
        let by = key(person, scopes).await?;
        let refused = by.call("/", "hub/schedules/accept", name.clone()).await?;
        let said = refused["error"]["message"].as_str().unwrap_or_default();
        ensure!(said.contains(why), "{person}: {refused}");
    }
    // A key may name an alias of the agent.
    let bob = key("bob", &["read", "send:helper", "cancel"]).await?;
    let accepted = bob.call("/", "hub/schedules/accept", name).await?;
    assert_eq!(accepted["result"]["owner"], "bob", "{accepted}");
    clock.set("2026-06-05T03:00:01Z")?;
    let second = waiting_task(&client, "2026-06-05T03:00:00+00:00").await?;
    let cancelled = bob.call("/", "tasks/cancel", json!({ "id": second })).await?;
    assert_eq!(cancelled["result"]["status"]["state"], "canceled", "{cancelled}");
    Ok(())
}

/// Waits until the note of the schedule `nightly` contains this text.
async fn noted(client: &Client, text: &str) -> Result<()> {
    let note = async || schedule(client, "nightly").await.unwrap_or_default()["note"].to_string();
    let waited = eventually_async(SOON, async || note().await.contains(text)).await;
    let note = note().await;
    waited.with_context(|| format!("{text}: {note}"))
}

/// Waits until the run of the planned time asks; returns its task.
async fn waiting_task(client: &Client, planned: &str) -> Result<Value> {
    let last = async || schedule(client, "nightly").await.unwrap_or_default()["last"].take();
    let asks = async || {
        let last = last().await;
        last["planned"] == planned && last["state"] == "input-required"
    };
    let waited = eventually_async(SOON, asks).await;
    let last = last().await;
    waited.with_context(|| format!("{planned}: {last}"))?;
    Ok(last["task"].clone())
}
