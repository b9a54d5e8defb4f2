//! Names of topics, and patterns of subscribers, in the form of MQTT: levels separated by `/`, `+`
//! for one level, and a last `#` for the level above and all below.
//!
//! MQTT's wildcards reach a program from a shell without quotes; those of NATS (`*` and `>`) do
//! not.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Maximum length of a name or pattern, in bytes.
const MAX_NAME: usize = 256;

/// Maximum number of levels.
const MAX_LEVELS: usize = 16;

/// Wildcard for one level.
const ONE: &str = "+";

/// Wildcard for the rest.
const REST: &str = "#";

/// Name of a topic, such as `builds/main/failed`: levels of ASCII letters, digits and `-_.:@`.
#[derive(
    Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, Serialize, JsonSchema,
)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct TopicName(String);

/// Pattern of topics: a name, in which a level may be `+`, and the last one `#`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct TopicPattern(String);

/// Error of a name or pattern.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TopicNameError {
    /// The text is empty.
    #[error("it is empty; name a topic such as `builds/main`")]
    Empty,
    /// The text is too long.
    #[error("it has {0} bytes, and {MAX_NAME} at most are allowed")]
    TooLong(usize),
    /// The text has too many levels.
    #[error("it has {0} levels, and {MAX_LEVELS} at most are allowed")]
    TooDeep(usize),
    /// A level is empty.
    #[error("a level is empty; write no `/` at the beginning or end, and no `//`")]
    EmptyLevel,
    /// A wildcard stands in a name.
    #[error("`{0}` is a wildcard; only subscribers may write it")]
    Wildcard(&'static str),
    /// A wildcard is only a part of its level.
    #[error("`{0}` stands for whole levels; write it alone between two `/`")]
    PartOfLevel(char),
    /// The wildcard for the rest is not the last level.
    #[error("`#` stands for all levels below, so it must be the last one; `+` stands for one")]
    RestNotLast,
    /// A character is not allowed.
    #[error("{0} is not allowed; take letters, digits and `-_.:@`, and separate levels by `/`{1}")]
    Character(String, &'static str),
}

impl TopicName {
    /// Parses a name.
    ///
    /// # Errors
    ///
    /// See [`TopicNameError`].
    pub fn parse(text: &str) -> Result<Self, TopicNameError> {
        for level in levels(text)? {
            match level {
                ONE => return Err(TopicNameError::Wildcard(ONE)),
                REST => return Err(TopicNameError::Wildcard(REST)),
                level => check_level(level)?,
            }
        }
        Ok(Self(text.to_owned()))
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TopicPattern {
    /// Parses a pattern.
    ///
    /// # Errors
    ///
    /// See [`TopicNameError`].
    pub fn parse(text: &str) -> Result<Self, TopicNameError> {
        let levels = levels(text)?;
        let last = levels.len() - 1;
        for (at, level) in levels.into_iter().enumerate() {
            match level {
                ONE => {}
                REST if at == last => {}
                REST => return Err(TopicNameError::RestNotLast),
                level => check_level(level)?,
            }
        }
        Ok(Self(text.to_owned()))
    }

    /// The pattern as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The only topic that matches; none if the pattern has a wildcard.
    pub fn only(&self) -> Option<TopicName> {
        TopicName::parse(&self.0).ok()
    }

    /// True if the topic matches. As in MQTT, `a/#` matches `a` as well.
    pub fn matches(&self, topic: &TopicName) -> bool {
        let mut name = topic.0.split('/');
        for wanted in self.0.split('/') {
            if wanted == REST {
                return true;
            }
            match name.next() {
                Some(level) if wanted == ONE || wanted == level => {}
                Some(_) | None => return false,
            }
        }
        name.next().is_none()
    }
}

/// Levels of a text of allowed size.
fn levels(text: &str) -> Result<Vec<&str>, TopicNameError> {
    if text.is_empty() {
        return Err(TopicNameError::Empty);
    }
    if text.len() > MAX_NAME {
        return Err(TopicNameError::TooLong(text.len()));
    }
    let levels: Vec<_> = text.split('/').collect();
    if levels.len() > MAX_LEVELS {
        return Err(TopicNameError::TooDeep(levels.len()));
    }
    Ok(levels)
}

fn check_level(level: &str) -> Result<(), TopicNameError> {
    if level.is_empty() {
        return Err(TopicNameError::EmptyLevel);
    }
    let is_allowed = |char: &char| char.is_ascii_alphanumeric() || "-_.:@".contains(*char);
    match level.chars().find(|char| !is_allowed(char)) {
        None => Ok(()),
        Some(wildcard @ ('+' | '#')) => Err(TopicNameError::PartOfLevel(wildcard)),
        Some(char) => {
            let hint = match char {
                '*' => "; `+` stands for one level",
                '>' => "; a last `#` stands for all levels below",
                _ => "",
            };
            let shown = match char.is_ascii_graphic() {
                true => format!("`{char}`"),
                false => format!("the character U+{:04X}", u32::from(char)),
            };
            Err(TopicNameError::Character(shown, hint))
        }
    }
}

impl TryFrom<String> for TopicName {
    type Error = TopicNameError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        Self::parse(&text)
    }
}

impl TryFrom<String> for TopicPattern {
    type Error = TopicNameError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        Self::parse(&text)
    }
}

impl From<TopicName> for String {
    fn from(name: TopicName) -> Self {
        name.0
    }
}

impl From<TopicPattern> for String {
    fn from(pattern: TopicPattern) -> Self {
        pattern.0
    }
}

impl fmt::Display for TopicName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for TopicPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn pattern_matches_as_in_mqtt() {
        for (pattern, name, matches) in [
            ("a/b", "a/b", true),
            ("a/b", "a", false),
            ("a/b", "a/b/c", false),
            ("a/B", "a/b", false),
            ("+", "a", true),
            ("+", "a/b", false),
            ("+/+", "a/b", true),
            ("a/+/c", "a/b/c", true),
            ("a/+/c", "a/c", false),
            ("a/+", "a", false),
            ("#", "a", true),
            ("#", "a/b/c", true),
            ("a/#", "a/b/c", true),
            ("a/#", "a", true),
            ("a/#", "ab", false),
            ("+/b/#", "a/b", true),
            ("+/b/#", "a/c/b", false),
        ] {
            let (parsed, name) = (TopicPattern::parse(pattern), TopicName::parse(name).unwrap());
            assert_eq!(parsed.unwrap().matches(&name), matches, "{pattern} {name}");
        }
    }

    #[test]
    fn hostile_names_are_refused() {
        use TopicNameError as E;
        let character =
            |shown: &str, hint| Err::<TopicName, _>(E::Character(shown.to_owned(), hint));
        for (text, refused) in [
            ("", Err(E::Empty)),
            ("/a", Err(E::EmptyLevel)),
            ("a/", Err(E::EmptyLevel)),
            ("a//b", Err(E::EmptyLevel)),
            ("a/+", Err(E::Wildcard("+"))),
            ("#", Err(E::Wildcard("#"))),
            ("a+b", Err(E::PartOfLevel('+'))),
            ("a/b#", Err(E::PartOfLevel('#'))),
            ("a.*", character("`*`", "; `+` stands for one level")),
            ("a.>", character("`>`", "; a last `#` stands for all levels below")),
            ("a b", character("the character U+0020", "")),
            ("a\u{1b}[2J", character("the character U+001B", "")),
            ("a\0", character("the character U+0000", "")),
            ("\u{202e}a", character("the character U+202E", "")),
            ("a;DROP TABLE", character("`;`", "")),
        ] {
            assert_eq!(TopicName::parse(text), refused, "{text}");
        }
        assert_eq!(TopicName::parse(&"a".repeat(257)), Err(E::TooLong(257)));
        assert_eq!(TopicName::parse(&"a/".repeat(100)), Err(E::TooDeep(101)));
        assert!(TopicName::parse(&vec!["a"; 16].join("/")).is_ok());
        assert_eq!(TopicPattern::parse("#/a"), Err(E::RestNotLast));
        assert_eq!(TopicPattern::parse("a/#b"), Err(E::PartOfLevel('#')));
        assert!(TopicPattern::parse("+/@x.y:z-_/#").is_ok());
        assert!(serde_json::from_str::<TopicName>("\"a b\"").is_err());
    }

    proptest! {
        #[test]
        fn name_matches_itself_and_generalizations(levels in proptest::collection::vec("[a-c]{1,2}", 1..5), at in 0_usize..5) {
            let name = TopicName::parse(&levels.join("/")).unwrap();
            let exact = TopicPattern::parse(name.as_str()).unwrap();
            prop_assert_eq!(exact.only(), Some(name.clone()));
            prop_assert!(exact.matches(&name));
            let mut general = levels.clone();
            let at = at % general.len();
            general[at] = "+".to_owned();
            prop_assert!(TopicPattern::parse(&general.join("/")).unwrap().matches(&name));
            general.truncate(at);
            general.push("#".to_owned());
            let rest = TopicPattern::parse(&general.join("/")).unwrap();
            prop_assert!(rest.matches(&name));
            prop_assert_eq!(rest.only(), None);
        }

        #[test]
        fn any_text_is_parsed_or_refused(text in "\\PC{0,300}") {
            let (name, pattern) = (TopicName::parse(&text), TopicPattern::parse(&text));
            prop_assert!(name.is_err() || pattern.is_ok());
        }
    }
}
