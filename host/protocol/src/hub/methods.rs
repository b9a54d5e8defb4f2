//! Methods of the hub's dialect: one table, which serves requests and `rpc.discover`.

pub use super::method::HubMethod;
use crate::topics::{
    DeleteParams, Deleted, PublishParams, PublishedMessage, ReadParams, TopicList, TopicPage,
};
use crate::{
    hub::{
        devices, grant_params, handoff_params, method::PLAIN, notices, notifiers, params, people,
        permissions, questions, reviews, schemas, search, timeline, topic_params, trigger_params,
        usage, watch, worktree_params,
    },
    model::{
        error::{A2aError, ErrorKind},
        operation::{
            AgentHealth, AgentInfo, BackedUp, ContextInfo, Deregistered, FoundAgents, HubStatus,
            Operation, PluginChanged, PluginInfo, PluginsRefreshed, Pong, Reloaded, ScheduleInfo,
            TaskTree, TopicRequest, TriggerInfo, TriggerRequest, WorktreeApplied, WorktreeDiff,
            WorktreeInfo, WorktreeRemoved, WorktreeRequest,
        },
        push::Delivery,
    },
    v03,
};
use schemars::{JsonSchema as _, SchemaGenerator};
use serde_json::{Value, json};

/// All methods of the hub's dialect.
pub static METHODS: &[HubMethod] = &[
    HubMethod {
        name: "hub/ping",
        summary: "Check that the hub answers, in whatever state it is",
        result: SchemaGenerator::subschema_for::<Pong>,
        read: |_| Ok(Operation::Ping),
        ..PLAIN
    },
    HubMethod {
        name: "hub/status",
        summary: "Return the state of the hub, its store, tasks and agents",
        admin: true,
        result: SchemaGenerator::subschema_for::<HubStatus>,
        read: |_| Ok(Operation::Status),
        ..PLAIN
    },
    watch::EVENTS,
    HubMethod {
        name: "hub/reload",
        summary: "Read the configuration again and apply its changes; lists those that need a \
                  restart. An invalid configuration changes nothing",
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
        summary: "Find agents by name, skill, tags, media types, version and free text; each \
                  result has the reasons for its match",
        example: r#"{"query": "review my changes", "tags": ["code"], "version": ">=1.0", "limit": 3}"#,
        params: params::FindAgents::json_schema,
        result: SchemaGenerator::subschema_for::<FoundAgents>,
        read: params::find_agents,
        ..PLAIN
    },
    HubMethod {
        name: "hub/agents/get",
        summary: "Return an agent with its card",
        example: r#"{"agentId": "claude-code"}"#,
        params: params::OneAgent::json_schema,
        result: SchemaGenerator::subschema_for::<AgentInfo>,
        read: |value| Ok(Operation::GetAgent { id: params::one_agent(value)? }),
        ..PLAIN
    },
    HubMethod {
        name: "hub/agents/health",
        summary: "Check the health of an agent now",
        example: r#"{"agentId": "claude-code"}"#,
        params: params::OneAgent::json_schema,
        result: SchemaGenerator::subschema_for::<AgentHealth>,
        read: |value| Ok(Operation::CheckAgent { id: params::one_agent(value)? }),
        ..PLAIN
    },
    HubMethod {
        name: "hub/agents/register",
        summary: "Add an agent permanently, by copying its component into the plugins folder",
        example: r#"{"agentId": "parrot", "path": "/home/me/parrot.wasm"}"#,
        admin: true,
        params: params::RegisterAgent::json_schema,
        result: SchemaGenerator::subschema_for::<AgentInfo>,
        read: params::register_agent,
        ..PLAIN
    },
    HubMethod {
        name: "hub/agents/deregister",
        summary: "Remove an agent and its file in the plugins folder; its running tasks \
                  continue. A built-in agent returns after a restart",
        example: r#"{"agentId": "parrot"}"#,
        admin: true,
        params: params::OneAgent::json_schema,
        result: SchemaGenerator::subschema_for::<Deregistered>,
        read: |value| Ok(Operation::DeregisterAgent { id: params::one_agent(value)? }),
        ..PLAIN
    },
    HubMethod {
        name: "hub/agents/reload",
        summary: "Load an agent's component again, or a remote agent's card; if that fails, the \
                  agent stays as it was",
        example: r#"{"agentId": "parrot"}"#,
        admin: true,
        params: params::ReloadAgent::json_schema,
        result: SchemaGenerator::subschema_for::<AgentInfo>,
        read: params::reload_agent,
        ..PLAIN
    },
    HubMethod {
        name: "hub/schedules/list",
        summary: "List the schedules with their next time and their latest run",
        admin: true,
        result: SchemaGenerator::subschema_for::<Vec<ScheduleInfo>>,
        read: |_| Ok(Operation::ListSchedules),
        ..PLAIN
    },
    HubMethod {
        name: "hub/schedules/run",
        summary: "Start a run of a schedule now, also of a paused one, and return its task",
        example: r#"{"name": "nightly"}"#,
        admin: true,
        params: params::OneSchedule::json_schema,
        read: |value| Ok(Operation::RunSchedule { name: params::one_schedule(value)? }),
        ..PLAIN
    },
    HubMethod {
        name: "hub/schedules/pause",
        summary: "Pause a schedule, also over restarts: planned times get no run until it is \
                  resumed",
        example: r#"{"name": "nightly"}"#,
        admin: true,
        params: params::OneSchedule::json_schema,
        result: SchemaGenerator::subschema_for::<ScheduleInfo>,
        read: |value| Ok(Operation::PauseSchedule { name: params::one_schedule(value)? }),
        ..PLAIN
    },
    HubMethod {
        name: "hub/schedules/resume",
        summary: "Resume a paused schedule; planned times during the pause get no run",
        example: r#"{"name": "nightly"}"#,
        admin: true,
        params: params::OneSchedule::json_schema,
        result: SchemaGenerator::subschema_for::<ScheduleInfo>,
        read: |value| Ok(Operation::ResumeSchedule { name: params::one_schedule(value)? }),
        ..PLAIN
    },
    people::ACCEPT_SCHEDULE,
    search::SEARCH,
    usage::USAGE,
    questions::LIST,
    questions::ANSWER,
    questions::LATER,
    questions::HISTORY,
    notices::LIST,
    notices::READ,
    notifiers::LIST,
    notifiers::TEST,
    permissions::LIST,
    permissions::ADD,
    permissions::REMOVE,
    permissions::TEST,
    permissions::SUGGEST,
    devices::LIST,
    devices::REMOVE,
    devices::PAIR,
    devices::PAIRING,
    devices::CONFIRM,
    people::LIST,
    people::ADD,
    people::ROLE,
    people::REMOVE,
    people::INVITE,
    people::ME,
    people::NEW_KEY,
    people::REVOKE_KEY,
    HubMethod {
        name: "hub/triggers/list",
        summary: "List the triggers with their latest run, and those that their limit stopped",
        admin: true,
        result: SchemaGenerator::subschema_for::<Vec<TriggerInfo>>,
        read: |_| Ok(Operation::Trigger(TriggerRequest::List)),
        ..PLAIN
    },
    HubMethod {
        name: "hub/triggers/run",
        summary: "Start a run of a trigger now, without an event, and return its task",
        example: r#"{"name": "review"}"#,
        admin: true,
        params: trigger_params::OneTrigger::json_schema,
        read: trigger_params::run,
        ..PLAIN
    },
    HubMethod {
        name: "hub/triggers/pause",
        summary: "Pause a trigger, also over restarts: events start no run until it is resumed",
        example: r#"{"name": "review"}"#,
        admin: true,
        params: trigger_params::OneTrigger::json_schema,
        result: SchemaGenerator::subschema_for::<TriggerInfo>,
        read: trigger_params::pause,
        ..PLAIN
    },
    HubMethod {
        name: "hub/triggers/resume",
        summary: "Resume a trigger that was paused, or stopped by its limit; earlier events get \
                  no run",
        example: r#"{"name": "review"}"#,
        admin: true,
        params: trigger_params::OneTrigger::json_schema,
        result: SchemaGenerator::subschema_for::<TriggerInfo>,
        read: trigger_params::resume,
        ..PLAIN
    },
    people::ACCEPT_TRIGGER,
    HubMethod {
        name: "hub/topics/publish",
        summary: "Store a message of a topic durably, for all subscribers",
        example: r#"{"topic": "builds/main/failed", "text": "3 tests failed"}"#,
        params: PublishParams::json_schema,
        result: SchemaGenerator::subschema_for::<PublishedMessage>,
        read: topic_params::publish,
        ..PLAIN
    },
    HubMethod {
        name: "hub/topics/read",
        summary: "Return the messages of topics after a position or a named cursor, and wait \
                  for one if none is stored; reports messages that were dropped unread",
        example: r#"{"pattern": "builds/+/failed", "after": 41, "waitMs": 1000}"#,
        params: ReadParams::json_schema,
        result: SchemaGenerator::subschema_for::<TopicPage>,
        read: topic_params::read_messages,
        ..PLAIN
    },
    HubMethod {
        name: "hub/topics/list",
        summary: "List the topics with their sizes, and the named cursors",
        result: SchemaGenerator::subschema_for::<TopicList>,
        read: |_| Ok(Operation::Topic(TopicRequest::List)),
        ..PLAIN
    },
    HubMethod {
        name: "hub/topics/delete",
        summary: "Delete a topic with its messages, or the named cursors of a name",
        example: r#"{"topic": "builds/main/failed"}"#,
        admin: true,
        params: DeleteParams::json_schema,
        result: SchemaGenerator::subschema_for::<Deleted>,
        read: topic_params::delete,
        ..PLAIN
    },
    HubMethod {
        name: "hub/plugins/list",
        summary: "List the plug-ins with the permissions that they ask for, their grants, \
                  missing permissions and held-back updates",
        admin: true,
        result: SchemaGenerator::subschema_for::<Vec<PluginInfo>>,
        read: |_| Ok(Operation::ListPlugins),
        ..PLAIN
    },
    HubMethod {
        name: "hub/plugins/refresh",
        summary: "Read the grants and the plugins folder at once, which the hub does every 500 \
                  ms anyway; grants nothing",
        admin: true,
        result: SchemaGenerator::subschema_for::<PluginsRefreshed>,
        read: |_| Ok(Operation::RefreshPlugins),
        ..PLAIN
    },
    HubMethod {
        name: "hub/plugins/add",
        summary: "Add a component to the plugins folder, with its initial grant; only for the \
                  operator's programs on this machine, not for any token",
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
        summary: "Set the grant of a plug-in and approve its component; only for the operator's \
                  programs on this machine, not for any token",
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
        summary: "Withdraw some permissions of a plug-in, from running tasks as well; only for \
                  the operator's programs on this machine, not for any token",
        example: r#"{"agentId": "notes", "capabilities": ["process.git"]}"#,
        admin: true,
        params: grant_params::DenyParams::json_schema,
        result: SchemaGenerator::subschema_for::<PluginChanged>,
        read: grant_params::deny,
        ..PLAIN
    },
    HubMethod {
        name: "hub/grants/revoke",
        summary: "Withdraw all permissions of a plug-in, from running tasks as well, and keep \
                  its stored data; only for the operator's programs on this machine, not for any \
                  token",
        example: r#"{"agentId": "notes"}"#,
        admin: true,
        params: params::OneAgent::json_schema,
        result: SchemaGenerator::subschema_for::<PluginChanged>,
        read: |value| Ok(Operation::RevokePlugin { id: params::one_agent(value)? }),
        ..PLAIN
    },
    HubMethod {
        name: "hub/grants/remove",
        summary: "Remove a plug-in from the plugins folder and delete its stored data; only for \
                  the operator's programs on this machine, not for any token",
        example: r#"{"agentId": "notes"}"#,
        admin: true,
        params: params::OneAgent::json_schema,
        result: SchemaGenerator::subschema_for::<PluginChanged>,
        read: |value| Ok(Operation::RemovePlugin { id: params::one_agent(value)? }),
        ..PLAIN
    },
    HubMethod {
        name: "hub/backup",
        summary: "Copy the store, with the tasks of all tenants, to a new file on the hub's \
                  machine; only for the operator's programs on this machine, not for any token",
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
        summary: "Return a task with all its child tasks: agents, states, times, usage and open \
                  questions",
        example: r#"{"id": "task-456", "depth": 8, "limit": 100}"#,
        params: params::GetTree::json_schema,
        result: SchemaGenerator::subschema_for::<TaskTree>,
        read: params::get_tree,
        ..PLAIN
    },
    timeline::TIMELINE,
    HubMethod {
        name: "hub/contexts/list",
        summary: "List conversations, newest first",
        example: r#"{"limit": 10}"#,
        params: params::ListContexts::json_schema,
        result: SchemaGenerator::subschema_for::<Vec<ContextInfo>>,
        read: params::list_contexts,
        ..PLAIN
    },
    HubMethod {
        name: "hub/contexts/get",
        summary: "Return a conversation with its messages",
        example: r#"{"contextId": "ctx-789"}"#,
        params: params::GetContext::json_schema,
        result: SchemaGenerator::subschema_for::<ContextInfo>,
        read: params::get_context,
        ..PLAIN
    },
    HubMethod {
        name: "hub/contexts/delete",
        summary: "Delete a conversation with its tasks; refused while one of them is running or \
                  waits",
        example: r#"{"contextId": "ctx-789"}"#,
        admin: true,
        params: params::DeleteContext::json_schema,
        result: SchemaGenerator::subschema_for::<Value>,
        read: params::delete_context,
        ..PLAIN
    },
    HubMethod {
        name: "hub/tasks/handoff",
        summary: "Have another agent go on with a task, in a new task of the same conversation; \
                  the old one is canceled. Returns the new task",
        example: r#"{"taskId": "task-456", "agentId": "codex", "note": "keep the public API"}"#,
        admin: true,
        params: handoff_params::HandOverParams::json_schema,
        read: handoff_params::hand_over,
        ..PLAIN
    },
    HubMethod {
        name: "hub/tasks/retryNow",
        summary: "Have a task that waits for the reset of its agent's quota try now. Returns the \
                  task",
        example: r#"{"taskId": "task-456"}"#,
        admin: true,
        params: handoff_params::RetryNowParams::json_schema,
        read: handoff_params::retry_now,
        ..PLAIN
    },
    HubMethod {
        name: "hub/tasks/diff",
        summary: "Return the changes of a task in its worktree, as a patch or as a table of files",
        example: r#"{"taskId": "task-456", "summary": true}"#,
        admin: true,
        params: worktree_params::DiffParams::json_schema,
        result: SchemaGenerator::subschema_for::<WorktreeDiff>,
        read: worktree_params::diff,
        ..PLAIN
    },
    HubMethod {
        name: "hub/tasks/apply",
        summary: "Take over the changes of a task into its repository; only for the operator's \
                  programs on this machine, not for any token",
        example: r#"{"taskId": "task-456", "to": "index", "paths": ["src/net.rs"]}"#,
        admin: true,
        params: worktree_params::ApplyParams::json_schema,
        result: SchemaGenerator::subschema_for::<WorktreeApplied>,
        read: worktree_params::apply,
        ..PLAIN
    },
    HubMethod {
        name: "hub/tasks/discard",
        summary: "Remove the worktree of a task with all its files",
        example: r#"{"taskId": "task-456"}"#,
        admin: true,
        params: worktree_params::DiscardParams::json_schema,
        result: SchemaGenerator::subschema_for::<Vec<WorktreeRemoved>>,
        read: worktree_params::discard,
        ..PLAIN
    },
    reviews::GET,
    reviews::COMMENT,
    reviews::REMOVE,
    reviews::DISCARD,
    reviews::SEND,
    HubMethod {
        name: "hub/worktrees/list",
        summary: "List the worktrees of tasks, oldest first",
        admin: true,
        result: SchemaGenerator::subschema_for::<Vec<WorktreeInfo>>,
        read: |_| Ok(Operation::Worktree(WorktreeRequest::List)),
        ..PLAIN
    },
    HubMethod {
        name: "hub/worktrees/prune",
        summary: "Remove the worktrees of finished tasks, and keep their changes as refs of their \
                  repositories",
        example: r#"{"olderThanMs": 604800000}"#,
        admin: true,
        params: worktree_params::PruneParams::json_schema,
        result: SchemaGenerator::subschema_for::<Vec<WorktreeRemoved>>,
        read: worktree_params::prune,
        ..PLAIN
    },
    HubMethod {
        name: "hub/deliveries/list",
        summary: "List push notifications that are pending or given up",
        example: r#"{"dead": true}"#,
        params: params::ListDeliveries::json_schema,
        result: SchemaGenerator::subschema_for::<Vec<Delivery>>,
        read: params::list_deliveries,
        ..PLAIN
    },
    HubMethod {
        name: "hub/deliveries/retry",
        summary: "Retry the failed push notifications of a task at once",
        example: r#"{"taskId": "task-456"}"#,
        params: params::RetryDeliveries::json_schema,
        result: SchemaGenerator::subschema_for::<Vec<Delivery>>,
        read: params::retry_deliveries,
        ..PLAIN
    },
    HubMethod {
        name: "message/send",
        summary: "Send a message to an agent and return the task when it ends or asks a question",
        example: r#"{"message": {"kind": "message", "messageId": "msg-123", "role": "user",
            "parts": [{"kind": "text", "text": "Write a hello world function in Python"}],
            "metadata": {"targetAgent": "claude-code"}}, "configuration": {"historyLength": 10}}"#,
        params: v03::params::MessageSend::json_schema,
        result: schemas::task_or_message,
        read: |value| Ok(Operation::SendMessage(Box::new(v03::params::send_message(value)?))),
        ..PLAIN
    },
    HubMethod {
        name: "message/stream",
        summary: "Send a message to an agent and stream the events of its task",
        example: r#"{"message": {"kind": "message", "messageId": "msg-124", "role": "user",
            "parts": [{"kind": "text", "text": "Explain it"}], "metadata": {"targetAgent": "claude-code"}}}"#,
        streams: true,
        params: v03::params::MessageSend::json_schema,
        result: schemas::task_event,
        read: |value| Ok(Operation::StreamMessage(Box::new(v03::params::send_message(value)?))),
        ..PLAIN
    },
    HubMethod {
        name: "tasks/get",
        summary: "Return a task",
        example: r#"{"id": "task-456", "historyLength": 10}"#,
        params: v03::params::GetTask::json_schema,
        read: v03::params::get_task,
        ..PLAIN
    },
    HubMethod {
        name: "tasks/cancel",
        summary: "Cancel a task",
        example: r#"{"id": "task-456"}"#,
        params: v03::params::CancelTask::json_schema,
        read: v03::params::cancel_task,
        ..PLAIN
    },
    HubMethod {
        name: "tasks/resubscribe",
        summary: "Stream the events of a task: from its present state, or after a given event",
        example: r#"{"id": "task-456"}"#,
        streams: true,
        params: v03::params::Resubscribe::json_schema,
        result: schemas::task_event,
        read: v03::params::resubscribe,
        ..PLAIN
    },
    HubMethod {
        name: "tasks/pushNotificationConfig/set",
        summary: "Set a URL to which a task's push notifications are sent",
        example: r#"{"taskId": "task-456", "pushNotificationConfig": {"url": "https://example.com/news", "token": "t"}}"#,
        params: v03::params::SetPush::json_schema,
        result: schemas::push_config,
        read: v03::params::set_push,
        ..PLAIN
    },
    HubMethod {
        name: "tasks/pushNotificationConfig/get",
        summary: "Return one push notification configuration of a task",
        example: r#"{"id": "task-456", "pushNotificationConfigId": "config-1"}"#,
        params: v03::params::GetPush::json_schema,
        result: schemas::push_config,
        read: v03::params::get_push,
        ..PLAIN
    },
    HubMethod {
        name: "tasks/pushNotificationConfig/list",
        summary: "List the push notification configurations of a task",
        example: r#"{"id": "task-456"}"#,
        params: v03::params::ListPushes::json_schema,
        result: schemas::push_configs,
        read: v03::params::list_pushes,
        ..PLAIN
    },
    HubMethod {
        name: "tasks/pushNotificationConfig/delete",
        summary: "Delete a push notification configuration of a task",
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
        operation::{ComponentSource, ContextQuery, Page, TreeQuery},
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
            // A request about a task is refused to other tenants.
            let names_task = method.example.contains("task-456");
            assert_eq!(operation.task().is_some(), names_task, "{}", method.name);
        }
    }

    #[test]
    fn register_takes_path_or_component() {
        let register = |params: Value| operation("hub/agents/register", params);
        let bytes = register(json!({"agentId": "a", "component": "AGFzbQ=="})).unwrap();
        let component = ComponentSource::Bytes(b"\0asm".to_vec());
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
        assert_eq!(unsaid, Operation::ListContexts(ContextQuery::all(page)));
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
