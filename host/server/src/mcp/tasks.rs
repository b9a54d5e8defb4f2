//! Tasks of the hub as tasks of MCP. Two revisions of MCP have them, with other names and forms:
//!
//! - 2025-11-25, core and experimental: the client asks for a task by a member `task`, and calls
//!   `tasks/get`, `tasks/result`, `tasks/list` and `tasks/cancel`;
//! - 2026-07-28, an extension (SEP-2663): the server answers a long call with a task, and the
//!   client calls `tasks/get`, `tasks/update` and `tasks/cancel`.
//!
//! The SDK has the extension only. What it lacks of the core form is added to its JSON here.

use super::{capabilities::offers_tasks, question, result, tools::ANSWER_TASK};
use crate::mcp::model::skill_tools::SKILL;
use a2a_hub_clock as clock;
use a2a_hub_core::{access_control::Principal, text::plain_text};
use a2a_hub_protocol::{
    id::AgentId,
    member,
    task::{Task, TaskState},
};
use a2a_hub_rpc::question_view;
use rmcp::model::{
    CallToolResult, ClientCapabilities, CreateTaskResult, CustomResult, DetailedTask,
    ElicitRequest, InputRequest, InputRequests, JsonObject, JsonRpcMessage, ProtocolVersion,
    ServerJsonRpcMessage, ServerResult, TaskPayload, TaskStatus,
};
use serde_json::{Value, json};

/// Prefix that `message` puts before methods of tasks, and before the method of a call that asks
/// for a task, so that the SDK passes them on unread: it knows the form of the extension only.
pub(super) const UNREAD: &str = "a2a-hub/";

/// Member of `_meta` that names the task of a message in 2025-11-25.
pub(super) const RELATED: &str = "io.modelcontextprotocol/related-task";

/// Member of `_meta` with a text that a client may give its model before the task has ended.
const AT_ONCE: &str = "io.modelcontextprotocol/model-immediate-response";

/// Suggested pause between two polls, in milliseconds.
const POLL_MS: u64 = 1_000;

/// Maximum length of a status message, in characters.
const MAX_STATUS: usize = 500;

/// Form in which a revision of MCP has tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TaskForm {
    /// Of 2025-11-25.
    Core,
    /// Of 2026-07-28 and later.
    Extension,
}

impl TaskForm {
    /// Form of this revision for this caller; `None` if one of both has no tasks.
    pub(super) fn for_version(
        version: Option<&ProtocolVersion>,
        caller: &Principal,
    ) -> Option<Self> {
        let version = version.filter(|_| offers_tasks(caller))?;
        if *version >= ProtocolVersion::V_2026_07_28 {
            Some(Self::Extension)
        } else {
            (*version == ProtocolVersion::V_2025_11_25).then_some(Self::Core)
        }
    }

    /// True if the client takes a task as the answer to a call that did not ask for one.
    pub(super) fn hands_over(self, client: Option<&ClientCapabilities>) -> bool {
        self == Self::Extension && client.is_some_and(ClientCapabilities::supports_tasks)
    }

    fn status(self, state: TaskState) -> TaskStatus {
        match state {
            TaskState::Submitted | TaskState::Working | TaskState::Unknown => TaskStatus::Working,
            TaskState::InputRequired | TaskState::AuthRequired => TaskStatus::InputRequired,
            // A failed agent is a result with `isError`, which is `failed` in one form only.
            TaskState::Failed | TaskState::Rejected if self == Self::Core => TaskStatus::Failed,
            TaskState::Completed | TaskState::Failed | TaskState::Rejected => TaskStatus::Completed,
            TaskState::Canceled => TaskStatus::Cancelled,
        }
    }

    /// Fields of a task that both forms have.
    fn common_fields(self, task: &Task) -> rmcp::model::Task {
        let updated = &task.status.timestamp;
        let created = task.id.created_ms().and_then(clock::at_ms);
        let (id, status) = (task.id.as_str(), self.status(task.status.state));
        let facts =
            rmcp::model::Task::new(id, status, created.as_ref().unwrap_or(updated), updated)
                .with_poll_interval_ms(POLL_MS);
        let message = plain_text::line(&question_view::prompt(task), MAX_STATUS);
        if message.is_empty() { facts } else { facts.with_status_message(message) }
    }
}

/// A task in the form of 2025-11-25.
pub(super) fn core(task: &Task) -> Value {
    let facts = TaskForm::Core.common_fields(task);
    let mut value = json!({
        "taskId": facts.task_id,
        "status": facts.status,
        "createdAt": facts.created_at,
        "lastUpdatedAt": facts.last_updated_at,
        "ttl": null,
        "pollInterval": facts.poll_interval_ms,
    });
    if let Some(message) = facts.status_message {
        value["statusMessage"] = json!(message);
    }
    value
}

/// Answer to a call that asked for a task, in the form of 2025-11-25.
pub(super) fn core_created(task: &Task) -> Value {
    let mut value = core(task);
    // Each task of this form begins at work.
    member::set(&mut value, "status", json!(TaskStatus::Working));
    json!({ "task": value, "_meta": { AT_ONCE: result::state_line(task) } })
}

/// Result of a task in the form of 2025-11-25.
pub(super) fn core_result(task: &Task) -> CallToolResult {
    let mut result = result::of_task(task);
    result.meta.get_or_insert_default().insert(RELATED.to_owned(), json!({ "taskId": task.id }));
    // Only later revisions have it.
    result.result_type = None;
    result
}

/// Answer to a call that became a task, in the form of the extension.
pub(super) fn created(task: &Task) -> CreateTaskResult {
    CreateTaskResult::new(TaskForm::Extension.common_fields(task))
}

/// A task in the form of the extension. Its question is a form, if the client shows forms.
pub(super) fn detailed(task: &Task, shows_forms: bool) -> DetailedTask {
    let mut facts = TaskForm::Extension.common_fields(task);
    let payload = match facts.status {
        TaskStatus::InputRequired => {
            let form = question::form(task, None).filter(|_| shows_forms);
            let requests: InputRequests = form
                .map(|form| {
                    (question_key(task), InputRequest::Elicitation(ElicitRequest::new(form)))
                })
                .into_iter()
                .collect();
            if requests.is_empty() {
                let message = facts.status_message.take().unwrap_or_default();
                facts.status_message =
                    Some(format!("{message} [a2a-hub] `{ANSWER_TASK}` answers it"));
            }
            TaskPayload::InputRequired { input_requests: requests }
        }
        TaskStatus::Completed => TaskPayload::Completed { result: object(&result::of_task(task)) },
        TaskStatus::Cancelled => TaskPayload::Cancelled,
        TaskStatus::Working | TaskStatus::Failed | _ => TaskPayload::Working,
    };
    DetailedTask::new(facts, payload)
}

/// Key of the task's question, which no other question of the task has.
pub(super) fn question_key(task: &Task) -> String {
    question_view::id(task).unwrap_or_else(|| task.status.timestamp.clone())
}

fn object(result: &CallToolResult) -> JsonObject {
    let Value::Object(members) = json!(result) else { return JsonObject::new() };
    members
}

/// A message of a session of 2025-11-25 with what that revision adds for tasks: the capability, and
/// the tools that may be called as tasks. Those of other versions are unchanged.
pub(super) fn in_core_form(
    message: ServerJsonRpcMessage,
    version: Option<&ProtocolVersion>,
) -> ServerJsonRpcMessage {
    let JsonRpcMessage::Response(mut response) = message else { return message };
    if version == Some(&ProtocolVersion::V_2025_11_25)
        && let Some(result) = result_in_core_form(&response.result)
    {
        response.result = ServerResult::CustomResult(CustomResult::new(result));
    }
    JsonRpcMessage::Response(response)
}

fn result_in_core_form(result: &ServerResult) -> Option<Value> {
    if let ServerResult::InitializeResult(result) = result {
        let mut value = json!(result);
        let capabilities = value.get_mut("capabilities")?.as_object_mut()?;
        // The extension stands for tasks of either form until here.
        capabilities.remove("extensions")?;
        let tasks = json!({ "list": {}, "cancel": {}, "requests": { "tools": { "call": {} } } });
        capabilities.insert("tasks".to_owned(), tasks);
        return Some(value);
    }
    let ServerResult::ListToolsResult(tools) = result else { return None };
    let mut value = json!(tools);
    for tool in value.get_mut("tools")?.as_array_mut()? {
        let is_agent = tool["name"].as_str().is_some_and(|name| AgentId::parse(name).is_ok());
        if is_agent || tool["_meta"][SKILL].is_string() {
            member::set(tool, "execution", json!({ "taskSupport": "optional" }));
        }
    }
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use a2a_hub_protocol::{
        id::{ContextId, TaskId},
        message::{Message, Metadata, Role},
        question::{Question, QuestionKind},
        task::TaskStatus as Status,
    };

    fn task(state: TaskState, said: &str) -> Task {
        let status = Status {
            state,
            message: Some(Message::text(Role::Agent, said)),
            timestamp: "2026-01-01T00:00:01.000Z".to_owned(),
        };
        Task {
            // Of 2022-02-22, from RFC 9562, appendix A.6.
            id: TaskId::new("017f22e2-79b0-7cc3-98c4-dc0c0c07398f"),
            context_id: ContextId::new("c"),
            status,
            artifacts: Vec::new(),
            history: Vec::new(),
            metadata: Some(Metadata::from_iter([Question::fresh(QuestionKind::Input).member()])),
        }
    }

    #[test]
    fn each_state_has_status_in_both_forms() {
        for (state, core_status, extension_status) in [
            (TaskState::Submitted, "working", "working"),
            (TaskState::Working, "working", "working"),
            (TaskState::Unknown, "working", "working"),
            (TaskState::InputRequired, "input_required", "input_required"),
            (TaskState::AuthRequired, "input_required", "input_required"),
            (TaskState::Completed, "completed", "completed"),
            (TaskState::Failed, "failed", "completed"),
            (TaskState::Rejected, "failed", "completed"),
            (TaskState::Canceled, "cancelled", "cancelled"),
        ] {
            let task = task(state, "said\nin \u{1b}[2Jlines");
            let (core, other) = (core(&task), json!(detailed(&task, true)));
            assert_eq!(core["status"], core_status, "{state:?}");
            assert_eq!(other["status"], extension_status, "{state:?}");
            for (told, ttl) in [(&core, "ttl"), (&other, "ttlMs")] {
                assert_eq!(told["createdAt"], "2022-02-22T19:22:22.000Z");
                assert_eq!(told["lastUpdatedAt"], "2026-01-01T00:00:01.000Z");
                assert_eq!(told["statusMessage"], "said in [2Jlines");
                assert!(told.as_object().unwrap().contains_key(ttl), "{told}");
            }
            assert_eq!(other["result"].is_object(), extension_status == "completed");
            assert_eq!(other["inputRequests"].is_object(), state.is_interrupted());
            let is_error = matches!(state, TaskState::Failed | TaskState::Rejected);
            if extension_status == "completed" {
                assert_eq!(other["result"]["isError"], is_error, "{other}");
            }
            assert_eq!(core_created(&task)["task"]["status"], "working");
            assert_eq!(json!(created(&task))["resultType"], "task");
        }
    }

    #[test]
    fn question_is_form_or_names_tool() {
        let task = task(TaskState::InputRequired, "which?");
        let told = json!(detailed(&task, true));
        let key = question_view::id(&task).unwrap();
        assert_eq!(told["inputRequests"][&key]["params"]["message"], "The agent asks: which?");
        let told = json!(detailed(&task, false));
        assert_eq!(told["inputRequests"], json!({}));
        assert!(told["statusMessage"].as_str().unwrap().contains("`answer_task` answers it"));
    }

    #[test]
    fn id_without_time_falls_back_to_status() {
        let task = Task { id: TaskId::new("chosen"), ..task(TaskState::Working, "") };
        let told = core(&task);
        assert_eq!(told["createdAt"], "2026-01-01T00:00:01.000Z");
        assert_eq!(told.get("statusMessage"), None);
    }

    #[test]
    fn form_depends_on_version_and_caller() {
        let program = Principal::of_tree(AgentId::parse("gemini").unwrap(), "1");
        for (version, form) in [
            (ProtocolVersion::V_2025_06_18, None),
            (ProtocolVersion::V_2025_11_25, Some(TaskForm::Core)),
            (ProtocolVersion::V_2026_07_28, Some(TaskForm::Extension)),
        ] {
            assert_eq!(TaskForm::for_version(Some(&version), &Principal::Operator), form);
            assert_eq!(TaskForm::for_version(Some(&version), &program), None);
        }
        assert_eq!(TaskForm::for_version(None, &Principal::Operator), None);
    }
}
