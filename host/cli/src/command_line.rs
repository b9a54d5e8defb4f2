//! Definition of the command line: every command and its arguments.

use crate::{
    client::global::Global,
    commands::{
        agent, agents, backup, bridge, config, contexts, deliveries, doctor, logs, plugin, restart,
        send, start, stop, task, tasks,
    },
    ui::exit::EXIT_CODES,
};
use a2a_hub_sandbox::CARRY;
use clap::{Parser, Subcommand};
use std::path::PathBuf;

/// Hosts A2A agents as sandboxed WebAssembly components.
#[derive(Debug, Parser)]
#[command(name = "a2a-hub", version, max_term_width = 100, after_long_help = EXIT_CODES)]
pub(super) struct CommandLine {
    #[command(flatten)]
    pub(super) global: Global,
    #[command(subcommand)]
    pub(super) command: Command,
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Start the hub
    Start(start::Start),
    /// Stop the hub: tasks at work get some time, and no new ones are taken
    Stop(stop::Stop),
    /// Stop the hub in the background and start it again as it was started, under the configuration as it is now
    Restart(restart::Restart),
    /// Have the hub read its configuration again, without a restart where that is possible
    Reload,
    /// Copy the store of the hub to a file, also while the hub runs
    Backup(backup::Backup),
    /// Put a copy in the place of the store, while no hub runs; what was there is kept
    Restore(backup::Restore),
    /// Show whether the hub is up, its tasks and its agents
    Status,
    /// List the agents, or find those that can do something
    Agents(agents::Agents),
    /// Show, add, remove or reload an agent
    #[command(subcommand)]
    Agent(agent::Agent),
    /// Add plug-ins, say what each may do, and let updates in
    #[command(subcommand)]
    Plugin(plugin::Plugin),
    /// Send a message to an agent and print the answer
    Send(Box<send::Send>),
    /// Serve an agent to an editor that speaks ACP, on standard input and output
    Acp(bridge::Acp),
    /// Serve the agents to an MCP client, on standard input and output
    Mcp(bridge::Mcp),
    /// List the tasks
    Tasks(tasks::Tasks),
    /// Show, cancel or watch one task, or save its files
    #[command(subcommand)]
    Task(task::Task),
    /// List the conversations, show one, or forget one
    Contexts(contexts::Contexts),
    /// List push notifications that are on their way, and retry those that were given up
    Deliveries(deliveries::Deliveries),
    /// Print what the hub in the background logged
    Logs(logs::Logs),
    /// Print the effective settings and where each comes from, or check them
    #[command(subcommand)]
    Config(config::Command),
    /// Find out what is wrong and how to fix it
    Doctor(doctor::Doctor),
    /// Print a completion script for your shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Write a copy of this program that has its agents' code compiled already
    #[command(name = CARRY, hide = true)]
    Carry {
        /// Where to
        to: PathBuf,
    },
    /// Print the manual page: `a2a-hub man | man -l -`
    Man {
        /// Of this command only
        command: Option<String>,
    },
}

#[cfg(test)]
mod tests;
