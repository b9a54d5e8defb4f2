//! Changes of the hub, for clients that keep a list of tools or prompts, or subscribe to resources.

use super::subscriptions::Subscriptions;
use a2a_hub_core::access_control::Principal;
use a2a_hub_engine::observability::hub_event_stream::HubEventStream;
use a2a_hub_engine::{Reply, ReplyStream};
use a2a_hub_protocol::{
    hub::event::{HubEventKind, StreamEnd},
    id::TaskId,
    operation::{EventWatch, Operation},
};
use a2a_hub_rpc::dispatcher::Dispatcher;

/// Watches the hub for a caller.
pub(super) struct HubWatch {
    dispatcher: Dispatcher,
    caller: Principal,
    events: Option<HubEventStream>,
}

/// A change that matters to clients.
#[derive(Debug, PartialEq)]
pub(super) enum HubChange {
    /// The set of agents may have changed.
    Agents,
    /// The state of a task changed.
    Task(TaskId),
    /// Events were missed, so that anything may have changed.
    Missed,
}

impl HubChange {
    /// True if the lists of tools and prompts may have changed.
    pub(super) fn concerns_agents(&self) -> bool {
        matches!(self, Self::Agents | Self::Missed)
    }

    /// Subscribed resources that may have changed.
    pub(super) fn resources(&self, subscribed: &Subscriptions) -> Vec<String> {
        match self {
            Self::Agents => Vec::new(),
            Self::Task(task) => subscribed.uris(Some(task)),
            Self::Missed => subscribed.uris(None),
        }
    }
}

impl HubWatch {
    pub(super) fn new(dispatcher: Dispatcher, caller: Principal) -> Self {
        Self { dispatcher, caller, events: None }
    }

    /// Waits for a change. Returns `None` when the hub stops, or if the caller may not watch it.
    pub(super) async fn changed(&mut self) -> Option<HubChange> {
        let mut events = match self.events.take() {
            Some(events) => events,
            None => self.listen().await?,
        };
        loop {
            match events.next().await {
                Ok(event) => {
                    if let Some(change) = change(event.what.clone()) {
                        self.events = Some(events);
                        return Some(change);
                    }
                }
                Err(StreamEnd::HubStopped) => return None,
                Err(_) => return Some(HubChange::Missed),
            }
        }
    }

    /// Subscribes without a stream permit: the client is counted where its connection or request
    /// was admitted.
    async fn listen(&self) -> Option<HubEventStream> {
        let watch = Operation::WatchHub(EventWatch::Live);
        let watched = self.dispatcher.hub().handle(&self.caller, None, watch).await;
        match watched {
            Ok(Reply::Stream(ReplyStream::Hub(events))) => Some(events),
            Ok(_) | Err(_) => None,
        }
    }
}

/// Change that an event means for clients, if any.
fn change(event: HubEventKind) -> Option<HubChange> {
    if let HubEventKind::TaskState { task_id, .. } = event {
        return Some(HubChange::Task(task_id));
    }
    let is_of_agents = matches!(
        event,
        HubEventKind::AgentJoined { .. }
            | HubEventKind::AgentReplaced { .. }
            | HubEventKind::AgentLeft { .. }
            | HubEventKind::PluginGrantChanged { .. }
    );
    is_of_agents.then_some(HubChange::Agents)
}
