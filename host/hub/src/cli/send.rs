//! `send`: a message to an agent, its answer as it comes, Ctrl-C to call it off.

use super::{Exit, Format, Global, block_on, client::Client, note, print};
use a2a_hub_protocol::id::MessageId;
use anyhow::Context as _;
use clap::Args;
use serde_json::{Value, json};
use std::{
    collections::HashMap,
    io::{self, Read as _},
};

/// The longest message, in bytes: what the hub takes in one request, with room for its frame.
const MAX_MESSAGE: u64 = 7 << 20;

#[derive(Debug, Args)]
pub(super) struct Send {
    /// The agent, as `a2a-hub agents` lists it
    agent: String,
    /// What to say; `-` reads it from standard input
    message: String,
    /// Continue this conversation
    #[arg(long, value_name = "ID")]
    context: Option<String>,
    /// Answer the question of this task
    #[arg(long, value_name = "ID")]
    task: Option<String>,
    /// Give up after so many milliseconds
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(u64).range(1..))]
    timeout: Option<u64>,
    /// Print the answer as it comes
    #[arg(long)]
    stream: bool,
}

pub(super) fn send(global: &Global, mut send: Send) -> anyhow::Result<Exit> {
    if send.message == "-" {
        send.message.clear();
        let read = io::stdin().lock().take(MAX_MESSAGE).read_to_string(&mut send.message);
        read.context("read the message from standard input")?;
    }
    block_on(async {
        let mut client = Client::connect(global).await?;
        let id = client.ask("message/stream", params(&send)?).await?;
        let mut shown = Shown::new(global.format, send.stream);
        let exit = follow(&mut client, id, &mut shown).await;
        shown.finish()?;
        let exit = exit?;
        if exit == Exit::NeedsInput && global.format == Format::Pretty {
            let (agent, task) = (&send.agent, shown.task.as_deref().unwrap_or_default());
            note(&format!("answer with: a2a-hub send {agent} --task {task} \"...\""));
        }
        Ok(exit)
    })
}

fn params(send: &Send) -> anyhow::Result<Value> {
    let directory = std::env::current_dir().context("find the current directory")?;
    let mut params = json!({
        "message": {
            "kind": "message",
            "messageId": MessageId::fresh(),
            "role": "user",
            "parts": [{ "kind": "text", "text": send.message }],
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
    Ok(params)
}

/// Shows what comes until the stream ends. Ctrl-C cancels the task and waits for its end; a second one just leaves.
async fn follow(client: &mut Client, id: u64, shown: &mut Shown) -> anyhow::Result<Exit> {
    let mut interrupt = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::interrupt())?;
    let mut cancelling = None;
    loop {
        let answered = tokio::select! {
            answered = client.next() => Some(answered?),
            _ = interrupt.recv() => None,
        };
        match answered {
            Some((of, result)) if of == id => {
                let event = result?;
                if event["kind"] == "stream-end" {
                    return Ok(if cancelling.is_some() { Exit::Interrupted } else { shown.exit });
                }
                shown.event(&event)?;
            }
            Some((of, result)) if Some(of) == cancelling => {
                if let Err(why) = result {
                    note(&format!("cancel: {why}"));
                }
            }
            Some(_) => {}
            None => {
                let (Some(task), None) = (&shown.task, cancelling) else {
                    return Ok(Exit::Interrupted);
                };
                note("cancelling; press Ctrl-C again to leave at once");
                cancelling = Some(client.ask("tasks/cancel", json!({ "id": task })).await?);
            }
        }
    }
}

/// What was printed so far, and what is to be said at the end.
struct Shown {
    format: Format,
    stream: bool,
    task: Option<String>,
    /// The text of each artifact as it now stands, in the order they came.
    artifacts: Vec<(String, String)>,
    /// How much of each was printed.
    printed: HashMap<String, String>,
    /// Whether the line on standard output is not ended.
    in_line: bool,
    /// What the agent said last.
    last_word: Option<String>,
    exit: Exit,
}

impl Shown {
    fn new(format: Format, stream: bool) -> Self {
        Self {
            format,
            stream,
            task: None,
            artifacts: Vec::new(),
            printed: HashMap::new(),
            in_line: false,
            last_word: None,
            exit: Exit::Done,
        }
    }

    fn event(&mut self, event: &Value) -> io::Result<()> {
        if self.format == Format::Json && self.stream {
            print(&format!("{event}\n"))?;
        }
        match event["kind"].as_str() {
            Some("task") => {
                self.task = event["id"].as_str().map(str::to_owned);
                self.status(&event["status"]);
            }
            Some("status-update") => {
                self.task
                    .get_or_insert_with(|| event["taskId"].as_str().unwrap_or_default().to_owned());
                self.status(&event["status"]);
            }
            Some("artifact-update") => return self.artifact(event),
            Some("message") => self.last_word = Some(parts_text(&event["parts"])),
            _ => {}
        }
        Ok(())
    }

    fn status(&mut self, status: &Value) {
        let said = status["message"].is_object().then(|| parts_text(&status["message"]["parts"]));
        self.exit = match status["state"].as_str() {
            Some("failed" | "rejected" | "canceled") => Exit::TaskFailed,
            Some("input-required" | "auth-required") => Exit::NeedsInput,
            _ => Exit::Done,
        };
        let working = status["state"] == "working";
        if let Some(said) = said {
            if working && self.format == Format::Pretty {
                note(&format!("· {said}"));
            } else if !working {
                self.last_word = Some(said);
            }
        }
        if status["state"] == "canceled" && self.last_word.is_none() {
            self.last_word = Some("the task was cancelled".to_owned());
        }
    }

    fn artifact(&mut self, event: &Value) -> io::Result<()> {
        let artifact = &event["artifact"];
        let id = artifact["artifactId"].as_str().unwrap_or_default().to_owned();
        let text = parts_text(&artifact["parts"]);
        let at = self.artifacts.iter().position(|(known, _)| *known == id);
        let at = at.unwrap_or_else(|| {
            self.artifacts.push((id.clone(), String::new()));
            self.artifacts.len() - 1
        });
        let whole = &mut self.artifacts[at].1;
        if event["append"] == true {
            whole.push_str(&text);
        } else {
            *whole = text;
        }
        if !self.stream || self.format != Format::Pretty {
            return Ok(());
        }
        let whole = whole.clone();
        let printed = self.printed.entry(id).or_default();
        let out = match whole.strip_prefix(printed.as_str()) {
            Some(new) => new.to_owned(),
            // What was printed is no longer what the agent says: say it anew.
            None => format!("\n\n{whole}"),
        };
        *printed = whole;
        if out.is_empty() {
            return Ok(());
        }
        self.in_line = !out.ends_with('\n');
        print(&out)
    }

    /// Says what was not said as it came.
    fn finish(&mut self) -> io::Result<()> {
        if self.format == Format::Json {
            if self.stream {
                return Ok(());
            }
            let artifacts: Vec<_> = self.artifacts.iter().map(|(_, text)| text).collect();
            let all = json!({ "taskId": self.task, "message": self.last_word, "artifacts": artifacts, "exit": self.exit as u8 });
            return print(&format!("{all}\n"));
        }
        if self.in_line {
            print("\n")?;
        }
        if self.exit != Exit::Done {
            if let Some(said) = &self.last_word {
                note(said);
            }
            return Ok(());
        }
        let all: Vec<_> = self.artifacts.iter().map(|(_, text)| text.as_str()).collect();
        let all = all.join("\n");
        let answer =
            if all.is_empty() { self.last_word.as_deref().unwrap_or_default() } else { &all };
        if answer.is_empty() || (self.stream && !all.is_empty()) {
            return Ok(());
        }
        print(answer)?;
        if answer.ends_with('\n') { Ok(()) } else { print("\n") }
    }
}

fn parts_text(parts: &Value) -> String {
    let parts = parts.as_array().map(Vec::as_slice).unwrap_or_default();
    parts.iter().map(part_text).collect()
}

/// A part as a line of text: what cannot be shown is named.
fn part_text(part: &Value) -> String {
    match part["kind"].as_str() {
        Some("text") => part["text"].as_str().unwrap_or_default().to_owned(),
        Some("data") => format!("{}\n", part["data"]),
        Some("file") => {
            format!("[file {}]\n", part["file"]["name"].as_str().unwrap_or("without a name"))
        }
        _ => String::new(),
    }
}
