//! Names of people.

use serde::{Deserialize, Serialize};
use std::{fmt, sync::Arc};

/// Longest name, in bytes.
const MAX_NAME: usize = 63;

/// Name of a person: 1 to 63 lower-case letters, digits, hyphens and dots, of which the first and
/// the last one is a letter or digit.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PersonName(Arc<str>);

/// Error for a text that is no name of a person.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "a person's name has 1 to {MAX_NAME} lower-case letters, digits, hyphens and dots, and begins \
     and ends with a letter or digit"
)]
pub struct InvalidPersonName;

impl PersonName {
    /// Parses a name.
    ///
    /// # Errors
    ///
    /// If the text has another form.
    pub fn parse(name: &str) -> Result<Self, InvalidPersonName> {
        let is_end = |byte: Option<u8>| {
            byte.is_some_and(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
        };
        let is_inner = |byte: u8| is_end(Some(byte)) || matches!(byte, b'-' | b'.');
        let is_name = name.len() <= MAX_NAME
            && is_end(name.bytes().next())
            && is_end(name.bytes().next_back())
            && name.bytes().all(is_inner);
        if is_name { Ok(Self(name.into())) } else { Err(InvalidPersonName) }
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for PersonName {
    type Error = InvalidPersonName;

    fn try_from(name: String) -> Result<Self, InvalidPersonName> {
        Self::parse(&name)
    }
}

impl From<PersonName> for String {
    fn from(name: PersonName) -> Self {
        name.as_str().to_owned()
    }
}

impl fmt::Display for PersonName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_plain_words() {
        for name in ["a", "ada", "ada.l", "b-2", &"x".repeat(63)] {
            assert_eq!(PersonName::parse(name).unwrap().as_str(), name);
        }
        let long = "x".repeat(64);
        for wrong in ["", "Ada", "a b", "-a", "a-", ".a", "a/b", "a:b", "ad\u{e4}", "a\n", &*long] {
            assert_eq!(PersonName::parse(wrong), Err(InvalidPersonName), "{wrong:?}");
        }
    }
}
