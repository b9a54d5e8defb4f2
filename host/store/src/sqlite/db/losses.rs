//! Losses of a store, found before SQLite opens it: a database or a log that is missing, empty or
//! cut short.
//!
//! SQLite silently deletes the log of an empty database, and silently uses a log that was cut short
//! as far as it goes. So the files are inspected first, and a log that cannot be used whole is kept
//! beside the database.

use super::{
    error,
    files::{log_of, private, with_suffix},
    wal::{self, LogCondition},
};
use crate::StorageError;
use std::{
    fs::{self, File},
    io::{self, Read as _},
    path::{Path, PathBuf},
};

/// First bytes of every SQLite database's header.
const MAGIC: &[u8; 16] = b"SQLite format 3\0";

/// Number of logs to keep; each may have some 50 MB.
const MAX_RETAINED_LOGS: u32 = 8;

/// A certain or possible loss of a store. The text is for the operator.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Loss {
    /// The database was not closed in order, and its log was missing.
    #[error(
        "the hub before was not stopped in order, and the log of its database (`hub.db-wal`) was missing: what was stored last is \
         gone, unless another program, such as `sqlite3`, took it in; a log that is found later must be put beside the database \
         before a hub starts"
    )]
    LogMissing,
    /// The log was cut short or damaged; it was used as far as it goes.
    #[error(
        "the log of the database (`hub.db-wal`) was cut short or damaged: the last {missing} of its {committed} pages are missing, and \
         with them what was stored last; the log is kept as {retained}; `a2a-hub restore FILE` brings back a copy, if one has more",
        retained = .retained.display()
    )]
    LogCut {
        /// The copy of the log.
        retained: PathBuf,
        /// Number of pages that were committed to the log.
        committed: u32,
        /// Number of missing pages.
        missing: u32,
    },
    /// The log was cut short or damaged after all of it was checkpointed.
    #[error(
        "the log of the database (`hub.db-wal`) was cut short or damaged; nothing is lost, for the database held all of it already; \
         the log is kept as {retained}; see whether the disk is sound",
        retained = .retained.display()
    )]
    LogNeedless {
        /// The log.
        retained: PathBuf,
    },
    /// The log ends in the middle of a write, and its index is missing, which would tell whether
    /// that write was committed.
    #[error(
        "the log of the database (`hub.db-wal`) ends in the middle of a write, and its index (`hub.db-shm`) is missing: either the hub \
         was killed while it wrote, and nothing is lost, or the log was cut short, and what was stored last is missing; the log is \
         kept as {retained}",
        retained = .retained.display()
    )]
    LogTorn {
        /// The copy of the log.
        retained: PathBuf,
    },
    /// The database was an empty file.
    #[error(
        "the database {file} was empty, and was begun anew: if it ever held tasks, these are gone; `a2a-hub restore FILE` brings back a \
         copy", file = .file.display()
    )]
    Emptied {
        /// File of the database.
        file: PathBuf,
    },
    /// An earlier start kept a log that could not be used whole.
    #[error(
        "{retained} is a log that could not be used whole when a hub started before: tasks that were stored in it last may be missing; \
         move it away when it is of no more use, and start the hub again",
        retained = .retained.display()
    )]
    Retained {
        /// The log.
        retained: PathBuf,
    },
}

/// Inspects the files of a database that nobody has open, without changing them.
pub(in crate::sqlite) fn inspect(file: &Path) -> Result<LogCondition, StorageError> {
    let log = log_of(file);
    let failed = |why: io::Error| error::no_file(&format!("read {}", log.display()), &why);
    if length(&log).map_err(failed)? > 0 && !has_header(file).map_err(failed)? {
        return Err(StorageError::DatabaseMissing { file: file.to_owned(), log });
    }
    wal::inspect(&log, &with_suffix(file, "-shm")).map_err(failed)
}

/// Inspects the files likewise; anything but a whole log is an error.
pub(in crate::sqlite) fn require_complete(file: &Path) -> Result<(), StorageError> {
    let is_usable = match inspect(file)? {
        LogCondition::Complete => return Ok(()),
        LogCondition::Torn => true,
        LogCondition::Cut(cut) => cut.is_usable() || cut.is_harmless(),
    };
    Err(log_cut(file, is_usable))
}

/// Prepares the files for opening: keeps a log that cannot be used whole, and refuses one that does
/// not fit the database.
pub(in crate::sqlite) fn before_opening(file: &Path) -> Result<Vec<Loss>, StorageError> {
    let found = inspect(file)?;
    let mut losses: Vec<_> =
        retained_logs(file).map(|retained| Loss::Retained { retained }).collect();
    if fs::metadata(file).is_ok_and(|meta| meta.len() == 0) {
        losses.push(Loss::Emptied { file: file.to_owned() });
    }
    let loss = match found {
        LogCondition::Complete => None,
        LogCondition::Torn => Some(Loss::LogTorn { retained: retain_log(file, copy)? }),
        LogCondition::Cut(cut) if cut.is_harmless() => {
            // SQLite would bring back pages that later ones have replaced.
            Some(Loss::LogNeedless {
                retained: retain_log(file, |log, retained| fs::rename(log, retained))?,
            })
        }
        LogCondition::Cut(cut) if cut.is_usable() => {
            let (committed, missing) = (cut.committed, cut.committed - cut.remaining);
            Some(Loss::LogCut { retained: retain_log(file, copy)?, committed, missing })
        }
        LogCondition::Cut(_) => return Err(log_cut(file, false)),
    };
    losses.extend(loss);
    Ok(losses)
}

/// Kept logs beside a database, oldest first.
pub(in crate::sqlite) fn retained_logs(file: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    let names = retained_log_names(file);
    names.into_iter().filter(|retained| retained.exists())
}

fn retained_log_names(file: &Path) -> Vec<PathBuf> {
    let first = with_suffix(file, "-wal.cut");
    let others =
        (2..=MAX_RETAINED_LOGS).map(|number| with_suffix(file, &format!("-wal.cut.{number}")));
    std::iter::once(first).chain(others).collect()
}

/// Keeps the log of a database under a free name, by this function.
fn retain_log(
    file: &Path,
    by: impl FnOnce(&Path, &Path) -> io::Result<()>,
) -> Result<PathBuf, StorageError> {
    let log = log_of(file);
    let Some(retained) = retained_log_names(file).into_iter().find(|retained| !retained.exists())
    else {
        return Err(error::unavailable(format!(
            "keep {log}, which is damaged: {MAX_RETAINED_LOGS} such logs exist next to it; move `{log}.cut` and the others away",
            log = log.display()
        )));
    };
    let failed = |why: io::Error| error::no_file(&format!("keep {}", retained.display()), &why);
    by(&log, &retained).map_err(failed)?;
    Ok(retained)
}

/// Copies a file; a partial copy never has the final name.
fn copy(from: &Path, to: &Path) -> io::Result<()> {
    let draft = with_suffix(to, ".part");
    let mut file = private().truncate(true).open(&draft)?;
    io::copy(&mut File::open(from)?, &mut file)?;
    file.sync_all()?;
    fs::rename(draft, to)
}

fn log_cut(file: &Path, is_usable: bool) -> StorageError {
    let log = log_of(file);
    StorageError::LogCut { file: file.to_owned(), log, is_usable }
}

/// True if a file begins like every SQLite database.
fn has_header(file: &Path) -> io::Result<bool> {
    let mut header = [0; 100];
    let read = File::open(file).and_then(|mut file| file.read_exact(&mut header));
    match read {
        Ok(()) => Ok(header.starts_with(MAGIC)),
        Err(why) if is_absence(&why) || why.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(why) => Err(why),
    }
}

fn length(file: &Path) -> io::Result<u64> {
    match fs::metadata(file) {
        Ok(meta) => Ok(meta.len()),
        Err(why) if is_absence(&why) => Ok(0),
        Err(why) => Err(why),
    }
}

fn is_absence(why: &io::Error) -> bool {
    why.kind() == io::ErrorKind::NotFound
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        StorageError, TaskIndex as _, TaskLog as _,
        contract::{created, status},
        sqlite::{Examined, SqliteStorage, back_up, db::schema, examine, restore},
    };
    use a2a_hub_protocol::{id::TaskId, task::TaskState};
    use std::time::Duration;
    use tempfile::{TempDir, tempdir};

    const FILES: [&str; 3] = ["hub.db-shm", "hub.db-wal", "hub.db"];

    async fn task(storage: &SqliteStorage) -> TaskId {
        let task = TaskId::fresh();
        let log = vec![created(&task, "c"), status(TaskState::Working, 1, None)];
        storage.append(&task, 0, log).await.unwrap();
        task
    }

    /// Creates a store, and tasks in it one by one.
    async fn with_tasks(many: usize) -> (TempDir, SqliteStorage, Vec<TaskId>) {
        let dir = tempdir().unwrap();
        let storage = SqliteStorage::open(dir.path()).unwrap();
        let mut tasks = Vec::new();
        for _ in 0..many {
            tasks.push(task(&storage).await);
        }
        (dir, storage, tasks)
    }

    fn checkpoint(dir: &TempDir) {
        let db = schema::open_for_checkpoints(&dir.path().join(schema::FILE)).unwrap();
        let count = |row: &rusqlite::Row<'_>| Ok((row.get(1)?, row.get(2)?));
        let done: (i64, i64) = db.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], count).unwrap();
        assert_eq!(done.0, done.1, "nobody reads meanwhile");
    }

    /// Copies the files as a killed process leaves them.
    fn killed(dir: &TempDir) -> TempDir {
        let to = tempdir().unwrap();
        for file in FILES {
            fs::copy(dir.path().join(file), to.path().join(file)).unwrap();
        }
        to
    }

    fn cut(dir: &TempDir, length: impl Fn(u64) -> u64) {
        let log = fs::OpenOptions::new().write(true).open(dir.path().join("hub.db-wal")).unwrap();
        log.set_len(length(log.metadata().unwrap().len())).unwrap();
    }

    fn bytes(dir: &TempDir) -> Vec<Option<Vec<u8>>> {
        FILES.map(|file| fs::read(dir.path().join(file)).ok()).into()
    }

    /// Number of remaining tasks, which must be the first ones.
    async fn left(storage: &SqliteStorage, tasks: &[TaskId]) -> usize {
        let mut found = Vec::new();
        for task in tasks {
            found.push(storage.head(task).await.unwrap().is_some());
        }
        let left = found.iter().take_while(|is_there| **is_there).count();
        assert!(!found[left..].contains(&true), "{found:?}");
        left
    }

    #[tokio::test]
    async fn killed_hub_loses_nothing() {
        let (dir, storage, mut tasks) = with_tasks(20).await;
        for round in 0..4 {
            if round == 2 {
                checkpoint(&dir);
            }
            let plain = killed(&dir);
            let writing = killed(&dir);
            // The beginning of an uncommitted transaction, torn within a page.
            let log = writing.path().join("hub.db-wal");
            let mut bytes = fs::read(&log).unwrap();
            bytes.extend_from_within(HEAD..HEAD + 6_000);
            fs::write(&log, bytes).unwrap();
            for dir in [plain, writing] {
                let storage = SqliteStorage::open(dir.path()).unwrap();
                assert_eq!(storage.losses(), [], "round {round}");
                assert_eq!(left(&storage, &tasks).await, tasks.len());
            }
            tasks.push(task(&storage).await);
        }
    }

    /// Size of a log's header in bytes.
    const HEAD: usize = 32;

    #[tokio::test]
    async fn cut_log_is_used_and_kept() {
        let (dir, storage, tasks) = with_tasks(20).await;
        let dir = killed(&dir);
        drop(storage);
        cut(&dir, |length| length / 2);
        let before = bytes(&dir);
        let told = examine(dir.path(), Duration::from_secs(60)).unwrap_err();
        assert!(matches!(told, StorageError::LogCut { is_usable: true, .. }), "{told}");
        let copy = dir.path().join("copy");
        let refused = back_up(dir.path(), &copy).unwrap_err().to_string();
        assert!(refused.contains("`a2a-hub start` keeps the log"), "{refused}");
        assert_eq!(bytes(&dir), before, "a look changes nothing");

        let storage = SqliteStorage::open(dir.path()).unwrap();
        let retained = dir.path().join("hub.db-wal.cut");
        let [Loss::LogCut { retained: named, committed, missing }] = storage.losses() else {
            panic!("{:?}", storage.losses());
        };
        assert_eq!((named, fs::read(&retained).ok()), (&retained, before[1].clone()));
        assert!(0 < *missing && missing < committed, "{missing} of {committed}");
        let are_left = left(&storage, &tasks).await;
        assert!(0 < are_left && are_left < tasks.len(), "{are_left}");
        task(&storage).await;
        drop(storage);
        let again = SqliteStorage::open(dir.path()).unwrap();
        assert_eq!(
            again.losses(),
            [Loss::Retained { retained: retained.clone() }],
            "until it is moved away"
        );
        drop(again);
        fs::remove_file(retained).unwrap();
        assert_eq!(SqliteStorage::open(dir.path()).unwrap().losses(), []);
    }

    #[tokio::test]
    async fn cut_log_that_was_checkpointed_loses_nothing() {
        for length in [|whole: u64| whole / 2, |_| 0, |_| 7] {
            let (dir, storage, tasks) = with_tasks(20).await;
            checkpoint(&dir);
            let dir = killed(&dir);
            drop(storage);
            cut(&dir, length);
            let storage = SqliteStorage::open(dir.path()).unwrap();
            let retained = dir.path().join("hub.db-wal.cut");
            assert_eq!(storage.losses()[0], Loss::LogNeedless { retained });
            assert_eq!(left(&storage, &tasks).await, tasks.len());
        }
    }

    /// SQLite would revert the pages that are in the rest of the log, and no others.
    #[tokio::test]
    async fn mismatched_cut_log_is_refused() {
        let (dir, storage, mut tasks) = with_tasks(20).await;
        // A reader prevents the log from restarting after the checkpoint.
        let reader = schema::open_to_read(&dir.path().join(schema::FILE)).unwrap();
        reader.execute_batch("BEGIN; SELECT count(*) FROM tasks").unwrap();
        checkpoint(&dir);
        tasks.push(task(&storage).await);
        let dir = killed(&dir);
        drop((reader, storage));
        cut(&dir, |length| length / 2);
        let before = bytes(&dir);
        let refused = SqliteStorage::open(dir.path()).unwrap_err();
        assert!(matches!(refused, StorageError::LogCut { is_usable: false, .. }), "{refused}");
        assert_eq!(bytes(&dir), before);
        // Follows the fix in the error's text.
        let log = dir.path().join("hub.db-wal");
        assert!(refused.to_string().contains(&format!("mv {0} {0}.cut", log.display())));
        let retained = dir.path().join("hub.db-wal.cut");
        fs::rename(log, &retained).unwrap();
        let storage = SqliteStorage::open(dir.path()).unwrap();
        assert_eq!(storage.losses(), [Loss::Retained { retained }, Loss::LogMissing]);
        assert_eq!(left(&storage, &tasks).await, tasks.len() - 1);
    }

    #[tokio::test]
    async fn torn_log_without_index_is_kept() {
        let (dir, storage, _) = with_tasks(3).await;
        let dir = killed(&dir);
        drop(storage);
        cut(&dir, |length| length - 100);
        fs::remove_file(dir.path().join("hub.db-shm")).unwrap();
        let retained = dir.path().join("hub.db-wal.cut");
        assert_eq!(SqliteStorage::open(dir.path()).unwrap().losses(), [Loss::LogTorn { retained }]);
    }

    #[tokio::test]
    async fn log_without_its_database_is_refused() {
        let (dir, storage, tasks) = with_tasks(3).await;
        let copy = dir.path().join("copy");
        back_up(dir.path(), &copy).unwrap();
        type Spoil = fn(&Path);
        let empty: Spoil = |file| fs::write(file, "").unwrap();
        let short: Spoil = |file| fs::write(file, "SQLite format 3\0").unwrap();
        let blank: Spoil = |file| fs::write(file, vec![0; 8_192]).unwrap();
        let gone: Spoil = |file| fs::remove_file(file).unwrap();
        for spoil in [empty, short, blank, gone] {
            let dir = killed(&dir);
            spoil(&dir.path().join(schema::FILE));
            let before = bytes(&dir);
            let refused = SqliteStorage::open(dir.path()).unwrap_err();
            assert!(matches!(refused, StorageError::DatabaseMissing { .. }), "{refused}");
            let told = examine(dir.path(), Duration::from_secs(60)).unwrap_err();
            assert_eq!(told, refused);
            let other = dir.path().join("other");
            assert_eq!(back_up(dir.path(), &other).unwrap_err().to_string(), refused.to_string());
            assert_eq!(bytes(&dir), before, "nothing is begun anew");
            restore(dir.path(), &copy).unwrap();
            let restored = SqliteStorage::open(dir.path()).unwrap();
            assert_eq!((restored.losses(), left(&restored, &tasks).await), (&[][..], 3));
            let kept = fs::read(dir.path().join("hub.db.old-wal")).ok();
            assert_eq!(kept, before[1], "what it replaced is kept");
        }
        drop(storage);
    }

    #[test]
    fn empty_database_without_log_is_reported() {
        let dir = tempdir().unwrap();
        let file = dir.path().join(schema::FILE);
        fs::write(&file, "").unwrap();
        assert_eq!(examine(dir.path(), Duration::from_secs(60)), Ok(Examined::Sound));
        assert_eq!(SqliteStorage::open(dir.path()).unwrap().losses(), [Loss::Emptied { file }]);
        assert_eq!(SqliteStorage::open(dir.path()).unwrap().losses(), []);
    }

    #[tokio::test]
    async fn no_more_logs_are_kept_than_allowed() {
        let (dir, storage, _) = with_tasks(3).await;
        let dir = killed(&dir);
        drop(storage);
        cut(&dir, |length| length / 2);
        for kept in retained_log_names(&dir.path().join(schema::FILE)) {
            fs::write(kept, "").unwrap();
        }
        let before = bytes(&dir);
        let refused = SqliteStorage::open(dir.path()).unwrap_err().to_string();
        assert!(
            refused.contains("move `") && refused.contains(".cut` and the others away"),
            "{refused}"
        );
        assert_eq!(bytes(&dir), before);
    }
}
