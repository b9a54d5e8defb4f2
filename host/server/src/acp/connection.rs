//! Connection of an ACP client: its sessions and requests.

use super::{
    history::History,
    modes::Modes,
    prompt,
    turn::{Open, Turn, refusal},
    updates,
    wire::{self, Heard, Refusal, Wire},
};
use crate::rpc::{
    catch_panic::caught,
    dispatcher::Dispatcher,
    line_reader::LineReader,
    message_builder::{self, Beginning},
};
use a2a_hub_core::{access_control::Principal, text::plain_text};
use a2a_hub_engine::Reply;
use a2a_hub_protocol::{
    error::A2aError,
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

/// Maximum number of open sessions of a client.
const MAX_SESSIONS: usize = 100;

/// Maximum number of concurrent requests of a client.
const MAX_IN_FLIGHT: usize = 128;

/// Maximum number of a client's MCP servers that are named, and maximum length of a name in
/// characters.
const MAX_SERVERS: usize = 20;
const MAX_SERVER_NAME: usize = 80;

/// Caller and agent of a connection.
pub(crate) struct ConnectionTarget {
    pub(crate) caller: Principal,
    /// Agent that the client asked for; the hub's default agent, if `None`.
    pub(crate) agent: Option<AgentId>,
}

struct Door {
    dispatcher: Dispatcher,
    asked: ConnectionTarget,
    wire: Wire,
    sessions: Mutex<HashMap<String, Session>>,
    /// Cancelled when the hub stops; tasks continue after a restart.
    stop: CancellationToken,
}

/// A conversation with a working directory.
#[derive(Default)]
struct Session {
    directory: String,
    /// Latest turn until its end; `None` between turns.
    turn: Option<BegunTurn>,
    open: Option<Open>,
    /// Names of the client's unused MCP servers, until a notification lists them.
    mcp_servers: Vec<String>,
    /// Mode that the client chose.
    mode: Option<&'static str>,
}

/// A turn that was begun.
#[derive(Clone, Default)]
struct BegunTurn {
    /// Cancelled when the client cancels the turn.
    off: CancellationToken,
    /// Cancelled at the end of the turn.
    over: CancellationToken,
    /// End of the cancelled turn before, for which this one waits.
    after: Option<CancellationToken>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct NewSession {
    cwd: String,
    #[serde(default)]
    mcp_servers: Value,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct LoadSession {
    session_id: String,
    cwd: String,
    #[serde(default)]
    mcp_servers: Value,
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
    /// ACP's place for a request's trace context, which is ignored if it is no object.
    #[serde(rename = "_meta", default)]
    meta: Value,
}

/// Serves one client until it disconnects or the hub stops. A disconnect cancels the current turns;
/// a stop of the hub does not. If this future is dropped or panics, its turns are dropped, and each
/// cancels its task.
pub(crate) async fn serve<R: AsyncRead + Send + Unpin>(
    dispatcher: Dispatcher,
    asked: ConnectionTarget,
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
            line = reader.next_lossy_line() => line,
            () = stop.cancelled() => return,
            () = gone.closed() => break,
        };
        match line {
            Ok(Some(line)) if line.trim().is_empty() => {}
            Ok(Some(line)) => match wire::read(&line) {
                Ok(heard) => door.take(heard, &mut requests).await,
                Err((id, why)) => door.wire.answer(&id, Err(why)).await,
            },
            Ok(None) => break,
            Err(why) => door.wire.answer(&Value::Null, Err(refusal(why))).await,
        }
        while requests.try_join_next().is_some() {}
    }
    door.call_all_off();
    // Waits until each turn has cancelled its task.
    while requests.join_next().await.is_some() {}
}

impl Door {
    async fn take(self: &Arc<Self>, heard: Heard, requests: &mut JoinSet<()>) {
        match heard {
            Heard::Answer { id, result } => self.wire.answered(id, result),
            Heard::Notice { method, params } if method == "session/cancel" => self.cancel(&params),
            // Unknown notifications are ignored.
            Heard::Notice { .. } => {}
            Heard::Request { id, method, params } => {
                if requests.len() >= MAX_IN_FLIGHT {
                    let why = format!("{MAX_IN_FLIGHT} requests are under way already");
                    self.wire.answer(&id, Err(Refusal::params(why))).await;
                    return;
                }
                let door = Arc::clone(self);
                // The turn is registered before the next line is read, because that line may cancel
                // it.
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

    /// Cancels the turn of a session, if it has one.
    fn cancel(&self, params: &Value) {
        let id = params["sessionId"].as_str().unwrap_or_default();
        if let Some(turn) = self.sessions.lock().get(id).and_then(|session| session.turn.as_ref()) {
            turn.off.cancel();
        }
    }

    async fn answer(&self, method: &str, params: Value) -> Result<Value, Refusal> {
        match method {
            // A notification in ACP; some clients want an answer.
            "session/cancel" => {
                self.cancel(&params);
                Ok(json!({}))
            }
            "initialize" => Ok(hello()),
            // No authentication is needed, because the kernel identifies the peer of the socket.
            "authenticate" => Ok(json!({})),
            "session/new" => self.open(params).await,
            "session/load" => self.load(params).await,
            "session/set_mode" => self.set_mode(params).await,
            other => Err(Refusal::method(other)),
        }
    }

    /// Creates a session with a new conversation.
    async fn open(&self, params: Value) -> Result<Value, Refusal> {
        let NewSession { cwd, mcp_servers } = read(params)?;
        let modes = self.modes().await?;
        self.check_directory(&cwd).await?;
        let id = ContextId::fresh().to_string();
        let mut begun = Map::from_iter([("sessionId".to_owned(), json!(id))]);
        self.keep(id, cwd, &mcp_servers, &mut begun)?;
        begun.extend(modes.map(|modes| ("modes".to_owned(), modes.told(None))));
        Ok(begun.into())
    }

    /// Refuses a directory in which the agent could not work at the first prompt.
    async fn check_directory(&self, directory: &str) -> Result<(), Refusal> {
        if !Path::new(directory).is_absolute() {
            return Err(Refusal::params("`cwd` must be an absolute path"));
        }
        let default = || self.dispatcher.hub().default_agent();
        let Some(agent) = self.asked.agent.clone().or_else(default) else { return Ok(()) };
        let checked = self.dispatcher.hub().check_directory(&agent, directory).await;
        checked.map_err(|why| {
            let why = A2aError { message: format!("`cwd`: {}", why.message), ..why };
            refusal(why)
        })
    }

    /// Modes of the agent; `None` if it may run no programs.
    async fn modes(&self) -> Result<Option<Modes>, Refusal> {
        let default = || self.dispatcher.hub().default_agent();
        let Some(id) = self.asked.agent.clone().or_else(default) else { return Ok(None) };
        let Answer::Agent(agent) = self.one(Operation::GetAgent { id }).await? else {
            return Err(Refusal::params("the hub tells of no agent"));
        };
        Ok(agent.permissions.as_deref().and_then(Modes::up_to))
    }

    /// Sets the mode of a session, from its next prompt on.
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

    /// Mode that the client chose for a session, limited to the operator's permissions. If the
    /// chosen mode is no longer allowed, notifies the client of the current one.
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

    /// Resumes a conversation and replays it first.
    async fn load(&self, params: Value) -> Result<Value, Refusal> {
        let LoadSession { session_id, cwd, mcp_servers } = read(params)?;
        // Only checks that the conversation exists.
        let get = Operation::GetContext { id: ContextId::new(&*session_id), history_length: 1 };
        let Answer::Context(..) = self.one(get).await? else {
            return Err(Refusal::params("the hub tells of no conversation"));
        };
        let modes = self.modes().await?;
        self.check_directory(&cwd).await?;
        let mut loaded = Map::new();
        self.keep(session_id.clone(), cwd, &mcp_servers, &mut loaded)?;
        let (dispatcher, caller) = (&self.dispatcher, &self.asked.caller);
        let history = History { dispatcher, caller, wire: &self.wire, session: &session_id };
        history.replay().await?;
        let chosen = self.sessions.lock().get(&session_id).and_then(|session| session.mode);
        loaded.extend(modes.map(|modes| ("modes".to_owned(), modes.told(chosen))));
        Ok(loaded.into())
    }

    /// Opens a session. `answer` names the client's MCP servers, which the hub does not use: they
    /// would be programs of the client's choice with the rights of the agent.
    fn keep(
        &self,
        id: String,
        directory: String,
        mcp_servers: &Value,
        answer: &mut Map<String, Value>,
    ) -> Result<(), Refusal> {
        let mcp_servers = names_of(mcp_servers);
        let mut sessions = self.sessions.lock();
        if sessions.len() >= MAX_SESSIONS && !sessions.contains_key(&id) {
            let why =
                format!("{MAX_SESSIONS} sessions are open already; start another program for more");
            return Err(Refusal::params(why));
        }
        if !mcp_servers.is_empty() {
            tracing::info!(session = id, servers = ?mcp_servers, "an ACP client's MCP servers are not used");
            let named = json!({ "a2a-hub/ignoredMcpServers": mcp_servers });
            answer.insert("_meta".to_owned(), named);
        }
        let session = sessions.entry(id).or_default();
        session.directory = directory;
        session.mcp_servers = mcp_servers;
        Ok(())
    }

    /// Tells the user once that the client's MCP servers are not used.
    async fn tell_of_mcp_servers(&self, id: &str) {
        let named = self.sessions.lock().get_mut(id).map(|it| std::mem::take(&mut it.mcp_servers));
        let named = named.filter(|named| !named.is_empty()).map(|named| named.join(", "));
        let Some(named) = named else { return };
        let line = format!(
            "[a2a-hub] The editor's MCP servers are not used: {named}. The agent runs in the hub, with the tools of its own \
             configuration."
        );
        let params = json!({ "sessionId": id, "update": updates::thought(&line) });
        self.wire.notify("session/update", params).await;
    }

    /// Registers a turn; a session has at most one at a time, besides those that the client
    /// cancelled.
    fn begin(&self, params: &Value) -> Result<BegunTurn, Refusal> {
        let id = params["sessionId"].as_str().unwrap_or_default();
        let mut sessions = self.sessions.lock();
        let session = sessions.get_mut(id).ok_or_else(|| no_session(id))?;
        let before = session.turn.as_ref();
        if before.is_some_and(|before| !before.off.is_cancelled()) {
            let why = "a turn of this session is under way; wait for its end, or call it off with `session/cancel`";
            return Err(Refusal::params(why));
        }
        let after = before.map(|before| before.over.clone());
        let turn = BegunTurn { after, ..BegunTurn::default() };
        session.turn = Some(turn.clone());
        Ok(turn)
    }

    /// Runs a registered turn, after the end of a cancelled one before.
    async fn prompt(&self, params: Value, turn: BegunTurn) -> Result<Value, Refusal> {
        let id = params["sessionId"].as_str().unwrap_or_default().to_owned();
        let BegunTurn { off, over, after } = turn;
        let _over = TurnOver { door: self, session: &id, over };
        if let Some(after) = after {
            after.cancelled().await;
            if off.is_cancelled() {
                return Ok(json!({ "stopReason": "cancelled" }));
            }
        }
        self.tell_of_mcp_servers(&id).await;
        let mode = self.chosen(&id).await?;
        let operation = self.operation(&id, params, mode)?;
        let (dispatcher, wire, stop) = (&self.dispatcher, &self.wire, &self.stop);
        let caller = &self.asked.caller;
        let turn = Turn { dispatcher, caller, wire, session: &id, off, stop };
        let ended = Box::pin(turn.run(operation)).await?;
        self.sessions.lock().entry(id.clone()).or_default().open = ended.open;
        Ok(ended.answer)
    }

    /// Converts a prompt to an answer to the previous turn's question, or to a new task.
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
            Some(Open { task, question }) => {
                message_builder::answer(&task, parts, question.as_deref())
            }
            None => {
                let agent = self.asked.agent.as_ref();
                let (context, directory) = (Some(id), Some(directory.as_str()));
                let model = None;
                Beginning { agent, parts, context, directory, model, permissions }.operation()
            }
        };
        let mut operation = operation.map_err(refusal)?;
        operation.in_trace(&TraceContext::of_metadata(meta.as_object()));
        Ok(operation)
    }

    fn call_all_off(&self) {
        for session in self.sessions.lock().values() {
            if let Some(turn) = &session.turn {
                turn.off.cancel();
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

/// Ends a session's turn on drop, also after a panic, and unregisters it if no other follows.
struct TurnOver<'a> {
    door: &'a Door,
    session: &'a str,
    over: CancellationToken,
}

impl Drop for TurnOver<'_> {
    fn drop(&mut self) {
        self.over.cancel();
        if let Some(session) = self.door.sessions.lock().get_mut(self.session)
            && session.turn.as_ref().is_some_and(|latest| latest.over.is_cancelled())
        {
            session.turn = None;
        }
    }
}

/// Names of a client's MCP servers, for people.
fn names_of(servers: &Value) -> Vec<String> {
    let name = |server: &Value| {
        let name = server["name"].as_str().or_else(|| server["url"].as_str());
        plain_text::line(name.unwrap_or("a server without a name"), MAX_SERVER_NAME)
    };
    servers.as_array().into_iter().flatten().take(MAX_SERVERS).map(name).collect()
}

fn no_session(id: &str) -> Refusal {
    let why = format!("no session is called `{id}`; begin one with `session/new`");
    Refusal { code: -32002, why, data: None }
}

/// Result of `initialize`: the capabilities of this agent.
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
