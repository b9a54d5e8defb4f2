//! Single line of untrusted text for display: limited in length, and without control characters and
//! characters that reverse or hide text.

use crate::text::terminal::is_deceptive;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Maximum length in characters.
pub const MAX_CHARS: usize = 200;

/// Single line of untrusted text, validated on parsing.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct OneLine(String);

/// Error for a text that is no plain line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotOneLine {
    /// It is empty, or only white space.
    #[error("a line of text is empty; say something or leave it out")]
    Empty,
    /// It is too long.
    #[error("a line of text is longer than {MAX_CHARS} characters; say it shorter")]
    Long,
    /// It contains a line break or deceptive characters.
    #[error(
        "a line of text holds a line break, a control character or one that turns or hides text; write plain text"
    )]
    Deceptive,
}

impl OneLine {
    /// Validates `text`.
    pub fn parse(text: impl Into<String>) -> Result<Self, NotOneLine> {
        let text = text.into();
        if text.trim().is_empty() {
            return Err(NotOneLine::Empty);
        }
        if text.chars().count() > MAX_CHARS {
            return Err(NotOneLine::Long);
        }
        if text.chars().any(is_deceptive) {
            return Err(NotOneLine::Deceptive);
        }
        Ok(Self(text))
    }

    /// The line as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for OneLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl TryFrom<String> for OneLine {
    type Error = NotOneLine;

    fn try_from(text: String) -> Result<Self, NotOneLine> {
        Self::parse(text)
    }
}

impl From<OneLine> for String {
    fn from(line: OneLine) -> Self {
        line.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_single_lines_are_accepted() {
        let cases = [
            ("reads the history with `git log`", Ok(())),
            ("liest die Geschichte, größer", Ok(())),
            ("", Err(NotOneLine::Empty)),
            (" \u{a0} ", Err(NotOneLine::Empty)),
            ("one\ntwo", Err(NotOneLine::Deceptive)),
            ("\u{1b}[2Jgone", Err(NotOneLine::Deceptive)),
            ("txt.\u{202e}exe", Err(NotOneLine::Deceptive)),
            ("a\u{200b}b", Err(NotOneLine::Deceptive)),
        ];
        for (text, wanted) in cases {
            assert_eq!(OneLine::parse(text).map(drop), wanted, "{text}");
        }
        assert_eq!(OneLine::parse("é".repeat(MAX_CHARS)).map(drop), Ok(()));
        assert_eq!(OneLine::parse("é".repeat(MAX_CHARS + 1)).map(drop), Err(NotOneLine::Long));
    }
}
