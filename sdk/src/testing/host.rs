//! Hub for tests that follows a script.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use std::time::Duration;

use serde_json::{Value, json};

use super::child::{Inbox, ScriptedCall, child};
use super::exchange::ScriptedExchange;
use super::mind::Mind;
use super::process::{KeptPrograms, ScriptedProcess, Stop};
use super::program::{Program, ProgramScript};
use super::rules::ScriptedRules;
use super::step::{self, ScriptedStep};
use super::workspace::WorkspaceFiles;
use crate::bindings::a2a::hub::wait::First;
use crate::host::{Host, MemoryChange, PermissionReply, Pollable, PosedQuestion};
use crate::message::joined_text;
use crate::{
    CallOptions, ChildTask, Command, Event, Failure, Level, Message, Need, Request, Response,
    StepMode, TaskState, Update,
};

/// Hub that follows a script. Clones share one hub.
#[derive(Clone, Default)]
pub struct ScriptedHost(Rc<RefCell<HostState>>);

#[derive(Default)]
struct HostState {
    events: Vec<Event>,
    logs: Vec<(Level, String)>,
    asked: Vec<(Need, Message)>,
    answers: VecDeque<Result<Message, Failure>>,
    rules: ScriptedRules,
    memory: BTreeMap<String, Vec<u8>>,
    memory_bytes: Option<usize>,
    mind: Mind,
    settings: BTreeMap<String, String>,
    files: Vec<(String, Vec<u8>)>,
    workspace: WorkspaceFiles,
    scripts: Vec<Rc<RefCell<ProgramScript>>>,
    spawned: Vec<Command>,
    kept: KeptPrograms,
    responses: VecDeque<Scripted>,
    requests: Vec<Request>,
    calls: VecDeque<(String, Vec<Update>)>,
    tools: VecDeque<(String, String, Value)>,
    tool_calls: Vec<(String, String, Value)>,
    searches: Vec<Value>,
    cancel_after: Option<usize>,
    /// True once the agent has learned of the cancellation.
    is_cancel_known: bool,
    extensions: Vec<String>,
    output_modes: Vec<String>,
    fingerprints: BTreeMap<String, String>,
    withdrawn: usize,
    children: Vec<ChildTask>,
    inbox: Rc<RefCell<Inbox>>,
    steps: step::StepResults,
}

/// Scripted HTTP response: status, headers, and chunks of the body.
type Scripted = (u16, Vec<(String, String)>, VecDeque<Vec<u8>>);

/// Scripted question: the client answers at once, or only after the program has written its output.
pub(crate) struct ScriptedQuestion {
    host: ScriptedHost,
    prompt: String,
    answered: bool,
}

impl ScriptedHost {
    /// Creates a hub that allows nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Scripts one run of a program. Several scripts of one program are used in order.
    pub fn program(&self, program: &str) -> Program {
        let script = Rc::new(RefCell::new(ProgramScript::new(program)));
        self.0.borrow_mut().scripts.push(Rc::clone(&script));
        Program(script)
    }

    /// Sets the fingerprint of a program for [`Context::fingerprint`](crate::Context::fingerprint);
    /// the default is `1`. With an empty text the program does not exist.
    pub fn program_is(&self, program: &str, fingerprint: &str) {
        self.0.borrow_mut().fingerprints.insert(program.into(), fingerprint.into());
    }

    /// Number of questions that the agent withdrew unanswered.
    pub fn withdrawn(&self) -> usize {
        self.0.borrow().withdrawn
    }

    /// Answers the next question. A question posed without waiting and without a scripted answer
    /// stays open until its program has written something.
    pub fn answer(&self, answer: impl Into<Message>) {
        self.0.borrow_mut().answers.push_back(Ok(answer.into()));
    }

    /// Fails the next question, by a timeout or the task's cancellation.
    pub fn fail_answer(&self, failure: Failure) {
        self.0.borrow_mut().answers.push_back(Err(failure));
    }

    /// Makes a rule of the operator: it allows the requests of programs whose facts, as JSON, contain
    /// this text.
    pub fn allow_by_rule(&self, part: &str) {
        self.0.borrow_mut().rules.allow(part);
    }

    /// Makes a rule of the operator that denies such requests, with this reason.
    pub fn deny_by_rule(&self, part: &str, reason: &str) {
        self.0.borrow_mut().rules.deny(part, reason);
    }

    /// Sets a setting, as the operator would. By default `permissions` is `ask`, and
    /// `approval_timeout` an hour.
    pub fn setting(&self, name: &str, value: &str) {
        self.0.borrow_mut().settings.insert(name.into(), value.into());
    }

    /// Limits the memory, keys and values together; the default is no limit.
    pub fn memory_bytes(&self, max: usize) {
        self.0.borrow_mut().memory_bytes = Some(max);
    }

    /// Grants a workspace with these files, by path.
    pub fn workspace(&self, files: &[(&str, &str)]) {
        self.0.borrow_mut().workspace.grant(files);
    }

    /// Takes the permission to write into the workspace.
    pub fn read_only_workspace(&self) {
        self.0.borrow_mut().workspace.read_only = true;
    }

    /// Text of a file of the workspace.
    pub fn workspace_file(&self, path: &str) -> Option<String> {
        let bytes = self.0.borrow().workspace.read(path).ok()?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Answers the next HTTP request.
    pub fn respond(&self, response: Response) {
        let Response { status, headers, body } = response;
        self.0.borrow_mut().responses.push_back((status, headers, [body].into()));
    }

    /// Answers the next HTTP request with a body that arrives in these chunks.
    pub fn respond_in_pieces(&self, status: u16, pieces: &[&str]) {
        let pieces = pieces.iter().map(|piece| piece.as_bytes().to_vec()).collect();
        self.0.borrow_mut().responses.push_back((status, Vec::new(), pieces));
    }

    /// Scripts the next call of an agent with that name.
    pub fn agent(&self, name: &str, updates: Vec<Update>) {
        self.0.borrow_mut().calls.push_back((name.into(), updates));
    }

    /// Scripts the next call of a tool: its result, as MCP defines it.
    pub fn tool(&self, server: &str, name: &str, result: &Value) {
        self.0.borrow_mut().tools.push_back((server.into(), name.into(), result.clone()));
    }

    /// Searches of the agent for other agents, as JSON. A search finds all agents that the script
    /// lets it call.
    pub fn searches(&self) -> Vec<Value> {
        self.0.borrow().searches.clone()
    }

    /// Tools that the agent called: server, name and arguments.
    pub fn tool_calls(&self) -> Vec<(String, String, Value)> {
        self.0.borrow().tool_calls.clone()
    }

    /// Stored result of a step, as JSON; `None` if it has none. Another run on this hub finds it
    /// done.
    pub fn step_came_to(&self, key: &str) -> Option<String> {
        self.0.borrow().steps.borrow().get(key).cloned()
    }

    /// Cancels the task once `events` events were emitted.
    pub fn cancel_after(&self, events: usize) {
        let mut state = self.0.borrow_mut();
        (state.cancel_after, state.is_cancel_known) = (Some(events), false);
    }

    /// Activates an extension, as a client would that names it.
    pub fn extension(&self, uri: &str) {
        self.0.borrow_mut().extensions.push(uri.into());
    }

    /// Adds a media type that the client accepts. Without any, the client accepts all.
    pub fn accepts(&self, media_type: &str) {
        self.0.borrow_mut().output_modes.push(media_type.into());
    }

    /// Emitted events.
    pub fn events(&self) -> Vec<Event> {
        self.0.borrow().events.clone()
    }

    /// Texts of the emitted working statuses.
    pub fn said(&self) -> Vec<String> {
        let state = self.0.borrow();
        let text = |event: &Event| match event {
            Event::Status(status) if status.state == TaskState::Working => {
                status.message.as_ref().map(Message::text)
            }
            Event::Status(_) | Event::Artifact(_) | Event::Other(_) => None,
        };
        state.events.iter().filter_map(text).collect()
    }

    /// Text of an artifact after all events.
    pub fn artifact(&self, id: &str) -> Option<String> {
        let state = self.0.borrow();
        let updates = state.events.iter().filter_map(|event| match event {
            Event::Artifact(update) if update.artifact.id == id => Some(update),
            Event::Artifact(_) | Event::Status(_) | Event::Other(_) => None,
        });
        updates.fold(None, |text: Option<String>, update| {
            let piece = joined_text(&update.artifact.parts);
            Some(if update.append { text.unwrap_or_default() + &piece } else { piece })
        })
    }

    /// Questions that were asked.
    pub fn asked(&self) -> Vec<(Need, Message)> {
        self.0.borrow().asked.clone()
    }

    /// Programs that were started.
    pub fn spawned(&self) -> Vec<Command> {
        self.0.borrow().spawned.clone()
    }

    /// Programs that the agent parked.
    pub fn kept_programs(&self) -> KeptPrograms {
        self.0.borrow().kept.clone()
    }

    /// Files that were written, each with the path returned to the agent: `/files/1/name` for the
    /// first.
    pub fn files(&self) -> Vec<(String, Vec<u8>)> {
        self.0.borrow().files.clone()
    }

    /// HTTP requests that were sent.
    pub fn requests(&self) -> Vec<Request> {
        self.0.borrow().requests.clone()
    }

    /// Lines that were logged.
    pub fn logs(&self) -> Vec<(Level, String)> {
        self.0.borrow().logs.clone()
    }

    /// Scripts the next message to the agent at work. Without one, its wait for a message ends by a
    /// timeout.
    pub fn message(&self, message: impl Into<Message>) {
        self.0.borrow().inbox.borrow_mut().messages.push_back(message.into());
    }

    /// Further messages of the agent to called agents, each with the id of the task: `child-1` for
    /// the first call.
    pub fn sent(&self) -> Vec<(String, Message)> {
        self.0.borrow().inbox.borrow().sent.clone()
    }

    /// Answers of the agent to questions of called agents: the id of each task (`child-1` for the
    /// first call) and the text.
    pub fn answered(&self) -> Vec<(String, String)> {
        self.0.borrow().inbox.borrow().answered.clone()
    }

    fn is_cancelled(&self) -> bool {
        let state = self.0.borrow();
        state.cancel_after.is_some_and(|limit| state.events.len() >= limit)
    }

    /// Check whether the task is cancelled.
    fn stop(&self) -> Stop {
        let host = self.clone();
        Box::new(move || host.unless_cancelled())
    }

    /// Check for calls of programs, which work again once the agent knows of the cancellation.
    fn program_stop(&self) -> Stop {
        let host = self.clone();
        Box::new(move || {
            let is_known = host.0.borrow().is_cancel_known;
            if is_known { Ok(()) } else { host.unless_cancelled() }
        })
    }

    pub(super) fn unless_cancelled(&self) -> Result<(), Failure> {
        if self.is_cancelled() { Err(Failure::Cancelled) } else { Ok(()) }
    }
}

fn unscripted(what: &str) -> Failure {
    Failure::Denied(format!("{what} is not in the script"))
}

impl Host for ScriptedHost {
    type Process = ScriptedProcess;
    type Call = ScriptedCall;
    type Question = ScriptedQuestion;
    type Exchange = ScriptedExchange;
    type Step = ScriptedStep;

    fn emit(&self, events: Vec<Event>) -> Result<(), Failure> {
        self.unless_cancelled()?;
        self.0.borrow_mut().events.extend(events);
        Ok(())
    }

    fn ask(&self, need: Need, prompt: &Message, _: Option<Duration>) -> Result<Message, Failure> {
        self.unless_cancelled()?;
        let mut state = self.0.borrow_mut();
        state.asked.push((need, prompt.clone()));
        let answer = state.answers.pop_front();
        answer.unwrap_or_else(|| Err(unscripted(&format!("the answer to `{}`", prompt.text()))))
    }

    fn pose(
        &self,
        need: Need,
        prompt: &Message,
        _: Option<Duration>,
    ) -> Result<ScriptedQuestion, Failure> {
        self.unless_cancelled()?;
        self.0.borrow_mut().asked.push((need, prompt.clone()));
        Ok(ScriptedQuestion { host: self.clone(), prompt: prompt.text(), answered: false })
    }

    fn request_permission(
        &self,
        facts: &str,
        prompt: &Message,
        timeout: Option<Duration>,
    ) -> Result<PermissionReply<ScriptedQuestion>, Failure> {
        let answer = self.0.borrow().rules.answer(facts);
        Ok(match answer {
            Some(Ok(rule)) => PermissionReply::Allowed(rule),
            Some(Err(reason)) => PermissionReply::Denied(reason),
            None => PermissionReply::Pending(self.pose(Need::Input, prompt, timeout)?),
        })
    }

    fn permission_denial(&self, facts: &str) -> Result<Option<String>, Failure> {
        Ok(self.0.borrow().rules.answer(facts).and_then(Result::err))
    }

    fn first_of(&self, _: &ScriptedQuestion, process: &ScriptedProcess) -> First {
        let is_answered = !self.0.borrow().answers.is_empty();
        if self.is_cancelled() {
            First::Cancelled
        } else if process.is_ready() && !is_answered {
            First::Output
        } else {
            First::Answer
        }
    }

    fn next_message(&self, _: Option<Duration>) -> Result<Message, Failure> {
        self.unless_cancelled()?;
        self.0.borrow().inbox.borrow_mut().messages.pop_front().ok_or(Failure::Timeout)
    }

    fn cancelled(&self) -> bool {
        let is_cancelled = self.is_cancelled();
        self.0.borrow_mut().is_cancel_known |= is_cancelled;
        is_cancelled
    }

    fn extensions(&self) -> Vec<String> {
        self.0.borrow().extensions.clone()
    }

    fn output_modes(&self) -> Vec<String> {
        self.0.borrow().output_modes.clone()
    }

    fn fingerprint(&self, program: &str) -> Result<String, Failure> {
        match self.0.borrow().fingerprints.get(program) {
            Some(gone) if gone.is_empty() => {
                Err(Failure::Unavailable(format!("`{program}` is not there")))
            }
            Some(fingerprint) => Ok(fingerprint.clone()),
            None => Ok("1".into()),
        }
    }

    fn spawn(&self, command: &Command) -> Result<ScriptedProcess, Failure> {
        self.unless_cancelled()?;
        let mut state = self.0.borrow_mut();
        state.spawned.push(command.clone());
        let at = state.scripts.iter().position(|script| script.borrow().fits(command));
        let at = at.ok_or_else(|| {
            unscripted(&format!("`{} {}`", command.program, command.args.join(" ")))
        })?;
        let script = state.scripts.remove(at);
        drop(state);
        ScriptedProcess::start(command, script, self.kept_programs(), self.program_stop())
    }

    fn take_up(&self, key: &str, command: &Command) -> Result<Option<ScriptedProcess>, Failure> {
        self.unless_cancelled()?;
        Ok(self.kept_programs().take_up(key, command, self.program_stop()))
    }

    fn fetch(&self, request: &Request) -> Result<Response, Failure> {
        let ScriptedExchange { status, headers, pieces, .. } = self.exchange(request)?;
        Ok(Response { status, headers, body: Vec::from(pieces.into_inner()).concat() })
    }

    fn exchange(&self, request: &Request) -> Result<ScriptedExchange, Failure> {
        self.unless_cancelled()?;
        let mut state = self.0.borrow_mut();
        state.requests.push(request.clone());
        let response = state.responses.pop_front().ok_or_else(|| unscripted(&request.url))?;
        let (status, headers, pieces) = response;
        Ok(ScriptedExchange { stop: self.stop(), status, headers, pieces: RefCell::new(pieces) })
    }

    fn get(&self, key: &str) -> Result<Option<Vec<u8>>, Failure> {
        Ok(self.0.borrow().memory.get(key).cloned())
    }

    fn set(&self, key: &str, value: &[u8]) -> Result<(), Failure> {
        let mut state = self.0.borrow_mut();
        let others = state.memory.iter().filter(|(name, _)| *name != key);
        let held: usize = others.map(|(key, value)| key.len() + value.len()).sum();
        let would_hold = held + key.len() + value.len();
        if state.memory_bytes.is_some_and(|max| would_hold > max) {
            let why = format!("remember more: it would hold {would_hold} bytes");
            return Err(Failure::Exhausted(why));
        }
        state.memory.insert(key.into(), value.into());
        Ok(())
    }

    fn delete(&self, key: &str) -> Result<(), Failure> {
        self.0.borrow_mut().memory.remove(key);
        Ok(())
    }

    fn keys(&self, prefix: &str) -> Result<Vec<String>, Failure> {
        let state = self.0.borrow();
        Ok(state.memory.keys().filter(|key| key.starts_with(prefix)).cloned().collect())
    }

    fn working(&self) -> Result<String, Failure> {
        Ok(json!(self.0.borrow().mind.working).to_string())
    }

    fn change_context_memory(&self, change: MemoryChange<'_>) -> Result<(), Failure> {
        self.0.borrow_mut().mind.change(change)
    }

    fn recall_items(&self, query: &str, limit: u32) -> Result<String, Failure> {
        Ok(self.0.borrow().mind.recall(query, limit))
    }

    fn read_setting(&self, name: &str) -> Option<String> {
        let unless_set = match name {
            "permissions" => Some("ask"),
            "approval_timeout" => Some("3600000"),
            _ => None,
        };
        let set = self.0.borrow().settings.get(name).cloned();
        set.or_else(|| unless_set.map(str::to_owned))
    }

    fn put_file(&self, name: &str, bytes: &[u8]) -> Result<String, Failure> {
        self.unless_cancelled()?;
        let mut state = self.0.borrow_mut();
        let last = name.rsplit('/').next().unwrap_or_default();
        let path = format!("/files/{}/{last}", state.files.len() + 1);
        state.files.push((path.clone(), bytes.to_vec()));
        Ok(path)
    }

    fn read_file(&self, path: &str) -> Result<Vec<u8>, Failure> {
        self.unless_cancelled()?;
        self.0.borrow().workspace.read(path)
    }

    fn write_file(&self, path: &str, content: &[u8]) -> Result<(), Failure> {
        self.unless_cancelled()?;
        self.0.borrow_mut().workspace.write(path, content)
    }

    fn list_folder(&self, path: &str) -> Result<Vec<String>, Failure> {
        self.unless_cancelled()?;
        self.0.borrow().workspace.list(path)
    }

    fn tools(&self) -> Result<String, Failure> {
        let state = self.0.borrow();
        let tool = |(server, name, _): &(String, String, Value)| json!({ "server": server, "name": name, "inputSchema": { "type": "object" } });
        Ok(Value::from(state.tools.iter().map(tool).collect::<Vec<_>>()).to_string())
    }

    fn call_tool(
        &self,
        server: &str,
        name: &str,
        arguments: &str,
        _: Option<Duration>,
    ) -> Result<String, Failure> {
        self.unless_cancelled()?;
        let mut state = self.0.borrow_mut();
        let at = state.tools.iter().position(|(of, tool, _)| of == server && tool == name);
        let script = at.and_then(|at| state.tools.remove(at));
        let what = || unscripted(&format!("a call of the tool `{name}` of `{server}`"));
        let (_, _, result) = script.ok_or_else(what)?;
        let arguments = serde_json::from_str(arguments).unwrap_or_default();
        state.tool_calls.push((server.into(), name.into(), arguments));
        Ok(result.to_string())
    }

    fn agents(&self) -> Result<String, Failure> {
        let state = self.0.borrow();
        let cards: Vec<_> =
            state.calls.iter().map(|(id, _)| json!({ "agentId": id, "name": id })).collect();
        Ok(Value::from(cards).to_string())
    }

    fn find(&self, query: &str) -> Result<String, Failure> {
        self.unless_cancelled()?;
        let mut state = self.0.borrow_mut();
        state.searches.push(serde_json::from_str(query).unwrap_or_default());
        let found = |(id, _): &(String, _)| json!({ "id": id, "card": { "agentId": id, "name": id }, "score": 1.0, "why": [] });
        let agents: Vec<_> = state.calls.iter().map(found).collect();
        Ok(json!({ "agents": agents }).to_string())
    }

    fn call(&self, agent: &str, _: &Message, how: &CallOptions) -> Result<ScriptedCall, Failure> {
        self.unless_cancelled()?;
        let mut state = self.0.borrow_mut();
        let at = state.calls.iter().position(|(name, _)| name == agent);
        let script = at.and_then(|at| state.calls.remove(at));
        let (_, updates) = script.ok_or_else(|| unscripted(&format!("a call to `{agent}`")))?;
        let id = format!("child-{}", state.children.len() + 1);
        state.children.push(child(&id, agent, how, &updates));
        Ok(ScriptedCall::new(id, Rc::clone(&state.inbox), self.stop(), updates))
    }

    fn children(&self) -> Result<Vec<ChildTask>, Failure> {
        Ok(self.0.borrow().children.clone())
    }

    fn any_of(
        &self,
        sources: &[Pollable<'_, Self>],
        _: Option<Duration>,
    ) -> Result<Vec<usize>, Failure> {
        self.unless_cancelled()?;
        let ready = |source: &Pollable<'_, Self>| match source {
            Pollable::Process(process) => process.is_ready(),
            Pollable::Call(call) => call.is_ready(),
            Pollable::Exchange(exchange) => exchange.is_ready(),
            Pollable::Question(question) => !question.host.0.borrow().answers.is_empty(),
        };
        Ok((0..sources.len()).filter(|&i| ready(&sources[i])).collect())
    }

    fn begin_step(&self, key: &str, mode: StepMode) -> Result<ScriptedStep, Failure> {
        self.unless_cancelled()?;
        Ok(ScriptedStep::begin(&self.0.borrow().steps, key, mode))
    }

    fn log(&self, level: Level, message: &str) {
        self.0.borrow_mut().logs.push((level, message.into()));
    }
}

impl PosedQuestion for ScriptedQuestion {
    fn answer(mut self) -> Result<Message, Failure> {
        self.host.unless_cancelled()?;
        self.answered = true;
        let answer = self.host.0.borrow_mut().answers.pop_front();
        answer.unwrap_or_else(|| Err(unscripted(&format!("the answer to `{}`", self.prompt))))
    }
}

impl Drop for ScriptedQuestion {
    fn drop(&mut self) {
        self.host.0.borrow_mut().withdrawn += usize::from(!self.answered);
    }
}
