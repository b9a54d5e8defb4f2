//! Our errors as the protocol tells them: the one place that maps them.

use crate::{
    agents::{RegistryError, Unavailable},
    contexts::ForgetError,
    push::{PushError, ReceiverError},
    storage::StorageError,
    tasks::{self, SubmitError},
};
use a2a_hub_protocol::error::{A2aError, ErrorKind};
use serde_json::json;

/// What a client is told of a store that failed. The details are for the operator, and go to the log.
pub fn from_storage(why: &StorageError) -> A2aError {
    tracing::error!(%why, "the store failed");
    A2aError::new(
        ErrorKind::Internal,
        "the hub cannot use its store; its log (hub.log in the data directory) says why",
    )
}

/// What a client is told of an agent that is not tried: why, until when, and how to fix it.
pub fn unavailable(why: &Unavailable) -> A2aError {
    let Unavailable { agent, breaker, retry_in, fix } = why;
    let cause = breaker.cause.as_deref().unwrap_or("it did not say why");
    let at = breaker.retry_at.as_deref().unwrap_or_default();
    let mend = fix.as_ref().map(|fix| format!("; fix: {fix}")).unwrap_or_default();
    let text = format!("`{agent}` failed repeatedly, and is not tried before {at}: {cause}{mend}");
    A2aError::new(ErrorKind::AgentUnavailable, text).with(json!({
        "agentId": agent,
        "breaker": breaker,
        "retryAfterMs": u64::try_from(retry_in.as_millis()).unwrap_or(u64::MAX),
        "fix": fix,
    }))
}

/// What an administrator is told of agents that are as they were.
pub fn from_registry(why: &RegistryError) -> A2aError {
    let (kind, agent) = match why {
        RegistryError::Unknown(agent) => (ErrorKind::AgentNotFound, Some(agent)),
        RegistryError::Refused { agent, .. } => (ErrorKind::InvalidParams, Some(agent)),
        RegistryError::NotElsewhere(agent) => (ErrorKind::InvalidParams, Some(agent)),
        RegistryError::Disabled(agent)
        | RegistryError::Kept { agent, .. }
        | RegistryError::Elsewhere { agent, .. } => (ErrorKind::UnsupportedOperation, Some(agent)),
        RegistryError::Folder(_) => (ErrorKind::Internal, None),
    };
    A2aError::new(kind, why.to_string()).with(json!({ "agentId": agent }))
}

/// What a client is told whose task was not taken.
pub fn from_submit(why: &SubmitError) -> A2aError {
    match why {
        SubmitError::Busy { agent, why } => tasks::busy(agent, *why),
        SubmitError::Storage(why) => from_storage(why),
    }
}

/// What a client is told whose news are not sent.
pub fn from_push(why: &PushError) -> A2aError {
    match why {
        PushError::NoTask(task) => A2aError::no_task(task),
        // A2A has no error of its own for it.
        PushError::NoConfig { task, id } => A2aError::new(ErrorKind::TaskNotFound, why.to_string())
            .with(json!({ "taskId": task, "pushNotificationConfigId": id })),
        PushError::TooMany(task) => A2aError::new(ErrorKind::UnsupportedOperation, why.to_string())
            .with(json!({ "taskId": task })),
        PushError::Receiver(why) => from_receiver(why),
        PushError::Storage(why) => from_storage(why),
    }
}

/// What a client is told that would have news sent where none may be.
pub fn from_receiver(why: &ReceiverError) -> A2aError {
    A2aError::invalid("pushNotificationConfig.url", why)
}

/// What a client is told whose conversation was not forgotten.
pub fn from_forget(why: &ForgetError) -> A2aError {
    match why {
        ForgetError::Unknown(context) => A2aError::no_context(context),
        ForgetError::Live(_, task) => {
            let refusal = A2aError::new(ErrorKind::UnsupportedOperation, why.to_string());
            refusal.with(json!({ "taskId": task }))
        }
        ForgetError::Storage(why) => from_storage(why),
    }
}
