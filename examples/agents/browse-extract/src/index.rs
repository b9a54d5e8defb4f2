//! Inverted index of passages in memory, ranked by Okapi BM25: small enough for a component, and
//! sufficient for a few hundred documents.

use std::collections::{BTreeMap, BTreeSet};

/// Saturation of repeated words (k1 of BM25).
const SATURATION: f64 = 1.2;

/// Penalty of longer passages (b of BM25).
const LENGTH: f64 = 0.75;

/// Stop words, which occur in every passage and distinguish none.
const STOP: &[&str] = &[
    "a", "an", "and", "are", "as", "at", "be", "by", "can", "do", "does", "for", "from", "has",
    "have", "how", "i", "in", "is", "it", "its", "of", "on", "or", "that", "the", "their", "there",
    "this", "to", "was", "were", "what", "when", "where", "which", "who", "why", "will", "with",
    "you", "your",
];

/// Searchable passages, numbered in the order in which they were added.
#[derive(Default)]
pub(crate) struct Index {
    /// Passages of each word, with the number of occurrences.
    postings: BTreeMap<String, Vec<(usize, u32)>>,
    /// Number of words of each passage.
    lengths: Vec<usize>,
}

impl Index {
    /// Adds a passage.
    pub(crate) fn add(&mut self, text: &str) {
        let number = self.lengths.len();
        let (mut counts, mut length) = (BTreeMap::<String, u32>::new(), 0);
        for word in words(text) {
            *counts.entry(word).or_default() += 1;
            length += 1;
        }
        self.lengths.push(length);
        for (word, count) in counts {
            self.postings.entry(word).or_default().push((number, count));
        }
    }

    /// Passages with any of the query's words and their scores, best first. Equal scores keep the
    /// order of addition.
    pub(crate) fn search(&self, query: &str) -> Vec<(usize, f64)> {
        let total = self.lengths.len() as f64;
        let mean = self.lengths.iter().sum::<usize>() as f64 / total.max(1.0);
        let mut scores = BTreeMap::<usize, f64>::new();
        for word in words(query).collect::<BTreeSet<_>>() {
            let Some(found) = self.postings.get(&word) else { continue };
            let holding = found.len() as f64;
            let rarity = (1.0 + (total - holding + 0.5) / (holding + 0.5)).ln();
            for &(number, count) in found {
                let count = f64::from(count);
                let length = 1.0 - LENGTH + LENGTH * self.lengths[number] as f64 / mean.max(1.0);
                let score = rarity * count * (SATURATION + 1.0) / (count + SATURATION * length);
                *scores.entry(number).or_default() += score;
            }
        }
        let mut ranked: Vec<_> = scores.into_iter().collect();
        ranked.sort_by(|(a, one), (b, other)| other.total_cmp(one).then(a.cmp(b)));
        ranked
    }
}

/// Index terms of a text: words in lower case without stop words, and without a plural "s".
pub(crate) fn words(text: &str) -> impl Iterator<Item = String> + '_ {
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    let words = words.map(str::to_lowercase).filter(|word| !STOP.contains(&word.as_str()));
    words.map(|mut word| {
        if word.len() > 3 && word.ends_with('s') && !word.ends_with("ss") {
            word.pop();
        }
        word
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passage_with_rare_words_ranks_first() {
        let mut index = Index::default();
        let passages = [
            "Rust is a language for systems.",
            "WebAssembly components are sandboxed: a component holds what it is granted.",
            "The sandbox of a browser.",
            "",
        ];
        passages.iter().for_each(|passage| index.add(passage));
        let ranked = index.search("What may a WebAssembly component do in its sandbox?");
        assert_eq!(ranked.iter().map(|(number, _)| *number).collect::<Vec<_>>(), [1, 2]);
        assert!(index.search("the of and").is_empty() && index.search("").is_empty());
        assert!(Index::default().search("x").is_empty());
    }

    #[test]
    fn short_passage_outranks_longer_ones() {
        let mut index = Index::default();
        ["tea", "tea tea coffee", "tea coffee milk sugar water and much more of it", "coffee"]
            .iter()
            .for_each(|passage| index.add(passage));
        let ranked: Vec<_> = index.search("teas").into_iter().map(|(number, _)| number).collect();
        assert_eq!(ranked, [0, 1, 2]);
    }
}
