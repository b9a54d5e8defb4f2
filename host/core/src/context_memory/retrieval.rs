//! Stage 4, retrieval: ranks items for a query by common words (BM25), recency and associations,
//! and finds the parts that a task names.
//!
//! The ranked items are bounded: for each word of the query, only the newest items with it are
//! considered. So a recall takes as long among a hundred thousand items as among a few thousand.

use super::{model::Item, neural};
use crate::bm25::{self, Collection, WordCounts};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of indexed words of an item, in this order: its id, its tags, its type, its data.
pub const MAX_WORDS: usize = 256;

/// Maximum number of different words of a query; the rarest are used.
pub const MAX_QUERY_WORDS: usize = 16;

/// Maximum number of words that are read from a query's text.
const MAX_QUERY_TEXT: usize = 1_024;

/// Maximum number of items for each word; the newest are used.
pub const MAX_POSTINGS: usize = 512;

/// Maximum number of items that a recall returns.
pub const MAX_RECALLED: usize = 256;

/// Number of the best items by words whose associations are followed.
pub const MAX_SEEDS: usize = 4;

/// Bonus of the newest considered item over the oldest one, as a share of its score.
const RECENCY: f64 = 0.25;

/// Value of an item by association alone, as a share of the score of the item that leads to it.
const ASSOCIATION: f64 = 0.5;

/// Number of an item: a sequence number of its last write, greater for newer items.
pub type Number = u64;

/// Index entry for one word of a query.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Postings {
    /// Number of items with the word.
    pub with: u64,
    /// Newest of these items: number of the item, count of the word in it, number of words in it.
    pub found: Vec<(Number, u32, u64)>,
}

/// Words of an item for the index, with their counts.
pub fn words_of(item: &Item) -> WordCounts {
    let mut counts = WordCounts::new();
    let mut remaining = MAX_WORDS;
    let mut take = |text: &str| {
        for word in bm25::words(text) {
            if remaining == 0 {
                return;
            }
            remaining -= 1;
            *counts.entry(word).or_default() += 1;
        }
    };
    take(&item.id);
    item.tags().for_each(&mut take);
    take(&item.kind);
    texts(&item.data, &mut take);
    counts
}

/// Passes all texts of a value to `take`, with the names of its members.
fn texts(value: &Value, take: &mut impl FnMut(&str)) {
    match value {
        Value::Null | Value::Bool(_) => {}
        Value::Number(number) => take(&number.to_string()),
        Value::String(text) => take(text),
        Value::Array(items) => items.iter().for_each(|item| texts(item, take)),
        Value::Object(members) => members.iter().for_each(|(name, value)| {
            take(name);
            texts(value, take);
        }),
    }
}

/// Distinct words of a query.
pub fn query_words(query: &str) -> BTreeSet<String> {
    bm25::words(query).take(MAX_QUERY_TEXT).collect()
}

/// Selects the rarest words of a query, from its words with the number of items that have each.
pub fn telling_words(known: Vec<(String, u64)>) -> Vec<(String, u64)> {
    let mut known: Vec<_> = known.into_iter().filter(|(_, with)| *with > 0).collect();
    known.sort_by(|(one, few), (other, other_count)| {
        few.cmp(other_count).then_with(|| one.cmp(other))
    });
    known.truncate(MAX_QUERY_WORDS);
    known
}

/// Ranks the items that match a query's words, best first, with their scores. Of two equal scores
/// the newer item comes first.
pub fn by_words(collection: Collection, postings: &[Postings]) -> Vec<(Number, f64)> {
    let mut scores: BTreeMap<Number, f64> = BTreeMap::new();
    for Postings { with, found } in postings {
        let weight = bm25::weight(collection, *with);
        for (item, times, length) in found {
            *scores.entry(*item).or_default() += bm25::score(collection, weight, *times, *length);
        }
    }
    // Age rank of an item, from 0 for the oldest of them to 1.
    let newest = scores.len().saturating_sub(1).max(1);
    let aged = scores
        .into_iter()
        .enumerate()
        .map(|(age, (item, score))| (item, score * (1.0 + RECENCY * share(age, newest))));
    best_first(aged.collect())
}

/// Adds the items associated with the best ones; `neighbours` are pairs of such an item and an
/// associated one, with the number of common uses.
pub fn with_associated(
    ranked: &[(Number, f64)],
    neighbours: &[(Number, Number, u32)],
) -> Vec<(Number, f64)> {
    let mut scores: BTreeMap<Number, f64> = ranked.iter().copied().collect();
    for (seed, other, uses) in neighbours {
        let Some((_, of_seed)) = ranked.iter().find(|(item, _)| item == seed) else { continue };
        *scores.entry(*other).or_default() += of_seed * ASSOCIATION * neural::strength(*uses);
    }
    best_first(scores.into_iter().collect())
}

fn best_first(mut scored: Vec<(Number, f64)>) -> Vec<(Number, f64)> {
    scored.sort_by(|(one, worse), (other, better)| {
        better.total_cmp(worse).then_with(|| other.cmp(one))
    });
    scored
}

#[expect(clippy::cast_precision_loss, reason = "a recall looks at some thousand items")]
fn share(part: usize, of: usize) -> f64 {
    part as f64 / of as f64
}

/// True if a task names something: each word of the name occurs in the task's message, as one word
/// or in its parts, or the name is on the list.
pub fn names(message: &BTreeSet<String>, list: &[String], name: &str) -> bool {
    let mut telling = bm25::runs(name).filter(|run| bm25::tells(&run.full)).peekable();
    let in_parts = |parts: &[String]| {
        let mut telling = parts.iter().filter(|part| bm25::tells(part)).peekable();
        telling.peek().is_some() && telling.all(|part| message.contains(part))
    };
    let is_named = telling.peek().is_some()
        && telling.all(|run| message.contains(&run.full) || in_parts(&run.parts));
    is_named || list.iter().any(|named| named == name)
}

/// True if a task names an item, by its id or one of its tags.
pub fn names_item(message: &BTreeSet<String>, list: &[String], item: &Item) -> bool {
    names(message, list, &item.id) || item.tags().any(|tag| names(message, list, tag))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn item(id: &str, data: Value) -> Item {
        Item { id: id.to_owned(), kind: "semantic".to_owned(), data, metadata: None }
    }

    /// Indexes items like a store does, and runs a query.
    fn recall(items: &[Item], query: &str, neighbours: &[(Number, Number, u32)]) -> Vec<Number> {
        let counts: Vec<WordCounts> = items.iter().map(words_of).collect();
        let length =
            |counts: &WordCounts| counts.values().map(|times| u64::from(*times)).sum::<u64>();
        let texts = items.len() as u64;
        let collection = Collection { texts, words: counts.iter().map(length).sum() };
        let with = |word: &String| counts.iter().filter(|item| item.contains_key(word)).count();
        let known = query_words(query).into_iter().map(|word| (word.clone(), with(&word) as u64));
        let postings = telling_words(known.collect()).into_iter().map(|(word, with)| {
            let found = (0..).zip(&counts);
            let found = found.filter_map(|(n, item)| Some((n, *item.get(&word)?, length(item))));
            Postings { with, found: found.collect() }
        });
        let ranked = by_words(collection, &postings.collect::<Vec<_>>());
        with_associated(&ranked, neighbours).into_iter().map(|(item, _)| item).collect()
    }

    #[test]
    fn items_match_words_of_all_fields() {
        let mut tagged = item("fact-4", json!(1));
        tagged.metadata = json!({"tags": ["billing"]}).as_object().cloned();
        let items = [
            item("db-choice", json!({"engine": "sqlite"})),
            item("fact-2", json!(["the cache is warm", {"port": 8080}])),
            item("fact-3", json!("sqlite sqlite sqlite")),
            tagged,
        ];
        assert_eq!(recall(&items, "which SQLite?", &[]), [2, 0]);
        assert_eq!(recall(&items, "engine", &[]), [0]);
        assert_eq!(recall(&items, "dbChoice", &[]), [0]);
        assert_eq!(recall(&items, "port 8080", &[]), [1]);
        assert_eq!(recall(&items, "billing", &[]), [3]);
        assert!(recall(&items, "the of and", &[]).is_empty());
        assert!(recall(&[], "anything", &[]).is_empty());
    }

    #[test]
    fn newer_item_ranks_first_associated_follow() {
        let items =
            [item("a", json!("red fox")), item("b", json!("red fox")), item("c", json!("owl"))];
        assert_eq!(recall(&items, "fox", &[]), [1, 0]);
        assert_eq!(recall(&items, "fox", &[(1, 2, 9)]), [1, 0, 2]);
        assert_eq!(recall(&items, "owl", &[(2, 0, 1)]), [2, 0]);
        assert_eq!(
            recall(&items, "fox", &[(2, 0, 1)]),
            [1, 0],
            "nothing leads on from what is not meant"
        );
    }

    #[test]
    fn task_message_words_name_parts() {
        let message = query_words("Set the apiKey and use the database you chose");
        let listed = ["budget".to_owned()];
        let named = ["api_key", "database", "budget", "api-key-2", "", "ToThe", "budget2"]
            .map(|name| names(&message, &listed, name));
        assert_eq!(named, [true, true, true, false, false, false, false]);
        let mut tagged = item("fact-9", json!(1));
        tagged.metadata = json!({"tags": ["database"]}).as_object().cloned();
        assert!(
            names_item(&message, &[], &tagged)
                && !names_item(&message, &[], &item("fact-9", json!("database")))
        );
    }

    proptest! {
        #[test]
        fn ranking_is_independent_of_word_order(
            found in prop::collection::vec(prop::collection::btree_map(0u64..30, 1u32..5, 0..10), 0..5),
        ) {
            let postings: Vec<Postings> = found.iter().map(|items| Postings {
                with: items.len() as u64,
                found: items.iter().map(|(item, times)| (*item, *times, 10)).collect(),
            }).collect();
            let collection = Collection { texts: 30, words: 300 };
            let ranked = by_words(collection, &postings);
            let all: BTreeSet<Number> = found.iter().flat_map(|items| items.keys().copied()).collect();
            prop_assert_eq!(ranked.iter().map(|(item, _)| *item).collect::<BTreeSet<_>>(), all);
            prop_assert!(ranked.windows(2).all(|two| two[0].1 >= two[1].1));
            let mut other = postings.clone();
            other.reverse();
            let near = |(one, other): (&(Number, f64), &(Number, f64))| (one.1 - other.1).abs() < 1e-9;
            prop_assert!(ranked.iter().zip(&by_words(collection, &other)).all(near));
        }
    }
}
