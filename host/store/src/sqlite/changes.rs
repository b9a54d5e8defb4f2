//! Changes of all tasks in SQL: one row for each append, in the transaction of the append.

use super::{
    context_memory::key,
    db::{failure::SqliteFailure, schema::integer},
};
use crate::{
    ChangeCursor, ChangePage, ChangesAfter, Head, MAX_CHANGES, Moves, StorageError, TaskChange,
    changes::{PRUNE_INTERVAL, judge},
};
use a2a_hub_clock as clock;
use a2a_hub_protocol::{
    event::TaskEvent,
    id::{AgentId, TaskId, TenantId},
    task::TaskState,
};
use rusqlite::{Connection, OptionalExtension as _, Row, params};
use std::sync::Arc;

/// Histories that a store keeps: one for each time that it was opened.
pub(in crate::sqlite) const MAX_HISTORIES: i64 = 1_000;

/// Begins a history, as the store is opened for writing: changes after a cursor of an earlier one
/// are found only as far as both are the same. Returns its id.
pub(in crate::sqlite) fn begin_history(db: &Connection) -> rusqlite::Result<String> {
    let id: String = db.query_row("SELECT lower(hex(randomblob(8)))", [], |row| row.get(0))?;
    let change = db.unchecked_transaction()?;
    let sql = "INSERT INTO change_histories (id, after) VALUES (?1, ?2)";
    change.execute(sql, params![id, integer(latest(db)?)])?;
    let sql = "DELETE FROM change_histories WHERE number <= ?1";
    change.execute(sql, [change.last_insert_rowid() - MAX_HISTORIES])?;
    change.commit()?;
    Ok(id)
}

/// [`begin_history`], or an id that no later process knows, as on a full disk: cursors of this
/// process are refused then.
pub(in crate::sqlite) fn begin_or_warn(db: &Connection) -> Arc<str> {
    match begin_history(db) {
        Ok(id) => id.into(),
        Err(why) => {
            tracing::warn!(%why, "cannot begin a history of changes, clients cannot resume hub/events after the next start");
            TaskId::fresh().as_str().into()
        }
    }
}

/// Adds the change of an append that led to `head`. The numbers grow, since the newest row stays.
pub(in crate::sqlite) fn add(
    db: &Connection,
    head: &Head,
    before: Option<TaskState>,
    events: &[Arc<TaskEvent>],
) -> rusqlite::Result<()> {
    if events.is_empty() {
        return Ok(());
    }
    let sql = "INSERT INTO changes (task, seq, at_ms, moves) VALUES (?1, ?2, ?3, ?4)";
    let moves = Moves::of(before, events).to_text();
    let values = params![head.task.as_str(), integer(head.seq), integer(clock::now_ms()), moves];
    db.prepare_cached(sql)?.execute(values)?;
    let number = db.last_insert_rowid();
    if number % integer(PRUNE_INTERVAL) == 0 {
        let mut prune = db.prepare_cached("DELETE FROM changes WHERE number <= ?1")?;
        prune.execute([number - integer(MAX_CHANGES)])?;
    }
    Ok(())
}

/// Number of the latest change; 0 if the store has none.
pub(in crate::sqlite) fn latest(db: &Connection) -> rusqlite::Result<u64> {
    number(db, "SELECT max(number) FROM changes").map(Option::unwrap_or_default)
}

fn number(db: &Connection, sql: &str) -> rusqlite::Result<Option<u64>> {
    let number: Option<i64> = db.prepare_cached(sql)?.query_row([], |row| row.get(0))?;
    Ok(number.map(i64::unsigned_abs))
}

/// Number of the last change that a history shares with this store; none for an unknown one.
pub(in crate::sqlite) fn end_of(
    db: &Connection,
    history: &str,
    current: &str,
) -> rusqlite::Result<Option<u64>> {
    if history == current {
        return latest(db).map(Some);
    }
    let sql = "SELECT number FROM change_histories WHERE id = ?1";
    let known: Option<i64> =
        db.prepare_cached(sql)?.query_row([history], |row| row.get(0)).optional()?;
    let Some(known) = known else { return Ok(None) };
    let sql = "SELECT after FROM change_histories WHERE number > ?1 ORDER BY number LIMIT 1";
    let next: Option<i64> =
        db.prepare_cached(sql)?.query_row([known], |row| row.get(0)).optional()?;
    next.map_or_else(|| latest(db).map(Some), |after| Ok(Some(after.unsigned_abs())))
}

/// Changes after a cursor; `current` is the history of this opening.
pub(in crate::sqlite) fn after(
    db: &Connection,
    current: &str,
    cursor: &ChangeCursor,
    tenant: Option<&TenantId>,
    limit: usize,
) -> Result<ChangesAfter, SqliteFailure> {
    // One moment for all statements.
    let moment = db.unchecked_transaction()?;
    let end = end_of(&moment, &cursor.history, current)?;
    let oldest = number(&moment, "SELECT min(number) FROM changes")?;
    if let Err(loss) = judge(cursor.number, end, oldest) {
        return Ok(ChangesAfter::Lost(loss));
    }
    let sql = "SELECT c.number, c.task, c.seq, c.at_ms, c.moves, t.context, t.agent, t.tenant
        FROM changes c LEFT JOIN tasks t ON t.id = c.task
        WHERE c.number > ?1 ORDER BY c.number LIMIT ?2";
    let mut found = moment.prepare_cached(sql)?;
    let mut rows = found.query(params![integer(cursor.number), integer(limit as u64)])?;
    let (mut changes, mut examined, mut last) = (Vec::new(), 0, cursor.number);
    while let Some(row) = rows.next()? {
        examined += 1;
        last = row.get::<_, i64>(0)?.unsigned_abs();
        let of: Option<String> = row.get(7)?;
        if of.is_some_and(|of| tenant.is_none_or(|tenant| tenant.as_str() == of)) {
            changes.push(change(row)?);
        }
    }
    let next = ChangeCursor { history: current.to_owned(), number: last };
    Ok(ChangesAfter::Page(ChangePage { changes, next, is_last: examined < limit }))
}

fn change(row: &Row<'_>) -> Result<TaskChange, SqliteFailure> {
    let task = TaskId::new(row.get::<_, String>(1)?);
    let agent = AgentId::parse(row.get::<_, String>(6)?).map_err(|why| {
        let subject = format!("the head of task {task}");
        StorageError::Corrupt { subject, why: why.to_string() }
    })?;
    let moves: Option<String> = row.get(4)?;
    Ok(TaskChange {
        number: row.get::<_, i64>(0)?.unsigned_abs(),
        seq: row.get::<_, i64>(2)?.unsigned_abs(),
        at_ms: row.get::<_, i64>(3)?.unsigned_abs(),
        moves: moves.as_deref().map(Moves::from_text).unwrap_or_default(),
        context: key::read(row.get(5)?),
        agent,
        task,
    })
}
