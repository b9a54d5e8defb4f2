//! Structured content of tool results, and the schemas of it that tools announce.
//!
//! Several clients give a model the structured content in place of the blocks, so it has all text
//! of the blocks. Images and other bytes are left out; the resource of their artifact has them.

use crate::mcp::model::resources::{artifact_uri, task_uri};
use a2a_hub_protocol::{
    message::Message,
    operation::AgentInfo,
    question::QuestionKind,
    task::{Artifact, Task, TaskState},
};
use a2a_hub_rpc::question_view;
use rmcp::model::{ContentBlock, JsonObject, ResourceContents};
use serde_json::{Value, json};
use std::sync::Arc;

/// Maximum number of artifacts that are named.
const MAX_ARTIFACTS: usize = 100;

/// Structured content for a task, with the text of these blocks and a line for the next step.
pub(super) fn of_task(task: &Task, content: &[ContentBlock], next: &str) -> Value {
    let mut result = json!({
        "taskId": task.id,
        "contextId": task.context_id,
        "state": task.status.state.name(),
        "text": text(content),
        "artifacts": artifacts(task),
        "uri": task_uri(&task.id),
        "next": next,
    });
    if task.status.state.is_interrupted() {
        let kind = question_view::kind(task);
        let choices = match kind {
            QuestionKind::Permission => question_view::choices(task),
            QuestionKind::Input | QuestionKind::Auth => question_view::named_choices(task),
        };
        let id = question_view::id(task).unwrap_or_default();
        result["question"] = json!({ "id": id, "kind": kind, "choices": choices });
    }
    result
}

/// Structured content for a message without a task.
pub(super) fn of_message(message: &Message, content: &[ContentBlock]) -> Value {
    let mut result = json!({ "state": TaskState::Completed.name(), "text": text(content) });
    if let Some(context) = &message.context_id {
        result["contextId"] = json!(context);
    }
    result
}

/// Result of `list_agents`.
pub(super) fn of_agents(agents: &[AgentInfo]) -> Value {
    let one = |agent: &AgentInfo| {
        let skills = agent.card["skills"].as_array().into_iter().flatten();
        let skills: Vec<_> = skills
            .map(|skill| json!({ "name": skill["name"], "description": skill["description"] }))
            .collect();
        json!({
            "id": agent.id,
            "name": agent.name,
            "description": agent.card["description"],
            "skills": skills,
            "health": agent.health.as_ref().map(|health| health.status),
        })
    };
    json!({ "agents": agents.iter().map(one).collect::<Vec<_>>() })
}

/// Schema of [`of_task`] and [`of_message`]. Members may be added, so others are allowed.
pub(super) fn result_schema() -> Arc<JsonObject> {
    let text = |description: &str| json!({ "type": "string", "description": description });
    let states: Vec<_> = TaskState::ALL.into_iter().map(TaskState::name).collect();
    let artifact = json!({
        "type": "object",
        "properties": {
            "artifactId": text("The id of the artifact, unique within the task"),
            "name": text("The name that the agent gave it"),
            "uri": text("The resource that has all of it"),
        },
        "required": ["artifactId", "uri"],
    });
    let question = json!({
        "type": "object",
        "properties": {
            "id": text("The id of the question, for `answer_task`"),
            "kind": { "type": "string", "enum": ["input", "permission", "auth"] },
            "choices": { "type": "array", "items": { "type": "string" } },
        },
        "required": ["id", "kind", "choices"],
    });
    object(json!({
        "type": "object",
        "properties": {
            "taskId": text("The task; none if the agent replied without one"),
            "contextId": text("The conversation, which a `context_id` continues"),
            "state": { "type": "string", "enum": states },
            "text": text("All text of the result, in the agent's words"),
            "artifacts": { "type": "array", "items": artifact },
            "uri": text("The resource of the task"),
            "question": question,
            "next": text("The hub's line on the task and the next step"),
        },
        "required": ["state", "text"],
    }))
}

/// Schema of [`of_agents`].
pub(super) fn list_schema() -> Arc<JsonObject> {
    let skill = json!({
        "type": "object",
        "properties": { "name": {}, "description": {} },
    });
    let agent = json!({
        "type": "object",
        "properties": {
            "id": { "type": "string", "description": "The name of the agent's tool" },
            "name": { "type": "string" },
            "description": { "description": "What the agent says of itself" },
            "skills": { "type": "array", "items": skill },
            "health": { "type": ["string", "null"] },
        },
        "required": ["id", "name", "skills"],
    });
    object(json!({
        "type": "object",
        "properties": { "agents": { "type": "array", "items": agent } },
        "required": ["agents"],
    }))
}

/// A schema, which is a JSON object.
pub(super) fn object(schema: Value) -> Arc<JsonObject> {
    let Value::Object(members) = schema else { return Arc::default() };
    Arc::new(members)
}

/// Text of the blocks, one below the other.
fn text(content: &[ContentBlock]) -> String {
    let texts =
        content.iter().filter_map(|block| match block.as_resource().map(|it| &it.resource) {
            Some(ResourceContents::TextResourceContents { text, .. }) => Some(text.trim_end()),
            _ => block.as_text().map(|it| it.text.trim_end()),
        });
    texts.collect::<Vec<_>>().join("\n")
}

fn artifacts(task: &Task) -> Vec<Value> {
    let of = |artifact: &Artifact| {
        let mut entry =
            json!({ "artifactId": artifact.artifact_id, "uri": artifact_uri(&task.id, artifact) });
        if let Some(name) = &artifact.name {
            entry["name"] = json!(name);
        }
        entry
    };
    task.artifacts.iter().take(MAX_ARTIFACTS).map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::{super::result, *};
    use a2a_hub_protocol::{
        id::{ArtifactId, ContextId, TaskId},
        message::{Content, Metadata, Part, Role},
        question::Question,
        task::TaskStatus,
    };

    fn task(state: TaskState, said: Option<&str>, artifacts: Vec<Artifact>) -> Task {
        let message = said.map(|said| Message::text(Role::Agent, said));
        let status = TaskStatus { state, message, timestamp: String::new() };
        let (id, context_id) = (TaskId::new("t"), ContextId::new("c"));
        let metadata = Some(Metadata::from_iter([Question::fresh(QuestionKind::Input).member()]));
        Task { id, context_id, status, artifacts, history: Vec::new(), metadata }
    }

    fn is_valid(schema: &JsonObject, told: &Value) -> bool {
        jsonschema::is_valid(&json!(schema), told)
    }

    #[test]
    fn structured_result_matches_its_schema() {
        for state in TaskState::ALL {
            let image = Part {
                media_type: Some("image/png".to_owned()),
                ..Part::new(Content::Raw(vec![1]))
            };
            let file = Part {
                media_type: Some("text/plain".to_owned()),
                ..Part::new(Content::Raw(b"file\n".to_vec()))
            };
            let parts = vec![Part::text("one\n"), image, file];
            let mut made = Artifact::new(ArtifactId::new("a/b"), parts);
            made.name = Some("name".to_owned());
            let task = task(state, Some("two"), vec![made]);
            let told = result::of_task(&task).structured_content.unwrap();
            assert!(is_valid(&result_schema(), &told), "{told}");
            let text = "one\nfile\ntwo";
            assert_eq!((&told["text"], &told["state"]), (&json!(text), &json!(state.name())));
            assert_eq!(told["artifacts"][0]["uri"], "a2a-hub://tasks/t/artifacts/a%2Fb");
            assert_eq!(told["question"].is_object(), state.is_interrupted(), "{told}");
        }
        let mut said = Message::text(Role::Agent, "hi");
        for context in [None, Some(ContextId::new("c"))] {
            said.context_id = context;
            let told = result::of_message(&said).structured_content.unwrap();
            assert!(is_valid(&result_schema(), &told), "{told}");
        }
        assert!(!is_valid(&result_schema(), &json!({ "state": "done", "text": "" })));
    }

    #[test]
    fn artifacts_of_result_are_bounded() {
        let made = |n: usize| Artifact::new(ArtifactId::new(n.to_string()), Vec::new());
        let task = task(TaskState::Completed, None, (0..500).map(made).collect());
        let told = of_task(&task, &[], "");
        assert_eq!(told["artifacts"].as_array().unwrap().len(), MAX_ARTIFACTS);
    }
}
