//! Why an agent elsewhere is of no help: every way in which asking it can fail.

use crate::outbound::OutboundError;
use a2a_hub_protocol::error::A2aError;
use http::StatusCode;

/// Why an agent elsewhere is of no help.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// It is not a URL that anything can be asked of.
    #[error("`{0}` is not a URL of an agent: it must begin with https:// or http://")]
    NotUrl(String),
    /// It has no card.
    #[error("find the card of {url}: {why}")]
    NoCard {
        /// Where it was looked for.
        url: String,
        /// What was there instead of a card.
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
        /// The agent, as its card calls it.
        agent: String,
        /// The interfaces that its card offers.
        offered: String,
    },
    /// Whoever wrote the card would have the client's words, and its token, sent to somebody else.
    #[error(
        "talk to `{agent}`: its card is at {card}, and sends its clients to {elsewhere}; if that is right, name it with \
         `--allow-origin {elsewhere}`, or in `origins` of a `[remote.<id>]`"
    )]
    Elsewhere {
        /// The agent, as its card calls it.
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
        /// The HTTP status of the answer.
        status: StatusCode,
        /// What is wrong with it.
        why: String,
    },
    /// The agent refused, with an error of A2A's.
    #[error("the agent refused: {0}")]
    Refused(A2aError),
    /// A2A has no such operation.
    #[error("ask another agent for what only this hub has")]
    NotOfA2a,
}

impl ClientError {
    pub(crate) fn senseless(status: StatusCode, why: &(impl ToString + ?Sized)) -> Self {
        Self::Senseless { status, why: why.to_string() }
    }

    /// Whether the agent was not reached at all: it has heard nothing, and may be told the same once more.
    pub fn was_not_sent(&self) -> bool {
        matches!(self, Self::Lost(why) if why.was_not_sent())
    }

    /// Whether the same may work another time: nothing was refused, it was only not heard.
    pub fn is_passing(&self) -> bool {
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
