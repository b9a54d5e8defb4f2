//! Requests that begin, open, list, configure and end sessions.

use super::{
    connection::{Connection, read},
    directory::SameDirectory,
    history::History,
    options::{Chosen, SessionOptions},
    sessions::{MAX_TITLE, Session},
    turn::{Open, refusal},
    wire::Refusal,
};
use a2a_hub_core::text::plain_text;
use a2a_hub_protocol::{
    error::{A2aError, ErrorKind},
    hub_metadata::MAX_DIRECTORIES,
    id::{AgentId, ContextId, TaskId},
    member,
    operation::{Answer, ContextInfo, ContextQuery, Operation, Page, TaskQuery},
    question::QuestionKind,
    task::Task,
};
use a2a_hub_rpc::question_view;
use a2a_hub_runtime::directories;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::path::Path;

/// Number of sessions in a page of the list.
const PAGE: usize = 50;

/// Maximum number of conversations that are looked at for a page: those of agents among each other
/// are left out.
const MAX_SCANNED: usize = 1_000;

/// The same for a list of one directory, and the number that is read at once.
const MAX_COMPARED: usize = 10_000;
const COMPARED_PAGE: usize = 200;

/// Maximum length of a directory in bytes, and in characters in an error.
const MAX_DIRECTORY: usize = 4_096;
const MAX_SHOWN: usize = 200;

/// Maximum number of a client's MCP servers that are named, and maximum length of a name in
/// characters.
const MAX_SERVERS: usize = 20;
const MAX_SERVER_NAME: usize = 80;

/// Parameters of `session/load` and `session/resume`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct OpenSession {
    session_id: String,
    #[serde(flatten)]
    place: SessionParams,
}

/// Parameters of `session/new`: directories and tools of a session.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SessionParams {
    cwd: String,
    #[serde(default)]
    additional_directories: Option<Vec<String>>,
    #[serde(default)]
    mcp_servers: Value,
}

/// Parameters of `session/list`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ListSessions {
    #[serde(default)]
    cwd: Option<String>,
    #[serde(default)]
    cursor: Option<String>,
}

/// Parameters of `session/close` and `session/delete`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct OneSession {
    session_id: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SetMode {
    session_id: String,
    mode_id: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SetOption {
    session_id: String,
    config_id: String,
    /// The id of a value. The hub offers no options of type `boolean`.
    value: String,
}

impl Connection {
    /// Creates a session with a new conversation.
    pub(super) async fn create(&self, params: Value) -> Result<Value, Refusal> {
        let session_params: SessionParams = read(params)?;
        let offer = self.offer(&Chosen::default()).await?;
        self.check_directories(&session_params, offer.agent.as_ref()).await?;
        let id = ContextId::fresh().to_string();
        let mut begun =
            self.register_session(&id, session_params, |session| session.is_untitled = true)?;
        begun.insert("sessionId".to_owned(), json!(id));
        add_options(&mut begun, &offer, &Chosen::default());
        Ok(begun.into())
    }

    /// Opens a conversation and replays it first.
    pub(super) async fn load(&self, params: Value) -> Result<Value, Refusal> {
        let OpenSession { session_id, place: session_params } = read(params)?;
        let answer = self.open(&session_id, session_params).await?;
        let (dispatcher, caller) = (&self.dispatcher, &self.target.caller);
        let history = History { dispatcher, caller, wire: &self.wire, session: &session_id };
        history.replay().await?;
        Ok(answer)
    }

    /// Opens a conversation without its messages.
    pub(super) async fn resume(&self, params: Value) -> Result<Value, Refusal> {
        let OpenSession { session_id, place: session_params } = read(params)?;
        self.open(&session_id, session_params).await
    }

    /// Opens a conversation, and returns the options of its session.
    async fn open(&self, id: &str, session_params: SessionParams) -> Result<Value, Refusal> {
        // Only checks that the conversation exists.
        let get = Operation::GetContext { id: ContextId::new(id), history_length: 1 };
        let Answer::Context(..) = self.one(get).await? else {
            return Err(Refusal::params("the hub tells of no conversation"));
        };
        let open = self.open_question(id).await?;
        let chosen = self.sessions.with(id, |session| session.chosen.clone()).unwrap_or_default();
        let offer = self.offer(&chosen).await?;
        self.check_directories(&session_params, offer.agent.as_ref()).await?;
        let mut opened =
            self.register_session(id, session_params, |session| session.open = open)?;
        add_options(&mut opened, &offer, &chosen);
        Ok(opened.into())
    }

    /// Question of the conversation's newest task, which the next prompt answers. A permission is
    /// no text, so it stays with the client that was asked.
    async fn open_question(&self, id: &str) -> Result<Option<Open>, Refusal> {
        let Some(newest) = self.task_at(id, 0).await? else { return Ok(None) };
        let asks = newest.status.state.is_interrupted()
            && question_view::kind(&newest) != QuestionKind::Permission;
        let question = question_view::id(&newest);
        Ok(asks.then(|| Open::new(newest.id, question)))
    }

    /// Task of a conversation, counted from the newest.
    async fn task_at(&self, id: &str, offset: usize) -> Result<Option<Task>, Refusal> {
        let query = TaskQuery {
            context: Some(ContextId::new(id)),
            ..TaskQuery::all(Page { limit: 1, offset })
        };
        let Answer::Tasks { mut tasks, .. } = self.one(Operation::ListTasks(query)).await? else {
            return Err(Refusal::params("the hub tells of no tasks"));
        };
        Ok(tasks.pop().map(|listed| listed.task))
    }

    /// Refuses directories in which the agent could not work at the first prompt.
    async fn check_directories(
        &self,
        session_params: &SessionParams,
        agent: Option<&AgentId>,
    ) -> Result<(), Refusal> {
        self.check_directory(&session_params.cwd, agent).await?;
        let more = session_params.additional_directories.as_deref().unwrap_or_default();
        if more.len() > MAX_DIRECTORIES {
            let why = format!("`additionalDirectories` may name {MAX_DIRECTORIES} at most");
            return Err(Refusal::params(why));
        }
        let is_path = |path: &str| Path::new(path).is_absolute() && path.len() <= MAX_DIRECTORY;
        if let Some(wrong) = more.iter().find(|path| !is_path(path)) {
            let named = plain_text::line(wrong, MAX_SHOWN);
            let why = format!(
                "`additionalDirectories`: `{named}` is no absolute path of at most {MAX_DIRECTORY} bytes"
            );
            return Err(Refusal::params(why));
        }
        self.check_additional(more, agent).await
    }

    async fn check_additional(
        &self,
        more: &[String],
        agent: Option<&AgentId>,
    ) -> Result<(), Refusal> {
        let Some(agent) = agent else { return Ok(()) };
        let checked = self.dispatcher.hub().additional_directories(agent, more.to_vec()).await;
        checked.map(drop).map_err(refusal)
    }

    async fn check_directory(
        &self,
        directory: &str,
        agent: Option<&AgentId>,
    ) -> Result<(), Refusal> {
        if !Path::new(directory).is_absolute() {
            return Err(Refusal::params("`cwd` must be an absolute path"));
        }
        let Some(agent) = agent else { return Ok(()) };
        let checked = self.dispatcher.hub().check_directory(agent, directory).await;
        checked
            .map_err(|why| refusal(A2aError { message: format!("`cwd`: {}", why.message), ..why }))
    }

    /// Opens a session. The answer names the client's MCP servers, which the hub does not use: they
    /// would be programs of the client's choice with the rights of the agent.
    fn register_session(
        &self,
        id: &str,
        session_params: SessionParams,
        set_up: impl FnOnce(&mut Session),
    ) -> Result<Map<String, Value>, Refusal> {
        let mcp_servers = names_of(&session_params.mcp_servers);
        let mut answer = Map::new();
        if !mcp_servers.is_empty() {
            tracing::info!(session = id, servers = ?mcp_servers, "an ACP client's MCP servers are not used");
            let named = json!({ "a2a-hub/ignoredMcpServers": mcp_servers });
            answer.insert("_meta".to_owned(), named);
        }
        self.sessions.open(id, |session| {
            session.directory = session_params.cwd;
            session.additional = session_params.additional_directories.unwrap_or_default();
            session.mcp_servers = mcp_servers;
            set_up(session);
        })?;
        Ok(answer)
    }

    /// Options of a session with these choices.
    pub(super) async fn offer(&self, chosen: &Chosen) -> Result<SessionOptions, Refusal> {
        let default = || self.dispatcher.hub().default_agent();
        let agent = chosen.agent.clone().or_else(|| self.target.agent.clone()).or_else(default);
        let Answer::Agents(all) = self.one(Operation::ListAgents { include_health: false }).await?
        else {
            return Err(Refusal::params("the hub tells of no agents"));
        };
        let agent = match agent {
            Some(id) if all.iter().all(|info| info.id != id) => {
                // An alias; any other name is refused.
                let Answer::Agent(info) = self.one(Operation::GetAgent { id }).await? else {
                    return Err(Refusal::params("the hub tells of no agent"));
                };
                Some(info.id)
            }
            known => known,
        };
        Ok(SessionOptions::new(agent, all))
    }

    /// Sets the mode of a session, from its next prompt on.
    pub(super) async fn set_mode(&self, params: Value) -> Result<Value, Refusal> {
        let SetMode { session_id, mode_id } = read(params)?;
        let chosen = self.sessions.with(&session_id, |session| session.chosen.clone())?;
        let offer = self.offer(&chosen).await?;
        let mode = offer.mode(&mode_id)?;
        let chosen = self.sessions.with(&session_id, |session| {
            session.chosen.mode = Some(mode);
            session.chosen.clone()
        })?;
        self.send_update(&session_id, options_update(&offer, &chosen)).await;
        Ok(json!({}))
    }

    /// Sets an option of a session, from its next prompt on. Another agent has other options, so
    /// the choices of the former one are dropped.
    pub(super) async fn set_option(&self, params: Value) -> Result<Value, Refusal> {
        let SetOption { session_id, config_id, value } = read(params)?;
        let (mut chosen, directory, additional) = self.sessions.with(&session_id, |session| {
            (session.chosen.clone(), session.directory.clone(), session.additional.clone())
        })?;
        let mut offer = self.offer(&chosen).await?;
        let mode_before = offer.modes.map(|modes| modes.current(chosen.mode));
        if config_id == "agent" && offer.agent.is_some() {
            let agent = offer.agent(&value)?;
            self.check_directory(&directory, Some(&agent)).await?;
            self.check_additional(&additional, Some(&agent)).await?;
            if offer.agent.as_ref() != Some(&agent) {
                chosen = Chosen { agent: Some(agent), ..Chosen::default() };
                offer = self.offer(&chosen).await?;
            }
        } else {
            offer.set(&mut chosen, &config_id, &value)?;
        }
        self.sessions.with(&session_id, |session| session.chosen = chosen.clone())?;
        let mode = offer.modes.map(|modes| modes.current(chosen.mode));
        if let Some(mode) = mode.filter(|_| mode != mode_before) {
            self.send_update(&session_id, mode_update(mode)).await;
        }
        Ok(json!({ "configOptions": offer.described(&chosen) }))
    }

    /// Choices of a session that still apply. Notifies the client of those that do not any more,
    /// because the operator changed the agent's settings.
    pub(super) async fn choices(&self, id: &str) -> Result<Chosen, Refusal> {
        let chosen = self.sessions.with(id, |session| session.chosen.clone())?;
        if chosen == Chosen::default() {
            return Ok(chosen);
        }
        let offer = self.offer(&chosen).await?;
        let remaining = offer.limited(&chosen);
        if remaining != chosen {
            self.sessions.with(id, |session| session.chosen = remaining.clone())?;
            if let Some(mode) = remaining.mode.filter(|_| remaining.mode != chosen.mode) {
                self.send_update(id, mode_update(mode)).await;
            }
            self.send_update(id, options_update(&offer, &remaining)).await;
        }
        Ok(remaining)
    }

    /// Lists the caller's conversations that have a working directory, latest first. Conversations
    /// of agents among each other are left out.
    pub(super) async fn list(&self, params: Value) -> Result<Value, Refusal> {
        let ListSessions { cwd, cursor } = read(params)?;
        if cwd.as_deref().is_some_and(|cwd| !Path::new(cwd).is_absolute()) {
            return Err(Refusal::params("`cwd` must be an absolute path"));
        }
        let mut wanted = match &cwd {
            Some(cwd) => Some(SameDirectory::new(cwd).await),
            None => None,
        };
        let mut after = cursor.as_deref().map(parse_cursor).transpose()?;
        let (mut sessions, mut scanned) = (Vec::new(), 0);
        let (limit, max_scanned) = match wanted {
            Some(_) => (COMPARED_PAGE, MAX_COMPARED),
            None => (PAGE, MAX_SCANNED),
        };
        let next = loop {
            // The store compares letters, so it filters no directory.
            let page = Page { limit, offset: 0 };
            let query = ContextQuery { after: after.clone(), ..ContextQuery::all(page) };
            let Answer::Contexts(found) = self.one(Operation::ListContexts(query)).await? else {
                return Err(Refusal::params("the hub tells of no conversations"));
            };
            let is_last = found.len() < limit;
            let mut rest = found.into_iter();
            for info in rest.by_ref() {
                after = Some(info.last_task_id.clone());
                scanned += 1;
                let is_wanted = match (&mut wanted, &info.working_directory) {
                    (Some(wanted), Some(directory)) => wanted.is(directory).await,
                    (Some(_), None) => false,
                    (None, _) => true,
                };
                if is_wanted {
                    sessions.extend(self.listed(info).await?);
                }
                if sessions.len() == PAGE {
                    break;
                }
            }
            if is_last && rest.len() == 0 {
                break None;
            }
            if sessions.len() == PAGE || scanned >= max_scanned {
                break after;
            }
        };
        let mut answer = json!({ "sessions": sessions });
        if let Some(next) = next {
            member::set(&mut answer, "nextCursor", json!(next));
        }
        Ok(answer)
    }

    /// ACP's description of a conversation; `None` if no client could open it as a session.
    async fn listed(&self, info: ContextInfo) -> Result<Option<Value>, Refusal> {
        let ContextInfo { id, task_count, working_directory, parent_task_id, updated_at, .. } =
            info;
        let directory = working_directory.filter(|cwd| Path::new(cwd).is_absolute());
        let (Some(cwd), None) = (directory, parent_task_id) else { return Ok(None) };
        let oldest = usize::try_from(task_count).unwrap_or(1).saturating_sub(1);
        let first = self.task_at(id.as_str(), oldest).await?;
        let newest = if oldest == 0 { None } else { self.task_at(id.as_str(), 0).await? };
        let additional = newest.as_ref().or(first.as_ref()).map(directories::additional);
        let title = first.and_then(|task| title_of(&task));
        let mut session = json!({ "sessionId": id, "cwd": cwd, "updatedAt": updated_at });
        if let Some(additional) = additional.filter(|additional| !additional.is_empty()) {
            member::set(&mut session, "additionalDirectories", json!(additional));
        }
        if let Some(title) = title {
            member::set(&mut session, "title", title);
        }
        Ok(Some(session))
    }

    /// Cancels the turn of a session, waits for its end, and forgets the session. The conversation
    /// stays.
    pub(super) async fn close(&self, params: Value) -> Result<Value, Refusal> {
        let OneSession { session_id } = read(params)?;
        self.sessions.with(&session_id, |_| ())?;
        self.end_turns(&session_id).await;
        self.sessions.close(&session_id);
        Ok(json!({}))
    }

    /// Deletes a conversation with its tasks. A turn of it is cancelled, and so are its questions;
    /// a task at work for another client is not. An unknown conversation counts as deleted.
    pub(super) async fn delete(&self, params: Value) -> Result<Value, Refusal> {
        let OneSession { session_id } = read(params)?;
        self.end_turns(&session_id).await;
        self.cancel_questions(&session_id).await?;
        let delete = Operation::DeleteContext { id: ContextId::new(&*session_id) };
        match self.dispatcher.ask(&self.target.caller, delete).await {
            Ok(_) => {}
            Err(why) if why.kind == ErrorKind::ContextNotFound => {}
            Err(why) => return Err(refusal(why)),
        }
        self.sessions.close(&session_id);
        Ok(json!({}))
    }

    /// Cancels the turn of a session and waits for its end, also those that begin meanwhile.
    async fn end_turns(&self, id: &str) {
        while let Some(over) = self.sessions.cancel(id) {
            over.cancelled().await;
        }
    }

    /// Cancels the tasks of a conversation that wait for an answer.
    async fn cancel_questions(&self, id: &str) -> Result<(), Refusal> {
        let list = Operation::ListTasks(TaskQuery {
            context: Some(ContextId::new(id)),
            history_length: Some(0),
            ..TaskQuery::all(Page { limit: PAGE, offset: 0 })
        });
        let Answer::Tasks { tasks, .. } = self.one(list).await? else {
            return Err(Refusal::params("the hub tells of no tasks"));
        };
        for task in tasks.into_iter().map(|listed| listed.task) {
            if task.status.state.is_interrupted() {
                // It may have ended meanwhile.
                let cancel = Operation::CancelTask { id: task.id };
                let _ended = self.dispatcher.ask(&self.target.caller, cancel).await;
            }
        }
        Ok(())
    }
}

/// Update about a mode that is in force now.
fn mode_update(mode: &str) -> Value {
    json!({ "sessionUpdate": "current_mode_update", "currentModeId": mode })
}

/// Update about all options.
fn options_update(offer: &SessionOptions, chosen: &Chosen) -> Value {
    json!({ "sessionUpdate": "config_option_update", "configOptions": offer.described(chosen) })
}

/// Adds the options to an answer: also as modes, for clients that know no options.
fn add_options(answer: &mut Map<String, Value>, offer: &SessionOptions, chosen: &Chosen) {
    if let Some(modes) = offer.modes {
        answer.insert("modes".to_owned(), modes.to_json(chosen.mode));
    }
    answer.insert("configOptions".to_owned(), offer.described(chosen));
}

/// Title of a conversation: the client's first message. `None` if it has no text.
fn title_of(first: &Task) -> Option<String> {
    let text = first.history.first().map(|message| message.joined_text()).unwrap_or_default();
    Some(plain_text::line(&text, MAX_TITLE)).filter(|title| !title.is_empty())
}

/// Position of a cursor: the task after which the page begins.
fn parse_cursor(cursor: &str) -> Result<TaskId, Refusal> {
    let is_id =
        cursor.len() == 36 && cursor.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
    if is_id {
        return Ok(TaskId::new(cursor));
    }
    let why = "`cursor` is none of this agent's; list without one, and then with the `nextCursor` of each answer";
    Err(Refusal::params(why))
}

/// Names of a client's MCP servers, for people.
fn names_of(servers: &Value) -> Vec<String> {
    let name = |server: &Value| {
        let name = server["name"].as_str().or_else(|| server["url"].as_str());
        plain_text::line(name.unwrap_or("a server without a name"), MAX_SERVER_NAME)
    };
    servers.as_array().into_iter().flatten().take(MAX_SERVERS).map(name).collect()
}
