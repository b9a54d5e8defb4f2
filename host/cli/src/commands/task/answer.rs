//! `task answer`: answers the question of a task, whose agent need not be named.

use super::question::waits;
use crate::{
    Exit, Global, block_on,
    client::{
        hub_client::Client,
        ids::{self, Kind},
    },
    commands::{
        completion,
        send::{Send, send},
    },
    ui::{failure::CommandError, render::text},
};
use clap::Args;
use serde_json::json;

/// Reason of a refusal: the task asks nothing.
const NO_QUESTION: &str = "NO_QUESTION";

#[derive(Debug, Args)]
pub(crate) struct AnswerOptions {
    /// Id of the task, or a unique beginning or end of it
    #[arg(add = completion::tasks())]
    id: String,
    /// Text of the answer; `-` reads it from standard input
    text: String,
    /// Id of the question to answer; refused if the task asks another question by now
    #[arg(long, value_name = "ID")]
    question: Option<String>,
    /// Print what follows while it arrives
    #[arg(long)]
    stream: bool,
}

/// Answers the question of a task, and prints what follows as `send` does.
pub(super) fn answer(global: &Global, asked: AnswerOptions) -> anyhow::Result<Exit> {
    let AnswerOptions { id, text: answer, question, stream } = asked;
    let (id, agent) = block_on(async {
        let mut client = Client::connect(global).await?;
        let id = ids::resolve(&mut client, Kind::Task, &id).await?;
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
    send(global, Send { stream, ..Send::to(agent, answer) }.for_task(id, question).with_message()?)
}
