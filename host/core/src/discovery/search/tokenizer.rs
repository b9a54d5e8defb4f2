//! Tokenizer for the search: splits a text into words, drops stop words, and stems the rest.

use crate::bm25::MAX_WORD;
use rust_stemmers::{Algorithm, Stemmer};
use std::borrow::Cow;

/// Maximum size of a text that is read, in bytes: a card may contain 64 KiB, but a useful
/// description is shorter.
const MAX_TEXT: usize = 16 << 10;

/// Stop words: the function words of English, and words that appear in any request to an agent.
/// Sorted.
const STOP_WORDS: &[&str] = &[
    "a",
    "able",
    "about",
    "after",
    "all",
    "also",
    "am",
    "an",
    "and",
    "any",
    "anybody",
    "anyone",
    "are",
    "as",
    "at",
    "be",
    "because",
    "been",
    "before",
    "being",
    "but",
    "by",
    "can",
    "could",
    "did",
    "do",
    "does",
    "doing",
    "done",
    "for",
    "from",
    "get",
    "give",
    "had",
    "has",
    "have",
    "he",
    "help",
    "her",
    "here",
    "him",
    "his",
    "how",
    "i",
    "if",
    "in",
    "into",
    "is",
    "it",
    "its",
    "just",
    "let",
    "like",
    "ll",
    "looking",
    "made",
    "make",
    "many",
    "me",
    "more",
    "most",
    "much",
    "must",
    "my",
    "need",
    "needs",
    "no",
    "not",
    "now",
    "of",
    "off",
    "on",
    "one",
    "or",
    "our",
    "out",
    "over",
    "own",
    "please",
    "re",
    "s",
    "she",
    "should",
    "so",
    "some",
    "somebody",
    "someone",
    "something",
    "such",
    "t",
    "tell",
    "than",
    "that",
    "the",
    "their",
    "them",
    "then",
    "there",
    "these",
    "they",
    "thing",
    "things",
    "this",
    "those",
    "to",
    "too",
    "up",
    "us",
    "use",
    "used",
    "using",
    "ve",
    "very",
    "want",
    "was",
    "we",
    "were",
    "what",
    "when",
    "where",
    "which",
    "while",
    "who",
    "whom",
    "why",
    "will",
    "with",
    "would",
    "you",
    "your",
];

/// Word of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Word {
    /// Original word in lower case.
    pub original: String,
    /// Stem, used for comparison.
    pub stem: String,
}

/// Tokenizer with a stemmer.
pub(super) struct Words {
    stemmer: Stemmer,
}

impl Default for Words {
    fn default() -> Self {
        Self { stemmer: Stemmer::create(Algorithm::English) }
    }
}

impl Words {
    /// The first `max_words` words of a text, without stop words. Ids are split at `-` and `_`, and
    /// at the humps of camelCase.
    pub(super) fn tokenize(&self, text: &str, max_words: usize) -> Vec<Word> {
        let runs = head(text).split(|c: char| !c.is_alphanumeric());
        let tokens = runs.flat_map(humps).map(str::to_lowercase);
        let telling = tokens.filter(|word| {
            word.len() <= MAX_WORD && STOP_WORDS.binary_search(&word.as_str()).is_err()
        });
        let words = telling.filter(|word| !word.is_empty()).map(|original| {
            let stem = match self.stemmer.stem(&original) {
                Cow::Borrowed(stem) => stem.to_owned(),
                Cow::Owned(stem) => stem,
            };
            Word { original, stem }
        });
        words.take(max_words).collect()
    }
}

/// Part of a text that is read.
fn head(text: &str) -> &str {
    &text[..text.floor_char_boundary(MAX_TEXT)]
}

/// Words of `camelCaseSQLText`: `camel`, `Case`, `SQL`, `Text`.
fn humps(run: &str) -> Vec<&str> {
    let chars: Vec<_> = run.char_indices().collect();
    let mut words = Vec::new();
    let mut begin = 0;
    for (n, pair) in chars.windows(2).enumerate() {
        let [(_, one), (at, two)] = pair else { continue };
        let next_is_lower = chars.get(n + 2).is_some_and(|(_, next)| next.is_lowercase());
        let begins =
            two.is_uppercase() && (one.is_lowercase() || (one.is_uppercase() && next_is_lower));
        if begins {
            words.push(&run[begin..*at]);
            begin = *at;
        }
    }
    words.push(&run[begin..]);
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn said(text: &str) -> Vec<String> {
        Words::default().tokenize(text, 100).into_iter().map(|word| word.original).collect()
    }

    #[test]
    fn ids_are_split_into_their_words() {
        for (text, words) in [
            ("git-historian", &["git", "historian"][..]),
            ("unit_test_writer", &["unit", "test", "writer"]),
            ("DataAnalysisAgent", &["data", "analysis", "agent"]),
            ("SQLQuery", &["sql", "query"]),
            ("parseHTML5", &["parse", "html5"]),
            ("iOS", &["i", "os"][1..]),
            ("Größe, bitte!", &["größe", "bitte"]),
            ("what can you do for me", &[]),
            ("", &[]),
        ] {
            assert_eq!(said(text), words, "{text}");
        }
    }

    #[test]
    fn inflected_words_share_one_stem() {
        let stems = |text: &str| {
            Words::default().tokenize(text, 9).into_iter().map(|word| word.stem).collect::<Vec<_>>()
        };
        assert_eq!(stems("translate translation"), stems("translating translations"));
        assert_eq!(stems("reviewed"), stems("reviews"));
    }

    #[test]
    fn stop_words_are_sorted() {
        assert!(STOP_WORDS.is_sorted());
    }

    proptest! {
        #[test]
        fn any_text_is_split_within_limit(text in ".{0,200}", most in 0usize..50) {
            prop_assert!(Words::default().tokenize(&text, most).len() <= most);
        }
    }
}
