//! Port for the files of a task's working directory.

use crate::failure::Failure;
use a2a_hub_core::grant::workspace::WorkspaceAccess;
use std::fs::File;

/// A granted directory, open.
#[derive(Debug)]
pub struct OpenWorkspace {
    /// The directory itself, even if its path leads to another one by now.
    pub directory: File,
    /// Granted access.
    pub access: WorkspaceAccess,
}

/// Opens the directory of a task.
#[async_trait::async_trait]
pub trait WorkspacePort: Send + Sync {
    /// Opens the directory that the client requested, if it is in a granted workspace; without a
    /// request, the first granted workspace.
    async fn open(&self, requested: Option<&str>) -> Result<OpenWorkspace, Failure>;

    /// Current access, which the operator may have revoked. Checked before each access.
    fn access(&self) -> Option<WorkspaceAccess>;
}
