//! JSON schemas of the output of [`v03::json`](crate::v03::json), for `rpc.discover`. Types that
//! serde serializes derive their schemas.

use crate::model::task::TaskState;
use schemars::{Schema, SchemaGenerator, json_schema};
use serde_json::{Value, json};

/// Schema of a task in the form of `v03::json`.
pub(crate) fn task(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "title": "Task",
        "type": "object",
        "required": ["kind", "id", "contextId", "status", "history", "artifacts"],
        "properties": {
            "kind": { "const": "task" },
            "id": { "type": "string" },
            "contextId": { "type": "string" },
            "status": status(),
            "history": { "type": "array", "items": message() },
            "artifacts": { "type": "array", "items": artifact() },
            "metadata": { "type": "object" },
        },
    })
}

/// Schema of a task, or of an agent's message.
pub(crate) fn task_or_message(schemas: &mut SchemaGenerator) -> Schema {
    json_schema!({ "oneOf": [task(schemas), message()] })
}

/// Schema of a list of tasks.
pub(crate) fn tasks(schemas: &mut SchemaGenerator) -> Schema {
    let agent = json!({ "properties": { "agentId": { "type": "string" } } });
    json_schema!({ "type": "array", "items": { "allOf": [task(schemas), agent] } })
}

/// Schema of a push configuration.
pub(crate) fn push_config(_: &mut SchemaGenerator) -> Schema {
    let text = json!({ "type": "string" });
    json_schema!({
        "title": "TaskPushNotificationConfig",
        "type": "object",
        "required": ["taskId", "pushNotificationConfig"],
        "properties": {
            "taskId": text,
            "pushNotificationConfig": {
                "type": "object",
                "required": ["id", "url"],
                "properties": {
                    "id": text,
                    "url": text,
                    "token": text,
                    "authentication": {
                        "type": "object",
                        "required": ["schemes"],
                        "properties": {
                            "schemes": { "type": "array", "items": text },
                            "credentials": text,
                        },
                    },
                },
            },
        },
    })
}

/// Schema of a list of push configurations.
pub(crate) fn push_configs(schemas: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "array", "items": push_config(schemas) })
}

/// Schema of `null`, for methods without a result.
pub(crate) fn nothing(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "null" })
}

/// Schema of a task's stream items.
pub(crate) fn task_event(schemas: &mut SchemaGenerator) -> Schema {
    let event = |kind: &str, of: &str, schema: Value| {
        json!({
            "title": kind,
            "type": "object",
            "required": ["kind", "taskId", "contextId", of],
            "properties": {
                "kind": { "const": kind },
                "taskId": { "type": "string" },
                "contextId": { "type": "string" },
                of: schema,
                "final": { "type": "boolean" },
                "append": { "type": "boolean" },
                "lastChunk": { "type": "boolean" },
                "metadata": { "type": "object" },
            },
        })
    };
    json_schema!({ "oneOf": [
        task(schemas),
        message(),
        event("status-update", "status", status()),
        event("artifact-update", "artifact", artifact()),
    ] })
}

fn status() -> Value {
    json!({
        "title": "TaskStatus",
        "type": "object",
        "required": ["state", "timestamp"],
        "properties": {
            "state": { "enum": TaskState::ALL.map(TaskState::name) },
            "message": message(),
            "timestamp": { "type": "string", "format": "date-time" },
        },
    })
}

fn message() -> Value {
    json!({
        "title": "Message",
        "type": "object",
        "required": ["kind", "messageId", "role", "parts"],
        "properties": {
            "kind": { "const": "message" },
            "messageId": { "type": "string" },
            "role": { "enum": ["user", "agent"] },
            "parts": parts(),
            "taskId": { "type": "string" },
            "contextId": { "type": "string" },
            "metadata": { "type": "object" },
        },
    })
}

fn artifact() -> Value {
    json!({
        "title": "Artifact",
        "type": "object",
        "required": ["artifactId", "parts"],
        "properties": {
            "artifactId": { "type": "string" },
            "name": { "type": "string" },
            "description": { "type": "string" },
            "parts": parts(),
            "metadata": { "type": "object" },
        },
    })
}

fn parts() -> Value {
    let kinds = ["text", "file", "data"];
    json!({
        "type": "array",
        "items": {
            "title": "Part",
            "type": "object",
            "required": ["kind"],
            "properties": { "kind": { "enum": kinds } },
        },
    })
}
