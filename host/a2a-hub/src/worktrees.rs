//! The worktrees of a hub: their place, and the user's settings of git.

use a2a_hub_config as config;
use a2a_hub_process::Supervisor;
use a2a_hub_worktrees::{GitHome, Worktrees};
use std::path::{Path, PathBuf};

/// Worktrees of the tasks, in the data directory.
pub(crate) fn worktrees_in(dir: &Path, supervisor: &Supervisor) -> Worktrees {
    let real = dir.canonicalize().unwrap_or_else(|_| dir.to_owned());
    let names = ["HOME", "XDG_CONFIG_HOME"].map(str::to_owned);
    let mut home = GitHome::default();
    for (name, path) in config::environment(&names.into()) {
        let path = PathBuf::from(path);
        match name.as_str() {
            "HOME" => home.home = Some(path),
            // A relative one counts for nothing (XDG Base Directory Specification).
            _ if path.is_absolute() => home.config = Some(path),
            _ => {}
        }
    }
    let root = real.join(a2a_hub_worktrees::FOLDER);
    let worktrees = Worktrees::new(root, supervisor.clone(), config::find_program, home);
    worktrees.set_config_trust(a2a_hub_engine::worktree_runs::decide_by_trust(dir));
    if let Err(why) = worktrees.sweep() {
        tracing::warn!(%why, "cannot remove leftover worktree files of an earlier run");
    }
    worktrees
}
