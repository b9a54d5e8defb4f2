//! Message of a notifier: its words, and its forms for programs and servers.
//!
//! Titles and texts come from clients and agents. Each is redacted, then made a plain line: neither
//! a terminal, a chat program nor a header obeys anything in them.

use super::item::{AttentionId, DueItem, NotifyKind};
use crate::text::{plain_text::line, redact::Secrets};
use a2a_hub_protocol::id::{AgentId, TaskId};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::fmt::Write as _;

/// Most items that a message names; further ones are counted.
const MAX_ITEMS: usize = 20;

/// Longest title of an item, in characters.
const MAX_TITLE: usize = 120;

/// Longest text of an item, in characters.
const MAX_TEXT: usize = 300;

/// Message about one or more items.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NotifyMessage {
    /// Id, the same over all attempts to deliver it.
    pub id: String,
    /// Name of the notifier.
    pub notifier: String,
    /// Time at which it was written (RFC 3339).
    pub at: String,
    /// Items that it names, the most urgent first; none in a test.
    pub items: Vec<NotifyItem>,
    /// Number of further items.
    pub more: usize,
}

/// Item in a message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NotifyItem {
    /// Kind.
    pub kind: NotifyKind,
    /// Agent that asks, or of the notice's task.
    pub agent_id: AgentId,
    /// Task.
    pub task_id: TaskId,
    /// Id of the question.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub question_id: Option<String>,
    /// Number of the notice.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub notice_id: Option<u64>,
    /// Request that the task works on, in one line.
    pub title: String,
    /// Text of the question or notice, in one line; only with `content = true`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

impl NotifyMessage {
    /// Message about these items. `has_content` adds the texts of questions and notices; `secrets`
    /// are redacted in everything.
    pub fn about(
        (id, notifier, at): (String, &str, String),
        due: &[DueItem<'_>],
        has_content: bool,
        secrets: &Secrets,
    ) -> Self {
        let clean = |text: &str, max| line(&secrets.hide(text), max);
        let item = |DueItem { kind, item, .. }: &DueItem<'_>| {
            let (question_id, notice_id) = match &item.id {
                AttentionId::Question(id) => (Some(line(id.as_str(), MAX_TITLE)), None),
                AttentionId::Notice(number) => (None, Some(*number)),
            };
            let text = has_content.then(|| clean(&item.text, MAX_TEXT));
            NotifyItem {
                kind: *kind,
                agent_id: item.agent.clone(),
                task_id: item.task.clone(),
                question_id,
                notice_id,
                title: clean(&item.title, MAX_TITLE),
                text: text.filter(|text| !text.is_empty()),
            }
        };
        let items = due.iter().take(MAX_ITEMS).map(item).collect();
        let more = due.len().saturating_sub(MAX_ITEMS);
        Self { id, notifier: notifier.to_owned(), at, items, more }
    }

    /// Test message, which is about nothing.
    pub fn test(id: String, notifier: &str, at: String) -> Self {
        Self { id, notifier: notifier.to_owned(), at, items: Vec::new(), more: 0 }
    }

    /// Kind of the most urgent item; none in a test.
    pub fn kind(&self) -> Option<NotifyKind> {
        self.items.first().map(|item| item.kind)
    }

    /// Title in one line, such as `codex asks for permission`.
    pub fn title(&self) -> String {
        match &self.items[..] {
            [] => "Test message of a2a-hub".to_owned(),
            [only] if self.more == 0 => only.headline(),
            items => {
                let asks = |item: &&NotifyItem| item.kind <= NotifyKind::Interrupted;
                let count = items.len() + self.more;
                let open = items.iter().filter(asks).count();
                match open {
                    0 => format!("{count} notices of a2a-hub"),
                    open if open == count => format!("{count} questions wait for you"),
                    _ => format!("{count} items need you"),
                }
            }
        }
    }

    /// Lines about the items, without angle brackets: chat programs read links, mentions and markup
    /// in them.
    pub fn body(&self) -> String {
        if self.items.is_empty() {
            return format!("The notifier {} works.", self.notifier);
        }
        let mut body = String::new();
        let is_single = self.items.len() == 1 && self.more == 0;
        for item in &self.items {
            if !body.is_empty() {
                body.push('\n');
            }
            let title = if item.title.is_empty() { "(no text)" } else { &item.title };
            // Writing to a string cannot fail.
            let _ = match is_single {
                true => write!(body, "{title}"),
                false => write!(body, "{}: {title}", item.headline()),
            };
            if let Some(text) = &item.text {
                let _ = write!(body, "\n{text}");
            }
        }
        if self.more > 0 {
            let _ = write!(body, "\nand {} more", self.more);
        }
        body.replace('<', "‹").replace('>', "›")
    }

    /// JSON form, for programs and webhooks. Its member `text` has the title and the body: Slack's
    /// and Mattermost's incoming webhooks show it.
    pub fn to_json(&self) -> Value {
        let Self { id, notifier, at, items, more } = self;
        json!({
            "id": id,
            "notifier": notifier,
            "at": at,
            "test": items.is_empty(),
            "title": self.title(),
            "text": format!("{}\n{}", self.title(), self.body()),
            "count": items.len() + more,
            "items": items,
        })
    }

    /// Priority of ntfy, from 1 to 5 (ntfy's documentation, "Message priority").
    pub fn priority(&self) -> u8 {
        match self.kind() {
            Some(NotifyKind::Expiring) => 5,
            Some(
                NotifyKind::Permission
                | NotifyKind::Input
                | NotifyKind::Login
                | NotifyKind::Interrupted,
            ) => 4,
            Some(NotifyKind::Failed | NotifyKind::Quota | NotifyKind::Conflict) | None => 3,
            Some(NotifyKind::Finished) => 2,
        }
    }

    /// Tags of ntfy: the kinds in the message, each once.
    pub fn tags(&self) -> Vec<&'static str> {
        let mut tags = vec!["a2a-hub"];
        for item in &self.items {
            if !tags.contains(&item.kind.word()) {
                tags.push(item.kind.word());
            }
        }
        tags
    }
}

impl NotifyItem {
    /// Agent and kind in words.
    fn headline(&self) -> String {
        let agent = &self.agent_id;
        match self.kind {
            NotifyKind::Expiring => format!("{agent} waits for an answer that is due soon"),
            NotifyKind::Permission => format!("{agent} asks for permission"),
            NotifyKind::Input => format!("{agent} asks a question"),
            NotifyKind::Login => format!("{agent} needs a login"),
            NotifyKind::Interrupted => format!("{agent} was interrupted and asks again"),
            NotifyKind::Failed => format!("{agent} failed"),
            NotifyKind::Quota => format!("{agent} has used up a quota"),
            NotifyKind::Conflict => format!("{agent} made changes that conflict"),
            NotifyKind::Finished => format!("{agent} has finished"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::notify::plan::{AttentionItem, NotifierState, NotifyRules, NotifyStep};
    use a2a_hub_protocol::id::QuestionId;
    use std::collections::BTreeSet;

    fn item(number: u64, kind: NotifyKind, title: &str, text: &str) -> AttentionItem {
        let id = match kind <= NotifyKind::Interrupted {
            true => AttentionId::Question(QuestionId::new(format!("q{number}"))),
            false => AttentionId::Notice(number),
        };
        AttentionItem {
            id,
            kind,
            agent: AgentId::parse("codex").unwrap(),
            path: Vec::new(),
            task: TaskId::new("t"),
            title: title.to_owned(),
            text: text.to_owned(),
            at_ms: 0,
            is_expiring: false,
            is_set_aside: false,
        }
    }

    fn message(items: &[AttentionItem], has_content: bool) -> NotifyMessage {
        let rules =
            NotifyRules { kinds: NotifyKind::ALL.into(), agents: BTreeSet::new(), after_ms: 0 };
        let state = NotifierState::default();
        let NotifyStep::Compose(due) = state.step(&rules, items, 10_000, None) else {
            panic!("they are due")
        };
        let secrets = Secrets::new([("TOKEN".to_owned(), "hunter2-hunter2".to_owned())]);
        let head = ("m1".to_owned(), "phone", "2026".to_owned());
        NotifyMessage::about(head, &due, has_content, &secrets)
    }

    #[test]
    fn message_has_title_and_agent_only() {
        let asked = [item(1, NotifyKind::Permission, "fix the parser", "rm -rf /")];
        let message = message(&asked, false);
        assert_eq!(message.title(), "codex asks for permission");
        assert_eq!(message.body(), "fix the parser");
        let written = message.to_json();
        assert_eq!(written["text"], "codex asks for permission\nfix the parser");
        assert_eq!(written["items"][0]["questionId"], "q1");
        assert!(!written.to_string().contains("rm -rf"), "{written}");
        assert_eq!((message.priority(), message.tags()), (4, vec!["a2a-hub", "permission"]));
        let read: NotifyMessage =
            serde_json::from_value(serde_json::to_value(&message).unwrap()).unwrap();
        assert_eq!(read, message);
    }

    #[test]
    fn content_is_redacted_and_plain() {
        let title = "use hunter2-hunter2\r\nX-Evil: 1 \u{1b}[2J<!channel>";
        let text = format!("\u{202e}key hunter2-hunter2 {}", "x".repeat(1_000));
        let message = message(&[item(1, NotifyKind::Failed, title, &text)], true);
        let written = message.to_json().to_string() + &message.body() + &message.title();
        for hidden in ["hunter2", "\u{1b}", "\\u001b", "\u{202e}", "\r", "\\r", "<!channel"] {
            let shown = message.body();
            assert!(!shown.contains(hidden), "{hidden:?}: {shown}");
        }
        assert!(!written.contains("hunter2") && !written.contains("\\u001b"), "{written}");
        assert!(message.body().contains("use [redacted TOKEN] X-Evil: 1 [2J‹!channel›"));
        assert!(message.body().chars().count() <= MAX_TITLE + MAX_TEXT + 2);
    }

    #[test]
    fn several_items_make_bounded_message() {
        let asked: Vec<_> =
            (0..50).map(|n| item(n, NotifyKind::Input, &format!("{n}"), "")).collect();
        let many = message(&asked, true);
        assert_eq!((many.items.len(), many.more), (MAX_ITEMS, 30));
        assert!(many.body().ends_with("\nand 30 more"), "{}", many.body());
        assert_eq!(many.to_json()["count"], 50);
        let mixed = [
            item(1, NotifyKind::Finished, "report", "done"),
            item(2, NotifyKind::Permission, "", "may I?"),
        ];
        let mixed = message(&mixed, false);
        assert_eq!(mixed.title(), "2 items need you");
        let lines = "codex asks for permission: (no text)\ncodex has finished: report";
        assert_eq!((mixed.body().as_str(), mixed.priority()), (lines, 4));
        let notices = [1, 2].map(|n| item(n, NotifyKind::Failed, "x", ""));
        assert_eq!(message(&notices, false).title(), "2 notices of a2a-hub");
        let asked = [1, 2].map(|n| item(n, NotifyKind::Login, "x", ""));
        assert_eq!(message(&asked, false).title(), "2 questions wait for you");
    }

    #[test]
    fn test_message_names_notifier() {
        let test = NotifyMessage::test("m".to_owned(), "phone", "2026".to_owned());
        assert_eq!(test.to_json()["test"], true);
        assert_eq!((test.priority(), test.tags()), (3, vec!["a2a-hub"]));
        assert_eq!(test.body(), "The notifier phone works.");
    }
}
