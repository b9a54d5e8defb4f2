//! Driver of the CLI: a state machine that turns lines into actions without any I/O.
//!
//! ```text
//! prompt -> init -> message* -> result -> prompt …
//!     success only if the result says so; the exit code proves nothing
//!   message = message_start, deltas, assistant with the whole text and tool uses, message_stop
//!   between them: api_retry (the message starts over), control_request (the CLI waits)
//! ```
//! Lines and fields that this version does not know are ignored: the dialect grows with every
//! release of the CLI.

use std::borrow::Cow;

use a2a_hub_sdk::Exit;
use a2a_hub_sdk::cli::{
    Action, Decision, Driver, End, FailureReason, Idle, Job, Question, Session, cut, describe_exit,
    last_words, skipped,
};
use a2a_hub_sdk::foreign::{
    self, JsonLines, NotJson, lenient_integer, lenient_number, lenient_text,
};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value, json};

use crate::activity::{self, ToolUses};
use crate::shell::Shell;
use crate::{change, permission, prompt};

/// Name of the counter of a session's cost, in dollars.
const COST: &str = "cost_usd";

/// Id of the request that interrupts a turn.
const INTERRUPT: &str = "interrupt";

/// State of one turn.
#[derive(Debug, Default)]
pub struct Claude {
    /// First line sent to the CLI.
    prompt: String,
    session: Session,
    /// True in the process's first turn.
    is_first: bool,
    /// Session id of this run, known from `init`; stored once the model has answered.
    running: String,
    model: Option<String>,
    directory: Option<String>,
    /// Directories besides the working directory.
    additional: Vec<String>,
    /// Text of the latest whole message.
    text: String,
    login_failed: bool,
    /// Error of the API that the latest message reports, in the CLI's word.
    api_error: Option<String>,
    /// Time at which the quota resets that refused the latest request, in seconds since 1970.
    resets_at: Option<u64>,
    /// True if the turn was cancelled.
    is_interrupted: bool,
    /// True if the turn ended with an answer, or as it was cancelled.
    is_answered: bool,
    tools: ToolUses,
    shell: Shell,
    /// Tokens of the context, as of the latest message.
    used: Option<f64>,
    /// Ids of the open questions.
    open_questions: Vec<Value>,
    /// Output that is not JSON: complaints from before the dialect begins.
    noise: String,
    lines: JsonLines,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum OutputLine {
    System(System),
    StreamEvent {
        event: Stream,
        parent_tool_use_id: Option<Value>,
    },
    Assistant {
        #[serde(default)]
        message: Value,
        parent_tool_use_id: Option<Value>,
        #[serde(default, deserialize_with = "lenient_text")]
        error: Option<String>,
    },
    User {
        tool_use_result: Option<Value>,
        #[serde(default)]
        message: Value,
    },
    ControlRequest {
        request_id: Value,
        #[serde(default)]
        request: Value,
    },
    ControlCancelRequest {
        request_id: Value,
    },
    RateLimitEvent {
        #[serde(default)]
        rate_limit_info: Value,
    },
    Result(Box<Terminal>),
    #[serde(other)]
    Unknown,
}

#[derive(Deserialize)]
#[serde(tag = "subtype", rename_all = "snake_case")]
enum System {
    Init {
        #[serde(default, deserialize_with = "lenient_text")]
        session_id: Option<String>,
        #[serde(default, deserialize_with = "lenient_text")]
        model: Option<String>,
        #[serde(default, deserialize_with = "lenient_text")]
        cwd: Option<String>,
    },
    ApiRetry {
        #[serde(default, deserialize_with = "lenient_integer")]
        attempt: Option<u32>,
        #[serde(default, deserialize_with = "lenient_integer")]
        max_retries: Option<u32>,
        #[serde(default, deserialize_with = "lenient_integer")]
        error_status: Option<u16>,
        #[serde(default, deserialize_with = "lenient_text")]
        error: Option<String>,
    },
    PermissionDenied {
        #[serde(default, deserialize_with = "lenient_text")]
        tool_name: Option<String>,
        #[serde(default, deserialize_with = "lenient_text")]
        message: Option<String>,
    },
    #[serde(other)]
    Unknown,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Stream {
    MessageStart,
    ContentBlockDelta {
        delta: Delta,
    },
    #[serde(other)]
    Unknown,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Delta {
    TextDelta {
        #[serde(default, deserialize_with = "lenient_text")]
        text: Option<String>,
    },
    #[serde(other)]
    Unknown,
}

#[derive(Default, Deserialize)]
struct Message {
    #[serde(default, deserialize_with = "blocks")]
    content: Vec<Block>,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Block {
    Text {
        #[serde(default, deserialize_with = "lenient_text")]
        text: Option<String>,
    },
    ToolUse {
        #[serde(default, deserialize_with = "lenient_text")]
        id: Option<String>,
        #[serde(default, deserialize_with = "lenient_text")]
        name: Option<String>,
        #[serde(default)]
        input: Value,
    },
    ToolResult {
        #[serde(default, deserialize_with = "lenient_text")]
        tool_use_id: Option<String>,
        #[serde(default)]
        is_error: Value,
    },
    #[serde(other)]
    Unknown,
}

/// Blocks of a message. Some versions write a plain text in place of a list.
fn blocks<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Block>, D::Error> {
    Ok(match Value::deserialize(from)? {
        Value::String(text) => vec![Block::Text { text: Some(text) }],
        Value::Array(blocks) => {
            blocks.into_iter().filter_map(|block| Block::deserialize(block).ok()).collect()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => Vec::new(),
    })
}

/// Final result. `is_error` decides: API failures have the subtype `success`. All other members may
/// be absent or have another type.
#[derive(Deserialize)]
struct Terminal {
    #[serde(default)]
    is_error: Value,
    #[serde(default, deserialize_with = "lenient_text")]
    subtype: Option<String>,
    #[serde(default)]
    result: Value,
    #[serde(default)]
    errors: Value,
    #[serde(default, deserialize_with = "lenient_integer")]
    api_error_status: Option<u16>,
    #[serde(default, deserialize_with = "lenient_text")]
    terminal_reason: Option<String>,
    #[serde(default, deserialize_with = "lenient_integer")]
    num_turns: Option<u32>,
    #[serde(default, deserialize_with = "lenient_number")]
    total_cost_usd: Option<f64>,
    usage: Option<Value>,
    #[serde(default, rename = "modelUsage")]
    model_usage: Value,
}

impl Claude {
    /// Creates the driver of a job.
    pub fn new(job: &Job) -> Self {
        let session = job.session.clone().unwrap_or_default();
        let (prompt, additional) = (prompt::line(job), job.additional.clone());
        Self { prompt, session, additional, is_first: true, ..Self::default() }
    }
}

impl Driver for Claude {
    fn begin(&mut self) -> Vec<Action> {
        vec![Action::Send(std::mem::take(&mut self.prompt))]
    }

    fn again(&mut self, idle: &Idle) -> Option<Vec<Action>> {
        self.session = idle.session.clone();
        self.shell = Shell::resumed(&idle.state);
        self.is_first = false;
        Some(self.begin())
    }

    /// Before the first answer of the model, the CLI has stored no session that can be resumed.
    fn interrupt(&mut self) -> Vec<Action> {
        if self.is_answered || self.session.id.is_empty() {
            return Vec::new();
        }
        self.is_interrupted = true;
        let request = json!({ "subtype": "interrupt" });
        let request =
            json!({ "type": "control_request", "request_id": INTERRUPT, "request": request });
        vec![Action::Send(request.to_string())]
    }

    fn idle(&self) -> Option<Idle> {
        let is_idle =
            self.is_answered && self.open_questions.is_empty() && !self.session.id.is_empty();
        is_idle.then(|| Idle { session: self.session.clone(), state: self.shell.idle() })
    }

    fn line(&mut self, line: &str) -> Vec<Action> {
        let value = match self.lines.read(line) {
            Ok(value) => value,
            Err(fault) => return self.unreadable(line, &fault),
        };
        match OutputLine::deserialize(value) {
            Ok(OutputLine::System(system)) => self.system(system),
            Ok(OutputLine::StreamEvent { event, parent_tool_use_id: None }) => self.stream(event),
            Ok(OutputLine::Assistant { message, parent_tool_use_id, error }) => {
                if parent_tool_use_id.is_none() {
                    self.used = activity::tokens_of(&message["usage"]).or(self.used);
                }
                self.login_failed |= error.as_deref() == Some("authentication_failed");
                if parent_tool_use_id.is_none() {
                    self.api_error = error;
                }
                let message = Message::deserialize(message).unwrap_or_default();
                self.message(message, parent_tool_use_id.is_some())
            }
            Ok(OutputLine::User { tool_use_result, message }) => {
                let change = tool_use_result.as_ref().and_then(change::from_result);
                let mut actions: Vec<_> = change.map(Action::Changed).into_iter().collect();
                for block in Message::deserialize(message).unwrap_or_default().content {
                    if let Block::ToolResult { tool_use_id: Some(id), is_error } = block {
                        actions.extend(self.tools.end(&id, is_error == true));
                    }
                }
                actions
            }
            Ok(OutputLine::ControlRequest { request_id, request }) => {
                let (directory, additional) = (self.directory.clone(), &self.additional);
                // A hook may have changed the input.
                let tool = request["tool_name"].as_str().unwrap_or_default();
                self.shell.follow(tool, &request["input"]);
                let shell = &self.shell;
                match permission::question(&request_id, request, directory, additional, shell) {
                    Ok(question) => {
                        self.open_questions.push(question.id.clone());
                        vec![Action::Ask(Box::new(question))]
                    }
                    Err(refusal) => vec![Action::Send(refusal)],
                }
            }
            Ok(OutputLine::ControlCancelRequest { request_id }) => {
                let mut withdrawn =
                    self.open_questions.extract_if(.., |id| id["request"] == request_id);
                withdrawn.next().map(Action::Withdrawn).into_iter().collect()
            }
            Ok(OutputLine::RateLimitEvent { rate_limit_info: info }) => {
                // The others warn of a limit, or say that it is far.
                let is_used_up = info["status"] == "rejected";
                self.resets_at = foreign::integer(&info["resetsAt"])
                    .filter(|_| is_used_up)
                    .and_then(|time| time.try_into().ok());
                Vec::new()
            }
            Ok(OutputLine::Result(terminal)) => self.result(&terminal),
            // Lines and events of other shapes.
            Ok(OutputLine::StreamEvent { .. } | OutputLine::Unknown) | Err(_) => Vec::new(),
        }
    }

    fn decided(&mut self, question: &Question, decision: &Decision) -> Vec<Action> {
        self.open_questions.retain(|id| *id != question.id);
        vec![Action::Send(permission::answer(question, decision))]
    }

    fn ended(&self, exit: &Exit) -> End {
        let words = if exit.stderr.is_empty() { &self.noise } else { &exit.stderr };
        if is_lost_session(words) {
            return End::SessionLost;
        }
        if self.login_failed || is_login_problem(words) {
            return End::LoginNeeded(words.clone());
        }
        let words = last_words(exit).unwrap_or(&self.noise);
        let text = format!("claude ended ({}) before it was done: {words}", describe_exit(exit));
        End::failed(FailureReason::BrokenStream, text.trim_end_matches([':', ' ']))
    }
}

impl Claude {
    /// Handles a line that is not JSON: the CLI may wait for an answer, or for the next prompt.
    fn unreadable(&mut self, line: &str, fault: &NotJson) -> Vec<Action> {
        if line.trim_start().starts_with('{') {
            self.shell.lose_track();
        } else {
            self.noise = cut(line);
        }
        let mut actions = skipped(line, fault);
        let request_id = fault.members.get("request_id").filter(|id| !id.is_null());
        if is_of_type(line, "result") {
            let text = format!("claude's result is not understood: {fault}");
            actions.push(Action::End(End::failed(FailureReason::BrokenStream, text)));
        } else if let Some(id) = request_id
            && is_of_type(line, "control_request")
        {
            let why = format!("the request is not JSON: {fault}");
            actions.push(Action::Send(permission::refusal(id, &why)));
        }
        actions
    }

    fn system(&mut self, system: System) -> Vec<Action> {
        match system {
            System::Init { session_id, model, cwd } => {
                self.running = session_id.unwrap_or_default();
                self.model = model;
                self.directory = cwd;
                // The session's servers run by now, and no process of the model does.
                if self.is_first { vec![Action::Settled] } else { Vec::new() }
            }
            // The first refusal may concern a token that has just expired, which the CLI renews.
            // The second is final: further attempts fail alike.
            System::ApiRetry {
                attempt: Some(2..),
                error_status: Some(status @ (401 | 403)),
                ..
            } => {
                let text = format!("The API refused the login ({status}).");
                vec![Action::End(End::LoginNeeded(text))]
            }
            System::ApiRetry { attempt, max_retries, error_status, error } => {
                let word = error.unwrap_or_else(|| "unknown".to_owned());
                let error = word.replace('_', " ");
                let attempt = attempt.map(|attempt| format!(" {attempt}")).unwrap_or_default();
                let limit = max_retries.map(|limit| format!("/{limit}")).unwrap_or_default();
                let status = format!("retrying{attempt}{limit}: {error}");
                let end = match (error_status, api_reason(&word, "")) {
                    (None, Some(reason)) => End::failed(reason, error),
                    (status, _) => End::of_status(status.unwrap_or_default(), error),
                };
                let end = end.resetting_at(self.resets_at);
                vec![Action::Retrying { status, end }]
            }
            System::PermissionDenied { tool_name, message } => {
                let why = message.map(|message| format!(": {message}")).unwrap_or_default();
                let tool_name = tool_name.as_deref().unwrap_or("a tool");
                vec![Action::Say(cut(&format!("{tool_name} is not permitted{why}")))]
            }
            System::Unknown => Vec::new(),
        }
    }

    fn stream(&mut self, event: Stream) -> Vec<Action> {
        match event {
            Stream::MessageStart => {
                self.text.clear();
                self.lines.end_of_message();
                let mut actions = vec![Action::Restart];
                // The session can be resumed from the first answer on.
                if self.session.id != self.running && !self.running.is_empty() {
                    self.session = Session::new(&self.running);
                    actions.push(Action::Remember(self.session.clone()));
                }
                actions
            }
            Stream::ContentBlockDelta { delta: Delta::TextDelta { text } } => {
                vec![Action::Delta(self.lines.chunk(&text.unwrap_or_default()))]
            }
            Stream::ContentBlockDelta { delta: Delta::Unknown } | Stream::Unknown => Vec::new(),
        }
    }

    /// Handles a message in whole blocks. A subagent's text is for the agent, but its tool uses are
    /// reported.
    fn message(&mut self, message: Message, by_subagent: bool) -> Vec<Action> {
        let mut actions = Vec::new();
        for block in message.content {
            match block {
                Block::Text { text: Some(text) } if !by_subagent => self.text = text,
                Block::ToolUse { id, name, input } => {
                    // Text before a tool use is not the answer; it becomes a status, since the next
                    // message replaces it.
                    if !by_subagent && !self.text.is_empty() {
                        actions.push(Action::Say(std::mem::take(&mut self.text)));
                    }
                    let name = name.as_deref().unwrap_or("a tool");
                    self.shell.follow(name, &input);
                    actions.extend(self.tools.begin(id, name, &input));
                }
                Block::Text { .. } | Block::ToolResult { .. } | Block::Unknown => {}
            }
        }
        actions
    }

    fn result(&mut self, terminal: &Terminal) -> Vec<Action> {
        let mut actions = Vec::new();
        let metadata = self.metadata(terminal);
        if !self.session.id.is_empty() {
            actions.push(Action::Remember(self.session.clone()));
        }
        let text = terminal.text().unwrap_or_else(|| match std::mem::take(&mut self.text) {
            // A structured result without any message.
            text if text.is_empty() && !terminal.result.is_null() => terminal.result.to_string(),
            text => text,
        });
        let is_error = terminal.is_error();
        let is_answer = is_error == Some(false);
        let is_aborted =
            terminal.terminal_reason.as_deref().is_some_and(|why| why.starts_with("aborted_"));
        self.is_answered = is_answer || self.is_interrupted && is_aborted;
        let end = if is_error.is_none() {
            let text = format!("claude's result does not say whether it is an error: {text}");
            End::Failed { reason: FailureReason::BrokenStream, text, metadata }
        } else if is_answer {
            End::Completed { text, metadata }
        } else if is_lost_session(&text) {
            End::SessionLost
        } else if self.login_failed
            || matches!(terminal.api_error_status, Some(401 | 403))
            || is_login_problem(&text)
        {
            End::LoginNeeded(text)
        } else {
            let reason = terminal.reason(self.api_error.as_deref().unwrap_or_default(), &text);
            End::Failed { reason, text, metadata }.resetting_at(self.resets_at)
        };
        actions.push(Action::End(end));
        actions
    }

    /// Usage of this run. The CLI reports the session's total cost.
    fn metadata(&mut self, terminal: &Terminal) -> Map<String, Value> {
        let cost = terminal.total_cost_usd.map(|total| self.session.grown(COST, total));
        let all = [
            ("model", json!(self.model)),
            ("usage", terminal.usage.as_ref().map_or(Value::Null, tokens)),
            (COST, json!(cost)),
            ("turns", json!(terminal.num_turns)),
            ("context", json!(activity::context_of(self.used, &terminal.model_usage))),
        ];
        all.into_iter()
            .filter(|(_, value)| !value.is_null())
            .map(|(key, value)| (key.to_owned(), value))
            .collect()
    }
}

impl Terminal {
    /// Text of the result, or else its first error.
    fn text(&self) -> Option<String> {
        let errors = self.errors.as_array();
        let errors = errors.map_or_else(
            || foreign::text(&self.errors),
            |errors| errors.iter().find_map(foreign::text),
        );
        foreign::text(&self.result).or(errors).map(Cow::into_owned)
    }

    /// True if the run failed; the subtype decides if the flag is absent.
    fn is_error(&self) -> Option<bool> {
        foreign::truth(&self.is_error).or_else(|| match self.subtype.as_deref()? {
            "success" => Some(false),
            subtype => subtype.starts_with("error").then_some(true),
        })
    }

    /// Reason of a failure. `api_error` is the CLI's word for it in the latest message.
    fn reason(&self, api_error: &str, text: &str) -> FailureReason {
        let (subtype, why) = (self.subtype.as_deref(), self.terminal_reason.as_deref());
        match (subtype.unwrap_or_default(), self.api_error_status, why) {
            ("error_max_turns", ..) => FailureReason::MaxTurns,
            ("error_max_budget_usd", ..) => FailureReason::MaxBudget,
            (_, Some(429), _) => FailureReason::RateLimited,
            (_, Some(529), _) => FailureReason::Overloaded,
            (_, Some(_), _) => FailureReason::ApiError,
            (_, None, Some("aborted_tools" | "aborted_streaming")) => FailureReason::Interrupted,
            (_, None, why) => api_reason(api_error, text).unwrap_or(match why {
                Some("api_error") => FailureReason::ApiError,
                _ => FailureReason::AgentError,
            }),
        }
    }
}

/// Reason of a refusal by the API without a status: by the CLI's word, or else by the text, which
/// the CLI writes itself when the user's plan is used up.
fn api_reason(word: &str, text: &str) -> Option<FailureReason> {
    match word {
        "rate_limit" | "rate_limit_error" => return Some(FailureReason::RateLimited),
        "overloaded" | "overloaded_error" => return Some(FailureReason::Overloaded),
        _ => {}
    }
    let text = text.to_lowercase();
    let is_any = |words: &[&str]| words.iter().any(|word| text.contains(word));
    let of_api = text.starts_with("api error");
    if is_any(&["usage limit reached", "hit your limit", "hit your usage limit"])
        || of_api && is_any(&["rate limit", "rate_limit", "429"])
    {
        return Some(FailureReason::RateLimited);
    }
    if of_api && is_any(&["overloaded", "529"]) {
        return Some(FailureReason::Overloaded);
    }
    (of_api || !matches!(word, "" | "unknown")).then_some(FailureReason::ApiError)
}

/// True if a line that is not JSON names this type, whatever the white space around the colon.
fn is_of_type(line: &str, kind: &str) -> bool {
    line.split("\"type\"").skip(1).any(|rest| {
        let rest = rest.trim_start().strip_prefix(':').map(str::trim_start);
        let rest = rest.and_then(|rest| rest.strip_prefix('"')?.strip_prefix(kind));
        rest.is_some_and(|rest| rest.starts_with('"'))
    })
}

/// True if the session is lost. The CLI says so only by these words, in the result's errors and on
/// standard error.
fn is_lost_session(words: &str) -> bool {
    words.contains("No conversation found")
}

/// True if the login is missing. Without an API response no status says so.
fn is_login_problem(words: &str) -> bool {
    words.starts_with("Not logged in") || words.starts_with("Invalid API key")
}

/// Token counts, without the vendor's accounting details.
fn tokens(usage: &Value) -> Value {
    let counts = usage.as_object().into_iter().flatten();
    counts
        .filter(|(key, value)| key.ends_with("_tokens") && value.is_number())
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect::<Map<_, _>>()
        .into()
}
