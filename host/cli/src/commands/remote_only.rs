//! Steps of commands that reach remote hubs only, in the place of those that need the hub of this
//! machine.

use super::send::Send;
use crate::{
    Global,
    client::{hub_client::Client, remote::is_url},
    ui::failure::CommandError,
};

/// Connects to the remote hub. No hub can be started.
pub(super) async fn client(global: &Global, _: bool) -> anyhow::Result<Client> {
    Client::connect(global).await
}

/// Flow files of a remote hub are not on this machine, so none of them joins late.
pub(super) async fn joins_late(
    _: &Global,
    _: &mut Client,
    _: &str,
    _: &anyhow::Error,
) -> anyhow::Result<bool> {
    Ok(false)
}

/// Nor can one be edited here.
pub(super) async fn say_edited(_: &Global, _: &mut Client, _: &str) -> anyhow::Result<()> {
    Ok(())
}

/// Refuses a message to several agents, which becomes a flow in the program with the hub.
///
/// # Errors
///
/// The message names more than one agent.
pub(crate) fn require_one_receiver(send: &Send) -> Result<(), CommandError> {
    if !send.agent.contains(',') || is_url(&send.agent) {
        return Ok(());
    }
    let why = format!(
        "send to `{}`: this program sends to one agent at a time; send one message to each",
        send.agent
    );
    Err(CommandError::usage(why))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn message_to_several_agents_is_refused() {
        let receiver = |agent: &str| Send::to(agent.to_owned(), "hello".to_owned());
        assert!(require_one_receiver(&receiver("echo")).is_ok());
        assert!(require_one_receiver(&receiver("https://a.example/x,y")).is_ok());
        let why = require_one_receiver(&receiver("echo,codex")).unwrap_err().to_string();
        assert!(why.contains("one agent at a time"), "{why}");
    }
}
