//! `task answer`: answers the question of a task, whose agent need not be named.

use crate::{
    Exit, Global, block_on,
    client::{
        hub_client::Client,
        ids::{self, Kind},
        sent::{SentTasks, is_for_people, note_taken, waits},
    },
    commands::{
        completion,
        send::{Send, send},
    },
    ui::{failure::CommandError, render::text},
};
use clap::Args;
use serde_json::{Value, json};

/// Reason of a refusal: the task asks nothing.
pub(crate) const NO_QUESTION: &str = "NO_QUESTION";

#[derive(Debug, Args)]
pub(crate) struct AnswerOptions {
    /// Id of the task, or a unique beginning or end of it; or the text, if only one task waits for
    /// an answer
    #[arg(add = completion::waiting_tasks())]
    id: String,
    /// Text of the answer; `-` reads it from standard input
    text: Option<String>,
    /// Id of the question to answer; refused if the task asks another question by now
    #[arg(long, value_name = "ID")]
    question: Option<String>,
    /// Print what follows while it arrives
    #[arg(long)]
    stream: bool,
}

/// Answers the question of a task, and prints what follows as `send` does.
pub(super) fn answer(global: &Global, args: AnswerOptions) -> anyhow::Result<Exit> {
    let AnswerOptions { id, text: answer, question, stream } = args;
    let (id, answer) = match answer {
        Some(answer) => (Some(id), answer),
        None => (None, id),
    };
    let (id, agent) = block_on(async {
        let mut client = Client::connect(global).await?;
        let id = match &id {
            Some(id) => ids::resolve(&mut client, Kind::Task, id).await?,
            None => only_waiting(global, &mut client, &answer).await?,
        };
        let task = client.call("tasks/get", json!({ "id": id, "historyLength": 0 })).await?;
        if !waits(&task) {
            let state = text(&task["status"]["state"]);
            let why = format!(
                "answer task {id}: it asks nothing, its state is {state}; `a2a-hub task show {id}` shows it"
            );
            let why = CommandError::new(NO_QUESTION, why);
            return Err(why.mended_by(format!("a2a-hub task show {id}")).into());
        }
        let tree = client.call("hub/tasks/tree", json!({ "id": id })).await?;
        Ok((id, text(&tree["tasks"][0]["agentId"]).to_owned()))
    })?;
    let answer = Send { stream, ..Send::to(agent, answer) }.for_task(id, question);
    match answer.with_message(global)? {
        Some(answer) => send(global, answer),
        None => Ok(Exit::Interrupted),
    }
}

/// Returns the id of the only task that waits for an answer, and notes which task that is. An
/// answer that is the id of a task lacks its text.
async fn only_waiting(
    global: &Global,
    client: &mut Client,
    answer: &str,
) -> anyhow::Result<String> {
    let mut waiting = Vec::<Value>::new();
    for state in ["input-required", "auth-required"] {
        let query = json!({ "state": state });
        waiting.append(&mut SentTasks::find(client, &query, 2, is_for_people).await?.tasks);
    }
    let is_id = ids::may_be_id(answer)
        && (waiting.iter().any(|task| task["id"] == *answer)
            || ids::resolve(client, Kind::Task, answer).await? != answer);
    if is_id {
        let why = format!("answer task {answer}: give the text of the answer after the id");
        return Err(CommandError::usage(why).into());
    }
    match &waiting[..] {
        [task] => {
            note_taken(global, task);
            Ok(text(&task["id"]).to_owned())
        }
        [] => {
            let why = "answer a task: none waits for an answer";
            Err(CommandError::new(NO_QUESTION, why.to_owned()).mended_by("a2a-hub tasks").into())
        }
        _ => {
            let why = "answer a task: several wait for an answer; name one before the text";
            let waiting = "a2a-hub tasks --state input-required";
            Err(CommandError::new(NO_QUESTION, why.to_owned()).mended_by(waiting).into())
        }
    }
}
