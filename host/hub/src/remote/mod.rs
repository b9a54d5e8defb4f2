//! Agents elsewhere, spoken to as any client of A2A speaks to one: found by their card, over JSON-RPC, in 1.0 or 0.3.

mod card;
mod keys;
mod link;
mod run;
mod sse;
mod telling;
mod trust;

pub use link::{Link, Place};
pub use run::RemoteRun;
pub use sse::TooLong;
pub use telling::Telling;
pub use trust::TrustError;

use crate::outbound::{Incoming, Outbound, OutboundError};
use a2a_hub_protocol::{
    card::{
        AgentCard,
        official::{Binding, Interface, read_interfaces},
    },
    error::{A2aError, ErrorKind},
    event::Told,
    id::TaskId,
    operation::{Operation, SendMessage},
    push::Secret,
    task::Task,
    v1, v03,
};
use bytes::Bytes;
use http::{
    HeaderValue, Request, Response, StatusCode,
    header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, USER_AGENT},
};
use http_body_util::{BodyExt as _, Full, Limited};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::timeout;
use url::Url;

/// How long a card, or any answer that needs no work, may take.
const QUICK: Duration = Duration::from_secs(15);

/// The largest answer that is read, in bytes: twice what the hub takes in one request.
const MAX_ANSWER: usize = 16 << 20;

/// An agent elsewhere. Cheap to clone.
#[derive(Clone, Debug)]
pub struct RemoteAgent {
    outbound: Outbound,
    /// Where JSON-RPC is spoken.
    endpoint: Url,
    version: Version,
    token: Option<Secret>,
    card: AgentCard,
}

/// A version of A2A that is spoken with others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    V1,
    V03,
}

/// Why an agent elsewhere is of no help.
#[derive(Debug, thiserror::Error)]
pub enum RemoteError {
    /// It is not a URL that anything can be asked of.
    #[error("`{0}` is not a URL of an agent: it must begin with https:// or http://")]
    NotUrl(String),
    /// It has no card.
    #[error("find the card of {url}: {why}")]
    NoCard {
        /// Where it was looked for.
        url: String,
        /// What was there.
        why: String,
    },
    /// Its card is none, for this reason.
    #[error("{0}")]
    InvalidCard(String),
    /// It speaks nothing that the hub does.
    #[error("talk to `{agent}`: its card offers {offered}, and JSON-RPC of 1.0 or 0.3 is needed")]
    Foreign {
        /// The agent.
        agent: String,
        /// What it speaks.
        offered: String,
    },
    /// Whoever wrote the card would have the client's words, and its token, sent to somebody else.
    #[error("talk to `{agent}`: its card is at {card}, and sends its clients to {elsewhere}")]
    Elsewhere {
        /// The agent.
        agent: String,
        /// The origin of the card.
        card: String,
        /// That of the interface.
        elsewhere: String,
    },
    /// The token fits into no header.
    #[error("show the token: {0}")]
    Token(#[from] http::Error),
    /// There was no answer.
    #[error(transparent)]
    Lost(#[from] OutboundError),
    /// The answer broke off, or was too long.
    #[error("read the answer: {0}")]
    Broken(String),
    /// It wants to know who asks, or does not let them.
    #[error(
        "ask the agent: it answers with HTTP status {0}, and wants a token that it knows; `--token-env VARIABLE` shows what \
         that variable holds, and for `[remote.<id>]` so does `token_env`"
    )]
    Unknown(StatusCode),
    /// The answer was no JSON-RPC.
    #[error("read the answer, which came with HTTP status {status}: {why}")]
    Senseless {
        /// Its status.
        status: StatusCode,
        /// What is wrong with it.
        why: String,
    },
    /// The agent refused.
    #[error("the agent refused: {0}")]
    Refused(A2aError),
    /// A2A has no such operation.
    #[error("ask another agent for what only this hub has")]
    NotOfA2a,
}

impl RemoteError {
    /// Whether the same may work another time: nothing was refused, it was only not heard.
    pub(super) fn is_passing(&self) -> bool {
        match self {
            Self::Lost(_) | Self::Broken(_) => true,
            Self::Senseless { status, .. } => status.is_server_error(),
            Self::NotUrl(_)
            | Self::NoCard { .. }
            | Self::InvalidCard(_)
            | Self::Foreign { .. }
            | Self::Elsewhere { .. }
            | Self::Token(_)
            | Self::Unknown(_)
            | Self::Refused(_)
            | Self::NotOfA2a => false,
        }
    }
}

impl RemoteAgent {
    /// Finds the agent at `url` by its card. The token is shown to the card's own origin and to no other.
    pub async fn find(
        outbound: Outbound,
        url: &str,
        token: Option<Secret>,
    ) -> Result<Self, RemoteError> {
        let base = card::base(url)?;
        let card = card::fetch(&outbound, &base, token.as_ref()).await?;
        Self::of_card(outbound, &base, token, &card)
    }

    /// The agent with this card, which was found at `base`.
    fn of_card(
        outbound: Outbound,
        base: &Url,
        token: Option<Secret>,
        card: &Value,
    ) -> Result<Self, RemoteError> {
        let agent = AgentCard::parse(&card.to_string());
        // In words: whoever prints the causes of an error would say it twice.
        let agent = agent.map_err(|why| RemoteError::InvalidCard(why.to_string()))?;
        let interfaces = read_interfaces(card).map_err(RemoteError::Refused)?;
        let (interface, version) = choose(&interfaces).ok_or_else(|| RemoteError::Foreign {
            agent: agent.name.clone(),
            offered: offered(&interfaces),
        })?;
        let endpoint = base.join(&interface.url);
        let endpoint = endpoint.map_err(|_| RemoteError::NotUrl(interface.url.clone()))?;
        if endpoint.origin() != base.origin() {
            return Err(RemoteError::Elsewhere {
                agent: agent.name,
                card: base.origin().ascii_serialization(),
                elsewhere: endpoint.origin().ascii_serialization(),
            });
        }
        Ok(Self { outbound, endpoint, version, token, card: agent })
    }

    /// Its card.
    pub fn card(&self) -> &AgentCard {
        &self.card
    }

    /// Has it work on a message, and hears what happens as it happens.
    pub async fn stream(&self, send: SendMessage) -> Result<Telling, RemoteError> {
        Telling::of(self.clone(), &Operation::StreamMessage(send)).await
    }

    /// Hears what happens to a task: as it stands, and from now on. It is looked for when it is first listened to.
    pub fn subscribe(&self, id: TaskId) -> Telling {
        Telling::again(self.clone(), id)
    }

    /// Has it work on a message, and waits for the end, or for so long.
    pub async fn send(&self, send: SendMessage, patience: Duration) -> Result<Told, RemoteError> {
        let told = self.call(&Operation::SendMessage(send), patience).await?;
        self.told(told)
    }

    /// Shows a task.
    pub async fn get(&self, id: TaskId) -> Result<Task, RemoteError> {
        let task = self.call(&Operation::GetTask { id, history_length: None }, QUICK).await?;
        self.task(task)
    }

    /// Stops a task.
    pub async fn cancel(&self, id: TaskId) -> Result<Task, RemoteError> {
        let task = self.call(&Operation::CancelTask { id }, QUICK).await?;
        self.task(task)
    }

    fn task(&self, task: Value) -> Result<Task, RemoteError> {
        let task = match self.version {
            Version::V1 => v1::read_task(task),
            Version::V03 => v03::read_task(task),
        };
        task.map_err(RemoteError::Refused)
    }

    fn told(&self, told: Value) -> Result<Told, RemoteError> {
        let told = match self.version {
            Version::V1 => v1::read_told(told),
            Version::V03 => v03::read_told(told),
        };
        told.map_err(RemoteError::Refused)
    }

    async fn call(&self, operation: &Operation, patience: Duration) -> Result<Value, RemoteError> {
        let answer = self.ask(operation, "application/json", patience).await?;
        let status = answer.status();
        result(status, &body(answer, patience).await?)
    }

    /// Sends a request, and returns the answer's head once that is there.
    async fn ask(
        &self,
        operation: &Operation,
        accept: &'static str,
        patience: Duration,
    ) -> Result<Response<Incoming>, RemoteError> {
        let written = match self.version {
            Version::V1 => v1::write_request(operation).map(|(method, it)| (method.name(), it)),
            Version::V03 => v03::write_request(operation),
        };
        let (method, params) = written.ok_or(RemoteError::NotOfA2a)?;
        let request = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        let mut asked = Request::post(self.endpoint.as_str())
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT, accept);
        if self.version == Version::V1 {
            asked = asked.header("A2A-Version", "1.0");
        }
        let asked = signed(asked, self.token.as_ref())?;
        let asked = asked.body(Full::new(Bytes::from(request.to_string())))?;
        let answer = self.outbound.ask(asked, patience).await?;
        match answer.status() {
            status @ (StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) => {
                Err(RemoteError::Unknown(status))
            }
            _ => Ok(answer),
        }
    }
}

/// The best of these that the hub speaks.
fn choose(interfaces: &[Interface]) -> Option<(&Interface, Version)> {
    let json_rpc = || interfaces.iter().filter(|it| it.binding == Binding::JsonRpc);
    let of = |version: &str| json_rpc().find(|it| it.version == version);
    let new = of("1.0").map(|it| (it, Version::V1));
    // 0.2 says the same things with the same words.
    new.or_else(|| of("0.3").or_else(|| of("0.2")).map(|it| (it, Version::V03)))
}

fn offered(interfaces: &[Interface]) -> String {
    let names = interfaces.iter().map(|it| {
        let binding = match &it.binding {
            Binding::JsonRpc => "JSON-RPC",
            Binding::Rest => "REST",
            Binding::Grpc => "gRPC",
            Binding::Other(name) => name,
        };
        format!("{binding} {}", it.version)
    });
    names.collect::<Vec<_>>().join(", ")
}

fn signed(
    request: http::request::Builder,
    token: Option<&Secret>,
) -> Result<http::request::Builder, http::Error> {
    let request = request.header(USER_AGENT, concat!("a2a-hub/", env!("CARGO_PKG_VERSION")));
    let Some(token) = token else { return Ok(request) };
    let mut value = HeaderValue::from_str(&format!("Bearer {}", token.expose()))?;
    value.set_sensitive(true);
    Ok(request.header(AUTHORIZATION, value))
}

/// The whole body of an answer.
async fn body(answer: Response<Incoming>, patience: Duration) -> Result<Bytes, RemoteError> {
    let read = timeout(patience, Limited::new(answer.into_body(), MAX_ANSWER).collect()).await;
    let read = read.map_err(|_| RemoteError::Lost(OutboundError::Late(patience)))?;
    Ok(read.map_err(|why| RemoteError::Broken(why.to_string()))?.to_bytes())
}

/// The result in a JSON-RPC response.
fn result(status: StatusCode, text: &[u8]) -> Result<Value, RemoteError> {
    let senseless = |why: String| RemoteError::Senseless { status, why };
    let mut answer: Value =
        serde_json::from_slice(text).map_err(|why| senseless(why.to_string()))?;
    if let Some(error) = answer.get("error").filter(|error| !error.is_null()) {
        return Err(RemoteError::Refused(refusal(error)));
    }
    let result = answer.get_mut("result").map(Value::take);
    result.ok_or_else(|| senseless("it has neither a result nor an error".to_owned()))
}

/// A refusal as another server tells it.
fn refusal(error: &Value) -> A2aError {
    let code = error["code"].as_i64().unwrap_or_default();
    let data = &error["data"];
    let reason = data.get(0).unwrap_or(data)["reason"].as_str();
    let kind = ErrorKind::from_official(code, reason).unwrap_or(ErrorKind::Internal);
    let message = error["message"].as_str().unwrap_or("it does not say why");
    A2aError::new(kind, format!("{message} ({code})"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(card: &Value) -> String {
        let interfaces = read_interfaces(card).unwrap();
        let chosen = choose(&interfaces);
        chosen
            .map_or_else(|| offered(&interfaces), |(it, version)| format!("{version:?} {}", it.url))
    }

    #[test]
    fn the_newest_version_over_json_rpc_is_chosen() {
        let one = |binding: &str, version: &str, url: &str| json!({ "protocolBinding": binding, "protocolVersion": version, "url": url });
        let many = json!({ "supportedInterfaces": [one("GRPC", "1.0", "g"), one("JSONRPC", "0.3", "old"),
            one("JSONRPC", "1.0.1", "new"), one("HTTP+JSON", "1.0", "rest")] });
        let none = json!({ "supportedInterfaces": [one("GRPC", "1.0", "g"), one("JSONRPC", "2.0", "future")] });
        let old = json!({ "url": "rest", "preferredTransport": "HTTP+JSON", "protocolVersion": "0.3.0",
            "additionalInterfaces": [{ "url": "rpc", "transport": "JSONRPC" }] });
        let cases = [many, none, old, json!({ "url": "u" })].each_ref().map(chosen);
        assert_eq!(cases, ["V1 new", "gRPC 1.0, JSON-RPC 2.0", "V03 rpc", "V03 u"]);
    }

    #[test]
    fn a_refusal_is_told_in_either_form() {
        let error =
            |data: Value| json!({ "code": -32001, "message": "Task not found", "data": data });
        for data in [Value::Null, json!([{ "reason": "TASK_NOT_FOUND" }]), json!({ "x": 1 })] {
            let text = json!({ "jsonrpc": "2.0", "id": 1, "error": error(data) }).to_string();
            let Err(RemoteError::Refused(why)) = result(StatusCode::OK, text.as_bytes()) else {
                panic!("it was refused")
            };
            assert_eq!(
                (why.kind, why.message.as_str()),
                (ErrorKind::TaskNotFound, "Task not found (-32001)")
            );
        }
        for text in ["", "<html>", "{}"] {
            assert!(
                result(StatusCode::BAD_GATEWAY, text.as_bytes()).unwrap_err().is_passing(),
                "{text}"
            );
        }
    }
}
