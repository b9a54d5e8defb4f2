//! Tests of the commands for flows, and of their programs when the hub is killed.

use crate::{
    command_line::{Ran, run as run_in},
    stage::{eventually_async, said, until_it_is},
};
use a2a_hub_tests::{Client, TestHub, commit_all, message_to};
use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use std::{fs, time::Duration};

const PATIENCE: Duration = Duration::from_secs(60);

const FAKES: &str = "[input]\nquestion = \"why?\"\n[answers]\ndraft = \"because\"\nreview = \"fine\"\n[expect]\ntext = \"fine\"\n";

const SCRIPT: &str = "description = \"Prints\"\n[input]\nwhat = { type = \"string\" }\n[[step]]\nid = \"print\"\nrun = [\"sh\", \"-c\", \"printf 'got %s' \\\"$A2A_INPUT_WHAT\\\"\"]\n";

/// Runs `a2a-hub` with the data directory of the hub.
pub(super) async fn run(hub: &TestHub, args: &[&str]) -> Result<Ran> {
    let dir = hub.data_dir().display().to_string();
    run_in(hub, &[&["--data-dir", &dir], args].concat()).await
}

#[tokio::test]
async fn flow_is_tested_run_and_trusted() -> Result<()> {
    let hub = TestHub::builder().config("[agents.script]\nconfine = false\n").start().await?;
    run(&hub, &["flow", "new", "answer"]).await?;
    // It is an agent at once.
    let ran = run(&hub, &["agent", "show", "answer"]).await?;
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let again = run(&hub, &["flow", "new", "answer"]).await?;
    assert!(again.stderr.contains("exists already"), "{}", again.stderr);
    let unknown = run(&hub, &["flow", "show", "nope"]).await?;
    assert!(unknown.stderr.contains("no flow is called `nope`"), "{}", unknown.stderr);
    let file = hub.data_dir().join("flows/answer.flow.toml").display().to_string();
    let fakes = hub.data_dir().join("fakes.toml");
    fs::write(&fakes, FAKES)?;
    let fakes = fakes.display().to_string();

    let passed = run(&hub, &["flow", "test", &file, "--with", &fakes]).await?;
    assert!(passed.stdout.contains("-> draft: echo: why?"), "{}", passed.stdout);
    assert!(passed.stdout.ends_with("The test passed.\n"), "{}", passed.stdout);
    fs::write(&fakes, FAKES.replace("text = \"fine\"", "text = \"bad\""))?;
    let failed = run(&hub, &["flow", "test", &file, "--with", &fakes]).await?;
    assert_eq!(failed.code, Some(1), "{}", failed.stdout);
    let chart = run(&hub, &["flow", "show", "answer", "--mermaid"]).await?;
    assert!(chart.stdout.contains("s0 --> s1"), "{}", chart.stdout);

    let once = run(&hub, &["run", &file, "--input", "question=hello"]).await?;
    assert!(once.stdout.contains("| hello"), "{} {}", once.stdout, once.stderr);
    hub.joined("answer").await?;
    // The hub has not read the second file yet.
    fs::copy(&file, hub.data_dir().join("flows/again.flow.toml"))?;
    for name in ["answer", "again"] {
        let named = run(&hub, &["run", name, "hello"]).await?;
        assert_eq!(named.stdout, once.stdout, "{name}: {}", named.stderr);
    }

    let script = hub.data_dir().join("flows/print.flow.toml");
    fs::write(&script, SCRIPT)?;
    let held = run(&hub, &["run", "print", "x"]).await?;
    assert_eq!(held.code, Some(2), "{}", held.stdout);
    assert!(held.stderr.contains("is no agent: held back until you trust it"), "{}", held.stderr);
    assert!(held.stderr.ends_with("help: a2a-hub flow trust print\n"), "{}", held.stderr);
    let unasked = run(&hub, &["flow", "trust", "print"]).await?;
    assert_eq!(unasked.code, Some(2), "{}", unasked.stdout);
    assert!(unasked.stderr.contains("run = [\"sh\""), "it is shown: {}", unasked.stderr);
    run(&hub, &["flow", "trust", "print", "--yes"]).await?;
    let ran = run(&hub, &["run", "print", "$(id)"]).await?;
    assert!(ran.stdout.contains("got $(id)"), "{} {}", ran.stdout, ran.stderr);

    fs::write(&script, SCRIPT.replace("got", "have"))?;
    let changed = run(&hub, &["flow", "trust", "print"]).await?;
    assert!(changed.stderr.contains("- run = ") && changed.stderr.contains("+ run = "));
    Ok(())
}

#[tokio::test]
async fn message_reaches_several_agents() -> Result<()> {
    let hub = TestHub::start().await?;
    let asked = run(&hub, &["send", "echo,git-historian", "hello"]).await?;
    assert_eq!(asked.code, Some(0), "{}", asked.stderr);
    let [echo, historian] = ["## echo", "## git-historian"].map(|it| asked.stdout.find(it));
    assert!(echo.is_some() && echo < historian, "{}", asked.stdout);
    assert!(asked.stdout.contains("hello"), "{}", asked.stdout);
    assert!(asked.stdout.contains("No answer: There is no git repository"), "{}", asked.stdout);
    for (line, says) in [
        (&["send", "echo,echo", "x"][..], "listed twice"),
        (&["send", "echo,", "x"], "``"),
        (
            &["send", "echo,git-historian", "x", "--worktree"],
            "`--worktree` is for a message to one",
        ),
        (&["send", "echo,git-historian", "x", "--model", "m"], "model and metadata"),
    ] {
        let wrong = run(&hub, line).await?;
        assert_eq!(wrong.code, Some(2), "{line:?}: {}", wrong.stdout);
        assert!(wrong.stderr.contains(says), "{line:?}: {}", wrong.stderr);
    }
    let tasks = async || Client::unix(&hub).call("hub/tasks/list", json!({})).await;
    let before = tasks().await?;
    let missing = run(&hub, &["send", "echo,ecko", "hello"]).await?;
    assert_eq!(missing.code, Some(2), "{}", missing.stderr);
    assert!(missing.stderr.contains("no agent is called `ecko`; did you mean `echo`?"));
    assert_eq!(tasks().await?, before, "nobody worked");

    fs::write(hub.workspace().join("a"), "a\n")?;
    commit_all(&hub.workspace())?;
    let asked = run(&hub, &["send", "git-historian,echo", "which files change most?"]).await?;
    let (stdout, table) = (&asked.stdout, "Files that change most");
    assert!(stdout.contains(table) && stdout.contains("Changed most"), "{stdout}");
    Ok(())
}

#[tokio::test]
async fn new_flow_from_template_joins() -> Result<()> {
    let hub = TestHub::start().await?;
    for from in ["review", "plan", "research", "second-opinion", "best-of", "map"] {
        let name = format!("my-{from}");
        let args = ["flow", "new", &name, "--from", from, "--agents", "echo,git-historian"];
        let made = run(&hub, &args).await?;
        assert_eq!(made.code, Some(0), "{}", made.stderr);
        let file = hub.data_dir().join(format!("flows/{name}.flow.toml"));
        let text = fs::read_to_string(&file)?;
        assert!(text.contains("\"git-historian\"") && !text.contains("codex"), "{text}");
        let checked = run(&hub, &["flow", "check", &file.display().to_string()]).await?;
        assert!(checked.stdout.starts_with("The flow is right"), "{}", checked.stdout);
        assert!(!checked.stdout.contains("Warnings"), "{}", checked.stdout);
        if ["best-of", "map"].contains(&from) {
            run(&hub, &["flow", "trust", &name, "--yes"]).await?;
        }
        hub.joined(&name).await?;
    }
    let other = hub.workspace().join("other").display().to_string();
    let elsewhere = run_in(&hub, &["--data-dir", &other, "flow", "new", "x"]).await?;
    assert!(elsewhere.stdout.contains("does not use the data directory"), "{}", elsewhere.stdout);
    let file = hub.workspace().join("typo.flow.toml");
    let step = "description = \"x\"\n[[step]]\nid = \"a\"\nagent = \"ecko\"\nprompt = \"hi\"\n";
    fs::write(&file, step)?;
    let unknown = run(&hub, &["flow", "check", &file.display().to_string()]).await?;
    assert_eq!(unknown.code, Some(1), "{}", unknown.stdout);
    let why = "line 4: no agent is called `ecko`; did you mean `echo`?";
    assert!(unknown.stdout.starts_with(why), "{}", unknown.stdout);
    let wrong = run(&hub, &["flow", "new", "x", "--from", "revew"]).await?;
    assert!(wrong.stderr.contains("review"), "{}", wrong.stderr);
    let nameless = run(&hub, &["flow", "new", "x", "--from", "review", "--agents", "A b"]).await?;
    assert_eq!(nameless.code, Some(2), "{}", nameless.stderr);
    Ok(())
}

/// Flow whose second program sleeps unless a file `fast` exists; each program writes a letter.
fn slow(dir: &str, rule: &str) -> String {
    let step = |id: &str, keys: &str, run: &str| {
        format!("[[step]]\nid = \"{id}\"\n{keys}\nrun = [\"sh\", \"-c\", \"{run}\"]\n")
    };
    let write = |letter: &str| format!("echo {letter} >> {dir}/$A2A_INPUT_LOG");
    let slow = format!("{}; [ -e {dir}/fast ] || sleep 300", write("b"));
    let first = step("first", "", &write("a"));
    let second = step("second", &format!("needs = [\"first\"]\n{rule}"), &slow);
    let last = step("last", "needs = [\"second\"]", &write("c"));
    format!(
        "description = \"Writes letters\"\n[input]\nlog = {{ type = \"string\" }}\n{first}{second}{last}"
    )
}

/// Sends a message to a flow or its task, without waiting for the end.
async fn send_to(hub: &TestHub, flow: &str, task: Option<&str>, text: &str) -> Result<String> {
    let mut message = message_to(flow, text);
    message["configuration"] = json!({ "blocking": false });
    if let Some(task) = task {
        message["message"]["taskId"] = json!(task);
        message["message"]["metadata"] = json!({});
    }
    let task: Value = Client::http(hub).call("message/send", message).await?;
    Ok(task["id"].as_str().context("no id")?.to_owned())
}

#[tokio::test]
async fn killed_hub_obeys_on_restart_of_program() -> Result<()> {
    let mut hub = TestHub::builder().config("[agents.script]\nconfine = false\n").start().await?;
    let dir = hub.workspace().display().to_string();
    let letters = |log: &str| -> String {
        let log = fs::read_to_string(format!("{dir}/{log}")).unwrap_or_default();
        log.split_whitespace().collect()
    };
    let rules =
        [("again", "on_restart = \"retry\""), ("asks", ""), ("fails", "on_restart = \"fail\"")];
    for (name, rule) in rules {
        fs::write(hub.data_dir().join(format!("flows/{name}.flow.toml")), slow(&dir, rule))?;
        let trusted = run(&hub, &["flow", "trust", name, "--yes"]).await?;
        assert_eq!(trusted.code, Some(0), "{}", trusted.stderr);
    }
    for (name, _) in rules {
        hub.joined(name).await?;
    }
    let again = send_to(&hub, "again", None, "again").await?;
    let asks = send_to(&hub, "asks", None, "asks").await?;
    let declined = send_to(&hub, "asks", None, "declined").await?;
    let fails = send_to(&hub, "fails", None, "fails").await?;
    let logs = ["again", "asks", "declined", "fails"];
    let are_slow = async || logs.iter().all(|log| letters(log) == "ab");
    eventually_async(PATIENCE, are_slow).await.context("the programs do not run")?;
    hub.kill9().await?;
    fs::write(format!("{dir}/fast"), "")?;
    hub.restart().await?;

    until_it_is(&hub, &again, "completed", PATIENCE).await?;
    let failed = until_it_is(&hub, &fails, "failed", PATIENCE).await?;
    assert_eq!(failed["metadata"]["reason"], "hub_restarted", "{failed}");
    for task in [&asks, &declined] {
        let asked = until_it_is(&hub, task, "input-required", PATIENCE).await?;
        assert!(said(&asked).contains("The program of the step second was cut off"), "{asked}");
    }
    send_to(&hub, "asks", Some(&asks), "yes").await?;
    send_to(&hub, "asks", Some(&declined), "no").await?;
    until_it_is(&hub, &asks, "completed", PATIENCE).await?;
    until_it_is(&hub, &declined, "failed", PATIENCE).await?;
    // No recorded step is done twice, and only what the rule or the client wants runs again.
    assert_eq!(logs.map(letters), ["abbc", "abbc", "ab", "ab"]);
    Ok(())
}
