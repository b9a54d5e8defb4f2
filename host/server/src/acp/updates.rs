//! Conversion of a task's events to session updates.

use super::{activity::TurnActivity, file_changes};
use a2a_hub_core::{task::progress, text::plain_text};
use a2a_hub_protocol::{
    event::TaskEvent,
    id::{ArtifactId, MessageId, TaskId},
    member,
    message::{Content, Message, Part, joined_text},
    task::{Artifact, Task, TaskState},
};
use a2a_hub_rpc::question_view;
use serde_json::{Value, json};
use std::collections::HashMap;

/// Maximum length of a permission request's title in characters.
const MAX_TITLE: usize = 200;

/// Kind of the updates with the agent's text.
pub(super) const MESSAGE: &str = "agent_message_chunk";

/// Record of the texts and files that were sent, so that none is sent twice.
#[derive(Default)]
pub(super) struct SentTexts {
    /// Task of the texts, which is part of the ids of messages.
    task: Option<TaskId>,
    /// Tool calls that the agent reports.
    pub(super) activity: TurnActivity,
    artifacts: Vec<SentArtifact>,
    /// Positions of the artifacts by their ids: a search would take longer with each artifact.
    positions: HashMap<ArtifactId, usize>,
    /// Number of changed files that were sent.
    changes: usize,
    /// Source of the text that was sent last; `None` before the first.
    latest: Option<Source>,
    /// Message that was sent last.
    message: Option<MessageId>,
    /// Number of line feeds at the end of the text that was sent last.
    line_feeds: usize,
}

/// Sender of a text: an artifact, by its index, or a message.
#[derive(Clone, Copy, PartialEq)]
enum Source {
    Artifact(usize),
    Message,
}

/// Sent parts of an artifact.
struct SentArtifact {
    id: ArtifactId,
    text: String,
    files: Vec<String>,
    /// Number of times that another text replaced it.
    rewritten: usize,
}

impl SentTexts {
    /// Sets the task whose events follow.
    pub(super) fn of(&mut self, task: &TaskId) {
        self.task.get_or_insert_with(|| task.clone());
    }

    /// Converts an event to session updates.
    pub(super) fn updates(&mut self, event: &TaskEvent) -> Vec<Value> {
        match event {
            TaskEvent::Artifact(update) => self.artifact(&update.artifact, update.append),
            // Other statuses belong to the turn: it requests permissions, and sends the final
            // message at the end.
            TaskEvent::Status(update) if update.status.state == TaskState::Working => {
                let facts = update.metadata.as_ref();
                let activity = self.activity.updates(self.task.as_ref(), facts);
                // The text of a tool call or a plan repeats it for other clients.
                if activity.iter().any(|update| update["sessionUpdate"] != "usage_update") {
                    return activity;
                }
                let doing = update.status.message.as_ref().map(|message| message.joined_text());
                let thought = progress::told(facts, doing).map(|doing| thought(&doing));
                thought.into_iter().chain(activity).collect()
            }
            TaskEvent::Reply(message) => self.message(message).into_iter().collect(),
            TaskEvent::Status(_) | TaskEvent::Created(_) | TaskEvent::Input(_) => Vec::new(),
        }
    }

    /// Sends the parts of an artifact that are new. An artifact without `append` replaces the sent
    /// one: at the end of a stream it is the whole text once more, perhaps with a last piece.
    fn artifact(&mut self, made: &Artifact, append: bool) -> Vec<Value> {
        if let Some(path) = file_changes::path_of(made) {
            self.changes += 1;
            let task = self.task.as_ref().map_or("task", TaskId::as_str);
            let call = format!("{task}/change/{}", self.changes);
            return vec![file_changes::tool_call(&call, path, made)];
        }
        let next = self.artifacts.len();
        let at = *self.positions.entry(made.artifact_id.clone()).or_insert(next);
        if at == next {
            let id = made.artifact_id.clone();
            let (text, files, rewritten) = Default::default();
            self.artifacts.push(SentArtifact { id, text, files, rewritten });
        }
        let (text, files) = (joined_text(&made.parts), made.parts.iter().filter_map(file));
        let sent = &mut self.artifacts[at];
        let (mut is_rewritten, mut new_text) = (false, text.clone());
        let mut files: Vec<_> = files.collect();
        if append {
            sent.text += &text;
            sent.files.extend(files.iter().cloned());
        } else {
            let before = std::mem::replace(&mut sent.text, text);
            if let Some(rest) = rest_after(&before, &sent.text) {
                rest.clone_into(&mut new_text);
            } else {
                is_rewritten = true;
                sent.rewritten += 1;
            }
            let sent_before = std::mem::replace(&mut sent.files, files.clone());
            files.retain(|file| !sent_before.contains(file));
        }
        let id = message_id(self.task.as_ref(), sent);
        let text = self.text(Source::Artifact(at), &new_text, is_rewritten, &id);
        let files = files.iter().map(|file| named(chunk(MESSAGE, file), &id));
        text.into_iter().chain(files).collect()
    }

    /// Final message of the agent, unless its text was sent already.
    pub(super) fn last(&mut self, task: &Task) -> Option<Value> {
        task.status.message.as_ref().and_then(|message| self.message(message))
    }

    /// Message of the agent, unless an artifact ends with its text.
    pub(super) fn message(&mut self, message: &Message) -> Option<Value> {
        let text = message.joined_text();
        let id = &message.message_id;
        let is_sent = self.message.as_ref() == Some(id)
            || self.artifacts.iter().any(|sent| ends_with_lines(&sent.text, &text));
        if is_sent {
            None
        } else {
            self.message = Some(id.clone());
            self.text(Source::Message, &text, true, id.as_str())
        }
    }

    /// Chunk with this text, which begins a paragraph unless it continues the text before.
    fn text(&mut self, source: Source, text: &str, is_new: bool, id: &str) -> Option<Value> {
        if text.is_empty() {
            return None;
        }
        let begins = self.latest.is_some_and(|latest| latest != source || is_new);
        let line_feeds = if begins { 2_usize.saturating_sub(self.line_feeds) } else { 0 };
        self.latest = Some(source);
        let end = text.bytes().rev().take_while(|byte| *byte == b'\n').count();
        // A chunk of line feeds alone continues those before it.
        self.line_feeds = if end == text.len() { self.line_feeds + end } else { end };
        Some(named(chunk(MESSAGE, &format!("{}{text}", "\n".repeat(line_feeds))), id))
    }
}

/// Id of the message that an artifact is for the client; it is the same when the conversation is
/// loaded. A replaced text is another message.
fn message_id(task: Option<&TaskId>, sent: &SentArtifact) -> String {
    let SentArtifact { id, rewritten, .. } = sent;
    let task = task.map_or("task", TaskId::as_str);
    if *rewritten == 0 { format!("{task}/{id}") } else { format!("{task}/{id}/{rewritten}") }
}

/// Adds the id of its message to a chunk.
fn named(mut chunk: Value, id: &str) -> Value {
    member::set(&mut chunk, "messageId", id);
    chunk
}

/// Rest of a replacing text after what was sent of it; `None` if it is another text. White space at
/// the end does not count: agents trim the whole text.
fn rest_after<'a>(sent: &str, whole: &'a str) -> Option<&'a str> {
    whole.strip_prefix(sent).or_else(|| {
        let is_same = whole.trim_end() == sent.trim_end();
        is_same.then_some("")
    })
}

/// True if the last lines of `text` are `lines`.
fn ends_with_lines(text: &str, lines: &str) -> bool {
    let before = text.trim().strip_suffix(lines.trim());
    before.is_some_and(|before| before.is_empty() || before.ends_with('\n'))
}

/// Messages of the client as updates, for a conversation that is loaded.
pub(super) fn of_user(message: &Message) -> Option<Value> {
    let files = message.parts.iter().filter_map(file);
    let text = message.joined_text() + &files.collect::<String>();
    (!text.is_empty())
        .then(|| named(chunk("user_message_chunk", &text), message.message_id.as_str()))
}

/// Thought of the agent's side: a line of the hub.
pub(super) fn thought(line: &str) -> Value {
    chunk("agent_thought_chunk", &format!("{line}\n"))
}

fn chunk(kind: &str, text: &str) -> Value {
    json!({ "sessionUpdate": kind, "content": { "type": "text", "text": text } })
}

/// Adds the usage of a task to the answer to its prompt, as its agent reports it.
pub(super) fn add_usage(answer: &mut Value, task: &Task) {
    let Some(facts) = &task.metadata else { return };
    let usage = facts.get("usage").unwrap_or(&Value::Null);
    let mut reported = json!({
        "inputTokens": usage["input_tokens"].as_u64(),
        "outputTokens": usage["output_tokens"].as_u64(),
        "costUsd": facts.get("cost_usd").and_then(Value::as_f64),
    });
    if let Some(members) = reported.as_object_mut() {
        members.retain(|_, value| !value.is_null());
        if !members.is_empty()
            && let Some(meta) = answer.get_mut("_meta")
        {
            member::set(meta, "a2a-hub/usage", reported);
        }
    }
}

/// Mentions a file of the agent by name; an editor sees the files of its directory itself.
fn file(part: &Part) -> Option<String> {
    Some(match &part.content {
        Content::Raw(bytes) => {
            let name = plain_text::line(part.filename.as_deref().unwrap_or("a file"), 120);
            format!("\n[{name}: {} bytes]\n", bytes.len())
        }
        Content::Url(url) => format!("\n[{}]\n", plain_text::line(url, 400)),
        Content::Data(_) | Content::Text(_) => return None,
    })
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
        id::ContextId,
        message::{Metadata, Role},
        question::{Question, QuestionKind},
        task::TaskStatus,
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

    /// Text of the chunks that these events become, and of the final message.
    fn shown(events: &[TaskEvent], last: &str) -> String {
        let mut told = SentTexts::default();
        let mut all: Vec<_> = events.iter().flat_map(|event| told.updates(event)).collect();
        all.extend(told.last(&task(TaskState::Completed, last)));
        all.iter().filter_map(|update| update["content"]["text"].as_str()).collect()
    }

    fn piece_of(id: &str, text: &str, append: bool) -> TaskEvent {
        let artifact = Artifact::new(ArtifactId::new(id), vec![Part::text(text)]);
        TaskEvent::Artifact(ArtifactUpdate { artifact, append, last_chunk: false })
    }

    #[test]
    fn streamed_text_is_not_sent_twice() {
        let stream = [piece("a", false), piece("b", true)];
        for (whole, last, wanted) in [
            (None, "ab\n", "ab"),
            (None, "", "ab"),
            (None, "c", "ab\n\nc"),
            (Some("ab"), "ab", "ab"),
            (Some("ab\n"), "done", "ab\n\ndone"),
            (Some("abc"), "c", "abc\n\nc"),
            (Some("ab\nIt is done."), "It is done.", "ab\nIt is done."),
            (Some("other"), "other", "ab\n\nother"),
        ] {
            let whole = whole.map(|whole| piece(whole, false));
            let events: Vec<_> = stream.iter().cloned().chain(whole).collect();
            assert_eq!(shown(&events, last), wanted, "{last:?}");
        }
    }

    #[test]
    fn texts_of_two_sources_are_paragraphs() {
        for (first, wanted) in [("a", "a\n\nb"), ("a\n", "a\n\nb"), ("a\n\n", "a\n\nb")] {
            let events = [piece_of("1", first, false), piece_of("2", "b", false)];
            assert_eq!(shown(&events, ""), wanted);
            assert_eq!(shown(&events[..1], "b"), wanted);
        }
        let back = [piece_of("1", "a", false), piece_of("2", "b", false), piece_of("1", "c", true)];
        assert_eq!(shown(&back, ""), "a\n\nb\n\nc");
    }

    #[test]
    fn repeated_file_is_mentioned_once() {
        let file = || Part::new(Content::Raw(vec![1, 2]));
        let artifact = Artifact::new(ArtifactId::new("a"), vec![file(), Part::text("t")]);
        let whole =
            || ArtifactUpdate { artifact: artifact.clone(), append: false, last_chunk: true };
        let events = [TaskEvent::Artifact(whole()), TaskEvent::Artifact(whole())];
        assert_eq!(shown(&events, "t"), "t\n[a file: 2 bytes]\n");
    }

    #[test]
    fn changed_file_becomes_tool_call() {
        let piece = |text: &str, append| {
            let mut artifact =
                Artifact::new(ArtifactId::new("change:/w/a"), vec![Part::text(text)]);
            let facts = json!({ "path": "/w/a", "kind": "file-change" });
            artifact.metadata = facts.as_object().cloned();
            TaskEvent::Artifact(ArtifactUpdate { artifact, append, last_chunk: true })
        };
        let mut told = SentTexts::default();
        let events = [piece("@@ -1 +1 @@\n-a\n+b\n", false), piece("@@ -1 +1 @@\n-b\n+c\n", true)];
        let all: Vec<_> = events.iter().flat_map(|event| told.updates(event)).collect();
        let calls: Vec<_> = all.iter().map(|update| update["toolCallId"].as_str()).collect();
        assert_eq!(calls, [Some("task/change/1"), Some("task/change/2")]);
        assert_eq!(all[1]["content"][0]["newText"], "c\n");
        assert_eq!(
            told.last(&task(TaskState::Completed, "done")).unwrap()["content"]["text"],
            "done"
        );
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
