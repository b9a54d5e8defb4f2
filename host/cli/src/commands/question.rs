//! Questions of tasks: displayed, and answered if a user sits at the terminal.

use super::task_output::Shown;
use crate::{
    Exit, Format, Global,
    ui::{
        console::Console,
        render::shell_word,
        terminal::{self, Answer},
    },
};

/// Outcome of a task's question.
pub(crate) enum Asked {
    /// No question, or no user to ask; the output states how to answer.
    Nothing,
    /// Answer of the user to this task's question: the task's id and the answer.
    Answered(String, String),
    /// The user cancels this task.
    Interrupted(String),
}

/// Asks the user at the terminal the task's question; `agent` is the agent as the user typed it.
pub(crate) async fn question(
    global: &Global,
    shown: &Shown,
    exit: Exit,
    agent: &str,
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
        match terminal::ask(console, terminal::TO_A_TASK).await? {
            Answer::Text(answer) => return Ok(Asked::Answered(task, answer)),
            Answer::Interrupted => {
                console.note("cancelling");
                return Ok(Asked::Interrupted(task));
            }
            Answer::Nothing => {}
        }
    }
    console.note(answer_with(&global.command(), agent, &task, shown.told.question()));
    Ok(Asked::Nothing)
}

/// Returns the command that answers the question of this task of `agent`, with the question's id if
/// it has one; `command` is this program.
pub(crate) fn answer_with(
    command: &str,
    agent: &str,
    task: &str,
    question: Option<&str>,
) -> String {
    let which = question.map(|id| format!(" --question {}", shell_word(id)));
    let (agent, task, which) = (shell_word(agent), shell_word(task), which.unwrap_or_default());
    format!("answer with: {command} send {agent} --task {task}{which} \"...\"")
}

/// Prints the question of the task of `agent` for a user who is not prompted.
pub(crate) fn tell(console: Console, shown: &Shown, agent: &str) {
    let said = shown.told.asked().filter(|said| !said.trim().is_empty());
    let said = said.unwrap_or_else(|| "(it waits for an answer, but sent no question)".to_owned());
    let through = shown.told.asked_through();
    let who: Vec<&str> = [agent].into_iter().chain(through.iter().copied()).collect();
    let who = who.join(" > ");
    match console.columns_beside() {
        Some(columns) => console.prompt(&terminal::question(&who, &said, columns)),
        None if through.is_empty() => console.note(said),
        None => console.note(format!("{who} asks:\n{said}")),
    }
}
