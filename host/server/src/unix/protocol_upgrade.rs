//! Protocol upgrade on a connection of the Unix socket: the request `hub/speak` names another
//! protocol, which the connection speaks after the response. `a2a-hub mcp` and `a2a-hub acp` send
//! it and then relay their standard input and output.

use crate::{acp, mcp};
use a2a_hub_core::access_control::Principal;
use a2a_hub_protocol::{
    error::{A2aError, ErrorKind},
    id::AgentId,
};
use a2a_hub_rpc::{dispatcher::Dispatcher, line_reader::LineReader};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio::{io::AsyncRead, sync::mpsc};
use tokio_util::sync::CancellationToken;

const METHOD: &str = "hub/speak";

/// Protocol to upgrade to.
#[derive(Debug, PartialEq, Deserialize)]
#[serde(
    tag = "protocol",
    rename_all = "lowercase",
    rename_all_fields = "camelCase",
    deny_unknown_fields
)]
pub(crate) enum SpokenProtocol {
    /// Agent Client Protocol with one agent.
    Acp {
        /// Agent of the connection; the hub's default agent, if `None`.
        #[serde(default)]
        agent_id: Option<AgentId>,
    },
    /// Model Context Protocol.
    Mcp {
        /// Default working directory of tool calls.
        #[serde(default)]
        working_directory: Option<String>,
        /// True for the tools for blackboards only.
        #[serde(default)]
        only_blackboards: bool,
    },
}

/// An upgrade request.
#[derive(Debug, PartialEq)]
pub(crate) struct SpeakRequest {
    id: Value,
    /// Requested protocol, or the error to return.
    pub(crate) language: Result<SpokenProtocol, A2aError>,
    /// Tenant for which the protocol is spoken.
    tenant: Option<String>,
}

impl SpeakRequest {
    /// Parses a line; `None` if it is not an upgrade request, or a notification.
    pub(crate) fn read(line: &str) -> Option<Self> {
        // Avoids parsing every request twice.
        if !line.contains(METHOD) {
            return None;
        }
        let mut request: Map<String, Value> = serde_json::from_str(line).ok()?;
        if request.get("method").is_none_or(|method| method != METHOD) {
            return None;
        }
        // The regular request parser refuses an invalid id.
        let id = request
            .remove("id")
            .filter(|id| !(id.is_boolean() || id.is_array() || id.is_object()))?;
        let mut params = request.remove("params").unwrap_or_default();
        let tenant = params.as_object_mut().and_then(|params| params.remove("tenant"));
        let tenant = tenant.and_then(|tenant| tenant.as_str().map(str::to_owned));
        let language = serde_json::from_value(params).map_err(|why| {
            let why = format!("cannot be spoken here: {why}; this hub speaks `acp` and `mcp`");
            A2aError::new(ErrorKind::InvalidParams, why)
        });
        Some(Self { id, language, tenant })
    }

    /// Refuses the upgrade while other requests of the connection are open, because their responses
    /// would be mixed with the new protocol.
    pub(crate) fn refuse_amid_others(&mut self) {
        let why = "requests of this connection are under way; wait for their answers, or ask on a connection of its own";
        self.language = Err(A2aError::new(ErrorKind::InvalidRequest, why));
    }

    /// Principal for the new protocol: with a tenant, only that tenant's client. An invalid tenant
    /// refuses the upgrade.
    pub(crate) fn placed(&mut self, dispatcher: &Dispatcher, caller: Principal) -> Principal {
        let tenant = dispatcher.tenant(self.tenant.as_deref());
        let placed = tenant.and_then(|tenant| dispatcher.narrowed(caller.clone(), tenant));
        placed.unwrap_or_else(|why| {
            self.language = Err(why);
            caller
        })
    }

    /// Response to the upgrade request.
    pub(crate) fn answer(&self) -> Vec<u8> {
        let answer = match &self.language {
            Ok(_) => json!({ "jsonrpc": "2.0", "id": self.id, "result": {} }),
            Err(why) => json!({ "jsonrpc": "2.0", "id": self.id, "error": why.to_hub_json() }),
        };
        answer.to_string().into_bytes()
    }
}

impl SpokenProtocol {
    /// Serves the protocol until the client disconnects or the hub stops.
    pub(crate) async fn speak<R: AsyncRead + Send + Unpin>(
        self,
        dispatcher: Dispatcher,
        caller: Principal,
        reader: &mut LineReader<R>,
        outbox: mpsc::Sender<Vec<u8>>,
        stop: CancellationToken,
    ) {
        match self {
            Self::Acp { agent_id: agent } => {
                let target = acp::ConnectionTarget { caller, agent };
                Box::pin(acp::serve(dispatcher, target, reader, outbox, stop)).await;
            }
            Self::Mcp { working_directory, only_blackboards } => {
                let offer = mcp::SessionOffer { directory: working_directory, only_blackboards };
                let talk = mcp::serve(dispatcher, caller, offer, reader, outbox, stop);
                Box::pin(talk).await;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn upgrade_request_names_protocol() {
        let asked = SpeakRequest::read(
            r#"{"jsonrpc":"2.0","id":7,"method":"hub/speak","params":{"protocol":"mcp","workingDirectory":"/w"}}"#,
        );
        let mcp = SpokenProtocol::Mcp {
            working_directory: Some("/w".to_owned()),
            only_blackboards: false,
        };
        assert_eq!(asked.as_ref().unwrap().language, Ok(mcp));
        assert_eq!(asked.unwrap().answer(), br#"{"id":7,"jsonrpc":"2.0","result":{}}"#);
        let acp = SpeakRequest::read(
            r#"{"id":7,"method":"hub/speak","params":{"protocol":"acp","agentId":"codex"}}"#,
        );
        let codex = AgentId::parse("codex").ok();
        assert_eq!(acp.unwrap().language, Ok(SpokenProtocol::Acp { agent_id: codex }));
        let unknown =
            SpeakRequest::read(r#"{"id":1,"method":"hub/speak","params":{"protocol":"morse"}}"#)
                .unwrap();
        let told = String::from_utf8(unknown.answer()).unwrap();
        assert!(
            told.contains("morse") && told.contains("this hub speaks `acp` and `mcp`"),
            "{told}"
        );
        for other in [
            r#"{"id":1,"method":"message/send","params":{"text":"hub/speak"}}"#,
            r#"{"method":"hub/speak","params":{"protocol":"mcp"}}"#,
            "hub/speak",
        ] {
            assert_eq!(SpeakRequest::read(other), None, "{other}");
        }
    }
}
