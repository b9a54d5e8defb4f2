//! Where an agent finds the files of its task's working directory.

use crate::failure::Failure;
use a2a_hub_core::workspace_grant::WorkspaceAccess;
use std::fs::File;

/// A directory that was found granted, and is open.
#[derive(Debug)]
pub struct OpenWorkspace {
    /// The directory itself, whatever its path leads to by now.
    pub directory: File,
    /// What may be done there.
    pub access: WorkspaceAccess,
}

/// The hub's side: finds the directory of a task.
#[async_trait::async_trait]
pub trait WorkspacePort: Send + Sync {
    /// Opens the directory that the client asked for, if a granted workspace holds it; the first of these if none was asked for.
    async fn open(&self, asked: Option<&str>) -> Result<OpenWorkspace, Failure>;

    /// What may be done there now: an operator may have taken it back. Asked before everything that is done there.
    fn access(&self) -> Option<WorkspaceAccess>;
}
