//! One ACP client: its sessions, and what it asks of them.

use super::{
    modes::Modes,
    prompt, told,
    turn::{Open, Turn, refusal},
    wire::{self, Heard, Refusal, Wire},
};
use crate::{
    caught::caught,
    dispatcher::Dispatcher,
    line_reader::LineReader,
    said::{self, Beginning},
};
use a2a_hub_core::access::Principal;
use a2a_hub_hub::Reply;
use a2a_hub_protocol::{
    id::{AgentId, ContextId},
    operation::{Answer, Operation},
    trace::TraceContext,
};
use parking_lot::Mutex;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Map, Value, json};
use std::{collections::HashMap, path::Path, sync::Arc};
use tokio::{io::AsyncRead, sync::mpsc, task::JoinSet};
use tokio_util::sync::CancellationToken;

/// How much of a conversation a session begins with that is loaded.
const HISTORY: usize = 200;

/// How many sessions one client may have open.
const MAX_SESSIONS: usize = 100;

/// How many requests of one client are under way at once.
const MAX_IN_FLIGHT: usize = 128;

/// What is served, and for whom.
pub(crate) struct Asked {
    pub(crate) caller: Principal,
    /// The hub's default if none is named.
    pub(crate) agent: Option<AgentId>,
}

struct Door {
    dispatcher: Dispatcher,
    asked: Asked,
    wire: Wire,
    sessions: Mutex<HashMap<String, Session>>,
    /// Fires when the hub stops, which ends no task.
    stop: CancellationToken,
}

/// A conversation in a directory.
#[derive(Default)]
struct Session {
    directory: String,
    /// By which the turn is called off that is under way.
    turn: Option<CancellationToken>,
    open: Option<Open>,
    /// The mode that the client chose, if it chose one.
    mode: Option<&'static str>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct NewSession {
    cwd: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct LoadSession {
    session_id: String,
    cwd: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SetMode {
    session_id: String,
    mode_id: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Prompt {
    session_id: String,
    prompt: Value,
    /// Where ACP says which trace a request is part of.
    #[serde(rename = "_meta")]
    meta: Option<Map<String, Value>>,
}

/// Serves one client until it hangs up, which calls off the turns that are under way, or the hub stops, which does not. If this
/// future is dropped or panics, the turns are dropped with it, and each cancels its task.
pub(crate) async fn serve<R: AsyncRead + Send + Unpin>(
    dispatcher: Dispatcher,
    asked: Asked,
    reader: &mut LineReader<R>,
    outbox: mpsc::Sender<Vec<u8>>,
    stop: CancellationToken,
) {
    let gone = outbox.clone();
    let wire = Wire::new(outbox);
    let (sessions, stops) = (Mutex::default(), stop.clone());
    let door = Arc::new(Door { dispatcher, asked, wire, sessions, stop: stops });
    let mut requests = JoinSet::new();
    loop {
        let line = tokio::select! {
            line = reader.next_line() => line,
            () = stop.cancelled() => return,
            () = gone.closed() => break,
        };
        match line {
            Ok(Some(line)) if line.trim().is_empty() => {}
            Ok(Some(line)) => match wire::read(&line) {
                Ok(heard) => door.take(heard, &mut requests).await,
                Err(why) => door.wire.answer(&Value::Null, Err(why)).await,
            },
            Ok(None) => break,
            Err(why) => door.wire.answer(&Value::Null, Err(refusal(why))).await,
        }
        while requests.try_join_next().is_some() {}
    }
    door.call_all_off();
    // Each turn has its task cancelled first.
    while requests.join_next().await.is_some() {}
}

impl Door {
    async fn take(self: &Arc<Self>, heard: Heard, requests: &mut JoinSet<()>) {
        match heard {
            Heard::Answer { id, result } => self.wire.answered(id, result),
            Heard::Notice { method, params } if method == "session/cancel" => {
                let id = params["sessionId"].as_str().unwrap_or_default();
                if let Some(session) = self.sessions.lock().get(id)
                    && let Some(turn) = &session.turn
                {
                    turn.cancel();
                }
            }
            // What this version does not know of, it need not know.
            Heard::Notice { .. } => {}
            Heard::Request { id, method, params } => {
                if requests.len() >= MAX_IN_FLIGHT {
                    let why = format!("{MAX_IN_FLIGHT} requests are under way already");
                    self.wire.answer(&id, Err(Refusal::params(why))).await;
                    return;
                }
                let door = Arc::clone(self);
                // What begins a turn is known before the next line is read, which may call it off.
                let turn =
                    if method == "session/prompt" { Some(door.begin(&params)) } else { None };
                requests.spawn(async move {
                    let answer = caught(async {
                        match turn {
                            Some(Ok(turn)) => door.prompt(params, turn).await,
                            Some(Err(why)) => Err(why),
                            None => door.answer(&method, params).await,
                        }
                    });
                    let answer = answer.await.map_err(refusal).flatten();
                    door.wire.answer(&id, answer).await;
                });
            }
        }
    }

    async fn answer(&self, method: &str, params: Value) -> Result<Value, Refusal> {
        match method {
            "initialize" => Ok(hello()),
            // There is nobody to prove to: the kernel says who is at the other end.
            "authenticate" => Ok(json!({})),
            "session/new" => self.open(params).await,
            "session/load" => self.load(params).await,
            "session/set_mode" => self.set_mode(params).await,
            other => Err(Refusal::method(other)),
        }
    }

    /// Begins a conversation.
    async fn open(&self, params: Value) -> Result<Value, Refusal> {
        let NewSession { cwd } = read(params)?;
        let modes = self.modes().await?;
        let id = ContextId::fresh().to_string();
        self.keep(id.clone(), cwd)?;
        let mut begun = json!({ "sessionId": id });
        if let Some(modes) = modes {
            begun["modes"] = modes.told(None);
        }
        Ok(begun)
    }

    /// The modes of the agent, if it has programs that may do something without asking.
    async fn modes(&self) -> Result<Option<Modes>, Refusal> {
        let default = || self.dispatcher.hub().default_agent();
        let Some(id) = self.asked.agent.clone().or_else(default) else { return Ok(None) };
        let Answer::Agent(agent) = self.one(Operation::GetAgent { id }).await? else {
            return Err(Refusal::params("the hub tells of no agent"));
        };
        Ok(agent.permissions.as_deref().and_then(Modes::up_to))
    }

    /// Chooses the mode of a session, from its next prompt on.
    async fn set_mode(&self, params: Value) -> Result<Value, Refusal> {
        let SetMode { session_id, mode_id } = read(params)?;
        let Some(modes) = self.modes().await? else {
            return Err(Refusal::params("this agent has no modes"));
        };
        let mode = modes.named(&mode_id).ok_or_else(|| {
            let why = format!(
                "no mode is called `{mode_id}`; there are {}, for the operator's `permissions` of this agent are the most",
                modes.names()
            );
            Refusal::params(why)
        })?;
        let mut sessions = self.sessions.lock();
        let session = sessions.get_mut(&session_id).ok_or_else(|| no_session(&session_id))?;
        session.mode = Some(mode);
        Ok(json!({}))
    }

    /// The mode of a session that the client chose, as far as it is less than what the operator allows. One that there is not any
    /// more is told to the client as what it is now.
    async fn chosen(&self, id: &str) -> Result<Option<&'static str>, Refusal> {
        let Some(chosen) = self.sessions.lock().get(id).and_then(|session| session.mode) else {
            return Ok(None);
        };
        let Some(modes) = self.modes().await? else { return Ok(None) };
        let current = modes.current(Some(chosen));
        if current != chosen {
            if let Some(session) = self.sessions.lock().get_mut(id) {
                session.mode = None;
            }
            let update =
                json!({ "sessionUpdate": "current_mode_update", "currentModeId": current });
            let params = json!({ "sessionId": id, "update": update });
            self.wire.notify("session/update", params).await;
        }
        Ok(Some(current))
    }

    /// Goes on with a conversation, whose messages are told first.
    async fn load(&self, params: Value) -> Result<Value, Refusal> {
        let LoadSession { session_id, cwd } = read(params)?;
        let get =
            Operation::GetContext { id: ContextId::new(&*session_id), history_length: HISTORY };
        let Answer::Context(_, said) = self.one(get).await? else {
            return Err(Refusal::params("the hub tells of no conversation"));
        };
        let modes = self.modes().await?;
        self.keep(session_id.clone(), cwd)?;
        for update in said.iter().filter_map(told::again) {
            let params = json!({ "sessionId": session_id, "update": update });
            self.wire.notify("session/update", params).await;
        }
        let chosen = self.sessions.lock().get(&session_id).and_then(|session| session.mode);
        Ok(modes.map_or_else(|| json!({}), |modes| json!({ "modes": modes.told(chosen) })))
    }

    fn keep(&self, id: String, directory: String) -> Result<(), Refusal> {
        if !Path::new(&directory).is_absolute() {
            return Err(Refusal::params("`cwd` must be an absolute path"));
        }
        let mut sessions = self.sessions.lock();
        if sessions.len() >= MAX_SESSIONS && !sessions.contains_key(&id) {
            let why =
                format!("{MAX_SESSIONS} sessions are open already; start another program for more");
            return Err(Refusal::params(why));
        }
        sessions.entry(id).or_default().directory = directory;
        Ok(())
    }

    /// Notes that a turn begins, which is one at a time.
    fn begin(&self, params: &Value) -> Result<CancellationToken, Refusal> {
        let id = params["sessionId"].as_str().unwrap_or_default();
        let mut sessions = self.sessions.lock();
        let session = sessions.get_mut(id).ok_or_else(|| no_session(id))?;
        if session.turn.is_some() {
            let why = "a turn of this session is under way; wait for its end, or call it off with `session/cancel`";
            return Err(Refusal::params(why));
        }
        let turn = CancellationToken::new();
        session.turn = Some(turn.clone());
        Ok(turn)
    }

    /// One turn, which was begun.
    async fn prompt(&self, params: Value, off: CancellationToken) -> Result<Value, Refusal> {
        let id = params["sessionId"].as_str().unwrap_or_default().to_owned();
        let _over = TurnOver { door: self, session: &id };
        let mode = self.chosen(&id).await?;
        let operation = self.operation(&id, params, mode)?;
        let (dispatcher, wire, stop) = (&self.dispatcher, &self.wire, &self.stop);
        let caller = &self.asked.caller;
        let turn = Turn { dispatcher, caller, wire, session: &id, off, stop };
        let ended = Box::pin(turn.run(operation)).await?;
        self.sessions.lock().entry(id.clone()).or_default().open = ended.open;
        Ok(ended.answer)
    }

    /// What a prompt says: the answer to what the turn before ended with, or a new task.
    fn operation(
        &self,
        id: &str,
        params: Value,
        permissions: Option<&str>,
    ) -> Result<Operation, Refusal> {
        let Prompt { session_id, prompt, meta } = read(params)?;
        let parts = prompt::parts(prompt).map_err(Refusal::params)?;
        let (directory, open) = {
            let mut sessions = self.sessions.lock();
            let session = sessions.entry(session_id).or_default();
            (session.directory.clone(), session.open.take())
        };
        let operation = match open {
            Some(Open { task, question }) => said::answer(&task, parts, question.as_deref()),
            None => {
                let agent = self.asked.agent.as_ref();
                let (context, directory) = (Some(id), Some(directory.as_str()));
                let model = None;
                Beginning { agent, parts, context, directory, model, permissions }.operation()
            }
        };
        let mut operation = operation.map_err(refusal)?;
        operation.in_trace(&TraceContext::of_metadata(meta.as_ref()));
        Ok(operation)
    }

    fn call_all_off(&self) {
        for session in self.sessions.lock().values() {
            if let Some(turn) = &session.turn {
                turn.cancel();
            }
        }
    }

    async fn one(&self, operation: Operation) -> Result<Answer, Refusal> {
        match self.dispatcher.ask(&self.asked.caller, operation).await.map_err(refusal)?.0 {
            Reply::One(answer) => Ok(answer),
            Reply::Stream(_) => Err(Refusal::params("the hub answered with a stream")),
        }
    }
}

/// Lets the next turn of a session begin once this one is over, also if that ends with a panic.
struct TurnOver<'a> {
    door: &'a Door,
    session: &'a str,
}

impl Drop for TurnOver<'_> {
    fn drop(&mut self) {
        if let Some(session) = self.door.sessions.lock().get_mut(self.session) {
            session.turn = None;
        }
    }
}

fn no_session(id: &str) -> Refusal {
    let why = format!("no session is called `{id}`; begin one with `session/new`");
    Refusal { code: -32002, why, data: None }
}

/// What this agent can do.
fn hello() -> Value {
    json!({
        "protocolVersion": 1,
        "agentInfo": { "name": "a2a-hub", "title": "A2A Local Hub", "version": env!("CARGO_PKG_VERSION") },
        "agentCapabilities": {
            "loadSession": true,
            "promptCapabilities": { "image": true, "audio": false, "embeddedContext": true },
        },
        "authMethods": [],
    })
}

fn read<T: DeserializeOwned>(params: Value) -> Result<T, Refusal> {
    serde_json::from_value(params).map_err(|why| Refusal::params(format!("`params`: {why}")))
}
