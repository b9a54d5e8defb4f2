//! Result of a tool call: one block for each message part and artifact part, followed by a line of
//! the hub with the task's state and the next step. Structured content repeats all of it but binary
//! data. Escape sequences are preserved, because a program reads the JSON strings.

use super::{
    question::{self, INPUT},
    structured,
    tools::{ANSWER_TASK, CHECK_TASK},
};
use crate::mcp::model::resources::{artifact_uri, of_artifact, task_uri, text_file};
use a2a_hub_protocol::{
    message::{Content, Message, Part},
    task::{Artifact, Task, TaskState},
};
use a2a_hub_rpc::question_view;
use base64::{Engine as _, engine::general_purpose::STANDARD};
use rmcp::model::{
    CallToolResult, ContentBlock, ElicitRequest, ElicitRequestParams, InputRequest, InputRequests,
    InputRequiredResult, MetaObject, ResourceContents,
};
use serde_json::{Map, Value, json};

/// Maximum length of a text part in bytes; the resource holds the full text.
const MAX_TEXT: usize = 60_000;

/// Maximum size in bytes of an image or sound in a result.
const MAX_MEDIA: usize = 1 << 20;

/// Converts the current state of a task to a result.
pub(super) fn of_task(task: &Task) -> CallToolResult {
    let mut content: Vec<_> =
        task.artifacts.iter().flat_map(|artifact| artifact_blocks(task, artifact)).collect();
    if let Some(message) = &task.status.message {
        let parts = message.parts.iter().filter(|part| !repeats(task, part));
        content.extend(parts.filter_map(|part| block(part, Some(&task_uri(&task.id)))));
    }
    let structured = structured::of_task(task, &content, &state_line(task));
    content.push(ContentBlock::text(state_line(task)));
    let failed =
        matches!(task.status.state, TaskState::Failed | TaskState::Rejected | TaskState::Canceled);
    let mut result =
        if failed { CallToolResult::error(content) } else { CallToolResult::success(content) };
    result.structured_content = Some(structured);
    result.with_meta(Some(meta(task)))
}

/// Converts a message without a task to a result.
pub(super) fn of_message(message: &Message) -> CallToolResult {
    let mut content: Vec<_> = message.parts.iter().filter_map(|part| block(part, None)).collect();
    let structured = structured::of_message(message, &content);
    if let Some(context) = &message.context_id {
        let line =
            format!("[a2a-hub] answered; context_id `{context}` goes on with the conversation");
        content.push(ContentBlock::text(line));
    }
    let mut result = CallToolResult::success(content);
    result.structured_content = Some(structured);
    result
}

/// Result for a refusal, which the model reads to correct its call.
pub(super) fn refused(why: impl Into<String>) -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text(why)])
}

/// Result that asks the client to ask its user a task's question, and to repeat the call.
pub(super) fn asks(task: &Task, form: ElicitRequestParams) -> InputRequiredResult {
    asks_with(form, question::CallState::by(task).write())
}

/// Result that asks the client to show its user a form, and to repeat the call with this state.
pub(super) fn asks_with(form: ElicitRequestParams, state: String) -> InputRequiredResult {
    let mut requests = InputRequests::new();
    requests.insert(INPUT.to_owned(), InputRequest::Elicitation(ElicitRequest::new(form)));
    InputRequiredResult::new(Some(requests), Some(state))
}

fn artifact_blocks(task: &Task, artifact: &Artifact) -> Vec<ContentBlock> {
    let mut blocks = Vec::new();
    let (mut is_complete, uri) = (true, artifact_uri(&task.id, artifact));
    for part in &artifact.parts {
        match block(part, Some(&uri)) {
            Some(content) => {
                is_complete &= !is_cut(part);
                blocks.push(content);
            }
            None => is_complete = false,
        }
    }
    if !is_complete || artifact.name.is_some() {
        blocks.push(ContentBlock::resource_link(of_artifact(task, artifact, None)));
    }
    blocks
}

/// True if the final message repeats the text of an artifact.
fn repeats(task: &Task, part: &Part) -> bool {
    let Content::Text(message_text) = &part.content else { return false };
    let parts = task.artifacts.iter().flat_map(|artifact| &artifact.parts);
    let mut texts = parts.filter_map(|part| match &part.content {
        Content::Text(text) => Some(text),
        Content::Raw(_) | Content::Url(_) | Content::Data(_) => None,
    });
    texts.any(|text| text.trim() == message_text.trim())
}

fn is_cut(part: &Part) -> bool {
    match &part.content {
        Content::Text(text) => text.len() > MAX_TEXT,
        Content::Data(data) => data.to_string().len() > MAX_TEXT,
        Content::Url(_) | Content::Raw(_) => false,
    }
}

/// Converts a part, with the resource that has it, to a block; `None` for empty text, and for bytes
/// that are neither a small image or sound nor a file of text.
fn block(part: &Part, uri: Option<&str>) -> Option<ContentBlock> {
    Some(match &part.content {
        Content::Text(text) if text.is_empty() => return None,
        Content::Text(text) => ContentBlock::text(cut(text)),
        Content::Url(url) => ContentBlock::text(url),
        Content::Data(data) => ContentBlock::text(cut(&data.to_string())),
        Content::Raw(bytes) => {
            let media = part.media_type.as_deref()?;
            let data = || STANDARD.encode(bytes);
            match media.split_once('/')?.0 {
                "image" if bytes.len() <= MAX_MEDIA => ContentBlock::image(data(), media),
                "audio" if bytes.len() <= MAX_MEDIA => ContentBlock::audio(data(), media),
                _ if bytes.len() > MAX_TEXT => return None,
                _ => match (text_file(part)?, uri) {
                    (text, Some(uri)) => {
                        let file = ResourceContents::text(text, uri);
                        ContentBlock::resource(file.with_mime_type(media))
                    }
                    (text, None) => ContentBlock::text(text),
                },
            }
        }
    })
}

fn cut(text: &str) -> String {
    if text.len() <= MAX_TEXT {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(MAX_TEXT);
    format!("{}\n[a2a-hub] cut here: the resource below, or the task, has all of it", &text[..end])
}

/// Line with the state of the task and the next step.
pub(super) fn state_line(task: &Task) -> String {
    let (id, context, state) = (&task.id, &task.context_id, task.status.state.name());
    let next_step = match task.status.state {
        TaskState::Submitted | TaskState::Working => {
            format!("it goes on; `{CHECK_TASK}` with this task tells what became of it")
        }
        TaskState::InputRequired | TaskState::AuthRequired => {
            let which = question_view::id(task).map(|id| format!(" and question_id `{id}`"));
            let which = which.unwrap_or_default();
            format!("it waits for an answer; `{ANSWER_TASK}` with this task{which} gives it")
        }
        TaskState::Completed
        | TaskState::Failed
        | TaskState::Canceled
        | TaskState::Rejected
        | TaskState::Unknown => format!("context_id `{context}` goes on with the conversation"),
    };
    format!("[a2a-hub] task `{id}` is {state}: {next_step}")
}

/// State of the task as metadata, for programs.
fn meta(task: &Task) -> MetaObject {
    let mut facts = Map::new();
    facts.insert("a2a-hub/taskId".to_owned(), json!(task.id));
    facts.insert("a2a-hub/contextId".to_owned(), json!(task.context_id));
    facts.insert("a2a-hub/state".to_owned(), json!(task.status.state.name()));
    facts.insert("a2a-hub/uri".to_owned(), json!(task_uri(&task.id)));
    if task.status.state.is_interrupted() {
        facts.insert("a2a-hub/questionId".to_owned(), json!(question_view::id(task)));
        facts.insert("a2a-hub/questionKind".to_owned(), json!(question_view::kind(task)));
    }
    serde_json::from_value(Value::Object(facts)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use a2a_hub_protocol::{
        id::{ArtifactId, ContextId, TaskId},
        message::{Metadata, Role},
        question::{Question, QuestionKind},
        task::TaskStatus,
    };

    fn made(id: &str, parts: Vec<Part>) -> Artifact {
        Artifact::new(ArtifactId::new(id), parts)
    }

    fn task(state: TaskState, said: Option<&str>, artifacts: Vec<Artifact>) -> Task {
        let message = said.map(|said| Message::text(Role::Agent, said));
        let status = TaskStatus { state, message, timestamp: String::new() };
        let (id, context_id) = (TaskId::new("t"), ContextId::new("c"));
        Task { id, context_id, status, artifacts, history: Vec::new(), metadata: None }
    }

    fn told(task: &Task) -> Value {
        json!(of_task(task))
    }

    #[test]
    fn result_contains_artifacts_and_message_once() {
        let all = vec![made("a", vec![Part::text("made \u{1b}[2J")])];
        let result = told(&task(TaskState::Completed, Some("done"), all.clone()));
        assert_eq!(result["content"][0]["text"], "made \u{1b}[2J", "JSON keeps it harmless");
        assert_eq!(result["content"][1]["text"], "done");
        let line = "[a2a-hub] task `t` is completed: context_id `c` goes on with the conversation";
        assert_eq!(result["content"][2]["text"], line);
        assert_eq!(
            (&result["isError"], &result["_meta"]["a2a-hub/taskId"]),
            (&json!(false), &json!("t"))
        );
        let again = told(&task(TaskState::Completed, Some("made \u{1b}[2J\n"), all));
        assert_eq!(again["content"].as_array().unwrap().len(), 2, "{again}");
    }

    #[test]
    fn files_are_linked_and_images_embedded() {
        let image =
            Part { media_type: Some("image/png".to_owned()), ..Part::new(Content::Raw(vec![1])) };
        let file = Part::new(Content::Raw(vec![0; 10]));
        let result = told(&task(
            TaskState::Completed,
            None,
            vec![made("i", vec![image]), made("f", vec![file])],
        ));
        assert_eq!(result["content"][0]["type"], "image");
        assert_eq!(result["content"][1]["type"], "resource_link");
        assert_eq!(result["content"][1]["uri"], "a2a-hub://tasks/t/artifacts/f");
    }

    #[test]
    fn sounds_and_text_files_are_embedded() {
        let file = |media: &str, bytes: Vec<u8>| Part {
            media_type: Some(media.to_owned()),
            ..Part::new(Content::Raw(bytes))
        };
        let kinds = |part: &Part| {
            let made = vec![made("x/y", vec![part.clone()])];
            let result = told(&task(TaskState::Completed, None, made));
            let mut said = Message::new(Role::Agent, vec![part.clone()]);
            said.context_id = None;
            (result["content"][0].clone(), json!(of_message(&said))["content"][0].clone())
        };
        let (sound, same) = kinds(&file("audio/wav", vec![1]));
        assert_eq!(sound, json!({ "type": "audio", "data": "AQ==", "mimeType": "audio/wav" }));
        assert_eq!(sound, same);
        for media in ["text/x-diff; charset=utf-8", "application/json", "application/ld+JSON"] {
            let (embedded, text) = kinds(&file(media, b"{}\n".to_vec()));
            let uri = "a2a-hub://tasks/t/artifacts/x%2Fy";
            let file = json!({ "uri": uri, "mimeType": media, "text": "{}\n" });
            assert_eq!(embedded, json!({ "type": "resource", "resource": file }));
            assert_eq!(text, json!({ "type": "text", "text": "{}\n" }), "no resource has it");
        }
        let long = file("text/plain", vec![b'x'; MAX_TEXT + 1]);
        let noise = file("audio/wav", vec![0; MAX_MEDIA + 1]);
        for other in [long, noise, file("text/plain", vec![255]), file("a", vec![65])] {
            assert_eq!(kinds(&other).0["type"], "resource_link", "{:?}", other.media_type);
        }
    }

    #[test]
    fn long_text_is_cut_and_linked() {
        let long = "ä".repeat(MAX_TEXT);
        let result =
            told(&task(TaskState::Completed, None, vec![made("l", vec![Part::text(long)])]));
        let text = result["content"][0]["text"].as_str().unwrap();
        assert!(text.len() < MAX_TEXT + 100 && text.ends_with("has all of it"));
        assert_eq!(result["content"][1]["type"], "resource_link");
    }

    #[test]
    fn result_names_next_step_by_state() {
        for (state, how, is_error) in [
            (TaskState::Working, CHECK_TASK, false),
            (TaskState::Submitted, CHECK_TASK, false),
            (TaskState::InputRequired, ANSWER_TASK, false),
            (TaskState::AuthRequired, ANSWER_TASK, false),
            (TaskState::Failed, "context_id", true),
            (TaskState::Rejected, "context_id", true),
            (TaskState::Canceled, "context_id", true),
        ] {
            let result = told(&task(state, None, Vec::new()));
            assert!(result["content"][0]["text"].as_str().unwrap().contains(how), "{result}");
            assert_eq!(result["isError"], is_error, "{state:?}");
        }
    }

    #[test]
    fn question_result_has_id_and_kind() {
        let question = Question::fresh(QuestionKind::Permission);
        let mut task = task(TaskState::InputRequired, Some("may I?"), Vec::new());
        task.metadata = Some(Metadata::from_iter([question.member()]));
        let result = told(&task);
        assert_eq!(result["content"][0]["text"], "may I?");
        assert_eq!(result["_meta"]["a2a-hub/questionId"], question.id.as_str());
        assert_eq!(result["_meta"]["a2a-hub/questionKind"], "permission");
        let form = question::form(&task, Some("codex")).unwrap();
        let asks = json!(asks(&task, form));
        assert_eq!(asks["inputRequests"][INPUT]["method"], "elicitation/create");
        assert_eq!(asks["resultType"], "input_required");
    }
}
