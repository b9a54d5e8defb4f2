//! The user's repository, found from a directory. All of it may have been made by an agent, so it
//! is read as data (module `reader`), and it must be what it claims to be: a `.git` file counts
//! only if the directory that it names also names it, and objects are borrowed only from stores.

pub(crate) mod bounds;
pub(crate) mod packs;
pub(crate) mod refs;
pub(crate) mod settings;

use crate::{
    RepositoryBounds, Worktree, WorktreeError,
    reader::{OpenDirectory, ReadError, line},
    repository::settings::{GitSettings, SettingsPaths, path_in},
};
use rustix::fs::FileType;
use std::path::{Path, PathBuf};

/// Longest file with one line or a list of stores, in bytes.
const FILE_LIMIT: u64 = 64 << 10;

/// Longest list of the commits at which a shallow clone ends, in bytes.
const SHALLOW_LIMIT: u64 = 16 << 20;

/// Most stores of objects of one repository: its own and its alternates.
const MAX_STORES: usize = 32;

/// Most entries of a store of objects: one directory for each first byte, and a few more.
const MAX_STORE_ENTRIES: usize = 1_024;

/// Paths of the repository that a directory lies in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepositoryPaths {
    /// Top directory of the checkout; none in a bare repository.
    pub checkout: Option<PathBuf>,
    /// Git directory with objects and refs, which linked checkouts share.
    pub repository: PathBuf,
}

impl RepositoryPaths {
    /// Finds the repository of a directory. Blocks on the disk.
    ///
    /// # Errors
    /// The directory is in no repository.
    pub fn find(directory: &Path) -> Result<Self, WorktreeError> {
        let found = Repository::find(directory, &RepositoryBounds::default())?;
        Ok(Self { checkout: found.checkout, repository: found.common })
    }

    /// Refuses a repository without any commit. Blocks on the disk.
    ///
    /// # Errors
    /// `HEAD` is a branch without a commit, and so are all other branches.
    pub fn require_commit(&self) -> Result<(), WorktreeError> {
        refs::has_commit(&self.repository)
            .then_some(())
            .ok_or_else(|| WorktreeError::NoBase("HEAD".to_owned()))
    }
}

/// A repository and the checkout that a directory lies in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Repository {
    /// Git directory of the checkout. For a linked worktree it lies below `common`.
    pub(crate) git_dir: PathBuf,
    /// Git directory with objects and refs.
    pub(crate) common: PathBuf,
    /// Top directory of the checkout; none in a bare repository.
    pub(crate) checkout: Option<PathBuf>,
    /// The directory, relative to the checkout.
    pub(crate) prefix: PathBuf,
    /// Stores of objects, with those that it borrows from.
    pub(crate) objects: Vec<PathBuf>,
    /// Name of the branch that is checked out, if one is.
    pub(crate) branch: Option<String>,
    /// Commits whose parents are missing in a shallow clone: the text of the file `shallow`.
    pub(crate) shallow: Option<String>,
    /// True if ids are SHA-256.
    pub(crate) is_sha256: bool,
}

impl Repository {
    /// Finds the repository of a directory. Blocks on the disk.
    pub(crate) fn find(directory: &Path, bounds: &RepositoryBounds) -> Result<Self, WorktreeError> {
        let none = || WorktreeError::NoRepository(directory.display().to_string());
        let found = directory.canonicalize().map_err(|_| none())?;
        for ancestor in found.ancestors() {
            if ancestor.file_name().is_some_and(|name| name.eq_ignore_ascii_case(".git")) {
                return Err(WorktreeError::Unsupported(format!(
                    "`{}` lies in a git directory; name a directory of the checkout",
                    directory.display()
                )));
            }
            if let Some(mut repository) = Self::at(ancestor, bounds)? {
                if repository.checkout.is_some() {
                    found
                        .strip_prefix(ancestor)
                        .unwrap_or(Path::new(""))
                        .clone_into(&mut repository.prefix);
                }
                return Ok(repository);
            }
        }
        Err(none())
    }

    /// Repository whose checkout, or whose git directory, is `directory`; none if it is neither.
    fn at(directory: &Path, bounds: &RepositoryBounds) -> Result<Option<Self>, WorktreeError> {
        let Ok(top) = OpenDirectory::open(directory) else { return Ok(None) };
        let dot = directory.join(".git");
        let wrong = |why: &ReadError| {
            WorktreeError::Unsupported(format!(
                "`{}` {why}; worktrees need a plain one",
                dot.display()
            ))
        };
        let mut repository = Self {
            git_dir: dot.clone(),
            common: dot.clone(),
            checkout: Some(directory.to_owned()),
            prefix: PathBuf::new(),
            objects: Vec::new(),
            branch: None,
            shallow: None,
            is_sha256: false,
        };
        let kind = top.stat(".git").map_err(|why| wrong(&why))?;
        match kind.map(|stat| FileType::from_raw_mode(stat.st_mode)) {
            None if is_git_dir(&top) => {
                repository.git_dir = directory.to_owned();
                repository.common = directory.to_owned();
                repository.checkout = None;
            }
            None => return Ok(None),
            Some(FileType::Directory) => {
                let inner = top.directory(".git").map_err(|why| wrong(&why))?;
                if !inner.as_ref().is_some_and(is_git_dir) {
                    return Ok(None);
                }
            }
            Some(FileType::RegularFile) => {
                let bytes = top.bytes(".git", FILE_LIMIT).map_err(|why| wrong(&why))?;
                repository.follow(bytes.as_deref().unwrap_or_default(), bounds)?;
            }
            Some(FileType::Symlink) => return Err(wrong(&ReadError::Link)),
            Some(_) => return Err(wrong(&ReadError::NotPlain)),
        }
        repository.complete(bounds)?;
        Ok(Some(repository))
    }

    /// Follows a `.git` file to the git directory of a linked worktree (git-worktree(1)) or of a
    /// submodule. The directory must name the checkout: otherwise, the writer of the file could
    /// have another repository of the user read and written.
    fn follow(&mut self, bytes: &[u8], bounds: &RepositoryBounds) -> Result<(), WorktreeError> {
        let dot = self.git_dir.clone();
        let checkout = dot.parent().unwrap_or(&dot).to_owned();
        let refused = |why: &str| WorktreeError::Unsupported(format!("`{}` {why}", dot.display()));
        let named = bytes.strip_prefix(b"gitdir: ").and_then(|path| path_in(&checkout, path));
        let named = named.ok_or_else(|| {
            refused("is a file that names no git directory; repair it (`git worktree repair`)")
        })?;
        let git_dir = named.canonicalize().map_err(|why| {
            let named = named.display();
            refused(&format!(
                "names `{named}`, which cannot be opened ({why}); repair it (`git worktree repair`)"
            ))
        })?;
        let inner = OpenDirectory::open(&git_dir).map_err(WorktreeError::disk)?;
        let value = |name: &str| -> Result<Option<PathBuf>, WorktreeError> {
            let bytes = inner.bytes(name, FILE_LIMIT).map_err(|why| {
                WorktreeError::Unsupported(format!("`{}` {why}", git_dir.join(name).display()))
            })?;
            Ok(bytes.and_then(|bytes| path_in(&git_dir, &bytes)))
        };
        let not_linked = || {
            refused(&format!(
                "names `{}`, which does not name it as its worktree; repair it (`git worktree repair`), or name the \
                 checkout that this repository belongs to",
                git_dir.display()
            ))
        };
        let names =
            |path: &Path, expected: &Path| path.canonicalize().is_ok_and(|back| back == expected);
        if let Some(common) = value("commondir")? {
            let back = value("gitdir")?.ok_or_else(not_linked)?;
            let common = common.canonicalize().map_err(|_| not_linked())?;
            let is_in_worktrees =
                git_dir.parent().is_some_and(|parent| parent == common.join("worktrees"));
            if !is_in_worktrees || !names(&back, &dot) {
                return Err(not_linked());
            }
            self.common = common;
        } else {
            self.common.clone_from(&git_dir);
            self.git_dir.clone_from(&git_dir);
            let work_tree = GitSettings::of_repository(&self.settings_paths())
                .work_tree
                .ok_or_else(not_linked)?;
            if !names(&git_dir.join(work_tree), &checkout) {
                return Err(not_linked());
            }
        }
        self.git_dir = git_dir;
        for path in [&self.git_dir, &self.common] {
            if let Some(why) = bounds.objection(path) {
                return Err(refused(&format!(
                    "names `{}`, which {why}; add the directory: `a2a-hub workspace add DIRECTORY`",
                    path.display()
                )));
            }
        }
        Ok(())
    }

    /// Reads what the git directories say.
    fn complete(&mut self, bounds: &RepositoryBounds) -> Result<(), WorktreeError> {
        let open = |path: &Path| {
            OpenDirectory::open(path).ok().filter(is_git_dir).ok_or_else(|| {
                WorktreeError::Unsupported(format!(
                    "`{}` is no whole git directory: `HEAD` or `config` is a link or missing, or it has no `objects` and `refs` of \
                     its own",
                    path.display()
                ))
            })
        };
        let common = open(&self.common)?;
        let settings = GitSettings::of_repository(&self.settings_paths());
        if let Some(format) = settings.ref_storage.filter(|format| format != "files") {
            return Err(WorktreeError::Unsupported(format!(
                "`{}` has its refs in the format `{format}`, which worktrees do not support; change it: `git refs migrate --ref-format=files`",
                self.common.display()
            )));
        }
        self.is_sha256 = settings.is_sha256;
        self.shallow = match common.bytes("shallow", SHALLOW_LIMIT) {
            Ok(bytes) => bytes.and_then(|bytes| String::from_utf8(bytes).ok()),
            Err(why) => {
                let path = self.common.join("shallow");
                return Err(WorktreeError::Unsupported(format!("`{}` {why}", path.display())));
            }
        };
        self.objects = stores(&self.common.join("objects"), bounds)?;
        self.branch = refs::branch(&self.git_dir);
        Ok(())
    }
}

impl Repository {
    /// Directories with the settings of the repository.
    pub(crate) fn settings_paths(&self) -> SettingsPaths<'_> {
        let Self { git_dir, common, checkout, branch, .. } = self;
        let (checkout, branch) = (checkout.as_deref(), branch.as_deref());
        SettingsPaths { git_dir, common, checkout, branch }
    }
}

impl Worktree {
    /// Opens the repository of the worktree again. It must still be what it was: an agent that may
    /// write there could have put another one in its place. Blocks on the disk.
    pub(crate) fn open_repository(&self) -> Result<Repository, WorktreeError> {
        let directory = self.checkout.as_ref().unwrap_or(&self.repository);
        let refused = |why: &str| {
            WorktreeError::Refused(format!(
                "the repository of the worktree, `{}`, {why}; put it back there, or copy the files from `{}` yourself",
                directory.display(),
                self.tree.display()
            ))
        };
        let found = match Repository::find(directory, &self.bounds) {
            Err(WorktreeError::NoRepository(_)) => return Err(refused("is gone")),
            found => found?,
        };
        let is_same = found.git_dir == self.git_dir
            && found.common == self.repository
            && found.checkout == self.checkout;
        if !is_same {
            return Err(refused("is another one now"));
        }
        Ok(found)
    }
}

/// True for a directory with the parts that every git directory has (gitrepository-layout(5)), or
/// of a linked worktree, whose objects lie in another one.
fn is_git_dir(directory: &OpenDirectory) -> bool {
    let has = |name: &str| directory.directory(name).is_ok_and(|found| found.is_some());
    directory.file("HEAD").is_ok_and(|file| file.is_some()) && has("objects") && has("refs")
}

/// A store of objects with all that it borrows from (`objects/info/alternates`).
fn stores(first: &Path, bounds: &RepositoryBounds) -> Result<Vec<PathBuf>, WorktreeError> {
    let mut found: Vec<PathBuf> = Vec::new();
    let mut pending = vec![(first.to_owned(), None::<PathBuf>)];
    while let Some((path, named_by)) = pending.pop() {
        let refused = |why: &str| match &named_by {
            None => WorktreeError::Unsupported(format!("`{}` {why}", path.display())),
            Some(by) => WorktreeError::Unsupported(format!(
                "`{}` borrows objects from `{}`, which {why}; copy them (`git repack -a -d`) and remove that file, or add the \
                 directory: `a2a-hub workspace add DIRECTORY`",
                by.display(),
                path.display()
            )),
        };
        let path = match &named_by {
            None => path.clone(),
            Some(_) => {
                path.canonicalize().map_err(|why| refused(&format!("cannot be opened ({why})")))?
            }
        };
        if found.contains(&path) {
            continue;
        }
        if found.len() == MAX_STORES {
            return Err(refused("is one of too many stores of objects"));
        }
        if let Some(why) = named_by.as_ref().and_then(|_| bounds.objection(&path)) {
            return Err(refused(why));
        }
        let store = OpenDirectory::open(&path)
            .map_err(|why| refused(&format!("cannot be opened ({why})")))?;
        require_store(&store).map_err(|why| refused(&why))?;
        let file = path.join("info/alternates");
        let borrowed = store.bytes("info/alternates", FILE_LIMIT);
        let borrowed = borrowed
            .map_err(|why| WorktreeError::Unsupported(format!("`{}` {why}", file.display())))?;
        for named in borrowed.as_deref().unwrap_or_default().split(|byte| *byte == b'\n') {
            let Some(named) = line(named).filter(|named| !named.starts_with('#')) else { continue };
            pending.push((path.join(named), Some(file.clone())));
        }
        found.push(path);
    }
    Ok(found)
}

/// Refuses a directory with other entries than a store of objects has (gitrepository-layout(5)): a
/// confined agent sees all that is in a store.
fn require_store(store: &OpenDirectory) -> Result<(), String> {
    let entries =
        store.entries(MAX_STORE_ENTRIES).map_err(|why| format!("is no store of objects: {why}"))?;
    let is_store_entry = |name: &[u8]| {
        let is_hex = |byte: &u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        (name.len() == 2 && name.iter().all(is_hex))
            || matches!(name, b"pack" | b"info" | b"schema-version" | b"maintenance.lock")
            || [&b"incoming-"[..], b"tmp_objdir-", b"tmp_obj_", b"bulk-fsync"]
                .iter()
                .any(|prefix| name.starts_with(prefix))
    };
    match entries.iter().find(|entry| !is_store_entry(&entry.name)) {
        None => Ok(()),
        Some(other) => Err(format!(
            "is no store of objects of git: it has `{}`",
            String::from_utf8_lossy(&other.name).escape_debug()
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn find(path: &Path) -> Result<Repository, WorktreeError> {
        Repository::find(path, &RepositoryBounds::default())
    }

    fn bare(path: &Path) {
        for directory in ["objects/info", "refs/heads"] {
            fs::create_dir_all(path.join(directory)).unwrap();
        }
        fs::write(path.join("HEAD"), "ref: refs/heads/main\n").unwrap();
    }

    #[test]
    fn repository_is_found_from_all_its_forms() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().canonicalize().unwrap();
        bare(&root.join("one/.git"));
        fs::create_dir_all(root.join("one/src/deep")).unwrap();
        let found = find(&root.join("one/src/deep")).unwrap();
        assert_eq!(found.checkout, Some(root.join("one")));
        assert_eq!(found.prefix, Path::new("src/deep"));
        assert_eq!((found.common.clone(), found.branch), (found.git_dir, Some("main".to_owned())));

        let paths = RepositoryPaths::find(&root.join("one/src/deep")).unwrap();
        assert!(paths.require_commit().unwrap_err().to_string().contains("git commit -m start"));
        fs::write(root.join("one/.git/refs/heads/main"), "1".repeat(40)).unwrap();
        assert!(paths.require_commit().is_ok());

        // A linked worktree of it.
        let linked = root.join("one/.git/worktrees/two");
        bare(&linked);
        fs::write(linked.join("commondir"), "../..\n").unwrap();
        fs::create_dir(root.join("two")).unwrap();
        let back = root.join("two/.git");
        fs::write(linked.join("gitdir"), format!("{}\n", back.display())).unwrap();
        fs::write(root.join("two/.git"), format!("gitdir: {}\n", linked.display())).unwrap();
        let found = find(&root.join("two")).unwrap();
        assert_eq!((&found.git_dir, &found.common), (&linked, &root.join("one/.git")));

        // A bare repository that borrows objects.
        bare(&root.join("three.git"));
        fs::write(
            root.join("three.git/objects/info/alternates"),
            "# borrowed\n../../one/.git/objects\n",
        )
        .unwrap();
        let found = find(&root.join("three.git")).unwrap();
        assert_eq!(found.checkout, None);
        assert_eq!(found.objects, [root.join("three.git/objects"), root.join("one/.git/objects")]);
    }

    #[test]
    fn directory_without_repository_is_refused() {
        let place = tempfile::tempdir().unwrap();
        let refused = |path: &Path| find(path).unwrap_err().to_string();
        let at = |name: &str| place.path().join(name);
        assert!(refused(place.path()).contains("git init"));
        assert!(refused(&at("missing")).contains("no git repository"));
        fs::create_dir(at("broken")).unwrap();
        fs::write(at("broken/.git"), "gitdir: /nonexistent/x").unwrap();
        assert!(refused(&at("broken")).contains("worktree repair"));
        fs::write(at("broken/.git"), "nonsense").unwrap();
        assert!(refused(&at("broken")).contains("names no git directory"));
        bare(&at("one/.git"));
        assert!(refused(&at("one/.git/refs")).contains("lies in a git directory"));
    }
}
