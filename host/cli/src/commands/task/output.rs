//! Output of a task: the answer on standard output, streamed or at the end, and everything else on
//! standard error.

use crate::commands::RUNNER;
use crate::{
    Exit, Format, Global,
    client::task_snapshot::{TaskStateSnapshot, progress_message, with_fix},
    ui::{
        console::Console,
        dialogue,
        failure::{CommandError, STREAM_ENDED},
        markdown_stream::MarkdownStream,
        render::{list, parts_text, shell_word, text},
        text::{FAINT, Text},
        tool_calls::ToolCalls,
    },
};
use serde_json::{Map, Value, json};
use std::{collections::HashMap, io};

/// Message of a cancelled task whose agent sent no last message.
const CANCELED: &str = "the task was cancelled";

/// Prints the id of a task that was begun; `options` are those of a remote agent.
pub(crate) fn print_begun(global: &Global, task: &Value, options: &str) -> anyhow::Result<Exit> {
    let id = text(&task["id"]);
    global.show(task, || Ok(format!("{id}\n").into()))?;
    if global.format == Format::Pretty {
        let note = runs_on(&global.command(), id, options);
        global.console().note(Text::styled(FAINT, note));
    }
    Ok(Exit::Done)
}

/// Note about a task that runs on after its command; `remote` are the options of a remote agent.
fn runs_on(command: &str, task: &str, remote: &str) -> String {
    // Commands for remote agents need no option that selects a hub.
    let command = if remote.is_empty() { command } else { "a2a-hub" };
    let task = shell_word(task);
    format!("the task runs on; {command} task watch {task}{remote} follows it")
}

/// Relation of an artifact's parts to those that came before.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Printing {
    /// The artifact replaces the earlier parts.
    Anew,
    /// The parts follow the earlier ones.
    More,
    /// The artifact is part of a complete task.
    Snapshot,
    /// The artifact is as the task ended, and only its unprinted rest counts.
    Rest,
}

/// State of the output of one task.
pub(crate) struct TaskOutput {
    format: Format,
    console: Console,
    /// Command line of this program that addresses the same hub.
    command: String,
    /// True if the answer is streamed.
    stream: bool,
    /// State of the task according to the events so far.
    pub(crate) snapshot: TaskStateSnapshot,
    /// Printed text of each artifact, by the artifact's id.
    pieces: HashMap<String, String>,
    /// Id of the artifact that was printed last, in this part of the conversation.
    latest: Option<String>,
    /// Width, in columns, at which the answer is rendered as Markdown; `None` if it is printed
    /// verbatim.
    markdown: Option<usize>,
    /// The same for the artifact that was printed last: its media type takes precedence.
    artifact_markdown: Option<usize>,
    /// Markdown on the screen.
    page: MarkdownStream,
    /// True if the last line on standard output lacks its line break.
    pub(crate) in_line: bool,
    /// Tool calls of the agent that have not ended.
    pub(crate) tool_calls: ToolCalls,
    /// True if the agent is a flow, whose messages are about its steps and stay on the screen.
    pub(crate) is_flow: bool,
    /// Reason why this command stopped waiting for the task.
    stop_reason: Option<String>,
    /// True if the command ended before the task, which runs on.
    is_detached: bool,
    /// True once standard output was closed by its reader.
    unread: bool,
}

impl TaskOutput {
    /// Creates an empty output; `stream` prints the answer as it arrives.
    pub(crate) fn new(global: &Global, stream: bool) -> Self {
        Self {
            format: global.format,
            console: global.console(),
            command: global.command(),
            stream,
            snapshot: TaskStateSnapshot::default(),
            pieces: HashMap::new(),
            latest: None,
            markdown: None,
            artifact_markdown: None,
            page: MarkdownStream::default(),
            in_line: false,
            tool_calls: ToolCalls::default(),
            is_flow: false,
            stop_reason: None,
            is_detached: false,
            unread: false,
        }
    }

    /// Takes from the hub's description of the agent whether it is a flow, and whether it writes
    /// Markdown.
    pub(crate) fn written_by(mut self, agent: &Value) -> Self {
        let source = text(&agent["source"]);
        let is_runner = agent["id"] == RUNNER && source == "built-in";
        self.is_flow = source.starts_with("flows/") || is_runner;
        // Its answer has those of agents, which are Markdown more often than not.
        match self.is_flow {
            true => self.written_in(&json!(["text/markdown"])),
            false => self.written_in(&agent["card"]["defaultOutputModes"]),
        }
    }

    /// Selects Markdown rendering if the agent's output media types include Markdown.
    pub(crate) fn written_in(mut self, modes: &Value) -> Self {
        let is_markdown = list(modes).iter().any(|mode| mode == "text/markdown");
        self.markdown = self.console.columns_for_markdown().filter(|_| is_markdown);
        self
    }

    /// Takes over which artifacts `earlier` printed, which a task repeats after an answer, and
    /// where it worked, which it need not repeat.
    pub(crate) fn after(mut self, earlier: Option<Self>) -> Self {
        if let Some(earlier) = earlier {
            self.snapshot.keep_worktree(&earlier.snapshot);
            self.pieces = earlier.pieces;
        }
        self
    }

    /// Returns the exit status; fails if the stream ended before the task did.
    pub(crate) fn exit(&self) -> anyhow::Result<Exit> {
        let why = || CommandError::new(STREAM_ENDED, "the stream ended before the task did");
        Ok(self.snapshot.exit.ok_or_else(why)?)
    }

    /// Records the reason why this command stops waiting for the task.
    pub(crate) fn give_up(&mut self, why: String) {
        self.stop_reason = Some(why);
    }

    /// Records that the command ends before the task, which runs on.
    pub(crate) fn detach(&mut self) {
        self.is_detached = true;
    }

    /// True if the task runs on after this command.
    pub(crate) fn is_detached(&self) -> bool {
        self.is_detached
    }

    /// Format of the output.
    pub(crate) fn format(&self) -> Format {
        self.format
    }

    /// Console that the output goes to.
    pub(crate) fn console(&self) -> Console {
        self.console
    }

    /// Stops printing because standard output was closed.
    pub(crate) fn leave_unread(&mut self) {
        self.unread = true;
        self.in_line = false;
    }

    /// True once standard output was closed.
    pub(crate) fn is_unread(&self) -> bool {
        self.unread
    }

    /// Handles the result of a write. A closed pipe is no error of the task, which may run for
    /// other clients.
    fn printed(&mut self, printed: io::Result<()>) -> io::Result<()> {
        match printed {
            Err(why) if why.kind() == io::ErrorKind::BrokenPipe => {
                self.leave_unread();
                Ok(())
            }
            other => other,
        }
    }

    /// Builds the error for a stream that broke off, with the command that continues it and ends
    /// with `elsewhere`.
    pub(crate) fn broken_off(&mut self, why: &anyhow::Error, elsewhere: &str) -> anyhow::Error {
        if std::mem::take(&mut self.in_line) && self.format == Format::Pretty {
            // The error starts on a new line; if standard output is closed, none is needed.
            let _ = self.console.print(&"\n".into());
        }
        let error = CommandError::from_error(why);
        let TaskStateSnapshot { task, state, artifacts, exit, .. } = &self.snapshot;
        let (Some(task), None) = (task, exit) else { return error.into() };
        // Commands for remote agents need no option that selects a hub.
        let command = if elsewhere.is_empty() { &*self.command } else { "a2a-hub" };
        let again = format!("{command} task watch {}{elsewhere}", shell_word(task));
        let stood = if state.is_empty() { "unknown" } else { state };
        let message = format!("; task {task} was last reported as {stood}, and may still run");
        let mut known = self.snapshot.known();
        if !self.stream {
            known.insert("artifacts".to_owned(), json!(artifacts));
        }
        error.saying(&message).mended_by(again).knowing(known).into()
    }

    /// Processes an event, prints its part of the answer if streaming, and returns the agent's
    /// progress message, if any.
    pub(crate) fn event(&mut self, event: &Value) -> io::Result<Option<String>> {
        if self.format == Format::Json && self.stream && !self.unread {
            let printed = self.console.print_json(event);
            self.printed(printed)?;
        }
        self.snapshot.apply(event);
        if self.format == Format::Pretty && self.stream && !self.unread {
            match event["kind"].as_str() {
                Some("task") => {
                    for artifact in event["artifacts"].as_array().into_iter().flatten() {
                        self.piece(artifact, Printing::Snapshot)?;
                    }
                }
                Some("artifact-update") => {
                    let is_more = event["append"] == true;
                    let mode = if is_more { Printing::More } else { Printing::Anew };
                    self.piece(&event["artifact"], mode)?;
                }
                _ => {}
            }
        }
        Ok(progress_message(event))
    }

    /// Prints a piece of an artifact: the part after the printed text, or the whole text if it
    /// changed.
    fn piece(&mut self, artifact: &Value, mode: Printing) -> io::Result<()> {
        let new = parts_text(&artifact["parts"]);
        let id = text(&artifact["artifactId"]);
        let printed = self.pieces.entry(id.to_owned()).or_default();
        // Some agents repeat a task with less of an artifact than they sent already.
        if mode == Printing::Snapshot && self.snapshot.exit.is_none() && printed.starts_with(&new) {
            return Ok(());
        }
        if mode == Printing::Rest && *printed == new {
            return Ok(());
        }
        let out = if mode == Printing::More {
            let is_text =
                list(&artifact["parts"]).first().is_none_or(|part| part["kind"] == "text");
            let is_in_line = !printed.is_empty() && !printed.ends_with('\n');
            let new = if is_in_line && !is_text { format!("\n{new}") } else { new };
            printed.push_str(&new);
            new
        } else {
            let out = match new.strip_prefix(printed.as_str()) {
                Some(rest) => rest.to_owned(),
                // The artifact's new text does not continue the printed one.
                None => format!("\n\n{new}"),
            };
            *printed = new;
            out
        };
        if out.is_empty() {
            return Ok(());
        }
        let is_new = self.latest.as_deref() != Some(id);
        if is_new && self.latest.is_some() {
            self.end_piece()?;
        }
        self.latest = Some(id.to_owned());
        if is_new {
            self.artifact_markdown = self.markdown_of(artifact);
        }
        if self.artifact_markdown.is_some() {
            let screen = self.console.screen();
            let drawn = self.page.push(&out, screen);
            return self.draw(&drawn);
        }
        self.page.follow_text();
        self.in_line = !out.ends_with('\n');
        let printed = self.console.print(&out.into());
        self.printed(printed)
    }

    /// Width at which an artifact is rendered as Markdown: by its text's media type, or else by the
    /// agent's.
    fn markdown_of(&self, artifact: &Value) -> Option<usize> {
        let mut types = list(&artifact["parts"]).iter().map(|part| &part["metadata"]["mediaType"]);
        match types.find_map(Value::as_str) {
            Some(media) if media.starts_with("text/markdown") => {
                self.console.columns_for_markdown()
            }
            Some(_) => None,
            None => self.markdown,
        }
    }

    /// Prints text with the codes of the terminal.
    fn draw(&mut self, drawn: &str) -> io::Result<()> {
        if drawn.is_empty() || self.unread {
            return Ok(());
        }
        let printed = self.console.print_drawn(drawn);
        self.printed(printed)
    }

    /// Prints a note on standard error by `print`, above the block of Markdown that still grows.
    pub(crate) fn print_before_open_block(&mut self, print: impl FnOnce()) -> io::Result<()> {
        let screen = self.console.screen();
        let hidden = self.page.hide(screen);
        self.draw(&hidden)?;
        print();
        let shown = self.page.show(screen);
        self.draw(&shown)
    }

    /// Prints the final JSON object, with the members of `more`, unless the events were streamed.
    fn finish_json(&self, exit: Exit, mut more: Map<String, Value>) -> io::Result<()> {
        if self.stream {
            return Ok(());
        }
        let message = self.stop_reason.clone().or_else(|| self.snapshot.last_message());
        let message = message.or_else(|| self.is_canceled().then(|| CANCELED.to_owned()));
        let mut members = self.snapshot.json_members(message.as_deref(), exit);
        members.append(&mut more);
        self.console.print_json(&Value::Object(members))
    }

    /// Prints what was not streamed; `exit` is the exit status of the command, and the final JSON
    /// object includes `more`.
    pub(crate) fn finish(&mut self, exit: Exit, more: Map<String, Value>) -> io::Result<()> {
        if self.unread {
            return Ok(());
        }
        let printed = match self.format {
            Format::Json => self.finish_json(exit, more),
            Format::Pretty => self.finish_text(exit),
        };
        self.printed(printed)
    }

    /// Prints the answer although its files could not be saved, and returns the error; for
    /// programs, the error contains the answer.
    pub(crate) fn unsaved(&mut self, why: anyhow::Error, exit: Exit) -> io::Result<anyhow::Error> {
        if self.format == Format::Json && !self.stream {
            let members = self.snapshot.json_members(self.snapshot.last_message().as_deref(), exit);
            return Ok(CommandError::from_error(&why).knowing(members).into());
        }
        self.finish(exit, Map::new())?;
        Ok(why)
    }

    /// Prints a note for people on standard error.
    pub(crate) fn note(&self, text: impl Into<Text>) {
        if self.format == Format::Pretty {
            self.console.note(text);
        }
    }

    /// Tells the user at a terminal how to continue the conversation of a task that ended. For a
    /// task that waits, its question does so.
    pub(crate) fn note_continuation(&self, is_elsewhere: bool) {
        let is_over = matches!(self.snapshot.exit, Some(Exit::Done | Exit::TaskFailed));
        if self.console.stderr_columns().is_none() || !is_over {
            return;
        }
        if let Some(context) = &self.snapshot.context {
            let option = if is_elsewhere { "--context" } else { "--context, or --continue" };
            let line = format!("context {}: continue with {option}", shell_word(context));
            self.note(Text::styled(FAINT, line));
        }
    }

    /// Ends the printed artifact: its last line, and its last Markdown block.
    pub(crate) fn end_piece(&mut self) -> io::Result<()> {
        if std::mem::take(&mut self.in_line) {
            self.console.print(&"\n".into())?;
        }
        if self.artifact_markdown.is_none() {
            return Ok(());
        }
        let drawn = self.page.end(self.console.screen());
        self.draw(&drawn)
    }

    fn finish_text(&mut self, exit: Exit) -> io::Result<()> {
        let is_final = matches!(exit, Exit::Done | Exit::TaskFailed | Exit::NeedsInput);
        if is_final {
            for artifact in std::mem::take(&mut self.snapshot.artifacts) {
                self.piece(&artifact, Printing::Rest)?;
                self.snapshot.artifacts.push(artifact);
            }
        }
        self.end_piece()?;
        match exit {
            Exit::Done => self.finish_answer(),
            // The caller prints the question.
            Exit::NeedsInput => Ok(()),
            Exit::Interrupted if self.is_detached => Ok(()),
            Exit::TaskFailed | Exit::Fault | Exit::Interrupted => {
                self.finish_failure();
                Ok(())
            }
        }
    }

    /// Prints the agent's last message below the artifacts. In a pipe or a file, the text of the
    /// artifacts is the result, and the message goes to standard error.
    fn finish_answer(&mut self) -> io::Result<()> {
        let Some(words) = self.snapshot.last_words() else { return Ok(()) };
        if self.markdown.is_some() {
            let drawn = self.page.draw_complete(&words, self.console.screen());
            return self.draw(&drawn);
        }
        if self.console.columns().is_none() && self.snapshot.has_text() {
            self.console.note(words.trim_end());
            return Ok(());
        }
        let gap = if self.latest.is_some() { "\n" } else { "" };
        let end = if words.ends_with('\n') { "" } else { "\n" };
        self.console.print(&format!("{gap}{words}{end}").into())
    }

    /// Says that the task runs on, and which command shows it.
    pub(crate) fn note_detached(&self, elsewhere: &str) {
        if let Some(task) = &self.snapshot.task {
            self.note(runs_on(&self.command, task, elsewhere));
        }
    }

    fn finish_failure(&self) {
        let message =
            self.snapshot.last_message().map(|message| with_fix(message, self.snapshot.fix()));
        match (&self.stop_reason, message, self.console.stderr_columns()) {
            (Some(why), ..) => self.console.note(why.as_str()),
            (None, Some(message), Some(columns)) => {
                self.console.prompt(&dialogue::quoted(&message, columns));
            }
            (None, Some(message), None) => self.console.note(message),
            (None, None, _) if self.is_canceled() => self.console.note(CANCELED),
            (None, None, _) => {}
        }
    }

    fn is_canceled(&self) -> bool {
        self.snapshot.state == "canceled"
    }
}
