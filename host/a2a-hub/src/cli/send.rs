//! `send`: a message to an agent, its answer as it comes, Ctrl-C to call it off.

use super::{
    Exit, Format, Global, block_on,
    client::Client,
    elsewhere, files,
    follow::{OnInterrupt, Shown, follow},
    note,
    terminal::{self, Answer, Progress},
};
use a2a_hub_protocol::{compat, id::MessageId, message::Message, question::QUESTION};
use anyhow::{Context as _, bail};
use clap::Args;
use serde_json::{Value, json};
use std::{
    fs,
    io::{self, Read as _},
    path::PathBuf,
};

/// The longest message, in bytes: what the hub takes in one request, with room for its frame.
const MAX_MESSAGE: usize = 7 << 20;

#[derive(Debug, Args)]
pub(super) struct Send {
    /// The agent, as `a2a-hub agents` lists it, or the URL of one elsewhere
    pub(super) agent: String,
    /// What to say; `-` reads it from standard input
    message: String,
    /// Send this file with it; may be given several times
    #[arg(long = "file", value_name = "PATH")]
    files: Vec<PathBuf>,
    /// Where the agent is to work [default: the current directory]
    #[arg(long, value_name = "DIR")]
    pub(super) cwd: Option<PathBuf>,
    /// Continue this conversation
    #[arg(long, value_name = "ID")]
    context: Option<String>,
    /// Answer the question of this task
    #[arg(long, value_name = "ID")]
    task: Option<String>,
    /// Answer this question of the task, and no other that it may ask by now
    #[arg(long, value_name = "ID", requires = "task")]
    question: Option<String>,
    /// Give up after so many milliseconds
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(u64).range(1..))]
    pub(super) timeout: Option<u64>,
    /// Show an agent elsewhere what this variable holds, as a bearer token
    #[arg(long, value_name = "VARIABLE")]
    pub(super) token_env: Option<String>,
    /// Print the answer as it comes
    #[arg(long)]
    pub(super) stream: bool,
}

pub(super) fn send(global: &Global, mut send: Send) -> anyhow::Result<Exit> {
    if send.message == "-" {
        send.message.clear();
        let read =
            io::stdin().lock().take(MAX_MESSAGE as u64 + 1).read_to_string(&mut send.message);
        read.context("read the message from standard input")?;
    }
    if elsewhere::is_url(&send.agent) {
        return elsewhere::send(global, send);
    }
    if send.token_env.is_some() {
        bail!(
            "send to `{}`: `--token-env` is for an agent that is named by its URL; for one of the hub's own that is elsewhere, \
             `token_env` of its `[remote.<id>]` says the same",
            send.agent
        );
    }
    block_on(async {
        let mut client = Client::connect(global).await?;
        loop {
            let id = client.ask("message/stream", params(&send)?).await?;
            let mut shown = Shown::new(global.format, send.stream);
            let mut progress = Progress::new(&send.agent, global.format == Format::Pretty);
            let followed =
                follow(&mut client, id, &mut shown, &mut progress, OnInterrupt::Cancel).await;
            drop(progress);
            shown.finish()?;
            let exit = followed?;
            match question(&shown, exit, global.format, &send.agent).await? {
                Asked::Nothing => return Ok(exit),
                Asked::Answered(task, answer) => send = send.answering(task, answer, &shown),
                Asked::Interrupted(task) => {
                    client.call("tasks/cancel", json!({ "id": task })).await?;
                    return Ok(Exit::Interrupted);
                }
            }
        }
    })
}

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
    shown: &Shown,
    exit: Exit,
    format: Format,
    agent: &str,
) -> anyhow::Result<Asked> {
    let Some(task) = shown.task.clone().filter(|_| exit == Exit::NeedsInput) else {
        return Ok(Asked::Nothing);
    };
    if format == Format::Json {
        return Ok(Asked::Nothing);
    }
    if shown.state == "input-required" && terminal::is_attended() {
        match terminal::ask().await? {
            Answer::Text(answer) => return Ok(Asked::Answered(task, answer)),
            Answer::Interrupted => {
                note("cancelling");
                return Ok(Asked::Interrupted(task));
            }
            Answer::Nothing => {}
        }
    }
    let which = shown.question.as_ref().map(|id| format!(" --question {id}")).unwrap_or_default();
    note(&format!("answer with: a2a-hub send {agent} --task {task}{which} \"...\""));
    Ok(Asked::Nothing)
}

impl Send {
    /// The same with the answer to a task's question, which was shown.
    pub(super) fn answering(self, task: String, answer: String, shown: &Shown) -> Self {
        let (task, question) = (Some(task), shown.question.clone());
        Self { message: answer, task, question, files: Vec::new(), ..self }
    }
}

/// The message for an agent elsewhere, which has nothing to do with directories here.
pub(super) fn message(send: &Send) -> anyhow::Result<Message> {
    let offered = serde_json::from_value(params(send)?["message"].take())?;
    let mut message = compat::message(offered, "message")?;
    if let Some(facts) = &mut message.metadata {
        facts.retain(|name, _| name == QUESTION);
    }
    message.metadata.take_if(|facts| facts.is_empty());
    Ok(message)
}

fn params(send: &Send) -> anyhow::Result<Value> {
    let directory = match &send.cwd {
        Some(dir) => {
            let found = fs::canonicalize(dir);
            found.with_context(|| format!("work in {}", dir.display()))?
        }
        None => std::env::current_dir().context("find the current directory")?,
    };
    let mut room = MAX_MESSAGE;
    let Some(left) = room.checked_sub(send.message.len()) else {
        bail!(
            "send the message: it is longer than {} MiB; leave it in a file in a workspace",
            room >> 20
        );
    };
    room = left;
    let mut parts = vec![json!({ "kind": "text", "text": send.message })];
    for file in &send.files {
        parts.push(files::part(file, &mut room)?);
    }
    let mut params = json!({
        "message": {
            "kind": "message",
            "messageId": MessageId::fresh(),
            "role": "user",
            "parts": parts,
            "metadata": { "targetAgent": send.agent, "workingDirectory": directory },
        },
        "configuration": { "timeoutMs": send.timeout },
    });
    let mut also = |name: &str, value: &Option<String>| {
        if let Some(value) = value {
            params["message"][name] = json!(value);
        }
    };
    also("contextId", &send.context);
    also("taskId", &send.task);
    if let Some(question) = &send.question {
        params["message"]["metadata"][QUESTION] = json!(question);
    }
    Ok(params)
}
