//! Disk use of worktrees: the blocks of all files in their folders.

use crate::{WorktreeError, Worktrees, blocking};
use std::{
    fs,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

/// Most files and directories of one worktree that are counted: an agent can make any number.
const MAX_ENTRIES: usize = 4_000_000;

/// Size of a block as `stat` counts them, in bytes.
const BLOCK: u64 = 512;

impl Worktrees {
    /// Bytes that a worktree takes on the disk, with its copies of objects. What cannot be read
    /// counts as nothing.
    ///
    /// # Errors
    /// The task has no worktree.
    pub async fn disk_use(&self, task: &str) -> Result<u64, WorktreeError> {
        let folder = self.folder(task)?;
        blocking(move || directory_bytes(folder.path(), MAX_ENTRIES)).await
    }
}

/// Bytes of a directory with all that is in it, as far as `max_entries` entries. Links are not
/// followed. A file with several names counts for each of them, as its share of the names.
fn directory_bytes(directory: &Path, max_entries: usize) -> u64 {
    let mut pending: Vec<PathBuf> = vec![directory.to_owned()];
    let (mut bytes, mut counted) = (0_u64, 0);
    while let Some(directory) = pending.pop() {
        for entry in fs::read_dir(&directory).into_iter().flatten().flatten() {
            counted += 1;
            if counted > max_entries {
                return bytes;
            }
            // Of the entry itself, not of what a link names.
            let Ok(meta) = entry.metadata() else { continue };
            let names = if meta.is_dir() { 1 } else { meta.nlink().max(1) };
            bytes = bytes.saturating_add(meta.blocks().saturating_mul(BLOCK) / names);
            if meta.is_dir() {
                pending.push(entry.path());
            }
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    #[test]
    fn blocks_of_own_files_count() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        fs::create_dir_all(at("one/deep/deeper")).unwrap();
        let empty = directory_bytes(&at("one"), MAX_ENTRIES);
        fs::write(at("one/deep/deeper/file"), vec![1; 100_000]).unwrap();
        let one = directory_bytes(&at("one"), MAX_ENTRIES);
        assert!((100_000..130_000).contains(&(one - empty)), "{empty} {one}");
        // A hole takes no room, and neither do the files behind a link.
        fs::write(at("large"), vec![1; 1 << 20]).unwrap();
        symlink(at("large"), at("one/link")).unwrap();
        symlink(place.path(), at("one/deep/link")).unwrap();
        fs::File::create(at("one/hole")).unwrap().set_len(1 << 40).unwrap();
        assert!(directory_bytes(&at("one"), MAX_ENTRIES) < one + 30_000);
        fs::hard_link(at("large"), at("one/large")).unwrap();
        let shared = directory_bytes(&at("one"), MAX_ENTRIES) - one;
        assert!((500_000..600_000).contains(&shared), "{shared}");
    }

    #[test]
    fn endless_and_unreadable_trees_are_bounded() {
        let place = tempfile::tempdir().unwrap();
        for number in 0..50 {
            fs::write(place.path().join(number.to_string()), vec![1; 5_000]).unwrap();
        }
        assert!(directory_bytes(place.path(), 10) < directory_bytes(place.path(), MAX_ENTRIES) / 4);
        let closed = place.path().join("closed");
        fs::create_dir(&closed).unwrap();
        fs::set_permissions(&closed, fs::Permissions::from_mode(0o0)).unwrap();
        assert!(directory_bytes(place.path(), MAX_ENTRIES) > 0);
        assert_eq!(directory_bytes(&place.path().join("missing"), MAX_ENTRIES), 0);
        fs::set_permissions(&closed, fs::Permissions::from_mode(0o700)).unwrap();
    }
}
