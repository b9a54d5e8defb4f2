//! Disk of the baseline server: a table of tasks and one of chunks, with one writer thread.

use anyhow::{Context as _, Result};
use parking_lot::Mutex;
use rusqlite::{Connection, OpenFlags, OptionalExtension as _};
use std::thread;
use tempfile::TempDir;
use tokio::sync::{mpsc, oneshot};
use uuid::Uuid;

/// Queue limit above the maximum of pending rows: 16 streams of 100 chunks.
const MAX_QUEUED_ROWS: usize = 2048;

/// Maximum number of queued rows that share a transaction.
const BATCH: usize = 256;

pub(super) struct Store {
    rows: mpsc::Sender<Row>,
    reader: Mutex<Connection>,
    _dir: TempDir,
}

/// Row of a task, as its chunk 0, or of one of its chunks.
struct Row {
    task: Uuid,
    number: u32,
    json: Vec<u8>,
    kept: oneshot::Sender<()>,
}

impl Store {
    pub(super) fn start() -> Result<Self> {
        let dir = tempfile::tempdir()?;
        let file = dir.path().join("tasks.db");
        let connection = Connection::open(&file)?;
        connection.pragma_update(None, "journal_mode", "WAL")?;
        connection.pragma_update(None, "synchronous", "FULL")?;
        connection.execute_batch(
            "CREATE TABLE rows (task BLOB, number INTEGER, json BLOB, PRIMARY KEY (task, number)) WITHOUT ROWID",
        )?;
        let reader = Connection::open_with_flags(&file, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        let (rows, queue) = mpsc::channel(MAX_QUEUED_ROWS);
        // The thread ends with the server, once no sender of rows is left.
        thread::Builder::new().name("storage-writer".into()).spawn(|| write(connection, queue))?;
        Ok(Self { rows, reader: Mutex::new(reader), _dir: dir })
    }

    /// Stores a row and returns once it is on disk.
    pub(super) async fn keep(&self, task: Uuid, number: u32, json: Vec<u8>) -> Result<()> {
        let (kept, done) = oneshot::channel();
        let row = Row { task, number, json, kept };
        self.rows.send(row).await.ok().context("the writer has ended")?;
        done.await.context("the row could not be written")
    }

    /// Stored task. SQLite has it in memory, so the call blocks only briefly.
    pub(super) fn task(&self, task: Uuid) -> Result<Option<Vec<u8>>> {
        let reader = self.reader.lock();
        let sql = "SELECT json FROM rows WHERE task = ?1 AND number = 0";
        let mut found = reader.prepare_cached(sql)?;
        Ok(found.query_row([task.as_bytes()], |row| row.get(0)).optional()?)
    }
}

/// Writes all queued rows in one transaction, then the next batch.
fn write(mut connection: Connection, mut queue: mpsc::Receiver<Row>) -> Result<()> {
    let (mut rows, mut kept) = (Vec::with_capacity(BATCH), Vec::with_capacity(BATCH));
    while queue.blocking_recv_many(&mut rows, BATCH) > 0 {
        let transaction = connection.transaction()?;
        {
            let mut insert = transaction.prepare_cached("INSERT INTO rows VALUES (?1, ?2, ?3)")?;
            for row in rows.drain(..) {
                insert.execute((row.task.as_bytes(), row.number, &row.json))?;
                kept.push(row.kept);
            }
        }
        transaction.commit()?;
        for kept in kept.drain(..) {
            let _gone = kept.send(());
        }
    }
    Ok(())
}
