//! Methods of A2A, by the names that JSON-RPC and gRPC share in 1.0 (A2A 1.0, section 5.3). 0.3 has
//! the same methods under other names, except [`Method::ListTasks`].

/// A method of A2A (A2A 1.0, section 3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Method {
    /// Sends a message to an agent (section 3.1.1).
    SendMessage,
    /// Sends a message to an agent and streams the task's events (section 3.1.2).
    SendStreamingMessage,
    /// Returns a task (section 3.1.3).
    GetTask,
    /// Lists tasks page by page (section 3.1.4).
    ListTasks,
    /// Cancels a task (section 3.1.5).
    CancelTask,
    /// Subscribes to the events of an existing task (section 3.1.6).
    SubscribeToTask,
    /// Creates a push configuration of a task (section 3.1.7).
    CreateTaskPushNotificationConfig,
    /// Returns a push configuration of a task (section 3.1.8).
    GetTaskPushNotificationConfig,
    /// Lists the push configurations of a task (section 3.1.9).
    ListTaskPushNotificationConfigs,
    /// Deletes a push configuration of a task (section 3.1.10).
    DeleteTaskPushNotificationConfig,
    /// Returns the card for authenticated callers (section 3.1.11).
    GetExtendedAgentCard,
}

impl Method {
    /// All methods of official A2A.
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

    /// Name of the method in 1.0, over JSON-RPC and gRPC.
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

    /// The method with this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|method| method.name() == name)
    }
}
