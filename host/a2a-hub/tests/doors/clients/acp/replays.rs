//! Recorded runs of each adapter's program, played to an editor: every tool call of a turn is
//! announced once, and ended with the turn.

use crate::hub::InProcessHub;
use a2a_hub_tests::mcp::speak;
use anyhow::{Context as _, Result, bail, ensure};
use futures::future::join_all;
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    time::Duration,
};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines},
    net::{
        UnixStream,
        unix::{OwnedReadHalf, OwnedWriteHalf},
    },
    time::timeout,
};

/// Timeout of a turn on a busy machine.
const TURN: Duration = Duration::from_secs(60);

/// An adapter with its program.
struct Adapter {
    agent: &'static str,
    program: &'static str,
    /// Number of lines that the program reads at first; the recordings of ACP have them.
    reads: usize,
    /// Part of a line with a question, after which the program reads a line: the answer.
    question: &'static str,
    /// Number of lines before the first answer that the program has not read at its beginning.
    unread: usize,
    /// Output for health checks.
    hello: &'static str,
    settings: &'static str,
}

const ADAPTERS: [Adapter; 4] = [
    Adapter {
        agent: "claude-code",
        program: "claude",
        reads: 1,
        question: r#""control_request""#,
        unread: 0,
        hello: "",
        settings: "",
    },
    Adapter {
        agent: "codex",
        program: "codex",
        reads: 4,
        question: "/request",
        // `turn/start`, whose answer is recorded before the question.
        unread: 1,
        hello: r#"{"id":1,"result":{}}"#,
        settings: "",
    },
    Adapter {
        agent: "gemini",
        program: "gemini",
        reads: 0,
        question: "",
        unread: 0,
        hello: ACP_HELLO,
        // Model that the recordings' client set.
        settings: "settings.model = 'gemini-3.8-flash'",
    },
    Adapter {
        agent: "vibe",
        program: "vibe-acp",
        reads: 0,
        question: "",
        unread: 0,
        hello: ACP_HELLO,
        settings: "",
    },
];

const ACP_HELLO: &str = r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1}}"#;

/// Program that plays the file `recording` of its working directory: it writes each line after `<
/// `, and reads one at each `> `.
const PLAYER: &str = r#"#!/bin/bash
case $1 in --version) echo 2.1.332; exit ;; auth) echo '{"loggedIn": true}'; exit ;; esac
if [ ! -f recording ]; then printf '%s\n' 'HELLO'; exec cat >/dev/null; fi
while IFS= read -r line; do
    case $line in
        '> '*) read -r -t 2 _ <&3 ;;
        '< '*) printf '%s\n' "${line#< }" ;;
    esac
done 3<&0 <recording
"#;

/// Answers of the user to permission requests; `None` cancels the turn there.
const ANSWERS: [Option<&str>; 3] = [Some("allow"), Some("deny"), None];

#[tokio::test]
async fn recorded_turns_end_all_tool_calls() -> Result<()> {
    let bin = tempfile::tempdir()?;
    let mut config = "[breaker]\nfailures = 1000\n".to_owned();
    for Adapter { agent, program, hello, settings, .. } in &ADAPTERS {
        let file = bin.path().join(program);
        fs::write(&file, PLAYER.replace("HELLO", hello))?;
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755))?;
        config += &format!(
            "[agents.{agent}]\ntimeout_ms = 30000\nmax_running = 8\n{settings}\nprograms = {{ {program} = '{}' }}\n",
            file.display()
        );
    }
    let hub = InProcessHub::builder().config(config).start().await?;
    let mut wrong = Vec::new();
    for adapter in &ADAPTERS {
        let turns = ANSWERS.into_iter().map(|answer| replay_all(&hub, adapter, answer));
        let (mut calls, mut questions) = (0, 0);
        for turns in join_all(turns).await {
            for (name, turn) in turns? {
                match turn {
                    Ok(turn) => {
                        calls += turn.states.len();
                        questions += turn.questions;
                    }
                    Err(why) => wrong.push(format!("{} {name}: {why:#}", adapter.agent)),
                }
            }
        }
        if calls < 6 || questions < 3 {
            wrong.push(format!("{}: {calls} calls, {questions} questions", adapter.agent));
        }
    }
    ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

/// Tool calls of a turn, and the number of permission requests.
#[derive(Default)]
struct Turn {
    states: BTreeMap<String, String>,
    questions: usize,
}

/// Plays all recordings of an adapter, one after the other.
async fn replay_all(
    hub: &InProcessHub,
    adapter: &Adapter,
    answer: Option<&str>,
) -> Result<Vec<(String, Result<Turn>)>> {
    let mut turns = Vec::new();
    for file in recordings(adapter)? {
        let name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let folder = format!("{}-{name}-{}", adapter.agent, answer.unwrap_or("cancel"));
        let place = hub.workspace().join(folder);
        fs::create_dir(&place)?;
        fs::write(place.join("recording"), recording(adapter, &fs::read_to_string(file)?))?;
        turns.push((name, replay(hub, adapter, &place, answer).await));
    }
    ensure!(turns.len() >= 10, "{}: {} recordings", adapter.agent, turns.len());
    Ok(turns)
}

/// Recordings of the adapter's dialogue.
fn recordings(adapter: &Adapter) -> Result<Vec<PathBuf>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../guest-agents")
        .join(adapter.agent)
        .join("tests/transcripts");
    let files = fs::read_dir(&folder)?.collect::<Result<Vec<_>, _>>()?;
    let mut files: Vec<_> = files.into_iter().map(|file| file.path()).collect();
    // Those of the mode `one-shot` are output alone.
    files.retain(|file| !file.to_string_lossy().contains("one_shot"));
    files.sort();
    Ok(files)
}

/// Recording with the lines that the program reads.
fn recording(adapter: &Adapter, recorded: &str) -> String {
    if adapter.reads == 0 {
        return recorded.to_owned();
    }
    let mut lines = vec!["> ".to_owned(); adapter.reads];
    let mut unread = adapter.unread;
    for line in recorded.lines() {
        lines.push(format!("< {line}"));
        if line.contains(adapter.question) {
            let reads = 1 + std::mem::take(&mut unread);
            lines.extend(vec!["> ".to_owned(); reads]);
        }
    }
    lines.join("\n") + "\n"
}

/// Plays a recording to an editor, and checks the tool calls of its turn.
async fn replay(
    hub: &InProcessHub,
    adapter: &Adapter,
    place: &Path,
    answer: Option<&str>,
) -> Result<Turn> {
    let mut editor = Editor::connect(hub, adapter.agent).await?;
    let session = json!({ "cwd": place, "mcpServers": [] });
    editor.send(&json!({ "id": 2, "method": "session/new", "params": session })).await?;
    let session = editor.until(2).await?["result"]["sessionId"].clone();
    let prompt = json!([{ "type": "text", "text": "go" }]);
    let params = json!({ "sessionId": session, "prompt": prompt });
    editor.send(&json!({ "id": 3, "method": "session/prompt", "params": params })).await?;
    let mut turn = Turn::default();
    loop {
        let line = editor.next().await?;
        if line["id"] == 3 && line.get("method").is_none() {
            break;
        }
        turn.add(&line)?;
        if line["method"] == "session/request_permission" {
            match answer {
                Some(choice) => {
                    let outcome = json!({ "outcome": "selected", "optionId": choice });
                    let result = json!({ "outcome": outcome });
                    editor.send(&json!({ "id": line["id"], "result": result })).await?;
                }
                None => {
                    let params = json!({ "sessionId": session });
                    editor.send(&json!({ "method": "session/cancel", "params": params })).await?;
                }
            }
        }
    }
    let open = turn.states.iter().find(|(_, state)| !["completed", "failed"].contains(&&***state));
    ensure!(open.is_none(), "{open:?} is open after the turn");
    Ok(turn)
}

impl Turn {
    fn add(&mut self, line: &Value) -> Result<()> {
        let update = &line["params"]["update"];
        let id = update["toolCallId"].as_str().map(str::to_owned);
        let state = update["status"].as_str().map(str::to_owned);
        match (update["sessionUpdate"].as_str(), id) {
            (Some("tool_call"), Some(id)) => {
                let before = self.states.insert(id, state.unwrap_or_default());
                ensure!(before.is_none(), "announced twice: {update}");
            }
            (Some("tool_call_update"), Some(id)) => {
                let known = self.states.get_mut(&id);
                let known = known.with_context(|| format!("not announced: {update}"))?;
                *known = state.unwrap_or_else(|| known.clone());
            }
            _ => {}
        }
        if line["method"] == "session/request_permission" {
            self.questions += 1;
            let about = &line["params"]["toolCall"];
            let id = about["toolCallId"].as_str().unwrap_or_default();
            ensure!(self.states.contains_key(id), "not announced: {line}");
            ensure!(about["title"].is_string() && about["kind"].is_string(), "{line}");
            ensure!(!id.contains('#'), "the question is about no call of the turn: {line}");
        }
        Ok(())
    }
}

/// An editor's connection to an agent.
struct Editor {
    read: Lines<BufReader<OwnedReadHalf>>,
    write: OwnedWriteHalf,
}

impl Editor {
    async fn connect(hub: &InProcessHub, agent: &str) -> Result<Self> {
        let (read, write) = UnixStream::connect(hub.socket()).await?.into_split();
        let mut editor = Self { read: BufReader::new(read).lines(), write };
        editor.send(&speak(&json!({ "protocol": "acp", "agentId": agent }))).await?;
        editor.until(1).await?;
        Ok(editor)
    }

    async fn send(&mut self, line: &Value) -> Result<()> {
        let mut line = line.clone();
        line["jsonrpc"] = json!("2.0");
        Ok(self.write.write_all(format!("{line}\n").as_bytes()).await?)
    }

    async fn next(&mut self) -> Result<Value> {
        let line = timeout(TURN, self.read.next_line()).await.context("the turn hangs")??;
        Ok(serde_json::from_str(&line.context("the hub closed the connection")?)?)
    }

    /// Response to a request.
    async fn until(&mut self, id: u64) -> Result<Value> {
        loop {
            let line = self.next().await?;
            if line["id"] == id && line.get("method").is_none() {
                if line.get("error").is_some() {
                    bail!("{line}");
                }
                return Ok(line);
            }
        }
    }
}
