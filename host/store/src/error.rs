//! Errors of the store.

use a2a_hub_core::{
    plugin::installation::InstallationId, scheduling::resources::ShareReached,
    task::state::IllegalEvent,
};
use a2a_hub_protocol::id::TaskId;
use std::path::PathBuf;

/// Error of a backup.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// The store to copy does not exist.
    #[error("find {}: there is no store yet; `a2a-hub start` makes one", .0.display())]
    Absent(PathBuf),
    /// The store is in memory and cannot be copied to a file.
    #[error("copy the store: this hub keeps what it has in memory only")]
    InMemory,
    /// The file exists already, and is not overwritten.
    #[error("write {}: there is such a file; name another", .0.display())]
    Taken(PathBuf),
    /// The store cannot be read, or the copy cannot be written.
    #[error(transparent)]
    Store(#[from] StorageError),
}

/// Error of the store. Nothing was written, except as [`StorageError::Unavailable`] says.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StorageError {
    /// The store cannot be reached or refuses to write; contains the reason and the fix. If a
    /// remote store's reply was lost, the write may have happened: read before retrying.
    #[error("use the store: {0}")]
    Unavailable(String),
    /// Another writer appended first.
    #[error(
        "append to task {task} after event {expected}: its log is at {found}; read it again and decide anew"
    )]
    Conflict {
        /// Task of the log.
        task: TaskId,
        /// Last event that the writer has seen.
        expected: u64,
        /// Last event in the log; 0 if the log does not exist.
        found: u64,
    },
    /// The task's state does not allow the event.
    #[error(transparent)]
    Illegal(#[from] IllegalEvent),
    /// A log must begin with the creation of its task.
    #[error("store the log of task {0}: its first event is not its creation")]
    Uncreated(TaskId),
    /// Stored data is corrupt.
    #[error("read {subject}: {why}; restore the data directory from a backup, or move it away")]
    Corrupt {
        /// Data that was read, such as a task by its id.
        subject: String,
        /// Reason.
        why: String,
    },
    /// The database was not closed in order, and its write-ahead log is missing.
    #[error(
        "read {file}: it was not closed in order, and its log is not beside it, so that what was stored last is missing; put {log} \
         there, or make copies with `a2a-hub backup`",
        file = .file.display(), log = .log.display()
    )]
    LogMissing {
        /// File of the database.
        file: PathBuf,
        /// Its write-ahead log.
        log: PathBuf,
    },
    /// The write-ahead log exists without its database.
    #[error(
        "open {file}: the database is missing or empty, and its log {log} holds changes to it; put the database back beside its log, \
         or restore a copy with `a2a-hub restore FILE`; to begin anew without both, `mv {log} {log}.cut`",
        file = .file.display(), log = .log.display()
    )]
    DatabaseMissing {
        /// File of the database.
        file: PathBuf,
        /// The write-ahead log.
        log: PathBuf,
    },
    /// The write-ahead log was cut short or damaged.
    #[error(
        "open {file}: its log {log} was cut short or damaged, so that what was stored last is missing{also}; put the whole log back, \
         {otherwise}",
        file = .file.display(), log = .log.display(),
        also = if *is_usable { "" } else { ", and the database holds a part of it, so that the two do not fit" },
        otherwise = if *is_usable {
            "or go on without that: `a2a-hub start` keeps the log and says so".to_owned()
        } else {
            let log = log.display();
            format!("restore a copy with `a2a-hub restore FILE`, or go on with the database alone: `mv {log} {log}.cut`")
        }
    )]
    LogCut {
        /// File of the database.
        file: PathBuf,
        /// The write-ahead log.
        log: PathBuf,
        /// True if the rest of the log fits the database.
        is_usable: bool,
    },
    /// An agent's memory would exceed its granted size.
    #[error(
        "remember more for {owner}: it would hold {would_hold} of the {max_bytes} bytes it is granted; \
         forget something, or grant more"
    )]
    Full {
        /// Installation that owns the memory.
        owner: InstallationId,
        /// Size of its keys and values after the write, in bytes.
        would_hold: u64,
        /// Granted size.
        max_bytes: u64,
    },
    /// An agent's items would exceed their granted number.
    #[error(
        "remember more for {owner}: it would hold {would_hold} of the {max_items} items it is granted; forget some, or grant more"
    )]
    FullOfItems {
        /// Installation that owns the memory.
        owner: InstallationId,
        /// Number of items after the write.
        would_hold: u64,
        /// Granted number.
        max_items: u64,
    },
    /// A tenant would have too many topics or cursors, or one holder in it would.
    #[error(transparent)]
    Share(#[from] ShareReached),
    /// The store was written by a newer hub.
    #[error(
        "open {path}: its format is number {found}, and this hub knows none above {known}; run the newer hub", path = .path.display()
    )]
    Newer {
        /// File of the database.
        path: PathBuf,
        /// Format number of the file.
        found: u32,
        /// Newest format number that this hub knows.
        known: u32,
    },
    /// Another hub uses the data directory.
    #[error(
        "lock {path}: another hub{who} uses this data directory; stop it, or choose another directory",
        path = .path.display(), who = pid.map(|pid| format!(" (process {pid})")).unwrap_or_default()
    )]
    Locked {
        /// File that the other hub has locked.
        path: PathBuf,
        /// Process id of the other hub, if it is known.
        pid: Option<u32>,
    },
}
