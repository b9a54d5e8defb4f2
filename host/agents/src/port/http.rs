//! HTTP requests of one agent: adds secrets to requests and redacts them from responses, restricts
//! the dialled addresses, bounds concurrency, and aborts on revocation.

use super::live_grant::{LiveGrant, Revocation, revoked};
use a2a_hub_client::outbound::{Incoming, Judge, Outbound, OutboundError, Resolve, resolve};
use a2a_hub_config::SecretStore;
use a2a_hub_core::{
    grant::{EffectiveGrant, http::Admitted, http_header::is_of_the_connection},
    text::{
        duration::Span,
        redact::{GrowingBytes, Secrets},
    },
};
use a2a_hub_process::run_blocking;
use a2a_hub_protocol::id::AgentId;
use a2a_hub_runtime::{
    Failure,
    port::http::{BodyPort, HttpPort, HttpResponse, PermittedRequest},
};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Request, header};
use http_body_util::{BodyExt as _, Full};
use std::{net::IpAddr, sync::Arc, time::Duration};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::timeout,
};

/// Concurrent requests of one agent over all its tasks: each is a connection.
const AT_ONCE: usize = 64;

/// Longest pause within a response body (slow loris, from a server's side). Models think for
/// minutes.
const SILENCE: Duration = Duration::from_secs(300);

/// Request headers that lead to encoded or partial responses, in which a secret could not be found.
const DISGUISES: [&str; 3] = ["accept-encoding", "if-range", "range"];

/// Operation named in the refusal after a revocation.
const SENDING: &str = "send a request";

/// HTTP client of one agent.
pub(crate) struct AgentHttp {
    agent: AgentId,
    outbound: Outbound,
    secrets: SecretStore,
    under_way: Arc<Semaphore>,
    /// Current grant.
    live: LiveGrant,
}

impl AgentHttp {
    /// Client of an agent with this machine's name resolution; none if the grant has no HTTP.
    pub(crate) fn for_agent(
        id: &AgentId,
        live: LiveGrant,
        secrets: &SecretStore,
    ) -> Option<Arc<Self>> {
        let may_send = !live.now().http.is_empty();
        may_send.then(|| Arc::new(Self::new(id.clone(), live, secrets.clone(), Arc::new(resolve))))
    }

    /// Client whose requests `live` allows, with addresses that `resolve` finds.
    pub(crate) fn new(
        agent: AgentId,
        live: LiveGrant,
        secrets: SecretStore,
        resolve: Arc<Resolve>,
    ) -> Self {
        let now = live.clone();
        let judge: Arc<Judge> = Arc::new(move |host: &str, addresses: &[IpAddr]| {
            now.now().http.dial(host, addresses).map_err(|why| why.to_string())
        });
        let outbound = Outbound::judged(judge, resolve);
        Self { agent, outbound, secrets, under_way: Arc::new(Semaphore::new(AT_ONCE)), live }
    }

    /// Watches the grant of an admitted request. Fails if it is revoked already.
    fn watch(&self, admitted: &Admitted) -> Result<Revocation, Failure> {
        let (agent, Admitted { method, url, .. }) = (self.agent.clone(), admitted.clone());
        let is_allowed =
            move |grant: &EffectiveGrant| grant.http.admit(agent.as_str(), &method, &url).is_ok();
        self.live.must(SENDING, &is_allowed)?;
        Ok(self.live.watch(is_allowed))
    }

    /// Builds the outgoing request, and the secrets in it.
    async fn prepare(
        &self,
        outgoing: PermittedRequest,
    ) -> Result<(Request<Full<Bytes>>, Secrets), Failure> {
        let PermittedRequest { admitted, headers, body, timeout: _ } = outgoing;
        let names: Vec<_> = admitted
            .headers
            .values()
            .flat_map(|value| value.secrets())
            .map(str::to_owned)
            .collect();
        let store = self.secrets.clone();
        let found = run_blocking(move || store.all(names.iter().map(String::as_str))).await;
        let found = found.map_err(|why| Failure::Internal(why.to_string()))?;
        let secrets = found.map_err(|(name, why)| {
            Failure::Unavailable(format!("send a request with the secret `{name}`: {why}"))
        })?;
        let unfit = |why: http::Error| Failure::Invalid(format!("send a request: {why}"));
        let mut request = Request::builder()
            .method(admitted.method.as_str())
            .uri(admitted.url.as_str())
            .body(Full::new(Bytes::from(body)))
            .map_err(unfit)?;
        for (name, value) in headers {
            let name = HeaderName::try_from(name).map_err(|why| unfit(why.into()))?;
            let value = HeaderValue::try_from(value).map_err(|why| unfit(why.into()))?;
            request.headers_mut().append(name, value);
        }
        if !secrets.is_empty() {
            for disguise in DISGUISES {
                request.headers_mut().remove(disguise);
            }
            let plain = HeaderValue::from_static("identity");
            request.headers_mut().insert(header::ACCEPT_ENCODING, plain);
        }
        for (name, template) in &admitted.headers {
            let value = template.filled(|name| secrets.get(name).map(String::as_str));
            let value = value.unwrap_or_default();
            let name = HeaderName::try_from(name.as_str()).map_err(|why| unfit(why.into()))?;
            let mut value = HeaderValue::try_from(value).map_err(|why| unfit(why.into()))?;
            value.set_sensitive(true);
            request.headers_mut().insert(name, value);
        }
        Ok((request, Secrets::new(secrets)))
    }
}

#[async_trait::async_trait]
impl HttpPort for AgentHttp {
    async fn send(&self, outgoing: PermittedRequest) -> Result<HttpResponse, Failure> {
        let Ok(permit) = Arc::clone(&self.under_way).try_acquire_owned() else {
            return Err(Failure::Exhausted(format!(
                "send a request: {AT_ONCE} of this agent's are under way, which is all it may have; let some of them end"
            )));
        };
        let timeout = outgoing.timeout;
        let revocation = self.watch(&outgoing.admitted)?;
        let sent = async {
            let (request, secrets) = self.prepare(outgoing).await?;
            let host = request.uri().host().unwrap_or_default().to_owned();
            let answer = self.outbound.ask(request, timeout).await;
            let answer = answer.map_err(|why| not_sent(&host, &why, timeout))?;
            Ok::<_, Failure>((answer, secrets))
        };
        let (answer, secrets) = tokio::select! {
            biased;
            () = revocation.token.cancelled() => return Err(revoked(SENDING)),
            sent = sent => sent?,
        };
        let (head, incoming) = answer.into_parts();
        if !secrets.is_empty() && is_encoded(&head.headers) {
            return Err(Failure::Unavailable(
                "read an answer: it is encoded, though it was asked for plain, and the hub could not take the secrets out of it \
                 that it had sent"
                    .to_owned(),
            ));
        }
        let headers = redacted_headers(&head.headers, &secrets);
        let body = ResponseBody {
            incoming: Some(incoming),
            growing: GrowingBytes::default(),
            secrets,
            revocation,
            _permit: permit,
        };
        Ok(HttpResponse { status: head.status.as_u16(), headers, body: Box::new(body) })
    }
}

fn not_sent(host: &str, why: &OutboundError, timeout: Duration) -> Failure {
    match why {
        OutboundError::Late(_) => Failure::Unavailable(format!(
            "send a request to `{host}`: no answer within {}",
            Span(timeout)
        )),
        OutboundError::Refused(why) => Failure::Denied(why.clone()),
        OutboundError::Tls(_) | OutboundError::Lost(_) => {
            Failure::Unavailable(format!("send a request to `{host}`: {why}"))
        }
    }
}

/// True if a body is not sent as plain bytes: it has a content encoding, or a transfer encoding
/// other than chunked.
fn is_encoded(headers: &HeaderMap) -> bool {
    let is_other = |name: HeaderName, plain: &[u8]| {
        let mut encodings = headers.get_all(name).into_iter();
        encodings.any(|encoding| !encoding.as_bytes().trim_ascii().eq_ignore_ascii_case(plain))
    };
    is_other(header::CONTENT_ENCODING, b"identity")
        || is_other(header::TRANSFER_ENCODING, b"chunked")
}

/// Response headers for the guest, without secrets.
fn redacted_headers(headers: &HeaderMap, secrets: &Secrets) -> Vec<(String, Vec<u8>)> {
    let headers = headers.iter().filter(|(name, _)| !is_of_the_connection(name.as_str()));
    let hidden = headers.map(|(name, value)| {
        (
            secrets.hide(name.as_str()).into_owned(),
            secrets.hide_bytes(value.as_bytes()).into_owned(),
        )
    });
    hidden.collect()
}

/// Body of one response.
struct ResponseBody {
    /// None once the body has ended and its connection is returned or closed.
    incoming: Option<Incoming>,
    growing: GrowingBytes,
    secrets: Secrets,
    revocation: Revocation,
    _permit: OwnedSemaphorePermit,
}

#[async_trait::async_trait]
impl BodyPort for ResponseBody {
    async fn next(&mut self) -> Result<Option<Vec<u8>>, Failure> {
        loop {
            let Some(incoming) = &mut self.incoming else { return Ok(None) };
            let frame = tokio::select! {
                biased;
                () = self.revocation.token.cancelled() => {
                    self.incoming = None;
                    return Err(revoked(SENDING));
                }
                frame = timeout(SILENCE, incoming.frame()) => frame,
            };
            let chunk = match frame {
                Ok(Some(Ok(frame))) => match frame.into_data() {
                    Ok(bytes) => self.growing.push(&self.secrets, &bytes),
                    Err(_trailers) => continue,
                },
                Ok(None) => {
                    self.incoming = None;
                    self.growing.finish()
                }
                Ok(Some(Err(why))) => {
                    self.incoming = None;
                    return Err(Failure::Unavailable(format!("read an answer: {why}")));
                }
                Err(_) => {
                    self.incoming = None;
                    let silence = Span(SILENCE);
                    return Err(Failure::Unavailable(format!(
                        "read an answer: nothing came within {silence}"
                    )));
                }
            };
            if !chunk.is_empty() {
                return Ok(Some(chunk));
            }
        }
    }
}

#[cfg(test)]
mod tests;
