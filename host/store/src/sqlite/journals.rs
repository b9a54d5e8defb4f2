//! Journals of replayable runs, in SQL. Triggers delete a journal at its task's end.

use super::{
    db::{failure::SqliteFailure, schema::integer},
    log::events,
};
use crate::StorageError;
use a2a_hub_protocol::id::TaskId;
use rusqlite::{Connection, params};

pub(super) fn record(
    db: &Connection,
    task: &TaskId,
    expected: u64,
    entry: &str,
) -> Result<(), SqliteFailure> {
    let Some(head) = events::head(db, task)? else {
        return Err(StorageError::Uncreated(task.clone()).into());
    };
    if head.state.is_final() {
        let over = a2a_hub_core::task::state::IllegalEvent::Over(head.state);
        return Err(StorageError::Illegal(over).into());
    }
    if expected == 0 {
        db.prepare_cached("DELETE FROM journals WHERE task = ?1")?.execute([task.as_str()])?;
    } else {
        let found = "SELECT coalesce(max(number), 0) FROM journals WHERE task = ?1";
        let found: i64 = db.prepare_cached(found)?.query_row([task.as_str()], |row| row.get(0))?;
        let found = found.unsigned_abs();
        if found != expected {
            return Err(StorageError::Conflict { task: task.clone(), expected, found }.into());
        }
    }
    let sql = "INSERT INTO journals (task, number, entry) VALUES (?1, ?2, ?3)";
    db.prepare_cached(sql)?.execute(params![task.as_str(), integer(expected) + 1, entry])?;
    Ok(())
}

pub(super) fn recorded(db: &Connection, task: &TaskId) -> Result<Vec<String>, SqliteFailure> {
    let mut found =
        db.prepare_cached("SELECT entry FROM journals WHERE task = ?1 ORDER BY number")?;
    let entries = found.query_map([task.as_str()], |row| row.get(0))?;
    Ok(entries.collect::<Result<_, _>>()?)
}
