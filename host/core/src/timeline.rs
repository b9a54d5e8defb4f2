//! Timeline of a task: the events of its log as entries of one line each.

use crate::{
    access_control::Principal,
    task::{
        metadata::REASON,
        tree_budget::{COST_USD, USAGE},
    },
    text::plain_text::line,
};
use a2a_hub_protocol::{
    event::{ArtifactUpdate, Created, SequencedEvent, StatusUpdate, TaskEvent},
    id::{AgentId, ArtifactId, QuestionId, TaskId},
    message::{Content, Message, Metadata, Part, Role},
    operation::{TimelineCursor, TimelineEntry, TimelineKind, TimelinePage},
    permission::RuleAnswer,
    question::{self, Question},
};
use serde_json::Value;

/// Most characters of an entry's text.
const MAX_TEXT: usize = 300;

/// Most characters of a name within a text.
const MAX_NAME: usize = 100;

/// Metadata member of a status with an agent's report of a tool.
const TOOL: &str = "tool";

/// A page of a timeline, event by event.
#[derive(Debug)]
pub struct Timeline {
    begin: TimelineCursor,
    position: TimelineCursor,
    entries: Vec<TimelineEntry>,
    /// Artifact that the last entry is about, if it is about one.
    written: Option<WrittenArtifact>,
}

/// Consecutive parts of one artifact: one entry.
#[derive(Debug)]
struct WrittenArtifact {
    id: ArtifactId,
    name: String,
    events: u64,
    bytes: usize,
}

impl Timeline {
    /// Begins a page after a position.
    pub fn after(begin: TimelineCursor) -> Self {
        let position = begin.clone();
        Self { begin, position, entries: Vec::new(), written: None }
    }

    /// Number of the last event that the page covers.
    pub fn seq(&self) -> u64 {
        self.position.seq
    }

    /// Adds the next event, which `by` requested.
    pub fn add(&mut self, event: &SequencedEvent, by: Option<&Principal>) {
        let time = time_of(&event.event);
        // A clock may jump back; the positions of pages do not.
        if let Some(time) = time.filter(|time| *time > self.position.at.as_str()) {
            time.clone_into(&mut self.position.at);
        }
        self.position.seq = event.seq;
        let at = time.unwrap_or(&self.position.at).to_owned();
        let written = self.written.take();
        let entry = match &event.event {
            TaskEvent::Created(created) => of_creation(created, at),
            TaskEvent::Status(update) => of_status(update, at),
            TaskEvent::Artifact(update) => self.of_artifact(update, written, at),
            TaskEvent::Input(message) => of_input(message, self.position.question.take(), at),
            TaskEvent::Reply(message) => {
                TimelineEntry::new(TimelineKind::Message, at, of_message(message))
            }
        };
        if entry.kind == TimelineKind::Question {
            self.position.question.clone_from(&entry.question_id);
        } else if matches!(event.event, TaskEvent::Status(_)) {
            // The agent goes on, so that no question is open.
            self.position.question = None;
        }
        let by = entry.by.clone().or_else(|| by.map(Principal::to_log));
        self.entries.push(TimelineEntry { seq: Some(event.seq), by, ..entry });
    }

    /// Entry for a part of an artifact. It takes the place of the entry for the part before.
    fn of_artifact(
        &mut self,
        update: &ArtifactUpdate,
        before: Option<WrittenArtifact>,
        at: String,
    ) -> TimelineEntry {
        let ArtifactUpdate { artifact, append, .. } = update;
        let name = artifact.name.as_deref().filter(|name| !name.is_empty());
        let name = line(name.unwrap_or(artifact.artifact_id.as_str()), MAX_NAME);
        let mut written =
            WrittenArtifact { id: artifact.artifact_id.clone(), name, events: 1, bytes: 0 };
        if let Some(before) = before.filter(|before| *append && before.id == written.id) {
            self.entries.pop();
            written = WrittenArtifact { events: before.events + 1, ..before };
        }
        written.bytes += artifact.parts.iter().map(size).sum::<usize>();
        let WrittenArtifact { name, events, bytes, .. } = &written;
        let entry =
            TimelineEntry::new(TimelineKind::Artifact, at, format!("{name}, {bytes} bytes"));
        let entry = TimelineEntry { events: (*events > 1).then_some(*events), ..entry };
        self.written = Some(written);
        entry
    }

    /// Ends the page, with those children, oldest first, that were created during it: until its
    /// last event, or any time later if `is_end`, at the end of the log.
    pub fn finish<'c>(
        self,
        children: impl IntoIterator<Item = (&'c str, &'c TaskId, &'c AgentId)>,
        is_end: bool,
    ) -> TimelinePage {
        let Self { begin, position, mut entries, .. } = self;
        for (created, task, agent) in children {
            let is_in_page = created > begin.at.as_str() && (is_end || created <= &*position.at);
            if !is_in_page {
                continue;
            }
            let text = format!("gave work to {agent}");
            let index = entries.partition_point(|entry| entry.at.as_str() <= created);
            entries.insert(
                index,
                TimelineEntry {
                    task_id: Some(task.clone()),
                    agent_id: Some(agent.clone()),
                    ..TimelineEntry::new(TimelineKind::Child, created.to_owned(), text)
                },
            );
        }
        TimelinePage { entries, next: (!is_end).then(|| position.to_string()) }
    }
}

/// Time of an event, if it has one.
fn time_of(event: &TaskEvent) -> Option<&str> {
    let time = match event {
        TaskEvent::Created(created) => &created.task.status.timestamp,
        TaskEvent::Status(update) => &update.status.timestamp,
        TaskEvent::Artifact(_) | TaskEvent::Input(_) | TaskEvent::Reply(_) => return None,
    };
    Some(time)
}

fn of_creation(created: &Created, at: String) -> TimelineEntry {
    let request = created.task.history.first().map(of_message).unwrap_or_default();
    let parent = created.parent.as_ref().map(|parent| parent.task.clone());
    TimelineEntry {
        agent_id: Some(created.agent.clone()),
        task_id: parent,
        state: Some(created.task.status.state),
        ..TimelineEntry::new(TimelineKind::Created, at, request)
    }
}

fn of_status(update: &StatusUpdate, at: String) -> TimelineEntry {
    let StatusUpdate { status, metadata } = update;
    let text = status.message.as_ref().map(of_message).unwrap_or_default();
    let fact = |name: &str| metadata.as_ref().and_then(|facts: &Metadata| facts.get(name));
    let mut entry = TimelineEntry::new(TimelineKind::State, at, text);
    entry.state = Some(status.state);
    if let Some(answer) = RuleAnswer::from_metadata(metadata.as_ref()) {
        entry.kind = TimelineKind::Rule;
        entry.text = match entry.text.is_empty() {
            true => answer.effect.outcome().to_owned(),
            false => entry.text,
        };
        entry.question_id = Some(answer.id);
        entry.rule = Some(line(&answer.rule, MAX_NAME));
        return entry;
    }
    if status.state.is_interrupted() {
        entry.kind = TimelineKind::Question;
        if let Some(question) = Question::from_metadata(metadata.as_ref()) {
            entry.question_id = Some(question.id);
            entry.task_id = question.task;
            entry.agent_id = question.agent;
        }
        return entry;
    }
    if status.state.is_final() {
        let reason = fact(REASON).and_then(Value::as_str).map(|reason| line(reason, MAX_NAME));
        if let Some(reason) = reason {
            entry.text = match entry.text.is_empty() {
                true => reason,
                false => line(&format!("{reason}: {}", entry.text), MAX_TEXT),
            };
        }
    } else if let Some(tool) = fact(TOOL).filter(|tool| tool.is_object()) {
        entry.kind = TimelineKind::Tool;
        entry.text = of_tool(tool);
    } else if !entry.text.is_empty() {
        entry.kind = TimelineKind::Message;
    } else if let Some(usage) = of_usage(fact(USAGE), fact(COST_USD)) {
        entry.kind = TimelineKind::Usage;
        entry.text = usage;
    }
    entry
}

/// Message of the client, or of the agent at the end of a run that was not the last one. Without
/// the id of a question, a client's message answers the open one.
fn of_input(message: &Message, open: Option<QuestionId>, at: String) -> TimelineEntry {
    let answered = question::answered(message).ok().flatten();
    let answered = answered.or_else(|| open.filter(|_| message.role == Role::User));
    let is_answer = answered.is_some() && message.role == Role::User;
    let kind = if is_answer { TimelineKind::Answer } else { TimelineKind::Message };
    TimelineEntry { question_id: answered, ..TimelineEntry::new(kind, at, of_message(message)) }
}

/// Text of a message in one line; the kinds of its parts, if it has no text.
fn of_message(message: &Message) -> String {
    let text = line(&message.joined_text(), MAX_TEXT);
    if !text.is_empty() {
        return text;
    }
    let kinds = message.parts.iter().filter_map(|part| match &part.content {
        Content::Text(_) => None,
        Content::Raw(_) => Some("a file"),
        Content::Url(_) => Some("a link"),
        Content::Data(_) => Some("data"),
    });
    line(&kinds.collect::<Vec<_>>().join(", "), MAX_TEXT)
}

/// Name and status of a tool; an agent may report anything.
fn of_tool(tool: &Value) -> String {
    let member = |name| tool.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
    let title = member("title").or_else(|| member("name")).unwrap_or("a tool");
    match member("status") {
        Some(status) => {
            format!("{} ({})", line(title, MAX_TEXT - MAX_NAME), line(status, MAX_NAME / 2))
        }
        None => line(title, MAX_TEXT),
    }
}

/// Tokens and cost of a report; none if it has neither.
fn of_usage(usage: Option<&Value>, cost: Option<&Value>) -> Option<String> {
    let tokens = |name: &str, label: &str| {
        let tokens = usage?.get(name)?.as_u64()?;
        Some(format!("{tokens} {label}"))
    };
    let cost = cost.and_then(Value::as_f64).map(|dollars| format!("${dollars:.4}"));
    let parts = [tokens("input_tokens", "tokens in"), tokens("output_tokens", "out"), cost];
    let parts: Vec<_> = parts.into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// Size of a part in bytes, as text.
fn size(part: &Part) -> usize {
    match &part.content {
        Content::Text(text) | Content::Url(text) => text.len(),
        Content::Raw(bytes) => bytes.len(),
        Content::Data(value) => value.to_string().len(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use a2a_hub_protocol::{
        id::ContextId,
        task::{Artifact, Task, TaskState, TaskStatus},
    };
    use serde_json::json;

    fn at(second: u64) -> String {
        format!("2026-01-31T12:00:{second:02}.000Z")
    }

    fn created(text: &str) -> TaskEvent {
        let task = Task {
            id: TaskId::new("t"),
            context_id: ContextId::new("c"),
            status: TaskStatus { state: TaskState::Submitted, message: None, timestamp: at(1) },
            artifacts: Vec::new(),
            history: vec![Message::text(Role::User, text)],
            metadata: None,
        };
        TaskEvent::Created(Box::new(Created::new(AgentId::parse("echo").unwrap(), task)))
    }

    fn status(state: TaskState, second: u64, text: &str, facts: &Value) -> TaskEvent {
        let message = (!text.is_empty()).then(|| Message::text(Role::Agent, text));
        let status = TaskStatus { state, message, timestamp: at(second) };
        TaskEvent::Status(StatusUpdate { status, metadata: facts.as_object().cloned() })
    }

    fn chunk(id: &str, text: &str, append: bool) -> TaskEvent {
        let artifact = Artifact::new(ArtifactId::new(id), vec![Part::text(text)]);
        TaskEvent::Artifact(ArtifactUpdate { artifact, append, last_chunk: false })
    }

    fn input(text: &str, facts: &Value) -> TaskEvent {
        let metadata = facts.as_object().cloned();
        TaskEvent::Input(Message { metadata, ..Message::text(Role::User, text) })
    }

    fn log() -> Vec<TaskEvent> {
        use TaskState::{Completed, InputRequired, Working};
        let id = "01a1fc8f-a111-7715-9c95-8a642d72e498";
        let question = json!({ "question": { "id": id, "kind": "permission" } });
        let tool =
            json!({ "tool": { "id": "1", "title": "Edit \u{1b}[2J a.rs", "status": "done" } });
        let usage = json!({ "usage": { "input_tokens": 12, "output_tokens": 3 }, "cost_usd": 0.5 });
        vec![
            created("fix the\nparser"),
            status(Working, 2, "", &json!(null)),
            status(Working, 3, "I read it \u{202e}now", &json!(null)),
            status(Working, 4, "", &tool),
            status(InputRequired, 5, "May I?", &question),
            input("yes", &json!(null)),
            status(Working, 6, "", &json!({ "question": null })),
            chunk("answer", "one", false),
            chunk("answer", "two", true),
            chunk("other", "x", true),
            status(Working, 7, "", &usage),
            status(Completed, 8, "done", &json!({ "reason": "timeout" })),
        ]
    }

    fn page(after: TimelineCursor, limit: usize) -> TimelinePage {
        let log = log();
        let from = usize::try_from(after.seq).unwrap();
        let mut timeline = Timeline::after(after);
        for (index, event) in log.iter().enumerate().skip(from).take(limit) {
            let (task, context) = (TaskId::new("t"), ContextId::new("c"));
            let by = matches!(event, TaskEvent::Created(_) | TaskEvent::Input(_));
            let seq = index as u64 + 1;
            let event = SequencedEvent { task, context, seq, event: event.clone() };
            timeline.add(&event, by.then_some(&Principal::Operator));
        }
        let is_end = timeline.seq() == log.len() as u64;
        let (child, late) = (TaskId::new("child"), TaskId::new("late"));
        let agent = AgentId::parse("codex").unwrap();
        let (first, last) = (at(4), at(30));
        let children = [(first.as_str(), &child, &agent), (last.as_str(), &late, &agent)];
        timeline.finish(children, is_end)
    }

    fn lines(timeline: &TimelinePage) -> Vec<String> {
        let line = |entry: &TimelineEntry| {
            let seq = entry.seq.map(|seq| seq.to_string()).unwrap_or_default();
            let by = entry.by.as_deref().map(|by| format!(" by {by}")).unwrap_or_default();
            let mark = if entry.question_id.is_some() { " ?" } else { "" };
            let kind = json!(entry.kind);
            let kind = kind.as_str().unwrap_or_default();
            let line = format!("{seq:2} {} {kind} {}{by}{mark}", &entry.at[17..19], entry.text);
            line.trim_end().to_owned()
        };
        timeline.entries.iter().map(line).collect()
    }

    #[test]
    fn each_event_is_one_plain_line() {
        let all = page(TimelineCursor::default(), 100);
        insta::assert_snapshot!(lines(&all).join("\n"), @r"
        1  01 created fix the parser by operator
        2  02 state
        3  03 message I read it now
        4  04 tool Edit [2J a.rs (done)
           04 child gave work to codex
        5  05 question May I? ?
        6  05 answer yes by operator ?
        7  06 state
        9  06 artifact answer, 6 bytes
        10 06 artifact other, 1 bytes
        11 07 usage 12 tokens in, 3 out, $0.5000
        12 08 state timeout: done
           30 child gave work to codex
        ");
        assert_eq!(all.next, None);
        assert_eq!(all.entries[8].events, Some(2));
    }

    /// Pages have the same entries as the whole, and children once, but an artifact's parts are
    /// merged within a page only.
    #[test]
    fn pages_are_the_whole_in_parts() {
        let merged = |entries: &[TimelineEntry]| {
            entries
                .iter()
                .filter(|it| it.kind != TimelineKind::Artifact)
                .cloned()
                .collect::<Vec<_>>()
        };
        let whole = merged(&page(TimelineCursor::default(), 100).entries);
        for limit in 1..=13 {
            let (mut paged, mut cursor) = (Vec::new(), TimelineCursor::default());
            loop {
                let TimelinePage { entries, next } = page(cursor, limit);
                paged.extend(entries);
                let Some(next) = next else { break };
                cursor = TimelineCursor::parse(&next).unwrap();
            }
            assert_eq!(merged(&paged), whole, "{limit}");
        }
    }

    #[test]
    fn odd_reports_are_one_line() {
        let long = "x".repeat(10_000);
        for facts in [
            json!({ "tool": { "title": 7, "status": { "a": 1 } }, "permission": 7 }),
            json!({ "tool": { "title": long, "status": long } }),
            json!({ "usage": [1], "cost_usd": "free", "question": { "id": 7 } }),
        ] {
            for state in TaskState::ALL {
                let TaskEvent::Status(update) = status(state, 1, &long, &facts) else { panic!() };
                let entry = of_status(&update, at(1));
                let length = entry.text.chars().count();
                assert!(length <= MAX_TEXT + MAX_NAME && !entry.text.contains('\n'), "{entry:?}");
            }
        }
    }
}
