//! State of a task, accumulated from complete tasks and from events.

use crate::{
    exit::Exit,
    render::{list, message_text, parts_text},
    width::one_line,
};
use a2a_hub_core::task::progress;
use serde_json::{Map, Value, json};

/// Members of the metadata that tell in which worktree a task works.
const WORKTREE_MEMBERS: [&str; 2] = ["worktree", "worktreeTask"];

/// Stands for the path of a task's worktree in a text for people.
pub const SHORT_WORKTREE: &str = "<worktree>";

/// State of a task according to its events, in the JSON of A2A 0.3.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TaskStateSnapshot {
    /// Id of the task, once known; `None` if the agent answered with a message.
    pub task: Option<String>,
    /// Id of the conversation, once known.
    pub context: Option<String>,
    /// State of the task; empty if unknown.
    pub state: String,
    /// Last message of the agent, except progress messages.
    message: Option<Value>,
    /// Artifacts in the order of their creation.
    pub artifacts: Vec<Value>,
    /// Further metadata of the task.
    metadata: Map<String, Value>,
    /// Exit status, once the task ended or waits for its client.
    pub exit: Option<Exit>,
}

impl TaskStateSnapshot {
    /// Processes an event of a stream, or a complete task.
    pub fn apply(&mut self, event: &Value) {
        let name = |value: &Value| value.as_str().map(str::to_owned);
        match event["kind"].as_str() {
            Some("task") => {
                self.task = name(&event["id"]);
                self.status(&event["status"]);
                self.merge(&event["artifacts"]);
            }
            Some("status-update") => {
                self.task = self.task.take().or_else(|| name(&event["taskId"]));
                self.status(&event["status"]);
            }
            Some("artifact-update") => self.artifact(event),
            Some("message") => {
                self.message = Some(event.clone());
                self.exit = Some(Exit::Done);
            }
            _ => return,
        }
        let context = name(&event["contextId"]).filter(|context| !context.is_empty());
        self.context = context.or_else(|| self.context.take());
        if let Value::Object(more) = &event["metadata"] {
            self.metadata.extend(more.clone());
        }
    }

    /// Returns the id of the pending question, if it has one.
    pub fn question(&self) -> Option<&str> {
        self.metadata.get("question")?["id"].as_str()
    }

    /// Returns the agent that goes on with the task, and its task.
    pub fn handed_over(&self) -> Option<(&str, &str)> {
        let fact = self.metadata.get("handoff")?;
        Some((fact["to"].as_str()?, fact["task"].as_str()?))
    }

    /// Returns true if the task worked in a worktree, or names a child that did.
    pub fn has_worktree(&self) -> bool {
        WORKTREE_MEMBERS.iter().any(|name| self.metadata.contains_key(*name))
    }

    /// Takes over where `earlier` worked: the stream that follows an answer need not repeat it.
    pub fn keep_worktree(&mut self, earlier: &Self) {
        for name in WORKTREE_MEMBERS {
            if let Some(value) = earlier.metadata.get(name) {
                self.metadata.entry(name).or_insert_with(|| value.clone());
            }
        }
    }

    /// True if the pending question is whether the agent may do something.
    pub fn asks_permission(&self) -> bool {
        self.metadata.get("question").is_some_and(|question| question["kind"] == "permission")
    }

    /// Words that answer the pending question: its choices, and the ids and names of its options.
    pub fn choices(&self) -> Vec<&str> {
        let parts = self.message.iter().flat_map(|message| list(&message["parts"]));
        let words = parts.flat_map(|part| {
            let options = list(&part["data"]["options"]).iter();
            let named = options.flat_map(|option| [&option["id"], &option["name"]]);
            list(&part["data"]["choices"]).iter().chain(named)
        });
        words.filter_map(Value::as_str).collect()
    }

    /// Returns the agents that relay the pending question, ending with the one that asks; empty if
    /// the task's own agent asks.
    pub fn relay_path(&self) -> Vec<&str> {
        let path = self.metadata.get("question").and_then(|question| question["path"].as_array());
        path.into_iter().flatten().filter_map(Value::as_str).collect()
    }

    /// Returns the text of the pending question, without the hub's note of who asks.
    pub fn question_text(&self) -> Option<String> {
        let mut message = self.message.clone()?;
        if let Some(parts) = message.get_mut("parts").and_then(Value::as_array_mut) {
            parts.retain(|part| part["metadata"]["note"] != "asked_by");
        }
        Some(message_text(&message))
    }

    /// Replaces the long path of the task's worktree in a text by [`SHORT_WORKTREE`], and says
    /// what that is. A text that has these characters already stays as it is: it could mislead.
    pub fn with_short_paths(&self, text: &str) -> String {
        let worktree = self.metadata.get("worktree");
        let member = |name: &str| worktree.and_then(|it| it[name].as_str());
        let (Some(path), Some(repository)) = (member("path"), member("repository")) else {
            return text.to_owned();
        };
        let within = format!("{path}/");
        if path.is_empty() || !text.contains(&within) || text.contains(SHORT_WORKTREE) {
            return text.to_owned();
        }
        let short = text.replace(&within, &format!("{SHORT_WORKTREE}/"));
        format!("{}\n({SHORT_WORKTREE} is a worktree of {repository})", short.trim_end())
    }

    /// Returns the agent's suggested fix for the failure.
    pub fn fix(&self) -> Option<&str> {
        self.metadata.get("fix")?.as_str()
    }

    fn status(&mut self, status: &Value) {
        let state = status["state"].as_str().unwrap_or_default();
        state.clone_into(&mut self.state);
        self.exit = match state {
            "completed" => Some(Exit::Done),
            "failed" | "rejected" | "canceled" => Some(Exit::TaskFailed),
            "input-required" | "auth-required" => Some(Exit::NeedsInput),
            _ => None,
        };
        if state != "working" && status["message"].is_object() {
            self.message = Some(status["message"].clone());
        }
    }

    /// True if the task ended, so that a complete task is its last state.
    fn is_over(&self) -> bool {
        matches!(self.exit, Some(Exit::Done | Exit::TaskFailed))
    }

    /// Merges the artifacts of a complete task. Some agents repeat a task without its artifacts, or
    /// with less of them than they sent already; what arrived stays.
    fn merge(&mut self, artifacts: &Value) {
        let is_over = self.is_over();
        for new in artifacts.as_array().into_iter().flatten() {
            let same = |known: &&mut Value| known["artifactId"] == new["artifactId"];
            match self.artifacts.iter_mut().find(same) {
                Some(known) if !is_over && continues(&known["parts"], &new["parts"]) => {}
                Some(known) => known.clone_from(new),
                None => self.artifacts.push(new.clone()),
            }
        }
    }

    fn artifact(&mut self, event: &Value) {
        let new = &event["artifact"];
        let same = |known: &&mut Value| known["artifactId"] == new["artifactId"];
        match self.artifacts.iter_mut().find(same) {
            Some(known) if event["append"] == true => {
                let (Some(parts), Some(more)) =
                    (known.get_mut("parts").and_then(Value::as_array_mut), new["parts"].as_array())
                else {
                    return;
                };
                more.iter().for_each(|part| append(parts, part));
            }
            Some(known) => known.clone_from(new),
            None => self.artifacts.push(new.clone()),
        }
    }

    /// Returns the text of the agent's last message, if any.
    pub fn last_message(&self) -> Option<String> {
        self.message.as_ref().map(message_text)
    }

    /// Returns the agent's last message, unless it is blank or repeats the text of the artifacts:
    /// the whole of it, its beginning or its end, or a heading and sentences of it, such as
    /// "`a.txt`: Ask Ann first.".
    pub fn last_words(&self) -> Option<String> {
        let words = self.last_message().filter(|words| !words.trim().is_empty())?;
        let texts = self.artifacts.iter().map(|artifact| one_line(&parts_text(&artifact["parts"])));
        let texts: Vec<_> = texts.filter(|made| !made.is_empty()).collect();
        let message = one_line(&words);
        let headed = message.split_once(": ");
        let headed = headed.filter(|(_, rest)| rest.contains(' ') && rest.ends_with(['.', '!']));
        let is_repeated = |text: &str| {
            text == message
                || text.strip_prefix(&message).is_some_and(|rest| rest.starts_with(' '))
                || text.strip_suffix(&message).is_some_and(|rest| rest.ends_with(' '))
                || headed.is_some_and(|(heading, rest)| {
                    contains_words(text, heading) && contains_words(text, rest)
                })
        };
        let repeats = is_repeated(&texts.join(" ")) || texts.iter().any(|made| is_repeated(made));
        (!repeats).then_some(words)
    }

    /// True if an artifact contains more than files.
    pub fn has_text(&self) -> bool {
        let mut parts = self.artifacts.iter().flat_map(|artifact| list(&artifact["parts"]));
        parts.any(|part| part["kind"] != "file")
    }

    /// Iterates over the parts of all artifacts and of the last message, each with its artifact's
    /// name.
    pub fn parts(&self) -> impl Iterator<Item = (Option<&str>, &Value)> {
        let last_message = self.message.iter().map(|message| (None, message));
        let artifacts = self.artifacts.iter().map(|artifact| (artifact["name"].as_str(), artifact));
        artifacts.chain(last_message).flat_map(|(name, value)| {
            value["parts"].as_array().into_iter().flatten().map(move |part| (name, part))
        })
    }

    /// Returns the task's ids and state as JSON members.
    pub fn known(&self) -> Map<String, Value> {
        let state = Some(&self.state).filter(|state| !state.is_empty());
        object([
            ("taskId", json!(self.task)),
            ("contextId", json!(self.context)),
            ("state", json!(state)),
        ])
    }

    /// Returns the whole task as JSON members, with `message` as the agent's last message.
    pub fn json_members(&self, message: Option<&str>, exit: Exit) -> Map<String, Value> {
        let parts = self.message.as_ref().map(|message| &message["parts"]);
        let mut members = self.known();
        members.append(&mut object([
            ("message", json!(message)),
            ("parts", json!(parts)),
            ("artifacts", json!(self.artifacts)),
            ("metadata", json!(self.metadata)),
            ("exit", json!(exit as u8)),
        ]));
        members
    }
}

fn object<const N: usize>(members: [(&str, Value); N]) -> Map<String, Value> {
    members.map(|(name, value)| (name.to_owned(), value)).into_iter().collect()
}

/// True if the parts `known` begin with the parts `new`, independent of the chunk boundaries.
fn continues(known: &Value, new: &Value) -> bool {
    let joined = |parts: &Value| {
        let mut joined = Vec::new();
        parts.as_array().into_iter().flatten().for_each(|part| append(&mut joined, part));
        joined
    };
    let (known, new) = (joined(known), joined(new));
    let Some((last, begin)) = new.split_last() else { return true };
    let Some(rest) = known.strip_prefix(begin) else { return false };
    let grows = |known: &Value| {
        let (long, short) = (known["text"].as_str(), last["text"].as_str());
        known == last || long.zip(short).is_some_and(|(long, short)| long.starts_with(short))
    };
    rest.first().is_some_and(grows)
}

/// Appends a part, and merges adjacent texts to one.
fn append(parts: &mut Vec<Value>, part: &Value) {
    // The metadata of 0.3 has the file name and the media type of a text, which its first part has.
    let is_plain = |part: &Value| {
        let mut others = part["metadata"].as_object().into_iter().flat_map(Map::keys);
        part["kind"] == "text" && others.all(|name| ["filename", "mediaType"].contains(&&**name))
    };
    let name = &part["metadata"]["filename"];
    let is_alike = |last: &&mut Value| {
        let is_same_file = name.is_null() || *name == last["metadata"]["filename"];
        is_plain(last) && is_plain(part) && is_same_file
    };
    if let Some(last) = parts.last_mut().filter(is_alike)
        && let (Some(Value::String(text)), Some(more)) =
            (last.get_mut("text"), part["text"].as_str())
    {
        text.push_str(more);
    } else {
        parts.push(part.clone());
    }
}

/// Returns the progress message of a stream event, with the reported progress.
pub fn progress_message(event: &Value) -> Option<String> {
    let status = &event["status"];
    if status["state"] != "working" {
        return None;
    }
    let message = status["message"].is_object().then(|| parts_text(&status["message"]["parts"]));
    progress::status_text(event["metadata"].as_object(), message)
}

/// Combines the agent's failure message with the agent's suggested fix.
pub fn with_fix(message: String, fix: Option<&str>) -> String {
    match fix.filter(|fix| !fix.trim().is_empty()) {
        Some(fix) => format!("{message}\nfix: {fix}"),
        None => message,
    }
}

/// True if `text` contains `words` between spaces or at an end.
fn contains_words(text: &str, words: &str) -> bool {
    text.match_indices(words).any(|(at, _)| {
        let (before, after) = (&text[..at], &text[at + words.len()..]);
        (before.is_empty() || before.ends_with(' ')) && (after.is_empty() || after.starts_with(' '))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[expect(clippy::needless_pass_by_value, reason = "each test makes its own")]
    fn chunk(part: Value, append: bool) -> Value {
        json!({ "kind": "artifact-update", "append": append, "taskId": "t", "contextId": "c",
            "artifact": { "artifactId": "a", "name": "notes", "parts": [part] } })
    }

    fn made(told: &TaskStateSnapshot) -> String {
        told.artifacts.iter().map(|made| parts_text(&made["parts"])).collect()
    }

    fn status(state: &str, said: Option<&str>) -> Value {
        let message = said
            .map(|said| json!({ "kind": "message", "parts": [{ "kind": "text", "text": said }] }));
        json!({ "kind": "status-update", "taskId": "t", "contextId": "c", "metadata": { state: 1 },
            "status": { "state": state, "message": message } })
    }

    #[test]
    fn streamed_pieces_accumulate_to_task() {
        let text = |text: &str| json!({ "kind": "text", "text": text });
        let file = json!({ "kind": "file", "file": { "name": "a.bin", "bytes": "AP8=" } });
        let mut told = TaskStateSnapshot::default();
        told.apply(&json!({ "kind": "task", "id": "t", "contextId": "c", "status": { "state": "submitted" } }));
        for event in [
            status("working", Some("thinking")),
            chunk(text("one "), false),
            chunk(text("two"), true),
            chunk(file, true),
            chunk(text("three"), true),
        ] {
            told.apply(&event);
        }
        assert_eq!((told.exit, told.last_message()), (None, None), "it is at work");
        told.apply(&status("completed", Some("done")));
        assert_eq!(told.last_words().as_deref(), Some("done"));
        insta::assert_snapshot!(Value::Object(told.json_members(told.last_message().as_deref(), Exit::Done)), @r#"{"artifacts":[{"artifactId":"a","name":"notes","parts":[{"kind":"text","text":"one two"},{"file":{"bytes":"AP8=","name":"a.bin"},"kind":"file"},{"kind":"text","text":"three"}]}],"contextId":"c","exit":0,"message":"done","metadata":{"completed":1,"working":1},"parts":[{"kind":"text","text":"done"}],"state":"completed","taskId":"t"}"#);
    }

    #[test]
    fn repeated_task_keeps_known_pieces() {
        let text = |text: &str| json!({ "kind": "text", "text": text });
        let task = |state: &str, parts: Option<Value>| {
            let made = parts.map(|parts| json!([{ "artifactId": "a", "parts": parts }]));
            json!({ "kind": "task", "id": "t", "contextId": "", "status": { "state": state },
                "artifacts": made })
        };
        for (repeated, expected) in [
            (task("working", None), "one two"),
            (task("working", Some(json!([]))), "one two"),
            (task("working", Some(json!([text("on")]))), "one two"),
            (task("working", Some(json!([text("one "), text("and ")]))), "one and two"),
            (task("working", Some(json!([text("other ")]))), "other two"),
        ] {
            let mut told = TaskStateSnapshot::default();
            told.apply(&chunk(text("one "), false));
            told.apply(&repeated);
            told.apply(&chunk(text("two"), true));
            told.apply(&task("completed", None));
            assert_eq!(made(&told), expected, "{repeated}");
            assert_eq!(told.context.as_deref(), Some("c"), "an empty id names no conversation");
            told.apply(&task("completed", Some(json!([text("one")]))));
            assert_eq!(made(&told), "one", "the last state counts");
        }
    }

    #[test]
    fn relayed_question_names_asking_agents() {
        let parts = json!([
            { "kind": "text", "text": "a > b asks:\n", "metadata": { "note": "asked_by" } },
            { "kind": "text", "text": "May I?" },
            { "kind": "data", "data": { "tool": "Bash" } },
        ]);
        let question = json!({ "id": "q", "kind": "permission", "path": ["a", "b"] });
        let message =
            json!({ "parts": parts, "metadata": { "question": { "kind": "permission" } } });
        let mut told = TaskStateSnapshot::default();
        told.apply(&json!({ "kind": "status-update", "taskId": "t", "contextId": "c",
            "status": { "state": "input-required", "message": message },
            "metadata": { "question": question } }));
        assert_eq!(told.relay_path(), ["a", "b"]);
        assert_eq!(told.question_text().as_deref(), Some("May I?"));
        assert_eq!(told.last_message().as_deref(), Some("a > b asks:\nMay I?"));
        assert_eq!(told.question(), Some("q"));
    }

    #[test]
    fn working_status_clears_exit() {
        let mut told = TaskStateSnapshot::default();
        told.apply(&status("input-required", Some("which?")));
        assert_eq!(
            (told.exit, told.last_message().as_deref()),
            (Some(Exit::NeedsInput), Some("which?"))
        );
        told.apply(&status("working", None));
        assert_eq!(told.exit, None);
    }

    #[test]
    fn last_words_omit_repeated_artifact_text() {
        let words = |made: &str, said: &str| {
            let mut told = TaskStateSnapshot::default();
            told.apply(&chunk(json!({ "kind": "text", "text": made }), false));
            told.apply(&status("completed", Some(said)));
            told.last_words().is_some()
        };
        let all = [
            ("The answer is 42.\n", "The answer is 42."),
            ("# Plan\n\nFirst this.\n\nThen that.", "Then that."),
            ("First this. Then that.", "First this."),
            ("abandoned", "done"),
            ("abandoned", "I abandoned it."),
            ("", "done"),
            ("x", " \n"),
            ("## Who knows `a`\n\nAsk **b** first.\n\n| b | 1 |", "`a`: Ask **b** first."),
            ("It never works. All is well.", "a: it works."),
            ("All ran. See the log.", "2 tests failed: See the log."),
        ];
        let shown = all.map(|(made, said)| words(made, said));
        assert_eq!(shown, [false, false, false, true, true, true, false, false, true, true]);
    }

    #[test]
    fn worktree_is_named_by_repository() {
        let mut told = TaskStateSnapshot::default();
        let asked = "write /d/worktrees/t/tree/src/a.rs, not /d/worktrees/t/tree.bak?";
        assert_eq!(told.with_short_paths(asked), asked);
        told.apply(&json!({ "kind": "task", "id": "t", "status": { "state": "working" },
            "metadata": { "worktree": { "path": "/d/worktrees/t/tree", "repository": "/src/shop" } } }));
        let short = "write <worktree>/src/a.rs, not /d/worktrees/t/tree.bak?\n(<worktree> is a worktree of /src/shop)";
        assert_eq!(told.with_short_paths(asked), short);
        let misleading = "rm <worktree>/a /d/worktrees/t/tree/b";
        assert_eq!(told.with_short_paths(misleading), misleading);
    }

    #[test]
    fn progress_is_shown_only_while_working() {
        let event = |state: &str, said: &str| {
            let status = json!({ "state": state, "message": { "parts": [{ "kind": "text", "text": said }] } });
            json!({ "kind": "status-update", "status": status, "metadata": { "progress": { "percent": 40 } } })
        };
        assert_eq!(progress_message(&event("working", "compiles")).unwrap(), "40 % · compiles");
        assert_eq!(progress_message(&event("completed", "done")), None);
    }

    #[test]
    fn fix_follows_failure_message() {
        let said = |fix| with_fix("nobody is logged in".to_owned(), fix);
        assert_eq!(said(Some("x login")), "nobody is logged in\nfix: x login");
        assert_eq!((said(Some(" ")), said(None)), (said(None), "nobody is logged in".to_owned()));
    }
}
