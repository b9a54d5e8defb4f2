//! Working directory of a program, held open from its check to the start of the program. A rename
//! or a new link on its path cannot redirect the start (CWE-367, time of check to time of use).

use rustix::fs::{AtFlags, Mode, OFlags, fstat, open, statat};
use std::{
    fmt,
    fs::{self, File},
    io,
    os::{
        fd::{AsRawFd as _, OwnedFd},
        unix::fs::OpenOptionsExt as _,
    },
    path::{Path, PathBuf},
    sync::Arc,
};

/// An open directory and its path when it was opened. Clones share the handle.
#[derive(Clone)]
pub struct WorkingDirectory {
    path: PathBuf,
    handle: Arc<OwnedFd>,
    /// Device and inode, which distinguish the directory from another one at the same path.
    identity: (u64, u64),
}

impl WorkingDirectory {
    /// Opens a directory, following links. Blocks on the disk.
    ///
    /// # Errors
    /// The system's, if the path is no directory that this process may enter.
    pub fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let handle = open(path, flags, Mode::empty())?;
        let stat = fstat(&handle)?;
        // The path `.` requires the permission to enter the directory, and not only to open its
        // name.
        statat(&handle, ".", AtFlags::empty())?;
        // The kernel appends a word to the path of a removed directory, and another directory may
        // have that path.
        if stat.st_nlink == 0 {
            return Err(io::ErrorKind::NotFound.into());
        }
        let path = fs::read_link(entry(&handle))?;
        #[expect(clippy::useless_conversion, reason = "of 32 bits on some machines")]
        let identity = (u64::from(stat.st_dev), u64::from(stat.st_ino));
        Ok(Self { path, handle: Arc::new(handle), identity })
    }

    /// The path without links that the directory had when it was opened.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Opens the same directory again, to read its entries. Blocks on the disk.
    ///
    /// # Errors
    /// The system's, if this process may not read it.
    pub fn reopen(&self) -> io::Result<File> {
        let flags = OFlags::DIRECTORY.bits().cast_signed();
        File::options().read(true).custom_flags(flags).open(self.entry())
    }

    /// Path by which this process, and its children between fork and exec, reach the same
    /// directory.
    pub(super) fn entry(&self) -> PathBuf {
        entry(&self.handle)
    }
}

/// Path of a descriptor in `/proc`, which leads to the open file itself, independent of the file's
/// path.
fn entry(handle: &OwnedFd) -> PathBuf {
    format!("/proc/self/fd/{}", handle.as_raw_fd()).into()
}

/// Equal if both are the same directory at the same path.
impl PartialEq for WorkingDirectory {
    fn eq(&self, other: &Self) -> bool {
        self.path == other.path && self.identity == other.identity
    }
}

impl Eq for WorkingDirectory {}

impl fmt::Debug for WorkingDirectory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.path.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn open_directory_stays_itself_whatever_replaces_it() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().canonicalize().unwrap();
        let (work, link) = (root.join("work"), root.join("link"));
        fs::create_dir(&work).unwrap();
        symlink(&work, &link).unwrap();
        let opened = WorkingDirectory::open(&link).unwrap();
        assert_eq!(opened.path(), work);
        assert_eq!(opened, WorkingDirectory::open(&work).unwrap());

        fs::write(work.join("mine"), "").unwrap();
        fs::rename(&work, root.join("moved")).unwrap();
        fs::create_dir(&work).unwrap();
        assert!(opened.entry().join("mine").exists() && opened.reopen().is_ok());
        assert_ne!(opened, WorkingDirectory::open(&work).unwrap(), "of the same name");
    }

    #[test]
    fn missing_file_and_removed_directory_are_refused() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("file");
        fs::write(&file, "").unwrap();
        for (path, why) in [
            (file, io::ErrorKind::NotADirectory),
            (place.path().join("no"), io::ErrorKind::NotFound),
        ] {
            assert_eq!(WorkingDirectory::open(&path).unwrap_err().kind(), why);
        }
        let gone = place.path().join("gone");
        fs::create_dir(&gone).unwrap();
        let opened = WorkingDirectory::open(&gone).unwrap();
        fs::remove_dir(&gone).unwrap();
        assert_eq!(
            WorkingDirectory::open(&opened.entry()).unwrap_err().kind(),
            io::ErrorKind::NotFound
        );
    }
}
