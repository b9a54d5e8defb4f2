//! Driver of `gemini -o stream-json`: the prompt on standard input, one event per line, no
//! questions.
//!
//! ```text
//! init ─► message (a delta) | tool_use ─► tool_result | error ─► result (success, if it says so)
//! ```
//! The CLI uses tools that need no approval, and refuses the others by itself. It works in trusted
//! directories only, so this mode trusts the workspace: its hooks and servers run.

use std::borrow::Cow;

use a2a_hub_sdk::cli::acp::{Refusal, Speaker as _, plain};
use a2a_hub_sdk::cli::{
    Action, Decision, Driver, End, FailureReason, FileChange, Job, Permissions, Question, Session,
    ToolFacts, cut, describe_exit, running, skipped, tool_ended,
};
use a2a_hub_sdk::foreign::{self, JsonLines};
use a2a_hub_sdk::serde_json::{Map, Value};
use a2a_hub_sdk::{Command, Exit, ExitStatus};

use crate::speaker::Gemini;

/// Command of a run. The session id comes from the CLI itself, so it never begins with a dash.
pub fn command(command: Command, job: &Job) -> Command {
    let mode = match job.permissions {
        // Without a user to ask, the CLI removes the tools that need approval.
        Permissions::Ask | Permissions::ReadOnly => "default",
        Permissions::Edit => "auto_edit",
        Permissions::Full => "yolo",
    };
    let mut command = command
        .args(["-o", "stream-json", "--approval-mode", mode])
        .env("GEMINI_CLI_TRUST_WORKSPACE", "true");
    if let Some(model) = &job.choices.model {
        command = command.args(["--model", model]);
    }
    if let Some(session) = &job.session {
        command = command.args(["--resume", &session.id]);
    }
    command
}

/// True if this mode would ignore the operator's list of allowed tools: it removes the tools that
/// need approval. Read-only runs deny the others anyway, and full permissions need no list.
pub fn ignores_tools(job: &Job) -> bool {
    let asks = matches!(job.permissions, Permissions::Ask | Permissions::Edit);
    asks && !job.choices.allowed_tools.is_empty()
}

/// CLI's name for the error that ends a run at the operator's `model.maxSessionTurns`.
const TURN_LIMIT: &str = "FatalTurnLimitedError";

/// Driver of one prompt and its answer.
pub struct OneShot {
    prompt: String,
    resumed: bool,
    text: String,
    /// True if the next text begins another message.
    over: bool,
    /// File that each pending tool call would write.
    writing: Map<String, Value>,
    /// Complaint of the CLI, for a result that fails without a text.
    complaint: Option<String>,
    lines: JsonLines,
}

impl OneShot {
    /// Creates the driver of a job.
    pub fn new(job: &Job) -> Self {
        Self {
            prompt: plain(&job.prompt),
            resumed: job.session.is_some(),
            text: String::new(),
            over: true,
            writing: Map::new(),
            complaint: None,
            lines: JsonLines::default(),
        }
    }

    fn text(&mut self, text: &str) -> Vec<Action> {
        let mut actions = Vec::new();
        if std::mem::take(&mut self.over) {
            self.text.clear();
            self.lines.end_of_message();
            actions.push(Action::Restart);
        }
        let text = self.lines.chunk(text);
        self.text.push_str(&text);
        actions.push(Action::Delta(text));
        actions
    }

    fn tool_use(&mut self, event: &Value) -> Vec<Action> {
        self.over = true;
        let (tool, input) = (text_of(event, "tool_name"), &event["parameters"]);
        if matches!(&*tool, "write_file" | "replace") {
            self.writing.insert(text_of(event, "tool_id").into_owned(), input["file_path"].clone());
        }
        let (id, text) = (text_of(event, "tool_id"), running(&tool, input));
        let title = text.strip_prefix("running ").unwrap_or(&text);
        let call =
            ToolFacts { id: &id, name: &tool, title, input: Some(input), ..ToolFacts::default() };
        vec![Action::Report { facts: call.begun(), text }]
    }

    fn tool_result(&mut self, event: &Value) -> Vec<Action> {
        let written = self.writing.remove(&*text_of(event, "tool_id"));
        let id = text_of(event, "tool_id");
        if event["status"] != "success" {
            let why = foreign::text(&event["error"]).unwrap_or_default();
            let text = cut(&format!("failed: {why}"));
            return vec![Action::Report { text, facts: tool_ended(&id, true) }];
        }
        let mut actions =
            vec![Action::Report { text: String::new(), facts: tool_ended(&id, false) }];
        if let Some(Value::String(path)) = written {
            actions.push(Action::Changed(FileChange { path, diff: None }));
        }
        actions
    }

    fn result(&mut self, event: &Value) -> End {
        let stats = &event["stats"];
        let mut usage = Map::new();
        for counter in ["input_tokens", "output_tokens"] {
            let count = foreign::integer(&stats[counter]);
            usage.insert(counter.to_owned(), count.into());
        }
        let mut metadata = Map::new();
        metadata.insert("usage".into(), usage.into());
        // The other models only selected this one.
        let models = stats["models"].as_object().into_iter().flatten();
        if let Some((model, _)) = models.max_by_key(|(_, of)| foreign::integer(&of["total_tokens"]))
        {
            metadata.insert("model".into(), model.as_str().into());
        }
        if event["status"] == "success" {
            let mut text = std::mem::take(&mut self.text);
            text.push_str(self.lines.end_of_message());
            return End::Completed { text, metadata };
        }
        match foreign::text(&event["error"]) {
            Some(text) if text_of(&event["error"], "type") == TURN_LIMIT => {
                End::Failed { reason: FailureReason::MaxTurns, text: text.into_owned(), metadata }
            }
            Some(text) => refused(&text),
            None => {
                let text = self.complaint.take();
                let text = text.unwrap_or_else(|| "Gemini CLI does not say why it failed".into());
                End::Failed { reason: FailureReason::BrokenStream, text, metadata }
            }
        }
    }
}

/// Maps an API's error to the end of the run: `[API Error: {"error":{"code":401,"message":"…"}}]`,
/// a status alone (`[API Error: 429]`), or words, quoted or not.
fn refused(text: &str) -> End {
    let inner = text.strip_prefix("[API Error: ");
    let inner = inner.and_then(|inner| inner.trim_end().strip_suffix(']')).unwrap_or(text);
    let parsed = foreign::read(inner).unwrap_or_default();
    let error = &parsed["error"];
    let words = match error["message"].as_str().or(parsed.as_str()) {
        Some(words) => words,
        // A bare number or flag says too little without the surrounding text.
        None if parsed.is_number() || parsed.is_boolean() => text,
        None => inner,
    };
    match foreign::integer(&error["code"]).or(parsed.as_i64()) {
        Some(code) => Gemini.end(&Refusal { code, text: words.to_owned(), data: Value::Null }),
        None if words.contains("quota") => End::failed(FailureReason::RateLimited, words),
        None => End::failed(FailureReason::ApiError, words),
    }
}

fn text_of<'a>(event: &'a Value, member: &str) -> Cow<'a, str> {
    foreign::text(&event[member]).unwrap_or_default()
}

impl Driver for OneShot {
    fn begin(&mut self) -> Vec<Action> {
        vec![Action::Send(std::mem::take(&mut self.prompt)), Action::EndInput]
    }

    fn line(&mut self, line: &str) -> Vec<Action> {
        let event = match self.lines.read(line) {
            Ok(event) => event,
            Err(fault) => return skipped(line, &fault),
        };
        match &*text_of(&event, "type") {
            "init" => match text_of(&event, "session_id") {
                id if id.is_empty() => Vec::new(),
                id => vec![Action::Remember(Session::new(id))],
            },
            "message" if event["role"] == "assistant" => self.text(&text_of(&event, "content")),
            "tool_use" => self.tool_use(&event),
            "tool_result" => self.tool_result(&event),
            "error" => {
                let message = text_of(&event, "message");
                self.complaint = Some(message.to_string());
                vec![Action::Say(cut(&message))]
            }
            "result" => vec![Action::End(self.result(&event))],
            _ => Vec::new(),
        }
    }

    fn decided(&mut self, _: &Question, _: &Decision) -> Vec<Action> {
        Vec::new()
    }

    /// The exit codes are documented by the CLI; an HTTP status comes with a result.
    fn ended(&self, exit: &Exit) -> End {
        let why = exit.stderr.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
        match exit.status {
            ExitStatus::Code(41) => End::LoginNeeded(why.to_owned()),
            ExitStatus::Code(42) if self.resumed => End::SessionLost,
            ExitStatus::Code(53) => End::failed(FailureReason::MaxTurns, why),
            ExitStatus::Code(_) | ExitStatus::Signal(_) => {
                let end = describe_exit(exit);
                let text = format!("Gemini CLI ended before its answer ({end}): {why}");
                End::failed(FailureReason::BrokenStream, text)
            }
        }
    }
}
