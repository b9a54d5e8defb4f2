//! One delivery over HTTP: dials what `core::receiver` lets it dial, and nothing else.

use super::{
    challenge::{self, ChallengeError, challenge},
    payload::Payload,
    signer::WebhookSigner,
};
use a2a_hub_client::{Outbound, OutboundError, in_trace};
use a2a_hub_clock as clock;
use a2a_hub_core::span::Span;
use a2a_hub_core::{
    breaker::{Outcome, Source},
    delivery::{DeliveryVerdict, blame, may_ask_for_rest, verdict},
    receiver::{ReceiverRefusal, Rules},
};
use a2a_hub_protocol::{
    push::{PublicKey, PushAuthentication, PushConfig, Secret},
    trace::TraceContext,
};
use bytes::Bytes;
use http::{
    HeaderValue, Request, Response,
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

/// How long a receiver may take to answer; one that works on what it is told should do so afterwards.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long a name may take to be looked up when a client gives it: the client waits.
const LOOKUP: Duration = Duration::from_secs(5);

/// How many deliveries are under way at once.
const AT_ONCE: usize = 64;

/// Sends what is to be sent.
pub struct Sender {
    client: Outbound,
    rules: Arc<Rules>,
    signer: Option<WebhookSigner>,
    /// Whether a receiver must show that it waits for notifications.
    challenges: bool,
    all: Semaphore,
}

/// Why notifications cannot be sent somewhere.
#[derive(Debug, thiserror::Error)]
pub enum ReceiverError {
    /// It is not a URL.
    #[error("`{url}` is not a URL: {why}")]
    NotUrl {
        /// What was given in place of a URL.
        url: String,
        /// What is wrong with it.
        why: String,
    },
    /// Somebody who reads it sees another URL than what is dialled.
    #[error(
        "the URL has a control character in it (byte {0}), which no URL has; send it percent-encoded"
    )]
    Control(usize),
    /// A URL is no place for a password.
    #[error("the URL has a user or a password in it; give them as `authentication`")]
    Login,
    /// The host has no name.
    #[error("the URL has no host")]
    NoHost,
    /// Nothing may be sent there.
    #[error(transparent)]
    Refused(#[from] ReceiverRefusal),
    /// It has not shown that it waits for notifications.
    #[error(
        "the receiver did not show that it waits for notifications: {0}; have it answer a GET with 200 and the value of \
         `validationToken` as the body, as the operator wants it (`push.challenge`)"
    )]
    Unproven(#[from] ChallengeError),
}

/// Why a delivery came to nothing.
#[derive(Debug, thiserror::Error)]
pub(super) enum SendError {
    /// It may not be sent there, any more.
    #[error(transparent)]
    Receiver(#[from] ReceiverError),
    /// What was kept fits into no header.
    #[error("the config has something that no request can hold: {0}")]
    Unspeakable(#[from] http::Error),
    /// There was no answer.
    #[error(transparent)]
    Lost(#[from] OutboundError),
    /// The answer was not that it has it.
    #[error("it answered with HTTP status {status}{hint}", hint = if (300..400).contains(.status) { ", and redirects are not followed" } else { "" })]
    Status {
        /// The HTTP status of the answer.
        status: u16,
        /// For how long it wants to be left in peace, if it says so.
        asked: Option<Duration>,
    },
    /// It wants no more.
    #[error("it answered with HTTP status 410: it wants no more")]
    Gone,
    /// It was never its turn.
    #[error("not tried for too long: {0}")]
    NoTurn(String),
    /// The hub stops, and sends nothing any more.
    #[error("the hub stops")]
    Stopped(#[from] AcquireError),
}

impl SendError {
    /// Whether there is no use in trying again.
    pub(super) fn is_final(&self) -> bool {
        matches!(self, Self::Gone | Self::NoTurn(_))
    }

    /// Whether the receiver was asked.
    pub(super) fn was_tried(&self) -> bool {
        !matches!(self, Self::NoTurn(_))
    }

    /// What it tells of all that is at the same scheme, host and port, if it does.
    pub(super) fn blame(&self) -> Option<Outcome> {
        match self {
            Self::Status { status, .. } => Some(blame(*status)),
            Self::Gone => Some(Outcome::Success(Source::Task)),
            // Rules are about a scheme, a host and a port, too.
            Self::Receiver(_) | Self::Lost(_) => Some(Outcome::Failure(Source::Task)),
            Self::Unspeakable(_) | Self::NoTurn(_) | Self::Stopped(_) => None,
        }
    }

    /// For how long the receiver wants to be left in peace, if it says so.
    pub(super) fn asked(&self) -> Option<Duration> {
        if let Self::Status { asked, .. } = self { *asked } else { None }
    }
}

impl Sender {
    /// Sends only where `rules` allow, and signs with `signer`.
    pub fn new(rules: Rules, signer: Option<WebhookSigner>) -> Self {
        let rules = Arc::new(rules);
        let client = Outbound::guarded(Arc::clone(&rules));
        let all = Semaphore::new(AT_ONCE);
        Self { client, rules, signer, challenges: false, all }
    }

    /// The same, where a receiver must first show that it waits for notifications, if that is so.
    #[must_use]
    pub fn challenging(self, challenges: bool) -> Self {
        Self { challenges, ..self }
    }

    /// The keys by which what it sends is checked, the one that signs first.
    pub(super) fn keys(&self) -> Vec<PublicKey> {
        self.signer.as_ref().map(WebhookSigner::keys).unwrap_or_default()
    }

    /// Whether notifications may be sent there, as far as can be told now: a name that cannot be looked up now may be found
    /// later, and is checked whenever it is dialled.
    pub(super) async fn check(&self, url: &str) -> Result<(), ReceiverError> {
        let (url, host) = self.admit(url)?;
        if address(&url).is_none() {
            match timeout(LOOKUP, lookup_host((host.as_str(), 0))).await {
                Ok(Ok(found)) => {
                    let found: Vec<_> = found.map(|at| at.ip()).collect();
                    self.rules.dial(&host, &found)?;
                }
                Ok(Err(why)) => tracing::warn!(%host, %why, "a receiver cannot be found now"),
                Err(_) => tracing::warn!(%host, "a receiver was not found within {}", Span(LOOKUP)),
            }
        }
        if self.challenges {
            let asked = async {
                // Nobody closes it.
                let _turn = self.all.acquire().await;
                challenge(&self.client, &url).await
            };
            let limit = 2 * challenge::PATIENCE;
            timeout(limit, asked).await.map_err(|_| ChallengeError::Late)??;
        }
        Ok(())
    }

    /// The URL and its host, if what it says itself is allowed. An address among them is never looked up, so that it is
    /// checked here.
    fn admit(&self, text: &str) -> Result<(Url, String), ReceiverError> {
        // The parser would leave some of them out.
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

    /// Sends a payload, and returns once the receiver said that it has it.
    pub(super) async fn send(
        &self,
        config: &PushConfig,
        payload: &Payload,
        trace: &TraceContext,
    ) -> Result<(), SendError> {
        let (url, _) = self.admit(&config.url)?;
        let _turn = self.all.acquire().await?;
        // Signed anew for each try, whose time it tells.
        let request = self.request(&url, config, payload, trace)?;
        // The body of the answer says nothing to the hub, and is not read.
        let answer = self.client.ask(request, PATIENCE).await?;
        let status = answer.status().as_u16();
        match verdict(status) {
            DeliveryVerdict::Taken => Ok(()),
            DeliveryVerdict::Gone => Err(SendError::Gone),
            DeliveryVerdict::Later => Err(SendError::Status { status, asked: rest(&answer) }),
        }
    }

    fn request(
        &self,
        url: &Url,
        config: &PushConfig,
        payload: &Payload,
        trace: &TraceContext,
    ) -> Result<Request<Full<Bytes>>, http::Error> {
        let mut request = Request::post(url.as_str()).header(CONTENT_TYPE, payload.media_type);
        request = request.header(USER_AGENT, concat!("a2a-hub/", env!("CARGO_PKG_VERSION")));
        request = in_trace(request, trace);
        if let Some(token) = &config.token {
            request = request.header("x-a2a-notification-token", secret(token.expose())?);
        }
        if let Some(PushAuthentication { scheme, credentials }) = &config.authentication {
            let credentials = credentials.as_ref().map(Secret::expose);
            let said = credentials.map_or_else(|| scheme.clone(), |it| format!("{scheme} {it}"));
            request = request.header(AUTHORIZATION, secret(&said)?);
        }
        if let Some(signer) = &self.signer {
            let now = jiff::Timestamp::now().as_second();
            request = request
                .header("webhook-id", &payload.id)
                .header("webhook-timestamp", now)
                .header("webhook-key-id", signer.key_id())
                .header("webhook-signature", signer.sign(&payload.id, now, &payload.body));
        }
        request.body(Full::new(payload.body.clone()))
    }
}

/// For how long a receiver wants to be left in peace, if it says so.
fn rest<B>(answer: &Response<B>) -> Option<Duration> {
    let said = answer.headers().get(RETRY_AFTER);
    let said = said.filter(|_| may_ask_for_rest(answer.status().as_u16()))?;
    clock::retry_after(said.to_str().ok()?)
}

/// The URL's scheme, host and port: the part of it that is no secret.
pub(super) fn origin(url: &str) -> String {
    Url::parse(url).map(|url| url.origin().ascii_serialization()).unwrap_or_default()
}

/// The address that the URL names its host by, if it is one.
fn address(url: &Url) -> Option<IpAddr> {
    // `Url` has brought every way to write one into the usual form.
    url.host_str()?.trim_start_matches('[').trim_end_matches(']').parse().ok()
}

/// A header that no log shows.
fn secret(text: &str) -> Result<HeaderValue, http::Error> {
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

    /// What was allowed when it was set may not be any more, or may have another address by now.
    #[tokio::test]
    async fn it_is_asked_again_when_something_is_sent() {
        let sender = Sender::new(Rules::default(), None);
        let offered = |url: &str| OfferedPush {
            id: None,
            url: url.to_owned(),
            token: None,
            authentication: None,
            form: PushForm::V1,
        };
        for url in ["https://127.0.0.1:9999/", "https://localhost:9999/"] {
            let config = offered(url).of(TaskId::new("t"));
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

    /// However an address is written, it is what it is.
    #[tokio::test]
    async fn what_a_client_may_name() {
        let mut lines = Vec::new();
        for url in [
            "https://8.8.8.8/news",
            "https://127.0.0.1/",
            "https://2130706433/",
            "https://0x7f.1/",
            "https://0177.0.0.1/",
            "https://[::ffff:127.0.0.1]/",
            "https://[::1]/",
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
        // No name has a label of more than 63 characters: nobody is asked for it.
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
        https://[::ffff:127.0.0.1]/ `::ffff:7f00:1` is ::ffff:127.0.0.1, a private address; the operator can add it to `push.trusted_hosts`
        https://[::1]/ `::1` is ::1, a private address; the operator can add it to `push.trusted_hosts`
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
