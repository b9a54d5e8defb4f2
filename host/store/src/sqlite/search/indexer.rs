//! Thread that has the index follow the logs.

use super::{
    file::{self, OpenFailure},
    queue::{IndexWork, Queue},
    stored, task_reader,
};
use crate::sqlite::db::{error, failure::SqliteFailure, readers::Readers, schema};
use a2a_hub_protocol::id::TaskId;
use rusqlite::Connection;
use std::{path::Path, slice, time::Duration};
use tokio::time::Instant;

/// Pause after a failure.
const RETRY: Duration = Duration::from_secs(2);

/// Rest after each transaction, in times of its duration: the index takes a third of a processor at
/// most, so that tasks do not wait for it.
const RESTS: u32 = 2;

/// Limit of a rest.
const LONGEST_REST: Duration = Duration::from_secs(2);

/// Tasks that are written in one transaction.
const BATCH: usize = 200;

/// Tasks that are compared together.
const COMPARED_PAGE: usize = 1_000;

/// Id behind those of all tasks.
const AFTER_ALL: &str = "\u{10ffff}";

/// Failure of the indexer.
enum IndexFailure {
    /// The index cannot be opened.
    Open(OpenFailure),
    /// A statement of the index failed.
    Index(rusqlite::Error),
    /// The logs cannot be read.
    Log(SqliteFailure),
    /// A search could not read the index, which is checked when it is opened again.
    Suspect,
}

impl From<rusqlite::Error> for IndexFailure {
    fn from(why: rusqlite::Error) -> Self {
        Self::Index(why)
    }
}

impl IndexFailure {
    /// True if the index is to be made anew.
    fn is_damage(&self) -> bool {
        match self {
            Self::Open(OpenFailure::Sql(why)) | Self::Index(why) => error::is_damage(why),
            Self::Open(OpenFailure::Unusable(_)) => true,
            Self::Open(OpenFailure::File(_)) | Self::Log(_) | Self::Suspect => false,
        }
    }

    /// Sentence for the operator.
    fn text(self, file: &Path) -> String {
        let of_file = |why: &dyn std::fmt::Display| format!("{}: {why}", file.display());
        match self {
            Self::Open(OpenFailure::File(why)) => {
                error::no_file(&format!("open {}", file.display()), &why).to_string()
            }
            Self::Open(OpenFailure::Unusable(why)) => {
                format!("{}; it is made anew", of_file(&why))
            }
            Self::Open(OpenFailure::Sql(why)) | Self::Index(why) => {
                let is_damage = error::is_damage(&why);
                let fix = if is_damage { "it is made anew" } else { error::way_out(&why) };
                format!("{}; {fix}", of_file(&why))
            }
            Self::Log(why) => crate::StorageError::from(why).to_string(),
            Self::Suspect => of_file(&"it could not be read, and is opened again"),
        }
    }
}

/// Follows the logs in `hub` until the store is closed. Whatever fails is tried again.
pub(super) fn run(queue: &Queue, file: &Path, hub: &Path) {
    // The check reads the whole index, too much for each retry of a failing write.
    let mut is_checked = false;
    while !queue.is_ended() {
        let Err(failure) = follow(queue, file, hub, &mut is_checked) else { return };
        let is_damage = failure.is_damage();
        let is_suspect = matches!(failure, IndexFailure::Suspect);
        is_checked &= !is_damage && !is_suspect;
        let pause = if is_damage || is_suspect { Duration::ZERO } else { RETRY };
        let why = failure.text(file);
        if is_damage {
            // Readers of the old file end with their searches.
            queue.failed(&why, true, Duration::ZERO);
            if let Err(unremoved) = file::remove_file(file) {
                queue.failed(&format!("delete {}: {unremoved}", file.display()), true, RETRY);
            }
        } else {
            queue.failed(&why, is_suspect, pause);
        }
    }
}

/// Opens the index, after a check unless one has found it sound, and follows the logs.
fn follow(
    queue: &Queue,
    file: &Path,
    hub: &Path,
    is_checked: &mut bool,
) -> Result<(), IndexFailure> {
    let index = file::open(file, !*is_checked).map_err(IndexFailure::Open)?;
    *is_checked = true;
    let logs = schema::open_to_read(hub).map_err(|why| IndexFailure::Log(why.into()))?;
    queue.opened(Readers::new(file.to_owned()));
    let follower = Follower { queue, index, logs };
    loop {
        match queue.next(BATCH) {
            IndexWork::End => return Ok(()),
            IndexWork::Reopen => return Err(IndexFailure::Suspect),
            IndexWork::Compare => follower.compare()?,
            IndexWork::Tasks(tasks) => follower.update_and_rest(&tasks)?,
        }
    }
}

struct Follower<'a> {
    queue: &'a Queue,
    index: Connection,
    logs: Connection,
}

impl Follower<'_> {
    /// Compares all tasks with the index, the newest first, and updates those that differ.
    fn compare(&self) -> Result<(), IndexFailure> {
        self.queue.begin_comparison();
        let stored = self.stored().map_err(IndexFailure::Log)?;
        let mut unwritten = stored.saturating_sub(stored::count(&self.index)?);
        self.queue.set_in_work(unwritten);
        let mut before = AFTER_ALL.to_owned();
        while !self.queue.is_ended() {
            let page = self.page(&before).map_err(IndexFailure::Log)?;
            let is_last = page.len() < COMPARED_PAGE;
            let from = page.last().filter(|_| !is_last).map(|(id, _)| id.clone());
            let from = from.unwrap_or_default();
            let mut known = stored::seqs(&self.index, &from, &before)?;
            let differs = |(id, seq): (String, i64)| (known.remove(&id) != Some(seq)).then_some(id);
            let changed: Vec<_> = page.into_iter().filter_map(differs).collect();
            // What is left of `known` was deleted.
            let tasks = changed.into_iter().chain(known.into_keys()).map(TaskId::new);
            let tasks: Vec<_> = tasks.collect();
            for tasks in tasks.chunks(BATCH) {
                self.update_and_rest(tasks)?;
                unwritten = unwritten.saturating_sub(tasks.len() as u64);
                self.queue.set_in_work(unwritten);
                if self.queue.is_ended() {
                    return Ok(());
                }
            }
            if is_last {
                self.queue.compared();
                self.queue.wrote();
                break;
            }
            before = from;
        }
        Ok(())
    }

    /// Number of stored tasks, also of those whose rows cannot be read.
    fn stored(&self) -> Result<u64, SqliteFailure> {
        let sql = "SELECT coalesce(sum(tasks), 0) FROM task_counts WHERE tasks > 0";
        let count: i64 = self.logs.query_row(sql, [], |row| row.get(0))?;
        Ok(count.unsigned_abs())
    }

    /// Ids and event numbers of stored tasks, the newest first.
    fn page(&self, before: &str) -> Result<Vec<(String, i64)>, SqliteFailure> {
        let sql = "SELECT id, seq FROM tasks WHERE id < ?1 ORDER BY id DESC LIMIT ?2";
        let mut found = self.logs.prepare_cached(sql)?;
        let limit = schema::integer(COMPARED_PAGE as u64);
        let rows = found
            .query_map(rusqlite::params![before, limit], |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Updates the entries of these tasks, and then leaves the processor to others.
    fn update_and_rest(&self, tasks: &[TaskId]) -> Result<(), IndexFailure> {
        let begun = Instant::now();
        self.update(tasks)?;
        self.queue.rest((begun.elapsed() * RESTS).min(LONGEST_REST));
        Ok(())
    }

    /// Updates the entries of these tasks in one transaction, and deletes those of deleted ones.
    fn update(&self, tasks: &[TaskId]) -> Result<(), IndexFailure> {
        let mut has_deleted = false;
        let change = self.index.unchecked_transaction()?;
        for task in tasks {
            match task_reader::readable_head(&self.logs, task).map_err(IndexFailure::Log)? {
                None => has_deleted |= stored::forget(&change, task)?,
                Some(head) => {
                    let mut known = stored::origins(&change, slice::from_ref(task))?;
                    let entry = task_reader::entry(&self.logs, &head, known.remove(task));
                    stored::put(&change, &head, &entry.map_err(IndexFailure::Log)?)?;
                }
            }
        }
        change.commit()?;
        self.queue.wrote();
        if has_deleted {
            self.wipe_log()?;
        }
        Ok(())
    }

    /// Moves the write-ahead log into the index and empties it, so that deleted texts are in
    /// neither.
    fn wipe_log(&self) -> Result<(), IndexFailure> {
        let sql = "PRAGMA wal_checkpoint(TRUNCATE)";
        let is_busy: i64 = self.index.query_row(sql, [], |row| row.get(0))?;
        if is_busy != 0 {
            tracing::debug!("a reader holds the log of the index, which the next deletion empties");
        }
        Ok(())
    }
}
