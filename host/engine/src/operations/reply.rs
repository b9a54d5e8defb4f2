//! Results of operations: one answer, or a stream of events.

use crate::{
    observability::hub_event_stream::HubEventStream,
    tasks::{EndsAt, Subscription},
};
use a2a_hub_protocol::operation::Answer;

/// Result of a permitted operation, in the hub's own types or as a transport has encoded them.
pub enum Reply<O = Answer, S = ReplyStream> {
    /// A single, complete answer.
    One(O),
    /// A stream of events.
    Stream(S),
}

/// Source of the events of a stream.
pub enum ReplyStream {
    /// Events of one task, from an event number on.
    Task(Subscription),
    /// All hub events, from now on or from a cursor on.
    Hub(HubEventStream),
}

impl ReplyStream {
    /// Extends a task's stream to the task's end; the stream no longer ends when the task waits for
    /// its client.
    #[must_use]
    pub fn to_the_end(self) -> Self {
        match self {
            Self::Task(subscription) => Self::Task(subscription.until(EndsAt::Over)),
            Self::Hub(listener) => Self::Hub(listener),
        }
    }
}
