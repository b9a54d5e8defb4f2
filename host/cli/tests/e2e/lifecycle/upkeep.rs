//! Tests of operating a running hub: changed settings, a restart, an immediate shutdown, and a
//! hanging hub.

mod surroundings;

use crate::{
    command_line::{Ran, command, finish, run},
    stage::{
        GRANT, artifact, eventually, get, home, hub_with_guest, no_program_left, said, send, state,
        stream, until,
    },
};
use a2a_hub_tests::{Client, TestHub, message_to, test_guests};
use anyhow::{Context as _, Result};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::{fs, os::unix::fs::PermissionsExt as _, path::Path, process::Stdio, time::Duration};
use tokio::{
    io::AsyncWriteExt as _,
    net::TcpStream,
    process::Command,
    time::{Instant, sleep},
};

const SOON: Duration = Duration::from_secs(10);

fn signal(pid: u32, signal: Signal) -> Result<()> {
    Ok(kill_process(Pid::from_raw(i32::try_from(pid)?).context("no pid")?, signal)?)
}

/// Configuration of the guest without permission to run programs.
fn without_programs() -> String {
    GRANT.lines().filter(|line| !line.contains("grant.process")).collect::<Vec<_>>().join("\n")
}

async fn reload(client: &Client) -> Result<Value> {
    Ok(client.call("hub/reload", json!({})).await?)
}

async fn ids(client: &Client) -> Result<Vec<String>> {
    let agents = client.call("hub/agents/list", json!({})).await?;
    let ids = agents.as_array().context("no list")?.iter().filter_map(|it| it["id"].as_str());
    Ok(ids.map(str::to_owned).collect())
}

#[tokio::test]
async fn reload_applies_and_revokes_grants() -> Result<()> {
    let hub = TestHub::builder().config(without_programs());
    let hub = hub.plugin("guest", test_guests()?).start().await?;
    let client = Client::http(&hub);
    assert_eq!(reload(&client).await?, json!({ "changed": [], "needsRestart": [], "leftOut": [] }));
    let denied = send(&client, "guest", "sh echo hi").await?;
    assert!(said(&denied).starts_with("denied"), "{denied}");

    hub.configure(GRANT)?;
    let shown = run(&hub, &["reload"]).await?;
    assert_eq!(shown.code, Some(0), "{}", shown.stderr);
    assert!(shown.stdout.starts_with("changed: agents.guest.grant.process"), "{}", shown.stdout);
    let (id, mut updates) = stream(&client, "guest", "sh echo begun; sleep 60; echo done").await?;
    until(&mut updates, |event| event["kind"] == "artifact-update").await?;

    hub.configure(&without_programs())?;
    reload(&client).await?;
    let denied = send(&client, "guest", "sh echo hi").await?;
    assert!(said(&denied).starts_with("denied"), "{denied}");
    updates.rest().await?;
    let task = get(&client, &id).await?;
    assert!(said(&task).contains("revoked by the operator"), "{task}");
    assert_eq!(
        (state(&task), artifact(&task).as_str()),
        ("completed", "begun\n"),
        "the guest tells it as its answer"
    );
    Ok(())
}

#[tokio::test]
async fn sighup_reloads_the_configuration() -> Result<()> {
    let quiet = format!("{GRANT}\n[logging]\nlevel = \"error\"");
    let hub = TestHub::builder().config(quiet).plugin("guest", test_guests()?).start().await?;
    let client = Client::unix(&hub);
    let mut events = client.stream("hub/events", json!({})).await?;
    let (id, mut updates) = stream(&client, "guest", "tick 100 20").await?;
    until(&mut updates, |event| event["kind"] == "artifact-update").await?;
    hub.configure(&format!("max_tasks = 7\n{GRANT}"))?;
    signal(hub.pid(), Signal::HUP)?;
    let told = until(&mut events, |event| event["type"] == "config-reloaded").await?;
    assert_eq!(told["changed"], json!(["logging.level"]), "{told}");
    assert_eq!(told["needsRestart"], json!(["max_tasks"]), "{told}");
    // The new level is effective: messages below error are logged.
    eventually(SOON, || hub.log().contains("configuration reloaded")).await?;
    updates.rest().await?;
    assert_eq!(state(&get(&client, &id).await?), "completed", "no task notices");
    Ok(())
}

#[tokio::test]
async fn invalid_configuration_is_refused_on_reload() -> Result<()> {
    let hub = hub_with_guest().await?;
    let bad = [
        ("[agents.guest]\nenabeld = true", "did you mean `agents.guest.enabled`?"),
        ("[agents.guest", "line 2, column 14: the section's name is not closed"),
        ("workspaces = [\"/dev/null\"]", "use the workspace /dev/null"),
    ];
    for (text, why) in bad {
        hub.configure(&format!("default_agent = \"guest\"\n{text}"))?;
        let refused = run(&hub, &["reload"]).await?;
        assert_eq!(refused.code, Some(2), "{}", refused.stdout);
        let told = refused.stderr.as_str();
        assert!(told.contains(why) && told.contains("nothing was changed"), "{told}");
        assert_eq!(said(&send(&Client::http(&hub), "guest", "sh true").await?), "exit 0");
    }
    signal(hub.pid(), Signal::HUP)?;
    eventually(SOON, || hub.log().contains("configuration reload failed")).await?;
    assert_eq!(said(&send(&Client::http(&hub), "echo", "hello").await?), "hello");
    Ok(())
}

#[tokio::test]
async fn reload_adds_and_removes_agents() -> Result<()> {
    let there = TestHub::start().await?;
    let hub = hub_with_guest().await?;
    let client = Client::http(&hub);
    let elsewhere = format!("[remote.far]\nurl = \"http://{}/agents/echo\"\n", there.http());
    let disabled = "[agents.echo]\nenabled = false\n";
    hub.configure(&format!(
        "max_tasks = 7\ndefault_agent = \"guest\"\n{GRANT}{disabled}{elsewhere}"
    ))?;
    let told = reload(&client).await?;
    assert_eq!(told["changed"], json!(["agents.echo.enabled", "default_agent", "remote.far"]));
    assert_eq!(told["needsRestart"], json!(["max_tasks"]), "{told}");
    let shown = run(&hub, &["reload"]).await?.stdout;
    assert_eq!(shown, "needs `a2a-hub restart`: max_tasks\n");
    let listed = ids(&client).await?;
    assert!(
        listed.contains(&"far".to_owned()) && !listed.contains(&"echo".to_owned()),
        "{listed:?}"
    );
    let mut unnamed = message_to("guest", "reply hi");
    unnamed["message"]["metadata"] = json!({});
    assert_eq!(client.call("message/send", unnamed).await?["parts"][0]["text"], "hi");

    hub.configure(&format!("{GRANT}[agents.far]\nhistory = 1\n"))?;
    reload(&client).await?;
    let listed = ids(&client).await?;
    assert!(
        !listed.contains(&"far".to_owned()) && listed.contains(&"echo".to_owned()),
        "{listed:?}"
    );

    hub.configure(&GRANT.replace("max_running = 100", "max_running = 100\nsha256 = \"00\""))?;
    let pinned = run(&hub, &["reload"]).await?;
    assert_eq!(pinned.code, Some(2));
    assert!(pinned.stdout.contains("left out: guest: its SHA-256"), "{}", pinned.stdout);
    assert!(!ids(&client).await?.contains(&"guest".to_owned()), "another component than is pinned");
    hub.configure(GRANT)?;
    reload(&client).await?;
    assert_eq!(said(&send(&client, "guest", "sh true").await?), "exit 0");
    Ok(())
}

/// Runs a command in a home directory whose hub runs in the background.
async fn at(home: &Path, args: &[&str]) -> Result<Ran> {
    finish(command(&home.join("hub.sock"), home, args)?).await
}

fn running(home: &Path) -> Result<Value> {
    Ok(serde_json::from_str(&fs::read_to_string(home.join(".a2a-hub/run.json"))?)?)
}

#[tokio::test]
async fn restart_keeps_original_arguments() -> Result<()> {
    let dir = home()?;
    let (home, data) = (dir.path(), dir.path().join(".a2a-hub"));
    fs::create_dir_all(home.join("work"))?;
    let none = at(home, &["restart"]).await?;
    assert_eq!(none.code, Some(2));
    assert!(none.stderr.contains("a2a-hub start"), "{}", none.stderr);
    let started = at(home, &["start", "--http-port", "0", "--workspace", "work"]).await?;
    assert_eq!(started.code, Some(0), "{}", started.stderr);
    assert_eq!(at(home, &["send", "echo", "before"]).await?.code, Some(0));
    let before = running(home)?;

    fs::write(data.join("config.toml"), "[http]\nhost = \"0.0.0.0\"")?;
    let refused = at(home, &["restart"]).await?;
    assert_eq!(refused.code, Some(2));
    assert!(
        refused.stderr.contains("everybody on the way would read plain HTTP"),
        "{}",
        refused.stderr
    );
    assert_eq!(running(home)?["pid"], before["pid"], "it runs on");

    fs::write(data.join("config.toml"), "[http]\nhost = \"::1\"")?;
    // A start would refuse a file that others may write; the restart refuses it before the stop.
    let grants = data.join("grants.toml");
    fs::write(&grants, "")?;
    fs::set_permissions(&grants, fs::Permissions::from_mode(0o666))?;
    let refused = at(home, &["restart"]).await?;
    assert_eq!(refused.code, Some(2));
    assert!(refused.stderr.contains("the running hub is unchanged: use "), "{}", refused.stderr);
    assert!(refused.stderr.contains("chmod go-w"), "{}", refused.stderr);
    assert_eq!(running(home)?["pid"], before["pid"], "it runs on");
    fs::remove_file(grants)?;
    let restarted = at(home, &["restart"]).await?;
    assert_eq!(restarted.code, Some(0), "{}", restarted.stderr);
    let after = running(home)?;
    assert_ne!(after["pid"], before["pid"]);
    assert!(after["http"].as_str().is_some_and(|at| at.starts_with("[::1]:")), "{after}");
    assert_eq!(after["arguments"], before["arguments"]);
    let tasks = at(home, &["tasks"]).await?.stdout;
    assert!(tasks.contains("before"), "{tasks}");
    assert_eq!(at(home, &["stop"]).await?.code, Some(0));
    Ok(())
}

#[tokio::test]
async fn restart_refuses_foreground_hub() -> Result<()> {
    let hub = hub_with_guest().await?;
    let data = hub.data_dir().display().to_string();
    let refused = run(&hub, &["--data-dir", &data, "restart"]).await?;
    assert_eq!(refused.code, Some(2));
    assert!(refused.stderr.contains("runs in the foreground"), "{}", refused.stderr);
    assert_eq!(said(&send(&Client::http(&hub), "echo", "hello").await?), "hello");
    Ok(())
}

/// A client that never completes its request and a program that ignores signals delay the first
/// shutdown, but not the second; cancelled tasks are recorded in either case.
#[tokio::test]
async fn second_signal_stops_hub_at_once() -> Result<()> {
    // The first signal drains or cancels the running tasks; the second arrives during either.
    for drain in ["60000", "0"] {
        let hub = TestHub::builder().config(GRANT).plugin("guest", test_guests()?);
        let mut hub = hub.env("A2A_HUB_STOP_DRAIN_MS", drain).start().await?;
        let (id, mut updates) =
            stream(&Client::http(&hub), "guest", "sh trap '' TERM; echo begun; sleep 600").await?;
        until(&mut updates, |event| event["kind"] == "artifact-update").await?;
        let host = hub.http().to_owned();
        let mut client = TcpStream::connect(&host).await?;
        let head = format!(
            "POST / HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n"
        );
        client.write_all(head.as_bytes()).await?;
        sleep(Duration::from_millis(300)).await;
        signal(hub.pid(), Signal::TERM)?;
        sleep(Duration::from_millis(300)).await;
        let begun = Instant::now();
        hub.stop().await?;
        let took = begun.elapsed();
        assert!(took < Duration::from_millis(1_500), "{drain}: {took:?}");
        no_program_left(&hub.data_dir(), SOON).await?;
        drop(client);
        let stopped = fs::read_to_string(hub.data_dir().join("stopped.json"))?;
        assert!(stopped.contains(&id), "{drain}: {stopped}");
        hub.restart().await?;
        let task = get(&Client::http(&hub), &id).await?;
        let told = (state(&task), &task["metadata"]["reason"], artifact(&task));
        assert_eq!(told, ("failed", &json!("hub_stopped"), "begun\n".to_owned()), "{drain}");
    }
    Ok(())
}

#[tokio::test]
async fn hanging_hub_is_detected_and_killed() -> Result<()> {
    let mut hub = hub_with_guest().await?;
    let (id, mut updates) = stream(&Client::http(&hub), "guest", "sh sleep 600").await?;
    until(&mut updates, |event| event["status"]["state"] == "working").await?;
    let data = hub.data_dir().display().to_string();
    signal(hub.pid(), Signal::STOP)?;
    let begun = Instant::now();
    let asked = [
        &["status"][..],
        &["agents"],
        &["send", "echo", "hello"],
        &["tasks"],
        &["task", "cancel", &id],
        &["contexts"],
        &["deliveries"],
        &["reload"],
        &["restart"],
        &["stop"],
    ];
    let ran = futures::future::try_join_all(asked.map(|args| run(&hub, args))).await?;
    for (args, ran) in asked.iter().zip(ran) {
        assert_eq!(ran.code, Some(2), "{args:?}: {}", ran.stdout);
        assert!(ran.stderr.contains("a2a-hub stop --force"), "{args:?}: {}", ran.stderr);
    }
    assert!(begun.elapsed() < Duration::from_secs(15), "{:?}", begun.elapsed());
    let doctor = run(&hub, &["--data-dir", &data, "doctor"]).await?;
    assert!(doctor.stdout.contains("fail  hub"), "{}", doctor.stdout);

    let killed = run(&hub, &["--data-dir", &data, "stop", "--force"]).await?;
    assert_eq!(killed.code, Some(0), "{}", killed.stderr);
    assert!(killed.stdout.contains("the hub was killed"), "{}", killed.stdout);
    no_program_left(&hub.data_dir(), SOON).await?;
    let again = run(&hub, &["--data-dir", &data, "stop", "--force"]).await?;
    assert_eq!(again.code, Some(0), "{}", again.stderr);
    assert!(again.stdout.contains("no hub uses the data directory"), "{}", again.stdout);
    hub.restart().await?;
    let task = get(&Client::http(&hub), &id).await?;
    assert_eq!((state(&task), &task["metadata"]["reason"]), ("failed", &json!("hub_restarted")));
    Ok(())
}

/// A process whose id an old lock file contains is not a hub.
#[tokio::test]
async fn force_stop_never_kills_other_process() -> Result<()> {
    let dir = home()?;
    let data = dir.path().join(".a2a-hub");
    fs::create_dir_all(&data)?;
    #[expect(clippy::disallowed_methods, reason = "a process that is none of the hub's")]
    let mut bystander =
        Command::new("sleep").arg("60").stdin(Stdio::null()).kill_on_drop(true).spawn()?;
    fs::write(data.join("hub.lock"), format!("{}\n", bystander.id().context("it ended")?))?;
    let none = at(dir.path(), &["stop", "--force"]).await?;
    assert_eq!(none.code, Some(0), "{}", none.stderr);
    assert!(none.stdout.starts_with("the hub is not running"), "{}", none.stdout);
    let held = fs::File::open(data.join("hub.lock"))?;
    held.lock()?;
    let refused = at(dir.path(), &["stop", "--force"]).await?;
    assert_eq!(refused.code, Some(2), "{}", refused.stdout);
    assert!(refused.stderr.contains("not by the process that it names"), "{}", refused.stderr);
    assert!(bystander.try_wait()?.is_none(), "it lives");
    Ok(())
}

#[tokio::test]
async fn force_stop_lets_responsive_hub_exit() -> Result<()> {
    let dir = home()?;
    assert_eq!(at(dir.path(), &["start", "--no-http"]).await?.code, Some(0));
    let stopped = at(dir.path(), &["stop", "--force"]).await?;
    assert_eq!((stopped.code, stopped.stdout.as_str()), (Some(0), "the hub is stopped\n"));
    assert!(!dir.path().join(".a2a-hub/run.json").exists(), "it tidied up");
    Ok(())
}

/// `script` provides the hub's terminal, which disappears with it.
#[tokio::test]
async fn closed_terminal_stops_foreground_hub() -> Result<()> {
    let dir = home()?;
    let socket = dir.path().join("hub.sock");
    let hub = a2a_hub_tests::hub_binary()?;
    let line =
        format!("{} --socket {} start --foreground --no-http", hub.display(), socket.display());
    #[expect(clippy::disallowed_methods, reason = "a terminal as a user has it")]
    let mut terminal = Command::new("script");
    terminal
        .args(["-qc", &line, "/dev/null"])
        .env("HOME", dir.path())
        .env("A2A_HUB_STOP_DRAIN_MS", "0");
    terminal.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
    let mut terminal = terminal.spawn()?;
    eventually(Duration::from_secs(60), || running(dir.path()).is_ok()).await?;
    terminal.kill().await?;
    eventually(SOON, || !dir.path().join(".a2a-hub/run.json").exists()).await
}

#[tokio::test]
async fn deleted_workspace_is_warning() -> Result<()> {
    let mut hub = hub_with_guest().await?;
    hub.stop().await?;
    hub.configure(&format!("workspaces = [\"/nowhere/to/work\"]\n{GRANT}"))?;
    hub.restart().await?;
    let status = run(&hub, &["status"]).await?;
    let why = "the workspace /nowhere/to/work does not exist";
    assert!(status.stdout.contains(why), "{}", status.stdout);
    // Nothing took its place: the agent has no wider rights.
    let sent = run(&hub, &["send", "guest", "sh pwd", "--cwd", "/usr"]).await?;
    assert!(sent.stdout.contains("outside the granted workspaces"), "{sent:?}");
    let config = hub.home().join("other.toml");
    fs::write(&config, "agents.echo.workspaces = [\"/nowhere/to/work\"]")?;
    let config = config.to_str().context("no UTF-8")?;
    let checked = run(&hub, &["--config", config, "config", "check"]).await?;
    assert_eq!(checked.code, Some(0), "{}{}", checked.stdout, checked.stderr);
    assert!(checked.stderr.contains(why), "{}", checked.stderr);
    Ok(())
}
