//! Refs of the user's repository, read and changed without git: the files of `refs/`,
//! `packed-refs` and `HEAD` (gitrepository-layout(5)), with git's own locks.
//!
//! Git would obey the repository's settings and run its hooks. These files are names and ids only.

use crate::{
    WorktreeError,
    reader::{OpenDirectory, ReadError, line},
};
use rustix::{
    fs::{AtFlags, Mode, OFlags, ResolveFlags, mkdirat, openat2, renameat, unlinkat},
    io::Errno,
};
use std::{
    collections::BTreeMap,
    fs::File,
    io::{self, Seek as _, Write as _},
    path::{Path, PathBuf},
};

/// Begin of the names of refs that the hub sets in the user's repositories.
pub(crate) const RESULTS: &str = "refs/a2a-hub/";

/// Refs of a task in the user's repository: its base, and its result.
pub(crate) fn refs_of(task: &str) -> [String; 2] {
    ["base", "result"].map(|name| format!("{RESULTS}{task}/{name}"))
}

/// Largest file with one ref, in bytes.
const REF_LIMIT: u64 = 4 << 10;

/// Largest `packed-refs`, in bytes: some 500,000 refs.
const PACKED_LIMIT: u64 = 64 << 20;

/// Most files of refs that are read.
const MAX_REFS: usize = 100_000;

/// Longest chain of symbolic refs (git has the same limit).
const MAX_SYMBOLIC: usize = 5;

/// Refs of one checkout.
pub(crate) struct Refs {
    git_dir: OpenDirectory,
    common: OpenDirectory,
    shown: PathBuf,
}

/// Value that a ref must have before it is changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expected<'e> {
    Any,
    Absent,
    Id(&'e str),
}

/// Entry for the reflog.
pub(crate) struct LogEntry<'e> {
    /// Name and address, as in a commit.
    pub(crate) by: &'e str,
    /// Time in seconds since 1970.
    pub(crate) at: u64,
    pub(crate) message: &'e str,
}

/// Position of a `HEAD`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CheckoutHead {
    /// A branch, such as `refs/heads/main`, with its commit if it has one.
    Branch(String, Option<String>),
    /// A commit without a branch.
    Detached(String),
}

impl CheckoutHead {
    pub(crate) fn commit(&self) -> Option<&str> {
        match self {
            Self::Branch(_, commit) => commit.as_deref(),
            Self::Detached(commit) => Some(commit),
        }
    }
}

/// Name of the branch that a checkout is at; none for a commit without one.
pub(crate) fn branch(git_dir: &Path) -> Option<String> {
    let git_dir = OpenDirectory::open(git_dir).ok()?;
    let head = git_dir.bytes("HEAD", REF_LIMIT).ok()??;
    line(&head)?.trim().strip_prefix("ref: refs/heads/").map(str::to_owned)
}

/// True if a repository has a commit at `HEAD`, or on any branch.
pub(crate) fn has_commit(common: &Path) -> bool {
    let Ok(refs) = Refs::open(common, common) else { return false };
    refs.head().is_ok_and(|head| head.commit().is_some())
        || refs.all().is_ok_and(|all| all.keys().any(|name| name.starts_with("refs/heads/")))
}

impl Refs {
    pub(crate) fn open(git_dir: &Path, common: &Path) -> Result<Self, WorktreeError> {
        let open = |path: &Path| {
            OpenDirectory::open(path).map_err(|why| {
                WorktreeError::Unsupported(format!(
                    "the git directory `{}` cannot be opened: {why}",
                    path.display()
                ))
            })
        };
        Ok(Self { git_dir: open(git_dir)?, common: open(common)?, shown: common.to_owned() })
    }

    /// Reads `HEAD`.
    pub(crate) fn head(&self) -> Result<CheckoutHead, WorktreeError> {
        let bytes =
            self.git_dir.bytes("HEAD", REF_LIMIT).map_err(|why| self.unread("HEAD", &why))?;
        let text = bytes.as_deref().and_then(line).unwrap_or_default().trim().to_owned();
        match text.strip_prefix("ref: ") {
            Some(name) => {
                let name = name.trim();
                require_name(name)?;
                Ok(CheckoutHead::Branch(name.to_owned(), self.id(name)?))
            }
            None => id(&text).map(CheckoutHead::Detached).ok_or_else(|| {
                WorktreeError::Unsupported(format!(
                    "`HEAD` of `{}` names no commit",
                    self.shown.display()
                ))
            }),
        }
    }

    /// Id that a ref is at; none if it does not exist.
    pub(crate) fn id(&self, name: &str) -> Result<Option<String>, WorktreeError> {
        let mut name = name.to_owned();
        for _ in 0..MAX_SYMBOLIC {
            require_name(&name)?;
            match self.common.bytes(&name, REF_LIMIT) {
                Ok(Some(bytes)) => {
                    let text = line(&bytes).unwrap_or_default().trim();
                    if let Some(id) = id(text) {
                        return Ok(Some(id));
                    }
                    match text.strip_prefix("ref: ") {
                        Some(next) => name = next.trim().to_owned(),
                        None => return Ok(None),
                    }
                }
                // A directory of refs has the name of a ref.
                Ok(None) | Err(ReadError::NotPlain) => {
                    return Ok(self.packed()?.remove(name.as_str()));
                }
                Err(why) => return Err(self.unread(&name, &why)),
            }
        }
        Ok(None)
    }

    /// All refs with their ids, without symbolic ones.
    pub(crate) fn all(&self) -> Result<BTreeMap<String, String>, WorktreeError> {
        let mut found = self.packed()?;
        let mut pending = vec!["refs".to_owned()];
        let mut count = 0;
        while let Some(directory) = pending.pop() {
            let Ok(Some(inner)) = self.common.directory(&directory) else { continue };
            for entry in inner.entries(MAX_REFS).map_err(WorktreeError::disk)? {
                count += 1;
                if count > MAX_REFS {
                    let why = format!("`{}` has more than {MAX_REFS} refs", self.shown.display());
                    return Err(WorktreeError::Unsupported(why));
                }
                let Ok(name) = String::from_utf8(entry.name) else { continue };
                let path = format!("{directory}/{name}");
                if entry.kind == rustix::fs::FileType::Directory {
                    pending.push(path);
                } else if !name.ends_with(".lock")
                    && let Ok(Some(bytes)) = self.common.bytes(&path, REF_LIMIT)
                    && let Some(id) = line(&bytes).and_then(|text| id(text.trim()))
                {
                    found.insert(path, id);
                }
            }
        }
        Ok(found)
    }

    /// Changes a ref, or the branch that `HEAD` is at, if it has the expected value. The ref is
    /// as before after an error.
    pub(crate) fn set(
        &self,
        name: &str,
        new: &str,
        expected: Expected<'_>,
        log: Option<&LogEntry<'_>>,
    ) -> Result<(), WorktreeError> {
        require_name(name)?;
        self.require_no_clash(name)?;
        let lock = Lock::acquire(&self.common, name).map_err(|why| self.locked(name, &why))?;
        let now = self.id(name)?;
        let fits = match expected {
            Expected::Any => true,
            Expected::Absent => now.is_none(),
            Expected::Id(id) => now.as_deref() == Some(id),
        };
        if !fits {
            return Err(WorktreeError::Refused(match expected {
                Expected::Absent => format!(
                    "the repository has a branch `{}`; name another one",
                    name.strip_prefix("refs/heads/").unwrap_or(name)
                ),
                Expected::Any | Expected::Id(_) => {
                    format!("`{name}` was changed meanwhile; do it again")
                }
            }));
        }
        lock.replace(format!("{new}\n").as_bytes()).map_err(WorktreeError::disk)?;
        if let Some(entry) = log {
            self.log(&self.common, name, now.as_deref(), new, entry);
        }
        Ok(())
    }

    /// Moves a `HEAD` without a branch to a commit.
    pub(crate) fn set_detached(&self, new: &str, old: &str) -> Result<(), WorktreeError> {
        let lock = Lock::acquire(&self.git_dir, "HEAD").map_err(|why| self.locked("HEAD", &why))?;
        if self.head()? != CheckoutHead::Detached(old.to_owned()) {
            return Err(WorktreeError::Refused(
                "`HEAD` was changed meanwhile; do it again".to_owned(),
            ));
        }
        lock.replace(format!("{new}\n").as_bytes()).map_err(WorktreeError::disk)
    }

    /// Adds a line to the reflog of `HEAD`.
    pub(crate) fn log_head(&self, old: &str, new: &str, entry: &LogEntry<'_>) {
        self.log(&self.git_dir, "HEAD", Some(old), new, entry);
    }

    /// Removes refs. One that does not exist is none to remove.
    pub(crate) fn remove(&self, names: &[String]) -> Result<(), WorktreeError> {
        for name in names {
            require_name(name)?;
        }
        let packed = self.packed()?;
        if names.iter().any(|name| packed.contains_key(name)) {
            self.remove_packed(names)?;
        }
        for name in names {
            let path = Path::new(name);
            let Ok(Some(parent)) = self.common.directory(path.parent().unwrap_or(path)) else {
                continue;
            };
            let file = path.file_name().unwrap_or_default();
            match unlinkat(parent.handle(), file, AtFlags::empty()) {
                Ok(()) | Err(Errno::NOENT) => {}
                Err(why) => return Err(WorktreeError::disk(why.into())),
            }
        }
        // Their directory, if it is empty.
        for name in names {
            if let Some(parent) = Path::new(name).parent()
                && let (Some(over), Some(last)) = (parent.parent(), parent.file_name())
                && let Ok(Some(over)) = self.common.directory(over)
            {
                let _ = unlinkat(over.handle(), last, AtFlags::REMOVEDIR);
            }
        }
        Ok(())
    }

    fn remove_packed(&self, names: &[String]) -> Result<(), WorktreeError> {
        let lock = Lock::acquire(&self.common, "packed-refs");
        let lock = lock.map_err(|why| self.locked("packed-refs", &why))?;
        let bytes = self.common.bytes("packed-refs", PACKED_LIMIT);
        let bytes = bytes.map_err(|why| self.unread("packed-refs", &why))?.unwrap_or_default();
        let (mut remaining, mut is_removed) = (Vec::with_capacity(bytes.len()), false);
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            // A line with `^` has the target of the tag before it.
            if !line.starts_with(b"^") {
                let name = line.trim_ascii_end().splitn(2, |byte| *byte == b' ').nth(1);
                is_removed = name.is_some_and(|name| names.iter().any(|it| it.as_bytes() == name));
            }
            if !is_removed {
                remaining.extend_from_slice(line);
            }
        }
        lock.replace(&remaining).map_err(WorktreeError::disk)
    }

    fn packed(&self) -> Result<BTreeMap<String, String>, WorktreeError> {
        let bytes = self.common.bytes("packed-refs", PACKED_LIMIT);
        let bytes = bytes.map_err(|why| self.unread("packed-refs", &why))?.unwrap_or_default();
        let lines = bytes.split(|byte| *byte == b'\n').filter_map(|line| {
            let (value, name) = std::str::from_utf8(line).ok()?.split_once(' ')?;
            Some((name.trim_end().to_owned(), id(value)?))
        });
        Ok(lines.collect())
    }

    /// Refuses a ref above or below another one: both would need the same path.
    fn require_no_clash(&self, name: &str) -> Result<(), WorktreeError> {
        let packed = self.packed()?;
        let clash = |other: &str| {
            let branch = |name: &str| name.strip_prefix("refs/heads/").unwrap_or(name).to_owned();
            WorktreeError::Refused(format!(
                "the repository has a branch `{}`, so that none can be called `{}`; name another one",
                branch(other),
                branch(name)
            ))
        };
        for ancestor in Path::new(name).ancestors().skip(1) {
            let Some(ancestor) = ancestor.to_str().filter(|above| above.len() > "refs/heads".len())
            else {
                break;
            };
            let is_file = self.common.file(ancestor).is_ok_and(|file| file.is_some());
            if is_file || packed.contains_key(ancestor) {
                return Err(clash(ancestor));
            }
        }
        let prefix = format!("{name}/");
        if let Some(other) = packed.keys().find(|other| other.starts_with(&prefix)) {
            return Err(clash(other));
        }
        if let Ok(Some(_)) = self.common.directory(name) {
            let all = self.all()?;
            if let Some(other) = all.keys().find(|other| other.starts_with(&prefix)) {
                return Err(clash(other));
            }
            // Empty directories of refs that are gone.
            self.remove_empty(name);
        }
        Ok(())
    }

    fn remove_empty(&self, name: &str) {
        let mut directories = vec![PathBuf::from(name)];
        let mut at = 0;
        while at < directories.len() && directories.len() < MAX_REFS {
            let path = directories[at].clone();
            if let Ok(Some(inner)) = self.common.directory(&path) {
                let entries = inner.entries(MAX_REFS).unwrap_or_default().into_iter();
                directories.extend(
                    entries.filter_map(|it| Some(path.join(String::from_utf8(it.name).ok()?))),
                );
            }
            at += 1;
        }
        for path in directories.into_iter().rev() {
            if let (Some(parent), Some(last)) = (path.parent(), path.file_name())
                && let Ok(Some(parent)) = self.common.directory(parent)
            {
                let _ = unlinkat(parent.handle(), last, AtFlags::REMOVEDIR);
            }
        }
    }

    /// Adds a line to a reflog. It is a help for people; the change counts without it.
    fn log(
        &self,
        directory: &OpenDirectory,
        name: &str,
        old: Option<&str>,
        new: &str,
        entry: &LogEntry<'_>,
    ) {
        let zero = "0".repeat(new.len());
        let text = format!(
            "{} {new} {} {} +0000\t{}\n",
            old.unwrap_or(&zero),
            entry.by,
            entry.at,
            entry.message
        );
        let path = PathBuf::from("logs").join(name);
        let append = || -> io::Result<()> {
            let parent = make_directories(directory, path.parent().unwrap_or(&path))?;
            let flags = OFlags::WRONLY
                | OFlags::APPEND
                | OFlags::CREATE
                | OFlags::NONBLOCK
                | OFlags::CLOEXEC;
            let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
            let file = path.file_name().unwrap_or_default();
            let file = openat2(parent.handle(), file, flags, Mode::from_raw_mode(0o644), resolve)?;
            let mut file = File::from(file);
            if !file.metadata()?.is_file() {
                return Err(io::Error::other("it is no regular file"));
            }
            file.write_all(text.as_bytes())
        };
        if let Err(why) = append() {
            tracing::warn!(name, %why, "cannot write a reflog");
        }
    }

    fn unread(&self, name: &str, why: &ReadError) -> WorktreeError {
        WorktreeError::Unsupported(format!("`{}` {why}", self.shown.join(name).display()))
    }

    fn locked(&self, name: &str, why: &io::Error) -> WorktreeError {
        let path = self.shown.join(name);
        let path = path.display();
        if why.kind() == io::ErrorKind::AlreadyExists {
            return WorktreeError::Refused(format!(
                "another git is at work on `{path}`; wait for it, or remove `{path}.lock` if it was killed"
            ));
        }
        WorktreeError::Refused(format!("`{path}` cannot be changed: {why}"))
    }
}

/// A lock on a file of git: the file `NAME.lock` beside it. Dropping it removes the lock.
pub(crate) struct Lock {
    parent: OpenDirectory,
    name: String,
    file: File,
    is_locked: bool,
}

impl Lock {
    /// Takes the lock; `AlreadyExists` if somebody has it.
    pub(crate) fn acquire(directory: &OpenDirectory, path: &str) -> io::Result<Self> {
        let path = Path::new(path);
        let parent = make_directories(directory, path.parent().unwrap_or(Path::new("")))?;
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
        let lock = format!("{name}.lock");
        let file =
            openat2(parent.handle(), lock.as_str(), flags, Mode::from_raw_mode(0o644), resolve)?;
        Ok(Self { parent, name, file: File::from(file), is_locked: true })
    }

    /// Writes a mark into the lock, by which a later process knows whose it was.
    pub(crate) fn mark(&mut self, mark: &str) -> io::Result<()> {
        self.file.write_all(mark.as_bytes())
    }

    /// Replaces the locked file by a new content, and releases the lock.
    pub(crate) fn replace(mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.set_len(0)?;
        self.file.rewind()?;
        self.file.write_all(bytes)?;
        self.file.sync_data()?;
        renameat(
            self.parent.handle(),
            format!("{}.lock", self.name),
            self.parent.handle(),
            &self.name,
        )?;
        self.is_locked = false;
        Ok(())
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        if self.is_locked {
            let _ = unlinkat(self.parent.handle(), format!("{}.lock", self.name), AtFlags::empty());
        }
    }
}

/// Opens a directory beneath another one, and makes what is missing of its path.
pub(crate) fn make_directories(from: &OpenDirectory, path: &Path) -> io::Result<OpenDirectory> {
    let failed = |why: ReadError| io::Error::other(format!("a directory above it {why}"));
    let mut at = from.directory(".").map_err(failed)?.ok_or(io::ErrorKind::NotFound)?;
    for part in path.components() {
        let name = Path::new(part.as_os_str());
        match mkdirat(at.handle(), name, Mode::from_raw_mode(0o755)) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(why) => return Err(why.into()),
        }
        at = at.directory(name).map_err(failed)?.ok_or(io::ErrorKind::NotADirectory)?;
    }
    Ok(at)
}

/// An id as git writes it: SHA-1 or SHA-256 in hex.
pub(crate) fn id(text: &str) -> Option<String> {
    let is_hash = matches!(text.len(), 40 | 64)
        && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    is_hash.then(|| text.to_owned())
}

/// True for a name that a branch may have (git-check-ref-format(1)).
pub(crate) fn is_branch_name(name: &str) -> bool {
    !name.starts_with('-') && name != "HEAD" && require_name(&format!("refs/heads/{name}")).is_ok()
}

/// Refuses a name that is none of a ref, such as one that leads out.
fn require_name(name: &str) -> Result<(), WorktreeError> {
    let is_name = name.starts_with("refs/")
        && name.len() <= 1_024
        && gix_validate::reference::name(name.into()).is_ok();
    if is_name {
        return Ok(());
    }
    Err(WorktreeError::Refused(format!("`{}` is no name of a ref", name.escape_debug())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    const ONE: &str = "1111111111111111111111111111111111111111";
    const TWO: &str = "2222222222222222222222222222222222222222";

    struct Place {
        _removed: tempfile::TempDir,
        git: PathBuf,
    }

    impl Place {
        fn new() -> Self {
            let place = tempfile::tempdir().unwrap();
            let git = place.path().canonicalize().unwrap();
            fs::create_dir_all(git.join("refs/heads/fix")).unwrap();
            fs::write(git.join("HEAD"), "ref: refs/heads/main\n").unwrap();
            fs::write(git.join("refs/heads/main"), format!("{ONE}\n")).unwrap();
            fs::write(git.join("refs/heads/fix/a"), format!("{TWO}\n")).unwrap();
            let packed = format!(
                "# pack-refs with: peeled\n{TWO} refs/heads/main\n{TWO} refs/heads/old/b\n{ONE} refs/tags/v1\n^{TWO}\n"
            );
            fs::write(git.join("packed-refs"), packed).unwrap();
            Self { _removed: place, git }
        }

        fn refs(&self) -> Refs {
            Refs::open(&self.git, &self.git).unwrap()
        }
    }

    #[test]
    fn loose_refs_win_over_packed_ones() {
        let place = Place::new();
        let refs = place.refs();
        let head = CheckoutHead::Branch("refs/heads/main".to_owned(), Some(ONE.to_owned()));
        assert_eq!(refs.head().unwrap(), head);
        assert_eq!(refs.id("refs/heads/old/b").unwrap().as_deref(), Some(TWO));
        assert_eq!(refs.all().unwrap().len(), 4);
        fs::write(place.git.join("HEAD"), TWO).unwrap();
        assert_eq!(refs.head().unwrap(), CheckoutHead::Detached(TWO.to_owned()));
        for strange in ["ref: ../../etc/passwd", "ref: refs/heads/../../HEAD", "", "zz", "-h"] {
            fs::write(place.git.join("HEAD"), strange).unwrap();
            assert!(refs.head().is_err(), "{strange}");
        }
    }

    #[test]
    fn refs_change_only_from_expected_value() {
        let place = Place::new();
        let refs = place.refs();
        let set = |name: &str, expected| {
            refs.set(name, TWO, expected, None).map_err(|why| why.to_string())
        };
        assert!(
            set("refs/heads/main", Expected::Id(TWO)).unwrap_err().contains("changed meanwhile")
        );
        assert!(
            set("refs/heads/main", Expected::Absent).unwrap_err().contains("has a branch `main`")
        );
        assert!(set("refs/heads/main/x", Expected::Absent).unwrap_err().contains("branch `main`"));
        assert!(set("refs/heads/fix", Expected::Absent).unwrap_err().contains("branch `fix/a`"));
        assert!(set("refs/heads/old", Expected::Absent).unwrap_err().contains("branch `old/b`"));
        set("refs/heads/main", Expected::Id(ONE)).unwrap();
        set("refs/a2a-hub/t/base", Expected::Any).unwrap();
        assert_eq!(refs.id("refs/heads/main").unwrap().as_deref(), Some(TWO));
        fs::write(place.git.join("refs/heads/main.lock"), "").unwrap();
        assert!(
            set("refs/heads/main", Expected::Any).unwrap_err().contains("another git is at work")
        );
        assert!(place.git.join("refs/heads/main.lock").exists());
        fs::create_dir_all(place.git.join("refs/heads/gone/deep")).unwrap();
        set("refs/heads/gone", Expected::Absent).unwrap();
    }

    #[test]
    fn removed_refs_are_gone_from_both_places() {
        let place = Place::new();
        let refs = place.refs();
        refs.remove(&[
            "refs/heads/main".to_owned(),
            "refs/tags/v1".to_owned(),
            "refs/heads/none".to_owned(),
        ])
        .unwrap();
        let left: Vec<_> = refs.all().unwrap().into_keys().collect();
        assert_eq!(left, ["refs/heads/fix/a", "refs/heads/old/b"]);
        let packed = fs::read_to_string(place.git.join("packed-refs")).unwrap();
        assert_eq!(packed, format!("# pack-refs with: peeled\n{TWO} refs/heads/old/b\n"));
    }

    #[test]
    fn names_that_lead_elsewhere_are_refused() {
        for name in [
            "a..b", "-x", "", "a b", "a//b", "x.lock", "a\u{7}", "@{", "a~1", "HEAD", "/a", "a/",
            "../x",
        ] {
            assert!(!is_branch_name(name), "{name}");
        }
        assert!(["a", "feature/x", "ä", "v1.2"].into_iter().all(is_branch_name));
    }
}
