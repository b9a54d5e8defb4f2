//! Errors of requests to a remote agent.

use crate::outbound::OutboundError;
use a2a_hub_protocol::error::{A2aError, ErrorKind};
use http::StatusCode;

/// Error of a request to a remote agent.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The text is not an HTTP URL.
    #[error("`{0}` is not a URL of an agent: it must begin with https:// or http://")]
    NotUrl(String),
    /// The agent has no card.
    #[error("find the card of {url}: {why}")]
    NoCard {
        /// URL at which the card was requested.
        url: String,
        /// Reason why the response is not a card.
        why: String,
    },
    /// The card is invalid, for this reason.
    #[error("{0}")]
    InvalidCard(String),
    /// The agent offers no interface that the hub supports.
    #[error(
        "talk to `{agent}`: its card offers {offered}, and JSON-RPC, REST or gRPC of 1.0 or 0.3 is needed"
    )]
    Foreign {
        /// Name of the agent in its card.
        agent: String,
        /// Interfaces that the card offers.
        offered: String,
    },
    /// The card directs its clients' messages and tokens to another origin.
    #[error(
        "talk to `{agent}`: its card is at {card}, and sends its clients to {elsewhere}; if that is right, name it with \
         `--allow-origin {elsewhere}`, or in `origins` of a `[remote.<id>]`"
    )]
    Elsewhere {
        /// Name of the agent in its card.
        agent: String,
        /// Origin of the card.
        card: String,
        /// Origin of the interface.
        elsewhere: String,
    },
    /// The token is not a valid header value.
    #[error("show the token: {0}")]
    Token(#[from] http::Error),
    /// No response arrived.
    #[error(transparent)]
    Lost(#[from] OutboundError),
    /// The response broke off or was too long.
    #[error("read the answer: {0}")]
    Broken(String),
    /// The agent requires authentication, or refuses this token.
    #[error(
        "ask the agent: it answers with HTTP status {0}, and wants a token that it knows; `--token-env VARIABLE` shows what \
         that variable holds, and for `[remote.<id>]` so does `token_env`"
    )]
    Unknown(StatusCode),
    /// The response is not one of A2A.
    #[error("read the answer, which came with HTTP status {status}: {why}")]
    Senseless {
        /// HTTP status of the response.
        status: StatusCode,
        /// Defect of the response.
        why: String,
    },
    /// The agent refused with an error of A2A.
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

    /// True if no connection was made: the agent got nothing, and the request can be sent once
    /// more.
    pub fn was_not_sent(&self) -> bool {
        matches!(self, Self::Lost(why) if why.was_not_sent())
    }

    /// True if the server says that it does not know or support the operation, so that another one
    /// may take its place. Servers and gateways without a route answer with HTTP status 404, 405 or
    /// 501 (RFC 9110, section 15) and without an error of A2A, those of gRPC with `UNIMPLEMENTED`.
    pub(crate) fn is_unsupported(&self) -> bool {
        match self {
            Self::Refused(why) => {
                matches!(why.kind, ErrorKind::UnsupportedOperation | ErrorKind::MethodNotFound)
            }
            Self::Senseless { status, .. } => matches!(
                *status,
                StatusCode::NOT_FOUND
                    | StatusCode::METHOD_NOT_ALLOWED
                    | StatusCode::NOT_IMPLEMENTED
            ),
            Self::NotUrl(_)
            | Self::NoCard { .. }
            | Self::InvalidCard(_)
            | Self::Foreign { .. }
            | Self::Elsewhere { .. }
            | Self::Token(_)
            | Self::Lost(_)
            | Self::Broken(_)
            | Self::Unknown(_)
            | Self::NotOfA2a => false,
        }
    }

    /// True if a retry may succeed: the connection failed, or the server had a temporary error, but
    /// nothing was refused.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{grpc, jsonrpc, rest};
    use http::HeaderMap;
    use serde_json::json;

    #[test]
    fn unsupported_operations_differ_from_other_refusals() {
        let rpc = |code: i32| {
            let error = json!({ "code": code, "message": "no" });
            jsonrpc::read(StatusCode::OK, json!({ "id": 1, "error": error }).to_string().as_bytes())
        };
        let http = |status: u16, body: &str| {
            rest::read(StatusCode::from_u16(status).unwrap(), body.as_bytes())
        };
        let grpc = |code: &str| {
            let status = (http::HeaderName::from_static("grpc-status"), code.parse().unwrap());
            grpc::end(StatusCode::OK, &HeaderMap::from_iter([status])).map(|()| json!({}))
        };
        for (name, answer, is_unsupported) in [
            ("unsupported operation", rpc(-32004), true),
            ("method not found", rpc(-32601), true),
            ("task not found", rpc(-32001), false),
            ("invalid params", rpc(-32602), false),
            ("405", http(405, ""), true),
            ("501", http(501, "<html>"), true),
            ("404 of a web server", http(404, "Cannot POST /message:stream"), true),
            ("500", http(500, ""), false),
            ("503", http(503, "busy"), false),
            ("gRPC UNIMPLEMENTED", grpc("12"), true),
            ("gRPC NOT_FOUND", grpc("5"), false),
            ("gRPC UNAVAILABLE", grpc("14"), false),
        ] {
            assert_eq!(answer.unwrap_err().is_unsupported(), is_unsupported, "{name}");
        }
    }
}
