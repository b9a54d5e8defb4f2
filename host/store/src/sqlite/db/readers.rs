//! Pool of read connections, used on blocking threads.

use super::{error::unavailable, failure::SqliteFailure, per_runtime::Lanes, schema};
use crate::StorageError;
use parking_lot::Mutex;
use rusqlite::Connection;
use std::{path::PathBuf, sync::Arc};
use tokio::{sync::Semaphore, task::spawn_blocking};

/// Limit of concurrent reads; further ones wait. Each connection may hold 2 MB of cache.
const CONNECTIONS: usize = 4;

/// Limit of concurrent reads from other runtimes, on which agents run at low priority.
const CONNECTIONS_OF_OTHERS: usize = 2;

#[derive(Debug)]
pub(in crate::sqlite) struct Readers {
    file: PathBuf,
    /// Connections are opened on first use.
    idle: Mutex<Vec<Connection>>,
    turns: Lanes<Arc<Semaphore>>,
}

impl Readers {
    pub(in crate::sqlite) fn new(file: PathBuf) -> Self {
        let of = |connections| Arc::new(Semaphore::new(connections));
        let turns = Lanes::new(of(CONNECTIONS), of(CONNECTIONS_OF_OTHERS));
        Self { file, idle: Mutex::default(), turns }
    }

    /// Runs a query. It sees everything that was durable before.
    pub(in crate::sqlite) async fn read<T: Send + 'static>(
        self: &Arc<Self>,
        question: impl FnOnce(&Connection) -> Result<T, SqliteFailure> + Send + 'static,
    ) -> Result<T, StorageError> {
        let turn = Arc::clone(self.turns.of_caller()).acquire_owned().await.map_err(unavailable)?;
        let readers = Arc::clone(self);
        let read = move || {
            let _turn = turn;
            let idle = || readers.idle.lock();
            let known = idle().pop();
            let db = known.map_or_else(|| schema::open_to_read(&readers.file), Ok)?;
            let answer = question(&db);
            idle().push(db);
            answer
        };
        // A bug of the hub; the panic itself is in the log.
        let broke =
            |_| unavailable("a question broke while it was answered; the hub's log says where");
        Ok(spawn_blocking(read).await.map_err(broke)??)
    }
}
