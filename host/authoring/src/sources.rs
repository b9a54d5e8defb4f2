//! The sources of a project, looked at again and again: which files there are, and whether they are as they were.

use crate::error::{AuthoringError, Doing as _};
use std::{
    collections::BTreeMap,
    fs, io,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

/// What builds leave, and what they are not made of. Whatever is hidden is neither.
const NOT_SOURCES: &[&str] = &["__pycache__", "build", "dist", "node_modules", "target"];

/// What tools write while they build: a change of it means nothing new.
const WRITTEN_BY_TOOLS: &[&str] = &["Cargo.lock", "package-lock.json"];

/// More files than that are no project of an agent.
const MAX_FILES: usize = 20_000;

/// Whether a project is to be built again. A change counts once the sources stood still between two looks: many files may be saved at
/// once.
#[derive(Debug)]
pub struct Watch {
    dir: PathBuf,
    /// What was built last, or is being built.
    built_of: Sources,
    /// What there was at the last look.
    seen: Sources,
}

impl Watch {
    /// A watch over the sources in this directory, which are about to be built as they are now.
    ///
    /// # Errors
    /// The system's; or if there are far too many files.
    pub fn new(dir: &Path) -> Result<Self, AuthoringError> {
        let built_of = look_at(dir)?;
        Ok(Self { dir: dir.to_owned(), seen: built_of.clone(), built_of })
    }

    /// Looks once. Returns a file that changed, relative to the directory, if a build of the sources as they are now is to begin: never while
    /// another one is under way.
    ///
    /// # Errors
    /// The system's; or if there are far too many files.
    pub fn look(&mut self, is_building: bool) -> Result<Option<PathBuf>, AuthoringError> {
        let now = look_at(&self.dir)?;
        let stands_still = now.changed_since(&self.seen).is_none();
        let changed = now.changed_since(&self.built_of).filter(|_| stands_still && !is_building);
        let changed = changed.map(|file| file.strip_prefix(&self.dir).unwrap_or(file).to_owned());
        if changed.is_some() {
            self.built_of = now.clone();
        }
        self.seen = now;
        Ok(changed)
    }
}

fn look_at(dir: &Path) -> Result<Sources, AuthoringError> {
    Sources::of(dir).doing(|| format!("look at the sources in {}", dir.display()))
}

/// The sources as they were at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Sources(BTreeMap<PathBuf, Stamp>);

/// What is another when a file was saved.
type Stamp = (u64, u64, i64, i64);

impl Sources {
    /// What is below this directory now. Links are looked at themselves, and not followed.
    ///
    /// # Errors
    /// The system's; or if there are far too many files.
    fn of(dir: &Path) -> io::Result<Self> {
        let mut found = BTreeMap::new();
        let mut pending = vec![dir.to_owned()];
        while let Some(dir) = pending.pop() {
            for entry in fs::read_dir(&dir)? {
                let entry = entry?;
                let name = entry.file_name();
                let name = name.to_string_lossy();
                let is_made = NOT_SOURCES.contains(&&*name) || WRITTEN_BY_TOOLS.contains(&&*name);
                if name.starts_with('.') || name.ends_with('~') || is_made {
                    continue;
                }
                // What went away meanwhile is not there.
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

    /// The first file that is not as it was; none if all are.
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
    fn a_saved_file_is_seen_and_what_a_build_leaves_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        fs::create_dir_all(root.join("src")).unwrap();
        fs::create_dir_all(root.join("target/release")).unwrap();
        fs::write(root.join("src/lib.rs"), "one").unwrap();
        symlink("/", root.join("everything")).unwrap();
        let before = Sources::of(root).unwrap();
        assert_eq!(before.0.len(), 2, "the link is one, and not followed");
        fs::write(root.join("target/release/x.wasm"), "").unwrap();
        fs::write(root.join("Cargo.lock"), "").unwrap();
        fs::write(root.join("src/.lib.rs.swp"), "").unwrap();
        assert_eq!(Sources::of(root).unwrap().changed_since(&before), None);
        fs::write(root.join("src/lib.rs"), "three").unwrap();
        let after = Sources::of(root).unwrap();
        assert_eq!(after.changed_since(&before), Some(root.join("src/lib.rs").as_path()));
        fs::remove_file(root.join("src/lib.rs")).unwrap();
        assert!(Sources::of(root).unwrap().changed_since(&after).is_some(), "gone is changed");
    }

    #[test]
    fn a_build_begins_once_the_sources_stand_still_and_none_is_under_way() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("lib.rs");
        fs::write(&file, "1").unwrap();
        let mut watch = Watch::new(dir.path()).unwrap();
        let mut look = |is_building| watch.look(is_building).unwrap();
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
