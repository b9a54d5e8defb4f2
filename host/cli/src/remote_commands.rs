//! Commands that work with a remote hub (`--hub`).

use crate::Global;
#[cfg(feature = "hub")]
use crate::{command_line::Command, ui::failure::CommandError};
#[cfg(not(feature = "hub"))]
use a2a_hub_socket_client::remote_hub;

/// Names the only hub that the user joined, unless `--hub` names one. Where none can be found, the
/// command says so if it needs one.
#[cfg(not(feature = "hub"))]
pub(crate) fn with_joined_hub(global: &Global) -> Global {
    let only = || remote_hub::find_only(&global.data_dir().ok()?).ok();
    let hub = global.hub.clone().or_else(|| Some(only()?.name));
    Global { hub, ..global.clone() }
}

/// Refuses `--hub` for commands that support only a local hub.
///
/// # Errors
///
/// The command does not reach a remote hub.
#[cfg(feature = "hub")]
pub(crate) fn require_remote_support(global: &Global, command: &Command) -> anyhow::Result<()> {
    if global.hub.is_none() || supports_remote(command) {
        return Ok(());
    }
    let why = "`--hub` works with agents, agent, send, tasks, usage, events, task, inbox, allow, deny, later, diff, discard, conversations, \
               topic, schedule, trigger, deliveries, permissions, person and key; the other commands are for a hub on \
               this machine";
    Err(CommandError::usage(why.to_owned()).into())
}

#[cfg(feature = "hub")]
fn supports_remote(command: &Command) -> bool {
    match command {
        Command::Agents(_)
        | Command::Agent(_)
        | Command::Send(_)
        | Command::Tasks(_)
        | Command::Usage(_)
        | Command::Events(_)
        | Command::Task(_)
        | Command::Inbox(_)
        | Command::Allow(_)
        | Command::Deny(_)
        | Command::Later(_)
        | Command::Permissions(_)
        | Command::Person(_)
        | Command::Key(_)
        | Command::Diff(_)
        | Command::Discard(_)
        | Command::Contexts(_)
        | Command::Publish(_)
        | Command::Topic(_)
        | Command::Schedule(_)
        | Command::Trigger(_)
        | Command::Deliveries(_) => true,
        Command::Start(_)
        | Command::Stop(_)
        | Command::Restart(_)
        | Command::Reload
        | Command::Backup(_)
        | Command::Restore(_)
        | Command::Status
        | Command::Plugin(_)
        | Command::Flow(_)
        | Command::Notify(_)
        | Command::Run(_)
        | Command::Best(_)
        | Command::Decide(_)
        | Command::Blackboard(_)
        | Command::Record(_)
        | Command::Acp(_)
        | Command::Mcp(_)
        | Command::Web(_)
        | Command::Join(_)
        | Command::Apply(_)
        | Command::Logs(_)
        | Command::Config(_)
        | Command::Workspace(_)
        | Command::Worktrees(_)
        | Command::Doctor(_)
        | Command::Completions { .. }
        | Command::Carry { .. }
        | Command::Version
        | Command::Man { .. } => false,
    }
}
