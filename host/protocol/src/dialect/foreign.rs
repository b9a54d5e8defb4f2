//! Reader for the answers of remote agents: it finds the form of an answer by its members, and
//! reads it as far as possible.

use crate::{
    codec::{
        json_path::{JsonPath, PartReader, Tolerant},
        protojson::Proto,
        spelled::Form,
    },
    model::{error::A2aError, event::StreamResponse, task::Task},
    v03,
};
use serde_json::Value;

/// Members that name the kind of an item in ProtoJSON.
const KINDS: [&str; 5] = ["task", "message", "msg", "statusUpdate", "artifactUpdate"];

/// Readers of parts in all forms.
const PARTS: [PartReader; 3] = [Proto::part_of_v1, v03::json::part_at, Proto::part_of_v03];

/// Reads a stream item, or the response to a message, of an agent that should use `form`.
pub(super) fn read_stream_response(
    form: Form,
    value: Value,
) -> Result<Tolerant<StreamResponse>, A2aError> {
    Tolerant::read("", &PARTS, |at| stream_response(form, value, at))
}

/// Reads a task of an agent that should use `form`.
pub(super) fn read_task(form: Form, value: Value) -> Result<Tolerant<Task>, A2aError> {
    Tolerant::read("task", &PARTS, |at| task(form, value, at))
}

fn stream_response(form: Form, value: Value, at: JsonPath) -> Result<StreamResponse, A2aError> {
    let has = |name: &str| value.get(name).is_some_and(|member| !member.is_null());
    if value.get("kind").is_some_and(Value::is_string) {
        return v03::json::stream_response_at(value, at);
    }
    if has("id") && has("status") {
        return task(form, value, at).map(|task| StreamResponse::Task(Box::new(task)));
    }
    match form {
        Form::V03 if !KINDS.into_iter().any(has) => v03::json::stream_response_at(value, at),
        Form::V03 | Form::V1 => Proto::V1.read_stream_response(value, at),
        Form::V03Proto => Proto::V03.read_stream_response(value, at),
    }
}

fn task(form: Form, value: Value, at: JsonPath) -> Result<Task, A2aError> {
    let is_v03 = value.get("kind").is_some_and(Value::is_string);
    match form {
        Form::V1 if !is_v03 => Proto::V1.read_task(value, at),
        Form::V03Proto if !is_v03 => Proto::V03.read_task(value, at),
        Form::V1 | Form::V03 | Form::V03Proto => v03::json::task_at(value, at),
    }
}

#[cfg(test)]
mod tests {
    use crate::{
        dialect::Wire,
        model::{
            event::StreamResponse,
            interface::{Binding, Version},
            message::{Message, joined_text},
        },
    };
    use serde_json::{Value, json};

    fn wire(version: Version, binding: Binding) -> Wire {
        Wire { version, binding }
    }

    fn v1() -> Wire {
        wire(Version::V1, Binding::JsonRpc)
    }

    fn v03() -> Wire {
        wire(Version::V03, Binding::JsonRpc)
    }

    /// Stream item as a client reads it, in one line, with what was skipped.
    fn read(wire: Wire, item: Value) -> String {
        let read = match wire.read_stream_response(item) {
            Ok(read) => read,
            Err(why) => return format!("unreadable: {why}"),
        };
        let said = |message: Option<&Message>| {
            message.map(|message| format!("“{}”", message.joined_text())).unwrap_or_default()
        };
        let mut line = match &read.value {
            StreamResponse::Task(task) => {
                let made = task
                    .artifacts
                    .iter()
                    .map(|made| format!("{}=“{}”", made.artifact_id, joined_text(&made.parts)));
                let made = made.collect::<Vec<_>>().join(" ");
                let status = &task.status;
                format!(
                    "task {} {} {made}{}",
                    task.id,
                    status.state.name(),
                    said(status.message.as_ref())
                )
            }
            StreamResponse::Message(message) => format!("message {}", said(Some(message))),
            StreamResponse::Status { task, update, .. } => {
                let status = &update.status;
                format!("status {task} {} {}", status.state.name(), said(status.message.as_ref()))
            }
            StreamResponse::Artifact { task, update, .. } => {
                let made = &update.artifact;
                format!(
                    "artifact {task} {}=“{}” append={}",
                    made.artifact_id,
                    joined_text(&made.parts),
                    update.append
                )
            }
        };
        read.skipped.iter().for_each(|skipped| line.push_str(&format!(" - {skipped}")));
        line
    }

    #[expect(clippy::needless_pass_by_value, reason = "each case makes its own")]
    fn status(state: Value, message: Value) -> Value {
        json!({ "statusUpdate": { "taskId": "t", "status": { "state": state, "message": message } } })
    }

    #[expect(clippy::needless_pass_by_value, reason = "each case makes its own")]
    fn artifact(parts: Value) -> Value {
        json!({ "artifactUpdate": { "taskId": "t", "artifact": { "artifactId": "a", "parts": parts } } })
    }

    #[test]
    fn unknown_kinds_are_skipped_beside_known_ones() {
        let told = [
            artifact(json!([{ "hologram": {} }, { "text": "x" }, { "raw": "?" }, "y", 3, null])),
            artifact(json!({ "text": "x" })),
            status(json!("TASK_STATE_PONDERING"), json!({ "parts": [{ "text": "hm" }], "role": "ROLE_ORACLE" })),
            status(json!(99), json!("bare")),
            status(json!("TASK_STATE_WORKING"), json!([])),
            json!({ "brandNewUpdate": { "a": 1 } }),
            json!({ "task": { "id": "t", "status": { "state": "TASK_STATE_WORKING" }, "artifacts":
                [7, { "artifactId": "a", "parts": [{ "text": "x" }], "metadata": [], "extensions": "e" }],
                "history": [{ "parts": 1 }, "hello"], "metadata": "m" } }),
            json!([]),
            json!("text"),
        ]
        .map(|item| read(v1(), item));
        insta::assert_snapshot!(told.join("\n"), @r#"
        artifact t a=“xy” append=false - `artifactUpdate.artifact.parts[0]`: must have exactly one of `text`, `raw`, `url` and `data` - `artifactUpdate.artifact.parts[2].raw`: is not base64: Invalid symbol 63, offset 0. - `artifactUpdate.artifact.parts[4]`: must be an object - `artifactUpdate.artifact.parts[5]`: must be an object
        artifact t a=“x” append=false
        status t unknown “hm” - `statusUpdate.status.state`: "TASK_STATE_PONDERING" is unknown - `statusUpdate.status.message.role`: "ROLE_ORACLE" is unknown
        status t unknown “bare” - `statusUpdate.status.state`: 99 is unknown
        status t working  - `statusUpdate.status.message`: must be an object
        unreadable: `result`: must have one of `task`, `message`, `statusUpdate` and `artifactUpdate`
        task t working a=“x” - `task.artifacts[0]`: must be an object - `task.artifacts[1].metadata`: must be an object - `task.history[0].parts`: must be a list - `task.metadata`: must be an object
        unreadable: `result`: must be an object
        unreadable: `result`: must be an object
        "#);
    }

    #[test]
    fn missing_and_odd_members_get_defaults() {
        let told = [
            json!({ "task": { "id": 7, "contextId": 8 } }),
            json!({ "task": { "id": "t", "status": { "state": null, "timestamp": 1_700_000_000 }, "artifacts": null } }),
            json!({ "task": { "status": {} } }),
            json!({ "message": { "parts": [{ "text": 5 }] } }),
            json!({ "statusUpdate": { "status": { "state": 3 } } }),
            json!({ "artifactUpdate": { "artifact": { "parts": [{ "text": "x" }] }, "append": "true", "lastChunk": 1 } }),
            json!({ "artifactUpdate": { "taskId": 1, "artifact": { "artifactId": 2.5, "parts": null } } }),
        ]
        .map(|item| read(v1(), item));
        insta::assert_snapshot!(told.join("\n"), @"
        task 7 unknown 
        task t unknown 
        unreadable: `task.id`: is missing, or empty
        message “5”
        status  completed 
        artifact  artifact=“x” append=true - `artifactUpdate.lastChunk`: must be true or false
        artifact 1 2.5=“” append=false
        ");
    }

    #[test]
    fn form_of_another_version_is_read() {
        let old_task = json!({ "kind": "task", "id": "t", "status": { "state": "completed" },
            "artifacts": [{ "artifactId": "a", "parts": [{ "kind": "text", "text": "x" }] }] });
        let old_file = json!([{ "kind": "file", "file": { "uri": "http://x/" } }, { "kind": "text", "text": "x" }]);
        let told = [
            read(v1(), old_task),
            read(v1(), artifact(old_file)),
            read(v1(), status(json!("input-required"), Value::Null)),
            read(v1(), status(json!("TASK_STATE_CANCELLED"), Value::Null)),
            read(v1(), json!({ "id": "t", "status": { "state": "Completed" } })),
            read(v03(), artifact(json!([{ "text": "x" }]))),
            read(
                v03(),
                json!({ "kind": "status-update", "taskId": "t", "status": { "state": "TASK_STATE_COMPLETED",
                "message": { "role": "ROLE_AGENT", "parts": [{ "text": "x" }, { "kind": "hologram" }] } } }),
            ),
            read(v03(), json!({ "kind": "brand-new" })),
            read(
                wire(Version::V03, Binding::Rest),
                json!({ "kind": "message", "role": "agent", "parts": [{ "kind": "text", "text": "x" }] }),
            ),
            read(
                wire(Version::V03, Binding::Rest),
                json!({ "msg": { "role": "ROLE_AGENT", "content": [{ "text": "x" }] } }),
            ),
        ];
        insta::assert_snapshot!(told.join("\n"), @"
        task t completed a=“x”
        artifact t a=“x” append=false
        status t input-required 
        status t canceled 
        task t completed 
        artifact t a=“x” append=false
        status t completed “x” - `status.message.parts[1].kind`: must be `text`, `file` or `data`
        unreadable: `kind`: must be `task`, `message`, `status-update` or `artifact-update`
        message “x”
        message “x”
        ");
    }
}
