//! Backup, check and restore of a store.
//!
//! A backup is a snapshot of one reader (snapshot isolation), in one file without a log. It is
//! written beside its target, checked, and only then given its name, so that no partial file is
//! ever found there.

use super::{
    db::{
        dirty_bit, error,
        files::{log_of, private, with_suffix},
        losses, schema,
    },
    log::events,
    search::file,
};
use crate::{BackupError, Copied, StorageError, TaskCounts};
use rusqlite::{Connection, InterruptHandle};
use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    sync::mpsc,
    thread,
    time::Duration,
};

/// Name under which a restore keeps the replaced store; a number is appended if the name is taken.
const REPLACED_FILE: &str = "hub.db.old";

/// Result of a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Examined {
    /// No store exists.
    Absent,
    /// Everything was checked, and is sound.
    Sound,
    /// The time limit ended the check; no damage was found until then.
    SoundSoFar,
}

/// Copies the store of the data directory `dir`, in use or not, to the new file `to`, which only
/// this user can read.
pub fn back_up(dir: &Path, to: &Path) -> Result<Copied, BackupError> {
    let from = dir.join(schema::FILE);
    if is_absent(&from) {
        return Err(BackupError::Absent(from));
    }
    if to.exists() {
        return Err(BackupError::Taken(to.to_owned()));
    }
    let (db, _) = open_existing(&from)?;
    let draft = with_suffix(to, ".part");
    let copied = copy(&db, &draft).and_then(|copied| {
        // Unlike a rename, a hard link overwrites nothing.
        let failed = |why: io::Error| error::no_file(&format!("write {}", to.display()), &why);
        fs::hard_link(&draft, to).map_err(failed)?;
        keep_name(to)?;
        Ok(copied)
    });
    // The draft's name, or the rest of a failed draft; it may not exist.
    let _ = fs::remove_file(&draft);
    Ok(copied?)
}

/// Makes a consistent copy in a new file.
fn copy(db: &Connection, draft: &Path) -> Result<Copied, StorageError> {
    let failed = |why: io::Error| error::no_file(&format!("write {}", draft.display()), &why);
    match fs::remove_file(draft) {
        Err(why) if why.kind() != io::ErrorKind::NotFound => return Err(failed(why)),
        Ok(()) | Err(_) => {}
    }
    let file = private().open(draft).map_err(failed)?;
    let sql = |why: rusqlite::Error| error::because_of(&why);
    db.execute("VACUUM INTO ?1", [&draft.to_string_lossy()]).map_err(sql)?;
    let copy = schema::connect_to_write(draft).map_err(sql)?;
    // Nobody writes to the copy; an old format has no dirty bit.
    let _ = dirty_bit::clear(&copy);
    let copied = verify(&copy, draft)?;
    drop(copy);
    file.sync_all().map_err(failed)?;
    Ok(copied)
}

/// Replaces the store of the data directory `dir`, which must not be in use, by the backup `from`.
/// Returns the path under which the replaced store is kept.
pub fn restore(dir: &Path, from: &Path) -> Result<(Copied, Option<PathBuf>), StorageError> {
    let _lock = schema::lock(dir)?;
    let database = dir.join(schema::FILE);
    // Damaged files and other files replace nothing. The file is copied first, so that it cannot
    // change after the check.
    let draft = with_suffix(&database, ".new");
    let restored = take_in(from, &draft).and_then(|copied| {
        let replaced = set_aside(dir, &database)?;
        let failed =
            |why: io::Error| error::no_file(&format!("write {}", database.display()), &why);
        // The index is of the replaced store; the next hub makes it anew.
        file::remove(dir).map_err(failed)?;
        fs::rename(&draft, &database).map_err(failed)?;
        keep_name(&database)?;
        Ok((copied, replaced))
    });
    if restored.is_err() {
        let _ = fs::remove_file(&draft);
    }
    restored
}

fn take_in(from: &Path, draft: &Path) -> Result<Copied, StorageError> {
    let failed = |why: io::Error| error::no_file(&format!("copy {}", from.display()), &why);
    let mut source = File::open(from).map_err(failed)?;
    let mut file = private().truncate(true).open(draft).map_err(failed)?;
    io::copy(&mut source, &mut file).map_err(failed)?;
    file.sync_all().map_err(failed)?;
    let db = schema::connect_to_write(draft).map_err(|why| schema::unopened(from, &why))?;
    // An empty file would be opened as a new store, but it is no backup.
    if schema::check(&db, from)? == 0 {
        let (subject, why) = (from.display().to_string(), "there is nothing in it".to_owned());
        return Err(StorageError::Corrupt { subject, why });
    }
    // A file taken from a running hub without its log is no backup.
    if dirty_bit::lacks_log(&db, false) {
        return Err(log_missing(from));
    }
    verify(&db, from)
}

/// Keeps the existing store, with its log and the log's index, under a free name; none if no store
/// exists. A database file is in place at every moment.
fn set_aside(dir: &Path, database: &Path) -> Result<Option<PathBuf>, StorageError> {
    let mut replaced = dir.join(REPLACED_FILE);
    let mut number = 1;
    while replaced.exists() || dirty_bit::has_log(&replaced) {
        number += 1;
        replaced = dir.join(format!("{REPLACED_FILE}.{number}"));
    }
    let failed = |why: io::Error| error::no_file(&format!("keep {}", replaced.display()), &why);
    let is_there = !is_absent(database);
    absent_is_fine(fs::hard_link(database, &replaced)).map_err(failed)?;
    let (log, replaced_log) = (log_of(database), log_of(&replaced));
    absent_is_fine(fs::rename(log, replaced_log)).map_err(failed)?;
    // The index tells what the log may have lost.
    let (index, replaced_index) = (with_suffix(database, "-shm"), with_suffix(&replaced, "-shm"));
    absent_is_fine(fs::rename(index, replaced_index)).map_err(failed)?;
    Ok(is_there.then_some(replaced))
}

fn absent_is_fine(done: io::Result<()>) -> io::Result<()> {
    match done {
        Err(why) if why.kind() == io::ErrorKind::NotFound => Ok(()),
        done => done,
    }
}

/// Checks that this program can open the store of the data directory `dir`, in use or not. A
/// missing store is fine.
pub fn check(dir: &Path) -> Result<(), StorageError> {
    let file = dir.join(schema::FILE);
    if is_absent(&file) {
        return Ok(());
    }
    open_existing(&file).map(drop)
}

/// Checks the store of the data directory `dir`, in use or not, for at most `timeout`.
pub fn examine(dir: &Path, timeout: Duration) -> Result<Examined, StorageError> {
    let file = dir.join(schema::FILE);
    if is_absent(&file) {
        return Ok(Examined::Absent);
    }
    let (db, lacks_log) = open_existing(&file)?;
    if lacks_log {
        return Err(log_missing(&file));
    }
    let (done, watched) = mpsc::channel();
    let handle = db.get_interrupt_handle();
    let watch = thread::spawn(move || interrupt(&handle, &watched, timeout));
    let found = verify(&db, &file);
    drop(done);
    match (found, watch.join()) {
        (Err(_), Ok(true)) => Ok(Examined::SoundSoFar),
        (found, _) => found.map(|_| Examined::Sound),
    }
}

/// Logs in the data directory `dir` that earlier starts kept because they could not be used whole.
pub fn retained_logs(dir: &Path) -> Vec<PathBuf> {
    losses::retained_logs(&dir.join(schema::FILE)).collect()
}

/// True if no store exists: neither a database nor a log of one.
fn is_absent(file: &Path) -> bool {
    let log = fs::metadata(log_of(file));
    !file.exists() && !log.is_ok_and(|log| log.len() > 0)
}

/// Opens a database for reading, in use or not, and returns true if its log is missing. Creates no
/// log, as the next hub would take that for the missing one.
fn open_existing(file: &Path) -> Result<(Connection, bool), StorageError> {
    if !file.parent().is_some_and(schema::is_in_use) {
        // Even a read makes SQLite rewrite the log's index, which tells what the log has lost.
        losses::require_complete(file)?;
    }
    let has_log = dirty_bit::has_log(file);
    let opened = if has_log { schema::open_to_read(file) } else { schema::open_at_rest(file) };
    let db = opened.map_err(|why| schema::unopened(file, &why))?;
    schema::check(&db, file)?;
    let lacks_log = dirty_bit::lacks_log(&db, has_log);
    Ok((db, lacks_log))
}

fn log_missing(file: &Path) -> StorageError {
    let log = log_of(file);
    StorageError::LogMissing { file: file.to_owned(), log }
}

/// Checks every page of a database, and counts its content.
fn verify(db: &Connection, file: &Path) -> Result<Copied, StorageError> {
    let found = db.query_row("PRAGMA quick_check(1)", [], |row| row.get::<_, String>(0));
    let found = found.map_err(|why| schema::unopened(file, &why))?;
    if found != "ok" {
        return Err(StorageError::Corrupt { subject: file.display().to_string(), why: found });
    }
    // A backup in an old format has no counters yet.
    let counts =
        events::tally(db).map(|tallies| TaskCounts::from_tallies(&tallies)).unwrap_or_default();
    Ok(Copied { counts, bytes: events::size(db)? })
}

/// Interrupts SQLite after the time limit; true if it did.
fn interrupt(handle: &InterruptHandle, done: &mpsc::Receiver<()>, timeout: Duration) -> bool {
    let is_late = done.recv_timeout(timeout) == Err(mpsc::RecvTimeoutError::Timeout);
    if is_late {
        handle.interrupt();
    }
    is_late
}

/// Makes a file's directory entry durable.
fn keep_name(file: &Path) -> Result<(), StorageError> {
    let failed = |why: io::Error| error::no_file(&format!("write {}", file.display()), &why);
    let folder = file.parent().filter(|parent| !parent.as_os_str().is_empty());
    let folder = File::open(folder.unwrap_or(Path::new("."))).map_err(failed)?;
    folder.sync_all().map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        StoreHealth as _, TaskIndex as _, TaskLog as _,
        contract::{chunk, created, status},
        sqlite::{Loss, SqliteStorage},
    };
    use a2a_hub_protocol::{id::TaskId, task::TaskState};
    use std::os::unix::fs::PermissionsExt as _;
    use tempfile::{TempDir, tempdir};

    const LONG: Duration = Duration::from_secs(60);

    async fn task(storage: &SqliteStorage) -> TaskId {
        let task = TaskId::fresh();
        let end = status(TaskState::Completed, 2, Some("done"));
        let log = vec![created(&task, "c"), status(TaskState::Working, 1, None), chunk("x"), end];
        storage.append(&task, 0, log).await.unwrap();
        task
    }

    /// Copies the files as `kill -9` leaves them.
    fn killed(dir: &TempDir, files: &[&str]) -> TempDir {
        let to = tempdir().unwrap();
        for file in files {
            fs::copy(dir.path().join(file), to.path().join(file)).unwrap();
        }
        to
    }

    #[tokio::test]
    async fn live_backup_is_consistent_and_restorable() {
        let (dir, other) = (tempdir().unwrap(), tempdir().unwrap());
        let storage = SqliteStorage::open(dir.path()).unwrap();
        let before = task(&storage).await;
        let (from, to) = (dir.path().to_owned(), other.path().join("copy"));
        let backing = tokio::task::spawn_blocking(move || back_up(&from, &to));
        for _ in 0..20 {
            task(&storage).await;
        }
        let copied = backing.await.unwrap().unwrap();
        assert!((1..=21).contains(&copied.counts.total), "{copied:?}");
        let copy = other.path().join("copy");
        assert_eq!(fs::metadata(&copy).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(other.path()).unwrap().count(), 1, "it leaves nothing else");
        let taken = back_up(dir.path(), &copy).unwrap_err().to_string();
        assert!(taken.contains("name another"), "{taken}");

        let locked = restore(dir.path(), &copy).unwrap_err();
        assert!(matches!(locked, StorageError::Locked { .. }), "{locked}");
        let after = task(&storage).await;
        let events = storage.events(&before, 0, 10).await;
        drop(storage);
        let old = dir.path().join(REPLACED_FILE);
        assert_eq!(restore(dir.path(), &copy), Ok((copied, Some(old))));
        let restored = SqliteStorage::open(dir.path()).unwrap();
        assert!(restored.losses().is_empty());
        assert_eq!(restored.counts().await, Ok(copied.counts));
        assert_eq!(restored.events(&before, 0, 10).await, events);
        assert_eq!(restored.head(&after).await, Ok(None));
        task(&restored).await;
        drop(restored);

        // The replaced store is usable, and is not overwritten by another restore.
        let again = dir.path().join("hub.db.old.2");
        assert_eq!(restore(dir.path(), &copy), Ok((copied, Some(again))));
        fs::copy(dir.path().join(REPLACED_FILE), other.path().join(schema::FILE)).unwrap();
        let replaced = SqliteStorage::open(other.path()).unwrap();
        assert!(replaced.head(&after).await.unwrap().is_some());
    }

    #[tokio::test]
    async fn invalid_backup_replaces_nothing() {
        let (dir, other) = (tempdir().unwrap(), tempdir().unwrap());
        let storage = SqliteStorage::open(dir.path()).unwrap();
        let kept = task(&storage).await;
        let (torn, copy) = (other.path().join("torn"), other.path().join("copy"));
        let from_under = killed(&dir, &["hub.db"]).path().join("hub.db");
        back_up(dir.path(), &copy).unwrap();
        let under = killed(&dir, &["hub.db"]);
        drop(storage);
        let mut bytes = fs::read(&copy).unwrap();
        let len = bytes.len();
        bytes[4096..len - 4096].fill(0xa5);
        fs::write(&torn, bytes).unwrap();
        fs::write(other.path().join("note"), "Dear diary").unwrap();
        fs::write(other.path().join("empty"), "").unwrap();
        let cases = [
            (torn, "restore the data directory from a backup"),
            (other.path().join("note"), "restore the data directory from a backup"),
            (other.path().join("empty"), "there is nothing in it"),
            ("/dev/null".into(), "there is nothing in it"),
            (from_under, "No such file"),
            (under.path().join("hub.db"), "its log is not beside it"),
        ];
        for (from, why) in cases {
            let refused = restore(dir.path(), &from).unwrap_err().to_string();
            assert!(refused.contains(why), "{}: {refused}", from.display());
        }
        assert!(!dir.path().join("hub.db.new").exists());
        let storage = SqliteStorage::open(dir.path()).unwrap();
        assert!(storage.head(&kept).await.unwrap().is_some());
    }

    #[tokio::test]
    async fn check_finds_damage_but_passes_live_store() {
        let dir = tempdir().unwrap();
        assert_eq!(examine(dir.path(), LONG), Ok(Examined::Absent));
        let storage = SqliteStorage::open(dir.path()).unwrap();
        for _ in 0..20 {
            task(&storage).await;
        }
        assert_eq!(examine(dir.path(), LONG), Ok(Examined::Sound));
        drop(storage);
        assert_eq!(examine(dir.path(), LONG), Ok(Examined::Sound));
        let file = dir.path().join(schema::FILE);
        let mut bytes = fs::read(&file).unwrap();
        bytes[8192..12_288].fill(0xa5);
        fs::write(&file, bytes).unwrap();
        let damaged = examine(dir.path(), LONG).unwrap_err();
        assert!(matches!(damaged, StorageError::Corrupt { .. }), "{damaged}");
    }

    #[tokio::test]
    async fn missing_log_is_reported_once() {
        let dir = tempdir().unwrap();
        let storage = SqliteStorage::open(dir.path()).unwrap();
        assert!(storage.losses().is_empty(), "a new one");
        task(&storage).await;
        let with_log = killed(&dir, &["hub.db", "hub.db-wal"]);
        let without = killed(&dir, &["hub.db"]);
        drop(storage);
        assert!(SqliteStorage::open(dir.path()).unwrap().losses().is_empty(), "closed in order");
        assert!(SqliteStorage::open(with_log.path()).unwrap().losses().is_empty(), "killed");
        let missing = examine(without.path(), LONG).unwrap_err();
        assert!(matches!(missing, StorageError::LogMissing { .. }), "{missing}");
        let found = SqliteStorage::open(without.path()).unwrap();
        assert_eq!(found.losses(), [Loss::LogMissing]);
        found.probe().await.unwrap();
        drop(found);
        assert!(SqliteStorage::open(without.path()).unwrap().losses().is_empty(), "told once");
    }

    #[tokio::test]
    async fn failed_close_keeps_log() {
        let dir = tempdir().unwrap();
        let storage = SqliteStorage::open(dir.path()).unwrap();
        let kept = task(&storage).await;
        let fire =
            "CREATE TRIGGER fire BEFORE UPDATE ON dirty BEGIN SELECT RAISE(ABORT, 'full'); END";
        let set = move |db: &Connection| Ok(db.execute_batch(fire)?);
        storage.writer.write(set).await.unwrap();
        drop(storage);
        assert!(dirty_bit::has_log(&dir.path().join(schema::FILE)));
        let storage = SqliteStorage::open(dir.path()).unwrap();
        assert!(storage.losses().is_empty() && storage.head(&kept).await.unwrap().is_some());
    }
}
