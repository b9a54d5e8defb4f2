//! Okapi BM25: ranks texts for a query by their common words.
//!
//! S. Robertson and H. Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond" (2009).
//! The caller supplies the word counts of a text, so that an index can store them.

use std::collections::BTreeMap;

/// Saturation parameter `k1` for repeated words: the usual value.
pub(crate) const K1: f64 = 1.2;

/// Length normalisation parameter `b`.
pub(crate) const B: f64 = 0.75;

/// Maximum length of a word, in bytes; longer ones are no words of a language.
pub(crate) const MAX_WORD: usize = 40;

/// Stop words: the function words of English, and `s` and `t` that apostrophes leave behind.
/// Sorted.
const STOP_WORDS: &[&str] = &[
    "a", "an", "and", "are", "as", "at", "be", "been", "but", "by", "can", "did", "do", "does",
    "for", "from", "had", "has", "have", "he", "her", "his", "how", "i", "if", "in", "into", "is",
    "it", "its", "me", "my", "no", "not", "of", "on", "or", "our", "please", "s", "she", "so",
    "such", "t", "that", "the", "their", "them", "then", "there", "these", "they", "this", "to",
    "was", "we", "were", "what", "when", "where", "which", "who", "why", "will", "with", "would",
    "you", "your",
];

/// Number of occurrences of each word in a text.
pub type WordCounts = BTreeMap<String, u32>;

/// Statistics of all texts together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Collection {
    /// Number of texts.
    pub texts: u64,
    /// Total number of words, with repetitions.
    pub words: u64,
}

/// Words of a text without stop words, in lower case and in order. Splits at characters that are
/// neither letter nor digit; a word in `camelCase` yields its parts and the whole word, because
/// people write both.
pub fn words(text: &str) -> impl Iterator<Item = String> + '_ {
    runs(text).flat_map(|WordRun { full, parts }| {
        let parts = if parts.len() > 1 { parts } else { Vec::new() };
        std::iter::once(full).chain(parts).filter(|word| tells(word))
    })
}

/// Sequence of letters and digits.
pub struct WordRun {
    /// The whole sequence, in lower case.
    pub full: String,
    /// Parts of `camelCase`, in lower case; one part if the sequence has no hump.
    pub parts: Vec<String>,
}

/// Sequences of letters and digits in a text, including stop words.
pub fn runs(text: &str) -> impl Iterator<Item = WordRun> + '_ {
    let runs = text.split(|c: char| !c.is_alphanumeric()).filter(|run| !run.is_empty());
    runs.map(|run| {
        let mut parts = vec![String::new()];
        let mut was_low = false;
        for c in run.chars() {
            if was_low && c.is_uppercase() {
                parts.push(String::new());
            }
            was_low = c.is_lowercase();
            if let Some(part) = parts.last_mut() {
                part.extend(c.to_lowercase());
            }
        }
        WordRun { full: run.to_lowercase(), parts }
    })
}

/// True if a word, in lower case, is neither a stop word nor too long.
pub fn tells(word: &str) -> bool {
    !word.is_empty() && word.len() <= MAX_WORD && STOP_WORDS.binary_search(&word).is_err()
}

/// Counts the first `max_words` words of a text.
pub fn count(text: &str, max_words: usize) -> WordCounts {
    let mut counts = WordCounts::new();
    for word in words(text).take(max_words) {
        let count = counts.entry(word).or_default();
        *count = count.saturating_add(1);
    }
    counts
}

/// Inverse document frequency of a word that `with` texts of the collection contain: higher for
/// rarer words, never negative.
pub fn weight(collection: Collection, with: u64) -> f64 {
    let (texts, with) = (real(collection.texts), real(with.min(collection.texts)));
    ((texts - with + 0.5) / (with + 0.5)).ln_1p()
}

/// Contribution of a word with this weight to the score of a text of `length` words that contains
/// it `times` times.
pub fn score(collection: Collection, weight: f64, times: u32, length: u64) -> f64 {
    let average = real(collection.words) / real(collection.texts).max(1.0);
    let share = if average > 0.0 { real(length) / average } else { 1.0 };
    let times = f64::from(times);
    weight * times * (K1 + 1.0) / (times + K1 * (1.0 - B + B * share))
}

#[expect(clippy::cast_precision_loss, reason = "there are never 2^52 texts")]
fn real(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn split(text: &str) -> Vec<String> {
        words(text).collect()
    }

    #[test]
    fn words_split_at_punctuation_and_humps() {
        assert_eq!(
            split("The API-key of dbHost, SQLite2 and Größe!"),
            ["api", "key", "dbhost", "db", "host", "sqlite2", "größe"]
        );
        assert_eq!(split("the and of"), [""; 0]);
        assert_eq!(split(&"x".repeat(MAX_WORD + 1)), [""; 0]);
        assert!(STOP_WORDS.is_sorted());
    }

    #[test]
    fn rare_words_and_short_texts_score_higher() {
        let collection = Collection { texts: 100, words: 1_000 };
        let (rare, common) = (weight(collection, 1), weight(collection, 90));
        assert!(rare > common && common > 0.0);
        assert!(score(collection, rare, 2, 10) > score(collection, rare, 1, 10));
        assert!(score(collection, rare, 1, 10) > score(collection, rare, 1, 100));
        assert!(score(Collection::default(), weight(Collection::default(), 0), 1, 0).is_finite());
    }

    proptest! {
        #[test]
        fn any_text_yields_bounded_words(text in ".{0,200}") {
            for word in words(&text) {
                prop_assert!(!word.is_empty() && word.len() <= MAX_WORD);
            }
            let all: u32 = count(&text, 10).values().sum();
            prop_assert!(all <= 10);
        }

        #[test]
        fn scores_are_finite_and_not_negative(texts in 0u64..1_000_000, words in 0u64..1_000_000_000, with: u64, times: u32, length: u64) {
            let collection = Collection { texts, words };
            let weight = weight(collection, with);
            prop_assert!(weight >= 0.0 && weight.is_finite());
            let score = score(collection, weight, times, length);
            prop_assert!(score >= 0.0 && score.is_finite());
        }
    }
}
