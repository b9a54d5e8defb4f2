//! Definition of the command line: every command and its arguments.

use crate::{
    client::global::Global,
    commands::{
        agent, agents, backup, bridge, config, contexts, deliveries, doctor, flow, logs, plugin,
        restart, send, start, stop, task, tasks, workspace,
    },
    ui::exit::EXIT_CODES,
};
use a2a_hub_automation_commands::{blackboard, decide, record, schedule, topic, trigger};
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
    pub(super) command: Option<Command>,
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Start the hub, by default in the background
    Start(start::StartArgs),
    /// Stop the hub. Running tasks get time to finish, and new tasks are refused
    Stop(stop::StopArgs),
    /// Restart the background hub with the same arguments and the current configuration
    Restart(restart::Restart),
    /// Reload the configuration without a restart; lists the settings that need one
    Reload,
    /// Copy the hub's store to a file, also while the hub runs
    Backup(backup::Backup),
    /// Replace the hub's store with a backup while no hub runs; the old store is kept
    Restore(backup::Restore),
    /// Show the state of the hub, its tasks and its agents
    Status,
    /// List the agents, or search them
    Agents(agents::AgentsArgs),
    /// Show, add, remove or reload an agent
    #[command(subcommand)]
    Agent(agent::AgentCommand),
    /// Add plug-ins, grant them permissions, and approve their updates
    #[command(subcommand)]
    Plugin(plugin::PluginCommand),
    /// List, check, test or create flows: agents that work in steps
    #[command(subcommand)]
    Flow(flow::Flow),
    /// List, run, pause or resume schedules: messages that the hub sends at planned times
    #[command(subcommand)]
    Schedule(schedule::ScheduleCommand),
    /// List, run, pause or resume triggers: messages that the hub sends when something happens
    #[command(subcommand)]
    Trigger(trigger::TriggerCommand),
    /// Publish a message to a topic, for agents and people who subscribe to it
    Publish(topic::Publish),
    /// List topics, or print their messages
    #[command(subcommand)]
    Topic(topic::TopicCommand),
    /// Run a flow, or a flow file once, and print the answer
    Run(Box<flow::run::RunFlow>),
    /// Have several agents do the same work in worktrees, and pick the best result
    Best(Box<flow::best::Best>),
    /// Have several agents decide together: vote, bid, estimate, negotiate or share work
    Decide(Box<decide::Decide>),
    /// Show the items of a flow's blackboard, also while its agents work
    Blackboard(blackboard::Blackboard),
    /// Print how often agents were right, or say which choice of a vote was right
    #[command(subcommand)]
    Record(record::RecordCommand),
    /// Send a message to an agent and print the answer
    Send(Box<send::Send>),
    /// Serve an agent to an editor, by ACP on standard input and output
    Acp(bridge::Acp),
    /// Serve the agents to an MCP client, on standard input and output
    Mcp(bridge::Mcp),
    /// List the tasks
    Tasks(tasks::TasksArgs),
    /// Show, watch or cancel one task, show its child tasks, or save its files
    #[command(subcommand)]
    Task(task::TaskCommand),
    /// List the conversations, show one, or delete one
    Contexts(contexts::ContextsArgs),
    /// List pending push notifications, or retry failed ones
    Deliveries(deliveries::Deliveries),
    /// Print the log of the background hub
    Logs(logs::Logs),
    /// Print the effective settings with their sources, or check them
    #[command(subcommand)]
    Config(config::ConfigCommand),
    /// Let agents work in a directory
    #[command(subcommand)]
    Workspace(workspace::WorkspaceCommand),
    /// List the worktrees in which tasks work, print the path of one, or remove old ones
    Worktrees(task::worktrees::WorktreesCommand),
    /// Check the installation, and say how to fix what is wrong
    Doctor(doctor::Doctor),
    /// Print the completion script of a shell
    Completions {
        /// Shell to complete in
        shell: clap_complete::Shell,
    },
    /// Write a copy of this program that contains its agents' compiled code
    #[command(name = CARRY, hide = true)]
    Carry {
        /// File to write
        to: PathBuf,
    },
    /// Show the manual page; in a pipe, print its source for `man -l -`
    Man {
        /// Command to describe [default: the whole program]
        command: Option<String>,
    },
}

#[cfg(test)]
mod tests;
