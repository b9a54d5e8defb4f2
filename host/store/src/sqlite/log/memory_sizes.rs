//! Sizes of agents' memories, in SQL: counters that each write updates, never summed up.

use crate::context_memory::{HolderSizes, Size};
use a2a_hub_core::plugin::installation::InstallationId;
use rusqlite::{Connection, OptionalExtension as _};

/// Total size of an installation's keys and values, in bytes.
pub(in crate::sqlite) fn of_values(
    db: &Connection,
    owner: &InstallationId,
) -> rusqlite::Result<u64> {
    let mut found = db.prepare_cached("SELECT bytes FROM memory_sizes WHERE agent = ?1")?;
    let all: Option<i64> = found.query_row([owner.as_str()], |row| row.get(0)).optional()?;
    Ok(all.unwrap_or(0).unsigned_abs())
}

/// Total size of an installation's context memories.
pub(in crate::sqlite) fn of_context_memories(
    db: &Connection,
    owner: &InstallationId,
) -> rusqlite::Result<Size> {
    let sql = "SELECT bytes, items FROM context_memory_sizes WHERE owner = ?1";
    let mut found = db.prepare_cached(sql)?;
    let size =
        found.query_row([owner.as_str()], |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
    let (bytes, items): (i64, i64) = size.unwrap_or_default();
    Ok(Size { bytes: bytes.unsigned_abs(), items: items.unsigned_abs() })
}

/// Sizes of an installation's memory by holder: counters that triggers maintain.
pub(in crate::sqlite) fn of_holders(
    db: &Connection,
    owner: &InstallationId,
) -> rusqlite::Result<HolderSizes> {
    let sql = "SELECT holder, bytes, items FROM memory_holders WHERE owner = ?1";
    let mut found = db.prepare_cached(sql)?;
    let mut rows = found.query([owner.as_str()])?;
    let mut sizes = HolderSizes::default();
    while let Some(row) = rows.next()? {
        let (bytes, items): (i64, i64) = (row.get(1)?, row.get(2)?);
        let [bytes, items] = [bytes, items].map(|it| u64::try_from(it).unwrap_or_default());
        sizes.add(row.get_ref(0)?.as_str()?, Size { bytes, items });
    }
    Ok(sizes)
}
