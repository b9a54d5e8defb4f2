//! Dirty bit of the database, as in file systems: set while the database is open for writing. If it
//! is set, the latest data is in the write-ahead log beside the file, and a file without its log
//! has lost that data.

use super::{failure::SqliteFailure, files::log_of};
use rusqlite::{Connection, config::DbConfig};
use std::path::Path;

/// True if a database has its log beside it. Must be called before the database is opened, which
/// creates an empty log.
pub(in crate::sqlite) fn has_log(file: &Path) -> bool {
    log_of(file).exists()
}

/// True if a database was not closed in order and had no log when it was found: the latest data is
/// lost, unless another program has checkpointed it.
pub(in crate::sqlite) fn lacks_log(db: &Connection, had_log: bool) -> bool {
    !had_log && is_set(db).unwrap_or(false)
}

/// An old format has no such bit.
fn is_set(db: &Connection) -> rusqlite::Result<bool> {
    db.query_row("SELECT bit FROM dirty", [], |row| row.get(0))
}

/// Sets the bit in the database file itself, which is all that is left if the log is lost.
pub(in crate::sqlite) fn set(db: &Connection) -> rusqlite::Result<()> {
    db.execute("UPDATE dirty SET bit = 1", [])?;
    // A reader may delay it; then the next checkpoint includes it.
    db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
}

/// Clears the bit after the last write. If that fails, the log stays with its content.
pub(in crate::sqlite) fn clear(db: &Connection) -> Result<(), SqliteFailure> {
    let cleared = db.execute("UPDATE dirty SET bit = 0", []);
    if cleared.is_err() {
        db.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    }
    Ok(cleared.map(drop)?)
}
