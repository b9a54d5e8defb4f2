//! Private files by their owner and mode.

use super::not_private::NotPrivate;
use rustix::{
    fs::{Mode, OFlags},
    io::Errno,
};
use std::{
    fs::{self, File},
    io,
    os::unix::fs::{DirBuilderExt as _, MetadataExt as _},
    path::Path,
};

/// Opens a plain file of this user for reading. Others must have none of the `forbidden`
/// permissions, given as a mode such as `0o022` for writing. The opened file is checked, not the
/// path.
///
/// # Errors
///
/// Fails if the file does not satisfy this.
pub fn open(path: &Path, forbidden: u32) -> Result<File, NotPrivate> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let file = rustix::fs::open(path, flags, Mode::empty()).map_err(|why| match why {
        Errno::LOOP => NotPrivate::Link,
        why => NotPrivate::Io(why.into()),
    })?;
    let file = File::from(file);
    let meta = file.metadata()?;
    if !meta.is_file() {
        return Err(NotPrivate::NotPlain);
    }
    if meta.uid() != rustix::process::geteuid().as_raw() {
        return Err(NotPrivate::Foreign);
    }
    if meta.mode() & forbidden != 0 {
        return Err(NotPrivate::Shared);
    }
    Ok(file)
}

/// True if a file at this path, which need not exist, can be private: a mode can be set anywhere.
pub fn can_be_private(_: &Path) -> bool {
    true
}

/// Creates a file of mode 0600, for writing.
pub(super) fn create(path: &Path) -> io::Result<File> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    Ok(File::from(rustix::fs::open(path, flags, Mode::RUSR | Mode::WUSR)?))
}

/// Creates a directory of mode 0700, and the missing ones above it.
///
/// # Errors
///
/// Returns the error of the system.
pub fn create_dir(path: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Writes the entries of a directory to the disk.
pub(super) fn sync_dir(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

/// Way to make a file private, for an error about it.
pub fn remedy(path: &Path) -> String {
    format!("run `chmod 600 {}`", path.display())
}
