//! Notifications about changed agents, for clients that keep a list of tools.

use a2a_hub_core::access_control::Principal;
use a2a_hub_engine::{Reply, ReplyStream};
use a2a_hub_observability::hub_events::Listener;
use a2a_hub_protocol::{
    hub::event::{Happened, StreamEnd},
    operation::Operation,
};
use a2a_hub_rpc::dispatcher::Dispatcher;

/// Watches the set of agents for a caller.
pub(super) struct AgentWatch {
    dispatcher: Dispatcher,
    caller: Principal,
    heard: Option<Listener>,
}

impl AgentWatch {
    pub(super) fn new(dispatcher: Dispatcher, caller: Principal) -> Self {
        Self { dispatcher, caller, heard: None }
    }

    /// Waits until the set of agents may have changed. Returns `None` when the hub stops, or if the
    /// caller may not watch the hub.
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
                // Missed events may have concerned agents.
                Err(_) => return Some(()),
            }
        }
    }

    /// Subscribes without a stream permit: the client is counted where its connection or request
    /// was admitted.
    async fn listen(&self) -> Option<Listener> {
        let watched = self.dispatcher.hub().handle(&self.caller, None, Operation::WatchHub).await;
        match watched {
            Ok(Reply::Stream(ReplyStream::Hub(heard))) => Some(heard),
            Ok(_) | Err(_) => None,
        }
    }
}

/// True if the event may change the set of tools.
fn concerns(what: &Happened) -> bool {
    matches!(
        what,
        Happened::AgentJoined { .. }
            | Happened::AgentReplaced { .. }
            | Happened::AgentLeft { .. }
            | Happened::PluginGrantChanged { .. }
    )
}
