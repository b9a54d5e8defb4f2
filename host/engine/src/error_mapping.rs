//! Conversion of errors to protocol errors: the only place that maps them.

use crate::conversations::contexts::ForgetError;
use crate::webhooks::ReceiverError;
use crate::{error::HubError, push::PushError, tasks::SubmitError};
use a2a_hub_agents::{Late, NotWorking, PluginEditError, RegistryError, Unavailable};
use a2a_hub_core::{identity::RightsDenied, scheduling::task_admission::Busy};
use a2a_hub_protocol::error::{A2aError, ErrorKind};
use a2a_hub_store::BackupError;
use serde_json::json;

/// An agent whose circuit breaker is open: the cause, the retry time, and the fix.
impl From<Unavailable> for HubError {
    fn from(why: Unavailable) -> Self {
        let Unavailable { agent, breaker, retry_in, fix } = why;
        let cause = breaker.cause.as_deref().unwrap_or("it did not say why");
        let at = breaker.retry_at.as_deref().unwrap_or_default();
        let mend = fix.as_ref().map(|fix| format!("; fix: {fix}")).unwrap_or_default();
        let text = format!(
            "`{agent}` failed repeatedly, and is not tried before {at}: {cause}{mend}; once that is mended, `a2a-hub agents \
             --health` or `a2a-hub agent reload {agent}` has it tried at once"
        );
        Self::from(A2aError::new(ErrorKind::AgentUnavailable, text).with(json!({
            "agentId": agent,
            "breaker": breaker,
            "retryAfterMs": u64::try_from(retry_in.as_millis()).unwrap_or(u64::MAX),
            "fix": fix,
        })))
    }
}

/// The role of a person, or the key, lacks a right.
impl From<RightsDenied> for HubError {
    fn from(why: RightsDenied) -> Self {
        A2aError::new(ErrorKind::PermissionDenied, why.to_string()).into()
    }
}

/// The health check timed out; nothing else is known of the agent.
impl From<Late> for HubError {
    fn from(why: Late) -> Self {
        let refusal = A2aError::new(ErrorKind::Timeout, why.to_string());
        Self::from(refusal.with(json!({ "agentId": why.agent, "health": why.health })))
    }
}

/// An agent that cannot work, found before a task is created: the cause, and the fix.
impl From<NotWorking> for HubError {
    fn from(NotWorking { agent, health }: NotWorking) -> Self {
        let cause = health.error_message.as_deref().unwrap_or("it did not say why");
        let fix = health.fix.as_deref().unwrap_or_default();
        let text = format!(
            "`{agent}` cannot work: {cause}; fix: {fix}; once that is done, the next message is taken"
        );
        Self::from(A2aError::new(ErrorKind::AgentUnavailable, text).with(json!({
            "agentId": agent,
            "health": health,
            "fix": fix,
        })))
    }
}

/// For an administrator; the registry is unchanged.
impl From<RegistryError> for HubError {
    fn from(why: RegistryError) -> Self {
        let (kind, agent) = match &why {
            RegistryError::Unknown(agent) => (ErrorKind::AgentNotFound, Some(agent)),
            RegistryError::Refused { agent, .. } | RegistryError::NotElsewhere(agent) => {
                (ErrorKind::InvalidParams, Some(agent))
            }
            RegistryError::Disabled(agent)
            | RegistryError::NotReloaded { agent, .. }
            | RegistryError::Elsewhere { agent, .. } => {
                (ErrorKind::UnsupportedOperation, Some(agent))
            }
            RegistryError::Folder(_) => (ErrorKind::Internal, None),
        };
        Self::from(A2aError::new(kind, why.to_string()).with(json!({ "agentId": agent })))
    }
}

/// For the operator; the plug-ins are unchanged.
impl From<PluginEditError> for HubError {
    fn from(why: PluginEditError) -> Self {
        let kind = match &why {
            PluginEditError::Unknown(_)
            | PluginEditError::Deny(_)
            | PluginEditError::Digest { .. }
            | PluginEditError::Grant { .. }
            | PluginEditError::Program { .. }
            | PluginEditError::Manifest { .. }
            | PluginEditError::NotForName { .. }
            | PluginEditError::File { .. } => ErrorKind::InvalidParams,
            PluginEditError::Outdated(_)
            | PluginEditError::Taken(..)
            | PluginEditError::Exists(_) => ErrorKind::UnsupportedOperation,
            PluginEditError::Grants(_) | PluginEditError::Io { .. } => ErrorKind::Internal,
        };
        Self::from(A2aError::new(kind, why.to_string()))
    }
}

/// For the operator; no backup was made.
impl From<BackupError> for HubError {
    fn from(why: BackupError) -> Self {
        let kind = match &why {
            BackupError::Taken(_) => ErrorKind::InvalidParams,
            BackupError::Absent(_) | BackupError::InMemory => ErrorKind::UnsupportedOperation,
            BackupError::Store(_) => ErrorKind::Internal,
        };
        Self::from(A2aError::new(kind, format!("back up the hub's store: {why}")))
    }
}

impl From<SubmitError> for HubError {
    fn from(why: SubmitError) -> Self {
        match why {
            SubmitError::Busy { agent, why } => {
                let text = format!("agent `{agent}` is busy: {why}");
                let mut details = json!({ "reason": "busy", "agent": agent });
                match why {
                    Busy::Queue { running, queued } => {
                        details["running"] = json!(running);
                        details["queued"] = json!(queued);
                    }
                    Busy::Questions { waiting } | Busy::UsedUpQuota { waiting } => {
                        details["waiting"] = json!(waiting);
                    }
                    Busy::SharedCapacity { waiting, max_tasks: limit } => {
                        details["waiting"] = json!(waiting);
                        details["maxTasks"] = json!(limit);
                    }
                }
                Self::from(A2aError::new(ErrorKind::AgentUnavailable, text).with(details))
            }
            SubmitError::Worktree(why) => why.into(),
            SubmitError::Directory(why) => why.into(),
            SubmitError::Storage(why) => why.into(),
        }
    }
}

impl From<PushError> for HubError {
    fn from(why: PushError) -> Self {
        let refusal = |kind| A2aError::new(kind, why.to_string());
        Self::from(match &why {
            PushError::NoTask(task) => A2aError::no_task(task),
            // A2A has no specific error for it.
            PushError::NoConfig { task, id } => refusal(ErrorKind::TaskNotFound)
                .with(json!({ "taskId": task, "pushNotificationConfigId": id })),
            PushError::ConfigLimit(task) => {
                refusal(ErrorKind::UnsupportedOperation).with(json!({ "taskId": task }))
            }
            PushError::Receiver(why) => A2aError::invalid(RECEIVER, why),
            PushError::Storage(why) => return why.clone().into(),
        })
    }
}

/// Field that names a receiver.
const RECEIVER: &str = "pushNotificationConfig.url";

impl From<ReceiverError> for HubError {
    fn from(why: ReceiverError) -> Self {
        Self::from(A2aError::invalid(RECEIVER, why))
    }
}

impl From<ForgetError> for HubError {
    fn from(why: ForgetError) -> Self {
        Self::from(match &why {
            ForgetError::Unknown(context) => A2aError::no_context(context),
            ForgetError::Live(_, task) | ForgetError::AncestorLive { ancestor: task, .. } => {
                let refusal = A2aError::new(ErrorKind::UnsupportedOperation, why.to_string());
                refusal.with(json!({ "taskId": task }))
            }
            ForgetError::Storage(why) => return why.clone().into(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::scripted_agent::Fake;
    use a2a_hub_agents::native::completed;
    use a2a_hub_config::AgentConfig;
    use tokio::time::Instant;

    #[tokio::test(start_paused = true)]
    async fn health_check_timeout_maps_to_timeout_error() {
        let agent = Fake::new(|_| async { completed("") }).silent().agent(AgentConfig::default());
        let late = agent.ask(Instant::now(), true).await.unwrap_err();
        let refused = A2aError::from(HubError::from(late));
        assert_eq!(refused.kind.hub_code(), -32007);
        assert!(refused.to_string().contains("no answer within 1 min"), "{refused}");
    }
}
