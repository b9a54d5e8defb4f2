//! Tests of the SQLite store beyond the contract: its files, their lock, and crashes.

mod from_before;
mod turns;

use super::{db::failure::SqliteFailure, *};
use crate::TaskCounts;
use crate::contract::{self, agent, chunk, created, status};
use a2a_hub_protocol::{push::PushForm, task::TaskState};
use rusqlite::Connection;
use serde_json::json;
use std::{cell::Cell, fs, os::unix::fs::PermissionsExt as _, path::PathBuf, time::Duration};
use tempfile::{TempDir, tempdir};
use tokio::time::{sleep, timeout};

fn owner(name: &str) -> InstallationId {
    InstallationId::from(&agent(name))
}

fn open(dir: &TempDir) -> SqliteStorage {
    SqliteStorage::open(dir.path()).unwrap()
}

/// Creates a log with this many events.
async fn begin(storage: &SqliteStorage, events: u64) -> TaskId {
    let task = TaskId::fresh();
    storage.append(&task, 0, vec![created(&task, "c")]).await.unwrap();
    for seq in 1..events {
        let event = match seq {
            1 => status(TaskState::Working, 1, None),
            _ => chunk(&format!("{seq} ")),
        };
        storage.append(&task, seq, vec![event]).await.unwrap();
    }
    task
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sqlite_store_passes_contract_suite() {
    keeps_the_contract_in(|_| {}).await;
}

/// Runs the contract suite; each store is in its own directory, which `prepare` may set up first.
async fn keeps_the_contract_in(prepare: impl Fn(&Path)) {
    let dir = tempdir().unwrap();
    let stores = Cell::new(0);
    contract::suite(|| {
        stores.set(stores.get() + 1);
        let dir = dir.path().join(stores.get().to_string());
        prepare(&dir);
        SqliteStorage::open(&dir).unwrap()
    })
    .await;
}

/// In the table of an older file, each event of more than a quarter of a page takes an additional
/// page.
#[tokio::test]
async fn kilobyte_events_share_pages() {
    const EVENTS: u64 = 300;
    let dir = tempdir().unwrap();
    let storage = open(&dir);
    let task = begin(&storage, 1).await;
    let told = (2..EVENTS).map(|ms| status(TaskState::Working, ms, Some(&"x".repeat(1_000))));
    storage.append(&task, 1, told.collect()).await.unwrap();
    drop(storage);
    let bytes = fs::metadata(dir.path().join(db::schema::FILE)).unwrap().len();
    // The size includes all tables and indexes.
    assert!(bytes < EVENTS * 3_000, "{bytes} bytes for {EVENTS} events");
}

#[tokio::test]
async fn reopened_store_has_same_content() {
    let dir = tempdir().unwrap();
    let storage = open(&dir);
    let task = begin(&storage, 30).await;
    storage.append(&task, 30, vec![status(TaskState::Completed, 2, Some("done"))]).await.unwrap();
    storage.remember(&owner("one"), "k", vec![0; 7], 8).await.unwrap();
    let before = (storage.task(&task).await, storage.events(&task, 0, 100).await);
    drop(storage);
    assert!(!dir.path().join("hub.db-wal").exists(), "the last to close tidies up");

    let storage = open(&dir);
    assert_eq!((storage.task(&task).await, storage.events(&task, 0, 100).await), before);
    assert_eq!(storage.recall(&owner("one"), "k").await, Ok(Some(vec![0; 7])));
    let full = storage.remember(&owner("one"), "l", Vec::new(), 8).await;
    assert!(matches!(full, Err(StorageError::Full { would_hold: 9, .. })));
}

/// A small write waits behind at most one of the bulk writes.
#[tokio::test]
async fn bulk_writes_are_queued_one_by_one() {
    let dir = tempdir().unwrap();
    let storage = open(&dir);
    let mut tasks = Vec::new();
    for _ in 0..8 {
        tasks.push(begin(&storage, 2).await);
    }
    // The writer is blocked, so that the queue stays as it is.
    let (busy, done) = std::sync::mpsc::channel::<()>();
    let blocks = storage.writer.write(move |_| Ok(done.recv().is_ok()));
    let bulk = || vec![chunk(&"x".repeat(BULK))];
    let bulks = tasks.iter().map(|task| storage.append(task, 2, bulk()));
    let mut all = std::pin::pin!(futures::future::join(blocks, futures::future::join_all(bulks)));
    assert!(futures::poll!(&mut all).is_pending());
    assert!(storage.backlog() <= 2, "{} wait", storage.backlog());
    busy.send(()).unwrap();
    let (_, stored) = all.await;
    assert!(stored.iter().all(Result::is_ok), "{stored:?}");
}

#[tokio::test]
async fn drop_waits_for_queued_write() {
    let dir = tempdir().unwrap();
    let storage = open(&dir);
    let task = TaskId::fresh();
    let asked = storage.append(&task, 0, vec![created(&task, "c")]);
    // Polled once, so that the write is queued; then the caller is gone.
    tokio::select! {
        biased;
        _ = asked => unreachable!("no disk is that fast"),
        () = async {} => {}
    }
    drop(storage);
    assert_eq!(open(&dir).counts().await, Ok(TaskCounts { live: 1, total: 1 }));
}

#[tokio::test]
async fn long_log_of_resting_task_is_folded() {
    let dir = tempdir().unwrap();
    let storage = open(&dir);
    let folds = || -> Vec<(String, u32)> {
        let db = db::schema::open_to_read(&dir.path().join("hub.db")).unwrap();
        let mut found = db.prepare("SELECT task, seq FROM folds").unwrap();
        let rows = found.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
        rows.collect::<Result<_, _>>().unwrap()
    };
    let task = begin(&storage, 30).await;
    storage.task(&task).await.unwrap();
    begin(&storage, 1).await;
    assert_eq!(folds(), [], "a working task changes too often");

    storage.append(&task, 30, vec![status(TaskState::Completed, 2, None)]).await.unwrap();
    let folded = storage.task(&task).await.unwrap().unwrap();
    // Writes are made in order: after this one, the offered fold is stored.
    begin(&storage, 1).await;
    assert_eq!(folds(), [(task.to_string(), 31)]);
    assert_eq!(storage.task(&task).await.unwrap().unwrap(), folded);
}

/// Both for a file without this setting and for a new one.
#[tokio::test]
async fn deletion_shrinks_database_file() {
    for old in [true, false] {
        let dir = tempdir().unwrap();
        let file = dir.path().join("hub.db");
        drop(open(&dir));
        if old {
            let db = Connection::open(&file).unwrap();
            db.execute_batch("PRAGMA auto_vacuum = NONE; VACUUM").unwrap();
        }
        let storage = open(&dir);
        let mut tasks = Vec::new();
        for _ in 0..20 {
            let task = begin(&storage, 2).await;
            let chunks = vec![chunk(&"x".repeat(1 << 18)), status(TaskState::Completed, 2, None)];
            storage.append(&task, 2, chunks).await.unwrap();
            tasks.push(task);
        }
        let kept = tasks.pop().unwrap();
        assert_eq!(storage.forget_tasks(tasks).await, Ok(19));
        drop(storage);
        let size = fs::metadata(&file).unwrap().len();
        assert!(size < 2 << 20, "{size} bytes are left of 5 MiB (old: {old})");
        assert_eq!(open(&dir).events(&kept, 0, 9).await.unwrap().len(), 4);
    }
}

/// Time without checkpoints after which all of them are done.
const LULL: Duration = Duration::from_millis(200);

/// Writers never wait for checkpoints: another thread makes them, long before the log reaches
/// SQLite's limit.
#[tokio::test]
async fn checkpoints_run_beside_writers() {
    let dir = tempdir().unwrap();
    let storage = open(&dir);
    let (file, log) = (dir.path().join("hub.db"), dir.path().join("hub.db-wal"));
    let changed = || fs::metadata(&file).unwrap().modified().unwrap();
    let value = |n: usize, bytes| vec![u8::try_from(n % 256).unwrap(); bytes];
    let many = (db::writer::CHECKPOINT, 7);
    let large = (db::writer::CHECKPOINT_OF_PAGES / 16, 16 * 4096);
    for (changes, bytes) in [many, large] {
        let before = changed();
        for n in 0..changes {
            storage.remember(&owner("one"), "k", value(n, bytes), 1 << 20).await.unwrap();
        }
        let pages = i64::try_from(fs::metadata(&log).unwrap().len() / 4096).unwrap();
        assert!(pages < db::schema::CHECKPOINT_PAGES, "the writer has not done it");
        let is_in_place = || changed() > before && changed().elapsed().unwrap() > LULL;
        let brought = async {
            while !is_in_place() {
                sleep(Duration::from_millis(10)).await;
            }
        };
        let brought = timeout(Duration::from_secs(10), brought).await;
        assert!(brought.is_ok(), "{changes} changes of {bytes} bytes are where they were");
    }
}

#[tokio::test]
async fn second_hub_is_refused_by_lock() {
    let dir = tempdir().unwrap();
    let first = open(&dir);
    let error = SqliteStorage::open(dir.path()).unwrap_err();
    let path = dir.path().join("hub.lock");
    assert_eq!(
        error.to_string(),
        format!(
            "lock {}: another hub (process {}) uses this data directory; stop it, or choose another directory",
            path.display(),
            std::process::id()
        )
    );
    drop(first);
    open(&dir);
}

#[tokio::test]
async fn store_files_are_private() {
    let dir = tempdir().unwrap();
    let data = dir.path().join("made/for/it");
    let storage = SqliteStorage::open(&data).unwrap();
    begin(&storage, 2).await;
    let mode = |path: PathBuf| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(data.clone()), 0o700);
    for file in ["hub.db", "hub.db-wal", "hub.db-shm", "hub.lock"] {
        assert_eq!(mode(data.join(file)), 0o600, "{file}");
    }
}

#[tokio::test]
async fn newer_or_foreign_files_are_refused() {
    let dir = tempdir().unwrap();
    drop(open(&dir));
    let file = dir.path().join("hub.db");
    let change = |pragma: &str, value: i64| {
        Connection::open(&file).unwrap().pragma_update(None, pragma, value).unwrap();
        let before = fs::read(&file).unwrap();
        let error = SqliteStorage::open(dir.path()).unwrap_err();
        assert_eq!(fs::read(&file).unwrap(), before, "it was not touched");
        error
    };
    let newer = StorageError::Newer { path: file.clone(), found: 99, known: 6 };
    assert_eq!(change("user_version", 99), newer);
    assert!(matches!(change("application_id", 7), StorageError::Corrupt { .. }));

    fs::write(&file, "Dear diary, ".repeat(1000)).unwrap();
    let error = SqliteStorage::open(dir.path()).unwrap_err();
    assert!(matches!(error, StorageError::Corrupt { .. }), "{error}");
}

#[tokio::test]
async fn failed_write_leaves_nothing() {
    let dir = tempdir().unwrap();
    let storage = open(&dir);
    let task = begin(&storage, 3).await;
    let disk = Connection::open(dir.path().join("hub.db")).unwrap();
    let fire =
        "CREATE TRIGGER fire BEFORE UPDATE ON tasks BEGIN SELECT RAISE(ABORT, 'on fire'); END";
    disk.execute_batch(fire).unwrap();
    let failed = storage.append(&task, 3, vec![chunk("x")]).await;
    assert_eq!(failed, Err(StorageError::Unavailable("on fire; see the hub's log".into())));
    assert_eq!(storage.events(&task, 3, 10).await, Ok(Vec::new()));

    disk.execute_batch("DROP TRIGGER fire").unwrap();
    assert_eq!(storage.append(&task, 3, vec![chunk("x")]).await, Ok(4));
}

#[tokio::test]
async fn full_disk_is_reported_until_space_returns() {
    let dir = tempdir().unwrap();
    let storage = open(&dir);
    let task = begin(&storage, 2).await;
    let limit = async |pages: u32| {
        let set = move |db: &Connection| Ok(db.pragma_update(None, "max_page_count", pages)?);
        let _ = storage.writer.write(set).await;
    };
    let large = || vec![chunk(&"x".repeat(1 << 20))];
    for round in 0..3 {
        limit(1).await;
        let told = storage.append(&task, 2 + round, large()).await.unwrap_err().to_string();
        assert!(told.contains("full; make room"), "{told}");
        assert!(storage.condition().borrow().is_failing());
        assert_eq!(storage.events(&task, 2 + round, 10).await, Ok(Vec::new()));
        limit(1 << 20).await;
        assert_eq!(storage.append(&task, 2 + round, large()).await, Ok(3 + round));
        let mut condition = storage.condition();
        let well = async {
            while storage.condition().borrow().is_failing() {
                sleep(Duration::from_millis(20)).await;
                storage.probe().await.unwrap();
            }
        };
        timeout(Duration::from_secs(5), well).await.unwrap();
        assert!(!condition.borrow_and_update().is_failing());
    }
}

/// The log takes the space of a full disk; after a checkpoint it restarts.
#[tokio::test]
async fn full_disk_triggers_checkpoint() {
    let dir = tempdir().unwrap();
    let storage = open(&dir);
    let task = begin(&storage, 2).await;
    for seq in 2..22 {
        storage.append(&task, seq, vec![chunk(&"x".repeat(10_000))]).await.unwrap();
    }
    let in_place = || fs::metadata(dir.path().join("hub.db")).unwrap().len() > 400_000;
    assert!(!in_place(), "nobody asked for that");
    let full = |db: &Connection| Ok(db.pragma_update(None, "max_page_count", 1)?);
    let _ = storage.writer.write(full).await;
    storage.append(&task, 22, vec![chunk(&"x".repeat(1 << 20))]).await.unwrap_err();
    let brought = async {
        while !in_place() {
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(Duration::from_secs(5), brought).await.unwrap();
}

#[tokio::test]
async fn each_failed_write_is_atomic_and_retryable() {
    let dir = tempdir().unwrap();
    let storage = open(&dir);
    let disk = Connection::open(dir.path().join("hub.db")).unwrap();
    let set_works = |works: bool| {
        for table in ["tasks", "events", "pushes", "memories"] {
            for change in ["INSERT", "UPDATE", "DELETE"] {
                let name = format!("{table}_{change}");
                let sql = if works {
                    format!("DROP TRIGGER {name}")
                } else {
                    format!(
                        "CREATE TRIGGER {name} BEFORE {change} ON {table} BEGIN SELECT RAISE(ABORT, 'on fire'); END"
                    )
                };
                disk.execute_batch(&sql).unwrap();
            }
        }
    };
    let (id, one) = (PushConfigId::new("p"), owner("one"));
    for round in 0..3 {
        let (live, over) = (begin(&storage, 2).await, begin(&storage, 2).await);
        let end = vec![status(TaskState::Completed, 2, None)];
        storage.append(&over, 2, end).await.unwrap();
        let config = PushConfig {
            id: id.clone(),
            task: live.clone(),
            url: "https://example.com/".to_owned(),
            token: None,
            authentication: None,
            form: PushForm::V1,
        };
        storage.set_push(config.clone(), 0).await.unwrap();
        let key = format!("k{round}");
        for works in [false, true] {
            set_works(works);
            let (new, progress) = (TaskId::fresh(), Progress { sent: 1, failure: None });
            let went = [
                storage.append(&new, 0, vec![created(&new, "c")]).await.map(drop),
                storage.append(&live, 2, vec![chunk("x")]).await.map(drop),
                storage.set_push(config.clone(), 0).await.map(drop),
                storage.push_went(&live, &id, progress).await,
                storage.delete_push(&live, &id).await,
                storage.remember(&one, &key, vec![1], 100).await,
                storage.forget_tasks(vec![over.clone()]).await.map(drop),
            ];
            for (kind, went) in went.iter().enumerate() {
                let is_refused = matches!(went, Err(StorageError::Unavailable(_)));
                assert_eq!((went.is_ok(), is_refused), (works, !works), "{kind}: {went:?}");
            }
            assert_eq!(storage.recall(&one, &key).await.unwrap().is_some(), works);
            assert_eq!(storage.head(&over).await.unwrap().is_none(), works);
            assert_eq!(storage.head(&new).await.unwrap().is_some(), works);
        }
    }
}

#[tokio::test]
async fn panicking_write_is_rolled_back_alone() {
    let dir = tempdir().unwrap();
    let storage = open(&dir);
    let task = begin(&storage, 2).await;
    for seq in 2..5 {
        let broken = storage.writer.write(|db: &Connection| -> Result<(), SqliteFailure> {
            db.execute("DELETE FROM events", [])?;
            panic!("as told")
        });
        assert!(matches!(broken.await, Err(StorageError::Unavailable(_))));
        assert_eq!(storage.append(&task, seq, vec![chunk("x")]).await, Ok(seq + 1));
    }
    assert_eq!(storage.events(&task, 0, 10).await.unwrap().len(), 5, "what it did was undone");
}

#[tokio::test]
async fn corrupt_log_hides_only_its_own_request() {
    let dir = tempdir().unwrap();
    let storage = open(&dir);
    let mut tasks = Vec::new();
    for request in ["one", "two"] {
        let task = TaskId::fresh();
        let mut event = Arc::unwrap_or_clone(created(&task, "c"));
        if let TaskEvent::Created(created) = &mut event {
            created.request = Some(request.to_owned());
        }
        storage.append(&task, 0, vec![Arc::new(event)]).await.unwrap();
        tasks.push(task);
    }
    let damaged = tasks[0].clone();
    let damage = storage.writer.write(move |db: &Connection| -> Result<(), SqliteFailure> {
        db.execute("UPDATE events SET event = '{' WHERE task = ?1", [damaged.as_str()])?;
        Ok(())
    });
    damage.await.unwrap();
    let requests = storage.requests(&contract::at(0), 10).await.unwrap();
    let found: Vec<_> = requests.iter().map(|it| (it.fingerprint.as_str(), &it.task)).collect();
    assert_eq!(found, [("two", &tasks[1])]);
}

#[tokio::test]
async fn probe_writes_page_without_change() {
    let dir = tempdir().unwrap();
    let storage = open(&dir);
    let log = || fs::metadata(dir.path().join("hub.db-wal")).unwrap().len();
    let before = log();
    storage.probe().await.unwrap();
    assert!(log() >= before + 4096, "a page was written");
    drop(storage);
    open(&dir).probe().await.unwrap();
}

/// Copies the files as a killed hub leaves them for the next one.
fn crash(from: &TempDir) -> TempDir {
    let to = tempdir().unwrap();
    for file in ["hub.db", "hub.db-wal"] {
        fs::copy(from.path().join(file), to.path().join(file)).unwrap();
    }
    to
}

#[tokio::test]
async fn crash_keeps_acknowledged_writes() {
    let dir = tempdir().unwrap();
    let storage = open(&dir);
    let task = begin(&storage, 50).await;
    let crashed = crash(&dir);
    let left = open(&crashed);
    assert_eq!(left.events(&task, 0, 100).await, storage.events(&task, 0, 100).await);
    assert_eq!(left.append(&task, 50, vec![chunk("on")]).await, Ok(51));
}

#[tokio::test]
async fn torn_write_is_rolled_back() {
    let dir = tempdir().unwrap();
    let storage = open(&dir);
    let tasks = [begin(&storage, 20).await, begin(&storage, 40).await, begin(&storage, 3).await];
    let mut logs = Vec::new();
    for task in &tasks {
        logs.push(storage.events(task, 0, 100).await.unwrap());
    }
    let whole = fs::metadata(dir.path().join("hub.db-wal")).unwrap().len();
    // A stride coprime to all sizes in the file: the cuts fall in headers, in pages and between
    // them.
    for cut in (1..=50).map(|n| n * 7919 * 31 % whole) {
        let torn = crash(&dir);
        let wal = fs::OpenOptions::new().write(true).open(torn.path().join("hub.db-wal")).unwrap();
        wal.set_len(cut).unwrap();
        let left = open(&torn);
        for (task, log) in tasks.iter().zip(&logs) {
            let found = left.events(task, 0, 100).await.unwrap();
            assert_eq!(found, log[..found.len()], "cut at {cut} of {whole}");
            let seq = left.task(task).await.unwrap().map_or(0, |stored| stored.seq);
            assert_eq!(seq, found.len() as u64, "head and log are one transaction");
        }
    }
}

/// Compares the counters with counts of the rows.
fn assert_counted(db: &Connection) {
    let rows = |sql: &str| {
        let mut found = db.prepare(sql).unwrap();
        let columns = found.column_count();
        let row = |row: &rusqlite::Row<'_>| {
            (0..columns).map(|at| row.get::<_, rusqlite::types::Value>(at)).collect()
        };
        found.query_map([], row).unwrap().collect::<Result<Vec<Vec<_>>, _>>().unwrap()
    };
    for (kept, counted) in [
        (
            "SELECT agent, state, tasks FROM task_counts WHERE tasks <> 0 ORDER BY agent, state",
            "SELECT agent, state, count(*) FROM tasks GROUP BY agent, state ORDER BY agent, state",
        ),
        (
            "SELECT id, newest FROM contexts ORDER BY id",
            "SELECT context, max(id) FROM tasks GROUP BY context ORDER BY context",
        ),
        (
            "SELECT context, agent, tasks FROM context_agents ORDER BY context, agent",
            "SELECT context, agent, count(*) FROM tasks GROUP BY context, agent ORDER BY context, agent",
        ),
    ] {
        assert_eq!(rows(kept), rows(counted), "{kept}");
    }
}

#[tokio::test]
async fn counters_match_rows_after_each_change() {
    let dir = tempdir().unwrap();
    let storage = open(&dir);
    let db = db::schema::open_to_read(&dir.path().join("hub.db")).unwrap();
    let mut over = Vec::new();
    for n in 0..40_u32 {
        let task = TaskId::fresh();
        let context = format!("c{}", n % 4);
        storage.append(&task, 0, vec![created(&task, &context)]).await.unwrap();
        let states = [TaskState::Working, TaskState::InputRequired, TaskState::Working];
        for (seq, state) in (1..).zip(states.into_iter().take(n as usize % 4)) {
            storage.append(&task, seq, vec![status(state, 1, None)]).await.unwrap();
        }
        if n % 4 == 1 {
            let end = vec![chunk("x"), status(TaskState::Completed, 2, None)];
            storage.append(&task, 2, end).await.unwrap();
            over.push(task);
        }
        assert_counted(&db);
    }
    // The newest task of a conversation, the oldest, and finally all of them.
    for few in [vec![over.pop().unwrap()], vec![over.remove(0)], over] {
        assert_eq!(storage.forget_tasks(few.clone()).await, Ok(few.len()));
        assert_counted(&db);
    }
    assert_eq!(storage.contexts(ContextFilter::default()).await.unwrap().len(), 3);
}

/// Number of bytes that this process has written so far, to any files.
fn written() -> u64 {
    let io = fs::read_to_string("/proc/self/io").unwrap();
    let line = io.lines().find_map(|line| line.strip_prefix("wchar: ")).unwrap();
    line.parse().unwrap()
}

/// SQLite would write the statement journal to a temporary file, several times the size of the log.
#[tokio::test]
async fn appends_write_no_temporary_files() {
    const TASKS: u64 = 400;
    let dir = tempdir().unwrap();
    let storage = open(&dir);
    let append = |context: u64| {
        let (storage, id) = (&storage, TaskId::fresh());
        let events = vec![
            created(&id, &format!("c{context}")),
            status(TaskState::Working, 1, None),
            status(TaskState::Completed, 2, Some(&"x".repeat(300))),
        ];
        async move { storage.append(&id, 0, events).await }
    };
    let before = written();
    futures::future::try_join_all((0..TASKS).map(append)).await.unwrap();
    let each = (written() - before) / TASKS;
    assert!(each < 16_000, "{each} bytes for each task");
}
