//! Headers of agents' HTTP requests: the ones that a guest may set, and the operator's ones, which
//! may contain secrets.

use serde::{Deserialize, Serialize};

/// Prefix of a secret's name in the value of a header.
const MARK: &str = "secret:";

/// Maximum length of a secret's name, in bytes.
const MAX_SECRET_NAME: usize = 64;

/// Headers of the connection, which only the hub sets: they could shift the boundary between
/// requests (request smuggling), or change the target host. RFC 9110, 7.6.1, and headers that
/// proxies and servers behind them interpret.
const RESERVED_HEADERS: &[&str] = &[
    "connection",
    "content-length",
    "expect",
    "host",
    "http2-settings",
    "keep-alive",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "via",
];

/// Headers that only the operator may set: with them, a server in the operator's network could take
/// the client for another one, or for a logged-in browser.
const OPERATORS: &[&str] = &["cookie", "cookie2", "forwarded", "x-real-ip"];

/// Prefixes of such headers.
const OPERATORS_PREFIXES: &[&str] = &["proxy-", "x-forwarded-", "sec-"];

/// True if a guest may set a header of this name.
pub fn guest_may_set(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    is_token(&name)
        && !RESERVED_HEADERS.contains(&name.as_str())
        && !OPERATORS.contains(&name.as_str())
        && !OPERATORS_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

/// True if a header of this name belongs to one connection, and is not passed to a guest.
pub fn is_of_the_connection(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    RESERVED_HEADERS.contains(&name.as_str()) && name != "content-length"
}

/// True if a value contains no character that would split the header.
pub fn is_value(value: &str) -> bool {
    value.bytes().all(|byte| byte == b'\t' || (byte >= b' ' && byte != 0x7f))
}

/// True for a token of RFC 9110, 5.6.2.
pub(crate) fn is_token(text: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !text.is_empty() && text.bytes().all(fits)
}

/// Name of a header that the operator sets.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct HeaderName(String);

/// Error for a header that a grant cannot set.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidHeader {
    /// The name is invalid, or reserved for the hub.
    #[error("set the header `{0}`: it is no header's name, or one that the hub sets itself")]
    Name(String),
    /// The value contains control characters.
    #[error("set a header to a value with control characters; a header is one line")]
    Value,
    /// The name of a secret is invalid.
    #[error(
        "put the secret `{0}` into a header: name it by a letter and up to {MAX_SECRET_NAME} letters, digits and `_`, as in \
         `Bearer secret:OPENAI_KEY`"
    )]
    Secret(String),
}

impl HeaderName {
    /// The name, in lower case.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for HeaderName {
    type Error = InvalidHeader;

    fn try_from(text: String) -> Result<Self, InvalidHeader> {
        let name = text.to_ascii_lowercase();
        if is_token(&name) && !RESERVED_HEADERS.contains(&name.as_str()) {
            Ok(Self(name))
        } else {
            Err(InvalidHeader::Name(text))
        }
    }
}

impl From<HeaderName> for String {
    fn from(name: HeaderName) -> Self {
        name.0
    }
}

/// Value of a header that the operator sets, such as `Bearer secret:OPENAI_KEY`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct HeaderTemplate {
    written: String,
    pieces: Vec<HeaderPiece>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum HeaderPiece {
    Text(String),
    Secret(String),
}

impl HeaderTemplate {
    /// Names of the secrets in it.
    pub fn secrets(&self) -> impl Iterator<Item = &str> {
        self.pieces.iter().filter_map(|piece| match piece {
            HeaderPiece::Text(_) => None,
            HeaderPiece::Secret(name) => Some(name.as_str()),
        })
    }

    /// Value with the secrets filled in; `None` if one of them is unknown.
    pub fn filled<'v>(&self, value: impl Fn(&str) -> Option<&'v str>) -> Option<String> {
        let pieces = self.pieces.iter().map(|piece| match piece {
            HeaderPiece::Text(text) => Some(text.as_str()),
            HeaderPiece::Secret(name) => value(name),
        });
        pieces.collect()
    }
}

impl TryFrom<String> for HeaderTemplate {
    type Error = InvalidHeader;

    fn try_from(written: String) -> Result<Self, InvalidHeader> {
        if !is_value(&written) {
            return Err(InvalidHeader::Value);
        }
        let mut pieces = Vec::new();
        let mut parts = written.split(MARK);
        pieces.extend(parts.next().map(|text| HeaderPiece::Text(text.to_owned())));
        for part in parts {
            let of_a_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
            let end = part.find(|c: char| !of_a_name(c)).unwrap_or(part.len());
            let (name, text) = part.split_at(end);
            if !is_secret_name(name) {
                return Err(InvalidHeader::Secret(name.to_owned()));
            }
            pieces
                .extend([HeaderPiece::Secret(name.to_owned()), HeaderPiece::Text(text.to_owned())]);
        }
        Ok(Self { written, pieces })
    }
}

impl From<HeaderTemplate> for String {
    fn from(template: HeaderTemplate) -> Self {
        template.written
    }
}

fn is_secret_name(name: &str) -> bool {
    name.len() <= MAX_SECRET_NAME && name.starts_with(|c: char| c.is_ascii_alphabetic())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guest_cannot_set_connection_headers() {
        let cases = [
            ("accept", true),
            ("Authorization", true),
            ("x-api-key", true),
            ("Host", false),
            ("Content-Length", false),
            ("Transfer-Encoding", false),
            ("Connection", false),
            ("Proxy-Authorization", false),
            ("X-Forwarded-For", false),
            ("Sec-Fetch-Site", false),
            ("Cookie", false),
            (":authority", false),
            ("x\r\nhost", false),
            ("x y", false),
            ("x:", false),
            ("", false),
        ];
        for (name, may) in cases {
            assert_eq!(guest_may_set(name), may, "{name}");
        }
        assert!(is_value("a\tb ü") && !is_value("a\r\nb: c") && !is_value("a\0"));
    }

    #[test]
    fn template_lists_and_fills_secrets() {
        let template = |text: &str| HeaderTemplate::try_from(text.to_owned());
        let value = |name: &str| (name == "OPENAI_KEY").then_some("sk-1");
        let filled = |text: &str| template(text).unwrap().filled(value);
        assert_eq!(filled("Bearer secret:OPENAI_KEY").as_deref(), Some("Bearer sk-1"));
        assert_eq!(
            filled("secret:OPENAI_KEY,secret:OPENAI_KEY;q=1").as_deref(),
            Some("sk-1,sk-1;q=1")
        );
        assert_eq!(filled("plain").as_deref(), Some("plain"));
        assert_eq!(filled("secret:OTHER"), None);
        let names: Vec<_> =
            template("a secret:A, secret:B").unwrap().secrets().map(str::to_owned).collect();
        assert_eq!(names, ["A", "B"]);
        let wrong = |text: &str| template(text).unwrap_err();
        assert_eq!(wrong("secret:../x"), InvalidHeader::Secret(String::new()));
        assert_eq!(wrong("secret:1A"), InvalidHeader::Secret("1A".to_owned()));
        assert_eq!(wrong("a\r\nb: c"), InvalidHeader::Value);
        assert!(HeaderName::try_from("Content-Length".to_owned()).is_err());
        assert_eq!(HeaderName::try_from("X-Key".to_owned()).unwrap().as_str(), "x-key");
    }
}
