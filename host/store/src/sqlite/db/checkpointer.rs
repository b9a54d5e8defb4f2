//! Checkpoint thread: copies the write-ahead log into the database, so that writers need not. Uses
//! passive checkpoints (SQLite's documentation, "Write-Ahead Logging", Checkpointing), which block
//! no readers or writers.
//!
//! The log restarts once all of it is copied and nobody reads it. Under constant writes a little is
//! left each time; the writer copies that itself when its log is long.

use super::error::unavailable;
use crate::StorageError;
use rusqlite::Connection;
use std::{
    io,
    sync::mpsc::{Receiver, SyncSender, sync_channel},
    thread,
};

#[derive(Debug)]
pub(in crate::sqlite) struct Checkpointer {
    /// Taken when the checkpointer is dropped, which ends the thread.
    asks: Option<SyncSender<()>>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Checkpointer {
    /// Starts the thread, with its own connection.
    pub(in crate::sqlite) fn start(db: Connection) -> Result<Self, StorageError> {
        let (asks, requests) = sync_channel(1);
        let thread = thread::Builder::new()
            .name("checkpointer".into())
            .spawn(move || run(&db, &requests))
            .map_err(|why: io::Error| unavailable(format!("start its checkpointer: {why}")))?;
        Ok(Self { asks: Some(asks), thread: Some(thread) })
    }

    /// Requests a checkpoint of everything committed so far.
    pub(in crate::sqlite) fn ask(&self) {
        // A pending request is enough.
        let _ = self.asks.as_ref().map(|asks| asks.try_send(()));
    }
}

/// Waits until its connection is closed.
impl Drop for Checkpointer {
    fn drop(&mut self) {
        self.asks = None;
        if self.thread.take().is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the store's checkpointer had panicked");
        }
    }
}

fn run(db: &Connection, requests: &Receiver<()>) {
    while let Ok(()) = requests.recv() {
        // Pages that cannot be copied, for example because the disk is full, stay in the log and
        // are as durable there.
        if let Err(why) = db.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(())) {
            tracing::debug!(%why, "cannot checkpoint the write-ahead log");
        }
    }
}
