//! Conversion of a task's events to session updates.

use crate::rpc::question_view;
use a2a_hub_core::{task::progress, text::plain_text};
use a2a_hub_protocol::{
    event::TaskEvent,
    id::ArtifactId,
    message::{Content, Message, Part, Role, joined_text},
    task::{Task, TaskState},
};
use serde_json::{Value, json};

/// Maximum length of a permission request's title in characters.
const MAX_TITLE: usize = 200;

/// Record of sent texts, so that no text is sent twice.
#[derive(Default)]
pub(super) struct SentTexts {
    /// Text of each artifact.
    texts: Vec<(ArtifactId, String)>,
}

impl SentTexts {
    /// Converts an event to session updates.
    pub(super) fn updates(&mut self, event: &TaskEvent) -> Vec<Value> {
        match event {
            TaskEvent::Artifact(update) => {
                let made = &update.artifact;
                let text = joined_text(&made.parts);
                let at = self.texts.iter().position(|(id, _)| *id == made.artifact_id);
                let again = at.is_some() && !update.append;
                let at = at.unwrap_or_else(|| {
                    self.texts.push((made.artifact_id.clone(), String::new()));
                    self.texts.len() - 1
                });
                let whole = &mut self.texts[at].1;
                if again {
                    whole.clear();
                }
                *whole += &text;
                let text = if again { format!("\n\n{text}") } else { text };
                let files = made.parts.iter().filter_map(file);
                said(&text).into_iter().chain(files).collect()
            }
            // Other statuses belong to the turn: it requests permissions, and sends the final
            // message at the end.
            TaskEvent::Status(update) if update.status.state == TaskState::Working => {
                let doing = update.status.message.as_ref().map(|message| message.joined_text());
                progress::told(update.metadata.as_ref(), doing)
                    .map(|doing| chunk("agent_thought_chunk", &format!("{doing}\n")))
                    .into_iter()
                    .collect()
            }
            TaskEvent::Reply(message) => said(&message.joined_text()).into_iter().collect(),
            TaskEvent::Status(_) | TaskEvent::Created(_) | TaskEvent::Input(_) => Vec::new(),
        }
    }

    /// Final message of the agent, unless its text was sent already.
    pub(super) fn last(&self, task: &Task) -> Option<Value> {
        let last = question_view::prompt(task);
        let is_new = self.texts.iter().all(|(_, told)| told.trim() != last.trim());
        is_new.then(|| said(&last)).flatten()
    }
}

/// Replays a message of the conversation as an update.
pub(super) fn again(message: &Message) -> Option<Value> {
    let text = message.joined_text();
    let kind = match message.role {
        Role::User => "user_message_chunk",
        Role::Agent => "agent_message_chunk",
    };
    (!text.is_empty()).then(|| chunk(kind, &text))
}

fn said(text: &str) -> Option<Value> {
    (!text.is_empty()).then(|| chunk("agent_message_chunk", text))
}

fn chunk(kind: &str, text: &str) -> Value {
    json!({ "sessionUpdate": kind, "content": { "type": "text", "text": text } })
}

/// Mentions a file of the agent by name; an editor sees the files of its directory itself.
fn file(part: &Part) -> Option<Value> {
    let text = match &part.content {
        Content::Raw(bytes) => {
            let name = plain_text::line(part.filename.as_deref().unwrap_or("a file"), 120);
            format!("\n[{name}: {} bytes]\n", bytes.len())
        }
        Content::Url(url) => format!("\n[{}]\n", plain_text::line(url, 400)),
        Content::Data(_) | Content::Text(_) => return None,
    };
    Some(chunk("agent_message_chunk", &text))
}

/// Parameters of a permission request: the tool call and the user's options.
pub(super) fn permission(session: &str, task: &Task) -> Value {
    let (prompt, data) = (question_view::prompt(task), question_view::data(task));
    let id = question_view::id(task).unwrap_or_else(|| task.id.to_string());
    let options: Vec<_> =
        question_view::choices(task).iter().map(|choice| option(choice)).collect();
    json!({
        "sessionId": session,
        "toolCall": {
            "toolCallId": id,
            "title": plain_text::line(&prompt, MAX_TITLE),
            "status": "pending",
            "rawInput": data.and_then(|data| data.get("input")),
            "content": [{ "type": "content", "content": { "type": "text", "text": prompt } }],
        },
        "options": options,
    })
}

fn option(choice: &str) -> Value {
    let (name, kind) = match choice {
        "allow" | "yes" => ("Allow", "allow_once"),
        "allow-session" | "always" => ("Allow for this session", "allow_always"),
        "deny" | "no" => ("Deny", "reject_once"),
        other => (other, "allow_once"),
    };
    json!({ "optionId": choice, "name": plain_text::line(name, 80), "kind": kind })
}

/// Option that the user selected; `None` if the turn was cancelled instead.
pub(super) fn chosen(answer: &Value) -> Option<&str> {
    let outcome = &answer["outcome"];
    (outcome["outcome"] == "selected").then(|| outcome["optionId"].as_str())?
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::json_shapes::reshaped;
    use a2a_hub_protocol::{
        event::{ArtifactUpdate, StatusUpdate},
        id::{ContextId, TaskId},
        message::Metadata,
        question::{Question, QuestionKind},
        task::{Artifact, TaskStatus},
    };

    fn piece(text: &str, append: bool) -> TaskEvent {
        let artifact = Artifact::new(ArtifactId::new("a"), vec![Part::text(text)]);
        TaskEvent::Artifact(ArtifactUpdate { artifact, append, last_chunk: false })
    }

    fn status(state: TaskState, text: &str) -> TaskStatus {
        let message = Some(Message::text(Role::Agent, text));
        TaskStatus { state, message, timestamp: String::new() }
    }

    fn task(state: TaskState, text: &str) -> Task {
        Task {
            id: TaskId::new("t"),
            context_id: ContextId::new("c"),
            status: status(state, text),
            artifacts: Vec::new(),
            history: Vec::new(),
            metadata: None,
        }
    }

    #[test]
    fn streamed_text_is_not_sent_twice() {
        let mut told = SentTexts::default();
        assert_eq!(told.updates(&piece("a", false)), [chunk("agent_message_chunk", "a")]);
        assert_eq!(told.updates(&piece("b", true)), [chunk("agent_message_chunk", "b")]);
        assert_eq!(told.last(&task(TaskState::Completed, "ab\n")), None);
        assert_eq!(
            told.last(&task(TaskState::Completed, "c")),
            Some(chunk("agent_message_chunk", "c"))
        );
        let replaced = told.updates(&piece("c", false));
        assert_eq!(replaced, [chunk("agent_message_chunk", "\n\nc")]);
        assert_eq!(told.last(&task(TaskState::Completed, "c")), None);
    }

    #[test]
    fn working_status_becomes_thought_chunk() {
        let mut told = SentTexts::default();
        let working = |state, text| {
            TaskEvent::Status(StatusUpdate { status: status(state, text), metadata: None })
        };
        let thought = told.updates(&working(TaskState::Working, "reads"));
        assert_eq!(thought, [chunk("agent_thought_chunk", "reads\n")]);
        assert!(told.updates(&working(TaskState::InputRequired, "may I?")).is_empty());
    }

    #[test]
    fn permission_request_offers_agent_choices() {
        let mut asking = task(TaskState::InputRequired, "may I\nrun it?");
        asking.metadata =
            Some(Metadata::from_iter([Question::fresh(QuestionKind::Permission).member()]));
        let data =
            json!({ "input": { "command": "ls" }, "choices": ["allow", "allow-session", "deny"] });
        asking.status.message.as_mut().unwrap().parts.push(Part::data(data));
        let asked = permission("s", &asking);
        assert_eq!(asked["toolCall"]["title"], "may I run it?");
        assert_eq!(asked["toolCall"]["rawInput"], json!({ "command": "ls" }));
        let kinds: Vec<_> =
            asked["options"].as_array().unwrap().iter().map(|it| it["kind"].as_str()).collect();
        assert_eq!(kinds, ["allow_once", "allow_always", "reject_once"].map(Some));
        let selected = json!({ "outcome": { "outcome": "selected", "optionId": "deny" } });
        assert_eq!(chosen(&selected), Some("deny"));
        assert_eq!(chosen(&json!({ "outcome": { "outcome": "cancelled" } })), None);
        // Any other answer grants no permission.
        for other in reshaped(&selected).iter().filter(|other| **other != selected) {
            assert!(chosen(other).is_none_or(|choice| choice == "x"), "{other}");
        }
    }
}
