//! Symbolic links on the way to a file, followed one at a time, so that whoever follows knows where each of them stands.

use std::{
    fs, io,
    path::{Component, Path, PathBuf},
};

/// Links that are followed on the way to one file; the system follows as many.
pub(crate) const MAX_LINKS: usize = 40;

/// A symbolic link on the way to a file.
pub(crate) struct Link {
    /// Where the link stands; no other link is on the way to it.
    pub(crate) at: PathBuf,
    /// The path of the file, with the link's target in the link's place.
    pub(crate) leads_to: PathBuf,
}

/// A place on the way to a file that cannot be read.
pub(crate) struct Unreadable {
    pub(crate) place: PathBuf,
    pub(crate) why: io::Error,
}

/// The first link on the way to `file`; none if the path has no link. Waits for the disk.
pub(crate) fn first_link(file: &Path) -> Result<Option<Link>, Unreadable> {
    let mut way: Vec<_> = file.ancestors().collect();
    way.reverse();
    for place in way {
        let unreadable = |why| Unreadable { place: place.to_owned(), why };
        if !fs::symlink_metadata(place).map_err(unreadable)?.is_symlink() {
            continue;
        }
        let target = fs::read_link(place).map_err(unreadable)?;
        let beside = place.parent().unwrap_or(Path::new("/"));
        let rest = file.strip_prefix(place).unwrap_or(Path::new(""));
        let next = beside.join(target);
        let next = if rest.as_os_str().is_empty() { next } else { next.join(rest) };
        return Ok(Some(Link { at: place.to_owned(), leads_to: plain(&next) }));
    }
    Ok(None)
}

/// The path of an existing file behind its links; none if one of the links stands in a directory of `untrusted`, whose writer could
/// have put the link there (CWE-59, link following). Those directories are named without links. Waits for the disk.
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

/// The path without `.` and `..`; exact only where what stands before them is no link.
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
