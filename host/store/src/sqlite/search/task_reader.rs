//! Contents of a task for the index, from its log.

use super::stored::{TaskEntry, TaskUsage};
use crate::{
    Head, StorageError, log,
    sqlite::{
        db::{failure::SqliteFailure, schema::integer},
        log::{
            events::{self, corrupt},
            rows::each_event,
        },
    },
    usage::{self, TaskOrigin},
};
use a2a_hub_core::{
    access_control::Principal, search::IndexedText, task::fold::TaskFold, usage::UsageEntry,
};
use a2a_hub_protocol::{event::TaskEvent, id::TaskId};
use rusqlite::{Connection, OptionalExtension as _};

/// Most ancestors of a task that are looked up.
const MAX_ANCESTORS: usize = 64;

/// Reads the texts and the usage of a task. A log that cannot be read has neither.
pub(super) fn entry(
    db: &Connection,
    head: &Head,
    known: Option<TaskOrigin>,
) -> Result<TaskEntry, SqliteFailure> {
    let (usage, fold) = usage_and_fold(db, head, known)?;
    let text = fold.map(|fold| IndexedText::of_task(&fold.into_task()));
    Ok(TaskEntry { text: text.unwrap_or_default(), usage })
}

/// Reads the usage of a task. A log that cannot be read has none.
pub(super) fn usage(
    db: &Connection,
    head: &Head,
    known: Option<TaskOrigin>,
) -> Result<TaskUsage, SqliteFailure> {
    Ok(usage_and_fold(db, head, known)?.0)
}

fn usage_and_fold(
    db: &Connection,
    head: &Head,
    known: Option<TaskOrigin>,
) -> Result<(TaskUsage, Option<TaskFold>), SqliteFailure> {
    let origin = origin(db, head, known)?;
    let (entries, fold) = readable(read(db, &head.task))?.unwrap_or_default();
    Ok((TaskUsage { seq: integer(head.seq), origin, entries }, fold))
}

/// Head of a task; none if the task is unknown, or if its row cannot be read. So one damaged row
/// stops neither the deletion of other tasks nor the index.
pub(in crate::sqlite) fn readable_head(
    db: &Connection,
    task: &TaskId,
) -> Result<Option<Head>, SqliteFailure> {
    Ok(readable(events::head(db, task))?.flatten())
}

/// Result of a read; none with a warning if the data is corrupt.
fn readable<T>(read: Result<T, SqliteFailure>) -> Result<Option<T>, SqliteFailure> {
    match read {
        Ok(read) => Ok(Some(read)),
        Err(SqliteFailure::Refused(StorageError::Corrupt { subject, why })) => {
            tracing::warn!(subject, why, "cannot read a task, leaving it out of search and usage");
            Ok(None)
        }
        Err(why) => Err(why),
    }
}

/// Reads a whole log. The fold, of which only the index needs the texts, finds a corrupt one.
fn read(
    db: &Connection,
    task: &TaskId,
) -> Result<(Vec<UsageEntry>, Option<TaskFold>), SqliteFailure> {
    let (mut meter, mut fold) = (usage::meter(), None);
    each_parsed(db, task, |event| {
        meter.add(&event);
        fold = Some(log::fold_page(task, fold.take(), [event])?);
        Ok(())
    })?;
    Ok((meter.entries(), fold))
}

fn each_parsed(
    db: &Connection,
    task: &TaskId,
    mut take: impl FnMut(TaskEvent) -> Result<(), SqliteFailure>,
) -> Result<(), SqliteFailure> {
    each_event(db, task, 0, usize::MAX, |seq, event| {
        let subject = || format!("event {seq} of task {task}");
        take(serde_json::from_str(event).map_err(|why| corrupt(subject(), why))?)
    })
}

/// Origin of a task. If an ancestor was deleted, it is the `known` one.
pub(super) fn origin(
    db: &Connection,
    head: &Head,
    known: Option<TaskOrigin>,
) -> Result<TaskOrigin, SqliteFailure> {
    let mut root = head.clone();
    for _ in 0..MAX_ANCESTORS {
        let Some(parent) = &root.parent else {
            let person = person(db, &root.task)?;
            return Ok(TaskOrigin { person, flow: root.agent.as_str().to_owned() });
        };
        let Some(parent) = readable_head(db, parent)? else { break };
        root = parent;
    }
    Ok(known.unwrap_or_default())
}

/// Identity of the principal that began a task.
fn person(db: &Connection, task: &TaskId) -> Result<String, SqliteFailure> {
    let sql = "SELECT asker FROM events WHERE task = ?1 ORDER BY seq LIMIT 1";
    let mut found = db.prepare_cached(sql)?;
    let asker = found.query_row([task.as_str()], |row| row.get::<_, Option<String>>(0));
    let asker = asker.optional()?.flatten();
    let principal = asker.and_then(|asker| Principal::from_log(&asker));
    Ok(principal.map(|principal| principal.identity()).unwrap_or_default())
}
