//! Inverted index of the words of all cards, ranked by BM25F: rare words count more than common
//! ones, words in a name more than words in an example, and repetitions of a word add little
//! (Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond", 2009).

use super::{
    description::Description,
    tokenizer::{Word, Words},
};
use crate::bm25::{self, B, Collection, K1};
use a2a_hub_protocol::operation::CardPart;
use std::{
    collections::{BTreeMap, HashMap, HashSet},
    ops::Bound,
};

/// Maximum number of words that are read from one part of a card.
const MAX_WORDS: usize = 400;

/// Maximum number of words of a query; in longer texts further words are mostly repetitions.
const MAX_QUERY_WORDS: usize = 64;

/// Maximum number of similar words that replace a word that no card has.
const MAX_STAND_INS: usize = 3;

/// Share of its weight that a replacement word keeps.
const STAND_IN: f64 = 0.5;

/// Minimum length in letters of a word that is replaced: shorter words are similar to too many
/// others.
const MIN_STAND_IN_LETTERS: usize = 5;

/// Weight of a word in this part of a card.
fn weight(part: CardPart) -> f64 {
    match part {
        CardPart::Name => 3.0,
        CardPart::Skills | CardPart::Tags => 2.5,
        CardPart::Description => 1.5,
        CardPart::Examples => 1.0,
    }
}

const PARTS: usize = CardPart::ALL.len();

/// Inverted index of the words of all cards.
pub(super) struct CardIndex {
    words: Words,
    agents: usize,
    terms: BTreeMap<String, Vec<Posting>>,
    /// Number of words in each part of each card.
    lengths: Vec<[f64; PARTS]>,
    /// Average number of words in each part.
    average: [f64; PARTS],
}

/// Occurrences of a word in a card.
struct Posting {
    agent: usize,
    counts: [u16; PARTS],
}

/// Score of an agent, and the matching words with the parts of the card that contain each.
#[derive(Default)]
pub(super) struct Scored {
    pub score: f64,
    pub words: Vec<(String, Vec<CardPart>)>,
}

impl CardIndex {
    pub(super) fn new(agents: &[Description]) -> Self {
        let words = Words::default();
        let mut terms: BTreeMap<String, Vec<Posting>> = BTreeMap::new();
        let mut lengths = Vec::with_capacity(agents.len());
        for (agent, description) in agents.iter().enumerate() {
            let mut counts: HashMap<String, [u16; PARTS]> = HashMap::new();
            let mut length = [0.0; PARTS];
            for (n, part) in CardPart::ALL.into_iter().enumerate() {
                let mut remaining = MAX_WORDS;
                for text in texts(description, part) {
                    let found = words.tokenize(text, remaining);
                    remaining -= found.len();
                    for Word { stem, .. } in found {
                        let count = &mut counts.entry(stem).or_default()[n];
                        *count = count.saturating_add(1);
                        length[n] += 1.0;
                    }
                    if remaining == 0 {
                        break;
                    }
                }
            }
            for (term, counts) in counts {
                terms.entry(term).or_default().push(Posting { agent, counts });
            }
            lengths.push(length);
        }
        let average = std::array::from_fn(|n| {
            let all: f64 = lengths.iter().map(|length: &[f64; PARTS]| length[n]).sum();
            (all / lengths.len().max(1) as f64).max(1.0)
        });
        Self { words, agents: agents.len(), terms, lengths, average }
    }

    /// Agents whose cards contain words of `text`, or similar words, by their index.
    pub(super) fn score(&self, text: &str) -> HashMap<usize, Scored> {
        let mut scored: HashMap<usize, Scored> = HashMap::new();
        let mut stems = HashSet::new();
        // The ranking uses the lengths of the parts, so the total number of words is not needed.
        let collection = Collection { texts: self.agents as u64, words: 0 };
        for Word { original, stem } in self.words.tokenize(text, MAX_QUERY_WORDS) {
            if !stems.insert(stem.clone()) {
                continue;
            }
            // Among the replacements of one word, only the best counts for an agent.
            let mut best: HashMap<usize, (f64, &Posting)> = HashMap::new();
            for (postings, share) in self.meant(&stem) {
                let rarity = bm25::weight(collection, postings.len() as u64);
                for posting in postings {
                    let score = share * rarity * self.saturated(posting);
                    let there = best.entry(posting.agent).or_insert((score, posting));
                    if score > there.0 {
                        *there = (score, posting);
                    }
                }
            }
            for (agent, (score, posting)) in best {
                let found = scored.entry(agent).or_default();
                found.score += score;
                let counted = CardPart::ALL.into_iter().zip(posting.counts);
                let parts = counted.filter(|(_, count)| *count > 0).map(|(part, _)| part);
                found.words.push((original.clone(), parts.collect()));
            }
        }
        scored
    }

    /// Occurrences of a word, or, if no card has the word, of similar ones: longer and shorter
    /// words with the same prefix, and misspellings.
    fn meant(&self, stem: &str) -> Vec<(&[Posting], f64)> {
        if let Some(postings) = self.terms.get(stem) {
            return vec![(postings, 1.0)];
        }
        let letters = stem.chars().count();
        if letters < MIN_STAND_IN_LETTERS {
            return Vec::new();
        }
        // Considers only words with the same first two letters, so a misspelling in these is not
        // found.
        let head = stem.char_indices().nth(2).map_or(stem, |(at, _)| &stem[..at]);
        let alike = self.terms.range::<str, _>((Bound::Included(head), Bound::Unbounded));
        let alike = alike.take_while(|(term, _)| term.starts_with(head));
        let near = alike.filter_map(|(term, postings)| {
            let slips = slips(stem, term)?;
            Some((slips, term, postings))
        });
        let mut near: Vec<_> = near.collect();
        near.sort_by(|one, two| (one.0, one.1).cmp(&(two.0, two.1)));
        near.truncate(MAX_STAND_INS);
        near.into_iter().map(|(_, _, postings)| (postings.as_slice(), STAND_IN)).collect()
    }

    /// Contribution of a word in a card, up to 1. Repetitions count by their logarithm even before
    /// saturation, so that a card that only repeats one word does not rank first for it.
    fn saturated(&self, posting: &Posting) -> f64 {
        let lengths = &self.lengths[posting.agent];
        let weighted: f64 = CardPart::ALL
            .into_iter()
            .enumerate()
            .filter(|(n, _)| posting.counts[*n] > 0)
            .map(|(n, part)| {
                let frequency = 1.0 + f64::from(posting.counts[n]).ln();
                weight(part) * frequency / (1.0 - B + B * lengths[n] / self.average[n])
            })
            .sum();
        weighted / (K1 + weighted)
    }
}

/// Distance of two similar words: 1 for one edit, or the difference of lengths if one is a prefix
/// of the other. `None` if they are not similar.
fn slips(word: &str, term: &str) -> Option<usize> {
    let (one, two) = (word.len(), term.len());
    let begins =
        (word.starts_with(term) || term.starts_with(word)) && one.min(two) >= MIN_STAND_IN_LETTERS;
    let is_slip = one.abs_diff(two) <= 1 && strsim::osa_distance(word, term) <= 1;
    (begins || is_slip).then(|| if begins { one.abs_diff(two) } else { 1 })
}

/// Texts of a part of a card.
fn texts(agent: &Description, part: CardPart) -> Box<dyn Iterator<Item = &str> + '_> {
    let skills = || agent.skills.iter();
    match part {
        CardPart::Name => Box::new(agent.names()),
        CardPart::Skills => {
            Box::new(skills().flat_map(|skill| [skill.id.as_str(), skill.name.as_str()]))
        }
        CardPart::Tags => Box::new(skills().flat_map(|skill| &skill.tags).map(String::as_str)),
        CardPart::Description => Box::new(
            std::iter::once(agent.description.as_str())
                .chain(skills().map(|skill| skill.description.as_str())),
        ),
        CardPart::Examples => {
            Box::new(skills().flat_map(|skill| &skill.examples).map(String::as_str))
        }
    }
}
