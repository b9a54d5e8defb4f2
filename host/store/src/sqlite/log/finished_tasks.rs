//! Cached texts of finished tasks: the JSON that clients receive, so that a read takes one row, or
//! none at all. A finished task never changes until it is deleted.
//!
//! The text of a task is stored once somebody has asked for the task, so a task that nobody asks
//! for is stored only as its log. A long text is not stored.

use super::events::{self, corrupt};
use crate::{
    StoredTask, TaskView,
    sqlite::{db::failure::SqliteFailure, search::queue::Queue},
};
use a2a_hub_protocol::{
    dialect::FinishedTask,
    id::{AgentId, TaskId},
};
use parking_lot::Mutex;
use rusqlite::{Connection, params};
use std::{
    collections::HashMap,
    mem,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

/// Longest stored text in bytes. A longer one takes longer to send than to rebuild, and more space
/// than it is worth.
pub(in crate::sqlite) const LONGEST: usize = 64 << 10;

/// Capacity of the memory cache in bytes.
const AT_HAND: usize = 2 << 20;

/// Memory cache of recently read tasks.
#[derive(Debug, Default)]
pub(in crate::sqlite) struct Lately {
    tasks: Mutex<Generations>,
    /// Number of deletions so far.
    forgotten: AtomicU64,
}

/// Cache with two generations: a read task enters the young one; once that is full it becomes the
/// old one, and the previous old one is dropped.
#[derive(Debug, Default)]
struct Generations {
    young: HashMap<TaskId, Arc<FinishedTask>>,
    old: HashMap<TaskId, Arc<FinishedTask>>,
    /// Size of the young generation in bytes.
    size: usize,
}

impl Generations {
    fn add(&mut self, id: TaskId, task: Arc<FinishedTask>) {
        let size = task.size();
        if self.size + size > AT_HAND / 2 {
            self.old = mem::take(&mut self.young);
            self.size = 0;
        }
        if self.young.insert(id, task).is_none() {
            self.size += size;
        }
    }
}

impl Lately {
    pub(in crate::sqlite) fn find(&self, id: &TaskId) -> Option<Arc<FinishedTask>> {
        let mut tasks = self.tasks.lock();
        if let Some(known) = tasks.young.get(id) {
            return Some(Arc::clone(known));
        }
        let (id, known) = tasks.old.remove_entry(id)?;
        tasks.add(id, Arc::clone(&known));
        Some(known)
    }

    /// Number of deletions so far; to be read before the store is read.
    pub(in crate::sqlite) fn forgotten(&self) -> u64 {
        self.forgotten.load(Ordering::SeqCst)
    }

    /// Caches a task read from the store, unless something was deleted since.
    pub(in crate::sqlite) fn cache(&self, id: &TaskId, task: &Arc<FinishedTask>, forgotten: u64) {
        let mut tasks = self.tasks.lock();
        if self.forgotten() == forgotten && task.document().len() <= LONGEST {
            tasks.add(id.clone(), Arc::clone(task));
        }
    }

    fn forget(&self, ids: &[TaskId]) {
        let mut tasks = self.tasks.lock();
        self.forgotten.fetch_add(1, Ordering::SeqCst);
        for id in ids {
            tasks.old.remove(id);
            if let Some(task) = tasks.young.remove(id) {
                tasks.size = tasks.size.saturating_sub(task.size());
            }
        }
    }
}

/// Tasks in deletion. Dropping it removes them from the cache and from the search index, which must
/// happen after the commit.
pub(in crate::sqlite) struct Forgotten {
    pub(in crate::sqlite) lately: Arc<Lately>,
    pub(in crate::sqlite) search: Arc<Queue>,
    pub(in crate::sqlite) tasks: Vec<TaskId>,
}

impl Drop for Forgotten {
    fn drop(&mut self) {
        self.lately.forget(&self.tasks);
        self.search.add(mem::take(&mut self.tasks));
    }
}

/// Data worth storing after a read.
pub(in crate::sqlite) enum Worth {
    Nothing,
    /// Text of a finished task.
    Text(Arc<FinishedTask>),
    /// Fold of a long log.
    Fold(events::Fold),
}

/// View of a task for clients, and data that saves the next reader work.
pub(in crate::sqlite) fn view(
    db: &Connection,
    id: &TaskId,
) -> Result<Option<(TaskView, Worth)>, SqliteFailure> {
    // One query for the agent, the conversation and the text.
    let sql =
        "SELECT agent, context, document FROM tasks JOIN documents ON task = id WHERE id = ?1";
    let mut found = db.prepare_cached(sql)?;
    let mut rows = found.query([id.as_str()])?;
    if let Some(row) = rows.next()? {
        let subject = || format!("the document of task {id}");
        let agent =
            AgentId::parse(row.get::<_, String>(0)?).map_err(|why| corrupt(subject(), why))?;
        let context = crate::sqlite::context_memory::key::read(row.get(1)?);
        let task = FinishedTask::stored(agent, context, row.get(2)?);
        return Ok(Some((TaskView::Finished(Arc::new(task)), Worth::Nothing)));
    }
    let Some((stored, fold)) = events::task(db, id)? else { return Ok(None) };
    let StoredTask { agent, task, .. } = &stored;
    let finished = FinishedTask::from_task(agent.clone(), task);
    Ok(Some(match finished.filter(|finished| finished.document().len() <= LONGEST) {
        Some(finished) => {
            let finished = Arc::new(finished);
            (TaskView::Finished(Arc::clone(&finished)), Worth::Text(finished))
        }
        None => (TaskView::Task(Box::new(stored)), fold.map_or(Worth::Nothing, Worth::Fold)),
    }))
}

/// Stores the text of a finished task, unless the task was deleted in the meantime.
pub(in crate::sqlite) fn store_text(
    db: &Connection,
    id: &TaskId,
    task: &FinishedTask,
) -> Result<(), SqliteFailure> {
    let sql = "INSERT INTO documents (task, document) SELECT ?1, ?2
        WHERE EXISTS (SELECT 1 FROM tasks WHERE id = ?1) ON CONFLICT (task) DO NOTHING";
    db.prepare_cached(sql)?.execute(params![id.as_str(), task.document()])?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        StoreHealth as _, TaskIndex as _, TaskLog as _,
        contract::{chunk, created, status},
        sqlite::{SqliteStorage, db::schema},
    };
    use a2a_hub_protocol::{dialect::Dialect, id::ContextId, task::TaskState};

    /// Creates a task with some chunks of this text, in this state.
    async fn task(storage: &SqliteStorage, text: &str, chunks: usize, state: TaskState) -> TaskId {
        let id = TaskId::fresh();
        let mut events = vec![created(&id, "c"), status(TaskState::Working, 1, None)];
        events.extend((0..chunks).map(|_| chunk(text)));
        events.extend((state != TaskState::Working).then(|| status(state, 2, Some("done"))));
        storage.append(&id, 0, events).await.unwrap();
        id
    }

    fn rows(dir: &std::path::Path, table: &str) -> i64 {
        let db = schema::open_to_read(&dir.join(schema::FILE)).unwrap();
        db.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0)).unwrap()
    }

    async fn document(storage: &SqliteStorage, id: &TaskId) -> Option<Arc<FinishedTask>> {
        match storage.view(id).await.unwrap() {
            Some(TaskView::Finished(task)) => Some(task),
            Some(TaskView::Task(_)) | None => None,
        }
    }

    #[tokio::test]
    async fn cached_text_matches_folded_log() {
        let dir = tempfile::tempdir().unwrap();
        let mut ids = Vec::new();
        for again in [false, true] {
            // The second round reads from the file what the first one stored.
            let storage = SqliteStorage::open(dir.path()).unwrap();
            if !again {
                for chunks in [0, 1, 40] {
                    ids.push(task(&storage, "x", chunks, TaskState::Completed).await);
                }
                assert_eq!(rows(dir.path(), "documents"), 0, "nobody has asked for one");
            }
            for id in &ids {
                for _ in 0..2 {
                    let looked = document(&storage, id).await.unwrap();
                    storage.writer.write(|_| Ok(())).await.unwrap();
                    let stored = storage.task(id).await.unwrap().unwrap();
                    assert_eq!(looked.task().unwrap(), stored.task);
                    assert_eq!(
                        (looked.agent(), looked.context()),
                        (&stored.agent, &stored.task.context_id)
                    );
                    let whose = storage.whose(id).await.unwrap().unwrap();
                    assert_eq!(whose, (stored.agent, stored.task.context_id));
                    assert!(looked.text(Dialect::Hub).unwrap().contains(r#""kind":"task""#));
                }
            }
            assert_eq!((rows(dir.path(), "documents"), rows(dir.path(), "folds")), (3, 0));
        }
    }

    #[tokio::test]
    async fn live_and_long_tasks_have_no_text() {
        let dir = tempfile::tempdir().unwrap();
        let storage = SqliteStorage::open(dir.path()).unwrap();
        let working = task(&storage, "x", 1, TaskState::Working).await;
        let long = task(&storage, &"x".repeat(LONGEST / 2), 3, TaskState::Completed).await;
        for id in [&working, &long, &long] {
            assert!(document(&storage, id).await.is_none());
        }
        assert!(storage.view(&TaskId::fresh()).await.unwrap().is_none());
        storage.append(&working, 3, vec![status(TaskState::Completed, 3, None)]).await.unwrap();
        let over = document(&storage, &working).await.unwrap();
        assert_eq!(over.task().unwrap().status.state, TaskState::Completed);
        storage.writer.write(|_| Ok(())).await.unwrap();
        assert_eq!(rows(dir.path(), "documents"), 1);
    }

    #[tokio::test]
    async fn deleted_task_leaves_cache_even_if_cancelled() {
        let dir = tempfile::tempdir().unwrap();
        let storage = SqliteStorage::open(dir.path()).unwrap();
        for waits in [true, false] {
            let id = task(&storage, "x", 1, TaskState::Completed).await;
            assert!(document(&storage, &id).await.is_some());
            // The text that was read is written first, so that the deletion alone is queued below.
            while storage.backlog() > 0 {
                tokio::task::yield_now().await;
            }
            let forgetting = storage.forget_tasks(vec![id.clone()]);
            if waits {
                forgetting.await.unwrap();
            } else {
                // Dropped once the deletion is queued.
                let mut forgetting = Box::pin(forgetting);
                while futures_are_pending(&mut forgetting) && storage.backlog() == 0 {
                    tokio::task::yield_now().await;
                }
                drop(forgetting);
                storage.writer.write(|_| Ok(())).await.unwrap();
                storage.writer.write(|_| Ok(())).await.unwrap();
            }
            assert!(storage.view(&id).await.unwrap().is_none(), "{waits}");
            assert!(storage.whose(&id).await.unwrap().is_none());
            assert_eq!(rows(dir.path(), "documents"), 0);
        }
    }

    fn futures_are_pending<F: Future + Unpin>(future: &mut F) -> bool {
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        std::pin::Pin::new(future).poll(&mut context).is_pending()
    }

    #[test]
    fn stale_read_is_not_cached_after_deletion() {
        let lately = Arc::new(Lately::default());
        let id = TaskId::fresh();
        let agent = AgentId::parse("echo").unwrap();
        let task =
            |text: String| Arc::new(FinishedTask::stored(agent.clone(), ContextId::new("c"), text));
        let before = lately.forgotten();
        let (of_drop, search) = (Arc::clone(&lately), Arc::default());
        drop(Forgotten { lately: of_drop, search, tasks: vec![id.clone()] });
        lately.cache(&id, &task("x".to_owned()), before);
        assert!(lately.find(&id).is_none());
        lately.cache(&id, &task("x".to_owned()), lately.forgotten());
        assert!(lately.find(&id).is_some());
        // The cache stays within its capacity, and a task that is read again and again stays in it.
        for _ in 0..1_000 {
            let other = TaskId::fresh();
            lately.cache(&other, &task("y".repeat(10_000)), lately.forgotten());
            assert!(lately.find(&id).is_some() && lately.find(&other).is_some());
            let tasks = lately.tasks.lock();
            let all = tasks.young.values().chain(tasks.old.values());
            assert!(all.map(|task| task.size()).sum::<usize>() <= AT_HAND);
        }
    }

    /// An earlier version of the hub deletes tasks without knowing of their texts.
    #[test]
    fn trigger_deletes_text_with_task() {
        let dir = tempfile::tempdir().unwrap();
        let db = schema::open(&dir.path().join("hub.db")).unwrap().0;
        let old = "INSERT INTO tasks (id, context, agent, state, seq, created, updated)
            VALUES ('t', 'c', 'echo', 'completed', 1, '', '')";
        db.execute_batch(old).unwrap();
        let id = TaskId::new("t");
        let agent = AgentId::parse("echo").unwrap();
        let finished = FinishedTask::stored(agent, ContextId::new("c"), "{}".to_owned());
        for found in [1, 0] {
            store_text(&db, &id, &finished).unwrap();
            let count = "SELECT count(*) FROM documents";
            let rows: i64 = db.query_row(count, [], |row| row.get(0)).unwrap();
            assert_eq!(rows, found);
            db.execute_batch("DELETE FROM tasks").unwrap();
            let rows: i64 = db.query_row(count, [], |row| row.get(0)).unwrap();
            assert_eq!(rows, 0);
        }
    }
}
