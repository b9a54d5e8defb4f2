//! Push notifications: where a client has them sent, in which form, and how that goes (A2A 1.0, section 4.3).

use crate::model::{
    error::A2aError,
    id::{MAX_ID, PushConfigId, TaskId},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The longest URL of a receiver, in bytes: what servers commonly take.
pub const MAX_URL: usize = 2048;

/// The longest token, scheme or credentials, in bytes: servers commonly take 8 KiB of headers in all.
pub const MAX_SECRET: usize = 4096;

/// Something that must not be told: neither in a log nor by `Debug`.
#[derive(Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Secret(String);

impl Secret {
    /// Keeps `text` out of logs: it is told by [`Secret::expose`] alone.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text, for whom it is meant.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// How the hub proves to a receiver on whose behalf it comes: the header `Authorization` (A2A 1.0, section 4.3.2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PushAuthentication {
    /// The scheme (RFC 9110, section 11.1), such as `Bearer`.
    pub scheme: String,
    /// The credentials that follow the scheme.
    pub credentials: Option<Secret>,
}

/// The form in which notifications are told: that of the version in which the client asked for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, JsonSchema)]
pub enum PushForm {
    /// The whole task, as A2A 0.3 has it.
    #[serde(rename = "0.3")]
    V03,
    /// One event, as A2A 1.0 has it.
    #[serde(rename = "1.0")]
    V1,
}

impl PushForm {
    /// Every form in which notifications are spelled.
    pub const ALL: [Self; 2] = [Self::V03, Self::V1];

    /// The version of A2A that the form is of, such as `1.0`.
    pub fn version(self) -> &'static str {
        match self {
            Self::V03 => "0.3",
            Self::V1 => "1.0",
        }
    }
}

/// A push configuration as a client offers it: alone, or with the message that begins the task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OfferedPush {
    /// The id that the client gives it, if it does.
    pub id: Option<PushConfigId>,
    /// The URL that notifications are posted to (webhook).
    pub url: String,
    /// The token that the receiver knows notifications by: the header `X-A2A-Notification-Token`.
    pub token: Option<Secret>,
    /// How the hub proves on whose behalf it comes.
    pub authentication: Option<PushAuthentication>,
    /// The form in which notifications are told.
    pub form: PushForm,
}

/// A push configuration: where a task's notifications are sent (A2A 1.0, section 4.3.1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PushConfig {
    /// The configuration's id, unique within the task.
    pub id: PushConfigId,
    /// The task whose notifications are sent.
    pub task: TaskId,
    /// The URL that notifications are posted to (webhook).
    pub url: String,
    /// The token that the receiver knows notifications by: the header `X-A2A-Notification-Token`.
    pub token: Option<Secret>,
    /// How the hub proves on whose behalf it comes.
    pub authentication: Option<PushAuthentication>,
    /// The form in which notifications are told.
    pub form: PushForm,
}

/// A public key of Ed25519, by which a receiver knows that notifications are this hub's: a JSON Web Key (RFC 7517, RFC
/// 8037).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PublicKey {
    kty: &'static str,
    crv: &'static str,
    alg: &'static str,
    #[serde(rename = "use")]
    used_for: &'static str,
    /// Its thumbprint (RFC 7638), by which it is called: SHA-256 in base64url.
    pub kid: String,
    /// The key's 32 bytes in base64url.
    pub x: String,
}

impl PublicKey {
    /// The key `x`, whose thumbprint is `kid`; both in base64url without padding.
    pub fn new(x: String, kid: String) -> Self {
        Self { kty: "OKP", crv: "Ed25519", alg: "EdDSA", used_for: "sig", kid, x }
    }

    /// What a thumbprint is the hash of: the members that make the key (RFC 8037, section 2), in order and without a
    /// blank.
    pub fn to_be_hashed(x: &str) -> String {
        format!(r#"{{"crv":"Ed25519","kty":"OKP","x":"{x}"}}"#)
    }
}

/// How a task's notifications get to one place: an element of the answer to `hub/deliveries/list`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Delivery {
    /// The task.
    pub task_id: TaskId,
    /// The config.
    pub config_id: PushConfigId,
    /// Where they are sent: the URL's scheme, host and port. The rest may be secret.
    pub receiver: String,
    /// The version in whose form they are told.
    pub version: PushForm,
    /// How it goes.
    pub state: DeliveryState,
    /// How many events of the task were not sent yet.
    pub waiting: u64,
    /// How often the first of them was tried.
    pub attempts: u32,
    /// Since when that comes to nothing: RFC 3339 in UTC.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failing_since: Option<String>,
    /// How it failed last; of one that is held, how others did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// When it is tried next at the soonest: RFC 3339 in UTC.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_at: Option<String>,
}

/// How a task's notifications get to one place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum DeliveryState {
    /// As they should.
    Fine,
    /// They failed, and are tried again.
    Failing,
    /// Others that went to the same receiver failed in a row, so that it is left alone for a while.
    Held,
    /// They failed for too long, or are not wanted: nothing is sent until `hub/deliveries/retry`.
    Dead,
}

impl OfferedPush {
    /// The configuration of a task. Without an id of its own it has the task's, so that the next one without takes its
    /// place.
    pub fn of(self, task: TaskId) -> PushConfig {
        let Self { id, url, token, authentication, form } = self;
        let id = id.unwrap_or_else(|| PushConfigId::new(task.as_str()));
        PushConfig { id, task, url, token, authentication, form }
    }

    /// Refuses what cannot be kept, or written into a request's head; `at` is where it stands, for the errors.
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
    fn secrets_are_not_told() {
        let config = offered().of(TaskId::new("t"));
        assert!(!format!("{config:?}").contains("hush"), "{config:?}");
        assert_eq!(config.id.as_str(), "t");
    }

    #[test]
    fn what_fits_into_no_header_is_refused() {
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
