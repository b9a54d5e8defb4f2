//! Preparation of new worktrees that a repository asks for, and the trust in it.

use serde::{Deserialize, Serialize};
use std::{path::Path, sync::Arc};

/// Wishes of a repository. Those that are there replace the operator's general rules.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RepositoryPreparation {
    /// Files of the user's checkout to copy.
    pub copy: Option<Vec<String>>,
    /// Programs to run before the agent begins, each with its arguments.
    pub setup: Option<Vec<Vec<String>>>,
    /// Number of TCP ports to reserve.
    pub ports: Option<u16>,
}

/// Decision about the text of such a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RepositoryConfigTrust {
    /// The operator trusts this text in this repository.
    Trusted(RepositoryPreparation),
    /// The operator does not trust it.
    Untrusted,
    /// It cannot be read, for this reason.
    Wrong(String),
}

/// Decides about the text of a file; the path is that of the repository's git directory.
pub type DecideConfigTrust = Arc<dyn Fn(&Path, &str) -> RepositoryConfigTrust + Send + Sync>;
