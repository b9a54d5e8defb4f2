//! Questions of tasks: displayed, and answered if a user sits at the terminal.

use super::output::TaskOutput;
use crate::{
    Exit, Format, Global,
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
pub(crate) const LOOK: Duration = Duration::from_millis(500);

/// Outcome of a task's question.
pub(crate) enum Asked {
    /// No question, or no user to ask; the output states how to answer.
    Nothing,
    /// Answer of the user to this task's question: the task's id and the answer.
    Answered(String, String),
    /// The user cancels this task.
    Interrupted(String),
    /// The question was closed while the prompt waited; the task is as given.
    Closed(Value),
}

/// Asks the user at the terminal the task's question; `agent` is the agent as the user typed it.
/// `closed` returns the task once the question needs no answer any more.
pub(crate) async fn question(
    global: &Global,
    shown: &TaskOutput,
    exit: Exit,
    agent: &str,
    closed: impl Future<Output = anyhow::Result<Value>>,
) -> anyhow::Result<Asked> {
    let Some(task) = shown.told.task.clone().filter(|_| exit == Exit::NeedsInput) else {
        return Ok(Asked::Nothing);
    };
    if global.format == Format::Json {
        return Ok(Asked::Nothing);
    }
    let console = global.console();
    tell(console, shown, agent);
    if shown.told.state == "input-required" && console.is_attended() {
        match interactive::ask_unless(console, interactive::TO_A_TASK, closed).await? {
            Prompted::Answered(UserAnswer::Text(answer)) => {
                return Ok(Asked::Answered(task, answer));
            }
            Prompted::Answered(UserAnswer::Interrupted) => {
                console.note("cancelling");
                return Ok(Asked::Interrupted(task));
            }
            Prompted::Answered(UserAnswer::Nothing) => {}
            Prompted::Withdrawn(task) => {
                let task = task?;
                console.note(closed_text(&task));
                return Ok(Asked::Closed(task));
            }
        }
    }
    console.note(answer_with(&global.command(), agent, &task, shown.told.question()));
    Ok(Asked::Nothing)
}

/// True while a task, in the JSON of A2A 0.3, waits for an answer to this question.
pub(crate) fn is_open(task: &Value, question: Option<&str>) -> bool {
    let asked = task["metadata"]["question"]["id"].as_str();
    text(&task["status"]["state"]) == "input-required" && (question.is_none() || asked == question)
}

/// Tells the user what became of a question that needs no answer any more.
pub(crate) fn closed_text(task: &Value) -> &'static str {
    match text(&task["status"]["state"]) {
        "completed" | "failed" | "canceled" | "rejected" => {
            "no answer is needed any more: the task has ended"
        }
        "input-required" | "auth-required" => {
            "the question was answered elsewhere or withdrawn; the task asks another one"
        }
        _ => "the question was answered elsewhere or withdrawn; the task goes on",
    }
}

/// True if a task, in the JSON of A2A 0.3, waits for its client.
pub(crate) fn waits(task: &Value) -> bool {
    ["input-required", "auth-required"].contains(&text(&task["status"]["state"]))
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
pub(crate) fn tell(console: Console, shown: &TaskOutput, agent: &str) {
    let said = shown.told.asked().filter(|said| !said.trim().is_empty());
    let said = said.unwrap_or_else(|| "(it waits for an answer, but sent no question)".to_owned());
    let through = shown.told.asked_through();
    let who: Vec<&str> = [agent].into_iter().chain(through.iter().copied()).collect();
    let who = who.join(" > ");
    match console.stderr_columns() {
        Some(columns) => console.prompt(&dialogue::question(&who, &said, columns)),
        None if through.is_empty() => console.note(said),
        None => console.note(format!("{who} asks:\n{said}")),
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
