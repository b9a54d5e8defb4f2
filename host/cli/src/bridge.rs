//! `mcp` and `acp`: a program's standard input and output, brought to the hub's socket and back. What is said there is spoken by the
//! hub.

use super::{
    Exit, Global, completing,
    failure::{CONNECTION_LOST, CommandError},
    start,
};
use anyhow::{Context as _, anyhow, bail};
use clap::Args;
use serde_json::{Value, json};
use std::{fs, path::PathBuf};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, copy, stdin},
    task::spawn_blocking,
};

/// What `mcp --help` ends with.
const MCP_HELP: &str = "\
For an MCP client to start, not for people to type: it speaks MCP on standard input and output. Each agent of the hub is a tool \
there. A hub with HTTP serves the same at `/mcp`.";

#[derive(Debug, Args)]
#[command(after_long_help = MCP_HELP, after_help = MCP_HELP)]
pub(super) struct Mcp {
    /// Where agents work, unless a call says so [default: the current directory]
    #[arg(long, value_name = "DIR")]
    cwd: Option<PathBuf>,
    /// Start the hub first, if it does not run
    #[arg(long)]
    start: bool,
}

/// What `acp --help` ends with.
const ACP_HELP: &str = "\
For an editor to start, not for people to type: it speaks ACP on standard input and output. The agent works in the directory that \
the editor names, and what it asks leave for the editor shows.";

#[derive(Debug, Args)]
#[command(after_long_help = ACP_HELP, after_help = ACP_HELP)]
pub(super) struct Acp {
    /// The agent, as `a2a-hub agents` lists it [default: the hub's `default_agent`]
    #[arg(add = completing::agents())]
    agent: Option<String>,
    /// Start the hub first, if it does not run
    #[arg(long)]
    start: bool,
}

/// Serves the editor that started this program.
pub(super) fn acp(global: &Global, acp: &Acp) -> anyhow::Result<Exit> {
    speak(global, acp.start, json!({ "protocol": "acp", "agentId": acp.agent }))
}

/// Serves the MCP client that started this program.
pub(super) fn mcp(global: &Global, mcp: &Mcp) -> anyhow::Result<Exit> {
    let directory = match &mcp.cwd {
        Some(dir) => {
            let found = fs::canonicalize(dir);
            Some(found.with_context(|| format!("work in {}", dir.display()))?)
        }
        // Clients with no project start their servers at the root, where no agent is to work.
        None => std::env::current_dir().ok().filter(|dir| dir.parent().is_some()),
    };
    let directory = directory.map(|dir| {
        let told = dir.to_str().map(str::to_owned);
        told.ok_or_else(|| {
            anyhow!("work in {}: its path is not UTF-8; name another with `--cwd`", dir.display())
        })
    });
    let directory = directory.transpose()?;
    speak(global, mcp.start, json!({ "protocol": "mcp", "workingDirectory": directory }))
}

fn speak(global: &Global, start: bool, language: Value) -> anyhow::Result<Exit> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let bridged = runtime.block_on(bridge(global, start, language));
    // A thread of it still reads what the client may never say.
    runtime.shutdown_background();
    bridged
}

/// Passes on what is said on both sides, until the client has no more to say and the hub has answered.
async fn bridge(global: &Global, start: bool, language: Value) -> anyhow::Result<Exit> {
    let mut client = start::client(global, start).await?;
    let spoken = client.call("hub/speak", language).await;
    spoken.context("speak another protocol with the hub")?;
    let (mut read, mut write) = client.into_halves();
    let say = async {
        let said = copy(&mut stdin(), &mut write).await;
        // Either way there is no more to come, and the hub may still answer.
        let _ = write.shutdown().await;
        said.context("pass on what the client says")
    };
    let console = global.console();
    let hear = async {
        let mut line = String::new();
        while read.read_line(&mut line).await.context("pass on what the hub says")? > 0 {
            let told = std::mem::take(&mut line);
            // A client that is slow to read may still have something to say.
            let printed = spawn_blocking(move || console.print_json_lines(&told)).await?;
            printed.context("pass on what the hub says")?;
        }
        anyhow::Ok(())
    };
    tokio::pin!(hear);
    tokio::select! {
        heard = &mut hear => heard?,
        said = say => {
            said?;
            hear.await?;
            return Ok(Exit::Done);
        }
    }
    let why = "the hub hung up; `a2a-hub status` tells whether it still runs";
    bail!(CommandError::new(CONNECTION_LOST, why).mended_by("a2a-hub status"));
}
