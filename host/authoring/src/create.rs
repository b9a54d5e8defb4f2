//! Creates the project of a new agent, which builds, has tests, and vendors its build dependencies.

use crate::{
    error::{AuthoringError, Doing as _, FailureKind},
    language::Language,
    packed::unpack,
    scaffold,
};
use a2a_hub_protocol::id::AgentId;
use rustix::{
    fs::{CWD, RenameFlags, renameat_with},
    io::Errno,
};
use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
};

/// Creates the project of an agent called `name`, as a folder of that name in `within`, atomically.
/// Returns the number of its files.
///
/// # Errors
/// If the path exists ([`FailureKind::Exists`]), or this program carries no template for the
/// language; and I/O errors.
pub fn create(within: &Path, name: &AgentId, language: Language) -> Result<usize, AuthoringError> {
    let files = scaffold::project(&unpack()?, language, name)?;
    make(within, &within.join(name.as_str()), &files)?;
    Ok(files.len())
}

/// Creates a folder with these files, atomically; existing files are not touched.
fn make(
    within: &Path,
    path: &Path,
    files: &BTreeMap<PathBuf, Vec<u8>>,
) -> Result<(), AuthoringError> {
    let taken = || {
        let why = format!(
            "make {}: something is there already; choose another name, or another directory",
            path.display()
        );
        AuthoringError::new(FailureKind::Exists, why)
    };
    // A dangling link counts as existing.
    if fs::symlink_metadata(path).is_ok() {
        return Err(taken());
    }
    let chance = getrandom::u32().doing(|| "name a draft".to_owned())?;
    let draft = within.join(format!(".a2a-hub-new-{chance:08x}"));
    fs::create_dir(&draft).doing(|| format!("make a folder in {}", within.display()))?;
    let filled = fill(&draft, files).doing(|| format!("write the files of {}", path.display()));
    let moved = filled.and_then(|()| {
        renameat_with(CWD, &draft, CWD, path, RenameFlags::NOREPLACE).map_err(|why| match why {
            Errno::EXIST => taken(),
            why => {
                AuthoringError::because(format!("make {}", path.display()), io::Error::from(why))
            }
        })
    });
    if moved.is_err() {
        // Removes the incomplete draft; leftovers do no harm.
        let _ = fs::remove_dir_all(&draft);
    }
    moved
}

fn fill(dir: &Path, files: &BTreeMap<PathBuf, Vec<u8>>) -> io::Result<()> {
    for (path, bytes) in files {
        let path = dir.join(path);
        fs::create_dir_all(path.parent().unwrap_or(dir))?;
        fs::write(path, bytes)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn project_is_created_atomically() {
        let dir = tempfile::tempdir().unwrap();
        let (within, place) = (dir.path(), dir.path().join("notes"));
        let files = BTreeMap::from([(PathBuf::from("src/lib.rs"), b"//! x".to_vec())]);
        make(within, &place, &files).unwrap();
        assert_eq!(fs::read(place.join("src/lib.rs")).unwrap(), b"//! x");
        let twice = make(within, &place, &files).unwrap_err().to_string();
        assert!(twice.contains("something is there already"), "{twice}");
        let link = dir.path().join("link");
        symlink("/nowhere", &link).unwrap();
        assert!(make(within, &link, &files).is_err());
        // A file in place of a folder makes it fail: nothing is left behind.
        let torn = BTreeMap::from([("a".into(), Vec::new()), ("a/b".into(), Vec::new())]);
        assert!(make(within, &dir.path().join("torn"), &torn).is_err());
        assert_eq!(fs::read_dir(within).unwrap().count(), 2, "the project, and the link");
    }
}
