//! A task as it goes on: what it says and makes is printed, Ctrl-C is heard.

use super::{
    Exit, Format,
    client::Client,
    note, print,
    render::{list, parts_text, text},
    terminal::Progress,
};
use serde_json::{Value, json};
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

/// Shows what comes until the stream ends.
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
            None if on_interrupt == OnInterrupt::Leave => return Ok(Exit::Interrupted),
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
pub(super) struct Shown {
    format: Format,
    stream: bool,
    /// The task, once that is known.
    pub(super) task: Option<String>,
    /// Where it stands.
    pub(super) state: String,
    /// The name of the question it asked last.
    pub(super) question: Option<String>,
    /// The text of each artifact as it now stands, in the order they came.
    artifacts: Vec<(String, String)>,
    /// How much of each was printed.
    printed: HashMap<String, String>,
    /// Whether the line on standard output is not ended.
    pub(super) in_line: bool,
    /// What the agent said last.
    last_word: Option<String>,
    exit: Exit,
}

impl Shown {
    /// Nothing so far; `stream` has it printed as it comes.
    pub(super) fn new(format: Format, stream: bool) -> Self {
        Self {
            format,
            stream,
            task: None,
            state: String::new(),
            question: None,
            artifacts: Vec::new(),
            printed: HashMap::new(),
            in_line: false,
            last_word: None,
            exit: Exit::Done,
        }
    }

    /// What became of the task, as far as it was told.
    pub(super) fn exit(&self) -> Exit {
        self.exit
    }

    /// The task is given up, for this reason.
    pub(super) fn give_up(&mut self, why: String) {
        self.last_word = Some(why);
        self.exit = Exit::TaskFailed;
    }

    /// Takes in what the hub says.
    pub(super) fn event(&mut self, event: &Value) -> io::Result<()> {
        if self.format == Format::Json && self.stream {
            print(&format!("{event}\n"))?;
        }
        if let Some(asked) = event["metadata"]["question"]["id"].as_str() {
            self.question = Some(asked.to_owned());
        }
        match event["kind"].as_str() {
            Some("task") => {
                self.task = event["id"].as_str().map(str::to_owned);
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
        text(&status["state"]).clone_into(&mut self.state);
        let working = self.state == "working";
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
        print(&out)
    }

    /// Says what was not said as it came.
    pub(super) fn finish(&mut self) -> io::Result<()> {
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
