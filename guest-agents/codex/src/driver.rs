//! Driver of Codex: a state machine that turns lines into actions without any I/O.
//!
//! ```text
//! initialize, account/read, thread/start or thread/resume     sent at once; answered in order
//!   └► turn/start ─► item/* ─► turn/completed ─► turn/start …  success only if `completed`
//!                     └ requests of Codex, which wait for an answer
//! ```
//! Lines and members that this version does not know are ignored: the dialect grows with every
//! release of the CLI.

use std::collections::{BTreeMap, BTreeSet};

use a2a_hub_sdk::cli::{
    self, Action, Decision, End, FailureReason, Hub, Idle, Job, Permissions, Plan, Question,
    Session, context, cut, describe_exit, last_words, skipped, tool_ended,
};
use a2a_hub_sdk::foreign::{self, JsonLines, NotJson};
use a2a_hub_sdk::{Exit, ExitStatus};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::approval::{self, ApprovalAnswer};
use crate::end::{Fault, is_lost_thread};
use crate::item::{PatchedFile, TurnItem};

/// Ids of our requests, which Codex repeats in its responses.
const INITIALIZE: u64 = 1;
const ACCOUNT: u64 = 2;
const THREAD: u64 = 3;
const TURN: u64 = 4;
const INTERRUPT: u64 = 5;

/// Number of refusals that end a run. The first may concern a token that has just expired, which
/// Codex renews. After the second, further attempts fail alike.
const REFUSALS: u32 = 2;

/// State of one turn.
#[derive(Debug)]
pub struct CodexDriver {
    job: Job,
    session: Session,
    /// Thread of this run, stored in the session once it can be resumed.
    thread: String,
    model: Option<String>,
    /// Usage of the thread so far, as Codex last reported it.
    totals: BTreeMap<String, f64>,
    /// Latest whole message.
    text: String,
    /// Pending file changes, by their item's id.
    patches: BTreeMap<String, Vec<PatchedFile>>,
    /// Ids of the tool calls that have not ended.
    tools: BTreeSet<String>,
    plan: Plan,
    /// Size of the context, as Codex last reported it.
    context: Option<Value>,
    /// Time at which the used-up limits of the account reset, in seconds since 1970.
    resets_at: Option<u64>,
    refusals: u32,
    /// Id of the running turn, once Codex has named it.
    turn_id: Option<String>,
    /// True if the turn was cancelled.
    is_interrupted: bool,
    /// True if the turn ended with an answer, or as it was cancelled.
    is_answered: bool,
    /// Output that is not JSON: complaints from before the dialect begins.
    noise: String,
    lines: JsonLines,
}

impl CodexDriver {
    /// Creates the driver of a job.
    pub fn new(job: &Job) -> Self {
        Self {
            session: job.session.clone().unwrap_or_default(),
            job: job.clone(),
            thread: String::new(),
            model: None,
            totals: BTreeMap::new(),
            text: String::new(),
            patches: BTreeMap::new(),
            tools: BTreeSet::new(),
            plan: Plan::default(),
            resets_at: None,
            context: None,
            refusals: 0,
            turn_id: None,
            is_interrupted: false,
            is_answered: false,
            noise: String::new(),
            lines: JsonLines::default(),
        }
    }

    fn answered(&mut self, id: u64, result: Option<&Value>, error: Option<&Value>) -> Vec<Action> {
        match (id, result, error) {
            (ACCOUNT, Some(account), _) => logged_in(account),
            (THREAD, Some(opened), _) => self.opened(opened),
            (TURN, Some(begun), _) => {
                self.turn_id = foreign::text(&begun["turn"]["id"]).map(|id| id.into_owned());
                Vec::new()
            }
            (THREAD, None, Some(error)) if !self.session.id.is_empty() && is_lost_thread(error) => {
                vec![Action::End(End::SessionLost)]
            }
            (INITIALIZE | THREAD | TURN, None, Some(error)) => {
                let text = foreign::text(error).unwrap_or("no word on why".into());
                vec![Action::End(End::failed(FailureReason::AgentError, text))]
            }
            _ => Vec::new(),
        }
    }

    fn opened(&mut self, opened: &Value) -> Vec<Action> {
        let Some(thread) = foreign::text(&opened["thread"]["id"]) else {
            let text = "codex opened a thread and does not tell which";
            return vec![Action::End(End::failed(FailureReason::BrokenStream, text))];
        };
        self.thread = thread.into_owned();
        self.model = foreign::text(&opened["model"]).map(|model| model.into_owned());
        vec![Action::Settled, self.turn()]
    }

    /// Request that starts a turn.
    fn turn(&self) -> Action {
        let images = self.job.images.iter();
        let images = images.map(|image| json!({ "type": "localImage", "path": image.path }));
        let text = json!({ "type": "text", "text": self.job.prompt });
        let mut params = json!({
            "threadId": self.thread,
            "input": images.chain([text]).collect::<Vec<_>>(),
            "approvalPolicy": self.policy(),
            "sandboxPolicy": self.sandbox(),
        });
        if let Some(effort) = &self.job.choices.effort {
            params["effort"] = effort.as_str().into();
        }
        request(TURN, "turn/start", &params)
    }

    /// Approval policy: Codex asks if its sandbox would refuse. It never asks if nobody would
    /// approve, or without a sandbox.
    fn policy(&self) -> &'static str {
        match self.job.permissions {
            Permissions::Ask | Permissions::Edit => "on-request",
            Permissions::ReadOnly | Permissions::Full => "never",
        }
    }

    /// Sandbox of a turn. Permission to edit ends at the job's directories: others share the
    /// temporary directories.
    fn sandbox(&self) -> Value {
        match self.job.permissions {
            Permissions::Ask | Permissions::ReadOnly => json!({ "type": "readOnly" }),
            Permissions::Edit => json!({
                "type": "workspaceWrite",
                "writableRoots": self.job.additional,
                "excludeSlashTmp": true,
                "excludeTmpdirEnvVar": true,
            }),
            Permissions::Full => json!({ "type": "dangerFullAccess" }),
        }
    }

    /// Instruction that names the additional directories: outside of the sandbox's writable roots,
    /// the protocol has no member for them.
    fn directories(&self) -> Option<String> {
        let named = &self.job.additional;
        (!named.is_empty()).then(|| {
            format!(
                "Besides the working directory, you work in these directories: {}",
                json!(named)
            )
        })
    }

    fn notice(&mut self, method: &str, params: &Value) -> Vec<Action> {
        // Agents that Codex calls have other threads.
        if foreign::text(&params["threadId"]).is_some_and(|thread| thread != self.thread) {
            return Vec::new();
        }
        match method {
            "item/agentMessage/delta" => {
                let delta = foreign::text(&params["delta"]).unwrap_or_default();
                vec![Action::Delta(self.lines.chunk(&delta))]
            }
            "item/started" => self.started(&params["item"]),
            "item/completed" => self.completed(&params["item"]),
            "thread/tokenUsage/updated" => {
                let usage = &params["tokenUsage"];
                self.count(&usage["total"]);
                let used = foreign::number(&usage["last"]["totalTokens"]);
                let size = foreign::number(&usage["modelContextWindow"]);
                self.context = context(used, size).or_else(|| self.context.take());
                Vec::new()
            }
            // Also sent after our own answer, when the question is no longer open.
            "serverRequest/resolved" => vec![Action::Withdrawn(params["requestId"].clone())],
            "turn/plan/updated" => self.plan.update(&params["plan"], "step").into_iter().collect(),
            "account/rateLimits/updated" => {
                self.resets_at = reset_of(&params["rateLimits"]);
                Vec::new()
            }
            "error" => self.retried_error(params),
            "turn/completed" => self.turn_over(&params["turn"]),
            _ => Vec::new(),
        }
    }

    fn started(&mut self, item: &Value) -> Vec<Action> {
        let id = item["id"].as_str().unwrap_or_default().to_owned();
        let Ok(item) = TurnItem::deserialize(item) else { return Vec::new() };
        // Text before another item is not the answer; it becomes a status, since the next message
        // replaces it.
        let mut actions = Vec::new();
        let status = item.status_text();
        if (status.is_some() || matches!(item, TurnItem::AgentMessage { .. }))
            && !self.text.is_empty()
        {
            actions.push(Action::Say(std::mem::take(&mut self.text)));
        }
        if let Some(text) = status {
            actions.push(match item.facts(&id, &text).filter(|_| !id.is_empty()) {
                Some(facts) => {
                    self.tools.insert(id);
                    Action::Report { text, facts }
                }
                None => Action::Say(text),
            });
        }
        if matches!(item, TurnItem::AgentMessage { .. }) {
            self.lines.end_of_message();
            actions.push(Action::Restart);
        }
        if let TurnItem::FileChange { id, changes, .. } = item {
            self.patches.insert(id, changes);
        }
        actions
    }

    fn completed(&mut self, item: &Value) -> Vec<Action> {
        let mut actions = self.keep_thread();
        let id = item["id"].as_str().unwrap_or_default();
        if self.tools.remove(id) {
            let is_failed = matches!(item["status"].as_str(), Some("failed" | "declined"));
            let facts = tool_ended(id, is_failed);
            actions.push(Action::Report { text: String::new(), facts });
        }
        match TurnItem::deserialize(item) {
            Ok(TurnItem::AgentMessage { text }) => self.text = text,
            Ok(TurnItem::FileChange { id, changes, status }) => {
                self.patches.remove(&id);
                if status == "completed" {
                    actions.extend(changes.iter().map(|file| Action::Changed(file.change())));
                }
            }
            Ok(_) | Err(_) => {}
        }
        actions
    }

    /// Stores the thread. It can be resumed from its first item on, which is the prompt.
    fn keep_thread(&mut self) -> Vec<Action> {
        if self.session.id == self.thread {
            return Vec::new();
        }
        self.session = Session::new(&self.thread);
        vec![Action::Remember(self.session.clone())]
    }

    fn count(&mut self, total: &Value) {
        for (theirs, ours) in [
            ("inputTokens", "input_tokens"),
            ("cachedInputTokens", "cached_input_tokens"),
            ("outputTokens", "output_tokens"),
            ("reasoningOutputTokens", "reasoning_output_tokens"),
        ] {
            if let Some(tokens) = foreign::number(&total[theirs]) {
                self.totals.insert(ours.to_owned(), tokens);
            }
        }
    }

    /// Handles an error that Codex retries. Final errors arrive with the turn's end.
    fn retried_error(&mut self, params: &Value) -> Vec<Action> {
        let Ok(fault) = Fault::deserialize(&params["error"]) else { return Vec::new() };
        if foreign::truth(&params["willRetry"]) != Some(true) {
            return Vec::new();
        }
        if matches!(fault.status(), Some(401 | 403)) {
            self.refusals += 1;
            if self.refusals == REFUSALS {
                return vec![Action::End(End::LoginNeeded(fault.words()))];
            }
        }
        let status = cut(&format!("retrying: {}", fault.words()));
        vec![Action::Retrying { status, end: fault.end(&Map::new()) }]
    }

    fn turn_over(&mut self, turn: &Value) -> Vec<Action> {
        let metadata = self.metadata();
        let mut actions = vec![];
        if !self.session.id.is_empty() {
            actions.push(Action::Remember(self.session.clone()));
        }
        let failed = |reason, text: &str| {
            let (text, metadata) = (text.to_owned(), metadata.clone());
            End::Failed { reason, text, metadata }
        };
        self.turn_id = None;
        let end = match turn["status"].as_str() {
            Some("completed") => {
                self.is_answered = true;
                End::Completed { text: std::mem::take(&mut self.text), metadata: metadata.clone() }
            }
            Some("failed") => match Fault::deserialize(&turn["error"]) {
                Ok(fault) => fault.end(&metadata).resetting_at(self.resets_at),
                Err(_) => failed(FailureReason::AgentError, "codex failed without a word on why"),
            },
            Some("interrupted") if self.is_interrupted => {
                self.patches.clear();
                self.is_answered = true;
                failed(FailureReason::Interrupted, "codex was interrupted")
            }
            Some("interrupted") => failed(FailureReason::Interrupted, "codex was interrupted"),
            _ => failed(
                FailureReason::BrokenStream,
                "codex ended its turn in a way that is not understood",
            ),
        };
        actions.push(Action::End(end));
        actions
    }

    /// Model and usage of this run. Codex reports the thread's total over all runs.
    fn metadata(&mut self) -> Map<String, Value> {
        let mut usage = Map::new();
        for (counter, total) in std::mem::take(&mut self.totals) {
            // Token counts are whole numbers, far below a float's precision.
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "as said")]
            let tokens = self.session.grown(&counter, total) as u64;
            usage.insert(counter, tokens.into());
        }
        let mut metadata = Map::new();
        if let Some(model) = &self.model {
            metadata.insert("model".into(), model.as_str().into());
        }
        if !usage.is_empty() {
            metadata.insert("usage".into(), usage.into());
        }
        if let Some(context) = &self.context {
            metadata.insert("context".into(), context.clone());
        }
        metadata
    }
}

impl cli::Driver for CodexDriver {
    fn greet(&mut self) -> Vec<Action> {
        let client =
            json!({ "name": "a2a-hub", "title": "A2A hub", "version": env!("CARGO_PKG_VERSION") });
        vec![
            request(INITIALIZE, "initialize", &json!({ "clientInfo": client })),
            Action::Send(json!({ "method": "initialized" }).to_string()),
            request(ACCOUNT, "account/read", &json!({})),
        ]
    }

    fn begin(&mut self) -> Vec<Action> {
        // A thread that starts with a writable sandbox marks its directory as trusted for ever, and
        // runs the hooks and servers configured there. Widening the sandbox in the turn does not.
        let mut params = json!({
            "sandbox": "read-only",
            "approvalPolicy": self.policy(),
            "approvalsReviewer": "user",
        });
        if let Some(directory) = &self.job.directory {
            params["cwd"] = directory.as_str().into();
        }
        let choices = &self.job.choices;
        if let Some(model) = &choices.model {
            params["model"] = model.as_str().into();
        }
        let instructions: Vec<_> =
            choices.instructions.iter().cloned().chain(self.directories()).collect();
        if !instructions.is_empty() {
            params["developerInstructions"] = instructions.join("\n\n").into();
        }
        let servers = choices.servers();
        let mut config = Map::new();
        if !servers.is_empty() {
            config.insert("mcp_servers".to_owned(), renamed(&servers).into());
        }
        if let Some(hub) = &choices.hub {
            // Commands that the model runs outside of the sandbox find the hub as well.
            let set = json!({ Hub::SOCKET: hub.socket });
            let policy = json!({ "inherit": "core", "set": set });
            config.insert("shell_environment_policy".to_owned(), policy);
        }
        if !config.is_empty() {
            params["config"] = config.into();
        }
        let method = if self.session.id.is_empty() { "thread/start" } else { "thread/resume" };
        if !self.session.id.is_empty() {
            params["threadId"] = self.session.id.as_str().into();
            params["excludeTurns"] = true.into();
        }
        vec![request(THREAD, method, &params)]
    }

    fn again(&mut self, idle: &Idle) -> Option<Vec<Action>> {
        self.session = idle.session.clone();
        self.thread.clone_from(&self.session.id);
        self.model = idle.state.as_str().map(ToOwned::to_owned);
        Some(vec![self.turn()])
    }

    fn interrupt(&mut self) -> Vec<Action> {
        let Some(turn) = &self.turn_id else { return Vec::new() };
        self.is_interrupted = true;
        let params = json!({ "threadId": self.thread, "turnId": turn });
        vec![request(INTERRUPT, "turn/interrupt", &params)]
    }

    fn idle(&self) -> Option<Idle> {
        let is_idle = self.is_answered && self.patches.is_empty() && !self.session.id.is_empty();
        is_idle.then(|| Idle { session: self.session.clone(), state: json!(self.model) })
    }

    fn line(&mut self, line: &str) -> Vec<Action> {
        let message = match self.lines.read(line) {
            Ok(message) => message,
            Err(fault) => return self.unreadable(line, &fault),
        };
        // A response, a notification, or a request, which has both a method and an id.
        let (id, params) = (&message["id"], &message["params"]);
        let some = |member: &str| message.get(member).filter(|value| !value.is_null());
        match some("method").map(Value::as_str) {
            Some(Some(method)) if id.is_null() => self.notice(method, params),
            Some(Some(method)) => match approval::question(id, method, params, &self.patches) {
                ApprovalAnswer::Ask(question) => vec![Action::Ask(question)],
                ApprovalAnswer::Tell(response) => vec![Action::Send(response)],
            },
            Some(None) if !id.is_null() => {
                vec![refuse(id, -32600, "the method of the request is not a string")]
            }
            // Codex could not read a request.
            None if id.is_null() && some("error").is_some() => {
                let text = foreign::text(&message["error"]).unwrap_or("no word on why".into());
                vec![Action::End(End::failed(FailureReason::AgentError, text))]
            }
            None if !id.is_null() => self.answered(our_id(id), some("result"), some("error")),
            Some(None) | None => Vec::new(),
        }
    }

    fn decided(&mut self, question: &Question, decision: &Decision) -> Vec<Action> {
        vec![Action::Send(approval::response(question, decision))]
    }

    fn ended(&self, exit: &Exit) -> End {
        let words = last_words(exit).unwrap_or(&self.noise);
        let exit_text = describe_exit(exit);
        let text = format!("codex ended ({exit_text}) before it was done: {words}");
        // A killed program says nothing about its set-up, even before its first answer.
        let is_killed = matches!(exit.status, ExitStatus::Signal(_) | ExitStatus::Code(129..=159));
        let reason = if self.thread.is_empty() && !is_killed {
            FailureReason::AgentError
        } else {
            FailureReason::BrokenStream
        };
        End::failed(reason, text.trim_end_matches([':', ' ']))
    }
}

impl CodexDriver {
    /// Handles a line that is not JSON: Codex may wait for an answer, or for the next prompt.
    fn unreadable(&mut self, line: &str, fault: &NotJson) -> Vec<Action> {
        if !line.trim_start().starts_with('{') {
            self.noise = cut(line);
        }
        let mut actions = skipped(line, fault);
        let id = fault.members.get("id").unwrap_or(&Value::Null);
        let is_request = fault.members.contains_key("method");
        let broken = |subject| {
            let text = format!("{subject} is not understood: {fault}");
            Action::End(End::failed(FailureReason::BrokenStream, text))
        };
        if line.contains(r#""turn/completed""#) {
            actions.push(broken("the end of codex' turn"));
        } else if is_request && !id.is_null() {
            actions.push(refuse(id, -32700, &format!("the line is not JSON: {fault}")));
        } else if !is_request && matches!(our_id(id), INITIALIZE | THREAD | TURN) {
            actions.push(broken("an answer of codex"));
        }
        actions
    }
}

/// Id of one of our requests; 0 for any other.
fn our_id(id: &Value) -> u64 {
    foreign::integer(id).and_then(|id| id.try_into().ok()).unwrap_or_default()
}

/// Error response to a request of Codex.
fn refuse(id: &Value, code: i64, why: &str) -> Action {
    Action::Send(json!({ "id": id, "error": { "code": code, "message": why } }).to_string())
}

fn request(id: u64, method: &str, params: &Value) -> Action {
    Action::Send(json!({ "id": id, "method": method, "params": params }).to_string())
}

/// MCP servers in the form of Codex's configuration.
fn renamed(servers: &Map<String, Value>) -> Map<String, Value> {
    let renamed = servers.iter().map(|(name, server)| {
        let mut server = server.clone();
        if let Some(server) = server.as_object_mut() {
            server.remove("type");
            if let Some(headers) = server.remove("headers") {
                server.insert("http_headers".into(), headers);
            }
        }
        (name.clone(), server)
    });
    renamed.collect()
}

/// Reset of the used-up windows of an account, in seconds since 1970: the last of them counts.
fn reset_of(limits: &Value) -> Option<u64> {
    let windows = [&limits["primary"], &limits["secondary"]].into_iter();
    let used_up = windows
        .filter(|window| foreign::number(&window["usedPercent"]).is_some_and(|used| used >= 100.0));
    let resets =
        used_up.filter_map(|window| foreign::integer(&window["resetsAt"])?.try_into().ok());
    resets.max()
}

/// Checks the login before the first attempt: without an account, the provider would refuse only
/// after many retries.
fn logged_in(account: &Value) -> Vec<Action> {
    if foreign::truth(&account["requiresOpenaiAuth"]) == Some(true) && account["account"].is_null()
    {
        return vec![Action::End(End::LoginNeeded("Codex is not logged in.".into()))];
    }
    Vec::new()
}
