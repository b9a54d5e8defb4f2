//! Overhead of the hub and an adapter for a turn of a command line agent. The program answers at
//! once, directly and through the hub; each turn either starts it, or reuses the conversation's
//! program.

use crate::{LOAD, SERVERS, load::Connection, pin};
use a2a_hub_tests::{TestHub, message_to};
use anyhow::{Context as _, Result, bail, ensure};
use serde_json::{Value, json};
use std::{
    env, fs,
    io::{self, BufRead as _, Write as _},
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::Stdio,
    time::{Duration, Instant},
};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines},
    process::{Child, ChildStdin, ChildStdout, Command},
};

/// Number of turns of each kind.
const TURNS: usize = 200;

/// Number of turns before the measurement.
const WARM_UP: usize = 5;

/// Maximum median overhead of hub and adapter for a turn of a reused program.
const GOAL: Duration = Duration::from_millis(5);

/// Output of Claude Code in one turn.
const SAYS: [&str; 4] = [
    r#"{"type":"system","subtype":"init","session_id":"00000000-0000-4000-8000-000000000001","model":"m","cwd":"/"}"#,
    r#"{"type":"stream_event","event":{"type":"message_start"},"parent_tool_use_id":null}"#,
    r#"{"type":"stream_event","event":{"type":"content_block_delta","delta":{"type":"text_delta","text":"done"}},"parent_tool_use_id":null}"#,
    r#"{"type":"result","subtype":"success","is_error":false,"result":"done","session_id":"00000000-0000-4000-8000-000000000001","total_cost_usd":0.1}"#,
];

/// Runs as the program: answers each line of its input at once.
pub(crate) fn answer() -> Result<()> {
    let mut out = io::stdout().lock();
    for line in io::stdin().lock().lines() {
        line?;
        for said in SAYS {
            out.write_all(said.as_bytes())?;
            out.write_all(b"\n")?;
        }
        out.flush()?;
    }
    Ok(())
}

/// Prints the times of turns with and without the hub.
pub(crate) async fn measure() -> Result<()> {
    pin(SERVERS)?;
    let place = tempfile::tempdir()?;
    let program = install(place.path())?;
    let config = format!("[agents.claude-code]\nprograms.claude = '{}'", program.display());
    let hub = TestHub::builder().config(config).start().await?;
    let at = hub.http().parse().context("the hub serves HTTP at no address")?;
    let mut client = Connection::open(at).await?;
    let mut kept_here = Bare::start(&program)?;
    pin(LOAD)?;

    println!("\na turn of a program that answers at once: p50 and p99 of {TURNS}, in us");
    let mut spent = [const { Vec::new() }; 4];
    let mut context = Value::Null;
    for turn in 0..WARM_UP + TURNS {
        let begun = now();
        // The process starts on the core of the hub's processes.
        pin(SERVERS)?;
        let mut bare = Bare::start(&program)?;
        pin(LOAD)?;
        bare.turn().await?;
        let cold_bare = begun.elapsed();
        bare.end().await?;

        let begun = now();
        kept_here.turn().await?;
        let kept_bare = begun.elapsed();

        let begun = now();
        send(&mut client, &Value::Null).await?;
        let cold = begun.elapsed();

        if context.is_null() {
            context = send(&mut client, &Value::Null).await?;
        }
        let begun = now();
        send(&mut client, &context).await?;
        let kept = begun.elapsed();
        if turn >= WARM_UP {
            for (spent, took) in spent.iter_mut().zip([cold_bare, cold, kept_bare, kept]) {
                spent.push(took);
            }
        }
    }
    kept_here.end().await?;
    let [cold_bare, cold, kept_bare, kept] = spent.map(|mut spent| {
        spent.sort();
        [50, 99].map(|share| spent[(spent.len() - 1) * share / 100])
    });
    println!("{:<10}{:>12}{:>12}{:>12}", "", "bare", "hub", "added p50");
    for (name, bare, hub) in [("started", cold_bare, cold), ("kept", kept_bare, kept)] {
        let cell = |of: [Duration; 2]| format!("{} / {}", of[0].as_micros(), of[1].as_micros());
        let added = hub[0].saturating_sub(bare[0]).as_micros();
        println!("{name:<10}{:>16}{:>20}{added:>12}", cell(bare), cell(hub));
    }
    let added = kept[0].saturating_sub(kept_bare[0]);
    let word = if added <= GOAL { "within" } else { "above" };
    println!(
        "hub and adapter add {added:.0?} to a turn of a kept program, which is {word} {GOAL:?}"
    );
    Ok(())
}

/// Installs this program under the vendor's name.
fn install(place: &Path) -> Result<PathBuf> {
    let program = place.join("claude");
    let this = env::current_exe()?;
    let script = format!(
        "#!/bin/sh\ncase $1 in --version) echo 1.0.0 ;; auth) echo '{{\"loggedIn\": true}}' ;; *) exec '{}' program ;; esac\n",
        this.display()
    );
    fs::write(&program, script)?;
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755))?;
    Ok(program)
}

/// Runs a turn through the hub, in this conversation or in a new one; returns the conversation.
async fn send(client: &mut Connection, context: &Value) -> Result<Value> {
    let mut params = message_to("claude-code", "hi");
    if !context.is_null() {
        params["message"]["contextId"] = context.clone();
    }
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "message/send", "params": params });
    let answer: Value = serde_json::from_slice(client.post("/", &call.to_string()).await?)?;
    let task = &answer["result"];
    ensure!(task["status"]["state"] == "completed", "{answer}");
    Ok(task["contextId"].clone())
}

/// Program that runs without a hub.
struct Bare {
    child: Child,
    stdin: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Bare {
    #[expect(
        clippy::disallowed_methods,
        reason = "what the hub adds is seen beside the program alone"
    )]
    fn start(program: &Path) -> Result<Self> {
        let mut child = Command::new(program)
            .arg("-p")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let stdin = child.stdin.take().context("no input")?;
        let stdout = child.stdout.take().context("no output")?;
        Ok(Self { child, stdin, lines: BufReader::new(stdout).lines() })
    }

    async fn turn(&mut self) -> Result<()> {
        self.stdin
            .write_all(b"{\"type\":\"user\",\"message\":{\"role\":\"user\",\"content\":\"hi\"}}\n")
            .await?;
        while let Some(line) = self.lines.next_line().await? {
            if line.contains(r#""type":"result""#) {
                return Ok(());
            }
        }
        bail!("the program ended without an answer")
    }

    async fn end(self) -> Result<()> {
        let Self { mut child, stdin, .. } = self;
        drop(stdin);
        child.wait().await?;
        Ok(())
    }
}

#[expect(clippy::disallowed_methods, reason = "a benchmark looks at the clock")]
fn now() -> Instant {
    Instant::now()
}
