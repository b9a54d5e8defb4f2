//! The methods of A2A, by the names that JSON-RPC and gRPC share in 1.0 (A2A 1.0, section 5.3). 0.3 has the same, under
//! names of its own, but for [`Method::ListTasks`].

/// A method of A2A: what a client may ask of an agent (A2A 1.0, section 3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Method {
    /// Have an agent work on a message (section 3.1.1).
    SendMessage,
    /// Have an agent work on a message, and hear what happens as it happens (section 3.1.2).
    SendStreamingMessage,
    /// Show a task (section 3.1.3).
    GetTask,
    /// Show tasks, a page at a time (section 3.1.4).
    ListTasks,
    /// Stop a task (section 3.1.5).
    CancelTask,
    /// Hear what happens to a task that is there already (section 3.1.6).
    SubscribeToTask,
    /// Have a task's notifications sent somewhere (section 3.1.7).
    CreateTaskPushNotificationConfig,
    /// Show where a task's notifications are sent (section 3.1.8).
    GetTaskPushNotificationConfig,
    /// Show every place where a task's notifications are sent (section 3.1.9).
    ListTaskPushNotificationConfigs,
    /// Stop sending a task's notifications to one place (section 3.1.10).
    DeleteTaskPushNotificationConfig,
    /// Show the card that is for those who have shown who they are (section 3.1.11).
    GetExtendedAgentCard,
}

impl Method {
    /// Every method of official A2A.
    pub const ALL: [Self; 11] = [
        Self::SendMessage,
        Self::SendStreamingMessage,
        Self::GetTask,
        Self::ListTasks,
        Self::CancelTask,
        Self::SubscribeToTask,
        Self::CreateTaskPushNotificationConfig,
        Self::GetTaskPushNotificationConfig,
        Self::ListTaskPushNotificationConfigs,
        Self::DeleteTaskPushNotificationConfig,
        Self::GetExtendedAgentCard,
    ];

    /// The method's name in 1.0, over JSON-RPC and gRPC.
    pub fn name(self) -> &'static str {
        match self {
            Self::SendMessage => "SendMessage",
            Self::SendStreamingMessage => "SendStreamingMessage",
            Self::GetTask => "GetTask",
            Self::ListTasks => "ListTasks",
            Self::CancelTask => "CancelTask",
            Self::SubscribeToTask => "SubscribeToTask",
            Self::CreateTaskPushNotificationConfig => "CreateTaskPushNotificationConfig",
            Self::GetTaskPushNotificationConfig => "GetTaskPushNotificationConfig",
            Self::ListTaskPushNotificationConfigs => "ListTaskPushNotificationConfigs",
            Self::DeleteTaskPushNotificationConfig => "DeleteTaskPushNotificationConfig",
            Self::GetExtendedAgentCard => "GetExtendedAgentCard",
        }
    }

    /// The method called `name`.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|method| method.name() == name)
    }
}
