//! Context memories, in memory.

use crate::context_memory::{Indexed, Size, bytes_of, of_items};
use a2a_hub_core::{
    bm25::Collection,
    context_memory::{
        model::{Change, Item, MemoryKey, WorkingMemory},
        neural::{MAX_NEIGHBOURS, MAX_TOGETHER, pairs},
        retrieval::{
            MAX_POSTINGS, MAX_RECALLED, MAX_SEEDS, Number, Postings, by_words, query_words,
            telling_words, with_associated,
        },
    },
    plugin::installation::InstallationId,
};
use std::collections::BTreeMap;

/// Context memory under one key.
#[derive(Clone, Debug, Default)]
pub(super) struct IndexedMemory {
    /// Holder whose share it is in.
    pub(super) holder: String,
    working: WorkingMemory,
    /// By the number of their last write.
    items: BTreeMap<Number, Indexed>,
    last: Number,
    /// Each association is stored in both directions.
    associations: BTreeMap<(Number, Number), u32>,
}

/// Total size of an owner's context memories.
pub(super) fn size(memories: &BTreeMap<MemoryKey, IndexedMemory>, owner: &InstallationId) -> Size {
    let its = memories.iter().filter(|(scope, _)| scope.owner == *owner);
    let mut size = Size::default();
    for (_, memory) in its {
        let Size { bytes, items } = memory.size();
        size.bytes += bytes;
        size.items += items;
    }
    size
}

impl IndexedMemory {
    pub(super) fn size(&self) -> Size {
        let items: u64 = self.items.values().map(Indexed::bytes).sum();
        Size { bytes: items + bytes_of(&self.working), items: self.items.len() as u64 }
    }

    pub(super) fn working(&self) -> WorkingMemory {
        self.working.clone()
    }

    pub(super) fn change(&mut self, changes: Vec<Change>) {
        changes.iter().for_each(|change| self.working.apply(change));
        for (id, item) in of_items(changes) {
            self.write(&id, item);
        }
    }

    /// Items that match a query; with `is_use`, the first ones are associated.
    pub(super) fn search(&mut self, query: &str, limit: usize, is_use: bool) -> Vec<Item> {
        let limit = limit.min(MAX_RECALLED);
        if query_words(query).is_empty() {
            let newest = self.items.values().rev().take(limit);
            return newest.map(|item| item.item.clone()).collect();
        }
        let ranked = self.ranked(query);
        let best: Vec<Number> = ranked.into_iter().map(|(number, _)| number).take(limit).collect();
        if is_use {
            self.associate(&best[..best.len().min(MAX_TOGETHER)]);
        }
        let found = best.iter().filter_map(|number| self.items.get(number));
        found.map(|item| item.item.clone()).collect()
    }

    pub(super) fn named(&self, ids: &[String]) -> Vec<Item> {
        let found = ids.iter().filter_map(|id| self.items.get(&self.number_of(id)?));
        found.map(|item| item.item.clone()).collect()
    }

    fn number_of(&self, id: &str) -> Option<Number> {
        self.items.iter().find(|(_, item)| item.item.id == id).map(|(number, _)| *number)
    }

    fn write(&mut self, id: &str, item: Option<Indexed>) {
        let old = self.number_of(id);
        if let Some(old) = old {
            self.items.remove(&old);
        }
        let new = item.map(|item| {
            self.last += 1;
            self.items.insert(self.last, item);
            self.last
        });
        let Some(old) = old else { return };
        let moved = |number| if number == old { new } else { Some(number) };
        let associations = std::mem::take(&mut self.associations).into_iter();
        let remaining = associations
            .filter_map(|((one, other), uses)| Some(((moved(one)?, moved(other)?), uses)));
        self.associations = remaining.collect();
    }

    fn neighbours(&self, of: Number) -> Vec<(Number, Number, u32)> {
        let its = self.associations.iter().filter(|((one, _), _)| *one == of);
        let mut its: Vec<_> = its.map(|((one, other), uses)| (*one, *other, *uses)).collect();
        its.sort_by(|one, other| other.2.cmp(&one.2).then(other.1.cmp(&one.1)));
        its
    }

    fn ranked(&self, query: &str) -> Vec<(Number, f64)> {
        let words = self.items.values().map(Indexed::length).sum();
        let collection = Collection { texts: self.items.len() as u64, words };
        let with = |word: &String| {
            self.items.values().filter(|item| item.counts.contains_key(word)).count() as u64
        };
        let known = query_words(query).into_iter().map(|word| (word.clone(), with(&word)));
        let postings = telling_words(known.collect()).into_iter().map(|(word, with)| {
            let found = self.items.iter().rev().filter_map(|(number, item)| {
                Some((*number, *item.counts.get(&word)?, item.length()))
            });
            Postings { with, found: found.take(MAX_POSTINGS).collect() }
        });
        let ranked = by_words(collection, &postings.collect::<Vec<_>>());
        let seeds = ranked.iter().take(MAX_SEEDS);
        let neighbours: Vec<_> = seeds.flat_map(|(seed, _)| self.neighbours(*seed)).collect();
        with_associated(&ranked, &neighbours)
    }

    fn associate(&mut self, used: &[Number]) {
        for (one, other) in pairs(used) {
            for (one, other) in [(one, other), (other, one)] {
                let uses = self.associations.entry((one, other)).or_default();
                *uses = uses.saturating_add(1);
                for (one, other, _) in self.neighbours(one).into_iter().skip(MAX_NEIGHBOURS) {
                    self.associations.remove(&(one, other));
                }
            }
        }
    }
}
