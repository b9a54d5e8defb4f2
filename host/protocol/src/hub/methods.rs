//! Methods of the hub's dialect: one table, which serves requests and `rpc.discover`.

use crate::{
    hub::{event::HubEvent, grant_params, params, schemas},
    model::{
        error::{A2aError, ErrorKind},
        operation::{
            AgentHealth, AgentInfo, BackedUp, ContextInfo, Deregistered, FoundAgents, HubStatus,
            Operation, PluginChanged, PluginInfo, PluginsRefreshed, Pong, Reloaded, TaskTree,
        },
        push::Delivery,
    },
    v03,
};
use schemars::{JsonSchema as _, Schema, SchemaGenerator};
use serde_json::{Value, json};

/// A method: its name, parameters and result.
pub struct HubMethod {
    /// Name of the method in requests, such as `hub/status`.
    pub name: &'static str,
    /// Description of the method in one line.
    pub summary: &'static str,
    /// Example parameters as JSON.
    pub example: &'static str,
    /// True if the method answers with a stream; each item is a result.
    pub streams: bool,
    /// True if only administrators may call the method, because it changes the hub or shows data of
    /// all tenants.
    pub admin: bool,
    pub(super) params: fn(&mut SchemaGenerator) -> Schema,
    pub(super) result: fn(&mut SchemaGenerator) -> Schema,
    read: fn(Value) -> Result<Operation, A2aError>,
}

/// Default values of a row.
const PLAIN: HubMethod = HubMethod {
    name: "",
    summary: "",
    example: "{}",
    streams: false,
    admin: false,
    params: params::NoParams::json_schema,
    result: schemas::task,
    read: |_| Err(A2aError::new(ErrorKind::MethodNotFound, "a method without a name")),
};

/// All methods of the hub's dialect.
pub static METHODS: &[HubMethod] = &[
    HubMethod {
        name: "hub/ping",
        summary: "Tell that the hub answers, whatever else may be wrong with it",
        result: SchemaGenerator::subschema_for::<Pong>,
        read: |_| Ok(Operation::Ping),
        ..PLAIN
    },
    HubMethod {
        name: "hub/status",
        summary: "Tell how the hub is",
        admin: true,
        result: SchemaGenerator::subschema_for::<HubStatus>,
        read: |_| Ok(Operation::Status),
        ..PLAIN
    },
    HubMethod {
        name: "hub/events",
        summary: "Tell everything that happens, as it happens",
        streams: true,
        result: SchemaGenerator::subschema_for::<HubEvent>,
        read: |_| Ok(Operation::WatchHub),
        ..PLAIN
    },
    HubMethod {
        name: "hub/reload",
        summary: "Read the configuration again: what can be followed counts from now on, and what needs a restart is named; a \
                  file that cannot be followed changes nothing",
        admin: true,
        result: SchemaGenerator::subschema_for::<Reloaded>,
        read: |_| Ok(Operation::ReloadConfig),
        ..PLAIN
    },
    HubMethod {
        name: "hub/agents/list",
        summary: "List the agents",
        example: r#"{"includeHealth": true}"#,
        params: params::ListAgents::json_schema,
        result: SchemaGenerator::subschema_for::<Vec<AgentInfo>>,
        read: params::list_agents,
        ..PLAIN
    },
    HubMethod {
        name: "hub/agents/find",
        summary: "Find agents by name, skill, tags, media types, version, and by what they are to do in anybody's words; each is \
                  told with why it was found",
        example: r#"{"query": "review my changes", "tags": ["code"], "version": ">=1.0", "limit": 3}"#,
        params: params::FindAgents::json_schema,
        result: SchemaGenerator::subschema_for::<FoundAgents>,
        read: params::find_agents,
        ..PLAIN
    },
    HubMethod {
        name: "hub/agents/get",
        summary: "Show an agent",
        example: r#"{"agentId": "claude-code"}"#,
        params: params::OneAgent::json_schema,
        result: SchemaGenerator::subschema_for::<AgentInfo>,
        read: |said| Ok(Operation::GetAgent { id: params::one_agent(said)? }),
        ..PLAIN
    },
    HubMethod {
        name: "hub/agents/health",
        summary: "Ask an agent how it is, now",
        example: r#"{"agentId": "claude-code"}"#,
        params: params::OneAgent::json_schema,
        result: SchemaGenerator::subschema_for::<AgentHealth>,
        read: |said| Ok(Operation::CheckAgent { id: params::one_agent(said)? }),
        ..PLAIN
    },
    HubMethod {
        name: "hub/agents/register",
        summary: "Take in an agent, for good: its component is copied into the plugins folder",
        example: r#"{"agentId": "parrot", "path": "/home/me/parrot.wasm"}"#,
        admin: true,
        params: params::RegisterAgent::json_schema,
        result: SchemaGenerator::subschema_for::<AgentInfo>,
        read: params::register_agent,
        ..PLAIN
    },
    HubMethod {
        name: "hub/agents/deregister",
        summary: "Let an agent go: its tasks go on to their end, its file leaves the plugins folder; one that came \
                  with the hub is gone until a restart",
        example: r#"{"agentId": "parrot"}"#,
        admin: true,
        params: params::OneAgent::json_schema,
        result: SchemaGenerator::subschema_for::<Deregistered>,
        read: |said| Ok(Operation::DeregisterAgent { id: params::one_agent(said)? }),
        ..PLAIN
    },
    HubMethod {
        name: "hub/agents/reload",
        summary: "Read an agent's component again, or the card of one that is elsewhere; if that fails, the agent stays as \
                  it was",
        example: r#"{"agentId": "parrot"}"#,
        admin: true,
        params: params::ReloadAgent::json_schema,
        result: SchemaGenerator::subschema_for::<AgentInfo>,
        read: params::reload_agent,
        ..PLAIN
    },
    HubMethod {
        name: "hub/plugins/list",
        summary: "List the plug-ins: what each asks for and why, what it is granted and what not, and what is held back",
        admin: true,
        result: SchemaGenerator::subschema_for::<Vec<PluginInfo>>,
        read: |_| Ok(Operation::ListPlugins),
        ..PLAIN
    },
    HubMethod {
        name: "hub/plugins/refresh",
        summary: "Look at once for what the operator granted or took away, and at the plugins folder, which the hub does every \
                  half second anyway; it grants nothing by itself",
        admin: true,
        result: SchemaGenerator::subschema_for::<PluginsRefreshed>,
        read: |_| Ok(Operation::RefreshPlugins),
        ..PLAIN
    },
    HubMethod {
        name: "hub/plugins/add",
        summary: "Put a component into the plugins folder, with what it is granted from the start; only for the operator's own \
                  programs on this machine, and for no token",
        example: r#"{"agentId": "notes", "path": "/home/me/notes.wasm",
            "sha256": "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"}"#,
        admin: true,
        params: grant_params::AddParams::json_schema,
        result: SchemaGenerator::subschema_for::<PluginChanged>,
        read: grant_params::add,
        ..PLAIN
    },
    HubMethod {
        name: "hub/grants/grant",
        summary: "Say what a plug-in may do from now on, and let its component in; only for the operator's own programs on this \
                  machine, and for no token",
        example: r#"{"agentId": "notes", "grant": {"memory": true},
            "sha256": "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"}"#,
        admin: true,
        params: grant_params::GrantParams::json_schema,
        result: SchemaGenerator::subschema_for::<PluginChanged>,
        read: grant_params::grant,
        ..PLAIN
    },
    HubMethod {
        name: "hub/grants/deny",
        summary: "Take some of what a plug-in was granted away, also from tasks at work; only for the operator's own programs on \
                  this machine, and for no token",
        example: r#"{"agentId": "notes", "capabilities": ["process.git"]}"#,
        admin: true,
        params: grant_params::DenyParams::json_schema,
        result: SchemaGenerator::subschema_for::<PluginChanged>,
        read: grant_params::deny,
        ..PLAIN
    },
    HubMethod {
        name: "hub/grants/revoke",
        summary: "Take all that a plug-in was granted away, also from tasks at work; what it keeps stays; only for the operator's \
                  own programs on this machine, and for no token",
        example: r#"{"agentId": "notes"}"#,
        admin: true,
        params: params::OneAgent::json_schema,
        result: SchemaGenerator::subschema_for::<PluginChanged>,
        read: |said| Ok(Operation::RevokePlugin { id: params::one_agent(said)? }),
        ..PLAIN
    },
    HubMethod {
        name: "hub/grants/remove",
        summary: "Take a plug-in out of the plugins folder, and forget all that it keeps; only for the operator's own programs on \
                  this machine, and for no token",
        example: r#"{"agentId": "notes"}"#,
        admin: true,
        params: params::OneAgent::json_schema,
        result: SchemaGenerator::subschema_for::<PluginChanged>,
        read: |said| Ok(Operation::RemovePlugin { id: params::one_agent(said)? }),
        ..PLAIN
    },
    HubMethod {
        name: "hub/backup",
        summary: "Copy the store, with all tasks of all tenants, to a new file of the hub's machine; only for the operator's own \
                  programs on this machine, and for no token",
        example: r#"{"file": "/home/me/backup.db"}"#,
        admin: true,
        params: grant_params::BackUpParams::json_schema,
        result: SchemaGenerator::subschema_for::<BackedUp>,
        read: grant_params::back_up,
        ..PLAIN
    },
    HubMethod {
        name: "hub/tasks/list",
        summary: "List tasks, newest first",
        example: r#"{"contextId": "optional-context-id", "state": "completed", "limit": 20, "offset": 0}"#,
        params: params::ListTasks::json_schema,
        result: schemas::tasks,
        read: params::list_tasks,
        ..PLAIN
    },
    HubMethod {
        name: "hub/tasks/tree",
        summary: "Show a task with those that its agent gave to other agents, and they to others: who is at work, on what, since \
                  when, what it used up, and what it asks",
        example: r#"{"id": "task-456", "depth": 8, "limit": 100}"#,
        params: params::GetTree::json_schema,
        result: SchemaGenerator::subschema_for::<TaskTree>,
        read: params::get_tree,
        ..PLAIN
    },
    HubMethod {
        name: "hub/contexts/list",
        summary: "List conversations, the latest first",
        example: r#"{"limit": 10}"#,
        params: params::ListContexts::json_schema,
        result: SchemaGenerator::subschema_for::<Vec<ContextInfo>>,
        read: params::list_contexts,
        ..PLAIN
    },
    HubMethod {
        name: "hub/contexts/get",
        summary: "Show a conversation and what was said in it",
        example: r#"{"contextId": "ctx-789"}"#,
        params: params::GetContext::json_schema,
        result: SchemaGenerator::subschema_for::<ContextInfo>,
        read: params::get_context,
        ..PLAIN
    },
    HubMethod {
        name: "hub/contexts/delete",
        summary: "Forget a conversation with its tasks; refused while one of them is alive",
        example: r#"{"contextId": "ctx-789"}"#,
        admin: true,
        params: params::DeleteContext::json_schema,
        result: SchemaGenerator::subschema_for::<Value>,
        read: params::delete_context,
        ..PLAIN
    },
    HubMethod {
        name: "hub/deliveries/list",
        summary: "List push notifications that are on their way, or were given up",
        example: r#"{"dead": true}"#,
        params: params::ListDeliveries::json_schema,
        result: SchemaGenerator::subschema_for::<Vec<Delivery>>,
        read: params::list_deliveries,
        ..PLAIN
    },
    HubMethod {
        name: "hub/deliveries/retry",
        summary: "Retry a task's notifications that failed or were given up",
        example: r#"{"taskId": "task-456"}"#,
        params: params::RetryDeliveries::json_schema,
        result: SchemaGenerator::subschema_for::<Vec<Delivery>>,
        read: params::retry_deliveries,
        ..PLAIN
    },
    HubMethod {
        name: "message/send",
        summary: "Have an agent work on a message, and wait for the end",
        example: r#"{"message": {"kind": "message", "messageId": "msg-123", "role": "user",
            "parts": [{"kind": "text", "text": "Write a hello world function in Python"}],
            "metadata": {"targetAgent": "claude-code"}}, "configuration": {"historyLength": 10}}"#,
        params: v03::params::MessageSend::json_schema,
        result: schemas::task_or_message,
        read: |said| Ok(Operation::SendMessage(Box::new(v03::params::send_message(said)?))),
        ..PLAIN
    },
    HubMethod {
        name: "message/stream",
        summary: "The same, hearing what happens as it happens",
        example: r#"{"message": {"kind": "message", "messageId": "msg-124", "role": "user",
            "parts": [{"kind": "text", "text": "Explain it"}], "metadata": {"targetAgent": "claude-code"}}}"#,
        streams: true,
        params: v03::params::MessageSend::json_schema,
        result: schemas::task_event,
        read: |said| Ok(Operation::StreamMessage(Box::new(v03::params::send_message(said)?))),
        ..PLAIN
    },
    HubMethod {
        name: "tasks/get",
        summary: "Show a task",
        example: r#"{"id": "task-456", "historyLength": 10}"#,
        params: v03::params::GetTask::json_schema,
        read: v03::params::get_task,
        ..PLAIN
    },
    HubMethod {
        name: "tasks/cancel",
        summary: "Stop a task",
        example: r#"{"id": "task-456"}"#,
        params: v03::params::CancelTask::json_schema,
        read: v03::params::cancel_task,
        ..PLAIN
    },
    HubMethod {
        name: "tasks/resubscribe",
        summary: "Hear what happens to a task: as it stands and from now on, or all that came after an event",
        example: r#"{"id": "task-456"}"#,
        streams: true,
        params: v03::params::Resubscribe::json_schema,
        result: schemas::task_event,
        read: v03::params::resubscribe,
        ..PLAIN
    },
    HubMethod {
        name: "tasks/pushNotificationConfig/set",
        summary: "Have a task's notifications sent to a URL",
        example: r#"{"taskId": "task-456", "pushNotificationConfig": {"url": "https://example.com/news", "token": "t"}}"#,
        params: v03::params::SetPush::json_schema,
        result: schemas::push_config,
        read: v03::params::set_push,
        ..PLAIN
    },
    HubMethod {
        name: "tasks/pushNotificationConfig/get",
        summary: "Show where a task's notifications are sent",
        example: r#"{"id": "task-456", "pushNotificationConfigId": "config-1"}"#,
        params: v03::params::GetPush::json_schema,
        result: schemas::push_config,
        read: v03::params::get_push,
        ..PLAIN
    },
    HubMethod {
        name: "tasks/pushNotificationConfig/list",
        summary: "List where a task's notifications are sent",
        example: r#"{"id": "task-456"}"#,
        params: v03::params::ListPushes::json_schema,
        result: schemas::push_configs,
        read: v03::params::list_pushes,
        ..PLAIN
    },
    HubMethod {
        name: "tasks/pushNotificationConfig/delete",
        summary: "Stop sending a task's notifications there",
        example: r#"{"id": "task-456", "pushNotificationConfigId": "config-1"}"#,
        params: v03::params::DeletePush::json_schema,
        result: schemas::nothing,
        read: v03::params::delete_push,
        ..PLAIN
    },
    HubMethod {
        name: "rpc.discover",
        summary: "Describe this interface, as an OpenRPC document",
        result: SchemaGenerator::subschema_for::<Value>,
        read: |_| Ok(Operation::Discover),
        ..PLAIN
    },
];

/// Reads the parameters of a method.
pub fn operation(method: &str, params: Value) -> Result<Operation, A2aError> {
    match METHODS.iter().find(|known| known.name == method) {
        Some(known) => (known.read)(params),
        None => {
            let names: Vec<_> = METHODS.iter().map(|known| known.name).collect();
            let why = format!("no method is called `{method}`; `rpc.discover` lists them");
            Err(A2aError::new(ErrorKind::MethodNotFound, why).with(json!({ "methods": names })))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{
        id::{AgentId, TaskId},
        operation::{Component, ContextQuery, Page, TreeQuery},
        task::TaskState,
    };
    use std::collections::HashSet;

    #[test]
    fn methods_are_unique_and_read_examples() {
        let names: HashSet<_> = METHODS.iter().map(|method| method.name).collect();
        assert_eq!(names.len(), METHODS.len());
        for method in METHODS {
            let example = serde_json::from_str(method.example).unwrap();
            let operation = operation(method.name, example).unwrap();
            assert_eq!(operation.streams(), method.streams, "{}", method.name);
        }
    }

    #[test]
    fn register_takes_path_or_component() {
        let register = |params: Value| operation("hub/agents/register", params);
        let bytes = register(json!({"agentId": "a", "component": "AGFzbQ=="})).unwrap();
        let component = Component::Bytes(b"\0asm".to_vec());
        assert_eq!(bytes, Operation::RegisterAgent { id: AgentId::parse("a").unwrap(), component });
        let refused = [
            json!({"agentId": "../a", "path": "/a.wasm"}),
            json!({"agentId": "a"}),
            json!({"agentId": "a", "path": "/a.wasm", "component": "AGFzbQ=="}),
            json!({"agentId": "a", "path": "a.wasm"}),
            json!({"agentId": "a", "component": "?"}),
        ]
        .map(|params| register(params).unwrap_err().to_string());
        insta::assert_snapshot!(refused.join("\n"), @r"
        `agentId`: `../a` cannot name an agent: use 1 to 63 lower-case letters, digits and hyphens, beginning with a letter
        `path`: give either `path` or `component`
        `path`: give either `path` or `component`
        `path`: must be absolute: the hub does not know where you are
        `component`: is not base64: Invalid symbol 63, offset 0.
        ");
    }

    #[test]
    fn list_methods_read_page_and_filters() {
        let said = json!({"contextId": "optional-context-id", "state": "completed", "limit": 20, "offset": 0});
        let Ok(Operation::ListTasks(query)) = operation("hub/tasks/list", said) else {
            panic!("not a list")
        };
        assert_eq!(query.context.unwrap().as_str(), "optional-context-id");
        assert_eq!(query.state, Some(TaskState::Completed));
        assert_eq!(query.page, Page { limit: 20, offset: 0 });
        let unsaid = operation("hub/contexts/list", json!({})).unwrap();
        let page = Page { limit: 20, offset: 0 };
        assert_eq!(
            unsaid,
            Operation::ListContexts(ContextQuery { id_prefix: None, tenant: None, page })
        );
        let params = json!({ "idPrefix": "01a1", "agentId": "echo", "since": "2026-01-31T12:00:00.000Z",
            "workingDirectory": "/src" });
        let Ok(Operation::ListTasks(query)) = operation("hub/tasks/list", params) else {
            panic!("not a list")
        };
        let asked = (query.id_prefix.as_deref(), query.agent);
        assert_eq!(asked, (Some("01a1"), AgentId::parse("echo").ok()));
        assert_eq!(query.since.as_deref(), Some("2026-01-31T12:00:00.000Z"));
        assert_eq!(query.directory.as_deref(), Some("/src"));
        let tree = |params: Value| operation("hub/tasks/tree", params);
        let most = TreeQuery { id: TaskId::new("t"), depth: 64, limit: 1_000 };
        assert_eq!(tree(json!({"id": "t"})).unwrap(), Operation::GetTree(most));
        for wrong in [json!({}), json!({"id": "t", "depth": 65}), json!({"id": "t", "limit": 0})] {
            assert!(tree(wrong.clone()).is_err(), "{wrong}");
        }
        let heard = operation("tasks/resubscribe", json!({"id": "t", "lastEventId": "7"})).unwrap();
        assert_eq!(heard, Operation::Resubscribe { id: TaskId::new("t"), after: Some(7) });
    }
}
