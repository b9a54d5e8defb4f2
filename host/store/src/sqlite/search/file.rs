//! File of the index.

use crate::sqlite::db::{
    files::{private, with_suffix},
    schema,
};
use rusqlite::Connection;
use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// Name of the index in the data directory.
const FILE: &str = "search.db";

/// Application id in the file's header: "a2as".
const APPLICATION_ID: i64 = 0x6132_6173;

/// Version of the tables and of what is in them. An index of another version is made anew.
const VERSION: i64 = 1;

const TABLES: &str = "
    -- The number of a task gives the order of results, and is its rowid in `texts`.
    CREATE TABLE tasks (
        number INTEGER PRIMARY KEY,
        task   TEXT NOT NULL UNIQUE,
        seq    INTEGER NOT NULL,
        person TEXT NOT NULL,
        flow   TEXT NOT NULL
    ) STRICT;
    CREATE TABLE usage (
        number          INTEGER NOT NULL,
        day             TEXT NOT NULL,
        model           TEXT NOT NULL,
        tasks           INTEGER NOT NULL,
        without_tokens  INTEGER NOT NULL,
        without_cost    INTEGER NOT NULL,
        input_tokens    INTEGER NOT NULL,
        output_tokens   INTEGER NOT NULL,
        cached_tokens   INTEGER NOT NULL,
        cost_micros     INTEGER NOT NULL,
        priced_micros   INTEGER NOT NULL,
        work_ms         INTEGER NOT NULL,
        questions       INTEGER NOT NULL,
        ruled           INTEGER NOT NULL,
        PRIMARY KEY (number, day, model)
    ) STRICT, WITHOUT ROWID;
    CREATE VIRTUAL TABLE texts USING fts5(
        facets, requests, answers, tokenize = 'unicode61 remove_diacritics 2'
    );
    -- Deleted texts leave no words in the index.
    INSERT INTO texts (texts, rank) VALUES ('secure-delete', 1);
";

/// Failure to open the index.
#[derive(Debug)]
pub(super) enum OpenFailure {
    /// The file cannot be used now.
    Sql(rusqlite::Error),
    /// The file cannot be created.
    File(io::Error),
    /// The file is no sound index of this version.
    Unusable(String),
}

impl From<rusqlite::Error> for OpenFailure {
    fn from(why: rusqlite::Error) -> Self {
        Self::Sql(why)
    }
}

/// Path of the index of a data directory.
pub(super) fn path(dir: &Path) -> PathBuf {
    dir.join(FILE)
}

/// Deletes the index in `dir`, for a store that is replaced.
pub(in crate::sqlite) fn remove(dir: &Path) -> io::Result<()> {
    remove_file(&path(dir))
}

/// Deletes the file of an index that is not open.
pub(super) fn remove_file(file: &Path) -> io::Result<()> {
    for path in ["", "-wal", "-shm", "-journal"].map(|suffix| with_suffix(file, suffix)) {
        match fs::remove_file(path) {
            Err(why) if why.kind() != io::ErrorKind::NotFound => return Err(why),
            Ok(()) | Err(_) => {}
        }
    }
    Ok(())
}

/// Opens the index for writing, or creates one that only this user can read. With `checks`, the
/// whole index is read, which takes seconds for many tasks.
pub(super) fn open(file: &Path, checks: bool) -> Result<Connection, OpenFailure> {
    private().open(file).map_err(OpenFailure::File)?;
    let db = schema::connect_to_write(file)?;
    let ask = |sql| db.query_row(sql, [], |row| row.get::<_, i64>(0));
    let is_new = ask("SELECT count(*) FROM sqlite_schema")? == 0;
    let found = (ask("PRAGMA application_id")?, ask("PRAGMA user_version")?);
    if !is_new && found != (APPLICATION_ID, VERSION) {
        return Err(OpenFailure::Unusable("it is of another version".to_owned()));
    }
    if !is_new && checks {
        // Without fsync, a machine that lost its power may have left anything. FTS5 compares its
        // words with the texts also in a quick check (`fts5IntegrityMethod` in SQLite's source).
        let verdict: String = db.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
        if verdict != "ok" {
            return Err(OpenFailure::Unusable(verdict));
        }
    }
    // Readers do not wait for the writer, and no write waits for the disk.
    db.pragma_update(None, "journal_mode", "WAL")?;
    db.pragma_update(None, "synchronous", "OFF")?;
    db.pragma_update(None, "secure_delete", "ON")?;
    db.pragma_update(None, "temp_store", "MEMORY")?;
    if is_new {
        db.execute_batch(&format!(
            "BEGIN IMMEDIATE; {TABLES} PRAGMA application_id = {APPLICATION_ID};
            PRAGMA user_version = {VERSION}; COMMIT"
        ))?;
    }
    Ok(db)
}
