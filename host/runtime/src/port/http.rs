//! Port for HTTP requests that the operator has allowed.

use crate::failure::Failure;
use a2a_hub_core::grant::http::Admitted;
use std::time::Duration;

/// A permitted request. Only the hub knows the secrets in its headers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PermittedRequest {
    /// The permitted part.
    pub admitted: Admitted,
    /// Headers that the guest may set itself.
    pub headers: Vec<(String, String)>,
    /// Body.
    pub body: Vec<u8>,
    /// Time limit for the head of the answer.
    pub timeout: Duration,
}

/// Head of an answer whose body is still to come.
pub struct HttpResponse {
    /// HTTP status.
    pub status: u16,
    /// Headers, without those of the connection.
    pub headers: Vec<(String, Vec<u8>)>,
    /// Reads the body.
    pub body: Box<dyn BodyPort>,
}

/// Sends requests. Answers contain none of the secrets that were sent.
#[async_trait::async_trait]
pub trait HttpPort: Send + Sync {
    /// Sends a permitted request, and waits for the head of the answer.
    async fn send(&self, request: PermittedRequest) -> Result<HttpResponse, Failure>;
}

/// Body of one answer, as a stream. Dropping it closes the connection.
#[async_trait::async_trait]
pub trait BodyPort: Send {
    /// Next chunk, which is not empty; none at the end, and ever after. Cancel-safe.
    async fn next(&mut self) -> Result<Option<Vec<u8>>, Failure>;
}
