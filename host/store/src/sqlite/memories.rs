//! Values in agents' memories, in SQL.

use super::{
    db::{failure::SqliteFailure, schema::integer},
    log::memory_sizes,
};
use crate::StorageError;
use a2a_hub_core::plugin::installation::InstallationId;
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
    owner: &InstallationId,
    key: &str,
    value: &[u8],
    max_bytes: u64,
) -> Result<(), SqliteFailure> {
    let new_size = size_without(db, owner, key)? + (key.len() + value.len()) as u64;
    // The context memories of the same agent count as well.
    let would_hold = new_size + memory_sizes::of_context_memories(db, owner)?.bytes;
    if would_hold > max_bytes {
        let owner = owner.clone();
        return Err(StorageError::Full { owner, would_hold, max_bytes }.into());
    }
    let sql = "INSERT OR REPLACE INTO memories (agent, key, value) VALUES (?1, ?2, ?3)";
    db.prepare_cached(sql)?.execute(params![owner.as_str(), key, value])?;
    resize(db, owner, new_size)
}

pub(super) fn forget(
    db: &Connection,
    owner: &InstallationId,
    key: &str,
) -> Result<(), SqliteFailure> {
    let remaining = size_without(db, owner, key)?;
    let sql = "DELETE FROM memories WHERE agent = ?1 AND key = ?2";
    db.prepare_cached(sql)?.execute([owner.as_str(), key])?;
    resize(db, owner, remaining)
}

/// Size of an agent's keys and values in bytes, without this key and its value.
fn size_without(db: &Connection, owner: &InstallationId, key: &str) -> rusqlite::Result<u64> {
    let sql = "SELECT octet_length(key) + octet_length(value) FROM memories WHERE agent = ?1 AND key = ?2";
    let mut found = db.prepare_cached(sql)?;
    let one: Option<i64> = found.query_row([owner.as_str(), key], |row| row.get(0)).optional()?;
    Ok(memory_sizes::of_values(db, owner)?.saturating_sub(one.unwrap_or(0).unsigned_abs()))
}

fn resize(db: &Connection, owner: &InstallationId, bytes: u64) -> Result<(), SqliteFailure> {
    let sql = "INSERT OR REPLACE INTO memory_sizes (agent, bytes) VALUES (?1, ?2)";
    db.prepare_cached(sql)?.execute(params![owner.as_str(), integer(bytes)])?;
    Ok(())
}
