//! Watches the sources of a project by polling: the set of files, and their changes.

use crate::error::{AuthoringError, Doing as _};
use std::{
    collections::BTreeMap,
    fs, io,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

/// Names of folders that builds generate. Hidden files and folders are ignored as well.
const NOT_SOURCES: &[&str] = &["__pycache__", "build", "dist", "node_modules", "target"];

/// Files that tools write during a build: a change of them requires no new build.
const WRITTEN_BY_TOOLS: &[&str] = &["Cargo.lock", "package-lock.json"];

/// Maximum number of files: a project of an agent has fewer.
const MAX_FILES: usize = 20_000;

/// Decides when a project is built again. A change counts once two consecutive polls see the same
/// files, because several files may be saved at once.
#[derive(Debug)]
pub struct Watch {
    dir: PathBuf,
    /// Sources of the last or the running build.
    built_of: Sources,
    /// Sources at the last poll.
    previous: Sources,
}

impl Watch {
    /// Creates a watch over the sources in this directory, of which a build is about to start.
    ///
    /// # Errors
    /// I/O errors; or if the directory has too many files.
    pub fn new(dir: &Path) -> Result<Self, AuthoringError> {
        let built_of = read_sources(dir)?;
        Ok(Self { dir: dir.to_owned(), previous: built_of.clone(), built_of })
    }

    /// Polls once. Returns a changed file, relative to the directory, if a build of the present
    /// sources shall start. Returns `None` while another build runs.
    ///
    /// # Errors
    /// I/O errors; or if the directory has too many files.
    pub fn poll(&mut self, is_building: bool) -> Result<Option<PathBuf>, AuthoringError> {
        let now = read_sources(&self.dir)?;
        let is_stable = now.changed_since(&self.previous).is_none();
        let changed = now.changed_since(&self.built_of).filter(|_| is_stable && !is_building);
        let changed = changed.map(|file| file.strip_prefix(&self.dir).unwrap_or(file).to_owned());
        if changed.is_some() {
            self.built_of = now.clone();
        }
        self.previous = now;
        Ok(changed)
    }
}

fn read_sources(dir: &Path) -> Result<Sources, AuthoringError> {
    Sources::scan(dir).doing(|| format!("look at the sources in {}", dir.display()))
}

/// Snapshot of the sources.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Sources(BTreeMap<PathBuf, Stamp>);

/// File metadata that changes when a file is saved.
type Stamp = (u64, u64, i64, i64);

impl Sources {
    /// Collects the files below this directory. Links are not followed.
    ///
    /// # Errors
    /// I/O errors; or if the directory has too many files.
    fn scan(dir: &Path) -> io::Result<Self> {
        let mut found = BTreeMap::new();
        let mut pending = vec![dir.to_owned()];
        while let Some(dir) = pending.pop() {
            for entry in fs::read_dir(&dir)? {
                let entry = entry?;
                let name = entry.file_name();
                let name = name.to_string_lossy();
                let is_generated =
                    NOT_SOURCES.contains(&&*name) || WRITTEN_BY_TOOLS.contains(&&*name);
                if name.starts_with('.') || name.ends_with('~') || is_generated {
                    continue;
                }
                // Files that were removed in the meantime are skipped.
                let Ok(meta) = fs::symlink_metadata(entry.path()) else { continue };
                if meta.is_dir() {
                    pending.push(entry.path());
                    continue;
                }
                let stamp = (meta.ino(), meta.len(), meta.mtime(), meta.mtime_nsec());
                found.insert(entry.path(), stamp);
                if found.len() > MAX_FILES {
                    return Err(io::Error::other(format!(
                        "there are more than {MAX_FILES} files in it; is this the folder of one project?"
                    )));
                }
            }
        }
        Ok(Self(found))
    }

    /// Returns the first file that differs between the snapshots.
    fn changed_since<'a>(&'a self, before: &'a Self) -> Option<&'a Path> {
        let differs = |path: &&PathBuf| self.0.get(*path) != before.0.get(*path);
        self.0.keys().chain(before.0.keys()).find(differs).map(PathBuf::as_path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn source_changes_exclude_build_output() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        fs::create_dir_all(root.join("src")).unwrap();
        fs::create_dir_all(root.join("target/release")).unwrap();
        fs::write(root.join("src/lib.rs"), "one").unwrap();
        symlink("/", root.join("everything")).unwrap();
        let before = Sources::scan(root).unwrap();
        assert_eq!(before.0.len(), 2, "the link is one, and not followed");
        fs::write(root.join("target/release/x.wasm"), "").unwrap();
        fs::write(root.join("Cargo.lock"), "").unwrap();
        fs::write(root.join("src/.lib.rs.swp"), "").unwrap();
        assert_eq!(Sources::scan(root).unwrap().changed_since(&before), None);
        fs::write(root.join("src/lib.rs"), "three").unwrap();
        let after = Sources::scan(root).unwrap();
        assert_eq!(after.changed_since(&before), Some(root.join("src/lib.rs").as_path()));
        fs::remove_file(root.join("src/lib.rs")).unwrap();
        assert!(Sources::scan(root).unwrap().changed_since(&after).is_some(), "gone is changed");
    }

    #[test]
    fn build_waits_for_unchanged_sources() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("lib.rs");
        fs::write(&file, "1").unwrap();
        let mut watch = Watch::new(dir.path()).unwrap();
        let mut look = |is_building| watch.poll(is_building).unwrap();
        assert_eq!(look(false), None);
        fs::write(&file, "22").unwrap();
        assert_eq!(look(false), None, "more may be saved at once");
        fs::write(&file, "333").unwrap();
        assert_eq!(look(false), None);
        assert_eq!(look(true), None, "the one before is still under way");
        assert_eq!(look(false), Some("lib.rs".into()));
        assert_eq!(look(false), None, "it is built");
    }
}
