//! Whether the database was closed in order: a dirty bit, as file systems have. Where it is set, what was stored last is in the
//! write-ahead log beside the file, and a file that is found without its log has lost that.

use super::{failure::Failure, files::log_of};
use rusqlite::{Connection, config::DbConfig};
use std::path::Path;

/// Whether a database has its log beside it. To be asked before it is opened, which makes an empty one.
pub(super) fn has_log(file: &Path) -> bool {
    log_of(file).exists()
}

/// Whether a database was not closed in order, and had no log when it was found: what was stored last is gone, unless another
/// program took it in.
pub(super) fn lacks_log(db: &Connection, had_log: bool) -> bool {
    !had_log && is_set(db).unwrap_or(false)
}

/// An old format has no such bit.
fn is_set(db: &Connection) -> rusqlite::Result<bool> {
    db.query_row("SELECT bit FROM dirty", [], |row| row.get(0))
}

/// Sets it, in the file itself: that is all that is left if the log goes missing.
pub(super) fn set(db: &Connection) -> rusqlite::Result<()> {
    db.execute("UPDATE dirty SET bit = 1", [])?;
    // Whoever reads meanwhile may hold it up, and then the next checkpoint takes it along.
    db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
}

/// Takes it back, for nothing is written any more. Where that cannot be written, the log stays, with what it holds.
pub(super) fn clear(db: &Connection) -> Result<(), Failure> {
    let cleared = db.execute("UPDATE dirty SET bit = 0", []);
    if cleared.is_err() {
        db.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    }
    Ok(cleared.map(drop)?)
}
