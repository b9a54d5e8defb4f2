//! `agent`: shows, registers, deregisters or reloads one agent of the hub; adds programs of the
//! Agent Client Protocol.

#[cfg(feature = "hub")]
mod program;

use super::{
    agents::{AgentsArgs, agents},
    completion,
    status::agents_text,
};
use crate::{Exit, Global, ask, ui::text::Text};
use anyhow::Context as _;
use clap::Subcommand;
use serde_json::{Value, json};
use std::{fs, path::PathBuf};

#[derive(Debug, Subcommand)]
pub(crate) enum AgentCommand {
    /// List the agents with their health, or search them; `a2a-hub agents` does the same
    List(AgentsArgs),
    /// Show an agent's card and its health
    Show {
        /// Id of the agent, as listed by `a2a-hub agents`
        #[arg(add = completion::agents())]
        id: String,
    },
    /// List the programs of the Agent Client Protocol that `agent add` knows
    #[cfg(feature = "hub")]
    Available,
    /// Add a program that speaks the Agent Client Protocol as an agent: one of those that `agent
    /// available` lists, or any with `--acp`. Nothing is installed
    #[cfg(feature = "hub")]
    Add {
        /// Id of the new agent
        name: String,
        /// Add the program and the arguments behind `--`
        #[arg(long, requires = "command")]
        acp: bool,
        /// Command line of the program
        #[arg(last = true, value_name = "PROGRAM", requires = "acp")]
        command: Vec<String>,
    },
    /// Remove an agent that `agent add` added, with its settings
    #[cfg(feature = "hub")]
    Remove {
        /// Id of the agent
        #[arg(add = completion::agents())]
        name: String,
    },
    /// Add an agent by copying its component into the plugins folder
    Register {
        /// Id of the new agent
        id: String,
        /// Component file
        path: PathBuf,
    },
    /// Remove an agent by deleting its file from the plugins folder. Built-in and remote agents
    /// return after a restart
    Deregister {
        /// Id of the agent, as listed by `a2a-hub agents`
        #[arg(add = completion::agents())]
        id: String,
    },
    /// Reload an agent from its component, or a remote agent from its card
    Reload {
        /// Id of the agent, as listed by `a2a-hub agents`
        #[arg(add = completion::agents())]
        id: String,
        /// Accept the changed card of a remote agent that has this SHA-256 digest
        #[arg(long, value_name = "DIGEST")]
        accept: Option<String>,
    },
}

pub(crate) fn agent(global: &Global, agent: &AgentCommand) -> anyhow::Result<Exit> {
    let of = |id: &str| json!({ "agentId": id });
    let (answer, output): (_, Text) = match agent {
        AgentCommand::List(args) => return agents(global, args),
        #[cfg(feature = "hub")]
        AgentCommand::Available => return program::available(global),
        #[cfg(feature = "hub")]
        AgentCommand::Add { name, command, .. } => return program::add(global, name, command),
        #[cfg(feature = "hub")]
        AgentCommand::Remove { name } => return program::remove(global, name),
        AgentCommand::Show { id } => {
            let agent = ask(global, "hub/agents/get", of(id))?;
            let shown = agents_text(&json!([agent]), &Value::Null, global.console().columns());
            (agent, shown)
        }
        AgentCommand::Register { id, path } => {
            let found = fs::canonicalize(path);
            let path = found.with_context(|| format!("register {}", path.display()))?;
            let params = json!({ "agentId": id, "path": path });
            (ask(global, "hub/agents/register", params)?, format!("agent {id} was added\n").into())
        }
        AgentCommand::Deregister { id } => {
            let answer = ask(global, "hub/agents/deregister", of(id))?;
            let back = if answer["returnsOnRestart"] == true {
                format!(
                    "; it returns after a restart or `a2a-hub agent reload {id}`, unless the \
                     configuration sets `agents.{id}.enabled = false`"
                )
            } else {
                String::new()
            };
            (answer, format!("agent {id} was removed{back}\n").into())
        }
        AgentCommand::Reload { id, accept } => {
            let params = json!({ "agentId": id, "accept": accept });
            (ask(global, "hub/agents/reload", params)?, format!("agent {id} was reloaded\n").into())
        }
    };
    global.show(&answer, || Ok(output))?;
    Ok(Exit::Done)
}
