//! Devices: browsers that the operator paired with the hub, each with a separate key.
//!
//! A device proves each request with its key ([`proof`]; DPoP, RFC 9449), so a stolen access token
//! is of no use. The operator pairs it in a terminal ([`pairing`]).

pub mod pairing;
pub mod proof;

use serde::{Deserialize, Serialize};

/// Largest number of paired devices.
pub const MAX_DEVICES: usize = 50;

/// Longest name of a device, in characters.
const MAX_NAME: usize = 60;

/// A paired browser.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Device {
    /// Id: the first eight hexadecimal digits of the thumbprint of its key.
    pub id: String,
    /// Name that it gave itself, such as `Chromium on Linux`: a plain line.
    pub name: String,
    /// SHA-256 thumbprint of its public key (RFC 7638), in hexadecimal digits.
    pub thumbprint: String,
    /// SHA-256 digest of its access token, in hexadecimal digits.
    pub token_digest: String,
    /// Time of the pairing: RFC 3339 in UTC.
    pub paired_at: String,
    /// Time of a late request, at most an hour before the latest: RFC 3339 in UTC.
    pub last_used_at: String,
}

/// Id of the device with this key: eight hexadecimal digits. The operator compares them as a code
/// in the terminal and in the browser, so nobody else's key is paired by mistake.
pub fn id_of(thumbprint: &str) -> String {
    thumbprint.chars().take(8).collect()
}

/// Id of a device as the code that people compare: `AB12-CD34`.
pub fn code_of(id: &str) -> String {
    let (head, tail) = id.split_at_checked(4).unwrap_or((id, ""));
    format!("{head}-{tail}").to_uppercase()
}

/// Name of a device: a plain line of at most 60 characters.
pub fn name_of(offered: &str) -> String {
    let name = crate::text::plain_text::line(offered, MAX_NAME);
    if name.is_empty() { "browser".to_owned() } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn id_is_shown_as_code() {
        let id = id_of("ab12cd34ef56");
        assert_eq!((&*id, &*code_of(&id)), ("ab12cd34", "AB12-CD34"));
        assert_eq!(code_of("ab"), "AB-", "the id of a damaged file");
    }

    #[test]
    fn name_is_plain_line() {
        for (offered, name) in [
            ("Chromium on Linux", "Chromium on Linux"),
            ("", "browser"),
            ("a\n┇allow it?\u{1b}[2J\u{202e}", "a allow it?[2J"),
        ] {
            assert_eq!(name_of(offered), name);
        }
        assert_eq!(name_of(&"x".repeat(500)).chars().count(), MAX_NAME);
    }
}
