//! Branches of a git repository, read from its files: `refs/heads` and `packed-refs`.
//!
//! No git runs here. A repository that an agent may write can configure programs that git starts
//! (CVE-2022-24765 is of this kind), and every commit would run them with the rights of the hub.
//! These files contain names and commits only.

use crate::{
    glob::Globs,
    heads::Heads,
    read_bounded::{BoundedWalk, WalkError, directory, directory_in, file_in},
};
use std::{
    fs, io,
    os::fd::OwnedFd,
    path::{Path, PathBuf},
};

/// Maximum number of entries below `refs/heads`.
const MAX_ENTRIES: usize = 50_000;

/// Maximum number of branches that match.
const MAX_BRANCHES: usize = 1_000;

/// Maximum size of `packed-refs`: some 300,000 refs.
const MAX_PACKED: u64 = 32 << 20;

/// Maximum size of a file with one line.
const MAX_LINE: u64 = 4 << 10;

/// Error of reading branches.
#[derive(Debug, thiserror::Error)]
pub enum RefsError {
    /// A file cannot be read.
    #[error("the branches of `{directory}` cannot be read: {why}")]
    Io {
        /// Directory of the trigger.
        directory: String,
        /// Error of the system.
        why: io::Error,
    },
    /// The directory is no repository.
    #[error("`{0}` is no git repository; name its top directory, or a bare repository")]
    NotARepository(String),
    /// `.git` is a file whose directory does not point back to it.
    #[error(
        "`{0}/.git` leads to a directory that does not name it as its worktree; name the directory with `HEAD` and `refs` itself"
    )]
    NotLinked(String),
    /// The repository has refs in another format.
    #[error("`{0}` keeps its refs in the format `reftable`, which the hub does not read")]
    Reftable(String),
    /// Too many branches match.
    #[error("more than {MAX_BRANCHES} branches of `{0}` match; write narrower `branches`")]
    TooMany(String),
}

/// Reads the branches of the repository at `root` that match.
pub fn read(root: &Path, globs: &Globs) -> Result<Heads, RefsError> {
    let shown = || root.display().to_string();
    let failed = |why| RefsError::Io { directory: shown(), why };
    let common = common_directory(root)?;
    if directory_in(&common, "reftable").map_err(failed)?.is_some() {
        return Err(RefsError::Reftable(shown()));
    }
    let mut heads = Heads::new();
    // Unpacked refs come first: git packs a ref before it deletes the file of that ref.
    let unpacked = unpacked(&common, globs, &mut heads);
    unpacked.map_err(|why| match why {
        WalkError::Io(why) => failed(why),
        WalkError::TooMany(_) => RefsError::TooMany(shown()),
    })?;
    if let Some(packed) = file_in(&common, "packed-refs", MAX_PACKED).map_err(failed)? {
        for (branch, commit) in packed_branches(&packed) {
            if globs.matches(branch) && !heads.contains_key(branch) {
                heads.insert(branch.to_owned(), commit.to_owned());
            }
        }
    }
    match heads.len() {
        0..=MAX_BRANCHES => Ok(heads),
        _ => Err(RefsError::TooMany(shown())),
    }
}

/// Opens the directory that contains the refs of a repository, of a linked worktree, or of a bare
/// repository.
fn common_directory(root: &Path) -> Result<OwnedFd, RefsError> {
    let shown = || root.display().to_string();
    let failed = |why| RefsError::Io { directory: shown(), why };
    let top = directory(root).map_err(failed)?;
    if let Some(git) = directory_in(&top, ".git").map_err(failed)? {
        return Ok(git);
    }
    match file_in(&top, ".git", MAX_LINE).map_err(failed)? {
        Some(link) => linked(root, &link),
        None => {
            let has_head = file_in(&top, "HEAD", MAX_LINE).map_err(failed)?.is_some();
            let has = |name| directory_in(&top, name).map(|found| found.is_some());
            if has_head && has("refs").map_err(failed)? && has("objects").map_err(failed)? {
                return Ok(top);
            }
            Err(RefsError::NotARepository(shown()))
        }
    }
}

/// Opens the common directory of the repository that a linked worktree (git-worktree(1)) belongs
/// to. It must name the worktree: otherwise, who writes to the worktree could have the branches of
/// any other repository reported.
fn linked(root: &Path, link: &[u8]) -> Result<OwnedFd, RefsError> {
    let not_linked = || RefsError::NotLinked(root.display().to_string());
    let failed = |why| RefsError::Io { directory: root.display().to_string(), why };
    let line = |bytes: &[u8]| -> Option<PathBuf> {
        let text = std::str::from_utf8(bytes).ok()?.trim_end_matches(['\n', '\r']);
        Some(PathBuf::from(text)).filter(|path| !path.as_os_str().is_empty())
    };
    let to = link.strip_prefix(b"gitdir: ").and_then(line).ok_or_else(not_linked)?;
    let to = root.join(to);
    let private = directory(&to).map_err(failed)?;
    let named = |name: &str| -> Result<Option<PathBuf>, RefsError> {
        let bytes = file_in(&private, name, MAX_LINE).map_err(failed)?;
        Ok(bytes.as_deref().and_then(line).map(|path| to.join(path)))
    };
    let back = named("gitdir")?.ok_or_else(not_linked)?;
    let (back, dot_git) = (fs::canonicalize(back), fs::canonicalize(root.join(".git")));
    if back.map_err(failed)? != dot_git.map_err(failed)? {
        return Err(not_linked());
    }
    let common = named("commondir")?.ok_or_else(not_linked)?;
    directory(&common).map_err(failed)
}

/// Adds the branches that have a file each.
fn unpacked(common: &OwnedFd, globs: &Globs, heads: &mut Heads) -> Result<(), WalkError> {
    let Some(refs) = directory_in(common, "refs")? else { return Ok(()) };
    let Some(branches) = directory_in(&refs, "heads")? else { return Ok(()) };
    let enters = |path: &str| globs.may_match_in(path);
    BoundedWalk::new(MAX_ENTRIES, &enters).run(branches, &mut |branch, dir, name, _| {
        // git writes a ref to a file of this name, and renames it.
        if name.ends_with(".lock") || !globs.matches(&branch) {
            return Ok(());
        }
        let Some(content) = file_in(dir, name, MAX_LINE)? else { return Ok(()) };
        let text = content.trim_ascii_end();
        if text.starts_with(b"ref: ") {
            // A symbolic ref: the branch that it names is reported under its own name.
            return Ok(());
        }
        match commit(text) {
            Some(commit) => {
                heads.insert(branch, commit.to_owned());
                Ok(())
            }
            None => Err(io::Error::other(format!("the ref `{branch}` contains no commit")).into()),
        }
    })
}

/// Branches of a file of packed refs (git-pack-refs(1)).
fn packed_branches(packed: &[u8]) -> impl Iterator<Item = (&str, &str)> {
    packed.split(|byte| *byte == b'\n').filter_map(|line| {
        let at = line.iter().position(|byte| *byte == b' ')?;
        let branch = line[at + 1..].strip_prefix(b"refs/heads/")?;
        Some((std::str::from_utf8(branch).ok()?, commit(&line[..at])?))
    })
}

/// Name of a commit: SHA-1 or SHA-256 in hex.
fn commit(text: &[u8]) -> Option<&str> {
    let is_hex = text.iter().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    let is_commit = is_hex && (text.len() == 40 || text.len() == 64);
    is_commit.then(|| std::str::from_utf8(text).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    const ONE: &str = "1111111111111111111111111111111111111111";
    const TWO: &str = "2222222222222222222222222222222222222222";

    fn heads(pairs: &[(&str, &str)]) -> Heads {
        pairs.iter().map(|(branch, commit)| ((*branch).to_owned(), (*commit).to_owned())).collect()
    }

    fn all() -> Globs {
        Globs::parse(&["**"]).unwrap()
    }

    fn write(root: &Path, files: &[(&str, &str)]) {
        for (path, text) in files {
            fs::create_dir_all(root.join(path).parent().unwrap()).unwrap();
            fs::write(root.join(path), text).unwrap();
        }
    }

    /// A repository with one branch of each kind.
    fn repository(git: &Path) {
        fs::create_dir_all(git.join("objects")).unwrap();
        let packed = format!(
            "# pack-refs with: peeled fully-peeled sorted \n{ONE} refs/heads/main\n{ONE} refs/heads/old/one\n{TWO} refs/tags/v1\n^{ONE}\nnonsense refs/heads/x\n"
        );
        write(
            git,
            &[
                ("HEAD", "ref: refs/heads/main\n"),
                ("packed-refs", &packed),
                ("refs/heads/main", &format!("{TWO}\n")),
                ("refs/heads/fix/a", &format!("{ONE}\n")),
                ("refs/heads/fix/b.lock", "half writ"),
                ("refs/heads/alias", "ref: refs/heads/main\n"),
                ("refs/remotes/origin/main", &format!("{ONE}\n")),
            ],
        );
    }

    #[test]
    fn branches_are_read_packed_and_unpacked() {
        let dir = tempfile::tempdir().unwrap();
        repository(&dir.path().join(".git"));
        let found = read(dir.path(), &all()).unwrap();
        assert_eq!(found, heads(&[("main", TWO), ("fix/a", ONE), ("old/one", ONE)]));
        let some = Globs::parse(&["fix/*", "main"]).unwrap();
        let found = read(dir.path(), &some).unwrap();
        assert_eq!(found, heads(&[("main", TWO), ("fix/a", ONE)]));
        let bare = read(&dir.path().join(".git"), &some).unwrap();
        assert_eq!(bare, found, "a bare repository has the same files");
    }

    #[test]
    fn linked_worktree_reads_its_repository() {
        let dir = tempfile::tempdir().unwrap();
        let (git, tree) = (dir.path().join("main/.git"), dir.path().join("tree"));
        repository(&git);
        let link = format!("gitdir: {}\n", git.join("worktrees/tree").display());
        write(&tree, &[(".git", &link)]);
        let back = format!("{}\n", tree.join(".git").display());
        write(&git.join("worktrees/tree"), &[("gitdir", &back), ("commondir", "../..\n")]);
        assert_eq!(read(&tree, &all()).unwrap()["main"], TWO);
        write(&git.join("worktrees/tree"), &[("gitdir", "/dev/null\n")]);
        let refused = read(&tree, &all()).unwrap_err();
        assert!(matches!(refused, RefsError::NotLinked(_)), "{refused}");
    }

    #[test]
    fn hostile_repository_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        let refused = |wanted: &str| {
            let why = read(root, &all()).unwrap_err().to_string();
            assert!(why.contains(wanted), "{why}");
        };
        refused("is no git repository");
        let secret = tempfile::tempdir().unwrap();
        repository(secret.path());
        symlink(secret.path(), root.join(".git")).unwrap();
        refused("`.git` is a symbolic link");
        fs::remove_file(root.join(".git")).unwrap();
        write(root, &[(".git", &format!("gitdir: {}\n", secret.path().display()))]);
        refused("does not name it as its worktree");
        fs::remove_file(root.join(".git")).unwrap();
        let git = root.join(".git");
        write(&git, &[("refs/heads/main", &"1".repeat(5_000))]);
        refused("has more than 4096 bytes");
        write(&git, &[("refs/heads/main", "")]);
        refused("the ref `main` contains no commit");
        fs::remove_file(git.join("refs/heads/main")).unwrap();
        symlink("/etc/passwd", git.join("refs/heads/main")).unwrap();
        assert_eq!(read(root, &all()).unwrap(), Heads::new(), "a link is no ref");
        write(&git, &[("reftable/tables.list", "")]);
        refused("`reftable`");
    }
}
