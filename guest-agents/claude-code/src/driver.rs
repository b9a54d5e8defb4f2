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

use a2a_hub_sdk::Exit;
use a2a_hub_sdk::cli::{
    Action, Decision, Driver, End, FailureReason, Idle, Job, Question, Session, cut, describe_exit,
    last_words, running,
};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::{change, permission, prompt};

/// Name of the counter of a session's cost, in dollars.
const COST: &str = "cost_usd";

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
    /// Text of the latest whole message.
    text: String,
    login_failed: bool,
    /// True if the turn ended with an answer.
    is_answered: bool,
    /// Ids of the open questions.
    asked: Vec<Value>,
    /// Output that is not JSON: complaints from before the dialect begins.
    noise: String,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Line {
    System(System),
    StreamEvent {
        event: Stream,
        parent_tool_use_id: Option<String>,
    },
    Assistant {
        message: Message,
        parent_tool_use_id: Option<String>,
        error: Option<String>,
    },
    User {
        tool_use_result: Option<Value>,
    },
    ControlRequest {
        request_id: String,
        request: Value,
    },
    ControlCancelRequest {
        request_id: String,
    },
    Result(Box<Terminal>),
    #[serde(other)]
    Unknown,
}

#[derive(Deserialize)]
#[serde(tag = "subtype", rename_all = "snake_case")]
enum System {
    Init {
        session_id: String,
        model: Option<String>,
        cwd: Option<String>,
    },
    ApiRetry {
        attempt: u32,
        max_retries: u32,
        error_status: Option<u16>,
        error: Option<String>,
    },
    PermissionDenied {
        tool_name: String,
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
        text: String,
    },
    #[serde(other)]
    Unknown,
}

#[derive(Deserialize)]
struct Message {
    #[serde(default)]
    content: Vec<Block>,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Block {
    Text {
        text: String,
    },
    ToolUse {
        name: String,
        #[serde(default)]
        input: Value,
    },
    #[serde(other)]
    Unknown,
}

/// Final result. `is_error` decides: API failures have the subtype `success`.
#[derive(Deserialize)]
struct Terminal {
    is_error: bool,
    #[serde(default)]
    subtype: String,
    result: Option<String>,
    #[serde(default)]
    errors: Vec<String>,
    api_error_status: Option<u16>,
    terminal_reason: Option<String>,
    num_turns: Option<u32>,
    total_cost_usd: Option<f64>,
    usage: Option<Value>,
}

impl Claude {
    /// Creates the driver of a job.
    pub fn new(job: &Job) -> Self {
        let session = job.session.clone().unwrap_or_default();
        Self { prompt: prompt::line(job), session, is_first: true, ..Self::default() }
    }
}

impl Driver for Claude {
    fn begin(&mut self) -> Vec<Action> {
        vec![Action::Send(std::mem::take(&mut self.prompt))]
    }

    fn again(&mut self, left: &Idle) -> Option<Vec<Action>> {
        self.session = left.session.clone();
        self.is_first = false;
        Some(self.begin())
    }

    fn idle(&self) -> Option<Idle> {
        let is_idle = self.is_answered && self.asked.is_empty() && !self.session.id.is_empty();
        is_idle.then(|| Idle { session: self.session.clone(), state: Value::Null })
    }

    fn line(&mut self, line: &str) -> Vec<Action> {
        match serde_json::from_str(line) {
            Ok(Line::System(system)) => self.system(system),
            Ok(Line::StreamEvent { event, parent_tool_use_id: None }) => self.stream(event),
            Ok(Line::Assistant { message, parent_tool_use_id, error }) => {
                self.login_failed |= error.as_deref() == Some("authentication_failed");
                self.message(message, parent_tool_use_id.is_some())
            }
            Ok(Line::User { tool_use_result }) => {
                let change = tool_use_result.as_ref().and_then(change::told);
                change.map(Action::Changed).into_iter().collect()
            }
            Ok(Line::ControlRequest { request_id, request }) => {
                match permission::question(&request_id, request, self.directory.clone()) {
                    Ok(question) => {
                        self.asked.push(question.id.clone());
                        vec![Action::Ask(Box::new(question))]
                    }
                    Err(refusal) => vec![Action::Send(refusal)],
                }
            }
            Ok(Line::ControlCancelRequest { request_id }) => {
                let mut asked = self.asked.extract_if(.., |id| id["request"] == *request_id);
                asked.next().map(Action::Withdrawn).into_iter().collect()
            }
            Ok(Line::Result(terminal)) => self.result(&terminal),
            Ok(Line::StreamEvent { .. } | Line::Unknown) => Vec::new(),
            // The CLI now waits for the next prompt, so without an end the run would hang.
            Err(error) if line.contains(r#""type":"result""#) => {
                let text = format!("claude's result is not understood: {error}");
                vec![Action::End(End::failed(FailureReason::BrokenStream, text))]
            }
            Err(_) => {
                if !line.trim_start().starts_with('{') {
                    self.noise = cut(line);
                }
                Vec::new()
            }
        }
    }

    fn decided(&mut self, question: &Question, decision: &Decision) -> Vec<Action> {
        self.asked.retain(|id| *id != question.id);
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
    fn system(&mut self, system: System) -> Vec<Action> {
        match system {
            System::Init { session_id, model, cwd } => {
                self.running = session_id;
                self.model = model;
                self.directory = cwd;
                // The session's servers run by now, and no process of the model does.
                if self.is_first { vec![Action::Settled] } else { Vec::new() }
            }
            // The first refusal may concern a token that has just expired, which the CLI renews.
            // The second is final: further attempts fail alike.
            System::ApiRetry { attempt: 2.., error_status: Some(status @ (401 | 403)), .. } => {
                let text = format!("The API refused the login ({status}).");
                vec![Action::End(End::LoginNeeded(text))]
            }
            System::ApiRetry { attempt, max_retries, error_status, error } => {
                let error = error.as_deref().unwrap_or("unknown").replace('_', " ");
                let status = format!("retrying {attempt}/{max_retries}: {error}");
                let end = End::of_status(error_status.unwrap_or_default(), error);
                vec![Action::Retrying { status, end }]
            }
            System::PermissionDenied { tool_name, message } => {
                let why = message.map(|message| format!(": {message}")).unwrap_or_default();
                vec![Action::Say(cut(&format!("{tool_name} is not permitted{why}")))]
            }
            System::Unknown => Vec::new(),
        }
    }

    fn stream(&mut self, event: Stream) -> Vec<Action> {
        match event {
            Stream::MessageStart => {
                self.text.clear();
                let mut actions = vec![Action::Restart];
                // The session can be resumed from the first answer on.
                if self.session.id != self.running {
                    self.session = Session::new(&self.running);
                    actions.push(Action::Remember(self.session.clone()));
                }
                actions
            }
            Stream::ContentBlockDelta { delta: Delta::TextDelta { text } } => {
                vec![Action::Delta(text)]
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
                Block::Text { text } if !by_subagent => self.text = text,
                Block::ToolUse { name, input } => {
                    // Text before a tool use is not the answer; it becomes a status, since the next
                    // message replaces it.
                    if !by_subagent && !self.text.is_empty() {
                        actions.push(Action::Say(std::mem::take(&mut self.text)));
                    }
                    actions.push(Action::Say(running(&name, &input)));
                }
                Block::Text { .. } | Block::Unknown => {}
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
        let said = terminal.result.clone().or_else(|| terminal.errors.first().cloned());
        let text = said.unwrap_or_else(|| std::mem::take(&mut self.text));
        self.is_answered = !terminal.is_error;
        let end = if !terminal.is_error {
            End::Completed { text, metadata }
        } else if is_lost_session(&text) {
            End::SessionLost
        } else if self.login_failed
            || matches!(terminal.api_error_status, Some(401 | 403))
            || is_login_problem(&text)
        {
            End::LoginNeeded(text)
        } else {
            End::Failed { reason: terminal.reason(), text, metadata }
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
        ];
        all.into_iter()
            .filter(|(_, value)| !value.is_null())
            .map(|(key, value)| (key.to_owned(), value))
            .collect()
    }
}

impl Terminal {
    fn reason(&self) -> FailureReason {
        match (self.subtype.as_str(), self.api_error_status, self.terminal_reason.as_deref()) {
            ("error_max_turns", ..) => FailureReason::MaxTurns,
            ("error_max_budget_usd", ..) => FailureReason::MaxBudget,
            (_, Some(429), _) => FailureReason::RateLimited,
            (_, Some(529), _) => FailureReason::Overloaded,
            (_, Some(_), _) | (_, None, Some("api_error")) => FailureReason::ApiError,
            (_, None, Some("aborted_tools" | "aborted_streaming")) => FailureReason::Interrupted,
            _ => FailureReason::AgentError,
        }
    }
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
