//! The one thread that writes. What has queued up is committed in one transaction (group commit): many writers share one fsync.
//!
//! A transaction writes a page of each index, be it for one task or for ten. So whoever has put a change into a queue lets whatever else is ready to
//! run have its turn, until two turns have brought no more changes, and only then has the thread look into the queues; the first of several to do so does it
//! for all. The more there is to do, the more is done together; a hub with nothing else to do waits for nobody.

use super::{
    checkpointer::Checkpointer,
    dirty_bit,
    failure::Failure,
    fault::{self, unavailable},
    queues::{BATCH, Left, Length, Queues, Waiting},
    schema::CHECKPOINT_PAGES,
};
use crate::{StorageError, condition::Judgement};
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

/// After how many changes what was written is brought to its place: some 800 pages of tasks that are answered at once to sixty-four clients, 6,500 to one. The few
/// tasks that are written meanwhile wait for a disk that has more to do: with 384 they are less than one in a hundred.
pub(super) const CHECKPOINT: usize = 384;

/// The same in pages of the log, where changes are large.
pub(super) const CHECKPOINT_OF_PAGES: usize = 6_000;

/// How many turns whoever is ready to run has at most before a change is made. With 64 clients, a transaction is
/// shared by twice as many as with one turn; more turns make no more of them.
const TURNS: usize = 4;

#[derive(Debug)]
pub(super) struct Writer {
    /// Taken when the writer is dropped, which ends the thread.
    queues: Option<Queues<Box<dyn Change>>>,
    thread: Option<thread::JoinHandle<()>>,
    calls: Arc<Calls>,
    judgement: Arc<Judgement>,
}

/// How the writing thread is woken: once for all that waits, and never too seldom.
#[derive(Debug, Default)]
struct Calls {
    /// How often the thread has looked into the queues.
    looks: AtomicUsize,
    /// Whether it was woken since it last did.
    woken: AtomicBool,
}

impl Calls {
    /// The thread is about to look into the queues: what is in them now it finds. Who puts something into one later wakes it again.
    fn look(&self) {
        self.woken.store(false, SeqCst);
        self.looks.fetch_add(1, SeqCst);
        fence(SeqCst);
    }

    /// What a change that is in a queue now has to see grow, to know that it was found.
    fn looks(&self) -> usize {
        fence(SeqCst);
        self.looks.load(SeqCst)
    }
}

/// Wakes the writing thread when dropped, so that it is woken even if nobody waits for the change any more; unless it has found the change.
struct Wake<'a> {
    thread: &'a thread::Thread,
    calls: &'a Calls,
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
    pub(super) fn start(
        mut db: Connection,
        checkpointer: Checkpointer,
    ) -> Result<Self, StorageError> {
        let log =
            LogLength::of(&mut db).map_err(|why| unavailable(format!("watch its log: {why}")))?;
        let (queues, waiting) = Queues::new();
        let (judgement, calls) = <(Arc<Judgement>, Arc<Calls>)>::default();
        let of_thread = (Arc::clone(&judgement), Arc::clone(&calls));
        let thread = thread::Builder::new()
            .name("storage-writer".into())
            .spawn(move || run(&db, (&log, checkpointer), waiting, &of_thread.1, &of_thread.0))
            .map_err(|why: io::Error| unavailable(format!("start its writer: {why}")))?;
        Ok(Self { queues: Some(queues), thread: Some(thread), calls, judgement })
    }

    /// Whether what is asked for can be written.
    pub(super) fn condition(&self) -> watch::Receiver<StorageCondition> {
        self.judgement.listen()
    }

    /// How many changes wait.
    pub(super) fn backlog(&self) -> usize {
        self.queues.as_ref().map_or(0, Queues::len)
    }

    /// Makes a short change; once this returns it is durable. A change that is refused must not have written anything.
    pub(super) async fn write<T: Send + 'static>(
        &self,
        change: impl FnOnce(&Connection) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, StorageError> {
        self.write_of(Length::Short, change).await
    }

    /// The same for a change that takes so long.
    pub(super) async fn write_of<T: Send + 'static>(
        &self,
        length: Length,
        change: impl FnOnce(&Connection) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, StorageError> {
        let gone = || unavailable("its writer has ended; see the log, and restart the hub");
        let (done, outcome) = oneshot::channel();
        let asked = Asked { change: Some(change), outcome: None, done };
        let queues = self.queues.as_ref().ok_or_else(gone)?;
        queues.of(length).send(Box::new(asked)).await.map_err(|_| gone())?;
        if let Some(wake) = self.wake() {
            let (mut waiting, mut in_vain) = (1, 0);
            for _ in 0..TURNS {
                // Whoever is ready now has a change of their own in a queue after that, if they make one.
                yield_now().await;
                let there_are = queues.len();
                in_vain = if there_are > waiting { 0 } else { in_vain + 1 };
                // Tokio has those that yielded go on in reversed order: one turn of two may be with nobody else's in between.
                if wake.is_needless() || in_vain == 2 {
                    break;
                }
                waiting = there_are;
            }
        }
        outcome.await.map_err(|_| gone())?
    }

    /// Has the thread look into the queues, once that is dropped.
    fn wake(&self) -> Option<Wake<'_>> {
        let (thread, calls) = (self.thread.as_ref()?.thread(), self.calls.as_ref());
        Some(Wake { thread, calls, looks: calls.looks() })
    }

    /// Has a change made, unless there is more urgent work or something goes wrong.
    pub(super) fn offer(
        &self,
        change: impl FnOnce(&Connection) -> Result<(), Failure> + Send + 'static,
    ) {
        let (done, _) = oneshot::channel();
        if let Some(queues) = &self.queues {
            let asked = Asked { change: Some(change), outcome: None, done };
            if queues.of(Length::Short).try_send(Box::new(asked)).is_err() {
                tracing::debug!("the store is too busy to keep a fold");
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

/// How long the write-ahead log is, as SQLite tells whoever commits.
#[derive(Debug, Default)]
struct LogLength(Arc<AtomicUsize>);

impl LogLength {
    /// Watches the log that is written by way of this connection. One that is too long is brought to its place at once, which SQLite does by itself where
    /// nobody watches.
    fn of(db: &mut Connection) -> rusqlite::Result<Self> {
        let length = Self::default();
        let told = Arc::clone(&length.0);
        db.wal_hook(Some(move |log: &mut Wal, pages: c_int| {
            told.store(usize::try_from(pages).unwrap_or(0), SeqCst);
            if i64::from(pages) >= CHECKPOINT_PAGES {
                // What stays in the log is as durable there, and the commit is made.
                let _ = log.checkpoint();
            }
            Ok(())
        }))?;
        Ok(length)
    }

    /// In pages, with the last commit.
    fn pages(&self) -> usize {
        self.0.load(SeqCst)
    }
}

fn run(
    db: &Connection,
    (log, checkpointer): (&LogLength, Checkpointer),
    mut waiting: Waiting<Box<dyn Change>>,
    calls: &Calls,
    judgement: &Judgement,
) {
    let (mut batch, mut has_failed) = (Vec::with_capacity(BATCH), false);
    let (mut changes, mut in_place) = (0, 0);
    loop {
        calls.look();
        let left = waiting.take(&mut batch);
        if batch.is_empty() {
            if left == Left::Ended {
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
        if pages < in_place {
            // It has begun anew.
            in_place = 0;
        }
        let is_long = changes >= CHECKPOINT || pages - in_place >= CHECKPOINT_OF_PAGES;
        // On a disk that is full it is the log that has taken the room. What comes free is the database's first: then the log begins anew.
        if is_long || failed != has_failed {
            checkpointer.ask();
            (changes, in_place) = (0, pages);
        }
        has_failed = failed;
        if left == Left::Nothing {
            // Whoever has put something into a queue since then has others do so first.
            thread::park();
        }
    }
    // The last connection tidies the files up.
    drop(checkpointer);
    if let Err(why) = dirty_bit::clear(db).map_err(StorageError::from) {
        tracing::warn!(%why, "the store could not be closed in order; its log stays beside it");
    }
}

/// Commits a batch, and takes in how that went. Whatever is wrong with this one, the next one is tried.
fn commit_and_judge(
    db: &Connection,
    batch: &mut [Box<dyn Change>],
    judgement: &Judgement,
) -> Result<(), StorageError> {
    let changes = batch.len();
    match catch_unwind(AssertUnwindSafe(|| commit(db, batch))) {
        Ok(Ok(())) => {
            judgement.wrote();
            Ok(())
        }
        Ok(Err(why)) => {
            if judgement.failed(&why.to_string(), fault::way_out(&why)) {
                tracing::error!(%why, changes, "could not commit");
            }
            Err(fault::because_of(&why))
        }
        // A fault of the hub's own, of which the panic itself has told.
        Err(_) => Err(unavailable("a change broke while it was made; the hub's log says where")),
    }
}

/// Makes all changes or none, except those that were refused for what they are.
fn commit(db: &Connection, batch: &mut [Box<dyn Change>]) -> rusqlite::Result<()> {
    let execute = |sql| db.prepare_cached(sql)?.execute([]);
    // One that broke, or could not be rolled back, must not stand in the way for ever.
    if !db.is_autocommit() {
        execute("ROLLBACK")?;
    }
    execute("BEGIN IMMEDIATE")?;
    let made = batch.iter_mut().try_for_each(|change| change.make(db));
    let committed = made.and_then(|()| execute("COMMIT"));
    // Some failures have ended the transaction already.
    if committed.is_err() && !db.is_autocommit() {
        execute("ROLLBACK")?;
    }
    committed.map(drop)
}

/// A change to the store, whoever waits for whatever comes of it.
trait Change: Send {
    /// Makes the change. An error is one of SQLite's; a refusal is kept for [`Change::answer`].
    fn make(&mut self, db: &Connection) -> rusqlite::Result<()>;

    /// Tells what came of it, now that the transaction has ended.
    fn answer(self: Box<Self>, committed: Result<(), StorageError>);
}

struct Asked<C, T> {
    change: Option<C>,
    outcome: Option<Result<T, StorageError>>,
    done: oneshot::Sender<Result<T, StorageError>>,
}

impl<C, T> Change for Asked<C, T>
where
    C: FnOnce(&Connection) -> Result<T, Failure> + Send,
    T: Send,
{
    fn make(&mut self, db: &Connection) -> rusqlite::Result<()> {
        self.outcome = match self.change.take().map(|change| change(db)) {
            None => None,
            Some(Ok(value)) => Some(Ok(value)),
            Some(Err(Failure::Refused(error))) => Some(Err(error)),
            Some(Err(Failure::Sql(error))) => return Err(error),
        };
        Ok(())
    }

    fn answer(self: Box<Self>, committed: Result<(), StorageError>) {
        // Who asked may have gone away; the change is made all the same.
        let _ = match (committed, self.outcome) {
            (Ok(()), Some(outcome)) => self.done.send(outcome),
            (Ok(()), None) => return,
            (Err(error), _) => self.done.send(Err(error)),
        };
    }
}
