//! Private files by their place: below the directory of the user's profile.
//!
//! The standard library reads no access lists. Windows gives a profile's directory a list that
//! files below it inherit, so the place decides.

use super::not_private::NotPrivate;
use std::{
    env, fs,
    fs::{File, OpenOptions},
    io,
    path::{Path, PathBuf},
};

/// Permissions of the group and of others, as a mode.
const OF_OTHERS: u32 = 0o077;

/// Opens a plain file for reading. If others must not have one of the `forbidden` permissions,
/// given as a mode such as `0o022` for writing, the file must be below the user's profile.
///
/// # Errors
///
/// Fails if the file does not satisfy this.
pub fn open(path: &Path, forbidden: u32) -> Result<File, NotPrivate> {
    open_in(env::home_dir(), path, forbidden)
}

fn open_in(profile: Option<PathBuf>, path: &Path, forbidden: u32) -> Result<File, NotPrivate> {
    let meta = fs::symlink_metadata(path)?;
    if meta.is_symlink() {
        return Err(NotPrivate::Link);
    }
    if !meta.is_file() {
        return Err(NotPrivate::NotPlain);
    }
    if forbidden & OF_OTHERS != 0 && !is_in(profile, path)? {
        return Err(NotPrivate::Shared);
    }
    Ok(File::open(path)?)
}

/// True if the path, without links, is below the profile.
fn is_in(profile: Option<PathBuf>, path: &Path) -> io::Result<bool> {
    let Some(profile) = profile.filter(|it| it.is_absolute()) else { return Ok(false) };
    Ok(path.canonicalize()?.starts_with(profile.canonicalize()?))
}

/// True if a file at this path, which need not exist, can be private: its place is below the
/// profile.
pub fn can_be_private(path: &Path) -> bool {
    can_be_private_in(env::home_dir(), path)
}

fn can_be_private_in(profile: Option<PathBuf>, path: &Path) -> bool {
    let Ok(path) = std::path::absolute(path) else { return false };
    let existing = path.ancestors().find(|it| it.symlink_metadata().is_ok());
    existing.is_some_and(|it| is_in(profile, it).unwrap_or_default())
}

/// Creates a file for writing.
pub(super) fn create(path: &Path) -> io::Result<File> {
    create_in(env::home_dir(), path)
}

fn create_in(profile: Option<PathBuf>, path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().write(true).create_new(true).open(path)?;
    if is_in(profile, path)? {
        return Ok(file);
    }
    drop(file);
    fs::remove_file(path)?;
    Err(io::Error::new(io::ErrorKind::PermissionDenied, format!("others may read it; {MOVE}")))
}

/// Creates a directory, and the missing ones above it.
///
/// # Errors
///
/// Returns the error of the system.
pub fn create_dir(path: &Path) -> io::Result<()> {
    fs::create_dir_all(path)
}

/// Renames are durable once the system has written its journal: directories cannot be synced.
pub(super) fn sync_dir(_: &Path) -> io::Result<()> {
    Ok(())
}

/// Rule for private files.
const MOVE: &str = "private files must be below the directory of your profile";

/// Way to make a file private, for an error about it.
pub fn remedy(_: &Path) -> String {
    MOVE.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn private_file_must_be_below_profile() {
        let (dir, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let profile = || Some(dir.path().to_owned());
        let file = dir.path().join("key");
        drop(create_in(profile(), &file).unwrap());
        assert!(create_in(profile(), &file).is_err(), "the file exists");
        assert!(open_in(profile(), &file, 0o077).is_ok());
        for wrong in [None, Some(other.path().to_owned()), Some(PathBuf::from("key"))] {
            let opened = open_in(wrong.clone(), &file, 0o077);
            assert!(matches!(opened, Err(NotPrivate::Shared)), "{wrong:?}");
            assert!(open_in(wrong, &file, 0).is_ok(), "others may read it");
        }
        assert!(matches!(open_in(profile(), dir.path(), 0), Err(NotPrivate::NotPlain)));
        let missing = open_in(profile(), &dir.path().join("none"), 0o077);
        assert!(
            matches!(missing, Err(NotPrivate::Io(why)) if why.kind() == io::ErrorKind::NotFound)
        );
    }

    #[test]
    fn key_outside_of_profile_is_not_written() {
        let (dir, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let file = other.path().join("key");
        let why = create_in(Some(dir.path().to_owned()), &file).unwrap_err().to_string();
        assert!(why.contains(MOVE), "{why}");
        let profile = || Some(dir.path().to_owned());
        assert!(!can_be_private_in(profile(), &file));
        assert!(can_be_private_in(profile(), &dir.path().join("new").join("key")));
        assert!(!file.exists());
        // A path that leaves the profile by its parts is outside of it.
        let escape = dir.path().join("..").join(other.path().file_name().unwrap()).join("key");
        assert!(create_in(Some(dir.path().to_owned()), &escape).is_err());
    }
}
