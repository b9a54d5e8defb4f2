//! A task as it goes on: what it says and makes is printed, Ctrl-C is heard.

use super::{
    Exit, Format, Global,
    client::Client,
    console::Console,
    failure::{CommandError, STREAM_ENDED, is_broken_pipe},
    render::{list, parts_text, shell_word, text},
    terminal::{self, Progress},
};
use serde_json::{Map, Value, json};
use std::{collections::HashMap, io};
use tokio::signal::unix::{SignalKind, signal};

/// What Ctrl-C does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OnInterrupt {
    /// It cancels the task; a second one just leaves.
    Cancel,
    /// It leaves, and the task goes on.
    Leave,
}

/// Shows what comes until the task is over or waits for its client. A stream that ends before that is a failure.
pub(super) async fn follow(
    client: &mut Client,
    id: u64,
    shown: &mut Shown,
    progress: &mut Progress,
    on_interrupt: OnInterrupt,
) -> anyhow::Result<Exit> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut cancelling = None;
    loop {
        let answered = tokio::select! {
            answered = client.next() => Some(answered?),
            _ = interrupt.recv() => None,
            () = progress.tick(), if !shown.in_line => {
                progress.draw();
                continue;
            }
        };
        progress.clear();
        match answered {
            Some((of, result)) if of == id => {
                let event = result?;
                if event["kind"] == "stream-end" {
                    let exit = shown.exit();
                    return if cancelling.is_some() { Ok(Exit::Interrupted) } else { exit };
                }
                shown.event(&event)?;
            }
            Some((of, result)) if Some(of) == cancelling => {
                if let Err(why) = result {
                    shown.console.note(format!("cancel: {why}"));
                }
            }
            Some(_) => {}
            None if on_interrupt == OnInterrupt::Leave => return Ok(Exit::Interrupted),
            None => {
                let (Some(task), None) = (&shown.task, cancelling) else {
                    return Ok(Exit::Interrupted);
                };
                shown.console.note("cancelling; press Ctrl-C again to leave at once");
                cancelling = Some(client.ask("tasks/cancel", json!({ "id": task })).await?);
            }
        }
    }
}

/// What was printed so far, and what is to be said at the end.
pub(super) struct Shown {
    format: Format,
    console: Console,
    stream: bool,
    /// The task, once that is known.
    pub(super) task: Option<String>,
    /// Where it stands.
    pub(super) state: String,
    /// The text of each artifact as it now stands, in the order they came.
    artifacts: Vec<(String, String)>,
    /// How much of each was printed.
    printed: HashMap<String, String>,
    /// Whether the line on standard output is not ended.
    pub(super) in_line: bool,
    /// What the agent said last.
    pub(super) last_word: Option<String>,
    /// Why the command gave it up, or what it knows of its end where the agent said nothing.
    given_up: Option<String>,
    /// What became of the task, once it is over or waits for its client.
    exit: Option<Exit>,
    context: Option<String>,
}

impl Shown {
    /// Nothing so far; `stream` has it printed as it comes.
    pub(super) fn new(global: &Global, stream: bool) -> Self {
        Self {
            format: global.format,
            console: global.console(),
            stream,
            task: None,
            state: String::new(),
            artifacts: Vec::new(),
            printed: HashMap::new(),
            in_line: false,
            last_word: None,
            given_up: None,
            exit: None,
            context: None,
        }
    }

    /// What became of the task; an error if it was not told to its end.
    pub(super) fn exit(&self) -> anyhow::Result<Exit> {
        let why = || CommandError::new(STREAM_ENDED, "the stream ended before the task did");
        Ok(self.exit.ok_or_else(why)?)
    }

    /// The task is given up, for this reason.
    pub(super) fn give_up(&mut self, why: String) {
        self.given_up = Some(why);
    }

    /// The error of a command that did not hear of the end, and how to go on: by a command that ends with `elsewhere`.
    pub(super) fn broken_off(&mut self, why: anyhow::Error, elsewhere: &str) -> anyhow::Error {
        if is_broken_pipe(&why) {
            return why;
        }
        if std::mem::take(&mut self.in_line) && self.format == Format::Pretty {
            // What is said next begins a line of its own; where standard output is gone, nothing is in the way.
            let _ = self.console.print(&"\n".into());
        }
        let error = CommandError::of(&why);
        let (Some(task), None) = (&self.task, self.exit) else { return error.into() };
        let again = format!("a2a-hub task watch {}{elsewhere}", shell_word(task));
        let told = if self.state.is_empty() { "unknown" } else { &self.state };
        let said = format!("; task {task} was {told} when last heard of, and may go on: {again}");
        let mut known = self.known();
        if !self.stream {
            known.insert("artifacts".to_owned(), self.made());
        }
        error.saying(&said).mended_by(again).knowing(known).into()
    }

    /// What a program is told of the task.
    fn known(&self) -> Map<String, Value> {
        let state = Some(&self.state).filter(|state| !state.is_empty());
        let known = [
            ("taskId", json!(self.task)),
            ("contextId", json!(self.context)),
            ("state", json!(state)),
        ];
        known.map(|(name, value)| (name.to_owned(), value)).into_iter().collect()
    }

    /// Takes in what the hub says.
    pub(super) fn event(&mut self, event: &Value) -> io::Result<()> {
        if self.format == Format::Json && self.stream {
            self.console.print_json(event)?;
        }
        match event["kind"].as_str() {
            Some("task") => {
                self.task = event["id"].as_str().map(str::to_owned);
                self.context = event["contextId"].as_str().map(str::to_owned);
                self.status(&event["status"]);
                // A task that is watched from its middle brings what was made so far.
                for artifact in list(&event["artifacts"]) {
                    self.artifact(&json!({ "artifact": artifact }))?;
                }
            }
            Some("status-update") => {
                self.task.get_or_insert_with(|| text(&event["taskId"]).to_owned());
                self.status(&event["status"]);
            }
            Some("artifact-update") => return self.artifact(event),
            Some("message") => {
                self.last_word = Some(parts_text(&event["parts"]));
                self.context = event["contextId"].as_str().map(str::to_owned);
                self.exit = Some(Exit::Done);
            }
            _ => {}
        }
        Ok(())
    }

    fn status(&mut self, status: &Value) {
        let said = status["message"].is_object().then(|| parts_text(&status["message"]["parts"]));
        self.exit = match status["state"].as_str() {
            Some("completed") => Some(Exit::Done),
            Some("failed" | "rejected" | "canceled") => Some(Exit::TaskFailed),
            Some("input-required" | "auth-required") => Some(Exit::NeedsInput),
            _ => None,
        };
        text(&status["state"]).clone_into(&mut self.state);
        let working = self.state == "working";
        if let Some(said) = said {
            if working && self.format == Format::Pretty {
                self.console.note(status_text(&said));
            } else if !working {
                self.last_word = Some(said);
            }
        }
        if status["state"] == "canceled" && self.last_word.is_none() {
            self.given_up = Some("the task was cancelled".to_owned());
        }
    }

    fn artifact(&mut self, event: &Value) -> io::Result<()> {
        let artifact = &event["artifact"];
        let id = text(&artifact["artifactId"]).to_owned();
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
        self.console.print(&out.into())
    }

    /// The text of each artifact, as it now stands.
    fn made(&self) -> Value {
        self.artifacts.iter().map(|(_, text)| text.as_str()).collect()
    }

    /// Says what was not said as it came; `exit` is what the command comes to.
    pub(super) fn finish(&mut self, exit: Exit) -> io::Result<()> {
        if self.format == Format::Json {
            if self.stream {
                return Ok(());
            }
            let mut all = self.known();
            let message = self.given_up.as_ref().or(self.last_word.as_ref());
            all.insert("message".to_owned(), json!(message));
            all.insert("artifacts".to_owned(), self.made());
            all.insert("exit".to_owned(), json!(exit as u8));
            return self.console.print_json(&Value::Object(all));
        }
        if self.in_line {
            self.console.print(&"\n".into())?;
        }
        if let Some(why) = self.given_up.as_deref().filter(|_| exit != Exit::Done) {
            self.console.note(why);
            return Ok(());
        }
        match (exit, &self.last_word) {
            (Exit::Done, _) => {}
            // Whoever asks for the answer tells the question.
            (Exit::NeedsInput, _) | (_, None) => return Ok(()),
            (Exit::TaskFailed | Exit::Fault | Exit::Interrupted, Some(said)) => {
                match self.console.columns_beside() {
                    Some(columns) => self.console.prompt(&terminal::quoted(said, columns)),
                    None => self.console.note(said.as_str()),
                }
                return Ok(());
            }
        }
        let all: Vec<_> = self.artifacts.iter().map(|(_, text)| text.as_str()).collect();
        let all = all.join("\n");
        let answer =
            if all.is_empty() { self.last_word.as_deref().unwrap_or_default() } else { &all };
        if answer.is_empty() || (self.stream && !all.is_empty()) {
            return Ok(());
        }
        let end = if answer.ends_with('\n') { "" } else { "\n" };
        self.console.print(&format!("{answer}{end}").into())
    }
}

/// What an agent says while it works: each line is seen to be its own.
fn status_text(said: &str) -> String {
    let lines = said.lines().enumerate();
    let lines = lines.map(|(n, line)| format!("{} {line}", if n == 0 { '·' } else { ' ' }));
    lines.collect::<Vec<_>>().join("\n")
}
