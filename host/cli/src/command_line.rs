//! Definition of the command line: every command and its arguments.

mod help;

use crate::automation::{blackboard, decide, notify, record, schedule, topic, trigger};
use crate::{
    client::global::Global,
    commands::{
        agent, agents, backup, bridge, config, contexts, deliveries, doctor, flow, logs, plugin,
        restart, send, start, stop, task, tasks, workspace,
    },
    inbox, people, permissions,
    ui::exit::EXIT_CODES,
    usage, web,
};
use a2a_hub_sandbox::CARRY;
use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use std::path::PathBuf;

/// Hosts A2A agents as sandboxed WebAssembly components.
#[derive(Debug, Parser)]
#[command(
    name = "a2a-hub",
    version,
    max_term_width = 100,
    after_long_help = EXIT_CODES
)]
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
    Start(start::StartArgs),
    /// Stop the hub; running tasks get time to finish
    ///
    /// New tasks are refused meanwhile. It is no error that no hub runs.
    Stop(stop::StopArgs),
    /// Restart the background hub with its arguments
    ///
    /// It reads the current configuration.
    Restart(restart::Restart),
    /// Read the configuration again, without a restart
    ///
    /// Lists the settings that need one.
    Reload,
    /// Copy the hub's store to a file, also while the hub runs
    Backup(backup::Backup),
    /// Replace the hub's store with a backup, while no hub runs
    ///
    /// The old store is kept.
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
    Plugin(plugin::PluginCommand),
    /// List, check, test or create flows: agents that work in steps
    #[command(subcommand, alias = "flows")]
    Flow(flow::Flow),
    /// List, run, pause or resume schedules of messages
    #[command(subcommand, alias = "schedules")]
    Schedule(schedule::ScheduleCommand),
    /// List, run, pause or resume triggers of messages
    #[command(subcommand, alias = "triggers")]
    Trigger(trigger::TriggerCommand),
    /// List or test notifiers, which report agents that need you
    #[command(subcommand)]
    Notify(notify::NotifyCommand),
    /// Publish a message to a topic, as `topic publish` does
    #[command(hide = true)]
    Publish(topic::Publish),
    /// List topics, print their messages, or publish one
    #[command(subcommand, alias = "topics")]
    Topic(topic::TopicCommand),
    /// Run a flow, or a flow file once, and print the answer
    Run(Box<flow::run::RunFlow>),
    /// Have several agents do the same work, and pick the best result
    ///
    /// Each works in a separate worktree.
    Best(Box<flow::best::Best>),
    /// Have several agents vote, estimate, propose, bid or agree
    Decide(Box<decide::Decide>),
    /// Show the items of a flow's blackboard
    ///
    /// Also while its agents work.
    Blackboard(blackboard::Blackboard),
    /// Print how often agents were right in votes, or who was
    #[command(subcommand)]
    Record(record::RecordCommand),
    /// Send a message to an agent and print the answer
    #[command(visible_alias = "ask")]
    Send(Box<send::Send>),
    /// Serve an agent to an editor, by ACP on stdin and stdout
    Acp(bridge::Acp),
    /// Serve the agents to an MCP client, on stdin and stdout
    Mcp(bridge::Mcp),
    /// List the tasks
    #[command(visible_alias = "ps")]
    Tasks(tasks::TasksArgs),
    /// Show what tasks have used: tokens, cost, time and questions
    Usage(usage::UsageArgs),
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
    Logs(logs::Logs),
    /// Print the settings in force with their sources, or check them
    #[command(subcommand)]
    Config(config::ConfigCommand),
    /// List, add or remove directories in which agents may work
    #[command(subcommand, alias = "workspaces")]
    Workspace(workspace::WorkspaceCommand),
    /// List the worktrees in which tasks work, or remove old ones
    #[command(visible_alias = "worktree")]
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

#[cfg(test)]
mod tests;
