//! Names of operations, for metrics.

use super::Operation;

impl Operation {
    /// Name of the operation, without its parameters.
    pub fn name(&self) -> &'static str {
        match self {
            Self::SendMessage(_) => "send_message",
            Self::StreamMessage(_) => "stream_message",
            Self::GetTask { .. } => "get_task",
            Self::CancelTask { .. } => "cancel_task",
            Self::Resubscribe { .. } => "resubscribe",
            Self::SetPushConfig { .. } => "set_push_config",
            Self::GetPushConfig { .. } => "get_push_config",
            Self::ListPushConfigs { .. } => "list_push_configs",
            Self::DeletePushConfig { .. } => "delete_push_config",
            Self::ListDeliveries { .. } => "list_deliveries",
            Self::RetryDeliveries { .. } => "retry_deliveries",
            Self::ListPushKeys => "list_push_keys",
            Self::ListTasks(_) => "list_tasks",
            Self::PageTasks(_) => "page_tasks",
            Self::GetTree(_) => "get_tree",
            Self::ListContexts(_) => "list_contexts",
            Self::GetContext { .. } => "get_context",
            Self::DeleteContext { .. } => "delete_context",
            Self::HandOver(_) => "hand_over",
            Self::Worktree(request) => request.name(),
            Self::Ping => "ping",
            Self::Status => "status",
            Self::ReadMetrics { .. } => "read_metrics",
            Self::ReloadConfig => "reload_config",
            Self::ListSchedules => "list_schedules",
            Self::RunSchedule { .. } => "run_schedule",
            Self::PauseSchedule { .. } => "pause_schedule",
            Self::ResumeSchedule { .. } => "resume_schedule",
            Self::Trigger(request) => request.name(),
            Self::ListPlugins => "list_plugins",
            Self::RefreshPlugins => "refresh_plugins",
            Self::AddPlugin(_) => "add_plugin",
            Self::GrantPlugin(_) => "grant_plugin",
            Self::DenyPlugin { .. } => "deny_plugin",
            Self::RevokePlugin { .. } => "revoke_plugin",
            Self::RemovePlugin { .. } => "remove_plugin",
            Self::BackUp { .. } => "back_up",
            Self::ListAgents { .. } => "list_agents",
            Self::FindAgents(_) => "find_agents",
            Self::GetAgent { .. } => "get_agent",
            Self::CheckAgent { .. } => "check_agent",
            Self::RegisterAgent { .. } => "register_agent",
            Self::DeregisterAgent { .. } => "deregister_agent",
            Self::ReloadAgent { .. } => "reload_agent",
            Self::WatchHub => "watch_hub",
            Self::GetCard { .. } => "get_card",
            Self::ListCards => "list_cards",
            Self::Discover => "discover",
        }
    }
}
