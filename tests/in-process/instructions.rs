//! Cost of pieces of the hub's work in instructions, counted by callgrind and so independent of the
//! machine's load. A separate process does each piece a hundred times, another five hundred times;
//! the difference counts.

use crate::{WORDS, start};
use a2a_hub::{
    BuiltIn, Hub,
    config::Config,
    protocol::{
        binding::jsonrpc::ParamsSource,
        dialect::{Dialect, Wire, jsonrpc},
        id::{ContextId, TaskId},
        interface::{Binding, Version},
        message::{Message, Role},
        operation::Answer,
        task::{Task, TaskState, TaskStatus},
    },
};
use anyhow::{Context as _, Result, bail, ensure};
use serde_json::{Value, json};
use std::{collections::BTreeMap, env, fs, hint::black_box, path::PathBuf};
use tokio::process::Command;

/// Numbers of repetitions in the two processes.
const TIMES: (u64, u64) = (100, 500);

/// Factor by which a cost may exceed the accepted one, since thread scheduling varies.
const MORE: f64 = 1.05;

/// Counted pieces.
const PIECES: [&str; 6] = [
    "a message of 0.3 is read",
    "a message of 1.0 is read",
    "a task is written for 0.3",
    "a task is written for 1.0",
    "a task of an agent in Rust, in memory",
    "a task of an agent in Rust, in SQLite",
];

/// Use of the figures.
pub(crate) enum Then {
    Print,
    Accept,
    Check,
}

/// Counts all pieces, and prints, accepts or checks the figures.
pub(crate) async fn measure(then: Then) -> Result<()> {
    let accepted = match then {
        Then::Check => read()?,
        Then::Print | Then::Accept => BTreeMap::new(),
    };
    let mut counted = BTreeMap::new();
    let mut worse = Vec::new();
    println!("{:<44}{:>14}{:>12}", "instructions each", "now", "accepted");
    for piece in PIECES {
        let (few, many) = (count(piece, TIMES.0).await?, count(piece, TIMES.1).await?);
        let each = many.saturating_sub(few) / (TIMES.1 - TIMES.0);
        let known = accepted.get(piece).copied();
        let is_worse = known.is_some_and(|known: u64| each as f64 > known as f64 * MORE);
        let told = known.map(|known| known.to_string()).unwrap_or_default();
        println!("{piece:<44}{each:>14}{told:>12}{}", if is_worse { "  worse" } else { "" });
        worse.extend(is_worse.then_some(piece));
        counted.insert(piece.to_owned(), each);
    }
    ensure!(
        worse.is_empty(),
        "more than 5 % above what was accepted: {}; `callgrind_annotate` tells of a file that `valgrind --tool=callgrind` wrote which \
         functions those are",
        worse.join("; ")
    );
    if let Then::Accept = then {
        let mut text = serde_json::to_string_pretty(&counted)?;
        text.push('\n');
        fs::write(file(), text)?;
        println!("\naccepted, in {}", file().display());
    }
    Ok(())
}

fn file() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("instructions.json")
}

fn read() -> Result<BTreeMap<String, u64>> {
    let text = fs::read(file()).context("nothing is accepted yet: run it with --accept")?;
    serde_json::from_slice(&text).with_context(|| format!("{} is damaged", file().display()))
}

/// Instructions of a process that does a piece `times` times.
#[expect(clippy::disallowed_methods, reason = "a benchmark has no supervisor")]
async fn count(piece: &str, times: u64) -> Result<u64> {
    let mut valgrind = Command::new("valgrind");
    valgrind.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]);
    valgrind.arg(env::current_exe()?).args(["--piece", piece, &times.to_string()]);
    let done = valgrind.output().await;
    let done =
        done.context("instructions are counted by valgrind: install it (Debian: valgrind)")?;
    let said = String::from_utf8_lossy(&done.stderr);
    ensure!(done.status.success(), "`{piece}` failed under valgrind: {said}");
    let counted =
        said.lines().find_map(|line| line.split("Collected :").nth(1)?.trim().parse().ok());
    counted
        .with_context(|| format!("valgrind did not say how many instructions it counted: {said}"))
}

/// Does a piece `times` times.
pub(crate) async fn perform(piece: &str, times: u64) -> Result<()> {
    let official = |version| Dialect::Official(Wire { version, binding: Binding::JsonRpc });
    match piece {
        "a message of 0.3 is read" => {
            let request = json!({ "jsonrpc": "2.0", "id": 1, "method": "message/send", "params": { "message": {
                "kind": "message", "role": "user", "messageId": "m", "parts": [{ "kind": "text", "text": WORDS }] } } });
            repeat_reading(&request, official(Version::V03), times)
        }
        "a message of 1.0 is read" => {
            let request = json!({ "jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": { "message": {
                "role": "ROLE_USER", "messageId": "m", "parts": [{ "text": WORDS }] } } });
            repeat_reading(&request, official(Version::V1), times)
        }
        "a task is written for 0.3" => repeat_writing(Version::V03, times),
        "a task is written for 1.0" => repeat_writing(Version::V1, times),
        "a task of an agent in Rust, in memory" => {
            let mut config = Config::default();
            config.socket.enabled = false;
            config.http.port = 0;
            repeat_tasks(start(Hub::in_memory().config(config)).await?, times).await
        }
        "a task of an agent in Rust, in SQLite" => {
            let dir = tempfile::tempdir()?;
            let builder = Hub::builder(dir.path()).built_in(BuiltIn::default());
            repeat_tasks(start(builder).await?, times).await
        }
        other => bail!("there is no piece `{other}`"),
    }
}

fn repeat_reading(request: &Value, dialect: Dialect, times: u64) -> Result<()> {
    let text = request.to_string();
    for _ in 0..times {
        let read = jsonrpc::read(black_box(text.as_bytes()), dialect, ParamsSource::Headers);
        let _ = black_box(read.map(|request| ensure_read(request.operation.is_ok())));
    }
    Ok(())
}

/// Fails if the request is refused: a benchmark of refusals would be meaningless.
fn ensure_read(is_read: bool) {
    assert!(is_read, "the request of the benchmark is refused");
}

fn repeat_writing(version: Version, times: u64) -> Result<()> {
    let (id, context_id) = (TaskId::fresh(), ContextId::fresh());
    let said = |role| Message {
        task_id: Some(id.clone()),
        context_id: Some(context_id.clone()),
        ..Message::text(role, WORDS)
    };
    let timestamp = "2026-01-01T00:00:00.000Z".to_owned();
    let message = Some(said(Role::Agent));
    let task = Task {
        status: TaskStatus { state: TaskState::Completed, message, timestamp },
        artifacts: Vec::new(),
        history: vec![said(Role::User)],
        metadata: None,
        id: id.clone(),
        context_id: context_id.clone(),
    };
    let dialect = Dialect::Official(Wire { version, binding: Binding::JsonRpc });
    let answer = Answer::Task(Box::new(task));
    for _ in 0..times {
        ensure!(
            black_box(dialect.answer_text(black_box(&answer), true)).is_some(),
            "nothing is written"
        );
    }
    Ok(())
}

async fn repeat_tasks(hub: Hub, times: u64) -> Result<()> {
    let agent = hub.local().agent("shout").context("no agent")?;
    for _ in 0..times {
        let task = agent.send(Message::text(Role::User, WORDS)).await?;
        ensure!(task.status.message.is_some(), "it said nothing");
    }
    hub.shutdown().await;
    Ok(())
}
