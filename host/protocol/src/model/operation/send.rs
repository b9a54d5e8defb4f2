//! A message to an agent, as a client asks for it to be treated.

use super::requirements::AgentRequirements;
use crate::model::{
    client::ClientCapabilities,
    error::A2aError,
    hub_metadata::HubMetadata,
    id::{AgentId, TaskId},
    message::{Message, Metadata},
    push::OfferedPush,
    trace::TraceContext,
};
use std::time::Duration;

/// How long to wait for the end of a task before it is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// Until the task is over, or waits for its client.
    ToTheEnd,
    /// Until the task is over, or waits for its client, but no longer than this.
    AtMost(Duration),
    /// The task is answered as soon as it is accepted.
    No,
}

/// A message to an agent, and how it is to be treated (A2A 1.0, section 3.2.2).
#[derive(Clone, Debug, PartialEq)]
pub struct SendMessage {
    /// The message that the client sends.
    pub message: Message,
    /// The id that the new task is to have, which only the program chooses that holds the hub: no client on the wire says it.
    pub own_id: Option<TaskId>,
    /// The agent that is to hear it; a message that answers a task's question goes to that task's agent.
    pub agent: Option<AgentId>,
    /// What the agent must have; of a message that names none, one that has it.
    pub requirements: AgentRequirements,
    /// Where the work is to be done.
    pub working_directory: Option<String>,
    /// How many of the task's latest messages to show; all of them if left out.
    pub history_length: Option<usize>,
    /// How long the task may take, in milliseconds.
    pub timeout_ms: Option<u64>,
    /// Where the task's notifications are to be sent.
    pub push: Option<OfferedPush>,
    /// How long to wait for the end of the task; a stream has no need to.
    pub wait: Wait,
    /// What the client can do with the answer.
    pub client: ClientCapabilities,
    /// The number of the last event that the client heard of the task that the message is for, if it was cut off: a stream
    /// goes on after that.
    pub after: Option<u64>,
    /// The trace that the client is in, as it says beside the message, in headers; what the message's metadata says of it counts
    /// more.
    pub trace: Option<Box<TraceContext>>,
}

/// The member of a message's metadata that names a session which a vendor's program keeps itself.
const RESUME: &str = "resume";

impl SendMessage {
    /// Whether it is to go on with a session that no task of this hub began: whoever ran the program by hand knows it.
    pub fn resumes_a_session(&self) -> bool {
        let said = self.message.metadata.as_ref().and_then(|facts| facts.get(RESUME));
        said.is_some_and(|session| !session.is_null())
    }

    /// A message for the agent that its metadata, or that of its `request`, names; waited for to the end. What only the request says and
    /// its agent is to receive, such as `model` or `question`, is in the message from here on ([`HubMetadata`]).
    ///
    /// # Errors
    /// If a member that means something to the hub is ill-typed, or the two say it differently.
    pub fn new(mut message: Message, request: Option<&Metadata>) -> Result<Self, A2aError> {
        let said = HubMetadata::of(message.metadata.as_ref(), request)?;
        let agent = said.text("targetAgent").and_then(|name| AgentId::parse(name).ok());
        let requirements = AgentRequirements::of(message.metadata.as_ref(), request)?;
        let working_directory = said.text("workingDirectory").map(str::to_owned);
        let of_request = said.of_request_alone();
        if !of_request.is_empty() {
            message.metadata.get_or_insert_default().extend(of_request);
        }
        Ok(Self {
            message,
            own_id: None,
            agent,
            requirements,
            working_directory,
            history_length: None,
            timeout_ms: None,
            push: None,
            wait: Wait::ToTheEnd,
            client: ClientCapabilities::default(),
            after: None,
            trace: None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Role;
    use serde_json::Value;
    use serde_json::json;

    fn facts(value: &Value) -> Metadata {
        value.as_object().cloned().unwrap_or_default()
    }

    #[test]
    fn what_a_request_says_is_heard_where_its_message_does_not_say_it() {
        let message = Message {
            metadata: Some(facts(&json!({ "model": "opus" }))),
            ..Message::text(Role::User, "hi")
        };
        let request =
            facts(&json!({ "model": "opus", "effort": "high", "targetAgent": "a", "x": 1 }));
        let send = SendMessage::new(message, Some(&request)).unwrap();
        assert_eq!(send.agent.as_ref().unwrap().as_str(), "a");
        assert!(!send.resumes_a_session());
        let heard = json!({ "model": "opus", "effort": "high" });
        assert_eq!(send.message.metadata, Some(facts(&heard)));
        let plain = SendMessage::new(Message::text(Role::User, "hi"), Some(&facts(&json!({}))));
        assert_eq!(plain.unwrap().message.metadata, None);
    }

    #[test]
    fn a_session_may_be_named_by_the_message_or_the_request() {
        let named = facts(&json!({ "resume": "s" }));
        let hi = || Message::text(Role::User, "hi");
        let by_message = Message { metadata: Some(named.clone()), ..hi() };
        for send in [SendMessage::new(by_message, None), SendMessage::new(hi(), Some(&named))] {
            assert!(send.unwrap().resumes_a_session());
        }
    }
}
