//! Open questions of all tasks: their order, their description, and the rule for answers that name
//! no question.

use crate::text::plain_text::line;
use a2a_hub_protocol::{
    id::QuestionId,
    message::{Message, Metadata},
    operation::OpenQuestion,
    question::{self, QUESTION, QuestionKind},
    task::Task,
};
use std::time::Duration;

/// Longest text of a question in a list, in bytes: the question itself has the rest.
const MAX_TEXT: usize = 8_192;

/// Longest request of a task in a list, in characters.
const MAX_REQUEST: usize = 200;

/// Longest choice, and longest name of a tool, in characters.
const MAX_WORDS: usize = 100;

/// Time before a deadline from which a question comes before all others: one hour, in milliseconds.
const SOON_MS: u64 = 60 * 60 * 1_000;

/// Time after a question was answered by its id, withdrawn or not answered in time, in which a
/// message that names no question cannot allow the next one: its sender may mean the one before.
pub const UNNAMED_ANSWER_PAUSE: Duration = Duration::from_secs(2);

/// True if a message that names no question may answer the open one, which became open `since` the
/// end of the question before it; `None` if there was none, or if that one was answered by a
/// message without a name, too.
pub fn admits_unnamed(open: QuestionKind, since: Option<Duration>) -> bool {
    open != QuestionKind::Permission || since.is_none_or(|since| since >= UNNAMED_ANSWER_PAUSE)
}

/// Text of a question, at most 8 kB.
pub fn text(prompt: &Message) -> String {
    let mut text = prompt.joined_text();
    if text.len() > MAX_TEXT {
        text.truncate(text.floor_char_boundary(MAX_TEXT));
        text.push('…');
    }
    text
}

/// Request that a task works on, in one line.
pub fn request(task: &Task) -> String {
    let first = task.history.first().map(Message::joined_text).unwrap_or_default();
    line(&first, MAX_REQUEST)
}

/// Tool that a prompt asks permission for, and the choices that it offers.
pub fn tool_and_choices(prompt: &Message) -> (Option<String>, Vec<String>) {
    let tool = question::data(prompt).and_then(|data| data["tool"].as_str());
    let choices = question::named_choices(prompt).map(|choice| line(choice, MAX_WORDS));
    (tool.map(|tool| line(tool, MAX_WORDS)), choices.collect())
}

/// Sorts open questions, the most urgent first: those whose deadline is within an hour; then by
/// kind, permissions first; then by age. Those that were set aside come last. `ms_until` returns
/// the time of a deadline in milliseconds from now.
pub fn sort(questions: &mut [OpenQuestion], ms_until: impl Fn(&str) -> u64) {
    questions.sort_by_cached_key(|question| {
        let remaining = question.expires_at.as_deref().map_or(u64::MAX, &ms_until);
        let soon = if remaining <= SOON_MS { remaining } else { u64::MAX };
        let kind = match question.kind {
            QuestionKind::Permission => 0,
            QuestionKind::Auth => 1,
            QuestionKind::Input => 2,
        };
        let age = (question.opened_at.clone(), question.id.as_str().to_owned());
        (question.set_aside, soon, kind, age)
    });
}

/// Metadata of a message that answers the question with this id.
pub fn answer_metadata(id: &QuestionId) -> Metadata {
    Metadata::from_iter([(QUESTION.to_owned(), id.as_str().into())])
}

#[cfg(test)]
mod tests {
    use super::*;
    use a2a_hub_protocol::{
        id::{AgentId, ContextId, TaskId},
        message::{Part, Role},
    };
    use serde_json::json;

    fn question(id: &str, kind: QuestionKind, opened_at: &str, remaining: &str) -> OpenQuestion {
        OpenQuestion {
            id: QuestionId::new(id),
            kind,
            task_id: TaskId::new("t"),
            root_task_id: TaskId::new("t"),
            agent_id: AgentId::parse("codex").unwrap(),
            path: Vec::new(),
            context_id: ContextId::new("c"),
            request: String::new(),
            text: String::new(),
            permission: None,
            tool: None,
            choices: Vec::new(),
            directory: None,
            interrupted: false,
            queued: false,
            opened_at: opened_at.to_owned(),
            expires_at: Some(remaining.to_owned()),
            expiring: false,
            set_aside: false,
        }
    }

    #[test]
    fn urgent_questions_come_first() {
        use QuestionKind::{Auth, Input, Permission};
        let day = "86400000";
        let mut questions = vec![
            OpenQuestion { set_aside: true, ..question("aside", Permission, "01", "1") },
            question("input", Input, "01", day),
            question("login", Auth, "02", day),
            question("newer", Permission, "04", day),
            question("older", Permission, "03", day),
            question("ends", Input, "05", "3600000"),
            question("ends first", Input, "06", "7000"),
        ];
        sort(&mut questions, |remaining| remaining.parse().unwrap());
        let order: Vec<_> = questions.iter().map(|it| it.id.as_str()).collect();
        assert_eq!(order, ["ends first", "ends", "older", "newer", "login", "input", "aside"]);
    }

    #[test]
    fn late_unnamed_yes_allows_nothing() {
        let permission = QuestionKind::Permission;
        for (open, since, admitted) in [
            (permission, None, true),
            (permission, Some(0), false),
            (permission, Some(1_999), false),
            (permission, Some(2_000), true),
            (QuestionKind::Input, Some(0), true),
        ] {
            let since = since.map(Duration::from_millis);
            assert_eq!(admits_unnamed(open, since), admitted, "{open:?} {since:?}");
        }
    }

    #[test]
    fn description_of_prompt_is_bounded() {
        let data = json!({ "tool": "Bash\u{1b}[2J", "choices": ["allow", 1, "x".repeat(500)] });
        let mut prompt = Message::text(Role::Agent, "ä".repeat(MAX_TEXT));
        assert_eq!(tool_and_choices(&prompt), (None, Vec::new()));
        prompt.parts.push(Part::data(data));
        let (tool, choices) = tool_and_choices(&prompt);
        assert_eq!(tool.as_deref(), Some("Bash[2J"));
        assert_eq!(choices.len(), 2);
        assert!(choices[1].chars().count() <= MAX_WORDS);
        let text = text(&prompt);
        assert!(text.len() <= MAX_TEXT + '…'.len_utf8() && text.ends_with("ä…"));
    }
}
