//! Values in agents' memories, in SQL.

use super::{
    db::{failure::SqliteFailure, schema::integer},
    log::memory_sizes,
};
use crate::{StorageError, context_memory::Size};
use a2a_hub_core::{
    context_memory::model::MemoryCapacity, plugin::installation::InstallationId,
    scheduling::memory_shares::MemoryHolder,
};
use rusqlite::{Connection, OptionalExtension as _, params};

pub(super) fn recall(
    db: &Connection,
    owner: &InstallationId,
    key: &str,
) -> Result<Option<Vec<u8>>, SqliteFailure> {
    let sql = "SELECT value FROM memories WHERE agent = ?1 AND key = ?2";
    let mut found = db.prepare_cached(sql)?;
    Ok(found.query_row([owner.as_str(), key], |row| row.get(0)).optional()?)
}

pub(super) fn keys(
    db: &Connection,
    owner: &InstallationId,
    prefix: &str,
) -> Result<Vec<String>, SqliteFailure> {
    // Keys with a common prefix are adjacent, the prefix itself first.
    let sql = "SELECT key FROM memories WHERE agent = ?1 AND key >= ?2 ORDER BY key";
    let mut found = db.prepare_cached(sql)?;
    let mut rows = found.query([owner.as_str(), prefix])?;
    let mut keys = Vec::new();
    while let Some(row) = rows.next()? {
        let key: String = row.get(0)?;
        if !key.starts_with(prefix) {
            break;
        }
        keys.push(key);
    }
    Ok(keys)
}

pub(super) fn remember(
    db: &Connection,
    (owner, key): (&InstallationId, &str),
    value: &[u8],
    writer: &MemoryHolder,
    max_bytes: u64,
) -> Result<(), SqliteFailure> {
    let old = stored(db, owner, key)?;
    let (old_holder, before) = old.as_ref().map(|(holder, size)| (holder.as_str(), *size)).unzip();
    let before = before.unwrap_or_default();
    let after = Size { bytes: (key.len() + value.len()) as u64, items: 0 };
    let others = memory_sizes::of_values(db, owner)?.saturating_sub(before.bytes);
    let new_size = others + after.bytes;
    // The context memories of the same agent count as well.
    let would_hold = new_size + memory_sizes::of_context_memories(db, owner)?.bytes;
    if would_hold > max_bytes {
        let owner = owner.clone();
        return Err(StorageError::Full { owner, would_hold, max_bytes }.into());
    }
    let capacity = MemoryCapacity { max_bytes, max_items: 0 };
    let holder = memory_sizes::of_holders(db, owner)?
        .holder_after_write(old_holder, writer, (before, after), capacity)
        .map_err(StorageError::from)?;
    let sql = "INSERT OR REPLACE INTO memories (agent, key, value, holder) VALUES (?1, ?2, ?3, ?4)";
    db.prepare_cached(sql)?.execute(params![owner.as_str(), key, value, holder])?;
    resize(db, owner, new_size)
}

pub(super) fn forget(
    db: &Connection,
    owner: &InstallationId,
    key: &str,
) -> Result<(), SqliteFailure> {
    let size = stored(db, owner, key)?.map_or(0, |(_, size)| size.bytes);
    let remaining = memory_sizes::of_values(db, owner)?.saturating_sub(size);
    let sql = "DELETE FROM memories WHERE agent = ?1 AND key = ?2";
    db.prepare_cached(sql)?.execute([owner.as_str(), key])?;
    resize(db, owner, remaining)
}

/// Holder and size of a key with its value.
fn stored(
    db: &Connection,
    owner: &InstallationId,
    key: &str,
) -> rusqlite::Result<Option<(String, Size)>> {
    let sql = "SELECT holder, octet_length(key) + octet_length(value) FROM memories WHERE agent = ?1 AND key = ?2";
    let mut found = db.prepare_cached(sql)?;
    let row = found.query_row([owner.as_str(), key], |row| {
        let bytes: i64 = row.get(1)?;
        Ok((row.get(0)?, Size { bytes: bytes.unsigned_abs(), items: 0 }))
    });
    row.optional()
}

fn resize(db: &Connection, owner: &InstallationId, bytes: u64) -> Result<(), SqliteFailure> {
    let sql = "INSERT OR REPLACE INTO memory_sizes (agent, bytes) VALUES (?1, ?2)";
    db.prepare_cached(sql)?.execute(params![owner.as_str(), integer(bytes)])?;
    Ok(())
}
