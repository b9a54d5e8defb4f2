//! Tests of terminal output: the command line on a real pseudoterminal, created by `script` of
//! util-linux.

use crate::{
    command_line::{Ran, command, finish, run},
    stage::{GRANT, home, hub_with_guest},
};
use a2a_hub_tests::{TestHub, test_guests};
use anyhow::{Context as _, Result, ensure};
use axum::{Json, Router, extract::State, routing::get};
use serde_json::{Value, json};
use std::{fs, io, path::Path, process::Stdio, sync::Arc, time::Duration};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
    process::{ChildStdin, Command},
    task::JoinSet,
    time::timeout,
};

/// Text that clears the screen, sets the title and the clipboard, reverses the text direction, and
/// imitates a question of the hub.
const HOSTILE: &str =
    "\x1b[2J\x1b]0;title\x07\x1b]52;c;aGk=\x07\u{9b}31m\u{202e}gpj.exe\rover\n┇ echo asks:";

/// Builds an `a2a-hub` command on a terminal with colours.
pub(crate) fn typed(hub: &TestHub, words: &[&str]) -> Result<Command> {
    typed_by(&hub.home(), hub.socket(), &hub.workspace(), words)
}

/// Builds an `a2a-hub` command on a terminal, for the user with this home, in this directory.
fn typed_by(home: &Path, socket: &Path, dir: &Path, words: &[&str]) -> Result<Command> {
    let plain = command(socket, home, words)?;
    let plain = plain.as_std();
    let quoted =
        |word: &std::ffi::OsStr| format!("'{}'", word.to_string_lossy().replace('\'', r"'\''"));
    let line: Vec<_> =
        std::iter::once(plain.get_program()).chain(plain.get_args()).map(quoted).collect();
    let mut script = terminal(home, dir)?;
    script.args(["-qec", &line.join(" "), "/dev/null"]);
    Ok(script)
}

#[expect(clippy::disallowed_methods, reason = "the terminal is a program of the system")]
fn terminal(home: &Path, dir: &Path) -> Result<Command> {
    let mut script = Command::new("script");
    script.env_clear().env("HOME", home).env("TERM", "xterm").env("SHELL", "/bin/sh");
    script.env("PATH", std::env::var_os("PATH").context("no PATH")?);
    script.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    script.current_dir(dir).kill_on_drop(true);
    Ok(script)
}

/// Checks that the output contains neither control sequences nor deceptive text.
fn is_clean(shown: &str, of: &[&str]) -> Result<()> {
    ensure!(obeyed(shown).is_empty(), "{of:?}: {shown:?}");
    for deceptive in ["\u{202e}", "\u{9b}", "┇ echo", "\rover"] {
        ensure!(!shown.contains(deceptive), "{of:?}: {shown:?}");
    }
    Ok(())
}

/// Returns the control characters of `shown`, except line breaks and the command line's own
/// sequences.
fn obeyed(shown: &str) -> Vec<char> {
    let ours = [
        "\x1b[2K", "\x1b[0m", "\x1b[1m", "\x1b[2m", "\x1b[31m", "\x1b[32m", "\x1b[33m", "\x1b[36m",
    ];
    let rest = ours.iter().fold(shown.to_owned(), |rest, ours| rest.replace(ours, ""));
    rest.chars().filter(|c| c.is_control() && !"\r\n\t".contains(*c)).collect()
}

#[tokio::test]
async fn terminal_never_executes_agent_escapes() -> Result<()> {
    let hub = hub_with_guest().await?;
    for words in [
        vec!["send", "echo", HOSTILE],
        vec!["send", "echo", HOSTILE, "--stream"],
        vec!["send", "guest", "sh printf '\\033[2J\\033]0;x\\007 said'"],
        vec!["send", "echo", HOSTILE, "--context", "c\x1b[2J"],
        vec!["tasks"],
        vec!["contexts"],
        vec!["--format", "json", "send", "echo", HOSTILE],
        vec!["--format", "json", "tasks"],
        vec!["send", HOSTILE, "hi"],
        vec!["fly", HOSTILE],
    ] {
        let Ran { stdout: shown, .. } = finish(typed(&hub, &words)?).await?;
        is_clean(&shown, &words)?;
    }
    let shown = finish(typed(&hub, &["send", "echo", HOSTILE])?).await?.stdout;
    assert!(
        shown.contains(r"\u{1b}[2J\u{1b}]0;title\u{7}")
            && shown.contains(r"\u{202e}gpj.exe\u{d}over"),
        "{shown:?}"
    );
    Ok(())
}

/// Serves a remote agent whose card and artifacts consist of hostile text.
async fn hostile_agent(serving: &mut JoinSet<io::Result<()>>) -> Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}", listener.local_addr()?);
    let card = json!({
        "name": HOSTILE, "description": HOSTILE, "version": HOSTILE, "protocolVersion": "0.3.0", "url": url,
        "preferredTransport": "JSONRPC", "capabilities": {}, "defaultInputModes": [], "defaultOutputModes": [],
        "skills": [{ "id": "s", "name": HOSTILE, "description": HOSTILE, "tags": [HOSTILE] }],
    });
    let made = json!({ "kind": "file", "file": { "name": HOSTILE, "bytes": "aGk=" } });
    let task = json!({
        "kind": "task", "id": "t", "contextId": "c",
        "status": { "state": "completed", "message": {
            "kind": "message", "role": "agent", "messageId": "m", "parts": [{ "kind": "text", "text": HOSTILE }],
        } },
        "artifacts": [{ "artifactId": "a", "name": HOSTILE, "description": HOSTILE, "parts": [made] }],
    });
    let answer = async |State(task): State<Arc<Value>>, Json(asked): Json<Value>| {
        Json(json!({ "jsonrpc": "2.0", "id": asked["id"], "result": *task }))
    };
    let router = Router::new()
        .route("/.well-known/agent-card.json", get(async || Json(card)))
        .route("/", axum::routing::post(answer))
        .with_state(Arc::new(task));
    serving.spawn(async move { axum::serve(listener, router).await });
    Ok(url)
}

#[tokio::test]
async fn terminal_never_executes_card_escapes() -> Result<()> {
    let mut serving = JoinSet::new();
    let url = hostile_agent(&mut serving).await?;
    let config = format!("[remote.bad]\nurl = '{url}'\n");
    let hub = TestHub::builder().config(config).start().await?;
    fs::write(hub.data_dir().join("plugins").join(format!("{HOSTILE}.wasm")), "no component")?;
    let look = async || Ok::<_, anyhow::Error>(run(&hub, &["agents"]).await?.stdout);
    while !look().await?.contains("not loaded: ") {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let said = r"\u{1b}[2J\u{1b}]0;title";
    for (words, is_said) in [
        (vec!["agents"], true),
        (vec!["agents", "--health"], true),
        (vec!["agent", "show", "bad"], true),
        (vec!["status"], true),
        (vec!["send", "bad", "hi", "--save", "made"], true),
        (vec!["send", &url, "hi", "--save", "made"], true),
        (vec!["tasks"], false),
        (vec!["doctor"], true),
        (vec!["--format", "json", "agents"], false),
        (vec!["--format", "json", "status"], false),
        (vec!["--format", "json", "send", "bad", "hi", "--save", "made"], false),
    ] {
        let Ran { stdout: shown, .. } = finish(typed(&hub, &words)?).await?;
        is_clean(&shown, &words)?;
        assert!(!is_said || shown.contains(said), "{words:?}: {shown:?}");
    }
    let names: Vec<_> = fs::read_dir(hub.workspace().join("made"))?
        .map(|entry| entry.map(|it| it.file_name().to_string_lossy().into_owned()))
        .collect::<Result<_, _>>()?;
    assert_eq!(names.len(), 3);
    for name in names {
        assert!(obeyed(&name).is_empty() && !name.contains('\u{202e}'), "{name:?}");
    }
    Ok(())
}

/// A foreground hub's log contains text from agents and file names.
#[tokio::test]
async fn terminal_never_executes_log_escapes() -> Result<()> {
    for pretty in ["true", "false"] {
        let dir = home()?;
        let (home, socket) = (dir.path(), dir.path().join("hub.sock"));
        let plugins = home.join(".a2a-hub/plugins");
        fs::create_dir_all(&plugins)?;
        fs::copy(test_guests()?, plugins.join("guest.wasm"))?;
        fs::write(plugins.join(format!("{HOSTILE}.wasm")), "no component")?;
        fs::write(home.join(".a2a-hub/config.toml"), GRANT)?;
        let mut hub = typed_by(home, &socket, home, &["start", "--foreground", "--no-http"])?;
        hub.env("A2A_HUB_LOGGING_PRETTY", pretty).env("A2A_HUB_LOGGING_LEVEL", "debug");
        let mut hub = hub.spawn()?;
        let mut screen = hub.stdout.take().context("no stdout")?;
        let (mut shown, mut seen) = (String::new(), [0; 4096]);
        let all = async {
            let mut is_up = false;
            loop {
                let read = screen.read(&mut seen).await?;
                shown.push_str(&String::from_utf8_lossy(&seen[..read]));
                if read == 0 {
                    return anyhow::Ok(());
                }
                if !is_up && shown.contains("the hub is up") {
                    is_up = true;
                    let words = ["send", "guest", &format!("leak {HOSTILE}")];
                    finish(command(&socket, home, &words)?).await?;
                    let stopped = finish(command(&socket, home, &["stop"])?).await?;
                    assert_eq!(stopped.code, Some(0), "{}", stopped.stderr);
                }
            }
        };
        timeout(Duration::from_secs(60), all).await??;
        is_clean(&shown, &["start", "--foreground", pretty])?;
        let told = if pretty == "true" { r"\u{202e}gpj.exe" } else { r"\u202egpj.exe" };
        let (plugin, agent) = shown.split_once("the hub is up").context("it is not up")?;
        assert!(plugin.contains(told), "{plugin:?}");
        assert!(agent.contains(told), "{agent:?}");
        assert_eq!(shown.contains("\x1b[33mWARN"), pretty == "true", "{shown:?}");
    }
    Ok(())
}

#[tokio::test]
async fn pipe_and_raw_get_every_byte() -> Result<()> {
    let hub = hub_with_guest().await?;
    assert_eq!(run(&hub, &["send", "echo", HOSTILE]).await?.stdout, format!("{HOSTILE}\n"));
    let shown = finish(typed(&hub, &["send", "echo", HOSTILE, "--raw"])?).await?.stdout;
    assert!(shown.contains("\x1b[2J\x1b]0;title\x07"), "{shown:?}");
    Ok(())
}

#[tokio::test]
async fn terminal_shows_artifacts_and_last_words() -> Result<()> {
    let hub = hub_with_guest().await?;
    for more in [&["--stream"][..], &[]] {
        let words = [&["send", "guest", "parts"], more].concat();
        let shown = finish(typed(&hub, &words)?).await?.stdout.replace('\r', "");
        assert!(shown.contains("[file a.bin, 2 bytes]"), "{shown:?}");
        assert!(shown.contains("\n\nmade them\n"), "{shown:?}");
    }
    Ok(())
}

/// A conversation can continue however its task ended.
#[tokio::test]
async fn terminal_shows_continuation_command() -> Result<()> {
    let hub = hub_with_guest().await?;
    for words in [["send", "echo", "hi"], ["send", "guest", "fail"], ["send", "guest", "panic"]] {
        let shown = finish(typed(&hub, &words)?).await?.stdout;
        let shown = shown.replace("\r\n", " ");
        assert!(shown.contains(": continue with --context, or --continue"), "{words:?}: {shown:?}");
    }
    Ok(())
}

/// Input that an agent provoked by a forged question must not answer the next real one.
#[tokio::test]
async fn typeahead_never_answers_question() -> Result<()> {
    let hub = hub_with_guest().await?;
    let mut script = typed(&hub, &["send", "guest", "ask"])?;
    let mut child = script.stdin(Stdio::piped()).spawn()?;
    let mut keys = child.stdin.take().context("no stdin")?;
    let mut screen = child.stdout.take().context("no stdout")?;
    // Typed before the hub has asked.
    keys.write_all(b"typed ahead\n").await?;
    let mut shown = String::new();
    let mut seen = [0; 4096];
    let answered = async {
        let mut asked = false;
        loop {
            let read = screen.read(&mut seen).await?;
            shown.push_str(&String::from_utf8_lossy(&seen[..read]));
            if read == 0 {
                return anyhow::Ok(());
            }
            if !asked && shown.contains("> ") {
                asked = true;
                keys.write_all(b"the real answer\n").await?;
            }
        }
    };
    timeout(Duration::from_secs(30), answered).await??;
    assert!(shown.contains("guest asks:") && shown.contains("│ "), "{shown:?}");
    assert!(shown.contains("what do you say?"), "{shown:?}");
    // Once as echoed by the terminal, and once as the agent repeats it.
    let after = shown.rsplit_once("> ").map(|(_, after)| after).unwrap_or_default();
    assert_eq!(after.matches("the real answer").count(), 2, "{shown:?}");
    assert!(!after.contains("typed ahead"), "{shown:?}");
    Ok(())
}

/// Runs a command on a terminal and acts once at its prompt; returns its exit status and what the
/// terminal shows.
async fn at_prompt(
    hub: &TestHub,
    words: &[&str],
    act: impl AsyncFnOnce(&mut ChildStdin) -> Result<()>,
) -> Result<(Option<i32>, String)> {
    let mut script = typed(hub, words)?;
    let mut child = script.stdin(Stdio::piped()).spawn()?;
    let mut keys = child.stdin.take().context("no stdin")?;
    let mut screen = child.stdout.take().context("no stdout")?;
    let (mut shown, mut seen, mut act) = (String::new(), [0; 4096], Some(act));
    let ended = async {
        loop {
            let read = screen.read(&mut seen).await?;
            shown.push_str(&String::from_utf8_lossy(&seen[..read]));
            if read == 0 {
                return anyhow::Ok(());
            }
            if let Some(act) = act.take_if(|_| shown.contains("> ")) {
                act(&mut keys).await?;
            }
        }
    };
    timeout(Duration::from_secs(60), ended).await??;
    Ok((child.wait().await?.code(), shown))
}

/// Waits at the prompt until another command, given without the task's id at its end, closed the
/// question; returns the exit status and what the terminal shows from the prompt on.
async fn prompt_closed_by(
    hub: &TestHub,
    before: &[&str],
    after: &[&str],
) -> Result<(Option<i32>, String)> {
    let close = async |_: &mut ChildStdin| {
        let waiting = ["--format", "json", "tasks", "--state", "input-required"];
        let tasks: Value = serde_json::from_str(&run(hub, &waiting).await?.stdout)?;
        let id = tasks[0]["id"].as_str().context("no task waits")?;
        let ran = run(hub, &[before, &[id], after].concat()).await?;
        ensure!(ran.code == Some(0), "{}", ran.stderr);
        Ok(())
    };
    let (code, shown) = at_prompt(hub, &["send", "guest", "ask"], close).await?;
    Ok((code, shown.rsplit_once("> ").map(|(_, after)| after.to_owned()).unwrap_or_default()))
}

#[tokio::test]
async fn prompt_is_withdrawn_when_question_is_closed() -> Result<()> {
    let hub = hub_with_guest().await?;
    let (code, shown) =
        prompt_closed_by(&hub, &["send", "guest", "--task"], &["from the other terminal"]).await?;
    assert_eq!(code, Some(0), "{shown:?}");
    let is_told = ["answered elsewhere, withdrawn", "no answer is needed any more"]
        .iter()
        .any(|told| shown.contains(told));
    assert!(is_told, "{shown:?}");
    assert!(shown.contains("from the other terminal"), "{shown:?}");
    let (code, shown) = prompt_closed_by(&hub, &["task", "cancel"], &[]).await?;
    assert_eq!(code, Some(1), "{shown:?}");
    assert!(shown.contains("no answer is needed any more"), "{shown:?}");
    assert!(shown.contains("cancelled"), "{shown:?}");
    Ok(())
}

/// Answers the command's only prompt, and returns what the terminal shows.
async fn answering(hub: &TestHub, words: &[&str], answer: &[u8]) -> Result<String> {
    let answered = async |keys: &mut ChildStdin| Ok(keys.write_all(answer).await?);
    Ok(at_prompt(hub, words, answered).await?.1)
}

#[tokio::test]
async fn conversation_is_deleted_after_confirmation() -> Result<()> {
    let hub = hub_with_guest().await?;
    let begun = run(&hub, &["send", "echo", "hi", "--context", "talk"]).await?;
    assert!(begun.stderr.contains("no conversation is called `talk` yet"), "{}", begun.stderr);
    let more = run(&hub, &["send", "echo", "hi", "--context", "talk"]).await?;
    assert_eq!(more.stderr, "", "it is known by now");
    let delete = ["contexts", "delete", "talk"];
    let shown = answering(&hub, &delete, b"\n").await?;
    assert!(shown.contains("with 2 tasks? [y/N]") && shown.contains("was kept"), "{shown:?}");
    let shown = answering(&hub, &delete, b"y\n").await?;
    assert!(shown.contains("was deleted"), "{shown:?}");
    run(&hub, &["send", "echo", "hi", "--context", "talk"]).await?;
    let shown = finish(typed(&hub, &[&delete[..], &["--yes"]].concat())?).await?.stdout;
    assert!(shown.contains("was deleted") && !shown.contains("[y/N]"), "{shown:?}");
    Ok(())
}
