//! Agents that come and go, for clients that keep a list of tools.

use crate::dispatcher::Dispatcher;
use a2a_hub_core::access::Principal;
use a2a_hub_hub::{Reply, ReplyStream, events::Listener};
use a2a_hub_protocol::{
    hub::event::{Happened, StreamEnd},
    operation::Operation,
};

/// Watches which agents there are, on behalf of somebody.
pub(super) struct AgentWatch {
    dispatcher: Dispatcher,
    caller: Principal,
    heard: Option<Listener>,
}

impl AgentWatch {
    pub(super) fn new(dispatcher: Dispatcher, caller: Principal) -> Self {
        Self { dispatcher, caller, heard: None }
    }

    /// Waits until there may be other agents. None once the hub stops, and at once for whoever may not hear of it.
    pub(super) async fn changed(&mut self) -> Option<()> {
        let mut heard = match self.heard.take() {
            Some(heard) => heard,
            None => self.listen().await?,
        };
        loop {
            match heard.next().await {
                Ok(event) if concerns(&event.what) => {
                    self.heard = Some(heard);
                    return Some(());
                }
                Ok(_) => {}
                Err(StreamEnd::HubStopped) => return None,
                // Of what was missed, one may have been an agent.
                Err(_) => return Some(()),
            }
        }
    }

    /// None of the places for streams: those who listen here are counted where they came in.
    async fn listen(&self) -> Option<Listener> {
        let watched = self.dispatcher.hub().handle(&self.caller, None, Operation::WatchHub).await;
        match watched {
            Ok(Reply::Stream(ReplyStream::Hub(heard))) => Some(heard),
            Ok(_) | Err(_) => None,
        }
    }
}

/// Whether there may be other tools after it.
fn concerns(what: &Happened) -> bool {
    matches!(
        what,
        Happened::AgentJoined { .. }
            | Happened::AgentReplaced { .. }
            | Happened::AgentLeft { .. }
            | Happened::PluginGrantChanged { .. }
    )
}
