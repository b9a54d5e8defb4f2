//! Operations of official A2A clients, addressed to one agent or to the whole hub, and checked as
//! strictly as A2A requires. They become ordinary operations after these checks.

use super::{Hub, Reply, ReplyStream, client_context::ClientContext, timestamp::moment};
use crate::conversations::generation::EXTENSION;
use crate::{error::HubError, tasks::EndsAt};
use a2a_hub_agents::Agent;
use a2a_hub_core::access_control::Caller;
use a2a_hub_protocol::{
    error::{A2aError, ErrorKind},
    id::AgentId,
    interface::Version,
    member,
    message::Message,
    operation::{Operation, SendMessage, TaskPageQuery},
    push::{JWKS_PATH, PublicKey},
};
use serde_json::{Value, json};
use std::sync::Arc;

impl Hub {
    /// Carries out an official client's operation. An agent's endpoint knows only that agent's
    /// tasks.
    pub(super) async fn perform_for(
        &self,
        caller: &Caller,
        client_context: &ClientContext,
        operation: Operation,
    ) -> Result<Reply, HubError> {
        if let (Some(agent), Some(task)) = (&client_context.agent, operation.task())
            && !self.is_at(agent, &self.tasks.whose(task).await?.0)
        {
            return Err(A2aError::no_task(task).into());
        }
        #[expect(clippy::wildcard_enum_match_arm, reason = "all others are the same for everyone")]
        match operation {
            Operation::SendMessage(send) => {
                let (_, send) = self.addressed(client_context, send).await?;
                self.perform(caller, Operation::SendMessage(send)).await
            }
            Operation::StreamMessage(send) => {
                let (agent, send) = self.addressed(client_context, send).await?;
                require_streaming(agent.as_deref())?;
                let (task, after) = (send.message.task_id.clone(), send.after);
                let reply = self.perform(caller, Operation::StreamMessage(send)).await?;
                // A stream begins with the task, also if the message continues one.
                let reply = match (task, after) {
                    (Some(id), None) => Reply::Stream(ReplyStream::Task(
                        self.tasks.subscribe_after_input(&id).await?,
                    )),
                    (Some(_), Some(_)) | (None, _) => reply,
                };
                Ok(until(client_context.version, reply, EndsAt::InputRequired))
            }
            Operation::Resubscribe { id, after } => {
                let head = self.tasks.head(&id).await?;
                require_streaming(self.agents.find(&head.agent).as_deref())?;
                // A client that resumes may still receive the events that it missed.
                if client_context.version == Version::V1 && after.is_none() && head.state.is_final()
                {
                    let why =
                        format!("task `{id}` is {}: there is no more to hear", head.state.name());
                    return Err(A2aError::new(ErrorKind::UnsupportedOperation, why).into());
                }
                let reply = self.perform(caller, Operation::Resubscribe { id, after }).await?;
                Ok(until(client_context.version, reply, EndsAt::Over))
            }
            Operation::PageTasks(_)
                if client_context
                    .agent
                    .as_ref()
                    .is_some_and(|it| self.routes.group(it).is_some()) =>
            {
                let why = "a group lists no tasks; ask at the endpoint of one of its agents";
                Err(A2aError::new(ErrorKind::UnsupportedOperation, why).into())
            }
            Operation::PageTasks(query) => {
                let since = moment("statusTimestampAfter", query.since)?;
                let agent = client_context.agent.clone();
                self.perform(caller, Operation::PageTasks(TaskPageQuery { agent, since, ..query }))
                    .await
            }
            Operation::GetCard { .. } => {
                self.perform(caller, Operation::GetCard { agent: client_context.agent.clone() })
                    .await
            }
            other => self.perform(caller, other).await,
        }
    }

    /// Signs a complete card in official form; `url` is that at which the client reached the hub.
    /// Nothing may change the card afterwards.
    pub fn sign_card(&self, card: &mut Value, url: &str) {
        let Some(signer) = &self.signer else { return };
        let publishes = url.starts_with("http://") || url.starts_with("https://");
        let keys_url = publishes.then(|| format!("{}{JWKS_PATH}", url.trim_end_matches('/')));
        member::set(card, "signatures", signer.sign_card(card, keys_url.as_deref()));
    }

    /// Public keys that verify the hub's notifications and cards; none if it signs nothing.
    pub(super) fn published_keys(&self) -> Vec<PublicKey> {
        self.signer.as_ref().map(|signer| signer.keys()).unwrap_or_default()
    }

    /// Requested extensions that are active in this operation: those that the operation's agent
    /// supports.
    pub async fn activated(
        &self,
        client_context: &ClientContext,
        operation: &Operation,
    ) -> Vec<String> {
        if client_context.extensions.is_empty() {
            return Vec::new();
        }
        let named = client_context.agent.as_ref().or_else(|| named_agent(operation));
        let agent = match (operation.task(), named) {
            (Some(task), _) => self.tasks.whose(task).await.ok().map(|(agent, _)| agent),
            (None, named) => named.cloned().or_else(|| self.default_agent()),
        };
        let agent = agent.and_then(|agent| self.agents.find(&self.agents.called(&agent)?));
        agent.map(|agent| known_extensions(&agent, &client_context.extensions)).unwrap_or_default()
    }

    /// True if this agent's tasks are found at the endpoint of that name, which may be a group's.
    pub(super) fn is_at(&self, endpoint: &AgentId, agent: &AgentId) -> bool {
        match self.routes.group(endpoint) {
            Some(group) => group.contains(agent),
            None => endpoint == agent,
        }
    }

    /// Message and its agent, if that agent accepts this client. No agent if the task's agent is
    /// gone, or is yet to be chosen.
    async fn addressed(
        &self,
        client_context: &ClientContext,
        mut send: Box<SendMessage>,
    ) -> Result<(Option<Arc<Agent>>, Box<SendMessage>), HubError> {
        let agent = match &send.message.task_id {
            Some(task) => self.agents.find(&self.tasks.head(task).await?.agent),
            None => self.sole_addressee(&send)?,
        };
        if agent.is_none() {
            // The agent is unknown yet; an agent that requires an extension is not chosen.
            send.client.extensions.clear();
        }
        if let Some(agent) = &agent {
            require_known_extensions(agent, &client_context.extensions)?;
            require_accepted_types(agent, &send.message)?;
            send.client.extensions = known_extensions(agent, &client_context.extensions);
        }
        Ok((agent, send))
    }
}

/// Sets the end of a stream for 1.0. In 0.3 each stream ends with a `final` update, also if the
/// task waits.
fn until(version: Version, reply: Reply, end: EndsAt) -> Reply {
    match (version, reply) {
        (Version::V1, Reply::Stream(ReplyStream::Task(subscription))) => {
            Reply::Stream(ReplyStream::Task(subscription.until(end)))
        }
        (_, reply) => reply,
    }
}

fn known_extensions(agent: &Agent, requested: &[String]) -> Vec<String> {
    let known = |uri: &&String| {
        *uri == EXTENSION || agent.card.extensions().any(|(known, _)| known == uri.as_str())
    };
    requested.iter().filter(known).cloned().collect()
}

fn require_known_extensions(agent: &Agent, requested: &[String]) -> Result<(), A2aError> {
    let Some(uri) = agent.card.missing_extension(requested) else { return Ok(()) };
    let why = format!(
        "agent `{}` needs the extension {uri}; name it in the service parameter `A2A-Extensions`",
        agent.id
    );
    Err(A2aError::new(ErrorKind::ExtensionRequired, why).with(json!({ "extension": uri })))
}

/// Requires that a part's media type is one that the card names (A2A 1.0, section 3.1.1).
fn require_accepted_types(agent: &Agent, message: &Message) -> Result<(), A2aError> {
    let Some((n, media)) = agent.card.part_not_taken(message) else { return Ok(()) };
    let modes = agent.card.input_modes().join(", ");
    let why = format!(
        "`message.parts[{n}]` is of type {media}, and agent `{}` takes {modes}; send what it takes, or name no type",
        agent.id
    );
    let field = format!("message.parts[{n}]");
    let details = json!({ "field": field, "inputModes": agent.card.input_modes() });
    Err(A2aError::new(ErrorKind::ContentTypeNotSupported, why).with(details))
}

fn require_streaming(agent: Option<&Agent>) -> Result<(), A2aError> {
    let Some(agent) = agent.filter(|agent| !agent.card.streams()) else { return Ok(()) };
    let why = format!("agent `{}` does not stream, as its card says; send the message", agent.id);
    Err(A2aError::new(ErrorKind::UnsupportedOperation, why))
}

/// Agent that a message names itself.
fn named_agent(operation: &Operation) -> Option<&AgentId> {
    #[expect(clippy::wildcard_enum_match_arm, reason = "all others are no messages")]
    match operation {
        Operation::SendMessage(send) | Operation::StreamMessage(send) => send.agent.as_ref(),
        _ => None,
    }
}
