//! Delivery of one notification over HTTP; dials only addresses that `core::receiver` allows.

use crate::{
    signer::HubSigner,
    webhooks::{
        challenge::{self, ChallengeError, challenge},
        payload::Payload,
    },
};
use a2a_hub_client::{Outbound, OutboundError, in_trace};
use a2a_hub_clock as clock;
use a2a_hub_core::{
    health::circuit_breaker::{Evidence, Outcome},
    push::{
        delivery::{DeliveryVerdict, breaker_outcome, may_ask_for_rest, verdict},
        receiver_policy::{ReceiverRefusal, Rules},
    },
    text::duration::Span,
};
use a2a_hub_protocol::{
    push::{PushAuthentication, PushConfig, Secret},
    trace::TraceContext,
};
use bytes::Bytes;
use http::{
    HeaderMap, HeaderValue, Request, Response,
    header::{AUTHORIZATION, CONTENT_TYPE, RETRY_AFTER, USER_AGENT},
};
use http_body_util::Full;
use std::{net::IpAddr, sync::Arc, time::Duration};
use tokio::{
    net::lookup_host,
    sync::{AcquireError, Semaphore},
    time::timeout,
};
use url::Url;

/// Time limit of a receiver's answer; a receiver should answer first and process the notification
/// afterwards.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Time limit of a name lookup while a client waits.
const LOOKUP: Duration = Duration::from_secs(5);

/// Limit of concurrent deliveries to all receivers.
const AT_ONCE: usize = 64;

/// Sends notifications.
pub struct Sender {
    client: Outbound,
    rules: Arc<Rules>,
    signer: Option<Arc<HubSigner>>,
    /// True if a receiver must pass a challenge first.
    challenges: bool,
    all: Semaphore,
}

/// Error of a receiver's URL.
#[derive(Debug, thiserror::Error)]
pub enum ReceiverError {
    /// Not a URL.
    #[error("`{url}` is not a URL: {why}")]
    NotUrl {
        /// The given text.
        url: String,
        /// Reason.
        why: String,
    },
    /// The URL contains a control character, so that a reader would see another URL than the one
    /// dialled.
    #[error(
        "the URL has a control character in it (byte {0}), which no URL has; send it percent-encoded"
    )]
    Control(usize),
    /// The URL contains a user or a password.
    #[error("the URL has a user or a password in it; give them as `authentication`")]
    Login,
    /// The URL has no host.
    #[error("the URL has no host")]
    NoHost,
    /// The rules forbid the receiver.
    #[error(transparent)]
    Refused(#[from] ReceiverRefusal),
    /// The receiver has failed the challenge.
    #[error(
        "the receiver did not show that it waits for notifications: {0}; have it answer a GET with 200 and the value of \
         `validationToken` as the body, as the operator wants it (`push.challenge`)"
    )]
    Unproven(#[from] ChallengeError),
}

/// Error of a delivery.
#[derive(Debug, thiserror::Error)]
pub enum SendError {
    /// The receiver is not allowed, or no longer.
    #[error(transparent)]
    Receiver(#[from] ReceiverError),
    /// Part of the config fits into no header.
    #[error("the config has something that no request can hold: {0}")]
    Unspeakable(#[from] http::Error),
    /// No answer arrived.
    #[error(transparent)]
    Lost(#[from] OutboundError),
    /// The status was no success.
    #[error("it answered with HTTP status {status}{hint}", hint = if (300..400).contains(.status) { ", and redirects are not followed" } else { "" })]
    Status {
        /// HTTP status of the answer.
        status: u16,
        /// Pause that the receiver requests, if it does.
        retry_after: Option<Duration>,
    },
    /// The receiver wants no more.
    #[error("it answered with HTTP status 410: it wants no more")]
    Gone,
    /// The delivery got no turn in time.
    #[error("not tried for too long: {0}")]
    NoTurn(String),
    /// The hub stops, and sends nothing any more.
    #[error("the hub stops")]
    Stopped(#[from] AcquireError),
}

impl SendError {
    /// True if a retry is useless.
    pub fn is_final(&self) -> bool {
        matches!(self, Self::Gone | Self::NoTurn(_))
    }

    /// True if the request was sent.
    pub fn was_tried(&self) -> bool {
        !matches!(self, Self::NoTurn(_))
    }

    /// Outcome for the receiver's circuit breaker, which covers a scheme, host and port; none if
    /// the error says nothing about the receiver.
    pub fn breaker_outcome(&self) -> Option<Outcome> {
        match self {
            Self::Status { status, .. } => Some(breaker_outcome(*status)),
            Self::Gone => Some(Outcome::Success(Evidence::Task)),
            // Rules apply to a scheme, host and port as well.
            Self::Receiver(_) | Self::Lost(_) => Some(Outcome::Failure(Evidence::Task)),
            Self::Unspeakable(_) | Self::NoTurn(_) | Self::Stopped(_) => None,
        }
    }

    /// Pause that the receiver requests, if it does.
    pub fn retry_after(&self) -> Option<Duration> {
        if let Self::Status { retry_after, .. } = self { *retry_after } else { None }
    }
}

impl Sender {
    /// Creates a sender that sends only where `rules` allow, and signs with `signer`.
    pub fn new(rules: Rules, signer: Option<Arc<HubSigner>>) -> Self {
        let rules = Arc::new(rules);
        let client = Outbound::guarded(Arc::clone(&rules));
        let all = Semaphore::new(AT_ONCE);
        Self { client, rules, signer, challenges: false, all }
    }

    /// Sets whether receivers must pass a challenge first.
    #[must_use]
    pub fn challenging(self, challenges: bool) -> Self {
        Self { challenges, ..self }
    }

    /// Checks a receiver's URL as far as possible now. A name that cannot be resolved now is
    /// accepted, and checked whenever it is dialled.
    pub async fn check(&self, url: &str) -> Result<(), ReceiverError> {
        let (url, host) = self.admit(url)?;
        if address(&url).is_none() {
            match timeout(LOOKUP, lookup_host((host.as_str(), 0))).await {
                Ok(Ok(found)) => {
                    let found: Vec<_> = found.map(|at| at.ip()).collect();
                    self.rules.dial(&host, &found)?;
                }
                Ok(Err(why)) => {
                    tracing::warn!(%host, %why, "cannot resolve the host of a receiver");
                }
                Err(_) => {
                    tracing::warn!(%host, "cannot resolve the host of a receiver within {}", Span(LOOKUP));
                }
            }
        }
        if self.challenges {
            let attempt = async {
                // The semaphore is never closed.
                let _turn = self.all.acquire().await;
                challenge(&self.client, &url).await
            };
            let limit = 2 * challenge::TIMEOUT;
            timeout(limit, attempt).await.map_err(|_| ChallengeError::Late)??;
        }
        Ok(())
    }

    /// Parses the URL and checks everything that needs no lookup. An address in place of a name is
    /// never looked up, so it is checked here.
    fn admit(&self, text: &str) -> Result<(Url, String), ReceiverError> {
        // The parser would drop some of them.
        if let Some(at) = text.find(char::is_control) {
            return Err(ReceiverError::Control(at));
        }
        let url = Url::parse(text)
            .map_err(|why| ReceiverError::NotUrl { url: text.to_owned(), why: why.to_string() })?;
        if !url.username().is_empty() || url.password().is_some() {
            return Err(ReceiverError::Login);
        }
        let host = url.host_str().ok_or(ReceiverError::NoHost)?;
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        let port = url.port_or_known_default().unwrap_or_default();
        self.rules.admit(url.scheme(), &host, port)?;
        if let Some(address) = address(&url) {
            self.rules.dial(&host, &[address])?;
        }
        Ok((url, host))
    }

    /// Checks a receiver's URL without a lookup.
    pub fn check_url(&self, url: &str) -> Result<(), ReceiverError> {
        self.admit(url).map(drop)
    }

    /// Sends a notification; returns once the receiver has confirmed it.
    pub async fn send(
        &self,
        config: &PushConfig,
        payload: &Payload,
        trace: &TraceContext,
    ) -> Result<(), SendError> {
        self.post(&config.url, headers_of(config)?, payload, trace).await
    }

    /// Sends a payload with these headers to a URL; returns once the receiver has confirmed it.
    pub async fn post(
        &self,
        url: &str,
        headers: HeaderMap,
        payload: &Payload,
        trace: &TraceContext,
    ) -> Result<(), SendError> {
        let (url, _) = self.admit(url)?;
        let _turn = self.all.acquire().await?;
        // Signed anew for each try, since the signature contains the time.
        let request = self.request(&url, headers, payload, trace)?;
        // The body of the answer is irrelevant, and not read.
        let answer = self.client.ask(request, TIMEOUT).await?;
        let status = answer.status().as_u16();
        match verdict(status) {
            DeliveryVerdict::Taken => Ok(()),
            DeliveryVerdict::Gone => Err(SendError::Gone),
            DeliveryVerdict::Later => {
                Err(SendError::Status { status, retry_after: retry_after(&answer) })
            }
        }
    }

    fn request(
        &self,
        url: &Url,
        headers: HeaderMap,
        payload: &Payload,
        trace: &TraceContext,
    ) -> Result<Request<Full<Bytes>>, http::Error> {
        let mut request = Request::post(url.as_str()).header(CONTENT_TYPE, payload.media_type);
        request = request.header(USER_AGENT, concat!("a2a-hub/", env!("CARGO_PKG_VERSION")));
        request = in_trace(request, trace);
        if let Some(all) = request.headers_mut() {
            all.extend(headers);
        }
        if let Some(signer) = &self.signer {
            let now = jiff::Timestamp::now().as_second();
            request = request
                .header("webhook-id", &payload.id)
                .header("webhook-timestamp", now)
                .header("webhook-key-id", signer.key_id())
                .header(
                    "webhook-signature",
                    signer.sign_notification(&payload.id, now, &payload.body),
                );
        }
        request.body(Full::new(payload.body.clone()))
    }
}

/// Headers that a push config requests.
fn headers_of(config: &PushConfig) -> Result<HeaderMap, http::Error> {
    let mut headers = HeaderMap::new();
    if let Some(token) = &config.token {
        headers.insert("x-a2a-notification-token", secret(token.expose())?);
    }
    if let Some(PushAuthentication { scheme, credentials }) = &config.authentication {
        let credentials = credentials.as_ref().map(Secret::expose);
        let authorization =
            credentials.map_or_else(|| scheme.clone(), |it| format!("{scheme} {it}"));
        headers.insert(AUTHORIZATION, secret(&authorization)?);
    }
    Ok(headers)
}

/// Pause that a receiver requests (`Retry-After`), if it does.
fn retry_after<B>(answer: &Response<B>) -> Option<Duration> {
    let value = answer.headers().get(RETRY_AFTER);
    let value = value.filter(|_| may_ask_for_rest(answer.status().as_u16()))?;
    clock::retry_after(value.to_str().ok()?)
}

/// Scheme, host and port of a URL: the part that is no secret.
pub fn origin(url: &str) -> String {
    Url::parse(url).map(|url| url.origin().ascii_serialization()).unwrap_or_default()
}

/// Address that the URL has in place of a host name, if it has one.
fn address(url: &Url) -> Option<IpAddr> {
    // `Url` has normalized every notation of an address.
    url.host_str()?.trim_start_matches('[').trim_end_matches(']').parse().ok()
}

/// Header value that is not logged.
pub(crate) fn secret(text: &str) -> Result<HeaderValue, http::Error> {
    let mut value = HeaderValue::from_str(text)?;
    value.set_sensitive(true);
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use a2a_hub_protocol::{
        id::TaskId,
        push::{OfferedPush, PushForm},
    };

    async fn told(trusted: &[&str], url: &str) -> String {
        let trusted = trusted.iter().map(|&host| host.to_owned()).collect();
        let sender = Sender::new(Rules { trusted }, None);
        sender.check(url).await.map_or_else(|why| why.to_string(), |()| "fine".to_owned())
    }

    /// The rules may have changed since, or the name may resolve to another address.
    #[tokio::test]
    async fn receiver_rules_apply_to_each_send() {
        let sender = Sender::new(Rules::default(), None);
        let offered = |url: &str| OfferedPush {
            id: None,
            url: url.to_owned(),
            token: None,
            authentication: None,
            form: PushForm::V1,
        };
        for url in ["https://127.0.0.1:9999/", "https://localhost:9999/"] {
            let config = offered(url).for_task(TaskId::new("t"));
            let payload = Payload {
                id: "t-1".into(),
                seq: 1,
                media_type: "application/json",
                body: Bytes::from_static(b"{}"),
            };
            let refused = sender
                .send(&config, &payload, &TraceContext::default())
                .await
                .unwrap_err()
                .to_string();
            assert!(refused.ends_with("`push.trusted_hosts`"), "{url}: {refused}");
        }
    }

    /// Every notation of an address is recognised.
    #[tokio::test]
    async fn receiver_urls_are_checked_by_rules() {
        let mut lines = Vec::new();
        for url in [
            "https://8.8.8.8/news",
            "https://127.0.0.1/",
            "https://2130706433/",
            "https://0x7f.1/",
            "https://0177.0.0.1/",
            "https://[::ffff:127.0.0.1]/",
            "https://[::1]/",
            "https://localhost./",
            "https://LOCALHOST./",
            "https://a.localhost/",
            "https://169.254.169.254/latest/meta-data/",
            "http://8.8.8.8/",
            "https://me:secret@8.8.8.8/",
            "file:///etc/passwd",
            "news",
            "https://8.8.8.8/a\nb",
            "\thttps://8.8.8.8/",
            "https://8.8.8.8/\u{9b}2J",
        ] {
            lines.push(format!("{} {}", url.escape_default(), told(&[], url).await));
        }
        // A DNS label has at most 63 characters, so this name causes no query.
        lines.push(told(&[], &format!("https://{}.example/", "x".repeat(64))).await);
        lines.push(told(&["localhost", "::1"], "http://[::1]:1/").await);
        lines.push(told(&["localhost", "::1"], "http://localhost:1/").await);
        let localhost = told(&[], "https://localhost/").await;
        assert!(localhost.ends_with("`push.trusted_hosts`"), "{localhost}");
        insta::assert_snapshot!(lines.join("\n"), @r"
        https://8.8.8.8/news fine
        https://127.0.0.1/ `127.0.0.1` is 127.0.0.1, a private address; the operator can add it to `push.trusted_hosts`
        https://2130706433/ `127.0.0.1` is 127.0.0.1, a private address; the operator can add it to `push.trusted_hosts`
        https://0x7f.1/ `127.0.0.1` is 127.0.0.1, a private address; the operator can add it to `push.trusted_hosts`
        https://0177.0.0.1/ `127.0.0.1` is 127.0.0.1, a private address; the operator can add it to `push.trusted_hosts`
        https://[::ffff:127.0.0.1]/ `::ffff:7f00:1` is 127.0.0.1, a private address; the operator can add it to `push.trusted_hosts`
        https://[::1]/ `::1` is ::1, a private address; the operator can add it to `push.trusted_hosts`
        https://localhost./ `localhost.` is 127.0.0.1, a private address; the operator can add it to `push.trusted_hosts`
        https://LOCALHOST./ `localhost.` is 127.0.0.1, a private address; the operator can add it to `push.trusted_hosts`
        https://a.localhost/ `a.localhost` is 127.0.0.1, a private address; the operator can add it to `push.trusted_hosts`
        https://169.254.169.254/latest/meta-data/ `169.254.169.254` is 169.254.169.254, where nothing may be sent
        http://8.8.8.8/ `8.8.8.8` would be told without encryption; use https, or have the operator add it to `push.trusted_hosts`
        https://me:secret@8.8.8.8/ the URL has a user or a password in it; give them as `authentication`
        file:///etc/passwd the URL has no host
        news `news` is not a URL: relative URL without a base
        https://8.8.8.8/a\nb the URL has a control character in it (byte 17), which no URL has; send it percent-encoded
        \thttps://8.8.8.8/ the URL has a control character in it (byte 0), which no URL has; send it percent-encoded
        https://8.8.8.8/\u{9b}2J the URL has a control character in it (byte 16), which no URL has; send it percent-encoded
        fine
        fine
        fine
        ");
    }
}
