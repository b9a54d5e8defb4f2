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
//! only while the prompt is answered: earlier ones are the history of a loaded session.

mod ask;
mod check;
mod mode;
mod speaker;
mod tool;

use std::collections::BTreeMap;
use std::marker::PhantomData;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::{
    Action, Decision, Driver, End, FailureReason, Idle, Job, Kind, Question, Session, cut, skipped,
};
use crate::foreign::{self, JsonLines, NotJson};
use crate::{Exit, Failure};
use ask::Asked;
pub use check::check;
use mode::Mode;
pub use speaker::{Refusal, Speaker, plain};
use tool::ToolCall;

/// Version of the protocol.
const PROTOCOL: u64 = 1;

/// Code of JSON-RPC with which programs refuse a session that they do not have.
const INVALID_PARAMS: i64 = -32602;

/// Categories of the option for the reasoning effort: the protocol's word, and Vibe's.
const EFFORT: [&str; 2] = ["thought_level", "thinking"];

/// One turn of a program that speaks the protocol.
pub struct Acp<S> {
    job: Job,
    directory: String,
    step: Step,
    /// Id of our latest request.
    id: u64,
    /// Modes and models that the program offered for its session.
    offer: Value,
    takes_images: bool,
    /// Mode of the session.
    mode: Mode,
    /// True if the program answered an earlier turn of this session.
    is_reused: bool,
    session: Session,
    /// Message so far, its id if the program sends one, and whether the next text begins a new
    /// message.
    text: String,
    message: Option<String>,
    over: bool,
    thinking: bool,
    tools: BTreeMap<String, ToolCall>,
    /// Questions that wait for a decision, by their id as JSON.
    asked: BTreeMap<String, Asked>,
    /// Kinds of tools that are approved for the rest of the run.
    allowed: Vec<Kind>,
    /// Cumulative cost of the session in US dollars, if the program reports it.
    cost: Option<f64>,
    /// True if the turn ended with an answer.
    is_answered: bool,
    lines: JsonLines,
    speaker: PhantomData<S>,
}

/// Answer that the driver waits for.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Step {
    Initialize,
    Load,
    New,
    Mode,
    Model,
    Effort,
    Again,
    Prompt,
    Over,
}

/// State that the driver of the next turn needs beside the session.
#[derive(Serialize, Deserialize)]
struct Left {
    /// Id of our latest request.
    id: u64,
    takes_images: bool,
    #[serde(default)]
    mode: Mode,
}

/// Working directory of the job. The protocol has no session without a directory.
pub fn directory(job: &Job) -> Result<&str, Failure> {
    job.directory.as_deref().ok_or_else(|| {
        let way_out = "name a `workingDirectory`, or start the hub with `--workspace DIR`";
        Failure::Invalid(format!("the agent needs a directory to work in: {way_out}"))
    })
}

/// Parameters of the request `initialize`.
fn hello() -> Value {
    json!({
        "protocolVersion": PROTOCOL,
        "clientInfo": { "name": "a2a-hub", "version": env!("CARGO_PKG_VERSION") },
        // The program reads and writes files itself; its questions may be forms.
        "clientCapabilities": {
            "fs": { "readTextFile": false, "writeTextFile": false },
            "elicitation": { "form": {} },
        },
    })
}

impl<S: Speaker> Acp<S> {
    /// Creates a driver for a run in `directory`, which is absolute.
    pub fn new(job: Job, directory: impl Into<String>) -> Self {
        Self {
            session: job.session.clone().unwrap_or_default(),
            job,
            directory: directory.into(),
            step: Step::Initialize,
            id: 0,
            offer: Value::Null,
            takes_images: false,
            mode: Mode::default(),
            is_reused: false,
            text: String::new(),
            message: None,
            over: true,
            thinking: false,
            tools: BTreeMap::new(),
            asked: BTreeMap::new(),
            allowed: Vec::new(),
            cost: None,
            is_answered: false,
            lines: JsonLines::default(),
            speaker: PhantomData,
        }
    }

    fn request(&mut self, step: Step, method: &str, params: &Value) -> Vec<Action> {
        self.step = step;
        self.id += 1;
        vec![send(&json!({ "id": self.id, "method": method, "params": params }))]
    }

    fn end(&mut self, end: End) -> Vec<Action> {
        self.step = Step::Over;
        vec![Action::End(end)]
    }

    fn answered(&mut self, result: &Value) -> Vec<Action> {
        match self.step {
            Step::Initialize => self.open(result),
            Step::Load => self.opened(result),
            Step::New => match foreign::text(&result["sessionId"]) {
                Some(id) => {
                    self.session = Session::new(&*id);
                    self.opened(result)
                }
                None => {
                    self.end(End::failed(FailureReason::BrokenStream, "the new session has no id"))
                }
            },
            Step::Mode => {
                self.mode.changed_to(S::mode(self.job.permissions));
                self.choose_model()
            }
            Step::Model => self.choose_effort(),
            Step::Effort => self.first_prompt(),
            Step::Again => {
                self.mode.changed_to(S::mode(self.job.permissions));
                self.prompt()
            }
            Step::Prompt => self.finish(result),
            Step::Over => Vec::new(),
        }
    }

    fn refused(&mut self, error: &Value) -> Vec<Action> {
        let refusal = Refusal::new(error);
        let end = match (self.step, S::end(&refusal)) {
            (_, End::LoginNeeded(text)) => End::LoginNeeded(text),
            (Step::Load | Step::Again, _) => End::SessionLost,
            (Step::Prompt, _) if self.is_reused && refusal.code == INVALID_PARAMS => {
                End::SessionLost
            }
            (_, end) => end,
        };
        self.end(end)
    }

    fn open(&mut self, result: &Value) -> Vec<Action> {
        let image = &result["agentCapabilities"]["promptCapabilities"]["image"];
        self.takes_images = foreign::truth(image) == Some(true);
        let mut params = json!({ "cwd": self.directory, "mcpServers": self.servers() });
        if S::LOADS && !self.session.id.is_empty() {
            params["sessionId"] = self.session.id.as_str().into();
            return self.request(Step::Load, "session/load", &params);
        }
        self.request(Step::New, "session/new", &params)
    }

    /// MCP servers of the program, in the protocol's form.
    fn servers(&self) -> Vec<Value> {
        let pairs = |of: &Value| -> Vec<Value> {
            let each = of.as_object().into_iter().flatten();
            each.map(|(name, value)| json!({ "name": name, "value": value })).collect()
        };
        let servers = self.job.choices.servers();
        servers
            .iter()
            .map(|(name, of)| match of["url"].as_str() {
                Some(url) => {
                    json!({ "type": "http", "name": name, "url": url, "headers": pairs(&of["headers"]) })
                }
                None => json!({
                    "name": name,
                    "command": of["command"],
                    "args": of["args"].as_array().cloned().unwrap_or_default(),
                    "env": pairs(&of["env"]),
                }),
            })
            .collect()
    }

    fn opened(&mut self, result: &Value) -> Vec<Action> {
        self.offer = result.clone();
        let mut actions = Vec::new();
        if S::LOADS && self.step == Step::New {
            actions.push(Action::Remember(self.session.clone()));
        }
        actions.extend(self.choose_mode());
        actions
    }

    fn choose_mode(&mut self) -> Vec<Action> {
        let wanted = S::mode(self.job.permissions);
        self.mode = Mode::of(&self.offer);
        if self.mode.is(wanted) {
            return self.choose_model();
        }
        if !Mode::is_offered(&self.offer, wanted) {
            let text = format!("{} has no mode `{wanted}`, which keeps it in bounds", S::NAME);
            return self.end(End::failed(FailureReason::AgentError, text));
        }
        let (method, params) = self.mode.request(&self.session.id, wanted);
        self.request(Step::Mode, method, &params)
    }

    fn choose_model(&mut self) -> Vec<Action> {
        let Some(model) = self.job.choices.model.clone() else { return self.choose_effort() };
        if S::MODEL_VARIABLE.is_some() {
            return self.started_with(&model);
        }
        if let Some(params) = self.option(&["model"], &model) {
            return self.request(Step::Model, "session/set_config_option", &params);
        }
        let params = json!({ "sessionId": self.session.id, "modelId": model });
        self.request(Step::Model, "session/set_model", &params)
    }

    /// Continues if the program was started with that model. A program that does not know the model
    /// takes another without an error.
    fn started_with(&mut self, model: &str) -> Vec<Action> {
        let mut options = self.offer["configOptions"].as_array().into_iter().flatten();
        let Some(option) = options.find(|option| option["category"] == "model") else {
            return self.choose_effort();
        };
        if option["currentValue"] == model {
            return self.choose_effort();
        }
        let known = option["options"].as_array().into_iter().flatten();
        let known: Vec<_> = known.filter_map(|option| option["value"].as_str()).collect();
        let text = format!("{} has no model `{model}`; it has {}", S::NAME, known.join(", "));
        self.end(End::failed(FailureReason::ApiError, text))
    }

    /// Sets the reasoning effort, if the program has an option for it.
    fn choose_effort(&mut self) -> Vec<Action> {
        let Some(effort) = &self.job.choices.effort else { return self.first_prompt() };
        if let Some(params) = self.option(&EFFORT, effort) {
            return self.request(Step::Effort, "session/set_config_option", &params);
        }
        let text = format!("{} lets nobody choose an effort: `{effort}` is left out", S::NAME);
        let mut actions = vec![Action::Say(text)];
        actions.extend(self.first_prompt());
        actions
    }

    /// Parameters that set the option of one of these categories, if the program has it.
    fn option(&self, categories: &[&str], value: &str) -> Option<Value> {
        let mut options = self.offer["configOptions"].as_array().into_iter().flatten();
        let is_meant =
            |category: &Value| category.as_str().is_some_and(|it| categories.contains(&it));
        let option = options.find(|option| is_meant(&option["category"]))?;
        Some(json!({ "sessionId": self.session.id, "configId": option["id"], "value": value }))
    }

    /// Sends the prompt of a session's first turn: the program has started all servers of the
    /// session.
    fn first_prompt(&mut self) -> Vec<Action> {
        let mut actions = vec![Action::Settled];
        actions.extend(self.prompt());
        actions
    }

    fn prompt(&mut self) -> Vec<Action> {
        let servers = S::STARTS_SERVERS.filter(|_| !self.job.choices.servers().is_empty());
        let told = servers.map(|only| {
            let text = format!("{} starts servers of MCP {only}", S::NAME);
            Action::Say(text)
        });
        let mut blocks = vec![json!({ "type": "text", "text": S::words(&self.job.prompt) })];
        if self.takes_images {
            blocks.extend(self.job.images.iter().map(|image| {
                let data = BASE64.encode(&image.bytes);
                json!({ "type": "image", "mimeType": image.media_type, "data": data })
            }));
        }
        let params = json!({ "sessionId": self.session.id, "prompt": blocks });
        let prompt = self.request(Step::Prompt, "session/prompt", &params);
        told.into_iter().chain(prompt).collect()
    }

    fn update(&mut self, update: &Value) -> Vec<Action> {
        match update["sessionUpdate"].as_str().unwrap_or_default() {
            "agent_message_chunk" => self.chunk(update),
            "agent_thought_chunk" if self.thinking => Vec::new(),
            "agent_thought_chunk" => {
                self.thinking = true;
                vec![Action::Say("thinking".into())]
            }
            "tool_call" | "tool_call_update" => {
                (self.over, self.thinking) = (true, false);
                self.tool(update).update(update)
            }
            "usage_update" if update["cost"]["currency"] == "USD" => {
                self.cost = foreign::number(&update["cost"]["amount"]).or(self.cost);
                Vec::new()
            }
            _ => Vec::new(),
        }
    }

    fn chunk(&mut self, update: &Value) -> Vec<Action> {
        let Some(text) = foreign::text(&update["content"]) else { return Vec::new() };
        if S::is_remark(&text) {
            return Vec::new();
        }
        self.thinking = false;
        let message = foreign::text(&update["messageId"]);
        let mut actions = Vec::new();
        if self.over || message.as_deref() != self.message.as_deref() {
            self.message = message.map(Into::into);
            self.text.clear();
            self.lines.end_of_message();
            self.over = false;
            actions.push(Action::Restart);
        }
        let text = self.lines.chunk(&text);
        self.text.push_str(&text);
        actions.push(Action::Delta(text));
        actions
    }

    fn tool(&mut self, call: &Value) -> &mut ToolCall {
        let id = call["toolCallId"].as_str().unwrap_or_default();
        self.tools.entry(id.to_owned()).or_default()
    }

    fn asks(&mut self, id: &Value, method: &str, params: &Value) -> Vec<Action> {
        let (asked, mut question) = match method {
            "session/request_permission" => {
                self.over = true;
                let directory = self.directory.clone();
                let tool = self.tool(&params["toolCall"]);
                tool.merge(&params["toolCall"]);
                Asked::approval(params, tool.question(&directory))
            }
            "elicitation/create" if params["mode"] == "form" || params["mode"].is_null() => {
                Asked::form(params)
            }
            _ => {
                return vec![refuse(id, -32601, &format!("{method} is not offered"))];
            }
        };
        if self.allowed.contains(&question.kind) {
            return vec![send(&json!({ "id": id, "result": asked.answer(&Decision::Allow) }))];
        }
        question.id = id.clone();
        self.asked.insert(id.to_string(), asked);
        vec![Action::Ask(Box::new(question))]
    }

    fn finish(&mut self, result: &Value) -> Vec<Action> {
        let metadata = self.used(result);
        let mut actions = Vec::new();
        if S::LOADS {
            actions.push(Action::Remember(self.session.clone()));
        }
        let (reason, text) = match result["stopReason"].as_str().unwrap_or_default() {
            "end_turn" if S::is_whole(result) => {
                let mut text = std::mem::take(&mut self.text);
                text.push_str(self.lines.end_of_message());
                self.is_answered = true;
                actions.extend(self.end(End::Completed { text, metadata }));
                return actions;
            }
            "end_turn" => (FailureReason::BrokenStream, "ended in the middle of its answer"),
            "max_tokens" => (FailureReason::MaxTokens, "stopped at the model's limit of tokens"),
            "max_turn_requests" => (FailureReason::MaxTurns, "stopped at its limit of turns"),
            "refusal" => (FailureReason::Refused, "says that the model refuses to do this"),
            "cancelled" => (FailureReason::Interrupted, "was interrupted"),
            _ => {
                (FailureReason::AgentError, "stopped for a reason that this version does not know")
            }
        };
        let text = format!("{} {text}", S::NAME);
        actions.extend(self.end(End::Failed { reason, text, metadata }));
        actions
    }

    /// Usage of this run: from the protocol's `usage`, or from the `quota` that gemini reports
    /// instead.
    fn used(&mut self, result: &Value) -> Map<String, Value> {
        let quota = &result["_meta"]["quota"];
        let mut usage = Map::new();
        for (ours, member) in [
            ("input_tokens", &result["usage"]["inputTokens"]),
            ("output_tokens", &result["usage"]["outputTokens"]),
            ("input_tokens", &quota["token_count"]["input_tokens"]),
            ("output_tokens", &quota["token_count"]["output_tokens"]),
        ] {
            if let Some(total) = foreign::number(member) {
                let used = if S::SUMS_UP { self.session.grown(ours, total) } else { total };
                #[expect(clippy::cast_possible_truncation, reason = "tokens are counted in whole")]
                usage.insert(ours.into(), (used as i64).into());
            }
        }
        let mut metadata = Map::new();
        metadata.insert("usage".into(), usage.into());
        if let Some(cost) = self.cost {
            metadata.insert("cost_usd".into(), self.session.grown("cost_usd", cost).into());
        }
        let model = quota["model_usage"][0]["model"].as_str().map(ToOwned::to_owned);
        if let Some(model) = model.or_else(|| self.job.choices.model.clone()) {
            metadata.insert("model".into(), model.into());
        }
        metadata
    }
}

impl<S: Speaker> Driver for Acp<S> {
    fn greet(&mut self) -> Vec<Action> {
        self.request(Step::Initialize, "initialize", &hello())
    }

    fn begin(&mut self) -> Vec<Action> {
        // The session belongs to a program, or a mode, that can load sessions. This one cannot, and
        // the prompt relies on the session.
        if !S::LOADS && !self.session.id.is_empty() {
            return self.end(End::SessionLost);
        }
        Vec::new()
    }

    fn again(&mut self, left: &Idle) -> Option<Vec<Action>> {
        let Left { id, takes_images, mode } = Left::deserialize(&left.state).ok()?;
        (self.id, self.takes_images, self.mode) = (id, takes_images, mode);
        (self.session, self.is_reused) = (left.session.clone(), true);
        let wanted = S::mode(self.job.permissions);
        if S::ACKNOWLEDGES && self.mode.is(wanted) {
            return Some(self.prompt());
        }
        let (method, params) = self.mode.request(&self.session.id, wanted);
        Some(self.request(Step::Again, method, &params))
    }

    fn idle(&self) -> Option<Idle> {
        let is_idle =
            self.is_answered && self.asked.is_empty() && self.tools.values().all(ToolCall::is_over);
        let left = Left { id: self.id, takes_images: self.takes_images, mode: self.mode.clone() };
        let state = serde_json::to_value(left).ok().filter(|_| is_idle)?;
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
            Some(_) if self.step == Step::Over => Vec::new(),
            Some(method) if !id.is_null() => self.asks(id, method, params),
            Some("session/update") if self.mode.update(&params["update"]) => Vec::new(),
            Some("session/update") if self.step == Step::Prompt => self.update(&params["update"]),
            Some("$/cancel_request") => {
                let id = &params["requestId"];
                let gone = self.asked.remove(&id.to_string());
                gone.map(|_| Action::Withdrawn(id.clone())).into_iter().collect()
            }
            // Vibe's own method; the protocol has none for it.
            Some("_session/retrying") => {
                self.over = true;
                let why = params["detail"].as_str().unwrap_or_default();
                let is_limit = params["category"] == "rate_limited";
                let reason =
                    if is_limit { FailureReason::RateLimited } else { FailureReason::ApiError };
                let status = cut(&format!("retrying: {why}"));
                vec![Action::Retrying { status, end: End::failed(reason, why) }]
            }
            Some(_) => Vec::new(),
            // A program that could not read a request sends an error without its id.
            None if id.is_null() && self.step != Step::Over && !message["error"].is_null() => {
                self.refused(&message["error"])
            }
            None if !self.is_our_id(id) => Vec::new(),
            // Some programs send both members, and null for the one that does not apply.
            None => match message.get("error").filter(|error| !error.is_null()) {
                Some(error) => self.refused(error),
                None => self.answered(&message["result"]),
            },
        }
    }

    fn decided(&mut self, question: &Question, decision: &Decision) -> Vec<Action> {
        let Some(asked) = self.asked.remove(&question.id.to_string()) else { return Vec::new() };
        let mut decision = decision;
        if *decision == Decision::AllowForSession && !S::keeps_approval(question.kind) {
            self.allowed.push(question.kind);
            decision = &Decision::Allow;
        }
        vec![send(&json!({ "id": question.id, "result": asked.answer(decision) }))]
    }

    fn ended(&self, exit: &Exit) -> End {
        let end = super::describe_exit(exit);
        let why = super::last_words(exit).map(|why| format!(": {why}")).unwrap_or_default();
        let text = format!("{} ended before its answer ({end}){why}", S::NAME);
        End::failed(FailureReason::BrokenStream, text)
    }
}

impl<S> Acp<S> {
    fn is_our_id(&self, id: &Value) -> bool {
        foreign::whole(id).and_then(|id| u64::try_from(id).ok()) == Some(self.id)
    }
}

impl<S: Speaker> Acp<S> {
    /// Handles a line that is not JSON: nobody may wait for its answer, or for an answer to it.
    fn unreadable(&mut self, line: &str, fault: &NotJson) -> Vec<Action> {
        let mut actions = skipped(line, fault);
        let id = fault.members.get("id").unwrap_or(&Value::Null);
        let is_request = fault.members.contains_key("method");
        if is_request && !id.is_null() && self.step != Step::Over {
            actions.push(refuse(id, -32700, &format!("the line is not JSON: {fault}")));
        } else if !is_request && self.is_our_id(id) && self.step != Step::Over {
            let text = format!("the answer of {} is not JSON: {fault}", S::NAME);
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
