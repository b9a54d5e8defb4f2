//! Changes of all tasks in SQL: one row for each append, in the transaction of the append.

use super::{
    SqliteStorage,
    context_memory::key,
    db::{failure::SqliteFailure, schema::integer},
    log::events::corrupt,
};
use crate::{
    ChangeCursor, ChangeLog, ChangePage, ChangesAfter, Head, MAX_CHANGES, Moves, StorageError,
    TaskChange,
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
const MAX_HISTORIES: i64 = 1_000;

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

fn latest(db: &Connection) -> rusqlite::Result<u64> {
    number(db, "SELECT max(number) FROM changes").map(Option::unwrap_or_default)
}

fn number(db: &Connection, sql: &str) -> rusqlite::Result<Option<u64>> {
    let number: Option<i64> = db.prepare_cached(sql)?.query_row([], |row| row.get(0))?;
    Ok(number.map(i64::unsigned_abs))
}

/// Number of the last change that a history shares with this store; none for an unknown one.
fn end_of(db: &Connection, history: &str, own: &str) -> rusqlite::Result<Option<u64>> {
    if history == own {
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

fn after(
    db: &Connection,
    own: &str,
    cursor: &ChangeCursor,
    tenant: Option<&TenantId>,
    limit: usize,
) -> Result<ChangesAfter, SqliteFailure> {
    // One moment for all statements.
    let moment = db.unchecked_transaction()?;
    let end = end_of(&moment, &cursor.history, own)?;
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
    let next = ChangeCursor { history: own.to_owned(), number: last };
    Ok(ChangesAfter::Page(ChangePage { changes, next, is_last: examined < limit }))
}

fn change(row: &Row<'_>) -> Result<TaskChange, SqliteFailure> {
    let task = TaskId::new(row.get::<_, String>(1)?);
    let subject = || format!("the head of task {task}");
    let agent = AgentId::parse(row.get::<_, String>(6)?).map_err(|why| corrupt(subject(), why))?;
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

#[async_trait::async_trait]
impl ChangeLog for SqliteStorage {
    async fn latest_change(&self) -> Result<ChangeCursor, StorageError> {
        let number = self.readers.read(|db| Ok(latest(db)?)).await?;
        Ok(ChangeCursor { history: self.history.to_string(), number })
    }

    async fn changes(
        &self,
        cursor: &ChangeCursor,
        tenant: Option<&TenantId>,
        limit: usize,
    ) -> Result<ChangesAfter, StorageError> {
        let (own, cursor, tenant) = (Arc::clone(&self.history), cursor.clone(), tenant.cloned());
        self.readers.read(move |db| after(db, &own, &cursor, tenant.as_ref(), limit)).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        CursorLoss, TaskLog as _,
        contract::{chunk, created},
        sqlite::{back_up, db::schema, restore},
    };
    use std::{fs, path::Path};
    use tempfile::tempdir;

    async fn add_task(storage: &SqliteStorage) -> TaskId {
        let id = TaskId::fresh();
        storage.append(&id, 0, vec![created(&id, "c")]).await.unwrap();
        id
    }

    async fn read(storage: &SqliteStorage, after: &ChangeCursor) -> ChangesAfter {
        storage.changes(after, None, 100).await.unwrap()
    }

    fn tasks(changes: ChangesAfter) -> Vec<TaskId> {
        let ChangesAfter::Page(page) = changes else { panic!("{changes:?}") };
        page.changes.into_iter().map(|change| change.task).collect()
    }

    fn open(dir: &Path) -> SqliteStorage {
        SqliteStorage::open(dir).unwrap()
    }

    #[tokio::test]
    async fn cursor_is_valid_over_restarts() {
        let dir = tempdir().unwrap();
        let mut storage = open(dir.path());
        let first = storage.latest_change().await.unwrap();
        let (mut cursors, mut all) = (vec![first.clone()], Vec::new());
        for _ in 0..3 {
            for _ in 0..2 {
                all.push(add_task(&storage).await);
                cursors.push(storage.latest_change().await.unwrap());
            }
            drop(storage);
            storage = open(dir.path());
            cursors.push(storage.latest_change().await.unwrap());
        }
        for cursor in cursors {
            let known = usize::try_from(cursor.number).unwrap();
            assert_eq!(tasks(read(&storage, &cursor).await), all[known..], "{cursor}");
        }
        let beyond = ChangeCursor { number: 99, ..first };
        assert_eq!(read(&storage, &beyond).await, ChangesAfter::Lost(CursorLoss::Foreign));
    }

    /// After a backup is restored, the numbers of the lost changes mean others.
    #[tokio::test]
    async fn cursor_of_lost_changes_is_refused_after_restore() {
        let (dir, copies) = (tempdir().unwrap(), tempdir().unwrap());
        let storage = open(dir.path());
        let first = add_task(&storage).await;
        let common = storage.latest_change().await.unwrap();
        let copy = copies.path().join("copy.db");
        back_up(dir.path(), &copy).unwrap();
        add_task(&storage).await;
        let lost = storage.latest_change().await.unwrap();
        drop(storage);
        restore(dir.path(), &copy).unwrap();
        let storage = open(dir.path());
        let other = add_task(&storage).await;
        let begin = ChangeCursor { number: 0, ..common.clone() };
        assert_eq!(tasks(read(&storage, &begin).await), [first, other.clone()]);
        assert_eq!(tasks(read(&storage, &common).await), [other]);
        assert_eq!(read(&storage, &lost).await, ChangesAfter::Lost(CursorLoss::Foreign));
    }

    #[tokio::test]
    async fn history_begins_on_each_opening_and_old_ones_go() {
        let dir = tempdir().unwrap();
        let db = schema::open(&dir.path().join(schema::FILE)).unwrap().0;
        for _ in 0..MAX_HISTORIES + 3 {
            begin_history(&db).unwrap();
        }
        let count = |sql| db.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap();
        assert_eq!(count("SELECT count(*) FROM change_histories"), MAX_HISTORIES);
        let id = begin_history(&db).unwrap();
        assert_eq!(end_of(&db, &id, "other").unwrap(), Some(0));
    }

    /// The oldest changes go, the numbers go on.
    #[tokio::test]
    async fn old_changes_are_dropped() {
        let dir = tempdir().unwrap();
        let storage = open(dir.path());
        let id = add_task(&storage).await;
        let cursor = storage.latest_change().await.unwrap();
        drop(storage);
        let db = schema::open(&dir.path().join(schema::FILE)).unwrap().0;
        let last = integer((MAX_CHANGES / PRUNE_INTERVAL + 3) * PRUNE_INTERVAL - 2);
        let fill = "INSERT INTO changes (number, task, seq, at_ms)
            WITH RECURSIVE n (i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < ?1)
            SELECT i, 'gone', 1, 0 FROM n";
        db.execute(fill, [last]).unwrap();
        drop(db);
        let storage = open(dir.path());
        for seq in 1..=6 {
            storage.append(&id, seq, vec![chunk("x")]).await.unwrap();
        }
        assert_eq!(read(&storage, &cursor).await, ChangesAfter::Lost(CursorLoss::Dropped));
        let latest = storage.latest_change().await.unwrap();
        assert_eq!(latest.number, last.unsigned_abs() + 6);
        let kept = ChangeCursor { number: latest.number - 6, ..latest };
        assert_eq!(tasks(read(&storage, &kept).await).len(), 6);
        drop(storage);
        let db = schema::open(&dir.path().join(schema::FILE)).unwrap().0;
        let count: i64 =
            db.query_row("SELECT count(*) FROM changes", [], |row| row.get(0)).unwrap();
        assert!(count.unsigned_abs() < MAX_CHANGES + PRUNE_INTERVAL, "{count}");
        assert!(fs::metadata(dir.path().join(schema::FILE)).unwrap().len() < 12 << 20);
    }
}
