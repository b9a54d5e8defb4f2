//! Where an agent sends requests by HTTP that its operator allowed.

use crate::failure::Failure;
use a2a_hub_core::http_grant::Admitted;
use std::time::Duration;

/// A request to send, found allowed. What the secrets in its headers are, only the hub knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outgoing {
    /// What was found allowed.
    pub admitted: Admitted,
    /// Headers of the guest's own, that it may set.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
    /// How long the head of the answer may take.
    pub patience: Duration,
}

/// The head of an answer, whose body is still to come.
pub struct Answer {
    /// The status.
    pub status: u16,
    /// The headers, without those of the connection.
    pub headers: Vec<(String, Vec<u8>)>,
    /// Reads the body.
    pub body: Box<dyn BodyPort>,
}

/// The hub's side: sends requests. What comes back has none of the secrets that were sent.
#[async_trait::async_trait]
pub trait HttpPort: Send + Sync {
    /// Sends a request that was found allowed, and waits for the head of the answer.
    async fn send(&self, request: Outgoing) -> Result<Answer, Failure>;
}

/// The body of one answer, as it comes. Dropping it hangs up.
#[async_trait::async_trait]
pub trait BodyPort: Send {
    /// The next piece, which is not empty; none at the end, and ever after. May be dropped and called again.
    async fn next(&mut self) -> Result<Option<Vec<u8>>, Failure>;
}
