//! Tests of the adapters with programs that misbehave: truncated, slow or endless output, and
//! ignored signals. No program hangs, crashes or bloats its adapter or the hub, and each task ends
//! in time in its true state.

use crate::{
    hub::InProcessHub,
    stage::{get, no_program_left, state, write_program},
};
use a2a_hub_tests::{Client, message_to, resident_bytes};
use anyhow::{Context as _, Result, ensure};
use futures::future::join_all;
use serde_json::json;
use std::{fmt::Write as _, fs, path::Path, time::Duration};
use tokio::time::{Instant, sleep};

/// Timeout of a task. A busy machine processes 40,000 lines in a fraction of it.
const TIMEOUT_MS: u64 = 20_000;

/// Additional time until the client receives the end.
const GRACE: Duration = Duration::from_secs(15);

/// Output limit of an agent, in bytes.
const MAX_OUTPUT: usize = 1 << 20;

/// Memory limit of the hub with all trials running. Each guest may use 64 MiB, and uses only a part
/// of it.
const MAX_RESIDENT: u64 = 1 << 30;

/// Number of lines of text in a long answer.
const DELTAS: usize = 40_000;

/// Maximum number of events for a client, whatever the program does: text is stored in chunks of a
/// kibibyte.
const MAX_EVENTS: usize = (MAX_OUTPUT >> 10) + 200;

/// A vendor's protocol, as far as a fake program needs it.
struct Vendor {
    agent: &'static str,
    /// Name of the program in the agent's manifest.
    program: &'static str,
    /// Output until the model answers.
    hello: &'static [&'static str],
    /// Line with text of the answer: the parts before and after the text.
    delta: (&'static str, &'static str),
    /// Output after the complete answer.
    over: &'static [&'static str],
}

const CODEX: Vendor = Vendor {
    agent: "codex",
    program: "codex",
    hello: &[
        r#"{"id":1,"result":{}}"#,
        r#"{"id":3,"result":{"thread":{"id":"t"},"model":"m"}}"#,
        r#"{"method":"item/started","params":{"threadId":"t","item":{"type":"agentMessage","id":"a","text":""}}}"#,
    ],
    delta: (r#"{"method":"item/agentMessage/delta","params":{"threadId":"t","delta":""#, r#""}}"#),
    over: &[
        r#"{"method":"item/completed","params":{"threadId":"t","item":{"type":"agentMessage","id":"a","text":"done"}}}"#,
        r#"{"method":"turn/completed","params":{"threadId":"t","turn":{"status":"completed"}}}"#,
    ],
};

const CLAUDE: Vendor = Vendor {
    agent: "claude-code",
    program: "claude",
    hello: &[
        r#"{"type":"system","subtype":"init","session_id":"s","model":"m"}"#,
        r#"{"type":"stream_event","event":{"type":"message_start"},"parent_tool_use_id":null}"#,
    ],
    delta: (
        r#"{"type":"stream_event","event":{"type":"content_block_delta","delta":{"type":"text_delta","text":""#,
        r#""}},"parent_tool_use_id":null}"#,
    ),
    over: &[
        r#"{"type":"result","subtype":"success","is_error":false,"result":"done","session_id":"s"}"#,
    ],
};

const GEMINI: Vendor = Vendor {
    agent: "gemini",
    program: "gemini",
    hello: &[
        r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1}}"#,
        r#"{"jsonrpc":"2.0","id":2,"result":{"sessionId":"s","modes":{"currentModeId":"default"}}}"#,
    ],
    delta: ACP_DELTA,
    over: ACP_OVER,
};

const VIBE: Vendor = Vendor {
    agent: "vibe",
    program: "vibe-acp",
    hello: &[
        r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1}}"#,
        r#"{"jsonrpc":"2.0","id":2,"result":{"sessionId":"s","modes":{"currentModeId":"ask"}}}"#,
    ],
    delta: ACP_DELTA,
    over: ACP_OVER,
};

const ACP_DELTA: (&str, &str) = (
    r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":""#,
    r#""}}}}"#,
);

const ACP_OVER: &[&str] = &[r#"{"jsonrpc":"2.0","id":3,"result":{"stopReason":"end_turn"}}"#];

/// Behaviour of a fake program, as a shell script in a directory with the files `hello`, `over`,
/// `deltas`, `halves` and `long`.
struct Trial {
    name: &'static str,
    script: &'static str,
    ends: &'static str,
    /// Accepted failure reasons of the task, if any.
    reasons: &'static [&'static str],
}

const fn completes(name: &'static str, script: &'static str) -> Trial {
    Trial { name, script, ends: "completed", reasons: &[] }
}

const fn fails(
    name: &'static str,
    script: &'static str,
    reasons: &'static [&'static str],
) -> Trial {
    Trial { name, script, ends: "failed", reasons }
}

/// Faults of programs, with the true outcome of their tasks.
const TRIALS: &[Trial] = &[
    fails("half a line", "cat hello; head -c 20 over", &["broken_stream"]),
    fails("an end without a word", "cat hello", &["broken_stream"]),
    fails("nothing but an exit code", "exit 0", &["broken_stream", "agent_error"]),
    fails("silence", "exec sleep 300", &["timeout"]),
    fails("output closed and alive", "cat hello; exec >&-; sleep 300", &["timeout"]),
    fails("errors without end", "cat hello; exec yes error >&2", &["timeout"]),
    fails("an answer without end", "cat hello; while :; do cat long; done", &["limit_exceeded"]),
    fails("a line without end", "cat hello; exec tr '\\0' x </dev/zero", &["limit_exceeded"]),
    completes(
        "the last bytes one by one",
        "cat hello; n=$(wc -c <over); at=$((n - 20)); head -c $at over
         while [ $at -lt $n ]; do dd if=over bs=1 skip=$at count=1 2>/dev/null; at=$((at + 1)); sleep 0.1; done",
    ),
    completes(
        "a line of 5 MB",
        r#"cat hello; printf '{"new":"'; head -c 5000000 /dev/zero | tr '\0' x; printf '"}\n'; cat over"#,
    ),
    completes("40,000 pieces of text", "cat hello deltas over"),
    completes("bytes that are no text", r#"cat hello; printf '\377\376\n{"\300":1}\n'; cat over"#),
    completes(
        "a byte order mark and half characters",
        r#"printf '\357\273\277'; sed 's/$/\r/' hello; cat halves; sed 's/"done"/"done \\ud83d"/' over"#,
    ),
    completes("no newline at the end", r#"cat hello; printf %s "$(cat over)""#),
    completes("a flood of errors", "cat hello; head -c 20000000 /dev/zero >&2; cat over"),
    completes("deaf to signals", "trap '' TERM INT HUP; cat hello over; while :; do sleep 1; done"),
    completes("an answer that is over and output that is not", "cat hello over; exec yes more"),
    completes("a daemon left behind", "setsid sleep 300 & cat hello over"),
];

#[tokio::test]
async fn misbehaving_codex_fails_cleanly() -> Result<()> {
    endures(&CODEX).await
}

#[tokio::test]
async fn misbehaving_claude_fails_cleanly() -> Result<()> {
    endures(&CLAUDE).await
}

#[tokio::test]
async fn misbehaving_gemini_fails_cleanly() -> Result<()> {
    endures(&GEMINI).await
}

#[tokio::test]
async fn misbehaving_vibe_fails_cleanly() -> Result<()> {
    endures(&VIBE).await
}

/// Result line of a turn without an answer, after which the program is not reused.
const GIVES_UP: &str = r#"{"type":"result","subtype":"error_max_turns","is_error":true,"errors":["enough"],"session_id":"s"}"#;

/// A program exits slowly: its client does not wait for that, but the next task of the conversation
/// does.
#[tokio::test]
async fn next_task_waits_for_slow_exit() -> Result<()> {
    let bin = tempfile::tempdir()?;
    let fake = bin.path().join(CLAUDE.program);
    let says = |lines: &[&str]| lines.join("' '");
    // The script logs its start and its end. At the end of its input it takes a while, as if it
    // saved its state.
    let script = format!(
        "#!/bin/sh\ncase $1 in --version) echo 2.1.332; exit;; auth) echo '{{\"loggedIn\": true}}'; exit;; esac\necho begun >>log\nread prompt\nprintf '%s\\n' '{}' '{}'\n\
         cat >/dev/null\nsleep 2\necho ended >>log\n",
        says(CLAUDE.hello),
        GIVES_UP
    );
    write_program(&fake, &script)?;
    let config = format!("[agents.claude-code]\nprograms.claude = '{}'", fake.display());
    let hub = InProcessHub::builder().config(config).start().await?;
    let client = Client::http(&hub);
    let log = || fs::read_to_string(hub.workspace().join("log")).unwrap_or_default();

    let first = client.call("message/send", message_to("claude-code", "one")).await?;
    ensure!(state(&first) == "failed", "{first}");
    ensure!(
        log() == "begun\n",
        "the task ended when the program said so, not when it was gone: {}",
        log()
    );
    let mut again = message_to("claude-code", "two");
    again["message"]["contextId"] = first["contextId"].clone();
    let second = client.call("message/send", again).await?;
    ensure!(state(&second) == "failed", "{second}");
    ensure!(log() == "begun\nended\nbegun\n", "one after the other: {}", log());
    no_program_left(&hub.data_dir(), Duration::from_secs(5)).await
}

/// Runs all trials at once, on a hub whose program is a fake that executes the file `trial` in its
/// working directory.
async fn endures(vendor: &Vendor) -> Result<()> {
    let bin = tempfile::tempdir()?;
    let fake = bin.path().join(vendor.program);
    // Health checks get the answers of the vendor's program, so that no trial waits for one or is
    // refused because of one.
    let hello = vendor.hello.join("' '");
    let script = format!(
        "#!/bin/sh\nif [ -f trial ]; then . ./trial; exit; fi\n\
         case $1 in --version) echo 1.2.3 ;; *) printf '%s\\n' '{hello}'; exec cat >/dev/null ;; esac\n"
    );
    write_program(&fake, &script)?;
    let Vendor { agent, program, .. } = vendor;
    let mut hub = InProcessHub::builder()
        .config(format!(
            "[breaker]\nfailures = 1000\n[agents.{agent}]\ntimeout_ms = {TIMEOUT_MS}\nmax_running = {}\n\
             programs = {{ {program} = '{}' }}\nlimits = {{ output_bytes = {MAX_OUTPUT} }}\n\
             [agents.{agent}.grant]\nmemory = true\nfiles = true\nprocess = {{ {program} = {{ max_running = {} }} }}",
            TRIALS.len(),
            fake.display(),
            // Health checks run in addition to the trials.
            TRIALS.len() + 3
        ))
        .start()
        .await?;
    let trials = TRIALS.iter().map(|trial| endure(&hub, vendor, trial));
    let wrong = tokio::select! {
        ended = join_all(trials) => ended.into_iter().filter_map(Result::err).collect::<Vec<_>>(),
        bloated = grows_beyond(&hub, MAX_RESIDENT) => bloated.err().into_iter().collect(),
    };
    ensure!(wrong.is_empty(), "{wrong:#?}");
    Client::http(&hub).call("hub/status", json!({})).await.context("the hub is healthy")?;
    // Programs that answered are reused while the hub runs. Those that ignore signals take a while
    // to end.
    hub.stop().await?;
    no_program_left(&hub.data_dir(), Duration::from_secs(15)).await
}

/// Runs one trial: the task must end in time, in its true state, and with few events.
async fn endure(hub: &InProcessHub, vendor: &Vendor, trial: &Trial) -> Result<()> {
    let place = hub.workspace().join(trial.name.replace(' ', "-"));
    set_up(&place, vendor, trial)?;
    let client = Client::http(hub);
    let begun = Instant::now();
    let mut message = message_to(vendor.agent, "hello");
    message["message"]["metadata"]["workingDirectory"] = json!(place);
    let mut updates = client.stream("message/stream", message).await?;
    let created = updates.next().await.context("the stream is empty")??;
    let events = updates.rest().await?;
    let task = get(&client, created["id"].as_str().unwrap_or_default()).await?;

    let told = format!("{}: {}", trial.name, task["status"]);
    ensure!(state(&task) == trial.ends, "{told}");
    let reason = task["metadata"]["reason"].as_str().unwrap_or_default();
    ensure!(trial.reasons.is_empty() || trial.reasons.contains(&reason), "{told} ({reason})");
    let longest = Duration::from_millis(TIMEOUT_MS) + GRACE;
    ensure!(begun.elapsed() < longest, "{told}: after {:?}", begun.elapsed());
    ensure!(events.len() < MAX_EVENTS, "{told}: {} events", events.len());
    Ok(())
}

/// Writes the files that the fake program uses.
fn set_up(place: &Path, vendor: &Vendor, trial: &Trial) -> Result<()> {
    fs::create_dir(place)?;
    let lines = |lines: &[&str]| lines.iter().map(|line| format!("{line}\n")).collect::<String>();
    let (before, after) = vendor.delta;
    let mut deltas = String::new();
    for n in 0..DELTAS {
        writeln!(deltas, "{before}{n} {after}")?;
    }
    let halves = format!("{before}party \\ud83c{after}\n{before}\\udf89{after}\n");
    let long = format!("{before}{}{after}\n", "long ".repeat(200)).repeat(100);
    for (name, text) in [
        ("hello", lines(vendor.hello)),
        ("over", lines(vendor.over)),
        ("deltas", deltas),
        ("halves", halves),
        ("long", long),
        ("trial", trial.script.to_owned()),
    ] {
        fs::write(place.join(name), text)?;
    }
    Ok(())
}

/// Fails once the hub's memory exceeds `bytes`.
async fn grows_beyond(hub: &InProcessHub, bytes: u64) -> Result<()> {
    loop {
        let resident = resident_bytes(hub.pid()).context("the hub is gone")?;
        ensure!(resident < bytes, "the hub takes up {resident} bytes");
        sleep(Duration::from_millis(100)).await;
    }
}
