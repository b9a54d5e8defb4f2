//! Tests of the command line as users type it.

use crate::stage::{
    GRANT, eventually_async, get, home, hub_with_guest, no_program_left, stream, until,
};
use a2a_hub_tests::{Client, TestHub, hub_binary, test_guests};
use anyhow::{Context as _, Result};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::{
    fs::DirBuilder,
    io::Write as _,
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::Path,
    process::Stdio,
    time::Duration,
};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader},
    process::Command,
    time::timeout,
};

/// Result of a command.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

#[expect(clippy::disallowed_methods, reason = "the command is typed as a user would")]
pub(crate) fn command(socket: &Path, home: &Path, args: &[&str]) -> Result<Command> {
    let mut command = Command::new(hub_binary()?);
    command.arg("--socket").arg(socket).args(args);
    command.env_clear().env("HOME", home).env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.current_dir(home).kill_on_drop(true);
    Ok(command)
}

pub(crate) async fn finish(command: Command) -> Result<Ran> {
    finish_within(Duration::from_secs(60), command).await
}

pub(crate) async fn finish_within(patience: Duration, mut command: Command) -> Result<Ran> {
    let output = timeout(patience, command.output()).await.context("it hangs")??;
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    let (stdout, stderr) = (text(output.stdout), text(output.stderr));
    Ok(Ran { code: output.status.code(), stdout, stderr })
}

/// Runs `a2a-hub` against a hub.
pub(crate) async fn run(hub: &TestHub, args: &[&str]) -> Result<Ran> {
    let mut command = command(hub.socket(), &hub.home(), args)?;
    command.current_dir(hub.workspace());
    finish(command).await
}

#[tokio::test]
async fn send_prints_only_the_answer() -> Result<()> {
    let hub = hub_with_guest().await?;
    let ran = run(&hub, &["send", "echo", "hello there"]).await?;
    assert_eq!(
        (ran.code, ran.stdout.as_str(), ran.stderr.as_str()),
        (Some(0), "hello there\n", "")
    );
    let ran = run(&hub, &["send", "guest", "flood 3", "--stream"]).await?;
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "1\n2\n3\n"));
    let ran = run(&hub, &["--format", "json", "send", "guest", "flood 2", "--stream"]).await?;
    let kinds: Result<Vec<_>, _> = ran
        .stdout
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).map(|event| event["kind"].to_string()))
        .collect();
    assert_eq!(
        kinds?,
        [
            "\"task\"",
            "\"status-update\"",
            "\"artifact-update\"",
            "\"artifact-update\"",
            "\"status-update\""
        ]
    );
    Ok(())
}

#[tokio::test]
async fn exit_codes_reflect_task_outcome() -> Result<()> {
    let hub = hub_with_guest().await?;
    let failed = run(&hub, &["send", "guest", "fail"]).await?;
    assert_eq!((failed.code, failed.stderr.trim()), (Some(1), "failed, as told"));
    assert_eq!(run(&hub, &["send", "guest", "reject"]).await?.code, Some(1));
    let asks = run(&hub, &["send", "guest", "ask"]).await?;
    assert_eq!(asks.code, Some(3));
    assert!(asks.stderr.contains("what do you say?"), "{}", asks.stderr);
    let told = asks.stderr.split_once(" task answer ").context("it does not say how to answer")?.1;
    let (options, _) = told.split_once(" \"").context("no answer")?;
    let answer: Vec<_> =
        ["task", "answer"].into_iter().chain(options.split(' ')).chain(["the left one"]).collect();
    let answered = run(&hub, &answer).await?;
    let answered = (answered.code, answered.stdout.as_str(), answered.stderr.as_str());
    assert_eq!(answered, (Some(0), "the left one\n", ""), "{answer:?}");

    let unknown = run(&hub, &["send", "nobody", "hi"]).await?;
    assert_eq!(unknown.code, Some(2));
    assert!(
        unknown.stderr.contains("no agent is called `nobody`; there are claude-code, codex, echo"),
        "{}",
        unknown.stderr
    );
    assert_eq!(run(&hub, &["send", "guest"]).await?.code, Some(2), "no message");
    assert_eq!(run(&hub, &["fly"]).await?.code, Some(2), "no such command");
    Ok(())
}

#[tokio::test]
async fn commands_without_hub_suggest_start() -> Result<()> {
    let dir = tempfile::tempdir()?;
    for args in [&["status"][..], &["diff"], &["agents"], &["send", "echo", "hi"]] {
        let ran = finish(command(&dir.path().join("none.sock"), dir.path(), args)?).await?;
        assert_eq!(ran.code, Some(2), "{args:?}");
        assert!(ran.stderr.contains("start it with `a2a-hub start`"), "{}", ran.stderr);
        assert!(ran.stderr.starts_with("error: connect to the hub: "), "{}", ran.stderr);
        assert!(ran.stderr.ends_with("\nhelp: a2a-hub start\n"), "{}", ran.stderr);
    }
    let bare = finish(command(&dir.path().join("none.sock"), dir.path(), &[])?).await?;
    assert_eq!((bare.code, bare.stderr.as_str()), (Some(0), ""));
    assert!(bare.stdout.starts_with("the hub is not running\n\nnext:\n  a2a-hub start "));
    Ok(())
}

#[tokio::test]
async fn bare_command_shows_status_and_next_commands() -> Result<()> {
    let hub = hub_with_guest().await?;
    let bare = run(&hub, &[]).await?;
    assert_eq!((bare.code, bare.stderr.as_str()), (Some(0), ""));
    let (status, next) = bare.stdout.split_once("\nnext:\n").context("no next commands")?;
    assert!(status.starts_with("hub     "), "{status}");
    assert_eq!(next.lines().count(), 3, "{next}");
    Ok(())
}

/// A list that is cut says so, for programs as well.
#[tokio::test]
async fn cut_list_says_that_there_is_more() -> Result<()> {
    let hub = hub_with_guest().await?;
    for _ in 0..3 {
        run(&hub, &["send", "echo", "hi"]).await?;
    }
    for list in ["tasks", "contexts"] {
        for format in ["pretty", "json"] {
            let cut = run(&hub, &["--format", format, list, "--limit", "2"]).await?;
            assert!(cut.stderr.contains("`--offset 2` the next"), "{list}: {}", cut.stderr);
            let whole = run(&hub, &["--format", format, list, "--limit", "3"]).await?;
            assert_eq!(whole.stderr, "", "{list}");
            let lines = whole.stdout.matches(if format == "json" { "\"id\"" } else { "\n" });
            assert!(lines.count() >= 3, "{list}: {}", whole.stdout);
        }
    }
    Ok(())
}

#[tokio::test]
async fn status_and_agents_print_text() -> Result<()> {
    let hub = hub_with_guest().await?;
    let status = run(&hub, &["status"]).await?;
    assert!(status.stdout.contains("tasks   0 active, 0 in all"), "{}", status.stdout);
    let agents = run(&hub, &["agents", "--health"]).await?;
    assert!(agents.stdout.contains("asks to run `never-granted`"), "{}", agents.stdout);
    let json = run(&hub, &["--format", "json", "agents"]).await?;
    let agents: Value = serde_json::from_str(&json.stdout)?;
    let listed = agents.as_array().map(|all| all.iter().any(|agent| agent["id"] == "guest"));
    assert_eq!(listed, Some(true), "{agents}");
    Ok(())
}

#[tokio::test]
async fn start_and_stop_in_the_background() -> Result<()> {
    let dir = home()?;
    let socket = dir.path().join("hub.sock");
    let run = async |args: &[&str]| finish(command(&socket, dir.path(), args)?).await;
    let started = run(&["start", "--http-port", "0"]).await?;
    assert_eq!(started.code, Some(0), "{}", started.stderr);
    assert!(started.stdout.starts_with("the hub is up"), "{}", started.stdout);
    let again = run(&["start", "--http-port", "0"]).await?;
    assert_eq!(again.code, Some(2));
    assert!(again.stderr.contains("a hub already listens on"), "{}", again.stderr);
    let again = run(&["start", "--workspace", "."]).await?;
    assert!(again.stderr.contains("a2a-hub workspace add ."), "{}", again.stderr);
    let again = run(&["start"]).await?;
    assert_eq!((again.code, again.stderr.as_str()), (Some(0), ""));
    assert!(again.stdout.starts_with("the hub is already up (process "), "{}", again.stdout);
    assert_eq!(run(&["send", "echo", "hi"]).await?.stdout, "hi\n");
    let run_json = std::fs::read(dir.path().join(".a2a-hub/run.json"))?;
    let pid = serde_json::from_slice::<Value>(&run_json)?["pid"].clone();
    let environment = std::fs::read_to_string(format!("/proc/{pid}/environ"))?;
    assert!(environment.contains("MALLOC_TRIM_THRESHOLD_="), "freed memory is given back");
    let stopped = run(&["stop"]).await?;
    assert_eq!((stopped.code, stopped.stdout.as_str()), (Some(0), "the hub is stopped\n"));
    assert!(!socket.exists());
    no_program_left(&dir.path().join(".a2a-hub"), Duration::from_secs(1)).await
}

#[tokio::test]
async fn stop_drains_tasks_and_reports_cancelled() -> Result<()> {
    let dir = home()?;
    let socket = dir.path().join("hub.sock");
    let plugins = dir.path().join(".a2a-hub/plugins");
    DirBuilder::new().recursive(true).mode(0o700).create(&plugins)?;
    std::fs::copy(test_guests()?, plugins.join("guest.wasm"))?;
    std::fs::write(dir.path().join(".a2a-hub/config.toml"), GRANT)?;
    let run = async |args: &[&str]| finish(command(&socket, dir.path(), args)?).await;
    let working = async || -> Result<()> {
        for _ in 0..200 {
            if run(&["status"]).await?.stdout.contains("1 active") {
                return Ok(());
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        anyhow::bail!("no task is at work")
    };

    assert_eq!(run(&["start", "--no-http"]).await?.code, Some(0));
    // The component is compiled for the first time.
    let joined = async || run(&["agents"]).await.is_ok_and(|ran| ran.stdout.contains("guest.wasm"));
    eventually_async(Duration::from_secs(60), joined).await?;
    let at_work = ["send", "guest", "sh sleep 2; echo finished"];
    let refused = async {
        working().await?;
        let stop = run(&["stop"]);
        let late = async {
            tokio::time::sleep(Duration::from_millis(300)).await;
            run(&["send", "echo", "too late"]).await
        };
        tokio::try_join!(stop, late)
    };
    let (sent, (stopped, late)) = tokio::try_join!(run(&at_work), refused)?;
    assert_eq!((sent.code, sent.stdout.as_str()), (Some(0), "finished\n"), "{}", sent.stderr);
    assert_eq!((stopped.code, stopped.stdout.as_str()), (Some(0), "the hub is stopped\n"));
    assert!(stopped.stderr.contains("active tasks: 1;"), "{}", stopped.stderr);
    assert_eq!(late.code, Some(2));
    assert!(late.stderr.contains("takes no new tasks"), "{}", late.stderr);

    assert_eq!(run(&["start", "--no-http"]).await?.code, Some(0));
    let endless = ["send", "guest", "sh sleep 600"];
    let cut = async {
        working().await?;
        run(&["stop", "--timeout", "0"]).await
    };
    let (sent, cut) = tokio::try_join!(run(&endless), cut)?;
    assert_eq!(sent.code, Some(1), "{}", sent.stderr);
    assert!(cut.stderr.contains("interrupted: task 0"), "{}", cut.stderr);
    no_program_left(&dir.path().join(".a2a-hub"), Duration::from_secs(1)).await
}

#[tokio::test]
async fn failed_start_reports_reason() -> Result<()> {
    let dir = home()?;
    let socket = dir.path().join("hub.sock");
    let taken = std::net::TcpListener::bind("127.0.0.1:0")?;
    let port = taken.local_addr()?.port().to_string();
    let ran = finish(command(&socket, dir.path(), &["start", "--http-port", &port])?).await?;
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("choose another port with `--http-port`"), "{}", ran.stderr);

    std::fs::create_dir_all(dir.path().join(".a2a-hub"))?;
    std::fs::write(dir.path().join(".a2a-hub/config.toml"), "[agents.echo]\nenabeld = true")?;
    let ran = finish(command(&socket, dir.path(), &["start"])?).await?;
    assert!(ran.stderr.contains("enabeld") && ran.stderr.contains("enabled"), "{}", ran.stderr);

    // A hub that cannot write its run file could not be found again.
    std::fs::remove_file(dir.path().join(".a2a-hub/config.toml"))?;
    std::fs::create_dir(dir.path().join(".a2a-hub/run.new"))?;
    let ran = finish(command(&socket, dir.path(), &["start", "--no-http"])?).await?;
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("write the run file"), "{}", ran.stderr);
    no_program_left(&dir.path().join(".a2a-hub"), Duration::from_secs(1)).await
}

/// Without a terminal, Ctrl-C and the end of the parent process cancel the task. A closed terminal
/// leaves it running, as `--detach` does.
#[tokio::test]
async fn ctrl_c_cancels_and_hangup_detaches() -> Result<()> {
    let hub = hub_with_guest().await?;
    for signal in [Signal::INT, Signal::TERM] {
        cancelled_by(signal, &hub).await.with_context(|| format!("{signal:?}"))?;
    }
    let before = tasks_in("working", &hub).await?;
    assert_eq!(before, Vec::<String>::new());

    let mut command = command(hub.socket(), &hub.home(), &["send", "guest", "sh sleep 600"])?;
    let mut child = command.current_dir(hub.workspace()).spawn()?;
    let begun = working(1, &hub).await?.remove(0);
    let pid = Pid::from_raw(i32::try_from(child.id().context("it ended")?)?).context("no pid")?;
    kill_process(pid, Signal::HUP)?;
    let status = timeout(Duration::from_secs(10), child.wait()).await??;
    assert_eq!(status.code(), Some(130));
    let mut told = String::new();
    child.stderr.take().context("no stderr")?.read_to_string(&mut told).await?;
    assert!(told.contains(&format!("task watch {begun}")), "{told}");

    let ran = run(&hub, &["send", "guest", "sh sleep 600", "--detach"]).await?;
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let detached = ran.stdout.trim().to_owned();
    assert!(ran.stderr.contains(&format!("task watch {detached}")), "{}", ran.stderr);
    assert_eq!(working(2, &hub).await?, [detached, begun], "both run on");
    let ran = run(&hub, &["task", "cancel", "--state", "working"]).await?;
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    no_program_left(&hub.data_dir(), Duration::from_secs(5)).await
}

/// Ids of the tasks in a state, newest first.
async fn tasks_in(state: &str, hub: &TestHub) -> Result<Vec<String>> {
    let ran = run(hub, &["--format", "json", "tasks", "--state", state]).await?;
    let tasks: Vec<Value> = serde_json::from_str(&ran.stdout)?;
    Ok(tasks.iter().filter_map(|task| task["id"].as_str().map(str::to_owned)).collect())
}

/// Ids of the tasks that work, once their number is `count`.
async fn working(count: usize, hub: &TestHub) -> Result<Vec<String>> {
    for _ in 0..100 {
        let tasks = tasks_in("working", hub).await?;
        if tasks.len() == count {
            return Ok(tasks);
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    anyhow::bail!("no {count} tasks work")
}

async fn cancelled_by(signal: Signal, hub: &TestHub) -> Result<()> {
    let mut command = command(
        hub.socket(),
        &hub.home(),
        &["send", "guest", "sh echo begun; sleep 600", "--stream"],
    )?;
    command.current_dir(hub.workspace());
    let mut child = command.spawn()?;
    let mut lines = BufReader::new(child.stdout.take().context("no stdout")?).lines();
    let first = timeout(Duration::from_secs(20), lines.next_line()).await??;
    assert_eq!(first.as_deref(), Some("begun"), "the answer comes as it is made");
    let pid = Pid::from_raw(i32::try_from(child.id().context("it ended")?)?).context("no pid")?;
    kill_process(pid, signal)?;
    let status = timeout(Duration::from_secs(10), child.wait()).await??;
    assert_eq!(status.code(), Some(130));
    no_program_left(&hub.data_dir(), Duration::from_secs(1)).await?;
    let mut told = String::new();
    child.stderr.take().context("no stderr")?.read_to_string(&mut told).await?;
    assert!(told.contains("cancelling"), "{told}");
    Ok(())
}

#[tokio::test]
async fn send_passes_files_and_directory() -> Result<()> {
    let hub = hub_with_guest().await?;
    let notes = hub.home().join("notes.md");
    std::fs::write(&notes, "hello")?;
    let path = notes.display().to_string();
    let sent =
        run(&hub, &["--format", "json", "send", "echo", "see file", "--file", &path]).await?;
    let sent: Value = serde_json::from_str(&sent.stdout)?;
    let task = get(&Client::unix(&hub), sent["taskId"].as_str().context("no task")?).await?;
    let file = &task["history"][0]["parts"][1]["file"];
    assert_eq!((&file["name"], &file["mimeType"]), (&"notes.md".into(), &"text/markdown".into()));
    assert_eq!(file["bytes"], "aGVsbG8=");

    let below = hub.workspace().join("below");
    std::fs::create_dir(&below)?;
    let ran = run(&hub, &["send", "guest", "sh pwd", "--cwd", "below"]).await?;
    assert_eq!(ran.stdout.trim(), below.canonicalize()?.display().to_string(), "{}", ran.stderr);
    let missing = run(&hub, &["send", "echo", "hi", "--file", "none"]).await?;
    assert_eq!(missing.code, Some(2));
    assert!(missing.stderr.contains("attach none"), "{}", missing.stderr);
    Ok(())
}

#[tokio::test]
async fn task_is_shown_and_cancelled() -> Result<()> {
    let hub = hub_with_guest().await?;
    let client = Client::unix(&hub);
    let (id, mut updates) = stream(&client, "guest", "sh echo begun; sleep 600").await?;
    until(&mut updates, |event| event["kind"] == "artifact-update").await?;
    let shown = run(&hub, &["task", "show", &id]).await?.stdout;
    assert!(shown.contains("state    working") && shown.contains("  begun"), "{shown}");
    let cancelled = run(&hub, &["task", "cancel", &id]).await?;
    assert_eq!(cancelled.stdout, format!("task {id} is cancelled\n"));
    let again = run(&hub, &["task", "cancel", &id]).await?;
    assert_eq!(again.code, Some(2));
    assert!(again.stderr.contains("cannot be cancelled"), "{}", again.stderr);
    Ok(())
}

#[tokio::test]
async fn commands_follow_handed_over_task() -> Result<()> {
    let hub = hub_with_guest().await?;
    let client = Client::unix(&hub);
    let sent = run(&hub, &["send", "guest", "sh echo begun; sleep 600", "--format", "json"]);
    let handed_over = async {
        let listed = json!({ "agentId": "guest", "state": "working" });
        let working = async || client.call("hub/tasks/list", listed.clone()).await;
        let is_there = async || working().await.is_ok_and(|tasks| tasks[0]["id"].is_string());
        eventually_async(Duration::from_secs(30), is_there).await?;
        let tasks = working().await?;
        let id = tasks[0]["id"].as_str().context("its id")?;
        run(&hub, &["task", "handoff", id, "echo", "--note", "Be quick."]).await
    };
    let (sent, handed_over) = tokio::try_join!(sent, handed_over)?;
    assert_eq!(handed_over.code, Some(0), "{}", handed_over.stderr);
    assert!(handed_over.stdout.ends_with("Be quick.\n"), "{}", handed_over.stdout);
    // Programs get one object: the end of the task that went on.
    let answer: Value = serde_json::from_str(&sent.stdout)?;
    assert_eq!((sent.code, &answer["state"]), (Some(0), &json!("completed")), "{answer}");
    assert!(
        answer["message"].as_str().is_some_and(|text| text.ends_with("Be quick.\n")),
        "{answer}"
    );
    Ok(())
}

#[tokio::test]
async fn settings_merge_layers_and_report_typos() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let socket = dir.path().join("hub.sock");
    std::fs::create_dir_all(dir.path().join(".a2a-hub"))?;
    std::fs::write(dir.path().join(".a2a-hub/config.toml"), "[http]\nport = 1\nenabled = false\n")?;
    let run = async |variable: (&str, &str), args: &[&str]| {
        let mut command = command(&socket, dir.path(), args)?;
        command.env(variable.0, variable.1);
        finish(command).await
    };
    let shown = run(("A2A_HUB_HTTP_PORT", "2"), &["config", "show"]).await?.stdout;
    let line = |key: &str| {
        let line = shown.lines().find(|line| line.starts_with(key)).unwrap_or_default();
        line.split('#').map(str::trim).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(line("port"), ["port = 2", "A2A_HUB_HTTP_PORT"]);
    assert_eq!(line("host"), ["host = \"127.0.0.1\"", "the default"]);
    assert_eq!(line("path")[1], "--socket");
    let slip = run(("A2A_HUB_HTTP_PROT", "2"), &["config", "check"]).await?;
    assert_eq!(slip.code, Some(2));
    assert!(slip.stderr.contains("did you mean `A2A_HUB_HTTP_PORT`?"), "{}", slip.stderr);
    let fine = run(("A2A_HUB_LOGGING_LEVEL", "debug"), &["config", "check"]).await?;
    assert!(fine.stdout.starts_with("OK: "), "{}", fine.stdout);
    Ok(())
}

#[tokio::test]
async fn logs_and_doctor_show_background_hub() -> Result<()> {
    let dir = home()?;
    let socket = dir.path().join("hub.sock");
    let run = async |args: &[&str]| finish(command(&socket, dir.path(), args)?).await;
    let before = run(&["doctor"]).await?;
    assert!(before.stdout.contains("fix: a2a-hub start"), "{}", before.stdout);
    assert_eq!(run(&["start", "--no-http"]).await?.code, Some(0));
    let doctor = run(&["--format", "json", "doctor"]).await?;
    assert_eq!(doctor.code, Some(0), "{}", doctor.stdout);
    let findings: Vec<Value> = serde_json::from_str(&doctor.stdout)?;
    let echo = findings.iter().find(|finding| finding["about"] == "agent echo");
    assert_eq!(echo.context("it did not ask echo")?["verdict"], "ok");
    let git =
        findings.iter().find(|finding| finding["about"] == "git").context("no word of git")?;
    let found = git["found"].as_str().unwrap_or_default();
    assert!(found.starts_with("git version"), "the CLIs are told also while the hub runs: {git}");
    let logs = run(&["logs"]).await?.stdout;
    assert!(logs.contains("INFO  the hub is up"), "{logs}");
    assert_eq!(run(&["logs", "--lines", "1"]).await?.stdout.trim_end().lines().count(), 1);
    let json = run(&["--format", "json", "logs"]).await?.stdout;
    let lines: Result<Vec<Value>, _> = json.lines().map(serde_json::from_str).collect();
    assert!(lines?.len() > 1);
    assert_eq!(run(&["stop"]).await?.code, Some(0));
    let failed = {
        std::fs::write(dir.path().join(".a2a-hub/config.toml"), "http = 3")?;
        run(&["doctor"]).await?
    };
    assert_eq!(failed.code, Some(2));
    assert!(failed.stdout.starts_with("fail  configuration"), "{}", failed.stdout);
    Ok(())
}

#[tokio::test]
async fn log_rotates_while_hub_runs() -> Result<()> {
    let dir = home()?;
    let socket = dir.path().join("hub.sock");
    let run = async |args: &[&str]| finish(command(&socket, dir.path(), args)?).await;
    let data = dir.path().join(".a2a-hub");
    // One line short of the limit.
    let log = std::fs::File::options()
        .create_new(true)
        .write(true)
        .mode(0o600)
        .open(data.join("hub.log"));
    log?.write_all(&vec![b'\n'; 10 << 20])?;
    assert_eq!(run(&["start", "--no-http"]).await?.code, Some(0));
    let logs = run(&["logs"]).await?.stdout;
    assert!(logs.contains("the hub is up"), "{logs}");
    assert_eq!(run(&["stop"]).await?.code, Some(0));
    let size = |name: &str| std::fs::metadata(data.join(name)).map(|log| log.len());
    assert!(size("hub.log.old")? >= 10 << 20, "what there was is kept");
    assert!(size("hub.log")? < 1 << 20, "{} bytes", size("hub.log")?);
    Ok(())
}

#[tokio::test]
async fn program_environment_is_never_logged() -> Result<()> {
    let path = std::env::var_os("PATH").context("no PATH")?;
    let path = format!("{}:/hush-hush", path.to_str().context("PATH is not text")?);
    let grant = format!("{GRANT}\n[logging]\nlevel = \"debug\"");
    let hub = TestHub::builder().config(grant).env("PATH", path);
    let hub = hub.plugin("guest", test_guests()?).start().await?;
    let ran = run(&hub, &["send", "guest", "sh echo $PATH"]).await?;
    assert!(ran.stdout.contains("/hush-hush"), "the program got it: {}", ran.stdout);
    assert!(hub.log().contains("the hub is up"), "this is the log");
    assert!(!hub.log().contains("hush-hush"), "{}", hub.log());
    Ok(())
}

#[tokio::test]
async fn tasks_and_conversations_are_listed_and_deleted() -> Result<()> {
    let hub = hub_with_guest().await?;
    let sent = run(&hub, &["--format", "json", "send", "echo", "hello list"]).await?;
    let sent: Value = serde_json::from_str(&sent.stdout)?;
    let task = get(&Client::unix(&hub), sent["taskId"].as_str().context("no task")?).await?;
    let context = task["contextId"].as_str().context("no context")?;
    let listed = run(&hub, &["tasks", "--context", context, "--state", "completed"]).await?;
    assert!(listed.stdout.contains("hello list"), "{}", listed.stdout);
    assert_eq!(run(&hub, &["tasks", "--state", "failed"]).await?.stdout, "no tasks\n");
    let contexts = run(&hub, &["contexts"]).await?.stdout;
    assert!(contexts.contains(&format!("{context}\t1\t")), "{contexts}");
    assert_eq!(run(&hub, &["contexts", "delete", context]).await?.code, Some(0));
    assert_eq!(run(&hub, &["contexts", "show", context]).await?.code, Some(2));
    let shown = run(&hub, &["agent", "show", "echo"]).await?.stdout;
    assert!(shown.starts_with("echo\t"), "{shown}");
    Ok(())
}

#[tokio::test]
async fn watch_ends_with_task() -> Result<()> {
    let hub = hub_with_guest().await?;
    let (id, mut updates) = stream(&Client::unix(&hub), "guest", "count 20").await?;
    until(&mut updates, |event| event["kind"] == "artifact-update").await?;
    let watched = run(&hub, &["task", "watch", &id]).await?;
    assert_eq!(watched.code, Some(0), "{}", watched.stderr);
    assert!(watched.stdout.contains("20\n"), "{}", watched.stdout);
    Ok(())
}

/// Options of `send` about the model reach the agent as the message's metadata, locally and
/// remotely.
#[tokio::test]
async fn send_options_reach_message_metadata() -> Result<()> {
    let hub = hub_with_guest().await?;
    let url = format!("http://{}/agents/echo", hub.http());
    let chosen =
        ["--model", "m-1", "--effort", "high", "--metadata", "a=[1]", "--metadata", "b=x=y"];
    for agent in ["echo", &url] {
        let ran = run(&hub, &[&["send", agent, "hi"], &chosen[..]].concat()).await?;
        assert_eq!(ran.code, Some(0), "{agent}: {}", ran.stderr);
        let tasks = Client::unix(&hub).call("hub/tasks/list", serde_json::json!({})).await?;
        let heard = &tasks[0]["history"][0]["metadata"];
        let told =
            [&heard["model"], &heard["effort"], &heard["a"], &heard["b"]].map(Value::to_string);
        assert_eq!(told, ["\"m-1\"", "\"high\"", "[1]", "\"x=y\""], "{agent}");
    }
    let refused = run(&hub, &["send", "echo", "hi", "--metadata", "targetAgent=guest"]).await?;
    assert_eq!(refused.code, Some(2));
    assert!(refused.stderr.contains("name the agent before the message"), "{}", refused.stderr);
    Ok(())
}

#[tokio::test]
#[expect(clippy::disallowed_methods, reason = "the user starts it")]
async fn unwritten_help_is_failure() -> Result<()> {
    let full = std::fs::File::options().write(true).open("/dev/full")?;
    for option in ["--help", "--version"] {
        let mut program = Command::new(hub_binary()?);
        let status = program.arg(option).stdout(full.try_clone()?).status().await?;
        assert_eq!(status.code(), Some(2), "{option}");
    }
    Ok(())
}
