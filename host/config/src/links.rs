//! Resolves the symbolic links on a path one at a time, so that the caller knows the location of
//! each link.

use std::{
    fs, io,
    path::{Component, Path, PathBuf},
};

/// Maximum number of links on the path of one file, the same as the system's.
pub(crate) const MAX_LINKS: usize = 40;

/// A symbolic link on the way to a file.
pub(crate) struct Link {
    /// Path of the link; no other link is on it.
    pub(crate) at: PathBuf,
    /// Path of the file, with the link replaced by its target.
    pub(crate) leads_to: PathBuf,
}

/// An unreadable part of a file's path.
pub(crate) struct Unreadable {
    pub(crate) path: PathBuf,
    pub(crate) why: io::Error,
}

/// Returns the first link on the path of `file`; none if the path has no link. Blocks on the disk.
pub(crate) fn first_link(file: &Path) -> Result<Option<Link>, Unreadable> {
    let mut way: Vec<_> = file.ancestors().collect();
    way.reverse();
    for ancestor in way {
        let unreadable = |why| Unreadable { path: ancestor.to_owned(), why };
        if !fs::symlink_metadata(ancestor).map_err(unreadable)?.is_symlink() {
            continue;
        }
        let target = fs::read_link(ancestor).map_err(unreadable)?;
        let directory = ancestor.parent().unwrap_or(Path::new("/"));
        let rest = file.strip_prefix(ancestor).unwrap_or(Path::new(""));
        let next = directory.join(target);
        let next = if rest.as_os_str().is_empty() { next } else { next.join(rest) };
        return Ok(Some(Link { at: ancestor.to_owned(), leads_to: plain(&next) }));
    }
    Ok(None)
}

/// Returns the path of an existing file with its links resolved; none if one of the links is in a
/// directory of `untrusted`, whose writer could have created the link (CWE-59, link following). The
/// untrusted directories are named without links. Blocks on the disk.
pub fn real_path_outside(file: &Path, untrusted: &[PathBuf]) -> Option<PathBuf> {
    let mut file = plain(file);
    for _ in 0..MAX_LINKS {
        let Some(Link { at, leads_to }) = first_link(&file).ok()? else { return Some(file) };
        if untrusted.iter().any(|directory| at.starts_with(directory)) {
            return None;
        }
        file = leads_to;
    }
    None
}

/// Returns the path without `.` and `..`; exact only if the components before them are no links.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(plain.pop()),
            Component::CurDir => {}
            part @ (Component::Prefix(_) | Component::RootDir | Component::Normal(_)) => {
                plain.push(part);
            }
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn links_in_untrusted_directory_are_not_followed() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().canonicalize().unwrap();
        let path = |name: &str| root.join(name);
        for directory in ["work", "secret", "ours/deep"] {
            fs::create_dir_all(path(directory)).unwrap();
        }
        symlink("../secret", path("work/link")).unwrap();
        symlink(path("ours"), path("alias")).unwrap();
        symlink(path("work/link"), path("ours/by-way-of-work")).unwrap();
        let untrusted = [path("work")];
        let real = |name: &str| real_path_outside(&path(name), &untrusted);
        assert_eq!(real("work"), Some(path("work")));
        assert_eq!(real("alias/deep"), Some(path("ours/deep")), "the operator's own link");
        assert_eq!(real("work/../secret/."), Some(path("secret")));
        for refused in ["work/link", "work/link/x", "ours/by-way-of-work", "missing"] {
            assert_eq!(real(refused), None, "{refused}");
        }
        symlink("b", path("a")).unwrap();
        symlink("a", path("b")).unwrap();
        assert_eq!(real("a"), None, "a circle of links");
    }
}
