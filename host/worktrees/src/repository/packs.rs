//! Packs of objects on their way to the user's repository, or to another worktree. Git checks each
//! object in a place that only the hub writes; then the files are copied as they are.

use crate::{
    Worktree, WorktreeError, Worktrees, blocking, create::checkout::create_new, git::HubRepository,
    reader::OpenDirectory, record::remove_all, repository::refs::make_directories,
};
use rustix::{
    fs::{AtFlags, renameat, unlinkat},
    io::Errno,
};
use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
};

/// Directory in the hub's repository for packs that leave it.
const OUT: &str = "out";

/// A pack with its index. Dropping it removes the files.
pub(crate) struct ObjectPack {
    directory: PathBuf,
    /// Hash in the names of the files.
    name: String,
}

impl Worktrees {
    /// Pack with the objects of `commit` that neither the user's repository nor the commits
    /// `without` have. Git refuses objects that
    /// could harm a checkout, such as a `.gitmodules` with a command.
    pub(crate) async fn pack(
        &self,
        worktree: &Worktree,
        commit: &str,
        without: &[&str],
    ) -> Result<ObjectPack, WorktreeError> {
        let folder = self.folder(&worktree.task)?;
        let repository = HubRepository::at(folder.git(), &worktree.stores);
        let directory = repository.path().join(OUT);
        let target = directory.clone();
        blocking(move || remove_all(&target).and_then(|()| fs::create_dir(&target)))
            .await?
            .map_err(WorktreeError::disk)?;
        let base = directory.join("pack").display().to_string();
        let step = repository.step(&["pack-objects", "--revs", "-q", &base]).writing_repository();
        let without: String = without.iter().map(|id| format!("^{id}\n")).collect();
        let step = step.with_input(format!("{commit}\n^{}\n{without}", worktree.pinned));
        let name = self.0.git.run(folder.path(), step).await?.text();
        let pack = ObjectPack { directory: directory.clone(), name };
        fs::remove_file(pack.file("idx")).map_err(WorktreeError::disk)?;
        let file = pack.file("pack").display().to_string();
        let step = repository.step(&["index-pack", "--strict", &file]).writing_repository();
        self.0.git.run(folder.path(), step).await.map_err(|why| {
            let task = &worktree.task;
            why.refused_if(
                |_| true,
                |stderr| {
                    format!(
                        "git refuses what the task made: {stderr}; have the agent mend it, or read the changes: `a2a-hub task diff {task}`"
                    )
                },
            )
        })?;
        Ok(pack)
    }
}

impl ObjectPack {
    fn file(&self, ending: &str) -> PathBuf {
        self.directory.join(format!("pack-{}.{ending}", self.name))
    }

    /// Copies the pack into a store of objects: `to` is its directory `pack`. Blocks on the disk.
    pub(crate) fn copy_into(&self, to: &Path) -> Result<(), WorktreeError> {
        let store = to.parent().unwrap_or(to);
        let failed = |why: io::Error| {
            let why = io::Error::new(
                why.kind(),
                format!("cannot add objects to `{}`: {why}", store.display()),
            );
            WorktreeError::disk(why)
        };
        let store = OpenDirectory::open(store).map_err(failed)?;
        let to = make_directories(&store, Path::new("pack")).map_err(failed)?;
        // Git looks for the index, so the pack must be there by then.
        for ending in ["pack", "idx"] {
            let name = format!("pack-{}.{ending}", self.name);
            if to.stat(&name).is_ok_and(|found| found.is_some()) {
                continue;
            }
            let temporary = format!("tmp_{ending}_{}", self.name);
            let copy = || -> io::Result<()> {
                match unlinkat(to.handle(), &temporary, AtFlags::empty()) {
                    Ok(()) | Err(Errno::NOENT) => {}
                    Err(why) => return Err(why.into()),
                }
                let mut target = create_new(&to, Path::new(&temporary), 0o444)?;
                io::copy(&mut File::open(self.file(ending))?, &mut target)?;
                target.sync_data()?;
                renameat(to.handle(), &temporary, to.handle(), &name)?;
                Ok(())
            };
            copy().map_err(|why| {
                let _ = unlinkat(to.handle(), &temporary, AtFlags::empty());
                failed(why)
            })?;
        }
        Ok(())
    }
}

impl Drop for ObjectPack {
    fn drop(&mut self) {
        let _ = remove_all(&self.directory);
    }
}
