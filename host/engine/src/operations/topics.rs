//! Requests for topics, with the origin of each message.

use super::parts::HubParts;
use crate::error::HubError;
use a2a_hub_agents::Agent;
use a2a_hub_automation::topics::TopicError;
use a2a_hub_core::{
    access_control::{Caller, Principal},
    task::metadata,
};
use a2a_hub_protocol::topics::TopicSource;
use a2a_hub_protocol::{
    error::{A2aError, ErrorKind},
    id::AgentId,
    operation::{TopicAnswer, TopicRequest},
    scheduled::AutomatedRun,
    task::Task,
};
use serde_json::json;
use std::sync::Arc;

/// Carries out a request for topics. The caller's rights have been checked.
pub(super) async fn perform(
    hub: &HubParts,
    caller: &Caller,
    request: TopicRequest,
) -> Result<TopicAnswer, HubError> {
    let topics = hub.topics.as_ref().ok_or_else(|| {
        A2aError::new(ErrorKind::UnsupportedOperation, "this hub was built without topics")
    })?;
    let source = match &caller.principal {
        Principal::AgentTask { agent, task } => {
            let agent = require_delegation(hub, agent, "topics")?;
            let stored = hub.tasks.get(task).await?.task;
            if let TopicRequest::Publish { .. } = &request {
                require_open_reach(&stored)?;
            }
            source_of(caller, &agent, &stored)
        }
        Principal::Operator
        | Principal::OperatorHttp
        | Principal::OperatorToken
        | Principal::Device { .. }
        | Principal::Automation { .. }
        | Principal::Client(_)
        | Principal::Person { .. }
        | Principal::Anonymous => {
            TopicSource { publisher: caller.principal.identity(), ..TopicSource::default() }
        }
    };
    Ok(topics.perform(&caller.tenant, source, request).await?)
}

/// Refuses messages to topics from a tree of tasks that may reach some agents only: a trigger could
/// begin a task at any other.
fn require_open_reach(task: &Task) -> Result<(), HubError> {
    let Some(reach) = metadata::reachable_agents(task) else { return Ok(()) };
    let why = format!(
        "the API key that began this work reaches {} agents by name (`send:AGENT:alone`), and a message to a topic may begin a \
         task at any",
        reach.len()
    );
    Err(A2aError::new(ErrorKind::PermissionDenied, why).into())
}

/// Origin of what an agent's program publishes: its task, the triggers that led to that, and the
/// most that it may do.
fn source_of(caller: &Caller, agent: &Agent, task: &Task) -> TopicSource {
    let run = AutomatedRun::from_metadata(task.metadata.as_ref());
    TopicSource {
        publisher: caller.principal.identity(),
        task_id: Some(task.id.to_string()),
        triggers: run.map(|run| run.triggers()).unwrap_or_default(),
        permissions: Some(agent.permissions_of_chain(task).word().to_owned()),
    }
}

/// Refuses `feature` to the programs of an agent that may call no other one.
pub(super) fn require_delegation(
    hub: &HubParts,
    id: &AgentId,
    feature: &str,
) -> Result<Arc<Agent>, HubError> {
    let refused = |why: String| A2aError::new(ErrorKind::PermissionDenied, why);
    let Some(agent) = hub.agents.find(id) else {
        let why = format!("the agent `{id}` was removed, so its programs may not use {feature}");
        return Err(refused(why).into());
    };
    if agent.may_call_any() {
        return Ok(agent);
    }
    let why = format!(
        "a program of the agent `{id}` may not do this: {feature} are for agents that may call others, and none is granted to \
         this one; `delegate` of its grant names some"
    );
    Err(refused(why).into())
}

impl From<TopicError> for HubError {
    fn from(why: TopicError) -> Self {
        let kind = match why {
            TopicError::Storage(why) => return why.into(),
            TopicError::Full(_) => ErrorKind::UnsupportedOperation,
            TopicError::UnknownTopic(_) | TopicError::UnknownCursor(_) => ErrorKind::InvalidParams,
        };
        A2aError::new(kind, why.to_string()).with(json!({ "reason": "topic" })).into()
    }
}
