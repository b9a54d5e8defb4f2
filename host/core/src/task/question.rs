//! Questions of tasks: matches answers to questions, relays questions of child tasks, and replaces
//! questions that a restart of the hub ended.
//!
//! An answer that names a question counts only for that question, so that an approval is never used
//! for another one. A program that asked for permission ends with its hub, so its question can no
//! longer be answered. The hub then asks instead, and tells the agent that receives the answer that
//! nothing was approved, so that a late "yes" is not taken for an approval.

use a2a_hub_protocol::{
    id::{AgentId, QuestionId, TaskId},
    message::{Message, Metadata, Part, Role},
    question::{Question, QuestionKind, asks_permission},
    task::{Task, TaskState},
};

/// Maximum quoted length of a lost question, in characters: enough to recognise it.
const QUOTED_CHARS: usize = 2000;

/// Metadata member of a message part that marks the hub's notes to an agent, in contrast to the
/// client's words.
pub const NOTE: &str = "note";

/// Note that names the asking agent in a relayed question.
const ASKING_AGENT: &str = "asked_by";

/// Error for an answer to a question that the task does not ask, or no longer asks.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("answer the question `{0}`: it is gone")]
pub struct QuestionClosed(pub QuestionId);

/// Checks if a message counts as the answer to the current question. `answered` is the question
/// that the message names; a message that names none counts for any question.
pub fn admit(
    current: Option<&Question>,
    answered: Option<QuestionId>,
) -> Result<(), QuestionClosed> {
    match answered {
        Some(answered) if current.is_none_or(|current| current.id != answered) => {
            Err(QuestionClosed(answered))
        }
        Some(_) | None => Ok(()),
    }
}

/// True if the client answered the task's question and the agent has not received the answer: the
/// question is in the history.
pub fn has_undelivered_answer(task: &Task) -> bool {
    let last = task.history.last();
    task.status.state.is_interrupted()
        && task.status.message.is_none()
        && last.is_some_and(|message| message.role == Role::User)
}

/// Kind of a question by the task's state and the prompt's metadata, which marks requests for
/// permission.
pub fn kind(state: TaskState, prompt: &Message) -> QuestionKind {
    if state == TaskState::AuthRequired {
        QuestionKind::Auth
    } else if asks_permission(prompt) {
        QuestionKind::Permission
    } else {
        QuestionKind::Input
    }
}

/// Question that a task relays to its client for its child, a task of `agent`: the same question
/// with the same id, and a note with the asking agents. An answer to one of them answers both.
pub fn handed_on(
    child: &TaskId,
    agent: &AgentId,
    child_question: &Question,
    prompt: Message,
) -> (Question, Message) {
    let path: Vec<_> =
        [agent.clone()].into_iter().chain(child_question.path.iter().cloned()).collect();
    let names: Vec<_> = path.iter().map(AgentId::as_str).collect();
    let heading = format!("{} asks:\n", names.join(" > "));
    let is_note = |part: &Part| {
        let note = part.metadata.as_ref().and_then(|facts| facts.get(NOTE));
        note.is_some_and(|note| note == ASKING_AGENT)
    };
    let mark = Metadata::from_iter([(NOTE.to_owned(), ASKING_AGENT.into())]);
    let first = Part { metadata: Some(mark), ..Part::text(&heading) };
    let Message { parts, metadata, .. } = prompt;
    let parts = [first].into_iter().chain(parts.into_iter().filter(|part| !is_note(part)));
    let prompt = Message { parts: parts.collect(), metadata, ..Message::text(Role::Agent, "") };
    let question = Question {
        task: child_question.task.clone().or_else(|| Some(child.clone())),
        agent: child_question.agent.clone().or_else(|| Some(agent.clone())),
        path,
        ..child_question.clone()
    };
    (question, prompt)
}

/// Prompt of the hub after a restart, for a task whose agent was at work or had asked `lost`.
pub fn after_restart(agent: &str, lost: Option<(QuestionKind, &str)>) -> String {
    let Some(lost) = lost else {
        return format!(
            "The hub was restarted while {agent} was at work; send any message to go on: it starts {agent} again."
        );
    };
    anew("The hub was restarted", agent, lost)
}

/// Prompt of the hub in place of a question whose agent was evicted to free capacity.
pub fn after_eviction(agent: &str, lost: (QuestionKind, &str)) -> String {
    anew("The hub made room for other tasks", agent, lost)
}

/// Prompt that replaces a lost question, with the reason.
fn anew(why: &str, agent: &str, (kind, prompt): (QuestionKind, &str)) -> String {
    let prompt = match prompt.char_indices().nth(QUOTED_CHARS) {
        Some((end, _)) => format!("{}…", &prompt[..end]),
        None => prompt.to_owned(),
    };
    let now = match kind {
        QuestionKind::Permission => format!(
            "That question is gone, and nothing was allowed. An answer now starts {agent} again, with your words as a new \
             message."
        ),
        QuestionKind::Input | QuestionKind::Auth => {
            format!("An answer now starts {agent} again, with what was said so far.")
        }
    };
    format!("{why} while {agent} asked: “{prompt}”\n{now}")
}

/// Message for an agent that is restarted after it lost a question of that kind. A model could
/// misread a "yes" without its question, so the message gets a note.
pub fn with_restart_note(mut message: Message, lost: QuestionKind) -> Message {
    if lost == QuestionKind::Permission {
        let note = "[Your run was ended before your request for permission was answered, and nothing was allowed. \
                    The user now says:]\n";
        let mark = Metadata::from_iter([(NOTE.to_owned(), "hub_restarted".into())]);
        message.parts.insert(0, Part { metadata: Some(mark), ..Part::text(note) });
    }
    message
}

#[cfg(test)]
mod tests {
    use super::*;
    use a2a_hub_protocol::{id::ContextId, task::TaskStatus};
    use std::fmt::Write as _;

    #[test]
    fn answer_counts_only_for_named_question() {
        let [now, before] = ["now", "before"].map(QuestionId::new);
        let asked = Question { id: now.clone(), ..Question::fresh(QuestionKind::Permission) };
        for (asked, answered, admitted) in [
            (Some(&asked), Some(&now), true),
            (Some(&asked), Some(&before), false),
            (Some(&asked), None, true),
            // A task from a version of the hub without question ids.
            (None, Some(&before), false),
            (None, None, true),
        ] {
            assert_eq!(admit(asked, answered.cloned()).is_ok(), admitted, "{asked:?} {answered:?}");
        }
    }

    #[test]
    fn a_login_is_never_a_permission() {
        let kind = |state| kind(state, &Message::text(Role::Agent, "may I?"));
        assert_eq!(kind(TaskState::AuthRequired), QuestionKind::Auth);
        assert_eq!(kind(TaskState::InputRequired), QuestionKind::Input);
    }

    #[test]
    fn prompt_after_restart_explains_answer() {
        let mut told = after_restart("Claude Code", None);
        for kind in QuestionKind::ALL {
            let asked = after_restart("Claude Code", Some((kind, "Allow it? (yes or no)")));
            write!(told, "\n\n{kind:?}\n{asked}").unwrap();
        }
        insta::assert_snapshot!(told, @r"
        The hub was restarted while Claude Code was at work; send any message to go on: it starts Claude Code again.

        Input
        The hub was restarted while Claude Code asked: “Allow it? (yes or no)”
        An answer now starts Claude Code again, with what was said so far.

        Permission
        The hub was restarted while Claude Code asked: “Allow it? (yes or no)”
        That question is gone, and nothing was allowed. An answer now starts Claude Code again, with your words as a new message.

        Auth
        The hub was restarted while Claude Code asked: “Allow it? (yes or no)”
        An answer now starts Claude Code again, with what was said so far.
        ");
        let long = after_restart("a", Some((QuestionKind::Input, &"ä".repeat(QUOTED_CHARS + 1))));
        assert!(long.contains("ä…”") && long.chars().count() < QUOTED_CHARS + 200);
    }

    #[test]
    fn relayed_question_names_agents_keeps_id() {
        let [codex, reviewer] = ["codex", "reviewer"].map(|id| AgentId::parse(id).unwrap());
        let asked = Question::fresh(QuestionKind::Permission);
        let prompt = Message::text(Role::Agent, "May I delete it?");
        let deepest = TaskId::new("deepest");
        let (once, prompt) = handed_on(&deepest, &codex, &asked, prompt);
        assert_eq!(prompt.joined_text(), "codex asks:\nMay I delete it?");
        let (twice, prompt) = handed_on(&TaskId::new("between"), &reviewer, &once, prompt);
        assert_eq!(prompt.joined_text(), "reviewer > codex asks:\nMay I delete it?");
        assert_eq!((twice.id, twice.kind), (asked.id, QuestionKind::Permission));
        assert_eq!((twice.task, twice.agent.as_ref()), (Some(deepest), Some(&codex)));
        assert_eq!(twice.path, [reviewer, codex]);
    }

    #[test]
    fn late_yes_is_marked_as_no_approval() {
        let yes = Message::text(Role::User, "yes");
        let heard = QuestionKind::ALL
            .map(|lost| with_restart_note(yes.clone(), lost).joined_text())
            .join("\n---\n");
        insta::assert_snapshot!(heard, @r"
        yes
        ---
        [Your run was ended before your request for permission was answered, and nothing was allowed. The user now says:]
        yes
        ---
        yes
        ");
    }

    #[test]
    fn answer_without_later_prompt_is_undelivered() {
        let mut task = Task {
            id: TaskId::new("t"),
            context_id: ContextId::new("c"),
            status: TaskStatus {
                state: TaskState::InputRequired,
                message: None,
                timestamp: String::new(),
            },
            artifacts: Vec::new(),
            history: Vec::new(),
            metadata: None,
        };
        let said = |role| Message::text(role, "said");
        for (history, message, answered) in [
            (vec![said(Role::User)], None, true),
            (vec![said(Role::User), said(Role::Agent)], None, false),
            (vec![said(Role::User)], Some(said(Role::Agent)), false),
        ] {
            (task.history, task.status.message) = (history, message);
            assert_eq!(has_undelivered_answer(&task), answered, "{task:?}");
        }
    }
}
