//! Storage of a hub: in a data directory, or in memory.

use a2a_hub_config::ownership;
use a2a_hub_store::{Storage, memory::MemoryStorage, sqlite::SqliteStorage};
use anyhow::Context as _;
use std::{path::PathBuf, sync::Arc};
use tempfile::TempDir;

/// Storage location of a hub.
pub(crate) enum HubLocation {
    /// A directory, which a later hub may open again.
    Directory(PathBuf),
    /// Memory, for the lifetime of the hub.
    Memory,
}

/// Opened storage of a hub.
pub(crate) struct OpenedStorage {
    /// Data directory.
    pub(crate) dir: PathBuf,
    /// Temporary directory of a hub in memory.
    pub(crate) temporary: Option<TempDir>,
    /// Storage.
    pub(crate) storage: Arc<dyn Storage>,
    /// Losses that the store found, each as a sentence.
    pub(crate) losses: Vec<String>,
}

impl HubLocation {
    /// Opens the storage, after a check that the directory is this user's.
    pub(crate) fn open(self) -> anyhow::Result<OpenedStorage> {
        match self {
            Self::Directory(dir) => {
                ownership::check(&dir)?;
                let storage = SqliteStorage::open(&dir).context("open the hub's store")?;
                let losses = storage.losses().iter().map(ToString::to_string).collect();
                Ok(OpenedStorage { dir, temporary: None, storage: Arc::new(storage), losses })
            }
            Self::Memory => {
                let temp_dir = tempfile::tempdir().context("make a directory for the hub")?;
                let dir = temp_dir.path().to_owned();
                ownership::check(&dir)?;
                let storage = Arc::new(MemoryStorage::default());
                Ok(OpenedStorage { dir, temporary: Some(temp_dir), storage, losses: Vec::new() })
            }
        }
    }
}
