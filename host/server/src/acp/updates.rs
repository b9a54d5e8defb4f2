//! Conversion of a task's events to session updates.

use super::{activity::TurnActivity, commands, content, file_changes};
use a2a_hub_core::task::progress;
use a2a_hub_protocol::{
    event::TaskEvent,
    id::{ArtifactId, MessageId, TaskId},
    member,
    message::{Content, Message, Part, joined_text},
    task::{Artifact, Task, TaskState},
};
use serde_json::{Value, json};
use std::{
    collections::HashMap,
    hash::{DefaultHasher, Hash as _, Hasher as _},
};

/// Kind of the updates with the agent's text.
pub(super) const MESSAGE: &str = "agent_message_chunk";

/// Record of the texts and files that were sent, so that none is sent twice.
#[derive(Debug, Default)]
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
#[derive(Clone, Copy, Debug, PartialEq)]
enum Source {
    Artifact(usize),
    Message,
}

/// Sent parts of an artifact.
#[derive(Debug)]
struct SentArtifact {
    id: ArtifactId,
    text: String,
    /// Fingerprints of the files and links.
    files: Vec<u64>,
    /// Number of times that another text replaced it.
    rewritten: usize,
}

impl SentTexts {
    /// Sets the task whose events follow. Artifacts of another task are other artifacts, also under
    /// the same ids.
    pub(super) fn set_task(&mut self, task: &TaskId) {
        if self.task.as_ref() == Some(task) {
            return;
        }
        self.task = Some(task.clone());
        self.artifacts.clear();
        self.positions.clear();
        self.changes = 0;
        self.latest = self.latest.map(|_| Source::Message);
    }

    /// Begins a turn of the client: its first text follows no other.
    pub(super) fn begin_turn(&mut self) {
        self.latest = None;
        self.line_feeds = 0;
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
                let repeats = |update: &Value| {
                    let kind = update["sessionUpdate"].as_str().unwrap_or_default();
                    !["usage_update", commands::UPDATE].contains(&kind)
                };
                if activity.iter().any(repeats) {
                    return activity;
                }
                let doing = update.status.message.as_ref().map(|message| message.joined_text());
                let thought = progress::status_text(facts, doing).map(|doing| thought(&doing));
                thought.into_iter().chain(activity).collect()
            }
            TaskEvent::Reply(message) => self.message(message),
            TaskEvent::Status(_) | TaskEvent::Created(_) | TaskEvent::Input(_) => Vec::new(),
        }
    }

    /// Sends the parts of an artifact that are new. An artifact without `append` replaces the sent
    /// one: at the end of a stream it is the whole text once more, perhaps with a last piece.
    fn artifact(&mut self, artifact: &Artifact, append: bool) -> Vec<Value> {
        if let Some(path) = file_changes::path_of(artifact) {
            self.changes += 1;
            let task = self.task.as_ref().map_or("task", TaskId::as_str);
            // No id of a reported call begins like this.
            let call = format!("{task}#change-{}", self.changes);
            return vec![file_changes::tool_call(&call, path, artifact)];
        }
        let next = self.artifacts.len();
        let at = *self.positions.entry(artifact.artifact_id.clone()).or_insert(next);
        if at == next {
            let id = artifact.artifact_id.clone();
            let (text, files, rewritten) = Default::default();
            self.artifacts.push(SentArtifact { id, text, files, rewritten });
        }
        let text = joined_text(&artifact.parts);
        let sent = &mut self.artifacts[at];
        let (mut is_rewritten, mut new_text) = (false, text.clone());
        let mut files = files(&artifact.parts);
        if append {
            sent.text += &text;
            sent.files.extend(files.iter().map(|(print, _)| print));
        } else {
            let before = std::mem::replace(&mut sent.text, text);
            if let Some(rest) = rest_after(&before, &sent.text) {
                rest.clone_into(&mut new_text);
            } else {
                is_rewritten = true;
                sent.rewritten += 1;
            }
            let now = files.iter().map(|(print, _)| *print).collect();
            let sent_before = std::mem::replace(&mut sent.files, now);
            files.retain(|(print, _)| !sent_before.contains(print));
        }
        let id = message_id(self.task.as_ref(), sent);
        let text = self.text(Source::Artifact(at), &new_text, is_rewritten, &id);
        text.into_iter().chain(file_chunks(MESSAGE, files, &id)).collect()
    }

    /// Final message of the agent, unless its text was sent already.
    pub(super) fn last(&mut self, task: &Task) -> Vec<Value> {
        task.status.message.as_ref().map(|message| self.message(message)).unwrap_or_default()
    }

    /// Message of the agent: its text, unless an artifact ends with it, and its files, unless they
    /// are those of an artifact.
    pub(super) fn message(&mut self, message: &Message) -> Vec<Value> {
        let id = &message.message_id;
        if self.message.as_ref() == Some(id) {
            return Vec::new();
        }
        let (text, mut files) = (message.joined_text(), files(&message.parts));
        files.retain(|(print, _)| !self.artifacts.iter().any(|sent| sent.files.contains(print)));
        let is_sent = self.artifacts.iter().any(|sent| ends_with_lines(&sent.text, &text));
        if is_sent && files.is_empty() {
            return Vec::new();
        }
        self.message = Some(id.clone());
        let text = Some(text).filter(|_| !is_sent);
        let text = text.and_then(|text| self.text(Source::Message, &text, true, id.as_str()));
        text.into_iter().chain(file_chunks(MESSAGE, files, id.as_str())).collect()
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
fn rest_after<'a>(sent: &str, full: &'a str) -> Option<&'a str> {
    full.strip_prefix(sent).or_else(|| {
        let is_same = full.trim_end() == sent.trim_end();
        is_same.then_some("")
    })
}

/// True if the last lines of `text` are `lines`.
fn ends_with_lines(text: &str, lines: &str) -> bool {
    let before = text.trim().strip_suffix(lines.trim());
    before.is_some_and(|before| before.is_empty() || before.ends_with('\n'))
}

/// Message of the client as updates, for a conversation that is loaded.
pub(super) fn of_user(message: &Message) -> Vec<Value> {
    const KIND: &str = "user_message_chunk";
    let (text, id) = (message.joined_text(), message.message_id.as_str());
    let text = (!text.is_empty()).then(|| named(chunk(KIND, &text), id));
    text.into_iter().chain(file_chunks(KIND, files(&message.parts), id)).collect()
}

/// Files and links of parts, with their fingerprints.
fn files(parts: &[Part]) -> Vec<(u64, &Part)> {
    let print = |part: &Part| {
        let mut hasher = DefaultHasher::new();
        (&part.filename, &part.media_type).hash(&mut hasher);
        match &part.content {
            Content::Raw(bytes) => bytes.hash(&mut hasher),
            Content::Url(url) => url.hash(&mut hasher),
            Content::Data(_) | Content::Text(_) => return None,
        }
        Some(hasher.finish())
    };
    parts.iter().filter_map(|part| Some((print(part)?, part))).collect()
}

/// Chunks of files and links, as parts of the message `id`.
fn file_chunks(kind: &str, files: Vec<(u64, &Part)>, id: &str) -> Vec<Value> {
    let blocks = files.into_iter().flat_map(|(_, part)| content::blocks(part, id));
    let chunk = |block| named(json!({ "sessionUpdate": kind, "content": block }), id);
    blocks.map(chunk).collect()
}

/// Thought of the agent's side: a line of the hub.
pub(super) fn thought(line: &str) -> Value {
    chunk("agent_thought_chunk", &format!("{line}\n"))
}

/// Chunk of this kind with a text.
pub(super) fn chunk(kind: &str, text: &str) -> Value {
    json!({ "sessionUpdate": kind, "content": content::text(text) })
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

#[cfg(test)]
mod tests {
    use super::*;
    use a2a_hub_protocol::{
        event::{ArtifactUpdate, StatusUpdate},
        id::ContextId,
        message::Role,
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
    fn repeated_file_is_sent_once() {
        let file = || Part::new(Content::Raw(vec![1, 2]));
        let artifact = Artifact::new(ArtifactId::new("a"), vec![file(), Part::text("t")]);
        let whole =
            || ArtifactUpdate { artifact: artifact.clone(), append: false, last_chunk: true };
        let events = [TaskEvent::Artifact(whole()), TaskEvent::Artifact(whole())];
        assert_eq!(shown(&events, "t"), "t");
        let mut told = SentTexts::default();
        let all: Vec<_> = events.iter().flat_map(|event| told.updates(event)).collect();
        let resources = all.iter().filter(|update| update["content"]["type"] == "resource");
        assert_eq!(resources.count(), 1);
        // Files of the final message are shown, unless they are those of the artifact.
        let mut ended = task(TaskState::Completed, "t");
        let parts = &mut ended.status.message.as_mut().unwrap().parts;
        let link = Part::new(Content::Url("https://x.test/d".to_owned()));
        parts.extend([file(), link]);
        let last = told.last(&ended);
        let kinds: Vec<_> = last.iter().map(|update| update["content"]["type"].as_str()).collect();
        assert_eq!(kinds, [Some("resource_link")], "{last:?}");
        assert_eq!(told.last(&ended), Vec::<Value>::new());
    }

    #[test]
    fn artifact_of_successor_is_another_message() {
        let mut told = SentTexts::default();
        told.set_task(&TaskId::new("a"));
        let mut all = told.updates(&piece("same", false));
        told.set_task(&TaskId::new("b"));
        all.extend(told.updates(&piece("same", false)));
        let chunks: Vec<_> =
            all.iter().map(|it| (&it["messageId"], &it["content"]["text"])).collect();
        let wanted = [(json!("a/a"), json!("same")), (json!("b/a"), json!("\n\nsame"))];
        assert_eq!(chunks, wanted.each_ref().map(|(id, text)| (id, text)));
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
        assert_eq!(calls, [Some("task#change-1"), Some("task#change-2")]);
        assert_eq!(all[1]["content"][0]["newText"], "c\n");
        assert_eq!(told.last(&task(TaskState::Completed, "done"))[0]["content"]["text"], "done");
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
}
