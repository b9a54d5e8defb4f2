//! The thread that brings what is in the write-ahead log to its places in the database, so that nobody who writes waits for that: passive
//! checkpoints (SQLite's documentation, "Write-Ahead Logging", Checkpointing), which hold up nobody who reads or writes.
//!
//! A log begins anew once all of it is in its place and nobody reads it. Where somebody always writes, a little is left each time: then it is
//! the writer that sees to that little, when its log is long.

use super::fault::unavailable;
use crate::StorageError;
use rusqlite::Connection;
use std::{
    io,
    sync::mpsc::{Receiver, SyncSender, sync_channel},
    thread,
};

#[derive(Debug)]
pub(super) struct Checkpointer {
    /// Taken when the checkpointer is dropped, which ends the thread.
    asks: Option<SyncSender<()>>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Checkpointer {
    /// With a connection of its own, on which nothing else is done.
    pub(super) fn start(db: Connection) -> Result<Self, StorageError> {
        let (asks, asked) = sync_channel(1);
        let thread = thread::Builder::new()
            .name("checkpointer".into())
            .spawn(move || run(&db, &asked))
            .map_err(|why: io::Error| unavailable(format!("start its checkpointer: {why}")))?;
        Ok(Self { asks: Some(asks), thread: Some(thread) })
    }

    /// Has it bring to its place what was committed by now.
    pub(super) fn ask(&self) {
        // One that was asked for and has not begun will do.
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

fn run(db: &Connection, asked: &Receiver<()>) {
    while let Ok(()) = asked.recv() {
        // What cannot be brought to its place, on a disk that is full, say, stays in the log, and is as durable there.
        if let Err(why) = db.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(())) {
            tracing::debug!(%why, "the write-ahead log stays as it is");
        }
    }
}
