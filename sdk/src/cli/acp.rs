//! Driver of programs that speak the Agent Client Protocol (<https://agentclientprotocol.com>,
//! version 1): JSON-RPC 2.0, one message per line. Several vendors' programs speak it.
//!
//! ```text
//! initialize ─► session/load or session/new ─► mode ─► model ─► effort
//!   ─► session/prompt ─► its answer ends the turn
//!            │   ▲
//!            ├───│──► session/update: text and tools
//!            └───┴──► session/request_permission, elicitation/create: Ask
//! ```
//! A program that is reused for another turn gets its prompt at once if its mode is the wanted one
//! and it [acknowledges](Speaker::ACKNOWLEDGES) prompts; otherwise its mode is set first. At most
//! one of our requests is in flight; the current step says what its answer means. Updates count
//! only while the prompt is answered and shortly after: earlier ones are the history of a loaded
//! session, which some programs send after they have loaded it. The mode and the list of commands
//! count at any time.

mod answer;
mod ask;
mod check;
mod content;
mod mode;
mod options;
mod request;
mod servers;
mod speaker;
mod tool;
mod turn_end;
mod updates;
mod usage;

use std::collections::BTreeMap;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{
    Action, CommandList, Decision, Driver, End, FailureReason, Idle, Job, Plan, Question, Session,
    cut, skipped,
};
use crate::foreign::{self, JsonLines, NotJson};
use crate::{Exit, Failure};
use answer::Answer;
use ask::AnswerForm;
pub use check::check;
use mode::Mode;
pub use mode::Offered;
pub use speaker::{DirectorySupport, Refusal, Speaker, plain};
use tool::ToolCall;

/// Version of the protocol.
const PROTOCOL: i64 = 1;

/// Code of JSON-RPC with which programs refuse a session that they do not have.
const INVALID_PARAMS: i64 = -32602;

/// Code of the protocol with which other programs do so.
const RESOURCE_NOT_FOUND: i64 = -32002;

/// Silence after which a program has sent the history of a loaded session. The protocol demands the
/// history before the answer to `session/load`, but some programs send it after the answer.
const REPLAY_SILENCE: Duration = Duration::from_millis(250);

/// Longest wait for the end of the history.
const REPLAY_LIMIT: Duration = Duration::from_secs(10);

/// One turn of a program that speaks the protocol.
pub struct Acp<S> {
    job: Job,
    directory: String,
    step: Awaited,
    /// Id of our latest request.
    id: u64,
    /// Modes and models that the program offered for its session.
    offer: Value,
    takes_images: bool,
    /// True if the program takes MCP servers over HTTP, or does not say.
    takes_http_servers: bool,
    /// True if the program can load a session.
    loads: bool,
    /// Mode of the session, the modes that the program offers, and the one that the run needs;
    /// `None` if any will do.
    mode: Mode,
    offered: Offered,
    wanted: Option<String>,
    /// True if the driver has asked the program to log in by its own means.
    is_authenticated: bool,
    /// True if the program answered an earlier turn of this session.
    is_reused: bool,
    session: Session,
    /// True if this driver has loaded the session, whose history may follow.
    is_loaded: bool,
    answer: Answer,
    thinking: bool,
    /// Number of pictures, files and the like that the program has sent in the turn.
    attached: usize,
    tools: BTreeMap<String, ToolCall>,
    plan: Plan,
    /// Questions that wait for a decision, by their id as JSON.
    open_questions: BTreeMap<String, AnswerForm>,
    /// Request for permission that waits for the program's report of its call: its id and
    /// parameters.
    early_request: Option<(Value, Value)>,
    /// Cumulative cost of the session in US dollars, if the program reports it.
    cost: Option<f64>,
    /// Size of the context, if the program reports it.
    context: Option<Value>,
    /// Answer to the prompt, while late updates are awaited.
    result: Value,
    /// True if the turn was cancelled.
    is_interrupted: bool,
    /// True if the turn ended with an answer, or as it was cancelled.
    is_answered: bool,
    lines: JsonLines,
    speaker: S,
}

/// Answer, or silence, that the driver waits for.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Awaited {
    Initialize,
    Authenticate,
    Load,
    New,
    Mode,
    Model,
    Effort,
    /// Silence after the history of a loaded session.
    Replay,
    Again,
    Prompt,
    /// Silence after the answer to the prompt.
    Late,
    Over,
}

impl Awaited {
    /// True if one of our requests waits for its answer.
    fn awaits_answer(self) -> bool {
        !matches!(self, Self::Replay | Self::Late | Self::Over)
    }
}

/// State that the driver of the next turn needs beside the session.
#[derive(Serialize, Deserialize)]
struct IdleState {
    /// Id of our latest request.
    id: u64,
    takes_images: bool,
    #[serde(default)]
    loads: bool,
    #[serde(default)]
    mode: Mode,
    #[serde(default)]
    modes: Vec<String>,
}

/// Working directory of the job. The protocol has no session without a directory.
pub fn directory(job: &Job) -> Result<&str, Failure> {
    job.directory.as_deref().ok_or_else(|| {
        let way_out = "name a `workingDirectory`, or start the hub with `--workspace DIR`";
        Failure::Invalid(format!("the agent needs a directory to work in: {way_out}"))
    })
}

/// Parameters of the request `initialize`.
fn hello(names_terminal_logins: bool) -> Value {
    // The program reads and writes files itself; its questions may be forms.
    let mut capabilities = json!({
        "fs": { "readTextFile": false, "writeTextFile": false },
        "elicitation": { "form": {} },
    });
    if names_terminal_logins {
        // The member of `_meta` is that of programs older than the one of `auth`.
        capabilities["auth"] = json!({ "terminal": true });
        capabilities["_meta"] = json!({ "terminal-auth": true });
    }
    json!({
        "protocolVersion": PROTOCOL,
        "clientInfo": { "name": "a2a-hub", "version": env!("CARGO_PKG_VERSION") },
        "clientCapabilities": capabilities,
    })
}

impl<S: Speaker> Acp<S> {
    /// Creates a driver of `speaker` for a run in `directory`, which is absolute.
    pub fn new(speaker: S, job: Job, directory: impl Into<String>) -> Self {
        Self {
            session: job.session.clone().unwrap_or_default(),
            job,
            directory: directory.into(),
            step: Awaited::Initialize,
            id: 0,
            offer: Value::Null,
            takes_images: false,
            takes_http_servers: true,
            loads: S::LOADS,
            mode: Mode::default(),
            offered: Offered::default(),
            wanted: None,
            is_authenticated: false,
            is_reused: false,
            is_loaded: false,
            answer: Answer::default(),
            thinking: false,
            attached: 0,
            tools: BTreeMap::new(),
            plan: Plan::default(),
            open_questions: BTreeMap::new(),
            early_request: None,
            cost: None,
            context: None,
            result: Value::Null,
            is_interrupted: false,
            is_answered: false,
            lines: JsonLines::default(),
            speaker,
        }
    }

    fn request(&mut self, step: Awaited, method: &str, params: &Value) -> Vec<Action> {
        self.step = step;
        self.id += 1;
        vec![send(&json!({ "id": self.id, "method": method, "params": params }))]
    }

    fn end(&mut self, end: End) -> Vec<Action> {
        self.step = Awaited::Over;
        vec![Action::End(end)]
    }

    fn answered(&mut self, result: &Value) -> Vec<Action> {
        match self.step {
            Awaited::Initialize => self.greeted(result),
            Awaited::Authenticate => self.open(),
            Awaited::Load => {
                self.is_loaded = true;
                self.opened(result)
            }
            Awaited::New => match foreign::text(&result["sessionId"]) {
                Some(id) => {
                    self.session = Session::new(&*id);
                    self.opened(result)
                }
                None => {
                    self.end(End::failed(FailureReason::BrokenStream, "the new session has no id"))
                }
            },
            Awaited::Mode => {
                self.mode.changed_to(self.wanted.as_deref());
                self.choose_model()
            }
            Awaited::Model => self.choose_effort(),
            Awaited::Effort => self.first_prompt(),
            Awaited::Again => {
                self.mode.changed_to(self.wanted.as_deref());
                self.prompt()
            }
            Awaited::Prompt => self.prompt_answered(result),
            Awaited::Replay | Awaited::Late | Awaited::Over => Vec::new(),
        }
    }

    fn refused(&mut self, error: &Value) -> Vec<Action> {
        let refusal = Refusal::new(error);
        let end = match (self.step, self.speaker.end(&refusal)) {
            (Awaited::New | Awaited::Load, End::LoginNeeded(text)) => {
                return self.authenticate().unwrap_or_else(|| self.end(End::LoginNeeded(text)));
            }
            (_, End::LoginNeeded(text)) => End::LoginNeeded(text),
            // The login that the operator chose did not work.
            (Awaited::Authenticate, _) => self.speaker.login_failed(&refusal),
            (Awaited::Load | Awaited::Again, _) => End::SessionLost,
            (Awaited::Prompt, _)
                if self.is_reused
                    && matches!(refusal.code, INVALID_PARAMS | RESOURCE_NOT_FOUND) =>
            {
                End::SessionLost
            }
            (_, end) => end,
        };
        self.end(end)
    }

    fn greeted(&mut self, result: &Value) -> Vec<Action> {
        let version = foreign::integer(&result["protocolVersion"]);
        if let Some(version) = version.filter(|version| *version != PROTOCOL) {
            let text = format!(
                "{name} speaks version {version} of the Agent Client Protocol, and this hub speaks version {PROTOCOL}: \
                 install a release of {name} that speaks version {PROTOCOL}, or update the hub",
                name = self.name(),
            );
            return self.end(End::failed(FailureReason::AgentError, text));
        }
        let can = &result["agentCapabilities"];
        self.takes_images = foreign::truth(&can["promptCapabilities"]["image"]) == Some(true);
        self.takes_http_servers = foreign::truth(&can["mcpCapabilities"]["http"]) != Some(false);
        self.loads = S::LOADS && foreign::truth(&can["loadSession"]) == Some(true);
        self.speaker.greeted(result);
        if !self.loads && !self.session.id.is_empty() {
            return self.end(End::SessionLost);
        }
        if let Some(end) = speaker::without_directories(&self.speaker, can, &self.job) {
            return self.end(end);
        }
        self.open()
    }

    /// Asks the program to log in by the operator's method, once; `None` without a method.
    fn authenticate(&mut self) -> Option<Vec<Action>> {
        let method = self.speaker.login_method().filter(|_| !self.is_authenticated)?;
        let params = json!({ "methodId": method });
        self.is_authenticated = true;
        Some(self.request(Awaited::Authenticate, "authenticate", &params))
    }

    fn open(&mut self) -> Vec<Action> {
        let (servers, unsupported) = servers::select(&self.job.choices, self.takes_http_servers);
        let mut params = json!({ "cwd": self.directory, "mcpServers": servers });
        if S::DIRECTORIES != DirectorySupport::Arguments && !self.job.additional.is_empty() {
            params["additionalDirectories"] = self.job.additional.clone().into();
        }
        let mut actions: Vec<_> = unsupported
            .map(|names| format!("{} takes no servers of MCP over HTTP: {names}", self.name()))
            .map(Action::Say)
            .into_iter()
            .collect();
        actions.extend(if self.session.id.is_empty() {
            self.request(Awaited::New, "session/new", &params)
        } else {
            params["sessionId"] = self.session.id.as_str().into();
            self.request(Awaited::Load, "session/load", &params)
        });
        actions
    }

    /// Vendor-specific part, with all that it noted.
    pub fn speaker(&self) -> &S {
        &self.speaker
    }

    fn name(&self) -> &str {
        self.speaker.name()
    }

    fn opened(&mut self, result: &Value) -> Vec<Action> {
        self.offer = result.clone();
        let mut actions = Vec::new();
        if self.loads && self.step == Awaited::New {
            actions.push(Action::Remember(self.session.clone()));
        }
        actions.extend(self.choose_mode());
        actions
    }

    fn choose_mode(&mut self) -> Vec<Action> {
        self.mode = Mode::parse(&self.offer);
        self.offered = Offered::parse(&self.offer);
        self.wanted = match self.speaker.mode(&self.job, &self.offered) {
            Ok(wanted) => wanted,
            Err(text) => return self.end(End::failed(FailureReason::AgentError, text)),
        };
        let Some(wanted) = self.wanted.as_deref().filter(|wanted| !self.mode.is(wanted)) else {
            return self.choose_model();
        };
        if !self.offered.has(wanted) {
            let text = format!("{} has no mode `{wanted}`, which keeps it in bounds", self.name());
            return self.end(End::failed(FailureReason::AgentError, text));
        }
        let (method, params) = self.mode.request(&self.session.id, wanted);
        self.request(Awaited::Mode, method, &params)
    }

    /// Sends the prompt of a session's first turn: the program has started all servers of the
    /// session.
    fn first_prompt(&mut self) -> Vec<Action> {
        if std::mem::take(&mut self.is_loaded) {
            self.step = Awaited::Replay;
            let (silence, limit) = (REPLAY_SILENCE, REPLAY_LIMIT);
            return vec![Action::AwaitQuiet { silence, limit }];
        }
        let mut actions = vec![Action::Settled];
        actions.extend(self.prompt());
        actions
    }

    fn prompt(&mut self) -> Vec<Action> {
        let servers = S::STARTS_SERVERS.filter(|_| !self.job.choices.servers().is_empty());
        let notice = servers.map(|only| {
            let text = format!("{} starts servers of MCP {only}", self.name());
            Action::Say(text)
        });
        let mut blocks =
            vec![json!({ "type": "text", "text": self.speaker.words(&self.job.prompt) })];
        if self.takes_images {
            blocks.extend(self.job.images.iter().map(|image| {
                let data = BASE64.encode(&image.bytes);
                json!({ "type": "image", "mimeType": image.media_type, "data": data })
            }));
        }
        let params = json!({ "sessionId": self.session.id, "prompt": blocks });
        let prompt = self.request(Awaited::Prompt, "session/prompt", &params);
        notice.into_iter().chain(prompt).collect()
    }
}

impl<S: Speaker> Driver for Acp<S> {
    fn greet(&mut self) -> Vec<Action> {
        self.request(Awaited::Initialize, "initialize", &hello(S::NAMES_TERMINAL_LOGINS))
    }

    fn begin(&mut self) -> Vec<Action> {
        // The session belongs to a program, or a mode, that can load sessions. This one cannot, and
        // the prompt relies on the session.
        if !S::LOADS && !self.session.id.is_empty() {
            return self.end(End::SessionLost);
        }
        Vec::new()
    }

    fn again(&mut self, idle: &Idle) -> Option<Vec<Action>> {
        let idle_state = IdleState::deserialize(&idle.state).ok()?;
        (self.id, self.takes_images) = (idle_state.id, idle_state.takes_images);
        (self.mode, self.loads) = (idle_state.mode, idle_state.loads);
        (self.session, self.is_reused) = (idle.session.clone(), true);
        self.offered = self.mode.offered_with(idle_state.modes);
        self.wanted = self.speaker.mode(&self.job, &self.offered).ok()?;
        let wanted = self.wanted.clone()?;
        if S::ACKNOWLEDGES && self.mode.is(&wanted) {
            return Some(self.prompt());
        }
        let (method, params) = self.mode.request(&self.session.id, &wanted);
        Some(self.request(Awaited::Again, method, &params))
    }

    /// A program without a mode is not reused: no request would find out whether it still answers.
    fn idle(&self) -> Option<Idle> {
        let is_idle = self.is_answered
            && self.wanted.is_some()
            && self.open_questions.is_empty()
            && self.tools.values().all(ToolCall::is_over);
        let idle_state = IdleState {
            id: self.id,
            takes_images: self.takes_images,
            loads: self.loads,
            mode: self.mode.clone(),
            modes: self.offered.modes.clone(),
        };
        let state = serde_json::to_value(idle_state).ok().filter(|_| is_idle)?;
        Some(Idle { session: self.session.clone(), state })
    }

    fn line(&mut self, line: &str) -> Vec<Action> {
        let message = match self.lines.read(line) {
            Ok(message) => message,
            Err(fault) => return self.unreadable(line, &fault),
        };
        let (id, params) = (&message["id"], &message["params"]);
        match message["method"].as_str() {
            None if !message["method"].is_null() && !id.is_null() => {
                vec![refuse(id, -32600, "the method of the request is not a string")]
            }
            Some(_) if self.step == Awaited::Over => Vec::new(),
            Some(method) if !id.is_null() => self.asks(id, method, params),
            Some("session/update") if self.mode.update(&params["update"]) => Vec::new(),
            // Programs list their commands before the prompt, behind the answer to `session/new`.
            Some("session/update")
                if params["update"]["sessionUpdate"] == "available_commands_update" =>
            {
                let list = CommandList::parse(&params["update"]["availableCommands"]);
                list.map(Action::Commands).into_iter().collect()
            }
            Some("session/update") if matches!(self.step, Awaited::Prompt | Awaited::Late) => {
                self.update(&params["update"])
            }
            Some("$/cancel_request") => {
                let id = &params["requestId"];
                let withdrawn = self.open_questions.remove(&id.to_string());
                withdrawn.map(|_| Action::Withdrawn(id.clone())).into_iter().collect()
            }
            // Vibe's own method; the protocol has none for it.
            Some("_session/retrying") => {
                self.answer.discard();
                let why = params["detail"].as_str().unwrap_or_default();
                let is_limit = params["category"] == "rate_limited";
                let reason =
                    if is_limit { FailureReason::RateLimited } else { FailureReason::ApiError };
                let status = cut(&format!("retrying: {why}"));
                vec![Action::Retrying { status, end: End::failed(reason, why) }]
            }
            Some(_) => Vec::new(),
            // A program that could not read a request sends an error without its id.
            None if !self.step.awaits_answer() => Vec::new(),
            None if id.is_null() && !message["error"].is_null() => self.refused(&message["error"]),
            None if !self.is_our_id(id) => Vec::new(),
            // Some programs send both members, and null for the one that does not apply.
            None => match message.get("error").filter(|error| !error.is_null()) {
                Some(error) => self.refused(error),
                None => self.answered(&message["result"]),
            },
        }
    }

    fn quiet(&mut self) -> Vec<Action> {
        match self.step {
            Awaited::Replay => self.first_prompt(),
            Awaited::Late => {
                let result = self.result.take();
                self.finish(&result)
            }
            Awaited::Initialize
            | Awaited::Authenticate
            | Awaited::Load
            | Awaited::New
            | Awaited::Mode
            | Awaited::Model
            | Awaited::Effort
            | Awaited::Again
            | Awaited::Over => Vec::new(),
            Awaited::Prompt => self.ask_late(),
        }
    }

    fn interrupt(&mut self) -> Vec<Action> {
        self.cancel_prompt()
    }

    fn decided(&mut self, question: &Question, decision: &Decision) -> Vec<Action> {
        let Some(form) = self.open_questions.remove(&question.id.to_string()) else {
            return Vec::new();
        };
        vec![send(&json!({ "id": question.id, "result": form.answer(decision) }))]
    }

    fn ended(&self, exit: &Exit) -> End {
        let end = super::describe_exit(exit);
        let why = super::last_words(exit).map(|why| format!(": {why}")).unwrap_or_default();
        let text = format!("{} ended before its answer ({end}){why}", self.name());
        End::failed(FailureReason::BrokenStream, text)
    }
}

impl<S> Acp<S> {
    fn is_our_id(&self, id: &Value) -> bool {
        foreign::integer(id).and_then(|id| u64::try_from(id).ok()) == Some(self.id)
    }
}

impl<S: Speaker> Acp<S> {
    /// Handles a line that is not JSON: nobody may wait for its answer, or for an answer to it.
    fn unreadable(&mut self, line: &str, fault: &NotJson) -> Vec<Action> {
        let mut actions = skipped(line, fault);
        let id = fault.members.get("id").unwrap_or(&Value::Null);
        let is_request = fault.members.contains_key("method");
        if is_request && !id.is_null() && self.step != Awaited::Over {
            actions.push(refuse(id, -32700, &format!("the line is not JSON: {fault}")));
        } else if !is_request && self.is_our_id(id) && self.step.awaits_answer() {
            let text = format!("the answer of {} is not JSON: {fault}", self.name());
            actions.extend(self.end(End::failed(FailureReason::BrokenStream, text)));
        }
        actions
    }
}

/// Error response to a request of the program.
fn refuse(id: &Value, code: i64, why: &str) -> Action {
    send(&json!({ "id": id, "error": { "code": code, "message": why } }))
}

fn send(message: &Value) -> Action {
    let mut message = message.clone();
    if let Some(members) = message.as_object_mut() {
        members.insert("jsonrpc".to_owned(), "2.0".into());
    }
    Action::Send(message.to_string())
}
