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
use a2a_hub_core::{access_control::Principal, search::IndexedText, usage::UsageEntry};
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
    let origin = origin(db, head, known)?;
    let (text, entries) = match read(db, &head.task) {
        Ok(read) => read,
        Err(SqliteFailure::Refused(StorageError::Corrupt { subject, why })) => {
            tracing::warn!(subject, why, "cannot index a task");
            <_>::default()
        }
        Err(why) => return Err(why),
    };
    Ok(TaskEntry { text, usage: TaskUsage { seq: integer(head.seq), origin, entries } })
}

fn read(db: &Connection, task: &TaskId) -> Result<(IndexedText, Vec<UsageEntry>), SqliteFailure> {
    let (mut meter, mut fold) = (usage::meter(), None);
    each_parsed(db, task, |event| {
        meter.add(&event);
        fold = Some(log::fold_page(task, fold.take(), [event])?);
        Ok(())
    })?;
    let text = fold.map(|fold| IndexedText::of_task(&fold.into_task()));
    Ok((text.unwrap_or_default(), meter.entries()))
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
        let Some(parent) = events::head(db, parent)? else { break };
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
