//! A client's message to an agent, with its delivery options.

use super::requirements::AgentRequirements;
use crate::model::{
    client::ClientCapabilities,
    error::A2aError,
    hub_metadata::{HubMetadata, WORKTREE, WorktreeWish, worktree_wish},
    id::{AgentId, TaskId},
    interface::{Binding, Version},
    message::{Message, Metadata},
    push::OfferedPush,
    trace::TraceContext,
};
use std::time::Duration;

/// Time to wait for the end of a task before the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// Wait until the task ends or needs input.
    ToTheEnd,
    /// Wait until the task ends or needs input, but no longer than this.
    AtMost(Duration),
    /// Answer as soon as the task is accepted.
    No,
}

/// Method, version and binding of the request that carries a message. A client that retries a
/// request repeats it in the same form.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestForm {
    /// True if the client asked for a stream.
    pub streams: bool,
    /// Version and binding of official A2A; `None` for the hub's own dialect, and for the program
    /// that embeds the hub.
    pub official: Option<(Version, Binding)>,
    /// True if the transport has no headers, such as a unix socket.
    pub headerless: bool,
}

/// A message to an agent, with its options (A2A 1.0, section 3.2.2).
#[derive(Clone, Debug, PartialEq)]
pub struct SendMessage {
    /// The client's message.
    pub message: Message,
    /// Id for the new task. Only a program that embeds the hub may set it; no wire form carries it.
    pub new_task_id: Option<TaskId>,
    /// Members of the new task's metadata. Only the hub's own schedules and triggers set
    /// them; no wire form carries them.
    pub task_metadata: Option<Metadata>,
    /// Agent that receives the message. An answer to a task's question always goes to the task's
    /// agent.
    pub agent: Option<AgentId>,
    /// Requirements on the agent, which also select the agent if the message names none.
    pub requirements: AgentRequirements,
    /// Working directory of the task.
    pub working_directory: Option<String>,
    /// Commit from which a worktree of the working directory starts; none for a task that works in
    /// the directory itself.
    pub worktree: Option<String>,
    /// Maximum number of latest messages in the answer; all, if `None`.
    pub history_length: Option<usize>,
    /// Timeout of the task in milliseconds.
    pub timeout_ms: Option<u64>,
    /// Push configuration of the task.
    pub push: Option<OfferedPush>,
    /// Time to wait for the end of the task; irrelevant for streams.
    pub wait: Wait,
    /// Capabilities of the client.
    pub client: ClientCapabilities,
    /// Sequence number of the last event of the existing task that a reconnecting client received;
    /// the stream resumes after it.
    pub after: Option<u64>,
    /// Trace context from the client's headers. The message's metadata takes precedence.
    pub trace: Option<Box<TraceContext>>,
    /// Metadata of the request, which the agent does not receive; `None` if empty.
    pub metadata: Option<Metadata>,
    /// Form of the request.
    pub form: RequestForm,
}

/// Metadata member that names a session of a vendor's program.
const RESUME: &str = "resume";

impl SendMessage {
    /// True if the message resumes a session of a vendor's program, which no task of this hub
    /// began: the user started the program directly.
    pub fn resumes_a_session(&self) -> bool {
        let resume = self.message.metadata.as_ref().and_then(|facts| facts.get(RESUME));
        resume.is_some_and(|session| !session.is_null())
    }

    /// Creates a request for the agent that the metadata of the message, or of its `request`,
    /// names, with the default options. Members of the request that the agent receives, such as
    /// `model` or `question`, are copied into the message ([`HubMetadata`]).
    ///
    /// # Errors
    /// If a member that the hub interprets has an invalid value, or different values in message and
    /// request.
    pub fn new(mut message: Message, request: Option<&Metadata>) -> Result<Self, A2aError> {
        let hub_metadata = HubMetadata::parse(message.metadata.as_ref(), request)?;
        let agent = hub_metadata.text("targetAgent").and_then(|name| AgentId::parse(name).ok());
        let requirements = AgentRequirements::from_metadata(message.metadata.as_ref(), request)?;
        let working_directory = hub_metadata.text("workingDirectory").map(str::to_owned);
        let wish = hub_metadata.get(WORKTREE).map(|value| worktree_wish(value, WORKTREE));
        let worktree = match wish.transpose()?.flatten() {
            Some(WorktreeWish::New { base }) => Some(base),
            Some(WorktreeWish::OfTask(_)) => {
                let why = "only a flow names a task here; go on in a worktree by the conversation of its task \
                           (`contextId`) and its directory (`metadata.workingDirectory`)";
                return Err(A2aError::invalid(WORKTREE, why.to_owned()));
            }
            None => None,
        };
        let of_request = hub_metadata.of_request_alone();
        if !of_request.is_empty() {
            message.metadata.get_or_insert_default().extend(of_request);
        }
        Ok(Self {
            message,
            new_task_id: None,
            task_metadata: None,
            agent,
            requirements,
            working_directory,
            worktree,
            history_length: None,
            timeout_ms: None,
            push: None,
            wait: Wait::ToTheEnd,
            client: ClientCapabilities::default(),
            after: None,
            trace: None,
            metadata: request.filter(|facts| !facts.is_empty()).cloned(),
            form: RequestForm::default(),
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
    fn request_metadata_fills_gaps_of_message() {
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
    fn message_or_request_may_resume_session() {
        let named = facts(&json!({ "resume": "s" }));
        let hi = || Message::text(Role::User, "hi");
        let by_message = Message { metadata: Some(named.clone()), ..hi() };
        for send in [SendMessage::new(by_message, None), SendMessage::new(hi(), Some(&named))] {
            assert!(send.unwrap().resumes_a_session());
        }
    }
}
