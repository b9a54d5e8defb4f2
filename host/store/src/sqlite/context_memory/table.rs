//! Context memories of agents, in SQL.
//!
//! Each place (agent and conversation) has its own inverted index: the items of other agents
//! neither slow down a search nor change its ranking.

use super::key;
use crate::{
    MemoryShare, Search, StorageError,
    context_memory::{Indexed, Size, bytes_of, of_items, require_within_limits},
    sqlite::{
        db::{failure::SqliteFailure, schema::integer},
        log::memory_sizes,
    },
};
use a2a_hub_core::{
    bm25::Collection,
    context_memory::{
        model::{Change, Item, MemoryCapacity, MemoryKey, WorkingMemory},
        neural::{MAX_NEIGHBOURS, MAX_TOGETHER, pairs},
        retrieval::{
            MAX_POSTINGS, MAX_RECALLED, MAX_SEEDS, Number, Postings, by_words, query_words,
            telling_words, with_associated,
        },
    },
    plugin::installation::InstallationId,
};
use rusqlite::{Connection, OptionalExtension as _, Row, params};
use serde::de::DeserializeOwned;

/// Rows deleted in one transaction, as other writers wait meanwhile.
const SWEPT_AT_ONCE: i64 = 2_048;

/// An existing memory.
struct MemoryRow {
    number: i64,
    working: WorkingMemory,
    items: u64,
    words: u64,
    bytes: u64,
    holder: String,
}

impl MemoryRow {
    fn size(&self) -> Size {
        Size { bytes: self.bytes, items: self.items }
    }
}

pub(in crate::sqlite) fn working(
    db: &Connection,
    scope: &MemoryKey,
) -> Result<WorkingMemory, SqliteFailure> {
    Ok(known(db, scope)?.map(|known| known.working).unwrap_or_default())
}

pub(in crate::sqlite) fn change(
    db: &Connection,
    scope: &MemoryKey,
    changes: Vec<Change>,
    share: &MemoryShare,
    limits: MemoryCapacity,
) -> Result<(), SqliteFailure> {
    let found = known(db, scope)?;
    let is_new = found.is_none();
    let old_holder = found.as_ref().map(|found| found.holder.clone());
    let mut now = found.unwrap_or_else(|| MemoryRow {
        number: 0,
        working: WorkingMemory::default(),
        items: 0,
        words: 0,
        bytes: 0,
        holder: String::new(),
    });
    let all_before = memory_sizes::of_context_memories(db, &scope.owner)?;
    let (before, working_before) = (now.size(), bytes_of(&now.working));
    changes.iter().for_each(|change| now.working.apply(change));
    now.bytes = now.bytes - working_before.min(now.bytes) + bytes_of(&now.working);
    let mut writes = Vec::new();
    for (id, item) in of_items(changes) {
        let old = if is_new { None } else { row_of(db, now.number, &id)? };
        if let Some(old) = &old {
            now.items -= now.items.min(1);
            now.words -= now.words.min(old.words);
            now.bytes -= now.bytes.min(old.bytes);
        }
        if let Some(item) = &item {
            now.items += 1;
            now.words += item.length();
            now.bytes += item.bytes();
        }
        writes.push((old, item));
    }
    let all = Size {
        bytes: (all_before.bytes + now.bytes).saturating_sub(before.bytes),
        items: (all_before.items + now.items).saturating_sub(before.items),
    };
    require_within_limits(
        scope,
        all_before,
        all,
        memory_sizes::of_values(db, &scope.owner)?,
        limits,
    )?;
    let after = now.size();
    let (old_holder, written) = (old_holder.as_deref(), (before, after));
    now.holder = memory_sizes::of_holders(db, &scope.owner)?
        .holder_after_write(old_holder, &share.holder, written, share.capacity)
        .map_err(StorageError::from)?;
    // Nothing is refused from here on.
    upsert(db, scope, is_new, &mut now)?;
    for (old, item) in writes {
        let number = match &item {
            Some(item) if old.is_none() => Some(insert(db, now.number, item)?),
            Some(item) => {
                old.iter().try_for_each(|old| remove(db, now.number, old))?;
                Some(insert(db, now.number, item)?)
            }
            None => {
                old.iter().try_for_each(|old| remove(db, now.number, old))?;
                None
            }
        };
        if let Some(old) = old {
            reassociate(db, old.number, number)?;
        }
    }
    let sql =
        "INSERT OR REPLACE INTO context_memory_sizes (owner, bytes, items) VALUES (?1, ?2, ?3)";
    let sizes = params![scope.owner.as_str(), integer(all.bytes), integer(all.items)];
    db.prepare_cached(sql)?.execute(sizes)?;
    Ok(())
}

/// Items that match a search, and the numbers of those that it uses together.
pub(in crate::sqlite) fn search(
    db: &Connection,
    scope: &MemoryKey,
    search: &Search,
) -> Result<(Vec<Item>, Vec<Number>), SqliteFailure> {
    let Some(MemoryRow { number: memory, items, words, .. }) = known(db, scope)? else {
        return Ok(Default::default());
    };
    let limit = search.limit.min(MAX_RECALLED);
    let words_of = query_words(&search.query);
    if words_of.is_empty() {
        return Ok((newest(db, memory, limit)?, Vec::new()));
    }
    let mut known_words = Vec::new();
    for word in words_of {
        let sql = "SELECT items FROM recollection_words WHERE memory = ?1 AND word = ?2";
        let mut found = db.prepare_cached(sql)?;
        let with = found.query_row(params![memory, word], |row| unsigned(row, 0)).optional()?;
        known_words.extend(with.map(|with| (word, with)));
    }
    let mut postings = Vec::new();
    for (word, with) in telling_words(known_words) {
        let sql = "SELECT item, times, length FROM recollection_postings \
                   WHERE memory = ?1 AND word = ?2 ORDER BY item DESC LIMIT ?3";
        let mut found = db.prepare_cached(sql)?;
        let rows = found.query_map(params![memory, word, integer(MAX_POSTINGS as u64)], |row| {
            let times = u32::try_from(unsigned(row, 1)?).unwrap_or(u32::MAX);
            Ok((unsigned(row, 0)?, times, unsigned(row, 2)?))
        })?;
        postings.push(Postings { with, found: rows.collect::<Result<_, _>>()? });
    }
    let ranked = by_words(Collection { texts: items, words }, &postings);
    let mut neighbours = Vec::new();
    for (seed, _) in ranked.iter().take(MAX_SEEDS) {
        let sql = "SELECT other, uses FROM associations WHERE one = ?1 ORDER BY uses DESC, other LIMIT ?2";
        let mut found = db.prepare_cached(sql)?;
        let rows =
            found.query_map(params![integer(*seed), integer(MAX_NEIGHBOURS as u64)], |row| {
                Ok((*seed, unsigned(row, 0)?, u32::try_from(unsigned(row, 1)?).unwrap_or(u32::MAX)))
            })?;
        neighbours.extend(rows.collect::<Result<Vec<_>, _>>()?);
    }
    let ranked = with_associated(&ranked, &neighbours);
    let (mut found, mut used) = (Vec::new(), Vec::new());
    for (number, _) in ranked {
        if found.len() >= limit {
            break;
        }
        // The item may have been deleted since.
        if let Some(item) = item(db, memory, number)? {
            found.push(item);
            used.push(number);
        }
    }
    used.truncate(if search.is_use { MAX_TOGETHER } else { 0 });
    Ok((found, used))
}

pub(in crate::sqlite) fn named(
    db: &Connection,
    scope: &MemoryKey,
    ids: &[String],
) -> Result<Vec<Item>, SqliteFailure> {
    let Some(MemoryRow { number, .. }) = known(db, scope)? else { return Ok(Vec::new()) };
    let mut found = Vec::new();
    for id in ids {
        found.extend(row_of(db, number, id)?.map(|row| row.item));
    }
    Ok(found)
}

/// Counts that these items were used together.
pub(in crate::sqlite) fn associate(db: &Connection, used: &[Number]) -> Result<(), SqliteFailure> {
    let add = "INSERT INTO associations (one, other, uses) SELECT ?1, ?2, 1 \
               WHERE (SELECT count(*) FROM recollections WHERE number IN (?1, ?2)) = 2 \
               ON CONFLICT (one, other) DO UPDATE SET uses = min(uses + 1, 4294967295)";
    let trim = "DELETE FROM associations WHERE one = ?1 AND other IN (\
                SELECT other FROM associations WHERE one = ?1 ORDER BY uses DESC, other DESC LIMIT -1 OFFSET ?2)";
    for (one, other) in pairs(used) {
        for (one, other) in [(one, other), (other, one)] {
            db.prepare_cached(add)?.execute([integer(one), integer(other)])?;
            let limit = integer(MAX_NEIGHBOURS as u64);
            db.prepare_cached(trim)?.execute([integer(one), limit])?;
        }
    }
    Ok(())
}

/// Marks a memory as deleted, if its conversation has no tasks.
pub(in crate::sqlite) fn abandon(db: &Connection, scope: &MemoryKey) -> Result<(), SqliteFailure> {
    let sql = "UPDATE context_memories SET gone = 1 WHERE context = ?1 AND owner = ?2 \
               AND gone = 0 AND NOT EXISTS (SELECT 1 FROM contexts WHERE id = ?1)";
    let of = [&key::key(&scope.context), scope.owner.as_str()];
    db.prepare_cached(sql)?.execute(of)?;
    Ok(())
}

/// Marks all memories of an owner as deleted.
pub(in crate::sqlite) fn forget(
    db: &Connection,
    owner: &InstallationId,
) -> Result<(), SqliteFailure> {
    let sql = "UPDATE context_memories SET gone = 1 WHERE owner = ?1 AND gone = 0";
    db.prepare_cached(sql)?.execute([owner.as_str()])?;
    Ok(())
}

/// Marks all memories as deleted whose conversations have no tasks, as a hub was killed before
/// it could create them.
pub(in crate::sqlite) fn abandon_all(db: &Connection) -> Result<(), SqliteFailure> {
    db.execute_batch(
        "UPDATE context_memories SET gone = 1 WHERE gone = 0 AND context NOT IN (SELECT id FROM contexts)",
    )?;
    Ok(())
}

/// Deletes some rows of memories that are marked as deleted; false once none is left.
pub(in crate::sqlite) fn sweep(db: &Connection) -> Result<bool, SqliteFailure> {
    let sql = "SELECT number FROM context_memories WHERE gone = 1 LIMIT 1";
    let found = db.prepare_cached(sql)?.query_row([], |row| row.get::<_, i64>(0)).optional()?;
    let Some(memory) = found else { return Ok(false) };
    let parts = [
        "DELETE FROM recollection_postings WHERE (memory, word, item) IN (\
         SELECT memory, word, item FROM recollection_postings WHERE memory = ?1 LIMIT ?2)",
        "DELETE FROM recollection_words WHERE (memory, word) IN (\
         SELECT memory, word FROM recollection_words WHERE memory = ?1 LIMIT ?2)",
        "DELETE FROM associations WHERE (one, other) IN (SELECT one, other FROM associations \
         WHERE one IN (SELECT number FROM recollections WHERE memory = ?1 LIMIT ?2) LIMIT ?2)",
        "DELETE FROM recollections WHERE number IN (\
         SELECT number FROM recollections WHERE memory = ?1 LIMIT ?2)",
    ];
    for part in parts {
        if db.prepare_cached(part)?.execute([memory, SWEPT_AT_ONCE])? > 0 {
            return Ok(true);
        }
    }
    db.prepare_cached("DELETE FROM context_memories WHERE number = ?1")?.execute([memory])?;
    Ok(true)
}

fn known(db: &Connection, scope: &MemoryKey) -> Result<Option<MemoryRow>, SqliteFailure> {
    let sql = "SELECT number, working, items, words, bytes, holder FROM context_memories \
               WHERE context = ?1 AND owner = ?2 AND gone = 0";
    let mut found = db.prepare_cached(sql)?;
    let of = [&key::key(&scope.context), scope.owner.as_str()];
    let row = found.query_row(of, |row| {
        let counts = (unsigned(row, 2)?, unsigned(row, 3)?, unsigned(row, 4)?);
        Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?, counts, row.get(5)?))
    });
    let Some((number, working, (items, words, bytes), holder)) = row.optional()? else {
        return Ok(None);
    };
    Ok(Some(MemoryRow { number, working: parsed(&working)?, items, words, bytes, holder }))
}

/// Stores a memory, and sets its number if it is new.
fn upsert(
    db: &Connection,
    scope: &MemoryKey,
    is_new: bool,
    now: &mut MemoryRow,
) -> Result<(), SqliteFailure> {
    let working = written(&now.working)?;
    let (items, words, bytes) = (integer(now.items), integer(now.words), integer(now.bytes));
    if is_new {
        let sql = "INSERT INTO context_memories (context, owner, working, items, words, bytes, holder) \
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
        let (context, owner) = (key::key(&scope.context), scope.owner.as_str());
        let row = params![context, owner, working, items, words, bytes, now.holder];
        db.prepare_cached(sql)?.execute(row)?;
        now.number = db.last_insert_rowid();
    } else {
        let sql = "UPDATE context_memories SET working = ?2, items = ?3, words = ?4, bytes = ?5, holder = ?6 \
                   WHERE number = ?1";
        let row = params![now.number, working, items, words, bytes, now.holder];
        db.prepare_cached(sql)?.execute(row)?;
    }
    Ok(())
}

/// A stored item.
struct ItemRow {
    number: i64,
    words: u64,
    bytes: u64,
    item: Item,
}

fn row_of(db: &Connection, memory: i64, id: &str) -> Result<Option<ItemRow>, SqliteFailure> {
    let sql = "SELECT number, words, bytes, id, kind, data, metadata FROM recollections \
               WHERE memory = ?1 AND id = ?2";
    let mut found = db.prepare_cached(sql)?;
    let row = found.query_row(params![memory, id], |row| {
        Ok((row.get(0)?, unsigned(row, 1)?, unsigned(row, 2)?, Texts::from_row(row, 3)?))
    });
    let Some((number, words, bytes, texts)) = row.optional()? else { return Ok(None) };
    Ok(Some(ItemRow { number, words, bytes, item: texts.item()? }))
}

fn item(db: &Connection, memory: i64, number: Number) -> Result<Option<Item>, SqliteFailure> {
    let sql =
        "SELECT id, kind, data, metadata FROM recollections WHERE number = ?1 AND memory = ?2";
    let mut found = db.prepare_cached(sql)?;
    let row =
        found.query_row([integer(number), memory], |row| Texts::from_row(row, 0)).optional()?;
    row.map(Texts::item).transpose()
}

fn newest(db: &Connection, memory: i64, limit: usize) -> Result<Vec<Item>, SqliteFailure> {
    let sql = "SELECT id, kind, data, metadata FROM recollections WHERE memory = ?1 \
               ORDER BY number DESC LIMIT ?2";
    let mut found = db.prepare_cached(sql)?;
    let rows = found.query_map([memory, integer(limit as u64)], |row| Texts::from_row(row, 0))?;
    let rows = rows.collect::<Result<Vec<_>, _>>()?;
    rows.into_iter().map(Texts::item).collect()
}

/// Columns of an item.
struct Texts {
    id: String,
    kind: String,
    data: String,
    metadata: Option<String>,
}

impl Texts {
    fn from_row(row: &Row<'_>, first: usize) -> rusqlite::Result<Self> {
        let (id, kind) = (row.get(first)?, row.get(first + 1)?);
        Ok(Self { id, kind, data: row.get(first + 2)?, metadata: row.get(first + 3)? })
    }

    fn item(self) -> Result<Item, SqliteFailure> {
        let Self { id, kind, data, metadata } = self;
        let metadata = metadata.map(|about| parsed(&about)).transpose()?;
        Ok(Item { id, kind, data: parsed(&data)?, metadata })
    }
}

fn insert(db: &Connection, memory: i64, indexed: &Indexed) -> Result<i64, SqliteFailure> {
    let Item { id, kind, data, metadata } = &indexed.item;
    let (data, length) = (written(data)?, integer(indexed.length()));
    let metadata = metadata.as_ref().map(written).transpose()?;
    let sql = "INSERT INTO recollections (memory, id, kind, data, metadata, words, bytes) \
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
    let row = params![memory, id, kind, data, metadata, length, integer(indexed.bytes())];
    db.prepare_cached(sql)?.execute(row)?;
    let number = db.last_insert_rowid();
    for (word, times) in &indexed.counts {
        let posting = "INSERT OR REPLACE INTO recollection_postings (memory, word, item, times, length) \
                       VALUES (?1, ?2, ?3, ?4, ?5)";
        db.prepare_cached(posting)?.execute(params![memory, word, number, times, length])?;
        let count = "INSERT INTO recollection_words (memory, word, items) VALUES (?1, ?2, 1) \
                     ON CONFLICT (memory, word) DO UPDATE SET items = items + 1";
        db.prepare_cached(count)?.execute(params![memory, word])?;
    }
    Ok(number)
}

fn remove(db: &Connection, memory: i64, row: &ItemRow) -> Result<(), SqliteFailure> {
    for word in Indexed::new(row.item.clone()).counts.keys() {
        let posting =
            "DELETE FROM recollection_postings WHERE memory = ?1 AND word = ?2 AND item = ?3";
        let deleted = db.prepare_cached(posting)?.execute(params![memory, word, row.number])?;
        // Under an earlier tokenizer the item had other words, whose postings lead to no item.
        if deleted > 0 {
            let count =
                "UPDATE recollection_words SET items = items - 1 WHERE memory = ?1 AND word = ?2";
            db.prepare_cached(count)?.execute(params![memory, word])?;
            let none =
                "DELETE FROM recollection_words WHERE memory = ?1 AND word = ?2 AND items <= 0";
            db.prepare_cached(none)?.execute(params![memory, word])?;
        }
    }
    db.prepare_cached("DELETE FROM recollections WHERE number = ?1")?.execute([row.number])?;
    Ok(())
}

/// Moves the associations of an item to its replacement, or deletes them.
fn reassociate(db: &Connection, old: i64, new: Option<i64>) -> Result<(), SqliteFailure> {
    let others: Vec<i64> = {
        let mut found = db.prepare_cached("SELECT other FROM associations WHERE one = ?1")?;
        found.query_map([old], |row| row.get(0))?.collect::<Result<_, _>>()?
    };
    for other in others {
        let (there, back) = match new {
            Some(_) => (
                "UPDATE OR REPLACE associations SET one = ?3 WHERE one = ?1 AND other = ?2",
                "UPDATE OR REPLACE associations SET other = ?3 WHERE other = ?1 AND one = ?2",
            ),
            None => (
                "DELETE FROM associations WHERE one = ?1 AND other = ?2 AND ?3 IS NULL",
                "DELETE FROM associations WHERE other = ?1 AND one = ?2 AND ?3 IS NULL",
            ),
        };
        for sql in [there, back] {
            db.prepare_cached(sql)?.execute(params![old, other, new])?;
        }
    }
    Ok(())
}

fn unsigned(row: &Row<'_>, at: usize) -> rusqlite::Result<u64> {
    row.get::<_, i64>(at).map(i64::unsigned_abs)
}

fn written(value: &impl serde::Serialize) -> Result<String, SqliteFailure> {
    serde_json::to_string(value).map_err(|why| corrupt(&why))
}

fn parsed<T: DeserializeOwned>(text: &str) -> Result<T, SqliteFailure> {
    serde_json::from_str(text).map_err(|why| corrupt(&why))
}

fn corrupt(why: &serde_json::Error) -> SqliteFailure {
    let subject = "what an agent has in mind".to_owned();
    StorageError::Corrupt { subject, why: why.to_string() }.into()
}
