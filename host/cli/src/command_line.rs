//! Definition of the command line: every command and its arguments.

mod help;

use crate::automation::{schedule, topic, trigger};
#[cfg(feature = "hub")]
use crate::{
    automation::{blackboard, decide, notify, record},
    commands::{
        backup, bridge, config, doctor, flow, logs, plugin, restart, start, stop, workspace,
    },
    web,
};
use crate::{
    client::global::Global,
    commands::{agent, agents, contexts, deliveries, send, task, tasks},
    events, inbox, people, permissions,
    ui::exit::EXIT_CODES,
    usage,
};
#[cfg(feature = "hub")]
use a2a_hub_sandbox::CARRY;
use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
#[cfg(feature = "hub")]
use std::path::PathBuf;

/// Hosts A2A agents as sandboxed WebAssembly components.
#[derive(Debug, Parser)]
#[command(
    name = "a2a-hub",
    version,
    max_term_width = 100,
    after_long_help = EXIT_CODES
)]
#[cfg_attr(not(feature = "hub"), command(about = "Client of remote hubs of A2A agents"))]
pub(super) struct CommandLine {
    #[command(flatten)]
    pub(super) global: Global,
    #[command(subcommand)]
    pub(super) command: Option<Command>,
}

impl CommandLine {
    /// Parses the arguments of this process, with the help that lists commands by job.
    pub(super) fn of_process() -> Result<Self, clap::Error> {
        let matches = help::by_job(Self::command()).try_get_matches()?;
        Self::from_arg_matches(&matches)
    }
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Start the hub, by default in the background
    #[cfg(feature = "hub")]
    Start(start::StartArgs),
    /// Stop the hub; running tasks get time to finish
    ///
    /// New tasks are refused meanwhile. It is no error that no hub runs.
    #[cfg(feature = "hub")]
    Stop(stop::StopArgs),
    /// Restart the background hub with its arguments
    ///
    /// It reads the current configuration.
    #[cfg(feature = "hub")]
    Restart(restart::Restart),
    /// Read the configuration again, without a restart
    ///
    /// Lists the settings that need one.
    #[cfg(feature = "hub")]
    Reload,
    /// Copy the hub's store to a file, also while the hub runs
    #[cfg(feature = "hub")]
    Backup(backup::Backup),
    /// Replace the hub's store with a backup, while no hub runs
    ///
    /// The old store is kept.
    #[cfg(feature = "hub")]
    Restore(backup::Restore),
    /// Show the state of the hub, its tasks and its agents
    Status,
    /// List the agents, or search them
    #[command(visible_alias = "ls")]
    Agents(agents::AgentsArgs),
    /// Show, add, remove or reload an agent
    #[command(subcommand)]
    Agent(agent::AgentCommand),
    /// Add plug-ins, grant them permissions, approve their updates
    #[command(subcommand, alias = "plugins")]
    #[cfg(feature = "hub")]
    Plugin(plugin::PluginCommand),
    /// List, check, test or create flows: agents that work in steps
    #[command(subcommand, alias = "flows")]
    #[cfg(feature = "hub")]
    Flow(flow::Flow),
    /// List, run, pause or resume schedules of messages
    #[command(subcommand, alias = "schedules")]
    Schedule(schedule::ScheduleCommand),
    /// List, run, pause or resume triggers of messages
    #[command(subcommand, alias = "triggers")]
    Trigger(trigger::TriggerCommand),
    /// List or test notifiers, which report agents that need you
    #[command(subcommand)]
    #[cfg(feature = "hub")]
    Notify(notify::NotifyCommand),
    /// Publish a message to a topic, as `topic publish` does
    #[command(hide = true)]
    Publish(topic::Publish),
    /// List topics, print their messages, or publish one
    #[command(subcommand, alias = "topics")]
    Topic(topic::TopicCommand),
    /// Run a flow, or a flow file once, and print the answer
    #[cfg(feature = "hub")]
    Run(Box<flow::run::RunFlow>),
    /// Have several agents do the same work, and pick the best result
    ///
    /// Each works in a separate worktree.
    #[cfg(feature = "hub")]
    Best(Box<flow::best::Best>),
    /// Have several agents vote, estimate, propose, bid or agree
    #[cfg(feature = "hub")]
    Decide(Box<decide::Decide>),
    /// Show the items of a flow's blackboard
    ///
    /// Also while its agents work.
    #[cfg(feature = "hub")]
    Blackboard(blackboard::Blackboard),
    /// Print how often agents were right in votes, or who was
    #[command(subcommand)]
    #[cfg(feature = "hub")]
    Record(record::RecordCommand),
    /// Send a message to an agent and print the answer
    #[command(visible_alias = "ask")]
    Send(Box<send::Send>),
    /// Serve an agent to an editor, by ACP on stdin and stdout
    #[cfg(feature = "hub")]
    Acp(bridge::Acp),
    /// Serve the agents to an MCP client, on stdin and stdout
    #[cfg(feature = "hub")]
    Mcp(bridge::Mcp),
    /// List the tasks
    #[command(visible_alias = "ps")]
    Tasks(tasks::TasksArgs),
    /// Show what tasks have used: tokens, cost, time and questions
    Usage(usage::UsageArgs),
    /// Print the events of the hub: tasks, agents, questions
    Events(events::EventsArgs),
    /// Show, answer, watch or cancel one task, or save its files
    #[command(subcommand)]
    Task(task::TaskCommand),
    /// List the questions that wait for you, and answer them
    Inbox(inbox::InboxArgs),
    /// Allow what an agent asks permission for
    Allow(inbox::AllowArgs),
    /// Deny what an agent asks permission for
    Deny(inbox::DenyArgs),
    /// Set a question aside, and move its deadline
    Later(inbox::LaterArgs),
    /// Manage the rules that answer requests for permission
    #[command(subcommand)]
    Permissions(permissions::PermissionsCommand),
    /// Let other people in: add, invite or remove them
    #[command(subcommand, visible_alias = "people")]
    Person(people::PersonCommand),
    /// Make, list or revoke people's API keys
    #[command(subcommand, alias = "keys")]
    Key(people::KeyCommand),
    /// Join a remote hub with an invitation
    ///
    /// Then `a2a-hub --hub NAME` sends, lists and answers there.
    Join(people::JoinArgs),
    /// Open the web page, in a browser that you pair with the hub
    #[cfg(feature = "hub")]
    Web(web::WebArgs),
    /// Print the changes of a task, as `task diff` does
    Diff(task::worktrees::DiffOptions),
    /// Take over the changes of a task, as `task apply` does
    Apply(task::worktrees::ApplyOptions),
    /// Remove the worktree of a task, as `task discard` does
    Discard(task::worktrees::DiscardOptions),
    /// List the conversations, show one, or delete one
    #[command(name = "conversations", visible_aliases = ["conversation", "contexts"])]
    Contexts(contexts::ContextsArgs),
    /// List pending push notifications, or retry failed ones
    #[command(visible_alias = "delivery")]
    Deliveries(deliveries::Deliveries),
    /// Print the log of the background hub
    #[cfg(feature = "hub")]
    Logs(logs::Logs),
    /// Print the settings in force with their sources, or check them
    #[command(subcommand)]
    #[cfg(feature = "hub")]
    Config(config::ConfigCommand),
    /// List, add or remove directories in which agents may work
    #[command(subcommand, alias = "workspaces")]
    #[cfg(feature = "hub")]
    Workspace(workspace::WorkspaceCommand),
    /// List the worktrees in which tasks work, or remove old ones
    #[command(visible_alias = "worktree")]
    #[cfg(feature = "hub")]
    Worktrees(task::worktrees::WorktreesCommand),
    /// Check the installation, and say how to fix what is wrong
    #[cfg(feature = "hub")]
    Doctor(doctor::Doctor),
    /// Print the completion script of a shell
    Completions {
        /// Shell to complete in
        shell: clap_complete::Shell,
    },
    /// Write a copy of this program that contains its agents' compiled code
    #[command(name = CARRY, hide = true)]
    #[cfg(feature = "hub")]
    Carry {
        /// File to write
        to: PathBuf,
    },
    /// Print the versions of this program and of the running hub
    Version,
    /// Show the manual page
    ///
    /// In a pipe, it prints the page's source for `man -l -`.
    Man {
        /// Command to describe [default: the whole program]
        command: Option<String>,
    },
}

#[cfg(feature = "hub")]
#[cfg(test)]
mod tests;
