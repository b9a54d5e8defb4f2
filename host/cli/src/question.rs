//! What a task asks of whoever sent it: told, and answered where somebody sits at a terminal.

use super::{
    Exit, Format, Global,
    console::Console,
    render::shell_word,
    shown::Shown,
    terminal::{self, Answer},
};

/// What comes of a question that a task ended with.
pub(super) enum Asked {
    /// There is none, or nobody who could be asked; whoever sent the message is told how to answer.
    Nothing,
    /// An answer, to this task.
    Answered(String, String),
    /// This task is to be called off.
    Interrupted(String),
}

/// Asks whoever sits at the terminal what the task waits for; `agent` is how they name it.
pub(super) async fn question(
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

/// How to answer a question of this task of `agent`, by the question's name if it has one; `command` is this program.
pub(super) fn answer_with(
    command: &str,
    agent: &str,
    task: &str,
    question: Option<&str>,
) -> String {
    let which = question.map(|id| format!(" --question {}", shell_word(id)));
    let (agent, task, which) = (shell_word(agent), shell_word(task), which.unwrap_or_default());
    format!("answer with: {command} send {agent} --task {task}{which} \"...\"")
}

/// Tells what the task of `agent` waits for, to who does not answer.
pub(super) fn tell(console: Console, shown: &Shown, agent: &str) {
    let said = shown.told.said().filter(|said| !said.trim().is_empty());
    let said =
        said.unwrap_or_else(|| "(it waits for an answer, and does not say to what)".to_owned());
    match console.columns_beside() {
        Some(columns) => console.prompt(&terminal::question(agent, &said, columns)),
        None => console.note(said),
    }
}
