//! Bounds of the repositories that worktrees are made of.

use std::path::{Path, PathBuf};

/// Directories in which a repository and what it refers to may lie.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct RepositoryBounds {
    /// Workspaces of the agent, with links resolved; none for any directory.
    pub workspaces: Option<Vec<PathBuf>>,
    /// Paths that no agent sees, even inside a workspace.
    pub hidden: Vec<PathBuf>,
}

impl RepositoryBounds {
    /// Reason why a path may not be used; none if it may.
    pub(crate) fn objection(&self, path: &Path) -> Option<&'static str> {
        if self.hidden.iter().any(|hidden| path.starts_with(hidden) || hidden.starts_with(path)) {
            return Some("is hidden from agents");
        }
        let within = |all: &Vec<PathBuf>| all.iter().any(|it| path.starts_with(it));
        match &self.workspaces {
            Some(all) if !within(all) => Some("lies outside the agent's workspaces"),
            _ => None,
        }
    }
}
