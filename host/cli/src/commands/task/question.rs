//! Questions of tasks: displayed, and answered if a user sits at the terminal.

use super::output::TaskOutput;
use crate::commands::RUNNER;
use crate::{
    Exit, Format, Global,
    client::task_snapshot::TaskStateSnapshot,
    ui::{
        console::Console,
        dialogue,
        interactive::{self, Prompted, UserAnswer},
        render::{shell_word, text},
    },
};
use serde_json::Value;
use std::time::Duration;

/// Interval at which a task is read while its question waits at the prompt.
pub(crate) const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// Choice of a permission question: yes, for everything like it in the rest of the run.
const FOR_SESSION: &str = "allow-session";

/// Prompt before a text that is neither yes nor no answers a permission question.
const CONFIRM_REASON: &str = "that denies it, with your text as the reason: send it? [y/N]";

/// Outcome of a task's question.
pub(crate) enum QuestionOutcome {
    /// No question, or no user to ask; the output states how to answer.
    Nothing,
    /// Answer of the user to this task's question: the task's id and the answer.
    Answered(String, String),
    /// The user cancels this task.
    Interrupted(String),
    /// The question was closed while the prompt waited; the task is as given.
    Closed(Value),
    /// The question of this task cannot be read any more: the hub or the agent is gone.
    Lost(String, anyhow::Error),
}

/// Asks the user at the terminal the task's question; `agent` is the agent as the user typed it.
/// `closed` returns the task once the question needs no answer any more.
pub(crate) async fn question(
    global: &Global,
    shown: &TaskOutput,
    exit: Exit,
    agent: &str,
    closed: impl Future<Output = anyhow::Result<Value>>,
) -> anyhow::Result<QuestionOutcome> {
    let Some(task) = shown.snapshot.task.clone().filter(|_| exit == Exit::NeedsInput) else {
        return Ok(QuestionOutcome::Nothing);
    };
    if global.format == Format::Json {
        return Ok(QuestionOutcome::Nothing);
    }
    let console = global.console();
    print_question(console, shown, agent);
    if shown.snapshot.state == "input-required" && console.is_attended() {
        let prompted = match shown.snapshot.asks_permission() {
            true => permission(console, &shown.snapshot, closed).await?,
            false => interactive::ask_unless(console, interactive::TO_A_TASK, closed).await?,
        };
        match prompted {
            Prompted::Answered(UserAnswer::Text(answer)) => {
                return Ok(QuestionOutcome::Answered(task, answer));
            }
            Prompted::Answered(UserAnswer::Interrupted) => {
                console.note("cancelling");
                return Ok(QuestionOutcome::Interrupted(task));
            }
            Prompted::Answered(UserAnswer::Nothing) => {}
            Prompted::Withdrawn(Err(why)) => return Ok(QuestionOutcome::Lost(task, why)),
            Prompted::Withdrawn(Ok(task)) => {
                console.note(closed_text(&task));
                return Ok(QuestionOutcome::Closed(task));
            }
        }
    }
    console.note(answer_with(&global.command(), agent, &task, shown.snapshot.question()));
    Ok(QuestionOutcome::Nothing)
}

/// Asks for a permission: yes, no, a choice of the question, or after a confirmation another text,
/// which denies it with the text as the reason.
async fn permission(
    console: Console,
    snapshot: &TaskStateSnapshot,
    closed: impl Future<Output = anyhow::Result<Value>>,
) -> anyhow::Result<Prompted<anyhow::Result<Value>>> {
    tokio::pin!(closed);
    let choices = snapshot.choices();
    let hint = match choices.contains(&FOR_SESSION) {
        true => "[y/N], or `always` for everything like it in this task",
        false => "[y/N]",
    };
    loop {
        let typed = match interactive::ask_unless(console, hint, &mut closed).await? {
            Prompted::Answered(UserAnswer::Text(typed)) => typed,
            Prompted::Answered(UserAnswer::Nothing) => "no".to_owned(),
            other @ (Prompted::Answered(UserAnswer::Interrupted) | Prompted::Withdrawn(_)) => {
                return Ok(other);
            }
        };
        let answered = |answer| Ok(Prompted::Answered(UserAnswer::Text(answer)));
        if let Some(answer) = permission_answer(&typed, &choices) {
            return answered(answer);
        }
        match interactive::ask_unless(console, CONFIRM_REASON, &mut closed).await? {
            Prompted::Answered(UserAnswer::Interrupted) => {
                return Ok(Prompted::Answered(UserAnswer::Interrupted));
            }
            Prompted::Answered(answer) if answer.is_one_of(&["y", "yes"]) => {
                return answered(typed);
            }
            Prompted::Answered(_) => {}
            Prompted::Withdrawn(task) => return Ok(Prompted::Withdrawn(task)),
        }
    }
}

/// Answer to a permission question that needs no confirmation: yes, no, or one of `choices`.
fn permission_answer(typed: &str, choices: &[&str]) -> Option<String> {
    let word = typed.trim().trim_end_matches(['.', '!']).to_lowercase();
    match word.as_str() {
        "y" | "yes" => Some("yes".to_owned()),
        "n" | "no" => Some("no".to_owned()),
        "always" if choices.contains(&FOR_SESSION) => Some(word),
        _ => {
            let is_choice = choices.iter().any(|choice| choice.eq_ignore_ascii_case(&word));
            is_choice.then(|| typed.to_owned())
        }
    }
}

/// True while a task, in the JSON of A2A 0.3, waits for an answer to this question.
pub(crate) fn is_open(task: &Value, question: Option<&str>) -> bool {
    let current = task["metadata"]["question"]["id"].as_str();
    text(&task["status"]["state"]) == "input-required"
        && (question.is_none() || current == question)
}

/// Tells the user what became of a question that needs no answer any more.
pub(crate) fn closed_text(task: &Value) -> &'static str {
    match text(&task["status"]["state"]) {
        "completed" | "failed" | "canceled" | "rejected" => {
            "no answer is needed any more: the task has ended"
        }
        "input-required" | "auth-required" => {
            "the question was answered elsewhere, withdrawn or not answered in time; the task asks another one"
        }
        _ => {
            "the question was answered elsewhere, withdrawn or not answered in time; the task goes on"
        }
    }
}

/// Returns the command that answers the question of this task, with the question's id if it has
/// one; `command` is this program. `agent` is an id in the hub, or the URL of a remote agent with
/// its options, quoted for the shell.
pub(crate) fn answer_with(
    command: &str,
    agent: &str,
    task: &str,
    question: Option<&str>,
) -> String {
    let which = question.map(|id| format!(" --question {}", shell_word(id)));
    let (task, which) = (shell_word(task), which.unwrap_or_default());
    match agent.contains("://") {
        true => format!("answer with: {command} send {agent} --task {task}{which} \"...\""),
        false => format!("answer with: {command} task answer {task}{which} \"...\""),
    }
}

/// Prints the question of the task of `agent` for a user who is not prompted.
pub(crate) fn print_question(console: Console, shown: &TaskOutput, agent: &str) {
    let question =
        shown.snapshot.question_text().map(|text| shown.snapshot.with_short_paths(&text));
    let question = question.filter(|text| !text.trim().is_empty());
    let question =
        question.unwrap_or_else(|| "(it waits for an answer, but sent no question)".to_owned());
    let through = shown.snapshot.relay_path();
    // Nobody typed the name of the flow that asks several agents.
    let asker = Some(agent).filter(|agent| *agent != RUNNER || through.is_empty());
    let agents: Vec<&str> = asker.into_iter().chain(through.iter().copied()).collect();
    let agents = agents.join(" > ");
    match console.stderr_columns() {
        Some(columns) => console.prompt(&dialogue::question(&agents, &question, columns)),
        None if through.is_empty() => console.note(question),
        None => console.note(format!("{agents} asks:\n{question}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn answer_command_names_remote_agent() {
        let with = |agent: &str| answer_with("a2a-hub", agent, "t-1", Some("q 1"));
        assert_eq!(with("codex"), "answer with: a2a-hub task answer t-1 --question 'q 1' \"...\"");
        let remote = "https://x.org --token-env TOKEN";
        let told = "answer with: a2a-hub send https://x.org --token-env TOKEN --task t-1 --question 'q 1' \"...\"";
        assert_eq!(with(remote), told);
    }

    #[test]
    fn permission_needs_yes_no_or_choice() {
        let choices = ["allow", FOR_SESSION, "deny", "p1", "Allow in this project"];
        let answer = |typed: &str| permission_answer(typed, &choices);
        for (typed, sent) in [
            ("y", Some("yes")),
            ("Yes.", Some("yes")),
            ("N", Some("no")),
            ("no!", Some("no")),
            ("always", Some("always")),
            ("allow in this project", Some("allow in this project")),
            ("p1", Some("p1")),
            ("ok", None),
            ("ye", None),
            ("yes please", None),
            ("use the other file", None),
        ] {
            assert_eq!(answer(typed).as_deref(), sent, "{typed}");
        }
        assert_eq!(permission_answer("always", &["allow", "deny"]), None);
    }

    #[test]
    fn question_is_open_until_state_or_id_changes() {
        let task = |state: &str, id: &str| json!({ "status": { "state": state }, "metadata": { "question": { "id": id } } });
        assert!(is_open(&task("input-required", "q-1"), Some("q-1")));
        assert!(is_open(&json!({ "status": { "state": "input-required" } }), None));
        for (state, id) in
            [("input-required", "q-2"), ("working", "q-1"), ("canceled", "q-1"), ("", "q-1")]
        {
            assert!(!is_open(&task(state, id), Some("q-1")), "{state} {id}");
            assert_eq!(closed_text(&task(state, id)).contains("ended"), state == "canceled");
        }
    }
}
