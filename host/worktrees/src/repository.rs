//! The user's repository, found from a directory. Files are read without git, so that nothing of
//! the repository's configuration counts before it is known which repository it is.

use crate::WorktreeError;
use std::{
    fs,
    io::Read as _,
    path::{Path, PathBuf},
};

/// Longest file that is read here, in bytes.
const FILE_LIMIT: u64 = 64 << 10;

/// Most stores of objects of one repository: its own and its alternates.
const MAX_STORES: usize = 32;

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
    pub fn of(directory: &Path) -> Result<Self, WorktreeError> {
        let Repository { checkout, common, .. } = Repository::find(directory)?;
        Ok(Self { checkout, repository: common })
    }

    /// Refuses a repository without any commit. Blocks on the disk.
    ///
    /// # Errors
    /// The repository has no branch, and no packed refs.
    pub fn require_commit(&self) -> Result<(), WorktreeError> {
        let has = |name: &str| self.repository.join(name).exists();
        let heads = self.repository.join("refs/heads");
        let has_branch = fs::read_dir(heads).is_ok_and(|mut all| all.next().is_some());
        // A detached commit, too: its `HEAD` is no reference.
        let head = text(&self.repository.join("HEAD")).unwrap_or_default();
        let is_detached = !head.starts_with("ref: ");
        match has_branch || is_detached || has("packed-refs") || has("reftable") {
            true => Ok(()),
            false => Err(WorktreeError::NoBase("HEAD".to_owned())),
        }
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
}

impl Repository {
    /// Finds the repository of a directory. Blocks on the disk.
    pub(crate) fn find(directory: &Path) -> Result<Self, WorktreeError> {
        let none = || WorktreeError::NoRepository(directory.display().to_string());
        let real = directory.canonicalize().map_err(|_| none())?;
        for above in real.ancestors() {
            if above.file_name().is_some_and(|name| name == ".git") {
                return Err(WorktreeError::Unsupported(format!(
                    "`{}` lies in a git directory; name a directory of the checkout",
                    directory.display()
                )));
            }
            let Some((git_dir, checkout)) = git_dir_at(above)? else { continue };
            let common = common_of(&git_dir)?;
            let prefix = real.strip_prefix(above).unwrap_or(Path::new("")).to_owned();
            let prefix = if checkout.is_some() { prefix } else { PathBuf::new() };
            let mut objects = Vec::new();
            add_stores(&common.join("objects"), &mut objects);
            let branch = text(&git_dir.join("HEAD"))
                .and_then(|head| head.trim().strip_prefix("ref: refs/heads/").map(str::to_owned));
            let shallow = text(&common.join("shallow"));
            return Ok(Self { git_dir, common, checkout, prefix, objects, branch, shallow });
        }
        Err(none())
    }
}

/// Git directory at `directory`, with its checkout; none if it is no repository.
fn git_dir_at(directory: &Path) -> Result<Option<(PathBuf, Option<PathBuf>)>, WorktreeError> {
    let dot = directory.join(".git");
    let checkout = Some(directory.to_owned());
    if is_git_dir(&dot) {
        return Ok(Some((real(&dot)?, checkout)));
    }
    if dot.is_file() {
        let said = text(&dot).unwrap_or_default();
        let Some(path) = said.trim().strip_prefix("gitdir: ") else {
            return Err(WorktreeError::Unsupported(format!(
                "`{}` is a file that names no git directory; repair it (`git worktree repair`)",
                dot.display()
            )));
        };
        return Ok(Some((real(&directory.join(path))?, checkout)));
    }
    Ok(is_git_dir(directory).then(|| (directory.to_owned(), None)))
}

/// True for a directory with the parts that every git directory has (gitrepository-layout(5)).
fn is_git_dir(path: &Path) -> bool {
    path.join("HEAD").is_file() && path.join("objects").is_dir() && path.join("refs").is_dir()
}

fn common_of(git_dir: &Path) -> Result<PathBuf, WorktreeError> {
    match text(&git_dir.join("commondir")) {
        Some(path) => real(&git_dir.join(path.trim())),
        None => Ok(git_dir.to_owned()),
    }
}

fn real(path: &Path) -> Result<PathBuf, WorktreeError> {
    path.canonicalize().map_err(|why| {
        WorktreeError::Unsupported(format!(
            "the git directory `{}` cannot be opened: {why}; repair it (`git worktree repair`)",
            path.display()
        ))
    })
}

/// Adds a store of objects, and those that it borrows from (`objects/info/alternates`).
fn add_stores(store: &Path, found: &mut Vec<PathBuf>) {
    let Ok(store) = store.canonicalize() else { return };
    if found.len() >= MAX_STORES || found.contains(&store) {
        return;
    }
    let borrowed = text(&store.join("info/alternates"));
    found.push(store.clone());
    let lines = borrowed.iter().flat_map(|text| text.lines());
    for line in lines.filter(|line| !line.is_empty() && !line.starts_with('#')) {
        add_stores(&store.join(line), found);
    }
}

/// Text of a small file; none if it is missing, large, or not UTF-8.
fn text(path: &Path) -> Option<String> {
    let mut text = String::new();
    let mut file = fs::File::open(path).ok()?.take(FILE_LIMIT);
    file.read_to_string(&mut text).ok()?;
    (file.limit() > 0).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let found = Repository::find(&root.join("one/src/deep")).unwrap();
        assert_eq!(found.checkout, Some(root.join("one")));
        assert_eq!(found.prefix, Path::new("src/deep"));
        assert_eq!((found.common.clone(), found.branch), (found.git_dir, Some("main".to_owned())));

        let paths = RepositoryPaths::of(&root.join("one/src/deep")).unwrap();
        assert!(paths.require_commit().unwrap_err().to_string().contains("git commit -m start"));
        fs::write(root.join("one/.git/refs/heads/main"), "1".repeat(40)).unwrap();
        assert!(paths.require_commit().is_ok());

        // A linked worktree of it.
        let linked = root.join("one/.git/worktrees/two");
        bare(&linked);
        fs::write(linked.join("commondir"), "../..\n").unwrap();
        fs::create_dir(root.join("two")).unwrap();
        fs::write(root.join("two/.git"), format!("gitdir: {}\n", linked.display())).unwrap();
        let found = Repository::find(&root.join("two")).unwrap();
        assert_eq!((&found.git_dir, &found.common), (&linked, &root.join("one/.git")));

        // A bare repository that borrows objects.
        bare(&root.join("three.git"));
        fs::write(
            root.join("three.git/objects/info/alternates"),
            "# borrowed\n../../one/.git/objects\n",
        )
        .unwrap();
        let found = Repository::find(&root.join("three.git")).unwrap();
        assert_eq!(found.checkout, None);
        assert_eq!(found.objects, [root.join("three.git/objects"), root.join("one/.git/objects")]);
    }

    #[test]
    fn directory_without_repository_is_refused() {
        let place = tempfile::tempdir().unwrap();
        let refused = |path: &Path| Repository::find(path).unwrap_err().to_string();
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
