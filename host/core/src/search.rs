//! Search in the texts of tasks: the text to index, the terms of a query, and excerpts.

use a2a_hub_protocol::{
    error::A2aError,
    message::{Message, Role, joined_text},
    operation::ExcerptPart,
    task::Task,
};

/// Limit of each of a task's two texts, in bytes. Words behind it are not found.
pub const MAX_TEXT: usize = 64 << 10;

/// Limit of a query, in characters.
pub const MAX_QUERY: usize = 500;

/// Limit of the terms of a query.
pub const MAX_TERMS: usize = 16;

/// Character before a hit in a marked excerpt. Indexed texts have no control characters.
pub const HIT_BEGINS: char = '\u{1}';

/// Character after a hit in a marked excerpt.
pub const HIT_ENDS: char = '\u{2}';

/// Separator between the characters of scripts that write no spaces between words, so that each
/// character is a word. Texts from outside lose it.
const SEPARATOR: char = '\u{200b}';

/// Texts of a task as an index stores them: without control characters, and limited to
/// [`MAX_TEXT`] bytes each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IndexedText {
    /// Messages of the client, oldest first.
    pub requests: String,
    /// Latest message of the agent, then its artifacts and earlier messages.
    pub answers: String,
}

impl IndexedText {
    /// Text parts of a task's messages and artifacts.
    pub fn of_task(task: &Task) -> Self {
        let of_role = |role| task.history.iter().filter(move |message| message.role == role);
        let latest = task.status.message.iter().map(Message::joined_text);
        let artifacts = task.artifacts.iter().map(|artifact| joined_text(&artifact.parts));
        let earlier = of_role(Role::Agent).map(Message::joined_text);
        Self {
            requests: prepared(of_role(Role::User).map(Message::joined_text)),
            answers: prepared(latest.chain(artifacts).chain(earlier)),
        }
    }
}

/// Joins texts, and prepares them for the index.
fn prepared(texts: impl Iterator<Item = String>) -> String {
    let mut joined = String::new();
    for text in texts.filter(|text| !text.is_empty()) {
        if !joined.is_empty() {
            joined.push('\n');
        }
        push_prepared(&mut joined, &text);
        if joined.len() > MAX_TEXT {
            joined.truncate(joined.floor_char_boundary(MAX_TEXT));
            break;
        }
    }
    joined
}

/// Appends `text` without control characters, until the whole exceeds [`MAX_TEXT`] bytes.
fn push_prepared(to: &mut String, text: &str) {
    for c in text.chars().filter(|c| *c != SEPARATOR) {
        if to.len() > MAX_TEXT {
            break;
        }
        let is_single = is_word_by_itself(c);
        if is_single {
            to.push(SEPARATOR);
        }
        to.push(if c.is_control() && c != '\n' { ' ' } else { c });
        if is_single {
            to.push(SEPARATOR);
        }
    }
}

/// True for a character of a script without spaces between words: Han, Hiragana, Katakana, Thai,
/// Lao, Khmer and Burmese.
fn is_word_by_itself(c: char) -> bool {
    matches!(
        c,
        '\u{3040}'..='\u{30ff}'
            | '\u{3400}'..='\u{4dbf}'
            | '\u{4e00}'..='\u{9fff}'
            | '\u{f900}'..='\u{faff}'
            | '\u{20000}'..='\u{3ffff}'
            | '\u{e00}'..='\u{eff}'
            | '\u{1000}'..='\u{109f}'
            | '\u{1780}'..='\u{17ff}'
    )
}

/// Term of a query: words that follow one another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchTerm {
    /// The words, as the user wrote them, without control characters.
    pub text: String,
    /// True if the last word may be the beginning of a longer one.
    pub is_prefix: bool,
}

/// Terms of a query, all of which a task must contain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchTerms(Vec<SearchTerm>);

impl SearchTerms {
    /// Parses a query of words, of `"phrases in quotation marks"`, and of word beginnings with a
    /// trailing `*`. Everything else is text: a query has no syntax errors.
    ///
    /// # Errors
    ///
    /// If the query is longer than [`MAX_QUERY`], has more than [`MAX_TERMS`] terms, or names no
    /// word.
    pub fn parse(query: &str) -> Result<Self, A2aError> {
        let refused = |why: String| Err(A2aError::invalid("query", why));
        if query.chars().count() > MAX_QUERY {
            return refused(format!("must have at most {MAX_QUERY} characters"));
        }
        let mut terms = Vec::new();
        // Every second piece was between quotation marks; a missing one is taken as the end.
        for (number, piece) in query.split('"').enumerate() {
            if number % 2 == 1 {
                terms.push((piece, false));
                continue;
            }
            if let Some(rest) = piece.strip_prefix('*')
                && let Some(quoted) = terms.last_mut().filter(|_| number > 0)
            {
                quoted.1 = true;
                terms.extend(rest.split_whitespace().map(|word| (word, false)));
            } else {
                terms.extend(piece.split_whitespace().map(|word| (word, false)));
            }
        }
        let terms = terms.into_iter().filter_map(|(text, is_prefix)| term(text, is_prefix));
        let terms: Vec<_> = terms.collect();
        match terms.len() {
            0 => refused("must name a word to search for, such as `flaky test`".to_owned()),
            count if count > MAX_TERMS => {
                refused(format!("must have at most {MAX_TERMS} words and phrases, not {count}"))
            }
            _ => Ok(Self(terms)),
        }
    }

    /// The terms.
    pub fn terms(&self) -> &[SearchTerm] {
        &self.0
    }

    /// Marked excerpt of a task's texts, if they contain all terms: the search of a store without
    /// an index.
    pub fn find_in(&self, text: &IndexedText) -> Option<String> {
        let [requests, answers] = [&text.requests, &text.answers].map(|text| TextWords::of(text));
        let hit =
            |term: &SearchTerm, words: &TextWords<'_>| words.find(&TextWords::of(&term.text), term);
        let mut first = None;
        for term in &self.0 {
            let found = hit(term, &answers).map(|at| (&text.answers, at));
            let found = found.or_else(|| hit(term, &requests).map(|at| (&text.requests, at)))?;
            first.get_or_insert(found);
        }
        let (text, (begin, end)) = first?;
        let around = |text: &str, latest: bool| -> String {
            if latest {
                let skipped = text.chars().count().saturating_sub(EXCERPT);
                text.chars().skip(skipped).collect()
            } else {
                text.chars().take(EXCERPT).collect()
            }
        };
        let (before, hit, after) = (&text[..begin], &text[begin..end], &text[end..]);
        let (before, after) = (around(before, true), around(after, false));
        Some(format!("{before}{HIT_BEGINS}{hit}{HIT_ENDS}{after}"))
    }
}

/// Characters before and after the hit of an excerpt.
const EXCERPT: usize = 60;

/// Term of this text; none without a letter or digit.
fn term(text: &str, is_prefix: bool) -> Option<SearchTerm> {
    let is_prefix = is_prefix || text.ends_with('*');
    let mut prepared = String::new();
    push_prepared(&mut prepared, text);
    let has_word = prepared.chars().any(char::is_alphanumeric);
    has_word.then_some(SearchTerm { text: prepared, is_prefix })
}

/// Words of a text in lower case, each with its place in bytes.
struct TextWords<'a>(Vec<(String, usize, &'a str)>);

impl<'a> TextWords<'a> {
    fn of(text: &'a str) -> Self {
        let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
        let begins = |word: &str| word.as_ptr().addr() - text.as_ptr().addr();
        Self(words.map(|word| (word.to_lowercase(), begins(word), word)).collect())
    }

    /// Byte range of the first occurrence of a term's words.
    fn find(&self, words: &TextWords<'_>, term: &SearchTerm) -> Option<(usize, usize)> {
        let last = words.0.len().checked_sub(1)?;
        let fits = |(at, (wanted, ..)): (usize, &(String, usize, &str)), known: &str| {
            if term.is_prefix && at == last {
                known.starts_with(&**wanted)
            } else {
                known == wanted
            }
        };
        let found = self.0.windows(words.0.len()).find(|window| {
            let mut pairs = words.0.iter().enumerate().zip(window.iter());
            pairs.all(|(wanted, (known, ..))| fits(wanted, known))
        })?;
        let ((_, begin, _), (_, end, word)) = (found.first()?, found.last()?);
        Some((*begin, end + word.len()))
    }
}

/// Parts of a marked excerpt, in one line.
pub fn excerpt(marked: &str) -> Vec<ExcerptPart> {
    let mut parts: Vec<ExcerptPart> = Vec::new();
    let (mut text, mut is_hit) = (String::new(), false);
    let mut end = |text: &mut String, hit: bool| {
        if !text.is_empty() {
            parts.push(ExcerptPart { text: std::mem::take(text), hit });
        }
    };
    for c in marked.chars().filter(|c| *c != SEPARATOR) {
        match c {
            HIT_BEGINS | HIT_ENDS => {
                end(&mut text, is_hit);
                is_hit = c == HIT_BEGINS;
            }
            c if c.is_whitespace() || c.is_control() => text.push(' '),
            c => text.push(c),
        }
    }
    end(&mut text, is_hit);
    parts
}

/// Number of an entry in the order of its task's creation, by the task's id: a UUID of version 7,
/// of which it has the milliseconds and the first 15 random bits. 0 for any other id.
pub fn order_of(task: &str) -> i64 {
    let digits: String = task.chars().filter(|c| *c != '-').take(20).collect();
    let hex = |from: usize, to: usize| {
        digits.get(from..to).and_then(|digits| i64::from_str_radix(digits, 16).ok())
    };
    match (hex(0, 12), hex(13, 16), hex(16, 20)) {
        (Some(millis), Some(first), Some(rest)) if digits.get(12..13) == Some("7") => {
            ((millis & ((1 << 47) - 1)) << 15) | (first << 3) | ((rest >> 11) & 7)
        }
        (_, _, _) => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use a2a_hub_protocol::{
        id::{ArtifactId, ContextId, TaskId},
        message::Part,
        task::{Artifact, TaskState, TaskStatus},
    };
    use proptest::prelude::*;

    fn terms(query: &str) -> Vec<(String, bool)> {
        let parsed = SearchTerms::parse(query).map(|terms| terms.0).unwrap_or_default();
        parsed.into_iter().map(|term| (term.text, term.is_prefix)).collect()
    }

    fn text(requests: &str, answers: &str) -> IndexedText {
        IndexedText { requests: requests.to_owned(), answers: answers.to_owned() }
    }

    #[test]
    fn query_is_words_phrases_and_prefixes() {
        for (query, wanted) in [
            ("flaky test", vec![("flaky", false), ("test", false)]),
            ("\"flaky test\" pars*", vec![("flaky test", false), ("pars*", true)]),
            ("\"flaky te\"* x", vec![("flaky te", true), ("x", false)]),
            ("\"no end", vec![("no end", false)]),
            ("* \"\" - ( OR", vec![("OR", false)]),
            ("a:b NEAR(c", vec![("a:b", false), ("NEAR(c", false)]),
            ("tab\tnul\u{0}l", vec![("tab", false), ("nul l", false)]),
        ] {
            let wanted: Vec<_> = wanted.into_iter().map(|(text, p)| (text.to_owned(), p)).collect();
            assert_eq!(terms(query), wanted, "{query}");
        }
        let many = "x ".repeat(MAX_TERMS + 1);
        let long = "x".repeat(MAX_QUERY + 1);
        for refused in ["", "  ", "*", "\"\"", "--- ()", &many, &long] {
            let why = SearchTerms::parse(refused).unwrap_err().to_string();
            assert!(why.contains("must"), "{why}");
        }
    }

    #[test]
    fn text_has_messages_artifacts_and_no_control_characters() {
        let said = |role, text: &str| Message::text(role, text);
        let latest = Some(said(Role::Agent, "done\u{1b}[31m"));
        let mut task = Task {
            id: TaskId::new("t"),
            context_id: ContextId::new("c"),
            status: TaskStatus {
                state: TaskState::Completed,
                message: latest,
                timestamp: "T".into(),
            },
            artifacts: vec![Artifact::new(ArtifactId::new("a"), vec![Part::text("made")])],
            history: vec![
                said(Role::User, "fix it"),
                said(Role::Agent, "how?"),
                said(Role::User, "so"),
            ],
            metadata: None,
        };
        let indexed = IndexedText::of_task(&task);
        assert_eq!(indexed, text("fix it\nso", "done [31m\nmade\nhow?"));
        task.history = vec![said(Role::User, &"ä".repeat(MAX_TEXT))];
        let long = IndexedText::of_task(&task).requests;
        assert!(long.len() <= MAX_TEXT && long.len() > MAX_TEXT - 4, "{}", long.len());
    }

    #[test]
    fn terms_are_found_in_either_text() {
        let found = |query: &str, requests: &str, answers: &str| {
            SearchTerms::parse(query).unwrap().find_in(&text(requests, answers))
        };
        assert_eq!(found("pars* slow", "Slow parser", "").unwrap(), "Slow \u{1}parser\u{2}");
        assert_eq!(found("slow fast", "slow", "it is FAST").unwrap(), "\u{1}slow\u{2}");
        assert!(found("\"slow parser\"", "parser slow", "").is_none());
        assert!(found("pars", "parser", "").is_none());
        let parts = excerpt("a\n\u{1}b\u{2}c\u{1b}");
        let parts: Vec<_> = parts.iter().map(|part| (part.text.as_str(), part.hit)).collect();
        assert_eq!(parts, [("a ", false), ("b", true), ("c ", false)]);
    }

    #[test]
    fn characters_of_japanese_are_words() {
        let mut task = String::new();
        push_prepared(&mut task, "遅いテスト");
        let indexed = text(&task, "");
        let marked = SearchTerms::parse("テスト").unwrap().find_in(&indexed).unwrap();
        let hit: String =
            excerpt(&marked).into_iter().filter(|part| part.hit).map(|part| part.text).collect();
        assert_eq!(hit, "テスト");
    }

    #[test]
    fn entries_are_in_order_of_creation() {
        let ids: Vec<_> = (0..200).map(|_| TaskId::fresh()).collect();
        let numbers: Vec<_> = ids.iter().map(|id| order_of(id.as_str())).collect();
        assert!(numbers.iter().all(|number| *number > 0), "{numbers:?}");
        let millis = |number: &i64| number >> 15;
        assert!(numbers.is_sorted_by_key(millis), "{numbers:?}");
        for other in ["", "t", "é".repeat(40).as_str(), "0199aaaa-0001-4000-8000-00000000000f"] {
            assert_eq!(order_of(other), 0, "{other}");
        }
    }

    proptest! {
        #[test]
        fn any_query_is_parsed_or_refused(query in "\\PC*", text in "\\PC{0,80}") {
            if let Ok(terms) = SearchTerms::parse(&query) {
                prop_assert!(terms.terms().len() <= MAX_TERMS);
                prop_assert!(terms.terms().iter().all(|term| !term.text.contains(['"', '\0'])));
                let indexed = IndexedText { requests: text, answers: query.clone() };
                if let Some(marked) = terms.find_in(&indexed) {
                    prop_assert!(excerpt(&marked).iter().any(|part| part.hit));
                }
            }
        }
    }
}
