//! One MCP server: started on first use and restarted after it ends, at a bounded rate.

use super::{
    connection::{ServerConnection, Use, innermost},
    origin::ServerOrigin,
    remote::BROKE_OFF,
};
use a2a_hub_core::text::{duration::Span, plain_text};
use a2a_hub_runtime::{
    Failure,
    port::tools::{ToolCall, ToolInfo},
};
use rmcp::{
    ServiceError,
    model::{
        CallToolRequestParams, CallToolResponse, ClientRequest, ErrorCode, ListToolsRequest,
        PaginatedRequestParams, ServerResult, Tool,
    },
};
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
    time::Duration,
};
use tokio::{
    sync::{Mutex, Semaphore},
    time::{Instant, timeout},
};

/// Time that a server has to negotiate the protocol: some are fetched and compiled when they start.
const STARTED_WITHIN: Duration = Duration::from_secs(30);

/// Time that a server has to list all its tools.
const LISTED_WITHIN: Duration = Duration::from_secs(30);

/// Starts allowed within [`WHILE`]: a server that crashes at each call fails those calls and causes
/// no restart loop.
const STARTS: usize = 5;
const WHILE: Duration = Duration::from_secs(60);

/// Concurrent calls of one server; further calls wait.
const AT_ONCE: usize = 8;

/// Pages of tools that are read; limits of a tool's description, in characters, and of its schema,
/// in bytes.
const MAX_PAGES: usize = 32;
const MAX_DESCRIPTION: usize = 1_000;
const MAX_SCHEMA: usize = 64 << 10;

/// Longest excerpt of a server's own words in a failure, in characters.
const MAX_WORDS: usize = 300;

/// A server, running or not.
pub(super) struct ToolServer {
    origin: ServerOrigin,
    at_once: Semaphore,
    state: Mutex<ServerState>,
}

#[derive(Default)]
struct ServerState {
    running: Option<Arc<ServerConnection>>,
    /// Times of recent starts.
    starts: VecDeque<Instant>,
}

impl ToolServer {
    pub(super) fn new(origin: ServerOrigin) -> Self {
        Self { origin, at_once: Semaphore::new(AT_ONCE), state: Mutex::default() }
    }

    /// Tools of the server, each name once.
    pub(super) async fn list(&self) -> Result<Vec<ToolInfo>, Failure> {
        let action = format!("list the tools of `{}`", self.origin.name);
        let _turn = self.at_once.acquire().await;
        let used = self.connection(&action).await?;
        match timeout(LISTED_WITHIN, self.pages(&used, &action)).await {
            Ok(listed) => listed,
            Err(_) => Err(self.hung(&used, &action, LISTED_WITHIN).await),
        }
    }

    async fn pages(&self, used: &Use, action: &str) -> Result<Vec<ToolInfo>, Failure> {
        let (mut tools, mut cursor, mut cursors) = (BTreeMap::new(), None, BTreeSet::new());
        for _ in 0..MAX_PAGES {
            let params = PaginatedRequestParams::default().with_cursor(cursor);
            // Bypasses the client's own cache, whose lifetime the server controls.
            let request = ListToolsRequest {
                method: Default::default(),
                params: Some(params),
                extensions: Default::default(),
            };
            let listed = used.peer().send_request(ClientRequest::ListToolsRequest(request)).await;
            let listed = listed.map_err(|why| Self::failed(used, action, &why))?;
            let ServerResult::ListToolsResult(page) = listed else {
                return Err(misunderstood(action));
            };
            for tool in page.tools {
                let tool = self.to_info(tool);
                tools.entry(tool.name.clone()).or_insert(tool);
            }
            cursor = page.next_cursor.filter(|cursor| !cursor.is_empty());
            match &cursor {
                None => break,
                Some(cursor) if !cursors.insert(cursor.clone()) => {
                    let (agent, server) = (&self.origin.agent, &self.origin.name);
                    tracing::warn!(%agent, server, "MCP server repeats a `tools/list` cursor, later pages are not read");
                    break;
                }
                Some(_) => {}
            }
        }
        Ok(tools.into_values().collect())
    }

    /// A tool's description as one plain line, and its schema if that is not too long.
    fn to_info(&self, tool: Tool) -> ToolInfo {
        let description = tool.description.map(|text| plain_text::line(&text, MAX_DESCRIPTION));
        let schema = Value::Object(Arc::unwrap_or_clone(tool.input_schema));
        let is_short = schema.to_string().len() <= MAX_SCHEMA;
        let input_schema = if is_short { schema } else { json!({ "type": "object" }) };
        let (server, name) = (self.origin.name.clone(), tool.name.into_owned());
        ToolInfo { server, name, description, input_schema }
    }

    /// Calls a tool and waits for its result.
    pub(super) async fn call(&self, action: &str, call: ToolCall) -> Result<Value, Failure> {
        let _turn = self.at_once.acquire().await;
        let used = self.connection(action).await?;
        let params = CallToolRequestParams::new(call.tool).with_arguments(call.arguments);
        let Ok(called) = timeout(call.within, used.peer().call_tool_once(params)).await else {
            return Err(self.hung(&used, action, call.within).await);
        };
        let called = called.map_err(|why| Self::failed(&used, action, &why))?;
        let CallToolResponse::Complete(result) = called else {
            return Err(Failure::Unsupported(format!(
                "{action}: it asks for more, or goes on by itself, where only a result is of use"
            )));
        };
        serde_json::to_value(result).map_err(|why| Failure::Internal(why.to_string()))
    }

    /// A working connection: the current one, or a new one.
    async fn connection(&self, action: &str) -> Result<Use, Failure> {
        let mut state = self.state.lock().await;
        if let Some(used) = state.running.as_ref().and_then(ServerConnection::used) {
            return Ok(used);
        }
        let before = state.running.take().and_then(|it| it.fault());
        let now = Instant::now();
        state.starts.retain(|start| now.duration_since(*start) < WHILE);
        if state.starts.len() >= STARTS {
            let before = before.map(|why| format!(", at last because {why}")).unwrap_or_default();
            return Err(Failure::Unavailable(format!(
                "{action}: it was started {STARTS} times within {}, and ended each time{before}; it is tried again later",
                Span(WHILE)
            )));
        }
        state.starts.push_back(now);
        let begun = timeout(STARTED_WITHIN, ServerConnection::start(&self.origin)).await;
        let begun = begun.unwrap_or_else(|_| {
            Err(Failure::Unavailable(format!(
                "it has not answered within {}",
                Span(STARTED_WITHIN)
            )))
        });
        let begun = Arc::new(begun.map_err(|why| prefixed(action, &why))?);
        let used = begun.used();
        state.running = Some(begun);
        used.ok_or_else(|| Failure::Unavailable(format!("{action}: it ended at once")))
    }

    /// Handles a call that timed out. A server that does not answer a ping is ended.
    async fn hung(&self, used: &Use, action: &str, within: Duration) -> Failure {
        if !used.is_alive().await {
            used.end(format!("it did not answer for {}", Span(within)));
            tracing::warn!(agent = %self.origin.agent, server = self.origin.name, "{action}: MCP server does not answer, ending it");
        }
        Failure::Timeout
    }

    fn failed(used: &Use, action: &str, why: &ServiceError) -> Failure {
        if let ServiceError::McpError(why) = why {
            if why.message.starts_with(BROKE_OFF) {
                let words = plain_text::line(&why.message, MAX_WORDS);
                return Failure::Unavailable(format!("{action}: {words}"));
            }
            let words = plain_text::line(&why.message, MAX_WORDS);
            let text = format!("{action}: the server refuses: \"{words}\"");
            let is_callers = [ErrorCode::INVALID_PARAMS, ErrorCode::METHOD_NOT_FOUND];
            let is_callers = is_callers.contains(&why.code);
            return if is_callers { Failure::Invalid(text) } else { Failure::Unavailable(text) };
        }
        if matches!(why, ServiceError::UnexpectedResponse) {
            return misunderstood(action);
        }
        let words = if let ServiceError::TransportSend(why) = why {
            innermost(&*why.error)
        } else {
            why.to_string()
        };
        let why = used.fault().unwrap_or_else(|| plain_text::line(&words, MAX_WORDS));
        Failure::Unavailable(format!("{action}: {why}"))
    }
}

fn misunderstood(action: &str) -> Failure {
    Failure::Unavailable(format!("{action}: its answer is none of the protocol's"))
}

/// Prefixes a failure with the operation.
fn prefixed(action: &str, why: &Failure) -> Failure {
    let text = format!("{action}: {why}");
    if matches!(why, Failure::Denied(_)) {
        Failure::Denied(text)
    } else {
        Failure::Unavailable(text)
    }
}
