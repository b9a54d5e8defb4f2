//! Tenant of an operation: the task that decides it, and the restriction to it.

use super::{Operation, UsageKey};
use crate::model::id::{ContextId, TaskId, TenantId};

impl Operation {
    /// Task that the operation is about: it must be one of the caller's tenant, and of an agent's own
    /// tree. Every operation is listed here, so that a new one decides.
    pub fn task(&self) -> Option<&TaskId> {
        match self {
            Self::SendMessage(send) | Self::StreamMessage(send) => send.message.task_id.as_ref(),
            Self::GetTask { id, .. } | Self::CancelTask { id } | Self::Resubscribe { id, .. } => {
                Some(id)
            }
            Self::GetTree(query) => Some(&query.id),
            Self::GetTimeline(query) => Some(&query.id),
            Self::HandOver(request) => Some(&request.task),
            Self::Worktree(request) => request.task(),
            Self::Review(request) => Some(request.task()),
            Self::SetPushConfig { task, .. }
            | Self::GetPushConfig { task, .. }
            | Self::ListPushConfigs { task }
            | Self::DeletePushConfig { task, .. }
            | Self::RetryNow { task }
            | Self::RetryDeliveries { task } => Some(task),
            // Its tasks are looked up, and must be of the caller's tenant.
            Self::Question(_) => None,
            // Its notices are those of the caller's tenant.
            Self::Notice(_) => None,
            // Its rules are those of the caller's tenant.
            Self::Permission(_) => None,
            // Its context is looked up, and must be one of the caller's tenant.
            Self::Board(_) => None,
            Self::ListDeliveries { .. }
            | Self::ListPushKeys
            | Self::ListTasks(_)
            | Self::PageTasks(_)
            | Self::Search(_)
            | Self::Usage(_)
            | Self::ListContexts(_)
            | Self::GetContext { .. }
            | Self::DeleteContext { .. }
            | Self::Ping
            | Self::Status
            | Self::ReadMetrics { .. }
            | Self::ReloadConfig
            | Self::ListSchedules
            | Self::RunSchedule { .. }
            | Self::PauseSchedule { .. }
            | Self::ResumeSchedule { .. }
            | Self::AcceptSchedule { .. }
            | Self::Trigger(_)
            | Self::Notifier(_)
            | Self::Topic(_)
            | Self::ListPlugins
            | Self::RefreshPlugins
            | Self::AddPlugin(_)
            | Self::GrantPlugin(_)
            | Self::DenyPlugin { .. }
            | Self::RevokePlugin { .. }
            | Self::RemovePlugin { .. }
            | Self::BackUp { .. }
            | Self::ListAgents { .. }
            | Self::FindAgents(_)
            | Self::GetAgent { .. }
            | Self::CheckAgent { .. }
            | Self::RegisterAgent { .. }
            | Self::DeregisterAgent { .. }
            | Self::ReloadAgent { .. }
            | Self::WatchHub(_)
            | Self::GetCard { .. }
            | Self::ListCards
            | Self::Device(_)
            | Self::People(_)
            | Self::Discover => None,
        }
    }

    /// Restricts the operation to a tenant: moves the conversations that it names into the tenant,
    /// and adds the tenant to its filters.
    pub fn restrict_to_tenant(&mut self, of: &TenantId) {
        let restrict = |context: &mut Option<ContextId>| {
            *context = context.take().map(|context| context.of_tenant(of));
        };
        #[expect(
            clippy::wildcard_enum_match_arm,
            reason = "all others name no conversation, and list none"
        )]
        match self {
            Self::SendMessage(send) | Self::StreamMessage(send) => {
                restrict(&mut send.message.context_id);
            }
            Self::ListTasks(query) => {
                restrict(&mut query.context);
                query.tenant = Some(of.clone());
            }
            Self::PageTasks(query) => {
                restrict(&mut query.context);
                query.tenant = Some(of.clone());
            }
            Self::Search(query) => {
                restrict(&mut query.context);
                query.tenant = Some(of.clone());
            }
            // A sum by tenant covers them all, and is the operator's.
            Self::Usage(query) => {
                query.tenant = (query.by != UsageKey::Tenant).then(|| of.clone());
            }
            Self::ListContexts(query) => query.tenant = Some(of.clone()),
            Self::GetContext { id, .. } | Self::DeleteContext { id } => {
                *id = id.clone().of_tenant(of);
            }
            _ => {}
        }
    }
}
