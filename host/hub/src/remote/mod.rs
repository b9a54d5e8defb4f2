//! Agents elsewhere, spoken to as any client of A2A speaks to one: found by their card, in 1.0 or 0.3, over what they prefer.

mod card;
mod grpc;
mod jsonrpc;
mod keys;
mod link;
mod rest;
mod run;
mod sse;
mod telling;
mod trust;
mod way;

pub use link::{Link, Place};
pub use run::RemoteRun;
pub use sse::TooLong;
pub use telling::Telling;
pub use trust::TrustError;

use crate::outbound::{Incoming, Outbound, OutboundError};
use a2a_hub_protocol::{
    card::{AgentCard, official::read_interfaces},
    error::A2aError,
    event::Told,
    id::TaskId,
    operation::{Operation, SendMessage},
    push::Secret,
    task::Task,
};
use bytes::Bytes;
use http::{
    HeaderValue, Response, StatusCode,
    header::{AUTHORIZATION, USER_AGENT},
};
use http_body_util::{BodyExt as _, Full, Limited};
use serde_json::Value;
use std::time::Duration;
use tokio::time::timeout;
use url::Url;
use way::{Reader, Way, Whole};

/// How long a card, or any answer that needs no work, may take.
const QUICK: Duration = Duration::from_secs(15);

/// The largest answer that is read, in bytes: twice what the hub takes in one request.
const MAX_ANSWER: usize = 16 << 20;

/// An agent elsewhere. Cheap to clone.
#[derive(Clone, Debug)]
pub struct RemoteAgent {
    outbound: Outbound,
    way: Way,
    token: Option<Secret>,
    card: AgentCard,
    /// Whether its clients may listen. It must say so.
    streams: bool,
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
    #[error(
        "talk to `{agent}`: its card offers {offered}, and JSON-RPC, REST or gRPC of 1.0 or 0.3 is needed"
    )]
    Foreign {
        /// The agent.
        agent: String,
        /// What it speaks.
        offered: String,
    },
    /// Whoever wrote the card would have the client's words, and its token, sent to somebody else.
    #[error(
        "talk to `{agent}`: its card is at {card}, and sends its clients to {elsewhere}; if that is right, list it in `origins` of a `[remote.<id>]`"
    )]
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
    /// The answer was none of A2A's.
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
    fn senseless(status: StatusCode, why: &(impl ToString + ?Sized)) -> Self {
        Self::Senseless { status, why: why.to_string() }
    }

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
        Self::find_trusting(outbound, url, token, &[]).await
    }

    /// The same for one whose card may send its clients, with their token, to these origins as well, such as
    /// `https://example.com:50051`.
    pub async fn find_trusting(
        outbound: Outbound,
        url: &str,
        token: Option<Secret>,
        origins: &[String],
    ) -> Result<Self, RemoteError> {
        let base = card::base(url)?;
        let card = card::fetch(&outbound, &base, token.as_ref()).await?;
        Self::of_card(outbound, &base, token, origins, &card)
    }

    /// The agent with this card, which was found at `base`.
    fn of_card(
        outbound: Outbound,
        base: &Url,
        token: Option<Secret>,
        origins: &[String],
        card: &Value,
    ) -> Result<Self, RemoteError> {
        let trusted = origins.iter().map(|url| Ok(card::base(url)?.origin()));
        let trusted = trusted.collect::<Result<Vec<_>, RemoteError>>()?;
        let agent = AgentCard::parse(&card.to_string());
        // In words: whoever prints the causes of an error would say it twice.
        let agent = agent.map_err(|why| RemoteError::InvalidCard(why.to_string()))?;
        let interfaces = read_interfaces(card).map_err(RemoteError::Refused)?;
        let way = Way::choose(&agent.name, &interfaces, base, &trusted)?;
        let streams = card["capabilities"]["streaming"] == true;
        Ok(Self { outbound, way, token, card: agent, streams })
    }

    /// Its card.
    pub fn card(&self) -> &AgentCard {
        &self.card
    }

    /// Has it work on a message, and hears what happens as it happens, or soon after if it does not stream.
    pub async fn stream(&self, send: SendMessage) -> Result<Telling, RemoteError> {
        Telling::of_work(self.clone(), send).await
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
        let task = self.way.version.read_task(task);
        task.map_err(|why| RemoteError::senseless(StatusCode::OK, &why))
    }

    fn told(&self, told: Value) -> Result<Told, RemoteError> {
        let told = self.way.version.read_told(told);
        told.map_err(|why| RemoteError::senseless(StatusCode::OK, &why))
    }

    async fn call(&self, operation: &Operation, patience: Duration) -> Result<Value, RemoteError> {
        let (answer, reader) = self.ask(operation, patience).await?;
        reader.whole(&whole(answer, patience).await?)
    }

    /// Sends a request, and returns the answer's head once that is there, and how the answer is read.
    async fn ask(
        &self,
        operation: &Operation,
        patience: Duration,
    ) -> Result<(Response<Incoming>, Reader), RemoteError> {
        let (request, body, reader) = self.way.ask(operation)?;
        let asked = signed(request, self.token.as_ref())?.body(Full::new(body))?;
        let answer = self.outbound.ask(asked, patience).await?;
        match answer.status() {
            status @ (StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) => {
                Err(RemoteError::Unknown(status))
            }
            _ => Ok((answer, reader)),
        }
    }
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
    Ok(whole(answer, patience).await?.body)
}

/// An answer, read to its end.
async fn whole(answer: Response<Incoming>, patience: Duration) -> Result<Whole, RemoteError> {
    let (head, body) = answer.into_parts();
    let read = timeout(patience, Limited::new(body, MAX_ANSWER).collect()).await;
    let read = read.map_err(|_| RemoteError::Lost(OutboundError::Late(patience)))?;
    let read = read.map_err(|why| RemoteError::Broken(why.to_string()))?;
    // An answer without a body has what they say in its head.
    let trailers = read.trailers().cloned().unwrap_or(head.headers);
    Ok(Whole { status: head.status, trailers, body: read.to_bytes() })
}
