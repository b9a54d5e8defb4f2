//! Files that match the patterns of a trigger, and their changes between two polls.

use crate::{
    glob::Globs,
    read_bounded::{BoundedWalk, WalkError, directory},
    trigger_event::{FileChange, FileEvent, TriggerEvent},
};
use std::{collections::BTreeMap, io, path::Path};

/// Maximum number of entries that a poll reads. Directories that no pattern needs are not read.
const MAX_ENTRIES: usize = 200_000;

/// Maximum number of files that match.
const MAX_FILES: usize = 20_000;

/// Error of a poll.
#[derive(Debug, thiserror::Error)]
pub enum FilesError {
    /// The directory cannot be read.
    #[error("`{directory}` cannot be read: {why}")]
    Io {
        /// Directory of the trigger.
        directory: String,
        /// Error of the system.
        why: io::Error,
    },
    /// The patterns need too many entries.
    #[error(
        "the patterns need more than {MAX_ENTRIES} entries of `{0}` to be read; leave directories out, such as with \"!target/**\""
    )]
    TooManyEntries(String),
    /// Too many files match.
    #[error("more than {MAX_FILES} files of `{0}` match; write narrower patterns")]
    TooManyFiles(String),
}

/// Metadata that changes with a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FileIdentity {
    inode: u64,
    bytes: i64,
    modified: (i64, i64),
    /// Time of the last change of content or metadata, which no program can set: `cp -p` and
    /// `rsync -t` keep the other one.
    changed: (i64, i64),
}

/// Files that match, as one poll found them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WatchedFiles(BTreeMap<String, FileIdentity>);

impl WatchedFiles {
    /// Reads the files below `root` that match. `.git` is left out.
    pub fn read(root: &Path, globs: &Globs) -> Result<Self, FilesError> {
        let shown = || root.display().to_string();
        let mut found = BTreeMap::new();
        let enters =
            |path: &str| path.rsplit('/').next() != Some(".git") && globs.may_match_in(path);
        let root_fd = directory(root).map_err(|why| FilesError::Io { directory: shown(), why })?;
        let mut is_over = false;
        let walked =
            BoundedWalk::new(MAX_ENTRIES, &enters).run(root_fd, &mut |path, _, _, stat| {
                if globs.matches(&path) {
                    if found.len() == MAX_FILES {
                        is_over = true;
                        return Err(WalkError::TooMany(MAX_FILES));
                    }
                    let modified = (stat.st_mtime, i64::try_from(stat.st_mtime_nsec).unwrap_or(0));
                    let changed = (stat.st_ctime, i64::try_from(stat.st_ctime_nsec).unwrap_or(0));
                    let (inode, bytes) = (stat.st_ino, stat.st_size);
                    found.insert(path, FileIdentity { inode, bytes, modified, changed });
                }
                Ok(())
            });
        match walked {
            Ok(()) => Ok(Self(found)),
            Err(WalkError::TooMany(_)) if is_over => Err(FilesError::TooManyFiles(shown())),
            Err(WalkError::TooMany(_)) => Err(FilesError::TooManyEntries(shown())),
            Err(WalkError::Io(why)) => Err(FilesError::Io { directory: shown(), why }),
        }
    }

    /// Changes that lead from this poll to a later one.
    pub fn changes_to(&self, later: &Self) -> Vec<TriggerEvent> {
        let of_path = |path: &String| match (self.0.get(path), later.0.get(path)) {
            (None, Some(_)) => Some(FileChange::Created),
            (Some(_), None) => Some(FileChange::Removed),
            (Some(before), Some(after)) if before != after => Some(FileChange::Changed),
            (Some(_), Some(_)) | (None, None) => None,
        };
        let removed = self.0.keys().filter(|path| !later.0.contains_key(*path));
        let paths = later.0.keys().chain(removed);
        let changed = paths.filter_map(|path| {
            Some(TriggerEvent::File(FileEvent { path: path.clone(), change: of_path(path)? }))
        });
        changed.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{fs, os::unix::fs::symlink};

    fn told(changes: &[TriggerEvent]) -> Vec<String> {
        let word = |change: &TriggerEvent| match change {
            TriggerEvent::File(FileEvent { path, change }) => format!("{path} {change:?}"),
            TriggerEvent::Commit(_)
            | TriggerEvent::Task(_)
            | TriggerEvent::Webhook(_)
            | TriggerEvent::Topic(_) => unreachable!(),
        };
        changes.iter().map(word).collect()
    }

    #[test]
    fn changes_between_looks_are_found() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        for path in ["src/a.rs", "src/deep/b.rs", "src/c.txt", ".git/x.rs", "target/t.rs"] {
            fs::create_dir_all(root.join(path).parent().unwrap()).unwrap();
            fs::write(root.join(path), "1").unwrap();
        }
        let globs = Globs::parse(&["**/*.rs", "!target/**"]).unwrap();
        let look = || WatchedFiles::read(root, &globs).unwrap();
        let before = look();
        assert_eq!(before.0.keys().collect::<Vec<_>>(), ["src/a.rs", "src/deep/b.rs"]);
        assert_eq!(before.changes_to(&look()), []);
        fs::write(root.join("src/a.rs"), "22").unwrap();
        fs::remove_file(root.join("src/deep/b.rs")).unwrap();
        fs::write(root.join("src/new.rs"), "").unwrap();
        fs::write(root.join("src/c.txt"), "not watched").unwrap();
        fs::write(root.join("target/t.rs"), "left out").unwrap();
        let changes = told(&before.changes_to(&look()));
        assert_eq!(changes, ["src/a.rs Changed", "src/new.rs Created", "src/deep/b.rs Removed"]);
    }

    /// An edit in place that keeps length and time, as `rsync -t --inplace` makes it.
    #[test]
    #[expect(clippy::disallowed_methods, reason = "the clock of the file system has to tick")]
    fn edit_with_old_time_counts_as_change() {
        let dir = tempfile::tempdir().unwrap();
        let globs = Globs::parse(&["*.rs"]).unwrap();
        let file = dir.path().join("a.rs");
        fs::write(&file, "1").unwrap();
        let time = fs::metadata(&file).unwrap().modified().unwrap();
        let before = WatchedFiles::read(dir.path(), &globs).unwrap();
        // The clock of the file system ticks in milliseconds.
        std::thread::sleep(std::time::Duration::from_millis(30));
        fs::write(&file, "2").unwrap();
        fs::File::options().write(true).open(&file).unwrap().set_modified(time).unwrap();
        let after = WatchedFiles::read(dir.path(), &globs).unwrap();
        assert_eq!(told(&before.changes_to(&after)), ["a.rs Changed"]);
    }

    /// A save as editors do it: the same length and time, in another file.
    #[test]
    fn renamed_file_counts_as_change() {
        let dir = tempfile::tempdir().unwrap();
        let globs = Globs::parse(&["*.rs"]).unwrap();
        let (file, draft) = (dir.path().join("a.rs"), dir.path().join("draft"));
        fs::write(&file, "1").unwrap();
        let before = WatchedFiles::read(dir.path(), &globs).unwrap();
        fs::write(&draft, "2").unwrap();
        fs::rename(&draft, &file).unwrap();
        let after = WatchedFiles::read(dir.path(), &globs).unwrap();
        assert_eq!(told(&before.changes_to(&after)), ["a.rs Changed"]);
    }

    #[test]
    fn links_and_pipes_are_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let outside = tempfile::tempdir().unwrap();
        fs::write(outside.path().join("secret.rs"), "1").unwrap();
        symlink(outside.path(), dir.path().join("out")).unwrap();
        symlink(outside.path().join("secret.rs"), dir.path().join("link.rs")).unwrap();
        symlink(".", dir.path().join("circle")).unwrap();
        let fifo = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        rustix::fs::mknodat(
            rustix::fs::CWD,
            dir.path().join("pipe.rs"),
            rustix::fs::FileType::Fifo,
            fifo,
            0,
        )
        .unwrap();
        let globs = Globs::parse(&["**"]).unwrap();
        assert_eq!(WatchedFiles::read(dir.path(), &globs).unwrap(), WatchedFiles::default());
        let missing = WatchedFiles::read(&dir.path().join("none"), &globs).unwrap_err();
        assert!(missing.to_string().contains("none` cannot be read"), "{missing}");
    }
}
