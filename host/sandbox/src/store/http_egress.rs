//! HTTP egress of an instance: grant checks and limits for all requests, from `http.fetch` and
//! `wasi:http`.

use crate::store::replay_clock::{RunClock, outside_of_step};
use a2a_hub_core::grant::{EffectiveGrant, http::Admitted, http_header};
use a2a_hub_protocol::id::AgentId;
use a2a_hub_runtime::{
    Failure, Limits,
    port::{
        Ports,
        http::{HttpPort, HttpResponse, PermittedRequest},
    },
};
use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

/// Default timeout of a response.
pub(crate) const DEFAULT_TIMEOUT: Duration = Duration::from_secs(60);

/// Longest timeout of a response: the default task timeout.
pub(crate) const MAX_TIMEOUT: Duration = Duration::from_secs(30 * 60);

/// Headers of one request: several times the usual number.
const MAX_HEADERS: usize = 100;

/// Bytes of all header names and values of one request; servers accept less.
const MAX_HEADER_BYTES: usize = 32 << 10;

/// Concurrent requests of one task.
const AT_ONCE: usize = 16;

/// Remaining requests and bytes of one instance.
#[derive(Debug)]
struct HttpUsage {
    remaining_requests: AtomicU64,
    remaining_bytes: AtomicU64,
    under_way: Arc<Semaphore>,
}

impl HttpUsage {
    /// Reserves one request.
    fn begin(&self) -> Result<OwnedSemaphorePermit, Failure> {
        let permit = Arc::clone(&self.under_way).try_acquire_owned().map_err(|_| {
            Failure::Exhausted(format!(
                "send a request: {AT_ONCE} of this task are under way; drop some"
            ))
        })?;
        let took = self
            .remaining_requests
            .fetch_update(Relaxed, Relaxed, |remaining| remaining.checked_sub(1));
        took.map(|_| permit).map_err(|_| {
            Failure::Exhausted(
                "send a request: this task has sent as many as it may; the operator raises that with `http_requests` in the \
                 agent's `limits`"
                    .to_owned(),
            )
        })
    }

    /// Charges bytes sent or received. An excess uses up the rest.
    fn charge(&self, bytes: usize) -> Result<(), Failure> {
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        let previous = self
            .remaining_bytes
            .fetch_update(Relaxed, Relaxed, |remaining| Some(remaining.saturating_sub(bytes)));
        if previous.is_ok_and(|previous| previous >= bytes) {
            return Ok(());
        }
        Err(Failure::Exhausted(
            "send and read more: this task's bytes of HTTP are used up; the operator raises that with `http_bytes` in the \
             agent's `limits`"
                .to_owned(),
        ))
    }
}

/// The only path of an instance's HTTP requests. Clones share state.
#[derive(Clone)]
pub(crate) struct HttpEgress {
    agent: AgentId,
    grant: Arc<EffectiveGrant>,
    ports: Arc<Ports>,
    usage: Arc<HttpUsage>,
    cancel: CancellationToken,
    /// Clock of a guest whose run is recorded: it sends requests within a step only.
    step: Option<Arc<RunClock>>,
}

/// An admitted request with its permit.
pub(crate) struct PendingRequest {
    port: Arc<dyn HttpPort>,
    admitted: Admitted,
    permit: OwnedSemaphorePermit,
}

/// A response with its permit.
pub(crate) struct OpenResponse {
    pub(crate) answer: HttpResponse,
    pub(crate) permit: OwnedSemaphorePermit,
}

impl HttpEgress {
    pub(crate) fn new(
        agent: AgentId,
        limits: &Limits,
        grant: Arc<EffectiveGrant>,
        ports: Arc<Ports>,
        cancel: CancellationToken,
    ) -> Self {
        let usage = HttpUsage {
            remaining_requests: limits.http_requests.into(),
            remaining_bytes: limits.http_bytes.into(),
            under_way: Arc::new(Semaphore::new(AT_ONCE)),
        };
        Self { agent, grant, ports, usage: Arc::new(usage), cancel, step: None }
    }

    /// Restricts requests to the steps of a recorded run.
    pub(crate) fn of_run(self, clock: Arc<RunClock>) -> Self {
        Self { step: Some(clock), ..self }
    }

    fn admit(&self, method: &str, url: &str) -> Result<Admitted, Failure> {
        if self.cancel.is_cancelled() {
            return Err(Failure::Cancelled);
        }
        if self.step.as_ref().is_some_and(|clock| !clock.is_in_step()) {
            return Err(outside_of_step("send a request"));
        }
        let admitted = self.grant.http.admit(self.agent.as_str(), method, url);
        admitted.map_err(|refusal| {
            if refusal.is_invalid() {
                return Failure::Invalid(refusal.to_string());
            }
            let host = http::Uri::try_from(url).ok();
            let host = host.as_ref().and_then(http::Uri::host).unwrap_or_default();
            self.ports.tell_refused(&format!("http.{host}"));
            Failure::Denied(refusal.to_string())
        })
    }

    /// Admits a request and reserves a permit.
    pub(crate) fn begin(&self, method: &str, url: &str) -> Result<PendingRequest, Failure> {
        let admitted = self.admit(method, url)?;
        let not_here = || Failure::Denied("send a request: not in this call".to_owned());
        let port = self.ports.http.clone().ok_or_else(not_here)?;
        let permit = self.usage.begin()?;
        self.usage.charge(admitted.url.len())?;
        Ok(PendingRequest { port, admitted, permit })
    }

    /// Sends an admitted request, whose body is charged already, and waits for the head of the
    /// response.
    pub(crate) async fn send(
        &self,
        begun: PendingRequest,
        headers: Vec<(String, String)>,
        body: Vec<u8>,
        timeout: Duration,
    ) -> Result<OpenResponse, Failure> {
        let PendingRequest { port, admitted, permit } = begun;
        self.usage.charge(check_headers(&headers)?)?;
        let answer = tokio::select! {
            biased;
            () = self.cancel.cancelled() => return Err(Failure::Cancelled),
            answer = port.send(PermittedRequest { admitted, headers, body, timeout }) => answer?,
        };
        let heads = answer.headers.iter().map(|(name, value)| name.len() + value.len());
        self.usage.charge(heads.sum())?;
        Ok(OpenResponse { answer, permit })
    }

    /// Charges a piece of a body.
    pub(crate) fn count(&self, piece: &[u8]) -> Result<(), Failure> {
        self.usage.charge(piece.len())
    }
}

/// Validates a guest's headers; returns their size in bytes.
fn check_headers(headers: &[(String, String)]) -> Result<usize, Failure> {
    let bytes = headers.iter().map(|(name, value)| name.len() + value.len()).sum();
    if headers.len() > MAX_HEADERS || bytes > MAX_HEADER_BYTES {
        return Err(Failure::Invalid(format!(
            "send a request with {} headers of {bytes} bytes: {MAX_HEADERS} of {MAX_HEADER_BYTES} bytes are sent at most",
            headers.len()
        )));
    }
    for (nth, (name, value)) in headers.iter().enumerate() {
        let nth = nth + 1;
        let why = if !http_header::is_value(value) {
            "its value is no single line of text"
        } else if !http_header::guest_may_set(name) {
            "it is no header's name, or one that only the hub or its operator sets"
        } else {
            continue;
        };
        return Err(Failure::Invalid(format!(
            "send a request with such a header (number {nth}): {why}"
        )));
    }
    Ok(bytes)
}
