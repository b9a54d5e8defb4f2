//! Connection of an ACP client: its requests and turns.

use super::{
    capabilities::{ClientFeatures, PromptKinds, hello},
    commands,
    options::Chosen,
    prompt,
    sessions::{BegunTurn, MAX_TITLE, Sessions},
    turn::{Open, ShownTask, Turn, refusal},
    updates,
    wire::{self, AcpMessage, CANCEL_REQUEST, Refusal, Wire},
};
use a2a_hub_core::{
    access_control::{self, Principal},
    text::plain_text,
};
use a2a_hub_engine::Reply;
use a2a_hub_protocol::{
    id::AgentId,
    operation::{Answer, Operation, Page, TaskQuery},
    trace::TraceContext,
};
use a2a_hub_rpc::{
    catch_panic::caught,
    dispatcher::Dispatcher,
    line_reader::LineReader,
    message_builder::{self, Beginning},
};
use a2a_hub_runtime::directories;
use parking_lot::Mutex;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, json};
use std::{collections::HashMap, sync::Arc};
use tokio::{io::AsyncRead, sync::mpsc, task::JoinSet};
use tokio_util::sync::CancellationToken;

/// Maximum number of concurrent requests of a client.
const MAX_IN_FLIGHT: usize = 128;

/// Number of an agent's latest tasks that are searched for its commands.
const COMMAND_TASKS: usize = 5;

/// Caller and agent of a connection.
pub(crate) struct ConnectionTarget {
    pub(crate) caller: Principal,
    /// Agent that the client asked for; the hub's default agent, if `None`.
    pub(crate) agent: Option<AgentId>,
}

/// A connected client.
pub(super) struct Connection {
    pub(super) dispatcher: Dispatcher,
    pub(super) target: ConnectionTarget,
    pub(super) wire: Wire,
    pub(super) sessions: Sessions,
    client: Mutex<ClientFeatures>,
    /// Requests at work that the client may cancel, by their ids as JSON.
    requests: Mutex<HashMap<String, CancellationToken>>,
    /// Cancelled when the hub stops; tasks continue after a restart.
    stop: CancellationToken,
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
    target: ConnectionTarget,
    reader: &mut LineReader<R>,
    outbox: mpsc::Sender<Vec<u8>>,
    stop: CancellationToken,
) {
    let client_outbox = outbox.clone();
    let wire = Wire::new(outbox);
    let (sessions, client, requests) = Default::default();
    let stops = stop.clone();
    let connection =
        Connection { dispatcher, target, wire, sessions, client, requests, stop: stops };
    let connection = Arc::new(connection);
    let mut requests = JoinSet::new();
    loop {
        let line = tokio::select! {
            line = reader.next_lossy_line() => line,
            () = stop.cancelled() => return,
            () = client_outbox.closed() => break,
        };
        match line {
            Ok(Some(line)) if line.trim().is_empty() => {}
            Ok(Some(line)) => match wire::read(&line) {
                Ok(message) => connection.handle(message, &mut requests).await,
                Err((id, why)) => connection.wire.answer(&id, Err(why)).await,
            },
            Ok(None) => break,
            Err(why) => connection.wire.answer(&Value::Null, Err(refusal(why))).await,
        }
        while requests.try_join_next().is_some() {}
    }
    connection.sessions.cancel_all();
    // Waits until each turn has cancelled its task.
    while requests.join_next().await.is_some() {}
}

impl Connection {
    async fn handle(self: &Arc<Self>, message: AcpMessage, requests: &mut JoinSet<()>) {
        match message {
            AcpMessage::Answer { id, result } => self.wire.answered(id, result),
            AcpMessage::Notice { method, params } if method == "session/cancel" => {
                self.cancel(&params);
            }
            AcpMessage::Notice { method, params } if method == CANCEL_REQUEST => {
                // An unknown id is that of a request which was answered already.
                if let Some(off) = self.requests.lock().get(&params["requestId"].to_string()) {
                    off.cancel();
                }
            }
            // Unknown notifications are ignored.
            AcpMessage::Notice { .. } => {}
            AcpMessage::Request { id, method, params } => {
                if requests.len() >= MAX_IN_FLIGHT {
                    let why = format!("{MAX_IN_FLIGHT} requests are under way already");
                    self.wire.answer(&id, Err(Refusal::params(why))).await;
                    return;
                }
                let connection = Arc::clone(self);
                // The turn is registered before the next line is read, because that line may cancel
                // it.
                let turn = (method == "session/prompt")
                    .then(|| self.sessions.begin(params["sessionId"].as_str().unwrap_or_default()));
                let off = match &turn {
                    Some(Ok(turn)) => turn.off.clone(),
                    Some(Err(_)) | None => CancellationToken::new(),
                };
                let named = params["sessionId"].as_str().map(str::to_owned);
                let request = RunningRequest::register(self, &id, off);
                requests.spawn(async move {
                    let answer = caught(async {
                        match turn {
                            Some(Ok(turn)) => connection.prompt(params, turn).await,
                            Some(Err(why)) => Err(why),
                            None if may_stop(&method) => tokio::select! {
                                answer = connection.answer(&method, params) => answer,
                                () = request.off.cancelled() => Err(Refusal::cancelled()),
                            },
                            None => connection.answer(&method, params).await,
                        }
                    });
                    let answer = answer.await.map_err(refusal).flatten();
                    drop(request);
                    let session = session_with_commands(&method, named, &answer);
                    connection.wire.answer(&id, answer).await;
                    if let Some(session) = session {
                        // The client knows the session only now.
                        connection.tell_commands(&session).await;
                    }
                });
            }
        }
    }

    /// Cancels the turn of a session, if it has one.
    fn cancel(&self, params: &Value) {
        self.sessions.cancel(params["sessionId"].as_str().unwrap_or_default());
    }

    async fn answer(&self, method: &str, params: Value) -> Result<Value, Refusal> {
        match method {
            // A notification in ACP; some clients want an answer.
            "session/cancel" => {
                self.cancel(&params);
                Ok(json!({}))
            }
            "initialize" => {
                *self.client.lock() = ClientFeatures::from_params(&params);
                // An unknown agent is refused by the methods that begin a session.
                let offer = self.offer(&Chosen::default()).await;
                let card = offer.ok().and_then(|offer| offer.card);
                let takes =
                    card.map_or_else(PromptKinds::default, |card| PromptKinds::from_card(&card));
                Ok(hello(&self.target.caller, takes))
            }
            // No authentication is needed, because the kernel identifies the peer of the socket.
            "authenticate" => Ok(json!({})),
            "session/new" => self.create(params).await,
            "session/load" => self.load(params).await,
            "session/resume" => self.resume(params).await,
            "session/list" => self.list(params).await,
            "session/close" => self.close(params).await,
            "session/delete" => self.delete(params).await,
            "session/set_mode" => self.set_mode(params).await,
            "session/set_config_option" => self.set_option(params).await,
            other => Err(Refusal::method(other)),
        }
    }

    /// Tells the user once that the client's MCP servers are not used.
    async fn tell_of_mcp_servers(&self, id: &str) {
        let named = self.sessions.with(id, |it| std::mem::take(&mut it.mcp_servers));
        let named = named.unwrap_or_default().join(", ");
        if named.is_empty() {
            return;
        }
        let update = if self.client.lock().shows_notices {
            json!({
                "sessionUpdate": "notice",
                "severity": "warning",
                "title": "The editor's MCP servers are not used",
                "description": format!("{named}. The agent runs in the hub, with the tools of its own configuration."),
            })
        } else {
            updates::thought(&format!(
                "[a2a-hub] The editor's MCP servers are not used: {named}. The agent runs in the hub, with the tools of its own \
                 configuration."
            ))
        };
        self.send_update(id, update).await;
    }

    /// Tells the client the title of a new session, which is its first prompt.
    async fn tell_title(&self, id: &str, parts: &[Value]) {
        let is_untitled = self.sessions.with(id, |it| std::mem::take(&mut it.is_untitled));
        let texts = parts.iter().filter_map(|part| part["text"].as_str());
        let title = plain_text::line(&texts.collect::<Vec<_>>().join(" "), MAX_TITLE);
        if is_untitled.is_ok_and(|it| it) && !title.is_empty() {
            let update = json!({ "sessionUpdate": "session_info_update", "title": title });
            self.send_update(id, update).await;
        }
    }

    /// Runs a registered turn, after the end of a cancelled one before.
    async fn prompt(&self, params: Value, turn: BegunTurn) -> Result<Value, Refusal> {
        let id = params["sessionId"].as_str().unwrap_or_default().to_owned();
        let BegunTurn { off, over, after } = turn;
        let _over = TurnOver { connection: self, session: &id, over };
        if let Some(after) = after {
            after.cancelled().await;
        }
        if off.is_cancelled() {
            return Ok(json!({ "stopReason": "cancelled" }));
        }
        self.tell_of_mcp_servers(&id).await;
        let chosen = self.choices(&id).await?;
        let (operation, shown) = self.operation(&id, params, &chosen).await?;
        let (dispatcher, wire, stop) = (&self.dispatcher, &self.wire, &self.stop);
        let (caller, client, reported) =
            (&self.target.caller, *self.client.lock(), Mutex::default());
        let (session, commands) = (&*id, &reported);
        let had_commands = self.has_commands(&id);
        let turn =
            Turn { dispatcher, caller, wire, session, client, had_commands, commands, off, stop };
        let ended = Box::pin(turn.run(operation, shown)).await;
        let (answer, open) = match ended {
            Ok(ended) => (Ok(ended.answer), ended.open),
            Err(why) => (Err(why), None),
        };
        // A session that was closed meanwhile stays closed.
        let _closed = self.sessions.with(&id, |session| {
            session.open = open;
            if let Some(commands) = reported.into_inner() {
                session.commands = commands;
            }
        });
        answer
    }

    /// Converts a prompt to an answer to the previous turn's question, with what that turn showed
    /// of the task, or to a new task.
    async fn operation(
        &self,
        id: &str,
        params: Value,
        chosen: &Chosen,
    ) -> Result<(Operation, ShownTask), Refusal> {
        let Prompt { session_id, prompt, meta } = read(params)?;
        let parts = prompt::parts(prompt).map_err(Refusal::params)?;
        self.tell_title(&session_id, &parts).await;
        let (directory, additional, commands, open) =
            self.sessions.with(&session_id, |session| {
                let (directory, additional) =
                    (session.directory.clone(), session.additional.clone());
                (directory, additional, session.commands.clone(), session.open.take())
            })?;
        let (operation, shown) = match open {
            Some(Open { task, question, shown }) => {
                (message_builder::answer(&task, parts, question.as_deref()), *shown)
            }
            None => {
                let command = commands::called(&commands, &parts);
                let agent = chosen.agent.as_ref().or(self.target.agent.as_ref());
                let (context, directory) = (Some(id), Some(directory.as_str()));
                let (model, effort) = (chosen.model.as_deref(), chosen.effort.as_deref());
                let (skill, permissions) = (None, chosen.mode);
                let beginning = Beginning {
                    agent,
                    skill,
                    parts,
                    context,
                    directory,
                    model,
                    effort,
                    permissions,
                };
                let operation = beginning.operation().map(|mut operation| {
                    if let Operation::StreamMessage(send) = &mut operation {
                        directories::set(&mut send.message, &additional);
                        if let Some(command) = command {
                            let facts = send.message.metadata.get_or_insert_default();
                            facts.insert(commands::COMMAND.to_owned(), command);
                        }
                    }
                    operation
                });
                (operation, ShownTask::default())
            }
        };
        let mut operation = operation.map_err(refusal)?;
        operation.in_trace(&TraceContext::of_metadata(meta.as_object()));
        Ok((operation, shown))
    }

    /// Tells the client the commands of a session's agent, as its latest task in the directory
    /// reported them.
    async fn tell_commands(&self, id: &str) {
        let Ok(found) = self.latest_commands(id).await else { return };
        let update = found.unwrap_or_else(commands::none);
        let names = commands::names(&update);
        // Another agent may have none.
        if names.is_empty() && !self.has_commands(id) {
            return;
        }
        if self.sessions.with(id, |session| session.commands = names).is_ok() {
            self.send_update(id, update).await;
        }
    }

    /// True if the client knows commands of the session.
    fn has_commands(&self, id: &str) -> bool {
        self.sessions.with(id, |session| !session.commands.is_empty()).unwrap_or_default()
    }

    async fn latest_commands(&self, id: &str) -> Result<Option<Value>, Refusal> {
        let (chosen, directory) = self
            .sessions
            .with(id, |session| (session.chosen.clone(), session.directory.clone()))?;
        let Some(agent) = self.offer(&chosen).await?.agent else { return Ok(None) };
        let list = Operation::ListTasks(TaskQuery {
            agent: Some(agent),
            directory: Some(directory),
            history_length: Some(0),
            ..TaskQuery::all(Page { limit: COMMAND_TASKS, offset: 0 })
        });
        // A refusal would be logged for each session.
        if self.target.caller.may(access_control::needed(&list)).is_err() {
            return Ok(None);
        }
        let Answer::Tasks { tasks, .. } = self.one(list).await? else { return Ok(None) };
        let mut facts = tasks.iter().filter_map(|listed| listed.task.metadata.as_ref());
        Ok(facts.find_map(commands::update))
    }

    /// Sends an update of a session.
    pub(super) async fn send_update(&self, id: &str, update: Value) {
        self.wire.notify("session/update", json!({ "sessionId": id, "update": update })).await;
    }

    /// Carries out an operation that does not stream.
    pub(super) async fn one(&self, operation: Operation) -> Result<Answer, Refusal> {
        match self.dispatcher.ask(&self.target.caller, operation).await.map_err(refusal)?.0 {
            Reply::One(answer) => Ok(answer),
            Reply::Stream(_) => Err(Refusal::params("the hub answered with a stream")),
        }
    }
}

/// True for methods that change nothing, which may stop in the middle when the client cancels the
/// request. The others are short and answer as usual.
fn may_stop(method: &str) -> bool {
    matches!(method, "session/load" | "session/resume" | "session/list")
}

/// Session whose commands the client must be told behind this answer: a new or opened one, or one
/// with another agent. `named` is the session that the request names.
fn session_with_commands(
    method: &str,
    named: Option<String>,
    answer: &Result<Value, Refusal>,
) -> Option<String> {
    let answer = answer.as_ref().ok()?;
    match method {
        "session/new" => answer["sessionId"].as_str().map(str::to_owned),
        "session/load" | "session/resume" | "session/set_config_option" => named,
        _ => None,
    }
}

/// Registered request; unregistered on drop.
struct RunningRequest {
    connection: Arc<Connection>,
    id: String,
    off: CancellationToken,
}

impl RunningRequest {
    fn register(connection: &Arc<Connection>, id: &Value, off: CancellationToken) -> Self {
        let id = id.to_string();
        connection.requests.lock().insert(id.clone(), off.clone());
        Self { connection: Arc::clone(connection), id, off }
    }
}

impl Drop for RunningRequest {
    fn drop(&mut self) {
        self.connection.requests.lock().remove(&self.id);
    }
}

/// Ends a session's turn on drop, also after a panic.
struct TurnOver<'a> {
    connection: &'a Connection,
    session: &'a str,
    over: CancellationToken,
}

impl Drop for TurnOver<'_> {
    fn drop(&mut self) {
        self.connection.sessions.end(self.session, &self.over);
    }
}

/// Reads a request's parameters.
pub(super) fn read<T: DeserializeOwned>(params: Value) -> Result<T, Refusal> {
    serde_json::from_value(params).map_err(|why| Refusal::params(format!("`params`: {why}")))
}
