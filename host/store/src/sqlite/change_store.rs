//! Changes of all tasks, as the store offers them.

use super::{
    SqliteStorage,
    changes::{after, latest},
};
use crate::{ChangeCursor, ChangeLog, ChangesAfter, StorageError};
use a2a_hub_protocol::id::TenantId;
use std::sync::Arc;

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
        let (current, cursor, tenant) =
            (Arc::clone(&self.history), cursor.clone(), tenant.cloned());
        self.readers.read(move |db| after(db, &current, &cursor, tenant.as_ref(), limit)).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        CursorLoss, MAX_CHANGES, TaskLog as _,
        changes::PRUNE_INTERVAL,
        contract::{chunk, created},
        sqlite::{
            back_up,
            changes::{MAX_HISTORIES, begin_history, end_of},
            db::schema::{self, integer},
            restore,
        },
    };
    use a2a_hub_protocol::id::TaskId;
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
