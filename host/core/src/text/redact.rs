//! Redaction of secrets that programs are passed, in the output of agents.
//!
//! Only the literal secret is found. An encoded secret (escaped, in base64) is not.

use aho_corasick::{AhoCorasick, AhoCorasickBuilder, MatchKind};
use std::borrow::Cow;

/// Suffixes of the names of variables and settings that contain secrets, in any case.
const ENDINGS: &[&str] = &["KEY", "TOKEN", "SECRET", "PASSWORD", "CREDENTIALS"];

/// Minimum length of a secret in bytes; shorter values are words that can occur anywhere.
pub const MIN_BYTES: usize = 8;

/// True if a variable or setting of this name contains a secret.
pub fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    ENDINGS.iter().any(|ending| name.ends_with(ending))
}

/// Secrets of one agent.
#[derive(Debug, Default)]
pub struct Secrets {
    values: Vec<String>,
    /// Replacement for each secret.
    marks: Vec<String>,
    /// Finds any of the secrets; `None` if no secrets exist.
    finder: Option<AhoCorasick>,
}

impl Secrets {
    /// Secrets among `variables`, given by name and value: those with a secret name and a
    /// sufficient length.
    pub fn among(variables: impl IntoIterator<Item = (String, String)>) -> Self {
        Self::new(variables.into_iter().filter(|(name, _)| is_secret(name)))
    }

    /// All of these values, given by name and value, that have a sufficient length, independent of
    /// their names.
    pub fn new(named: impl IntoIterator<Item = (String, String)>) -> Self {
        let (mut values, mut marks) = (Vec::new(), Vec::new());
        for (name, value) in named {
            // Trims the value, because programs trim a value that a user exported from a file.
            let value = value.trim();
            if value.len() >= MIN_BYTES {
                values.push(value.to_owned());
                marks.push(format!("[redacted {name}]"));
            }
        }
        // Fails only beyond 2^31 bytes of secrets, which no environment has.
        let finder =
            AhoCorasickBuilder::new().match_kind(MatchKind::LeftmostLongest).build(&values);
        let finder = finder.ok().filter(|_| !values.is_empty());
        Self { values, marks, finder }
    }

    /// True if no secrets exist.
    pub fn is_empty(&self) -> bool {
        self.finder.is_none()
    }

    /// Redacts a complete text.
    pub fn hide<'t>(&self, text: &'t str) -> Cow<'t, str> {
        match &self.finder {
            Some(finder) if finder.is_match(text) => {
                Cow::Owned(finder.replace_all(text, &self.marks))
            }
            Some(_) | None => Cow::Borrowed(text),
        }
    }

    /// Redacts the bytes of a complete file.
    pub fn hide_bytes<'t>(&self, bytes: &'t [u8]) -> Cow<'t, [u8]> {
        match &self.finder {
            Some(finder) if finder.is_match(bytes) => {
                Cow::Owned(finder.replace_all_bytes(bytes, &self.marks))
            }
            Some(_) | None => Cow::Borrowed(bytes),
        }
    }

    /// Start of the longest suffix of `bytes` that may be the beginning of a secret. In text it is
    /// a character boundary, because a secret begins with a character.
    fn doubtful(&self, bytes: &[u8]) -> usize {
        let longest = self.values.iter().map(String::len).max().unwrap_or(0);
        let first = (bytes.len() + 1).saturating_sub(longest);
        let begins = |at: &usize| {
            let end = &bytes[*at..];
            let values = self.values.iter().map(String::as_bytes);
            { values }.any(|value| value.len() > end.len() && value.starts_with(end))
        };
        (first..bytes.len()).find(begins).unwrap_or(bytes.len())
    }
}

/// Redacts a text that arrives in pieces. Text that may be the beginning of a secret is held back
/// until the next piece.
#[derive(Debug, Default)]
pub struct Growing {
    pending: String,
}

impl Growing {
    /// Adds a piece, and returns the text that is safe to send.
    pub fn push(&mut self, secrets: &Secrets, piece: &str) -> String {
        let Some(finder) = &secrets.finder else { return piece.to_owned() };
        self.pending.push_str(piece);
        let match_end = finder.find_iter(&self.pending).last().map_or(0, |found| found.end());
        let (done, rest) = self.pending.split_at(match_end);
        let (clear, doubtful) = rest.split_at(secrets.doubtful(rest.as_bytes()));
        let output = finder.replace_all(done, &secrets.marks) + clear;
        self.pending = doubtful.to_owned();
        output
    }

    /// Ends the text, and returns the held-back part, which is no secret.
    pub fn finish(&mut self) -> String {
        std::mem::take(&mut self.pending)
    }

    /// True if no text is held back.
    pub fn is_flushed(&self) -> bool {
        self.pending.is_empty()
    }
}

/// Redacts bytes that arrive in pieces, such as a response body. Bytes that may be the beginning of
/// a secret are held back.
#[derive(Debug, Default)]
pub struct GrowingBytes {
    pending: Vec<u8>,
}

impl GrowingBytes {
    /// Adds a piece, and returns the bytes that are safe to send.
    pub fn push(&mut self, secrets: &Secrets, piece: &[u8]) -> Vec<u8> {
        let Some(finder) = &secrets.finder else { return piece.to_owned() };
        self.pending.extend_from_slice(piece);
        let match_end = finder.find_iter(&self.pending).last().map_or(0, |found| found.end());
        let (done, rest) = self.pending.split_at(match_end);
        let (clear, doubtful) = rest.split_at(secrets.doubtful(rest));
        let mut output = finder.replace_all_bytes(done, &secrets.marks);
        output.extend_from_slice(clear);
        self.pending = doubtful.to_owned();
        output
    }

    /// Ends the bytes, and returns the held-back part, which is no secret.
    pub fn finish(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.pending)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn secrets(variables: &[(&str, &str)]) -> Secrets {
        let owned = variables.iter().map(|&(name, value)| (name.to_owned(), value.to_owned()));
        Secrets::among(owned)
    }

    /// Text that a client gets by joining the pieces.
    fn joined<'t>(secrets: &Secrets, pieces: impl IntoIterator<Item = &'t str>) -> String {
        let mut growing = Growing::default();
        let told: String = pieces.into_iter().map(|piece| growing.push(secrets, piece)).collect();
        told + &growing.finish()
    }

    #[test]
    fn secret_is_recognised_by_variable_name() {
        let cases = [
            ("ANTHROPIC_API_KEY", "sk-ant-123", true),
            ("github_token", "ghp_12345678", true),
            ("DB_PASSWORD", "12345678", true),
            ("DB_PASSWORD", "1234567", false),
            ("CLIENT_SECRET", " \nabcdefgh\n", true),
            ("GOOGLE_APPLICATION_CREDENTIALS", "/key.json", true),
            ("KEYBOARD", "/dev/input", false),
            ("HOME", "/home/somebody", false),
        ];
        for (name, value, secret) in cases {
            assert_eq!(!secrets(&[(name, value)]).is_empty(), secret, "{name}");
        }
    }

    #[test]
    fn mark_replaces_secret() {
        let some =
            secrets(&[("A_KEY", "aaaa-1111"), ("B_TOKEN", "aaaa-1111-bbbb"), ("C", "cccc-2222")]);
        let cases = [
            ("nothing here", "nothing here"),
            ("aaaa-1111", "[redacted A_KEY]"),
            ("x aaaa-1111-bbbb y", "x [redacted B_TOKEN] y"),
            ("aaaa-1111-bbb", "[redacted A_KEY]-bbb"),
            ("aaaa-1111aaaa-1111", "[redacted A_KEY][redacted A_KEY]"),
            ("cccc-2222", "cccc-2222"),
        ];
        for (text, told) in cases {
            assert_eq!(some.hide(text), told);
            assert_eq!(some.hide_bytes(text.as_bytes()), told.as_bytes());
            assert_eq!(joined(&some, [text]), told);
        }
    }

    #[test]
    fn only_possible_secret_prefix_is_held_back() {
        let some = secrets(&[("A_KEY", "abcdefgh")]);
        let mut growing = Growing::default();
        let told = ["hello a", "b", "x abcd", "efgh abc"].map(|piece| growing.push(&some, piece));
        assert_eq!(told, ["hello ", "", "abx ", "[redacted A_KEY] "]);
        assert_eq!(growing.finish(), "abc");
        assert!(growing.is_flushed());
    }

    /// Cuts `text` at these positions, rounded down to character boundaries.
    fn pieces<'t>(text: &'t str, cuts: &[usize]) -> Vec<&'t str> {
        let mut cuts: Vec<_> = cuts.iter().map(|&cut| text.floor_char_boundary(cut)).collect();
        cuts.extend([0, text.len()]);
        cuts.sort_unstable();
        cuts.windows(2).map(|ends| &text[ends[0]..ends[1]]).collect()
    }

    proptest! {
        /// Holds for any cuts. The marks use other letters here, so that they contain no part of a
        /// secret.
        #[test]
        fn secret_split_over_pieces_is_redacted(
            values in proptest::collection::vec("[xyü]{8,12}", 1..4),
            text in proptest::collection::vec("[xyü]{0,9}|[ -]", 0..12),
            picks in proptest::collection::vec(0_usize..4, 0..12),
            cuts in proptest::collection::vec(0_usize..200, 0..20),
        ) {
            let names = ["A_KEY", "B_TOKEN", "C_SECRET"];
            let variables: Vec<_> = names.iter().zip(&values).map(|(&name, value)| (name, value.as_str())).collect();
            let some = secrets(&variables);
            let mut text = text;
            for (at, pick) in picks.into_iter().enumerate() {
                if let Some(value) = values.get(pick) {
                    text.insert((at * 2).min(text.len()), value.clone());
                }
            }
            let text = text.concat();
            let told = joined(&some, pieces(&text, &cuts));
            let mut growing = GrowingBytes::default();
            let cuts: Vec<_> = cuts.iter().map(|&cut| cut.min(text.len())).collect();
            let (mut bytes, mut from) = (Vec::new(), 0);
            for to in BTreeSet::from_iter(cuts).into_iter().chain([text.len()]) {
                bytes.extend(growing.push(&some, &text.as_bytes()[from..to]));
                from = to;
            }
            bytes.extend(growing.finish());
            prop_assert_eq!(String::from_utf8(bytes).unwrap(), told.clone(), "bytes are cut anywhere");
            for value in &values {
                prop_assert!(!told.contains(value), "{value} in {told}");
            }
            if values.iter().all(|value| !text.contains(value)) {
                prop_assert_eq!(told, text);
            }
        }
    }
}
