//! Walk over a work tree: which files it has, without those that git ignores, and which of its
//! parts cannot be taken.
//!
//! An agent made the files. So links are not followed, nothing waits, and time, depth and number
//! are limited. A repository inside the tree is a directory like any other one, without its `.git`.

use crate::{
    WorktreeError,
    listing::{GitIndex, LINK, ListedFile, Listing, SUBMODULE, mode_of},
    reader::{MAX_PATH, OpenDirectory, ReadError, as_path},
    snapshot::ignore::{IgnoreRules, RULES_LIMIT},
};
use rustix::fs::{FileType, Stat};
use serde::{Deserialize, Serialize};
use std::{collections::BTreeSet, time::Duration};
use tokio::time::Instant;

/// Most files and directories of a worktree that git does not ignore.
const MAX_ENTRIES: usize = 1_000_000;

/// Longest time of a walk: an agent chooses names, rules and number.
const TIME_LIMIT: Duration = Duration::from_secs(120);

/// Most parts that are named as left out.
pub(crate) const MAX_OMISSIONS: usize = 100;

/// Longest shown path, in characters.
const SHOWN: usize = 200;

/// A part of a worktree that is not in its result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Omission {
    /// Path or branch, without characters that mislead a reader, cut to 200 characters.
    pub name: String,
    /// Reason, and the way out if one exists. It finishes "`NAME` …".
    pub reason: String,
}

impl Omission {
    pub(crate) fn new(name: &[u8], reason: impl Into<String>) -> Self {
        Self { name: plain_text(name), reason: reason.into() }
    }
}

/// A file of the tree.
#[derive(Clone, Debug)]
pub(crate) struct PresentFile {
    pub(crate) mode: u32,
    pub(crate) stat: Stat,
}

/// Result of a walk.
#[derive(Default)]
pub(crate) struct TreeWalk {
    /// Files that the index does not know with this content, by path.
    pub(crate) changed: Vec<(Vec<u8>, PresentFile)>,
    /// Paths of the index with the content that it says.
    pub(crate) unchanged: BTreeSet<Vec<u8>>,
    pub(crate) omissions: Vec<Omission>,
    /// True if git ignores a file or a directory of the tree.
    pub(crate) has_ignored: bool,
    entries: usize,
}

/// Rules of a walk.
pub(crate) struct WalkRules<'w> {
    /// Files that count although git would ignore them, because it tracks them.
    pub(crate) tracked: &'w Listing,
    /// Metadata of files whose content is known.
    pub(crate) index: &'w GitIndex,
    /// Rules of the user and of the repository, weakest first.
    pub(crate) ignores: &'w [&'w [u8]],
}

impl WalkRules<'_> {
    /// Walks over a tree. Blocks on the disk.
    pub(crate) fn walk(&self, top: &OpenDirectory) -> Result<TreeWalk, WorktreeError> {
        let mut walk = TreeWalk::default();
        let mut ignores = IgnoreRules::default();
        for rules in self.ignores {
            ignores.add(b"", rules);
        }
        let end = Instant::now() + TIME_LIMIT;
        // Directories to visit, with whether git ignores them but for what it tracks there.
        let mut pending = vec![(Vec::new(), false)];
        while let Some((path, is_ignored)) = pending.pop() {
            if Instant::now() > end {
                let seconds = TIME_LIMIT.as_secs();
                return Err(WorktreeError::Refused(format!(
                    "reading the files of the worktree took longer than {seconds} seconds; have git ignore what is no work (`.gitignore`)"
                )));
            }
            let directory =
                if path.is_empty() { top.directory(".") } else { top.directory(as_path(&path)) };
            let directory = match directory {
                Ok(Some(directory)) => directory,
                // It went away meanwhile, or a link took its place.
                Ok(None) | Err(ReadError::Link) => continue,
                Err(why) => {
                    walk.leave_out(&path, format!("{why}"));
                    self.keep_unreadable(&path, &mut walk);
                    continue;
                }
            };
            self.read_directory(
                &directory,
                &path,
                is_ignored,
                &mut ignores,
                &mut walk,
                &mut pending,
            )?;
        }
        Ok(walk)
    }

    fn read_directory(
        &self,
        directory: &OpenDirectory,
        at: &[u8],
        is_ignored: bool,
        ignores: &mut IgnoreRules,
        walk: &mut TreeWalk,
        pending: &mut Vec<(Vec<u8>, bool)>,
    ) -> Result<(), WorktreeError> {
        let entries = match directory.entries(MAX_ENTRIES) {
            Ok(entries) => entries,
            Err(why) => {
                walk.leave_out(at, format!("cannot be listed: {why}"));
                self.keep_unreadable(at, walk);
                return Ok(());
            }
        };
        ignores.forget_outside(at);
        if !is_ignored {
            match directory.bytes(".gitignore", RULES_LIMIT) {
                Ok(Some(rules)) => ignores.add(at, &rules),
                Ok(None) | Err(ReadError::Link | ReadError::NotPlain) => {}
                Err(why) => {
                    walk.leave_out(
                        &child_path(at, b".gitignore"),
                        format!("has no effect: it {why}"),
                    );
                }
            }
        }
        for entry in entries {
            walk.entries += 1;
            if walk.entries > MAX_ENTRIES {
                return Err(WorktreeError::Refused(format!(
                    "the worktree has more than {MAX_ENTRIES} files; have git ignore what is no work (`.gitignore`)"
                )));
            }
            if entry.name.eq_ignore_ascii_case(b".git") {
                continue;
            }
            let path = child_path(at, &entry.name);
            let stat = match directory.stat(as_path(&entry.name)) {
                Ok(Some(stat)) => stat,
                Ok(None) => continue,
                Err(why) => {
                    walk.leave_out(&path, format!("{why}"));
                    self.keep_unreadable(&path, walk);
                    continue;
                }
            };
            let kind = FileType::from_raw_mode(stat.st_mode);
            let is_directory = kind == FileType::Directory;
            let is_counted = if is_directory {
                self.has_tracked_files(&path)
            } else {
                self.tracked.contains_key(&path)
            };
            let ignored = is_ignored || ignores.ignores(&path, is_directory);
            if ignored && !is_counted {
                walk.has_ignored = true;
                continue;
            }
            if let Some(why) = objection(&entry.name, &path, kind) {
                walk.leave_out(&path, why);
                continue;
            }
            match kind {
                FileType::Directory if self.is_submodule(&path) => {
                    self.add_submodule(directory, &entry.name, path, walk);
                }
                FileType::Directory => pending.push((path, ignored)),
                FileType::RegularFile | FileType::Symlink => self.add_file(path, stat, walk),
                // A FIFO, a socket or a device has no content.
                FileType::Fifo
                | FileType::Socket
                | FileType::CharacterDevice
                | FileType::BlockDevice
                | FileType::Unknown => {}
            }
        }
        Ok(())
    }

    fn add_file(&self, path: Vec<u8>, stat: Stat, walk: &mut TreeWalk) {
        if self.index.files.get(&path).is_some_and(|known| self.index.is_unchanged(known, &stat)) {
            walk.unchanged.insert(path);
            return;
        }
        let mode = mode_of(stat.st_mode);
        walk.changed.push((path, PresentFile { mode, stat }));
    }

    /// A submodule is one commit of another repository. Files in its directory are none of this
    /// repository.
    fn add_submodule(
        &self,
        directory: &OpenDirectory,
        name: &[u8],
        path: Vec<u8>,
        walk: &mut TreeWalk,
    ) {
        let inner = directory.directory(as_path(name)).ok().flatten();
        let first = inner.and_then(|inner| inner.entries(MAX_ENTRIES).ok()?.into_iter().next());
        if let Some(first) = first {
            walk.leave_out(
                &child_path(&path, &first.name),
                "and all else there lies in the directory of a submodule, which belongs to another repository; give that one a task \
                 of its own",
            );
        }
        walk.unchanged.insert(path);
    }

    /// Keeps files that cannot be read: the result does not remove them.
    fn keep_unreadable(&self, at: &[u8], walk: &mut TreeWalk) {
        let paths = self.index.files.keys().filter(|path| is_within(path, at));
        walk.unchanged.extend(paths.cloned());
    }

    fn is_submodule(&self, path: &[u8]) -> bool {
        self.tracked.get(path).is_some_and(|file| file.mode == SUBMODULE)
    }

    fn has_tracked_files(&self, path: &[u8]) -> bool {
        let first = child_path(path, b"");
        let next = self.tracked.range(first.clone()..).next();
        next.is_some_and(|(other, _)| other.starts_with(&first)) || self.tracked.contains_key(path)
    }
}

impl TreeWalk {
    pub(crate) fn leave_out(&mut self, name: &[u8], reason: impl Into<String>) {
        match self.omissions.len() {
            0..MAX_OMISSIONS => self.omissions.push(Omission::new(name, reason)),
            MAX_OMISSIONS => self.omissions.push(Omission {
                name: "…".to_owned(),
                reason: "stands for more of the kind".to_owned(),
            }),
            _ => {}
        }
    }
}

/// Reason why a name cannot be in a tree of git; none if it can.
fn objection(name: &[u8], path: &[u8], kind: FileType) -> Option<String> {
    let link = (kind == FileType::Symlink).then_some(gix_validate::path::component::Mode::Symlink);
    if let Err(why) = gix_validate::path::component(name.into(), link, NAMES) {
        return Some(format!("has a name that git refuses ({why}); have it renamed"));
    }
    (path.len() > MAX_PATH).then(|| "has a path that is too long".to_owned())
}

/// Checks of names, for all systems on which a repository may be cloned, as git has it by
/// default (`core.protectHFS`, `core.protectNTFS`).
const NAMES: gix_validate::path::component::Options = gix_validate::path::component::Options {
    protect_windows: false,
    protect_hfs: true,
    protect_ntfs: true,
};

/// Refuses paths that would lead out of a work tree, or into a git directory.
pub(crate) fn require_paths(listing: &Listing) -> Result<(), WorktreeError> {
    for (path, file) in listing {
        let link = (file.mode == LINK).then_some(gix_validate::path::component::Mode::Symlink);
        let is_wrong =
            |part: &[u8]| gix_validate::path::component(part.into(), link, NAMES).is_err();
        if path.len() > MAX_PATH || path.split(|byte| *byte == b'/').any(is_wrong) {
            return Err(WorktreeError::Unsupported(format!(
                "the base has a path that git refuses: `{}`",
                plain_text(path)
            )));
        }
    }
    Ok(())
}

/// Path of an entry of a directory.
pub(crate) fn child_path(at: &[u8], name: &[u8]) -> Vec<u8> {
    if at.is_empty() { name.to_vec() } else { [at, b"/", name].concat() }
}

fn is_within(path: &[u8], at: &[u8]) -> bool {
    at.is_empty()
        || path.strip_prefix(at).is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
}

/// Paths and names for people and models: an agent chose them, so nothing in them ends a line or a
/// quotation, or is shown in another order (CWE-150).
pub(crate) fn plain_text(name: &[u8]) -> String {
    let text = String::from_utf8_lossy(name);
    let safe = |c: char| match c {
        '`' => '\'',
        '\u{200b}'..='\u{200f}'
        | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}'
        | '\u{feff}'
        | '\u{e0000}'..='\u{e007f}' => char::REPLACEMENT_CHARACTER,
        c if c.is_control() => char::REPLACEMENT_CHARACTER,
        c => c,
    };
    let mut cut: String = text.chars().take(SHOWN).map(safe).collect();
    if text.chars().nth(SHOWN).is_some() {
        cut.push('…');
    }
    cut
}

/// Listing of the files that an index has.
pub(crate) fn listing_of(index: &GitIndex) -> Listing {
    index.files.iter().map(|(path, (file, _))| (path.clone(), file.clone())).collect()
}

/// A file of a listing.
pub(crate) fn listed(mode: u32, id: &str) -> ListedFile {
    ListedFile { mode, id: id.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::listing::{FILE, FileStat};
    use std::path::Path;
    use std::{fs, os::unix::fs::symlink};

    fn walk(root: &Path, tracked: &[(&str, u32)]) -> (Vec<String>, TreeWalk) {
        let listing: Listing = tracked
            .iter()
            .map(|(path, mode)| (path.as_bytes().to_vec(), listed(*mode, &"1".repeat(40))))
            .collect();
        let files =
            listing.iter().map(|(path, it)| (path.clone(), (it.clone(), FileStat::default())));
        let index = GitIndex::new(files.collect());
        let rules = WalkRules { tracked: &listing, index: &index, ignores: &[b"*.user\n"] };
        let found = rules.walk(&OpenDirectory::open(root).unwrap()).unwrap();
        let mut paths: Vec<_> = found
            .changed
            .iter()
            .map(|(path, _)| String::from_utf8_lossy(path).into_owned())
            .collect();
        paths.sort();
        (paths, found)
    }

    #[test]
    fn walk_finds_git_files_and_nested_ones() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().canonicalize().unwrap();
        let write = |path: &str, text: &str| {
            fs::create_dir_all(root.join(path).parent().unwrap()).unwrap();
            fs::write(root.join(path), text).unwrap();
        };
        write(".gitignore", "target/\n*.log\n");
        write("target/out", "");
        write("target/kept", "");
        write("a.log", "");
        write("tracked.log", "");
        write("x.user", "");
        write("src/.gitignore", "!b.log\n");
        write("src/b.log", "");
        write("sub/.git/config", "");
        write("sub/file", "");
        write("module/inside", "");
        write("git~1", "");
        write(".GIT/x", "");
        symlink("/etc", root.join("link")).unwrap();
        let tracked =
            [("tracked.log", FILE), ("target/kept", FILE), ("module", SUBMODULE), ("gone", FILE)];
        let (paths, found) = walk(&root, &tracked);
        let wanted = [
            ".gitignore",
            "link",
            "src/.gitignore",
            "src/b.log",
            "sub/file",
            "target/kept",
            "tracked.log",
        ];
        assert_eq!(paths, wanted);
        let left: Vec<_> = found.omissions.iter().map(|it| it.name.as_str()).collect();
        assert_eq!(left, ["git~1", "module/inside"]);
        assert!(
            found.unchanged.contains(&b"module"[..]) && !found.unchanged.contains(&b"gone"[..])
        );
    }

    #[test]
    fn plain_text_is_bounded_and_misleads_nobody() {
        assert_eq!(plain_text("src/ä b".as_bytes()), "src/ä b");
        assert_eq!(plain_text(b"a\nb\x1b[2J`c`\xff"), "a\u{fffd}b\u{fffd}[2J'c'\u{fffd}");
        assert_eq!(plain_text("\u{202e}x\u{2066}".as_bytes()), "\u{fffd}x\u{fffd}");
        let long = plain_text("ä".repeat(300).as_bytes());
        assert_eq!((long.chars().count(), long.ends_with('…')), (SHOWN + 1, true));
    }

    #[test]
    fn base_with_dangerous_path_is_refused() {
        let of = |path: &str, mode| Listing::from([(path.as_bytes().to_vec(), listed(mode, ""))]);
        for path in [
            ".git/config",
            "a/../b",
            "a//b",
            "/a",
            "a/.GIT/x",
            "git~1/x",
            ".gi\u{200c}t/x",
            &"x/".repeat(3_000),
        ] {
            assert!(require_paths(&of(path, FILE)).is_err(), "{path}");
        }
        assert!(require_paths(&of(".gitmodules", LINK)).is_err());
        assert!(require_paths(&of("a/.gitignore", FILE)).is_ok());
    }
}
