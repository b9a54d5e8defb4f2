//! Reads of directories that agents may write: by handles, without following links, and bounded.

use rustix::{
    fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat, fstat, open, openat, statat},
    io::Errno,
};
use std::{
    fs::File,
    io::{self, Read as _},
    os::fd::{AsFd, OwnedFd},
    path::Path,
};

/// Maximum depth of a walk: each level holds a file descriptor.
const MAX_DEPTH: usize = 32;

/// Error of a walk.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WalkError {
    /// The system refused a read.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The tree has too many entries.
    #[error("it has more than {0} entries")]
    TooMany(usize),
}

impl From<Errno> for WalkError {
    fn from(why: Errno) -> Self {
        Self::Io(why.into())
    }
}

/// Opens a directory that the operator named.
pub(crate) fn directory(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(open(path, flags, Mode::empty())?)
}

/// Opens a directory below another one; `None` if it does not exist, or is no directory.
pub(crate) fn directory_in(parent: impl AsFd, name: &str) -> io::Result<Option<OwnedFd>> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    match openat(parent, name, flags, Mode::empty()) {
        Ok(opened) => Ok(Some(opened)),
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(None),
        Err(why) => Err(why.into()),
    }
}

/// Reads a plain file of at most `max_bytes` bytes; `None` if it does not exist.
pub(crate) fn file_in(
    parent: impl AsFd,
    name: &str,
    max_bytes: u64,
) -> io::Result<Option<Vec<u8>>> {
    // Without `NONBLOCK`, opening a pipe that somebody put there would wait for its writer.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = match openat(parent, name, flags, Mode::empty()) {
        Ok(file) => file,
        Err(Errno::NOENT) => return Ok(None),
        Err(Errno::LOOP) => return Err(io::Error::other(format!("`{name}` is a symbolic link"))),
        Err(why) => return Err(why.into()),
    };
    let stat = fstat(&file)?;
    if !FileType::from_raw_mode(stat.st_mode).is_file() {
        return Err(io::Error::other(format!("`{name}` is no plain file")));
    }
    let mut bytes = Vec::new();
    File::from(file).take(max_bytes + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > max_bytes {
        return Err(io::Error::other(format!("`{name}` has more than {max_bytes} bytes")));
    }
    Ok(Some(bytes))
}

/// Called with the path of a plain file, its directory, its name there, and its metadata.
pub(crate) type FileVisitor<'v> =
    dyn FnMut(String, &OwnedFd, &str, &Stat) -> Result<(), WalkError> + 'v;

/// Walk of a tree of directories, bounded in entries and depth.
pub(crate) struct BoundedWalk<'a> {
    /// Tests if a directory must be read, by its path below the first one.
    pub(crate) enters: &'a dyn Fn(&str) -> bool,
    /// Maximum number of entries.
    pub(crate) max_entries: usize,
    entries: usize,
}

impl<'a> BoundedWalk<'a> {
    pub(crate) fn new(max_entries: usize, enters: &'a dyn Fn(&str) -> bool) -> Self {
        Self { enters, max_entries, entries: 0 }
    }

    /// Calls `on_file` for each plain file. Leaves out what vanishes meanwhile, and directories
    /// that this user may not read.
    pub(crate) fn run(
        &mut self,
        dir: impl AsFd,
        on_file: &mut FileVisitor<'_>,
    ) -> Result<(), WalkError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let dir = openat(dir, ".", flags, Mode::empty())?;
        self.descend(&dir, "", 0, on_file)
    }

    fn descend(
        &mut self,
        dir: &OwnedFd,
        parent: &str,
        depth: usize,
        on_file: &mut FileVisitor<'_>,
    ) -> Result<(), WalkError> {
        for entry in Dir::read_from(dir)? {
            let entry = entry?;
            let name = entry.file_name();
            if name == c"." || name == c".." {
                continue;
            }
            self.entries += 1;
            if self.entries > self.max_entries {
                return Err(WalkError::TooMany(self.max_entries));
            }
            // A name that is not UTF-8 cannot be written in JSON, and no pattern matches it.
            let Ok(name) = name.to_str() else { continue };
            let path = if parent.is_empty() { name.to_owned() } else { format!("{parent}/{name}") };
            let stat = match statat(dir, name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) => stat,
                Err(Errno::NOENT) => continue,
                Err(why) => return Err(why.into()),
            };
            let kind = FileType::from_raw_mode(stat.st_mode);
            if kind.is_file() {
                on_file(path, dir, name, &stat)?;
            } else if kind.is_dir() && depth < MAX_DEPTH && (self.enters)(&path) {
                match directory_in(dir, name) {
                    Ok(Some(child)) => self.descend(&child, &path, depth + 1, on_file)?,
                    Ok(None) => {}
                    Err(why) if why.kind() == io::ErrorKind::PermissionDenied => {}
                    Err(why) => return Err(why.into()),
                }
            }
        }
        Ok(())
    }
}
