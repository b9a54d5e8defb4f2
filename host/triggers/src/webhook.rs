//! Webhooks from outside: the check of a signature, and the event that a request reports.

use crate::trigger_event::WebhookEvent;
use a2a_hub_protocol::foreign;
use base64::{Engine as _, engine::general_purpose::STANDARD};
use ring::{
    digest::{SHA256, digest},
    hmac,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Maximum size of a request's body, in bytes.
pub const MAX_WEBHOOK: usize = 256 << 10;

/// Headers that a check may need, in lower case.
pub const WEBHOOK_HEADERS: [&str; 6] = [
    "webhook-id",
    "webhook-timestamp",
    "webhook-signature",
    "x-github-event",
    "x-github-delivery",
    "x-hub-signature-256",
];

/// Greatest difference between the time of a request and of this machine, in milliseconds: that of
/// the Standard Webhooks libraries.
const MAX_AGE_MS: u64 = 5 * 60 * 1_000;

/// Longest id or type of an event, in bytes.
const MAX_WORD: usize = 256;

/// Prefix of a secret of Standard Webhooks that is written in Base64.
const SECRET_PREFIX: &str = "whsec_";

/// Scheme of the signatures of a sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum WebhookScheme {
    /// Standard Webhooks, symmetric scheme `v1` (standardwebhooks.com, "Signature scheme").
    Standard,
    /// GitHub's header `X-Hub-Signature-256`.
    Github,
}

/// Request of a sender.
#[derive(Clone, Debug, Default)]
pub struct WebhookRequest {
    /// Values of [`WEBHOOK_HEADERS`], each at most once.
    pub headers: BTreeMap<&'static str, String>,
    /// Body as received, of [`MAX_WEBHOOK`] bytes at most.
    pub body: Vec<u8>,
}

/// Request whose signature is valid.
#[derive(Clone, Debug, PartialEq)]
pub struct VerifiedWebhook {
    /// Digest that two requests share only if one repeats the other.
    pub key: String,
    /// The reported event.
    pub event: WebhookEvent,
}

/// Reason why a request is no event.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WebhookError {
    /// A header is missing, or is there twice.
    #[error("the header `{0}` is missing; the trigger's `signature` says which scheme it expects")]
    Header(&'static str),
    /// A header has an invalid value.
    #[error("the header `{0}` cannot be read")]
    Unreadable(&'static str),
    /// The signature is not of this body and secret.
    #[error("the signature is not of this body and the trigger's secret")]
    Signature,
    /// The request is too old, or from the future.
    #[error("the time of the request is more than five minutes away; compare the clocks")]
    Age,
    /// The body is not JSON.
    #[error("the body is not JSON: {0}")]
    Json(String),
}

impl WebhookScheme {
    /// Checks a request and reads its event.
    ///
    /// `secret` is the shared secret: with Standard Webhooks `whsec_` and Base64, or any text.
    /// Signatures are compared in constant time, and nothing of the body is read before.
    ///
    /// # Errors
    ///
    /// See [`WebhookError`].
    pub fn verify(
        self,
        secret: &str,
        request: &WebhookRequest,
        now_ms: i64,
    ) -> Result<VerifiedWebhook, WebhookError> {
        match self {
            Self::Standard => standard(secret, request, now_ms),
            Self::Github => github(secret, request),
        }
    }
}

fn standard(
    secret: &str,
    request: &WebhookRequest,
    now_ms: i64,
) -> Result<VerifiedWebhook, WebhookError> {
    let id = request.word("webhook-id")?;
    let sent = request.word("webhook-timestamp")?;
    let signatures = request.header("webhook-signature")?;
    let encoded = secret.strip_prefix(SECRET_PREFIX);
    let decoded = encoded.and_then(|encoded| STANDARD.decode(encoded).ok());
    let key = hmac::Key::new(hmac::HMAC_SHA256, decoded.as_deref().unwrap_or(secret.as_bytes()));
    let signed = [format!("{id}.{sent}.").as_bytes(), &request.body].concat();
    let mut candidates = signatures.split(' ').filter_map(|it| it.strip_prefix("v1,"));
    let is_valid = |signature: &str| {
        let signature = STANDARD.decode(signature);
        signature.is_ok_and(|signature| hmac::verify(&key, &signed, &signature).is_ok())
    };
    if !candidates.any(is_valid) {
        return Err(WebhookError::Signature);
    }
    let sent: i64 = sent.parse().map_err(|_| WebhookError::Unreadable("webhook-timestamp"))?;
    if sent.saturating_mul(1_000).abs_diff(now_ms) > MAX_AGE_MS {
        return Err(WebhookError::Age);
    }
    let payload = request.payload()?;
    let event = payload["type"].as_str().filter(|it| it.len() <= MAX_WORD).map(str::to_owned);
    let event = WebhookEvent { delivery: id.to_owned(), event, payload };
    Ok(VerifiedWebhook { key: key_of(id.as_bytes()), event })
}

fn github(secret: &str, request: &WebhookRequest) -> Result<VerifiedWebhook, WebhookError> {
    let name = "x-hub-signature-256";
    let signature = request.header(name)?.strip_prefix("sha256=");
    let signature = signature.and_then(|it| hex::decode(it).ok());
    let signature = signature.ok_or(WebhookError::Unreadable(name))?;
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
    let is_valid = hmac::verify(&key, &request.body, &signature);
    is_valid.map_err(|_| WebhookError::Signature)?;
    let delivery = request.word("x-github-delivery")?.to_owned();
    let event = Some(request.word("x-github-event")?.to_owned());
    let event = WebhookEvent { delivery, event, payload: request.payload()? };
    // Two events may have the same body, such as those that start a workflow each night.
    let name = event.event.as_deref().unwrap_or_default();
    let parts = [event.delivery.as_bytes(), name.as_bytes(), &request.body];
    Ok(VerifiedWebhook { key: key_of(&parts.join(&0)), event })
}

fn key_of(text: &[u8]) -> String {
    let digest = digest(&SHA256, text);
    hex::encode(digest.as_ref().iter().take(16).copied().collect::<Vec<_>>())
}

impl WebhookRequest {
    fn header(&self, name: &'static str) -> Result<&str, WebhookError> {
        self.headers.get(name).map(String::as_str).ok_or(WebhookError::Header(name))
    }

    /// Header with a short id, type or time.
    fn word(&self, name: &'static str) -> Result<&str, WebhookError> {
        let word = self.header(name)?;
        let fits = !word.is_empty() && word.len() <= MAX_WORD;
        let fits = fits && word.bytes().all(|byte| byte.is_ascii_graphic());
        if fits { Ok(word) } else { Err(WebhookError::Unreadable(name)) }
    }

    fn payload(&self) -> Result<serde_json::Value, WebhookError> {
        foreign::read(&self.body).map_err(|why| WebhookError::Json(why.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Example of the specification's libraries.
    const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    const AT_MS: i64 = 1_614_265_330_000;

    fn request(headers: &[(&'static str, &str)], body: &str) -> WebhookRequest {
        let headers = headers.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
        WebhookRequest { headers, body: body.as_bytes().to_vec() }
    }

    fn standard_request(body: &str) -> WebhookRequest {
        request(
            &[
                ("webhook-id", "msg_p5jXN8AQM9LWM0D4loKWxJek"),
                ("webhook-timestamp", "1614265330"),
                ("webhook-signature", "v1a,x v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="),
            ],
            body,
        )
    }

    #[test]
    fn standard_webhook_is_verified() {
        let verify = |request: &WebhookRequest, now| {
            WebhookScheme::Standard.verify(SECRET, request, now).map(|it| it.event.delivery)
        };
        let good = standard_request(r#"{"test": 2432232314}"#);
        assert_eq!(verify(&good, AT_MS).unwrap(), "msg_p5jXN8AQM9LWM0D4loKWxJek");
        assert!(verify(&good, AT_MS + 299_000).is_ok());
        assert_eq!(verify(&good, AT_MS + 301_000), Err(WebhookError::Age));
        assert_eq!(verify(&good, AT_MS - 301_000), Err(WebhookError::Age));
        let other = standard_request(r#"{"test": 2432232315}"#);
        assert_eq!(verify(&other, AT_MS), Err(WebhookError::Signature));
        for (name, value, why) in [
            ("webhook-id", Some("msg_x"), WebhookError::Signature),
            ("webhook-timestamp", Some("1614265331"), WebhookError::Signature),
            ("webhook-signature", Some("v1,!"), WebhookError::Signature),
            ("webhook-signature", Some(""), WebhookError::Signature),
            ("webhook-id", Some("a b"), WebhookError::Unreadable("webhook-id")),
            ("webhook-id", None, WebhookError::Header("webhook-id")),
        ] {
            let mut changed = good.clone();
            match value {
                Some(value) => drop(changed.headers.insert(name, value.to_owned())),
                None => drop(changed.headers.remove(name)),
            }
            assert_eq!(verify(&changed, AT_MS), Err(why), "{name}: {value:?}");
        }
        let of = |secret| WebhookScheme::Standard.verify(secret, &good, AT_MS);
        assert_eq!(of("whsec_AAAA"), Err(WebhookError::Signature));
        assert_eq!(of("another secret"), Err(WebhookError::Signature));
    }

    #[test]
    fn common_faults_of_json_are_mended() {
        let key = hmac::Key::new(hmac::HMAC_SHA256, b"secret");
        for body in ["{\"title\":\"party \\ud83c\"}", "\u{feff}{\"title\":1}", "{\"title\":1e999}"]
        {
            let tag = format!("sha256={}", hex::encode(hmac::sign(&key, body.as_bytes())));
            let headers = [
                ("x-hub-signature-256", tag.as_str()),
                ("x-github-event", "push"),
                ("x-github-delivery", "1"),
            ];
            let verified = WebhookScheme::Github.verify("secret", &request(&headers, body), 0);
            assert!(verified.unwrap().event.payload.get("title").is_some(), "{body}");
        }
    }

    #[test]
    fn github_webhook_is_verified() {
        // Example of GitHub's page on the validation of deliveries.
        let secret = "It's a Secret to Everybody";
        let signature = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17";
        let headers = [
            ("x-hub-signature-256", signature),
            ("x-github-event", "push"),
            ("x-github-delivery", "72d3162e"),
        ];
        let verify = |body| {
            let request = request(&headers, body);
            WebhookScheme::Github.verify(secret, &request, 0)
        };
        // The signature is checked before the body is read.
        assert!(matches!(verify("Hello, World!"), Err(WebhookError::Json(_))));
        assert_eq!(verify("Hello, World?"), Err(WebhookError::Signature));
        let body = r#"{"ref":"refs/heads/main"}"#;
        let key = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
        let tag = hmac::sign(&key, body.as_bytes());
        let mut signed = request(&headers, body);
        signed.headers.insert("x-hub-signature-256", format!("sha256={}", hex::encode(tag)));
        let verified = WebhookScheme::Github.verify(secret, &signed, 0).unwrap();
        assert_eq!(verified.event.event.as_deref(), Some("push"));
        assert_eq!(verified.event.payload, json!({ "ref": "refs/heads/main" }));
        let key = |request: &WebhookRequest| {
            WebhookScheme::Github.verify(secret, request, 0).unwrap().key
        };
        assert_eq!(key(&signed), verified.key);
        // Another delivery, or another event, with the same body is another request.
        for (name, value) in [("x-github-delivery", "other"), ("x-github-event", "other")] {
            let mut other = signed.clone();
            other.headers.insert(name, value.to_owned());
            assert_ne!(key(&other), verified.key, "{name}");
        }
        signed.headers.insert("x-hub-signature-256", "sha256=zz".to_owned());
        let unreadable = WebhookError::Unreadable("x-hub-signature-256");
        assert_eq!(WebhookScheme::Github.verify(secret, &signed, 0), Err(unreadable));
    }
}
