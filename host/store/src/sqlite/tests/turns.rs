//! Order of writes and reads: no caller waits for one that does not use its permit.

use super::*;
use futures::FutureExt as _;
use std::{future::poll_fn, pin::Pin, sync::Arc, task::Poll};
use tokio::task::{JoinSet, yield_now};

/// Longer than anything here takes.
const LONG: Duration = Duration::from_secs(60);

/// A queued writer that is not polled, such as a low-priority agent's, delays no other.
#[tokio::test]
async fn unpolled_writer_delays_no_other() {
    let dir = tempdir().unwrap();
    let storage = open(&dir);
    // The writer thread may read the queues by itself when it begins.
    for _ in 0..20 {
        let (seldom, often) = (TaskId::fresh(), TaskId::fresh());
        let mut never_again = Box::pin(storage.append(&seldom, 0, vec![created(&seldom, "c")]));
        let polled = poll_fn(|cx| Poll::Ready(never_again.as_mut().poll(cx))).await;
        assert!(polled.is_pending(), "it is in the queue, and lets others go first");
        let soon = timeout(LONG, storage.append(&often, 0, vec![created(&often, "c")])).await;
        soon.expect("it waits for nobody").unwrap();
        assert!(storage.task(&seldom).await.unwrap().is_some(), "both share the transaction");
        never_again.await.unwrap();
    }
}

/// Callers on another runtime that is rarely polled delay nobody either: neither with their permits
/// to read, nor with those for bulk writes.
#[test]
fn unpolled_runtime_delays_no_other() {
    let dir = tempdir().unwrap();
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let (home, seldom) = (runtime(), runtime());
    let storage = home.block_on(async { open(&dir) });
    let one = owner("one");
    let much = |task: &TaskId| vec![created(task, "c"), chunk(&"x".repeat(BULK + 1))];
    let tasks = std::array::from_fn::<_, 16, _>(|_| TaskId::fresh());
    let mut never_again: Vec<Pin<Box<dyn Future<Output = ()>>>> = Vec::new();
    for task in &tasks {
        never_again.push(Box::pin(storage.append(task, 0, much(task)).map(drop)));
        never_again.push(Box::pin(storage.recall(&one, "k").map(drop)));
    }
    // Each is queued, and its predecessor has ended: it gets its permit, and does not use it.
    seldom.block_on(async {
        for asked in &mut never_again {
            poll_fn(|cx| Poll::Ready(asked.as_mut().poll(cx).is_ready())).await;
        }
        sleep(Duration::from_millis(200)).await;
    });
    home.block_on(async {
        let mine = TaskId::fresh();
        let stored = timeout(LONG, storage.append(&mine, 0, much(&mine))).await;
        stored.expect("it is stored").unwrap();
        let read = timeout(LONG, storage.recall(&one, "k")).await;
        assert_eq!(read.expect("it is read"), Ok(None));
    });
}

/// A transaction writes a page of each index, for one task as for ten.
#[tokio::test]
async fn ready_writers_share_transaction() {
    const TASKS: usize = 12;
    let dir = tempdir().unwrap();
    let storage = Arc::new(open(&dir));
    let mut shared = 0;
    // The writer thread may read the queues by itself when it begins.
    for _ in 0..5 {
        let before = transactions(&dir);
        let mut all = JoinSet::new();
        for late in 0..TASKS {
            let storage = Arc::clone(&storage);
            all.spawn(async move {
                // With four in each yield, the last ones are ready one yield after the second.
                for _ in 0..late / 4 {
                    yield_now().await;
                }
                let task = TaskId::fresh();
                storage.append(&task, 0, vec![created(&task, "c")]).await.unwrap();
            });
        }
        all.join_all().await;
        shared += usize::from(transactions(&dir) - before == 1);
    }
    assert!(shared > 0);
}

/// Number of transactions in the log: each ends with a frame that contains the size of the file
/// (SQLite's file format, 4.1).
fn transactions(dir: &TempDir) -> usize {
    const HEADER: usize = 32;
    const FRAME: usize = 24 + 4096;
    let log = fs::read(dir.path().join("hub.db-wal")).unwrap();
    let frames = log[HEADER.min(log.len())..].chunks_exact(FRAME);
    frames.filter(|frame| frame[4..8] != [0; 4]).count()
}

/// Writes of which some are cancelled at any point: every queued write is found.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cancelled_writers_leave_no_write_queued() {
    let dir = tempdir().unwrap();
    let storage = Arc::new(open(&dir));
    let mut all = JoinSet::new();
    for writer in 0..48 {
        let storage = Arc::clone(&storage);
        all.spawn(async move {
            for turn in 0..20 {
                let task = TaskId::fresh();
                let mut change = Box::pin(storage.append(&task, 0, vec![created(&task, "c")]));
                if (writer + turn) % 3 == 0 {
                    let polled = poll_fn(|cx| Poll::Ready(change.as_mut().poll(cx)));
                    let _ = polled.await;
                    drop(change);
                    while storage.task(&task).await.unwrap().is_none() {
                        sleep(Duration::from_millis(1)).await;
                    }
                } else {
                    change.await.unwrap();
                }
            }
        });
    }
    timeout(LONG, all.join_all()).await.expect("each is found");
}
