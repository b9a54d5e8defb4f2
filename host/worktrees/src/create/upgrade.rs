//! Worktrees of an earlier version: their records lay in their folders, and git wrote there by the
//! settings of agents. So their repositories are looked up anew, and the hub's own is made anew
//! around its objects.

use crate::{
    RepositoryBounds, Worktree, WorktreeError, Worktrees,
    git::HubRepository,
    record::{Folder, ok_if_missing, remove_all},
    repository::Repository,
    repository::refs,
};
use std::{fs, path::PathBuf};

impl Worktrees {
    /// Writes the record of a worktree of an earlier version, if the folder is of one. Blocks on
    /// the disk.
    pub(crate) fn upgrade(&self, folder: &Folder) -> Result<(), WorktreeError> {
        let Some(old) = folder.read_old() else { return Ok(()) };
        let directory = old.checkout.as_ref().unwrap_or(&old.repository);
        let bounds = RepositoryBounds::default();
        let user = Repository::find(directory, &bounds)?;
        let ids = [&old.base, &old.pinned];
        if user.common != old.repository || ids.iter().any(|id| refs::id(id).is_none()) {
            return Err(WorktreeError::Unsupported(
                "its record does not fit its repository".to_owned(),
            ));
        }
        let git = folder.git();
        for name in ["index", "config"] {
            ok_if_missing(fs::remove_file(git.join(name))).map_err(WorktreeError::disk)?;
        }
        for name in ["hooks", "info", "objects/info", "worktrees", "modules"] {
            remove_all(&git.join(name)).map_err(WorktreeError::disk)?;
        }
        HubRepository::at(git, &user.objects).make(user.is_sha256, user.shallow.as_deref())?;
        let prefix = old.directory.strip_prefix(&old.tree).unwrap_or(&PathBuf::new()).to_owned();
        let worktree = Worktree {
            task: folder.task().to_owned(),
            tree: PathBuf::new(),
            directory: PathBuf::new(),
            prefix,
            base: old.base,
            from: old.from,
            branch: old.branch,
            checkout: user.checkout,
            git_dir: user.git_dir,
            repository: user.common,
            pinned: old.pinned,
            stores: user.objects,
            objects: Vec::new(),
            bounds,
            parent: old.parent,
            created_ms: old.created_ms,
            ports: old.ports,
            is_unprepared: old.is_unprepared,
            has_begun: true,
            owner: old.owner,
            own: old.own,
            copied: Vec::new(),
            note: None,
            applied: Vec::new(),
        };
        folder.write(&worktree).and_then(|()| folder.forget_old()).map_err(WorktreeError::disk)
    }
}
