//! Files of a data directory: the lock, and the database with its migrations.

use super::{
    dirty_bit, error,
    failure::SqliteFailure,
    files::private,
    losses::{self, Loss},
    migrations::{ADDITIONS, EVENTS_IN_ROWS, MIGRATIONS},
};
use crate::StorageError;
use rusqlite::{Connection, OpenFlags, config::DbConfig};
use std::{
    fs::{DirBuilder, File, TryLockError},
    io::{self, Read as _, Seek as _, Write as _},
    os::unix::fs::DirBuilderExt as _,
    path::Path,
    thread,
    time::Duration,
};

/// Application id in the file's header: "a2ah".
const APPLICATION_ID: i32 = 0x6132_6168;

/// Name of the database file in the data directory.
pub(in crate::sqlite) const FILE: &str = "hub.db";

/// Name of the lock file in the data directory, which contains the process id of the hub that holds
/// it.
pub const LOCK_FILE: &str = "hub.lock";

/// Value of `auto_vacuum` for releasing free pages on request.
const INCREMENTAL: i64 = 2;

/// Time to wait while another program locks the file.
const BUSY: Duration = Duration::from_secs(5);

/// Number of tries to take the lock, within a second: a program that was being started when its hub
/// was killed shares the lock until it runs.
const LOCK_TRIES: u32 = 50;

const LOCK_POLL: Duration = Duration::from_millis(20);

/// Length of the write-ahead log, in pages, from which the writer itself copies what the
/// checkpointer has left; the last writer waits for it. It is 49 MB. A task that is answered at
/// once writes some 17 pages when it is alone: with SQLite's default of 1,000, more than one task
/// in a hundred would wait. A killed hub reads its log at the next start, so it must not be much
/// longer.
pub(in crate::sqlite) const CHECKPOINT_PAGES: i64 = 12_000;

/// Capacity of the statement cache: some sixty statements exist, and none should be parsed twice.
const STATEMENTS: usize = 96;

/// True if a hub uses the data directory now.
pub(in crate::sqlite) fn is_in_use(dir: &Path) -> bool {
    let lock = File::open(dir.join(LOCK_FILE));
    lock.is_ok_and(|lock| matches!(lock.try_lock_shared(), Err(TryLockError::WouldBlock)))
}

/// Locks the data directory, creating it if needed, until the returned file is dropped.
pub(in crate::sqlite) fn lock(dir: &Path) -> Result<File, StorageError> {
    let path = dir.join(LOCK_FILE);
    let failed = |why: io::Error| error::no_file(&format!("lock {}", path.display()), &why);
    DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(failed)?;
    let mut file = private().read(true).open(&path).map_err(failed)?;
    match lock_patiently(&file) {
        Ok(()) => {}
        Err(TryLockError::Error(why)) => return Err(failed(why)),
        Err(TryLockError::WouldBlock) => {
            let mut pid = String::new();
            // The process id is only a hint for the reader; the refusal is the same without it.
            let pid = file.read_to_string(&mut pid).ok().and_then(|_| pid.trim().parse().ok());
            return Err(StorageError::Locked { path, pid });
        }
    }
    let sign = |file: &mut File| {
        file.set_len(0)?;
        file.rewind()?;
        writeln!(file, "{}", std::process::id())
    };
    sign(&mut file).map_err(failed)?;
    Ok(file)
}

/// Takes the lock, waiting for the processes of a hub that was just killed.
#[expect(clippy::disallowed_methods, reason = "a hub does nothing else until it has its store")]
fn lock_patiently(file: &File) -> Result<(), TryLockError> {
    for _ in 1..LOCK_TRIES {
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => thread::sleep(LOCK_POLL),
            locked => return locked,
        }
    }
    file.try_lock()
}

/// Opens the database for writing, and updates its tables. Returns the losses it found as well.
pub(in crate::sqlite) fn open(file: &Path) -> Result<(Connection, Vec<Loss>), StorageError> {
    let had_log = dirty_bit::has_log(file);
    let mut losses = losses::before_opening(file)?;
    // SQLite gives its other files the same permissions.
    let opened = private().open(file);
    opened.map_err(|why| error::no_file(&format!("open {}", file.display()), &why))?;
    let mut db = connect_to_write(file).map_err(|why| unopened(file, &why))?;
    let known = check(&db, file)?;
    if dirty_bit::lacks_log(&db, had_log) {
        losses.push(Loss::LogMissing);
    }
    prepare(&mut db, known).map_err(|why| unopened(file, &why))?;
    if let Err(why) = dirty_bit::set(&db) {
        tracing::warn!(%why, "cannot mark the store as open, a missing write-ahead log would not be detected");
    }
    Ok((db, losses))
}

/// Error of opening a database: unreachable, or damaged.
pub(in crate::sqlite) fn unopened(file: &Path, why: &rusqlite::Error) -> StorageError {
    let subject = file.display().to_string();
    if error::is_damage(why) {
        StorageError::Corrupt { subject, why: why.to_string() }
    } else {
        StorageError::Unavailable(format!("open {subject}: {why}; {}", error::way_out(why)))
    }
}

/// Makes a write that changes nothing: one page, as durable as any other write.
pub(in crate::sqlite) fn touch(db: &Connection) -> Result<(), SqliteFailure> {
    Ok(db.pragma_update(None, "user_version", integer(MIGRATIONS.len() as u64))?)
}

/// Opens a database for writing, without changing its tables.
pub(in crate::sqlite) fn connect_to_write(file: &Path) -> rusqlite::Result<Connection> {
    connect(file, OpenFlags::SQLITE_OPEN_READ_WRITE)
}

/// Opens the database for checkpoints, which are as durable as writes.
pub(in crate::sqlite) fn open_for_checkpoints(file: &Path) -> Result<Connection, StorageError> {
    let db = connect_to_write(file).map_err(|why| unopened(file, &why))?;
    db.pragma_update(None, "synchronous", "FULL").map_err(|why| unopened(file, &why))?;
    Ok(db)
}

/// Opens the database for reading, while the writer has it open.
pub(in crate::sqlite) fn open_to_read(file: &Path) -> rusqlite::Result<Connection> {
    connect(file, OpenFlags::SQLITE_OPEN_READ_ONLY)
}

/// Opens a database that nobody has open, without creating files beside it.
pub(in crate::sqlite) fn open_at_rest(file: &Path) -> rusqlite::Result<Connection> {
    let path = file.to_string_lossy().replace('%', "%25").replace('?', "%3f").replace('#', "%23");
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
    connect(Path::new(&format!("file:{path}?immutable=1")), flags)
}

fn connect(file: &Path, flags: OpenFlags) -> rusqlite::Result<Connection> {
    // Each connection is used by one thread at a time, so SQLite's own locks are not needed.
    let flags = flags | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let db = Connection::open_with_flags(file, flags)?;
    db.busy_timeout(BUSY)?;
    // Without this, SQLite plans a statement again for every value that might change its plan.
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    db.set_prepared_statement_cache_capacity(STATEMENTS);
    Ok(db)
}

/// Number of migrations that the file has had, if it is a hub's and not newer than this hub. Writes
/// nothing.
pub(in crate::sqlite) fn check(db: &Connection, file: &Path) -> Result<usize, StorageError> {
    let ask = |sql| db.query_row(sql, [], |row| row.get::<_, i64>(0));
    let ask = |sql| ask(sql).map_err(|why| unopened(file, &why));
    let corrupt = |why: String| StorageError::Corrupt { subject: file.display().to_string(), why };
    let is_empty = ask("SELECT count(*) FROM sqlite_schema")? == 0;
    let owner = ask("PRAGMA application_id")?;
    let format = ask("PRAGMA user_version")?;
    if is_empty {
        return Ok(0);
    }
    let (Ok(applied), true) = (usize::try_from(format), owner == i64::from(APPLICATION_ID)) else {
        return Err(corrupt("it is not the database of a hub".into()));
    };
    if applied > MIGRATIONS.len() {
        let [found, known] = [applied, MIGRATIONS.len()].map(|n| n.try_into().unwrap_or(u32::MAX));
        return Err(StorageError::Newer { path: file.to_owned(), found, known });
    }
    Ok(applied)
}

fn prepare(db: &mut Connection, known: usize) -> rusqlite::Result<()> {
    give_back_pages(db)?;
    // In WAL mode with FULL, a commit is one append and one fsync, and readers never wait.
    db.pragma_update(None, "journal_mode", "WAL")?;
    db.pragma_update(None, "synchronous", "FULL")?;
    // A statement journal holds some pages; in a temporary file it would cost more than the log
    // itself.
    db.pragma_update(None, "temp_store", "MEMORY")?;
    for (version, migration) in (1..).zip(MIGRATIONS).skip(known) {
        let change = db.transaction()?;
        change.execute_batch(migration)?;
        change.pragma_update(None, "application_id", APPLICATION_ID)?;
        change.pragma_update(None, "user_version", version)?;
        change.commit()?;
    }
    add(db)?;
    if known == 0 {
        let change = db.transaction()?;
        change.execute_batch(EVENTS_IN_ROWS)?;
        change.commit()?;
    }
    Ok(())
}

/// Applies missing additions. A file with additions of a later hub is accepted.
fn add(db: &mut Connection) -> rusqlite::Result<()> {
    db.execute_batch("CREATE TABLE IF NOT EXISTS additions (number INTEGER PRIMARY KEY) STRICT")?;
    let known: i64 = db.query_row("SELECT count(*) FROM additions", [], |row| row.get(0))?;
    let known = usize::try_from(known).unwrap_or(usize::MAX);
    for (number, addition) in (1_i64..).zip(ADDITIONS).skip(known) {
        let change = db.transaction()?;
        change.execute_batch(addition)?;
        change.execute("INSERT INTO additions (number) VALUES (?1)", [number])?;
        change.commit()?;
    }
    Ok(())
}

/// Makes the file track its free pages, so that they can be released a few at a time.
fn give_back_pages(db: &Connection) -> rusqlite::Result<()> {
    let mode: i64 = db.query_row("PRAGMA auto_vacuum", [], |row| row.get(0))?;
    if mode == INCREMENTAL {
        return Ok(());
    }
    db.pragma_update(None, "auto_vacuum", INCREMENTAL)?;
    // An empty file is complete now; a file from before this setting is rewritten once.
    if let Err(why) = db.execute_batch("VACUUM") {
        tracing::warn!(%why, "cannot enable incremental vacuum, the database file will not shrink; free some disk space");
    }
    Ok(())
}

/// Converts a number for SQLite. None comes near the limit.
pub(in crate::sqlite) fn integer(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}
