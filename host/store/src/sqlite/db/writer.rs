//! Writer thread. It commits queued writes in one transaction (group commit), so that many writers
//! share one fsync.
//!
//! A transaction writes a page of each index, for one task as for ten. So a caller that has queued
//! a write yields to other tasks until two yields in a row have brought no more writes, and only
//! then wakes the thread; the first of several callers wakes it for all. The more there is to
//! write, the more is batched; on an idle hub nobody waits.

use super::{
    checkpointer::Checkpointer,
    dirty_bit,
    error::{self, unavailable},
    failure::SqliteFailure,
    schema::CHECKPOINT_PAGES,
    write_queue::{BATCH, Length, QueueState, Queues, Waiting},
};
use crate::{StorageError, health::Judgement};
use a2a_hub_protocol::operation::StorageCondition;
use rusqlite::{Connection, hooks::Wal};
use std::{
    ffi::c_int,
    io,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst, fence},
    },
    thread,
};
use tokio::{
    sync::{oneshot, watch},
    task::yield_now,
};

/// Number of writes after which a checkpoint is requested: some 800 pages of tasks that are
/// answered at once to sixty-four clients, 6,500 to one. The few tasks that are written during a
/// checkpoint wait for a busier disk: with 384 they are less than one in a hundred.
pub(in crate::sqlite) const CHECKPOINT: usize = 384;

/// Number of pages in the log after which a checkpoint is requested, for large writes.
pub(in crate::sqlite) const CHECKPOINT_OF_PAGES: usize = 6_000;

/// Limit of yields to other tasks before a write. With 64 clients, a transaction has twice as many
/// writes as with one yield; more yields add none.
const TURNS: usize = 4;

#[derive(Debug)]
pub(in crate::sqlite) struct Writer {
    /// Taken when the writer is dropped, which ends the thread.
    queues: Option<Queues<Box<dyn Write>>>,
    thread: Option<thread::JoinHandle<()>>,
    calls: Arc<WriterWakeup>,
    judgement: Arc<Judgement>,
}

/// Wake-up state of the writer thread: one wake-up for all pending writes, and no lost wake-ups.
#[derive(Debug, Default)]
struct WriterWakeup {
    /// Number of times that the thread has read the queues.
    looks: AtomicUsize,
    /// True if the thread was woken since it last read the queues.
    woken: AtomicBool,
}

impl WriterWakeup {
    /// Called by the thread before it reads the queues: it finds the writes that are queued now. A
    /// later write wakes it again.
    fn begin_read(&self) {
        self.woken.store(false, SeqCst);
        self.looks.fetch_add(1, SeqCst);
        fence(SeqCst);
    }

    /// Number of reads so far; once it has grown, a write that is queued now has been found.
    fn looks(&self) -> usize {
        fence(SeqCst);
        self.looks.load(SeqCst)
    }
}

/// Wakes the writer thread when dropped, even if the caller was cancelled; does nothing if the
/// write has been found.
struct Wake<'a> {
    thread: &'a thread::Thread,
    calls: &'a WriterWakeup,
    looks: usize,
}

impl Wake<'_> {
    fn is_needless(&self) -> bool {
        self.calls.looks() != self.looks
    }
}

impl Drop for Wake<'_> {
    fn drop(&mut self) {
        if !self.is_needless() && !self.calls.woken.swap(true, SeqCst) {
            self.thread.unpark();
        }
    }
}

impl Writer {
    pub(in crate::sqlite) fn start(
        mut db: Connection,
        checkpointer: Checkpointer,
    ) -> Result<Self, StorageError> {
        let log = LogLength::watch(&mut db)
            .map_err(|why| unavailable(format!("watch its log: {why}")))?;
        let (queues, waiting) = Queues::new();
        let (judgement, calls) = <(Arc<Judgement>, Arc<WriterWakeup>)>::default();
        let of_thread = (Arc::clone(&judgement), Arc::clone(&calls));
        let thread = thread::Builder::new()
            .name("storage-writer".into())
            .spawn(move || run(&db, (&log, checkpointer), waiting, &of_thread.1, &of_thread.0))
            .map_err(|why: io::Error| unavailable(format!("start its writer: {why}")))?;
        Ok(Self { queues: Some(queues), thread: Some(thread), calls, judgement })
    }

    /// Condition of the store, judged by writes.
    pub(in crate::sqlite) fn condition(&self) -> watch::Receiver<StorageCondition> {
        self.judgement.listen()
    }

    /// Number of pending writes.
    pub(in crate::sqlite) fn backlog(&self) -> usize {
        self.queues.as_ref().map_or(0, Queues::len)
    }

    /// Makes a short write, durable on return. A write that is refused must not have changed
    /// anything.
    pub(in crate::sqlite) async fn write<T: Send + 'static>(
        &self,
        change: impl FnOnce(&Connection) -> Result<T, SqliteFailure> + Send + 'static,
    ) -> Result<T, StorageError> {
        self.write_of(Length::Short, change).await
    }

    /// Makes a write of this length.
    pub(in crate::sqlite) async fn write_of<T: Send + 'static>(
        &self,
        length: Length,
        change: impl FnOnce(&Connection) -> Result<T, SqliteFailure> + Send + 'static,
    ) -> Result<T, StorageError> {
        let closed = || unavailable("its writer has ended; see the log, and restart the hub");
        let (done, outcome) = oneshot::channel();
        let queued = QueuedWrite { change: Some(change), outcome: None, done };
        let queues = self.queues.as_ref().ok_or_else(closed)?;
        queues.sender(length).send(Box::new(queued)).await.map_err(|_| closed())?;
        if let Some(wake) = self.wake() {
            let (mut waiting, mut in_vain) = (1, 0);
            for _ in 0..TURNS {
                // Tasks that are ready now will have queued their own writes after the yield.
                yield_now().await;
                let there_are = queues.len();
                in_vain = if there_are > waiting { 0 } else { in_vain + 1 };
                // Tokio resumes tasks that yielded in reverse order, so one of two yields may bring
                // no other task in between.
                if wake.is_needless() || in_vain == 2 {
                    break;
                }
                waiting = there_are;
            }
        }
        outcome.await.map_err(|_| closed())?
    }

    /// Guard that wakes the thread when it is dropped.
    fn wake(&self) -> Option<Wake<'_>> {
        let (thread, calls) = (self.thread.as_ref()?.thread(), self.calls.as_ref());
        Some(Wake { thread, calls, looks: calls.looks() })
    }

    /// Queues an optional write; it is dropped if the queue is full or anything fails.
    pub(in crate::sqlite) fn offer(
        &self,
        change: impl FnOnce(&Connection) -> Result<(), SqliteFailure> + Send + 'static,
    ) {
        let (done, _) = oneshot::channel();
        if let Some(queues) = &self.queues {
            let queued = QueuedWrite { change: Some(change), outcome: None, done };
            if queues.sender(Length::Short).try_send(Box::new(queued)).is_err() {
                tracing::debug!("optional write dropped: the store's queue is full");
            }
            drop(self.wake());
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.queues = None;
        let ended = self.thread.take().map(|thread| {
            thread.thread().unpark();
            thread.join()
        });
        if ended.is_some_and(|ended| ended.is_err()) {
            tracing::error!("the store's writer had panicked");
        }
    }
}

/// Length of the write-ahead log, as reported by SQLite at each commit.
#[derive(Debug, Default)]
struct LogLength(Arc<AtomicUsize>);

impl LogLength {
    /// Watches the log of this connection. A log that is too long is checkpointed at once; SQLite
    /// does that itself only without a hook.
    fn watch(db: &mut Connection) -> rusqlite::Result<Self> {
        let length = Self::default();
        let shared = Arc::clone(&length.0);
        db.wal_hook(Some(move |log: &mut Wal, pages: c_int| {
            shared.store(usize::try_from(pages).unwrap_or(0), SeqCst);
            if i64::from(pages) >= CHECKPOINT_PAGES {
                // What stays in the log is as durable there, and the commit is made.
                let _ = log.checkpoint();
            }
            Ok(())
        }))?;
        Ok(length)
    }

    /// Length in pages after the last commit.
    fn pages(&self) -> usize {
        self.0.load(SeqCst)
    }
}

fn run(
    db: &Connection,
    (log, checkpointer): (&LogLength, Checkpointer),
    mut waiting: Waiting<Box<dyn Write>>,
    calls: &WriterWakeup,
    judgement: &Judgement,
) {
    let (mut batch, mut has_failed) = (Vec::with_capacity(BATCH), false);
    let (mut changes, mut checkpointed_pages) = (0, 0);
    loop {
        calls.begin_read();
        let queue_state = waiting.take_batch(&mut batch);
        if batch.is_empty() {
            if queue_state == QueueState::Ended {
                break;
            }
            thread::park();
            continue;
        }
        let committed = commit_and_judge(db, &mut batch, judgement);
        let failed = committed.is_err();
        changes += if failed { 0 } else { batch.len() };
        for change in batch.drain(..) {
            change.answer(committed.clone());
        }
        let pages = log.pages();
        if pages < checkpointed_pages {
            // The log has restarted.
            checkpointed_pages = 0;
        }
        let is_long = changes >= CHECKPOINT || pages - checkpointed_pages >= CHECKPOINT_OF_PAGES;
        // On a full disk, the log takes the space. A checkpoint moves it to the database, and the
        // log restarts.
        if is_long || failed != has_failed {
            checkpointer.ask();
            (changes, checkpointed_pages) = (0, pages);
        }
        has_failed = failed;
        if queue_state == QueueState::Nothing {
            // Writers that queued since then let others queue first.
            thread::park();
        }
    }
    // The last connection tidies up the files.
    drop(checkpointer);
    if let Err(why) = dirty_bit::clear(db).map_err(StorageError::from) {
        tracing::warn!(%why, "cannot close the store cleanly, its write-ahead log remains");
    }
}

/// Commits a batch and records the result. Whatever fails, the next batch is tried.
fn commit_and_judge(
    db: &Connection,
    batch: &mut [Box<dyn Write>],
    judgement: &Judgement,
) -> Result<(), StorageError> {
    let changes = batch.len();
    match catch_unwind(AssertUnwindSafe(|| commit(db, batch))) {
        Ok(Ok(())) => {
            judgement.wrote();
            Ok(())
        }
        Ok(Err(why)) => {
            if judgement.failed(&why.to_string(), error::way_out(&why)) {
                tracing::error!(%why, changes, "commit failed");
            }
            Err(error::because_of(&why))
        }
        // A bug of the hub; the panic itself is in the log.
        Err(_) => Err(unavailable("a change broke while it was made; the hub's log says where")),
    }
}

/// Makes all writes or none, except those that were refused individually.
fn commit(db: &Connection, batch: &mut [Box<dyn Write>]) -> rusqlite::Result<()> {
    let execute = |sql| db.prepare_cached(sql)?.execute([]);
    // An open transaction, left by a panic or a failed rollback, must not block the writer for
    // ever.
    if !db.is_autocommit() {
        execute("ROLLBACK")?;
    }
    execute("BEGIN IMMEDIATE")?;
    let applied = batch.iter_mut().try_for_each(|change| change.make(db));
    let committed = applied.and_then(|()| execute("COMMIT"));
    // Some failures have ended the transaction already.
    if committed.is_err() && !db.is_autocommit() {
        execute("ROLLBACK")?;
    }
    committed.map(drop)
}

/// A queued write, independent of its result's type.
trait Write: Send {
    /// Makes the write. An error is SQLite's; a refusal is stored for [`Write::answer`].
    fn make(&mut self, db: &Connection) -> rusqlite::Result<()>;

    /// Sends the result, after the transaction has ended.
    fn answer(self: Box<Self>, committed: Result<(), StorageError>);
}

struct QueuedWrite<C, T> {
    change: Option<C>,
    outcome: Option<Result<T, StorageError>>,
    done: oneshot::Sender<Result<T, StorageError>>,
}

impl<C, T> Write for QueuedWrite<C, T>
where
    C: FnOnce(&Connection) -> Result<T, SqliteFailure> + Send,
    T: Send,
{
    fn make(&mut self, db: &Connection) -> rusqlite::Result<()> {
        self.outcome = match self.change.take().map(|change| change(db)) {
            None => None,
            Some(Ok(value)) => Some(Ok(value)),
            Some(Err(SqliteFailure::Refused(error))) => Some(Err(error)),
            Some(Err(SqliteFailure::Sql(error))) => return Err(error),
        };
        Ok(())
    }

    fn answer(self: Box<Self>, committed: Result<(), StorageError>) {
        // The caller may be gone; the write is made regardless.
        let _ = match (committed, self.outcome) {
            (Ok(()), Some(outcome)) => self.done.send(outcome),
            (Ok(()), None) => return,
            (Err(error), _) => self.done.send(Err(error)),
        };
    }
}
