//! Rules for new worktrees, as the operator sets them: files to copy, programs that set a worktree
//! up, and ports.

use crate::{RepositoryPreparation, WorktreeRetention};
use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    time::Duration,
};

/// Finds a program by its name on the hub's search path.
pub type FindProgram = fn(&str) -> Option<PathBuf>;

/// Rules for new worktrees of all repositories.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorktreeRules {
    /// Preparation of a worktree whose repository has no separate one.
    pub general: Preparation,
    /// Preparations by the path of a checkout or of a bare repository.
    pub by_repository: BTreeMap<PathBuf, Preparation>,
    /// Limits of worktrees at rest.
    pub retention: WorktreeRetention,
}

/// Preparation of a new worktree. Only the operator decides about it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Preparation {
    /// Files of the user's checkout to copy, as paths from its top directory.
    pub copy: Vec<String>,
    /// Programs to run before the agent begins, each with its arguments.
    pub setup: Vec<Vec<String>>,
    /// True if the programs may reach the web.
    pub has_network: bool,
    /// Time limit of all programs together.
    pub time_limit: Duration,
    /// Files and directories that the programs may read beside their installation and the worktree.
    pub read: Vec<PathBuf>,
    /// Variables of the programs.
    pub env: BTreeMap<String, String>,
    /// Number of TCP ports to reserve.
    pub ports: u16,
}

impl WorktreeRules {
    /// Preparation for a repository. A path in the rules stands for all its checkouts, also for
    /// linked ones. Blocks on the disk.
    pub(crate) fn for_repository(
        &self,
        checkout: Option<&Path>,
        repository: &Path,
    ) -> &Preparation {
        let is_it = |path: &Path| {
            path.canonicalize().is_ok_and(|path| {
                checkout == Some(&path) || path == repository || path.join(".git") == repository
            })
        };
        let matching = self.by_repository.iter().find(|(path, _)| is_it(path));
        matching.map_or(&self.general, |(_, preparation)| preparation)
    }
}

impl Preparation {
    /// The preparation with the wishes of the repository.
    #[must_use]
    pub(crate) fn with(&self, requested: &RepositoryPreparation) -> Self {
        let general = self.clone();
        let RepositoryPreparation { copy, setup, ports } = requested.clone();
        Self {
            copy: copy.unwrap_or(general.copy),
            setup: setup.unwrap_or(general.setup),
            ports: ports.unwrap_or(general.ports),
            ..general
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn path_stands_for_all_checkouts() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().canonicalize().unwrap();
        let at = |name: &str| root.join(name);
        for directory in ["one/.git", "linked", "bare.git", "other/.git"] {
            fs::create_dir_all(at(directory)).unwrap();
        }
        std::os::unix::fs::symlink(at("one"), at("link")).unwrap();
        let with = |ports| Preparation { ports, ..Preparation::default() };
        let rules = WorktreeRules {
            general: with(1),
            by_repository: [
                (at("link"), with(2)),
                (at("bare.git"), with(3)),
                (at("gone"), with(4)),
            ]
            .into(),
            ..WorktreeRules::default()
        };
        let ports = |checkout: Option<&str>, repository: &str| {
            rules.for_repository(checkout.map(at).as_deref(), &at(repository)).ports
        };
        assert_eq!(ports(Some("one"), "one/.git"), 2);
        assert_eq!(ports(Some("linked"), "one/.git"), 2);
        assert_eq!(ports(None, "bare.git"), 3);
        assert_eq!(ports(Some("other"), "other/.git"), 1);
    }
}
