//! The commit that an agent's own repository has checked out, read without git: its files may say
//! anything, so they are data of limited size, and links are not followed.

use rustix::fs::{Mode, OFlags, ResolveFlags, openat2};
use std::{fs::File, io::Read as _, os::fd::AsFd as _, path::Path};

/// Longest file of refs that is read, in bytes.
const REFS_LIMIT: u64 = 4 << 20;

/// Id of the commit at `HEAD` of `tree/.git`, if the repository is whole enough to tell. The commit
/// need not exist.
pub(crate) fn head_of(tree: &Path) -> Option<String> {
    let tree = File::open(tree).ok()?;
    let head = read(&tree, ".git/HEAD")?;
    let head = head.trim();
    let Some(name) = head.strip_prefix("ref: ") else { return id(head) };
    let is_plain = name.starts_with("refs/heads/") && !name.split('/').any(|part| part == "..");
    if !is_plain {
        return None;
    }
    if let Some(text) = read(&tree, &format!(".git/{name}")) {
        return id(text.trim());
    }
    let packed = read(&tree, ".git/packed-refs")?;
    packed.lines().find_map(|line| id(line.strip_suffix(name)?.strip_suffix(' ')?))
}

/// A hash as git writes it: SHA-1 or SHA-256.
fn id(text: &str) -> Option<String> {
    let is_hash = matches!(text.len(), 40 | 64)
        && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    is_hash.then(|| text.to_owned())
}

/// Text of a file below a directory, reached without any link.
fn read(below: &File, path: &str) -> Option<String> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    let file = openat2(below.as_fd(), path, flags, Mode::empty(), resolve).ok()?;
    let mut file = File::from(file);
    if !file.metadata().ok()?.is_file() {
        return None;
    }
    let mut text = String::new();
    (&mut file).take(REFS_LIMIT).read_to_string(&mut text).ok()?;
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{fs, os::unix::fs::symlink};

    #[test]
    fn head_is_read_in_all_its_forms() {
        let place = tempfile::tempdir().unwrap();
        let git = place.path().join(".git");
        fs::create_dir_all(git.join("refs/heads/a")).unwrap();
        let write = |name: &str, text: &str| fs::write(git.join(name), text).unwrap();
        let (one, two) = ("1".repeat(40), "2".repeat(64));
        write("HEAD", "ref: refs/heads/a/b\n");
        assert_eq!(head_of(place.path()), None);
        write("packed-refs", &format!("# pack-refs\n{two} refs/heads/a/b\n^{one}\n"));
        assert_eq!(head_of(place.path()), Some(two));
        write("refs/heads/a/b", &format!("{one}\n"));
        assert_eq!(head_of(place.path()), Some(one.clone()));
        write("HEAD", &one);
        assert_eq!(head_of(place.path()), Some(one));
        for strange in ["ref: ../../etc/passwd", "ref: refs/heads/../../HEAD", "", "zz", "-h"] {
            write("HEAD", strange);
            assert_eq!(head_of(place.path()), None, "{strange}");
        }
    }

    #[test]
    fn links_in_agents_repository_are_not_followed() {
        let place = tempfile::tempdir().unwrap();
        let (tree, outside) = (place.path().join("tree"), place.path().join("outside"));
        fs::create_dir_all(&outside).unwrap();
        fs::create_dir(&tree).unwrap();
        fs::write(outside.join("HEAD"), "1".repeat(40)).unwrap();
        symlink(&outside, tree.join(".git")).unwrap();
        assert_eq!(head_of(&tree), None);
        fs::remove_file(tree.join(".git")).unwrap();
        fs::create_dir(tree.join(".git")).unwrap();
        symlink(outside.join("HEAD"), tree.join(".git/HEAD")).unwrap();
        assert_eq!(head_of(&tree), None);
    }
}
