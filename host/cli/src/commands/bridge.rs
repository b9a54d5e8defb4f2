//! `mcp` and `acp`: relay standard input and output to the hub's socket. The hub itself implements
//! both protocols.

use super::{completion, start};
use crate::{
    Exit, Global,
    ui::failure::{CONNECTION_LOST, CommandError},
};
use anyhow::{Context as _, anyhow, bail};
use clap::Args;
use serde_json::{Value, json};
use std::{fs, path::PathBuf};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, copy, stdin},
    task::spawn_blocking,
};

/// Text at the end of `mcp --help`.
const MCP_HELP: &str = "\
An MCP client starts this command; it is not meant for a terminal. Each agent of the hub is a tool.
A hub with HTTP serves the same at `/mcp`.";

#[derive(Debug, Args)]
#[command(after_long_help = MCP_HELP, after_help = MCP_HELP)]
pub(crate) struct Mcp {
    /// Directory in which agents work if a call names none [default: the current directory]
    #[arg(long, value_name = "DIR")]
    cwd: Option<PathBuf>,
    /// Start the hub first if it does not run
    #[arg(long)]
    start: bool,
    /// Serve the tools for blackboards only, to the program of an agent that only reads
    #[arg(long, hide = true)]
    only_blackboards: bool,
}

/// Text at the end of `acp --help`.
const ACP_HELP: &str = "\
An editor starts this command; it is not meant for a terminal. The agent works in the directory
that the editor names. The editor shows the agent's permission requests.";

#[derive(Debug, Args)]
#[command(after_long_help = ACP_HELP, after_help = ACP_HELP)]
pub(crate) struct Acp {
    /// Id of the agent, as listed by `a2a-hub agents` [default: `default_agent` of the
    /// configuration]
    #[arg(add = completion::agents())]
    agent: Option<String>,
    /// Start the hub first if it does not run
    #[arg(long)]
    start: bool,
}

/// Serves the editor that started this program.
pub(crate) fn acp(global: &Global, acp: &Acp) -> anyhow::Result<Exit> {
    speak(global, acp.start, json!({ "protocol": "acp", "agentId": acp.agent }))
}

/// Serves the MCP client that started this program.
pub(crate) fn mcp(global: &Global, mcp: &Mcp) -> anyhow::Result<Exit> {
    let directory = match &mcp.cwd {
        Some(dir) => {
            let found = fs::canonicalize(dir);
            Some(found.with_context(|| format!("work in {}", dir.display()))?)
        }
        // Clients without a project start their servers in `/`, where no agent should work.
        None => std::env::current_dir().ok().filter(|dir| dir.parent().is_some()),
    };
    let directory = directory.map(|dir| {
        let path = dir.to_str().map(str::to_owned);
        path.ok_or_else(|| {
            anyhow!("work in {}: its path is not UTF-8; name another with `--cwd`", dir.display())
        })
    });
    let directory = directory.transpose()?;
    let mut language = json!({ "protocol": "mcp", "workingDirectory": directory });
    if let Value::Object(members) = &mut language
        && mcp.only_blackboards
    {
        members.insert("onlyBlackboards".to_owned(), true.into());
    }
    speak(global, mcp.start, language)
}

fn speak(global: &Global, start: bool, language: Value) -> anyhow::Result<Exit> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let bridged = runtime.block_on(bridge(global, start, language));
    // A blocking thread may still read standard input, and the client may never close it.
    runtime.shutdown_background();
    bridged
}

/// Relays both directions until the client closes its input and the hub has answered.
async fn bridge(global: &Global, start: bool, language: Value) -> anyhow::Result<Exit> {
    let mut client = start::client(global, start).await?;
    let spoken = client.call("hub/speak", language).await;
    spoken.context("switch the connection to another protocol")?;
    let (mut read, mut write) = client.into_halves();
    let say = async {
        let copied = copy(&mut stdin(), &mut write).await;
        // The input ended in either case, and the hub may still answer.
        let _ = write.shutdown().await;
        copied.context("relay the client's input")
    };
    let console = global.console();
    let receive = async {
        let mut line = String::new();
        while read.read_line(&mut line).await.context("relay the hub's output")? > 0 {
            let output = std::mem::take(&mut line);
            // Printing may block on a slow client, so it must not block the other direction.
            let printed = spawn_blocking(move || console.print_json_lines(&output)).await?;
            printed.context("relay the hub's output")?;
        }
        anyhow::Ok(())
    };
    tokio::pin!(receive);
    tokio::select! {
        heard = &mut receive => heard?,
        said = say => {
            said?;
            receive.await?;
            return Ok(Exit::Done);
        }
    }
    let why = "the hub closed the connection; `a2a-hub status` shows if it still runs";
    bail!(CommandError::new(CONNECTION_LOST, why).mended_by("a2a-hub status"));
}
