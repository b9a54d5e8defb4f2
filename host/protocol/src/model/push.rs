//! Push notifications: configuration, payload form and delivery state (A2A 1.0, section 4.3).

use crate::model::{
    error::A2aError,
    id::{MAX_ID, PushConfigId, TaskId},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Maximum length of a receiver's URL in bytes, a common limit of servers.
pub const MAX_URL: usize = 2048;

/// Maximum length of a token, scheme or credentials in bytes. Servers commonly accept 8 KiB of
/// headers in total.
pub const MAX_SECRET: usize = 4096;

/// Secret text, which neither logs nor `Debug` output may contain.
#[derive(Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Secret(String);

impl Secret {
    /// Wraps `text`, which only [`Secret::expose`] reveals.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The secret text.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// Credentials in the header `Authorization` with which the hub authenticates at a receiver (A2A
/// 1.0, section 4.3.2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PushAuthentication {
    /// Authentication scheme (RFC 9110, section 11.1), such as `Bearer`.
    pub scheme: String,
    /// Credentials that follow the scheme.
    pub credentials: Option<Secret>,
}

/// Payload form of notifications: that of the A2A version in which the client configured them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, JsonSchema)]
pub enum PushForm {
    /// Whole task, as in A2A 0.3.
    #[serde(rename = "0.3")]
    V03,
    /// One event, as in A2A 1.0.
    #[serde(rename = "1.0")]
    V1,
}

impl PushForm {
    /// All payload forms.
    pub const ALL: [Self; 2] = [Self::V03, Self::V1];

    /// A2A version of the form, such as `1.0`.
    pub fn version(self) -> &'static str {
        match self {
            Self::V03 => "0.3",
            Self::V1 => "1.0",
        }
    }
}

/// Push configuration from a client, sent alone or with the message that creates the task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OfferedPush {
    /// Id of the configuration, if the client set one.
    pub id: Option<PushConfigId>,
    /// Webhook URL, which receives notifications as POST requests.
    pub url: String,
    /// Token that identifies notifications to the receiver, sent in the header
    /// `X-A2A-Notification-Token`.
    pub token: Option<Secret>,
    /// Credentials for the receiver.
    pub authentication: Option<PushAuthentication>,
    /// Payload form of the notifications.
    pub form: PushForm,
}

/// Push configuration of a task (A2A 1.0, section 4.3.1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PushConfig {
    /// Id of the configuration, unique within the task.
    pub id: PushConfigId,
    /// Task of the notifications.
    pub task: TaskId,
    /// Webhook URL, which receives notifications as POST requests.
    pub url: String,
    /// Token that identifies notifications to the receiver, sent in the header
    /// `X-A2A-Notification-Token`.
    pub token: Option<Secret>,
    /// Credentials for the receiver.
    pub authentication: Option<PushAuthentication>,
    /// Payload form of the notifications.
    pub form: PushForm,
}

/// Ed25519 public key with which a receiver verifies this hub's notifications, as a JSON Web Key
/// (RFC 7517, RFC 8037).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PublicKey {
    kty: &'static str,
    crv: &'static str,
    alg: &'static str,
    #[serde(rename = "use")]
    used_for: &'static str,
    /// Key id: the key's thumbprint (RFC 7638), SHA-256 in base64url.
    pub kid: String,
    /// The key's 32 bytes in base64url.
    pub x: String,
}

/// Path of the hub's public keys: a JSON Web Key Set (RFC 7517, section 5).
pub const JWKS_PATH: &str = "/.well-known/jwks.json";

impl PublicKey {
    /// Creates the JSON Web Key of `x` with the thumbprint `kid`; both in base64url without
    /// padding.
    pub fn new(x: String, kid: String) -> Self {
        Self { kty: "OKP", crv: "Ed25519", alg: "EdDSA", used_for: "sig", kid, x }
    }

    /// Input of the thumbprint's hash: the required members of the key (RFC 8037, section 2),
    /// sorted, without whitespace.
    pub fn to_be_hashed(x: &str) -> String {
        format!(r#"{{"crv":"Ed25519","kty":"OKP","x":"{x}"}}"#)
    }
}

/// Delivery of a task's notifications to one receiver: an element of the answer to
/// `hub/deliveries/list`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Delivery {
    /// Id of the task.
    pub task_id: TaskId,
    /// Id of the push configuration.
    pub config_id: PushConfigId,
    /// Scheme, host and port of the receiver's URL; the rest may be secret.
    pub receiver: String,
    /// A2A version of the payload.
    pub version: PushForm,
    /// State of the delivery.
    pub state: DeliveryState,
    /// Number of the task's events that have not been sent yet.
    pub waiting: u64,
    /// Number of failed attempts to send the first of these events.
    pub attempts: u32,
    /// Start of the failed attempts: RFC 3339 in UTC; absent if the latest attempt succeeded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failing_since: Option<String>,
    /// Latest error; for a held delivery, the error of other deliveries to the receiver.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Earliest time of the next attempt: RFC 3339 in UTC; absent if none is planned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_at: Option<String>,
}

/// State of a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum DeliveryState {
    /// Notifications are sent without failures.
    Fine,
    /// The latest attempt failed and will be repeated.
    Failing,
    /// Other deliveries to the same receiver failed in a row, so the hub pauses this one.
    Held,
    /// The delivery failed for too long or the receiver refused it; nothing is sent until
    /// `hub/deliveries/retry`.
    Dead,
}

impl OfferedPush {
    /// Creates the configuration of a task. Its id defaults to the task's id, so that a later
    /// configuration without an id replaces it.
    pub fn for_task(self, task: TaskId) -> PushConfig {
        let Self { id, url, token, authentication, form } = self;
        let id = id.unwrap_or_else(|| PushConfigId::new(task.as_str()));
        PushConfig { id, task, url, token, authentication, form }
    }

    /// Refuses values that exceed a limit or do not fit into a header; `at` is the path of the
    /// configuration, for the errors.
    pub fn check(&self, at: &str) -> Result<(), A2aError> {
        let refuse = |name: &str, why: String| {
            let field = if at.is_empty() { name.to_owned() } else { format!("{at}.{name}") };
            Err(A2aError::invalid(&field, why))
        };
        let id = self.id.as_ref().map(PushConfigId::as_str);
        if id.is_some_and(|id| id.is_empty() || id.len() > MAX_ID) {
            return refuse("id", format!("must be 1 to {MAX_ID} bytes long"));
        }
        if self.url.is_empty() || self.url.len() > MAX_URL {
            return refuse("url", format!("must be 1 to {MAX_URL} bytes long"));
        }
        let scheme = self.authentication.as_ref().map(|it| it.scheme.as_str());
        let credentials =
            self.authentication.as_ref().and_then(|it| it.credentials.as_ref()).map(Secret::expose);
        for (name, text) in [
            ("token", self.token.as_ref().map(Secret::expose)),
            ("authentication.scheme", scheme),
            ("authentication.credentials", credentials),
        ] {
            let fits = |text: &str| {
                let is_printable = |byte: u8| byte.is_ascii_graphic() || byte == b' ';
                !text.is_empty() && text.len() <= MAX_SECRET && text.bytes().all(is_printable)
            };
            if text.is_some_and(|text| !fits(text)) {
                let why = format!("must be 1 to {MAX_SECRET} printable characters of ASCII");
                return refuse(name, why);
            }
        }
        if scheme.is_some_and(|scheme| scheme.contains(' ')) {
            return refuse("authentication.scheme", "must be one word, such as `Bearer`".into());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offered() -> OfferedPush {
        OfferedPush {
            id: None,
            url: "https://example.com/news".into(),
            token: Some(Secret::new("hush")),
            authentication: Some(PushAuthentication {
                scheme: "Bearer".into(),
                credentials: Some(Secret::new("hush, hush")),
            }),
            form: PushForm::V1,
        }
    }

    #[test]
    fn debug_output_hides_secrets() {
        let config = offered().for_task(TaskId::new("t"));
        assert!(!format!("{config:?}").contains("hush"), "{config:?}");
        assert_eq!(config.id.as_str(), "t");
    }

    #[test]
    fn push_config_unfit_for_headers_is_refused() {
        assert_eq!(offered().check(""), Ok(()));
        let authentication = |scheme: &str, credentials: &str| {
            let credentials = Some(Secret::new(credentials));
            Some(PushAuthentication { scheme: scheme.into(), credentials })
        };
        let cases = [
            OfferedPush { id: Some(PushConfigId::new("")), ..offered() },
            OfferedPush { url: "x".repeat(MAX_URL + 1), ..offered() },
            OfferedPush { token: Some(Secret::new("a\r\nb: c")), ..offered() },
            OfferedPush { authentication: authentication("Bearer x", "y"), ..offered() },
            OfferedPush { authentication: authentication("Bearer", "é"), ..offered() },
        ];
        let refused = cases.map(|offered| offered.check("config").unwrap_err().to_string());
        insta::assert_snapshot!(refused.join("\n"), @r"
        `config.id`: must be 1 to 128 bytes long
        `config.url`: must be 1 to 2048 bytes long
        `config.token`: must be 1 to 4096 printable characters of ASCII
        `config.authentication.scheme`: must be one word, such as `Bearer`
        `config.authentication.credentials`: must be 1 to 4096 printable characters of ASCII
        ");
    }
}
