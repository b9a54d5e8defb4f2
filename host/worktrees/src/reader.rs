//! Reader of files that an agent or a repository may have made: `.git`, `commondir`, `alternates`,
//! refs, configuration, ignore rules, and the files of a work tree.
//!
//! A path is resolved beneath an open directory, and never through a link (CWE-59). A file is
//! opened without waiting, so that a FIFO holds up nobody (CWE-400). Only plain files of limited
//! size are read.

use rustix::{
    fs::{
        AtFlags, FileType, Mode, OFlags, RawDir, ResolveFlags, Stat, openat2, readlinkat, statat,
    },
    io::Errno,
};
use std::{
    ffi::OsStr,
    fs::File,
    io::{self, Read as _},
    mem::MaybeUninit,
    os::unix::ffi::OsStrExt as _,
    path::Path,
};

/// Longest path that the kernel resolves, without the NUL (PATH_MAX of limits.h).
pub(crate) const MAX_PATH: usize = 4_095;

/// Reason why a file was not read. It finishes "`PATH` …".
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReadError {
    #[error("is a link, or lies behind one, and links are not followed there")]
    Link,
    #[error("is no regular file")]
    NotPlain,
    #[error("is larger than {0} bytes")]
    TooLarge(u64),
    #[error("cannot be read: {0}")]
    Io(#[from] io::Error),
}

impl From<Errno> for ReadError {
    fn from(errno: Errno) -> Self {
        match errno {
            // `XDEV`: the path leads out of the directory.
            Errno::LOOP | Errno::XDEV => Self::Link,
            Errno::NXIO => Self::NotPlain,
            errno => Self::Io(errno.into()),
        }
    }
}

/// An open directory. All paths given to it are relative, and stay beneath it.
#[derive(Debug)]
pub(crate) struct OpenDirectory(File);

/// One entry of a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DirectoryEntry {
    pub(crate) name: Vec<u8>,
    /// Type as the directory tells it; `Unknown` on some file systems.
    pub(crate) kind: FileType,
}

impl OpenDirectory {
    /// Opens a directory by its absolute path, which has no links.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        Ok(Self(File::from(openat2(rustix::fs::CWD, path, flags, Mode::empty(), resolve)?)))
    }

    /// The handle, for system calls that change entries.
    pub(crate) fn handle(&self) -> &File {
        &self.0
    }

    /// Opens a directory beneath this one; none if it is missing, or no directory.
    pub(crate) fn directory(&self, path: impl AsRef<Path>) -> Result<Option<Self>, ReadError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        match self.open_beneath(path.as_ref(), flags) {
            Ok(file) => Ok(Some(Self(file))),
            Err(Errno::NOENT | Errno::NOTDIR) => Ok(None),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Opens a plain file; none if it is missing.
    pub(crate) fn file(&self, path: impl AsRef<Path>) -> Result<Option<File>, ReadError> {
        let file = match self.open_beneath(path.as_ref(), OFlags::RDONLY | OFlags::NONBLOCK) {
            Ok(file) => file,
            Err(Errno::NOENT | Errno::NOTDIR) => return Ok(None),
            Err(errno) => return Err(errno.into()),
        };
        if file.metadata()?.is_file() { Ok(Some(file)) } else { Err(ReadError::NotPlain) }
    }

    /// Content of a plain file of at most `limit` bytes; none if it is missing.
    pub(crate) fn bytes(
        &self,
        path: impl AsRef<Path>,
        limit: u64,
    ) -> Result<Option<Vec<u8>>, ReadError> {
        let Some(file) = self.file(path)? else { return Ok(None) };
        let mut bytes = Vec::new();
        // The file may grow meanwhile.
        file.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
        let fits = u64::try_from(bytes.len()).is_ok_and(|length| length <= limit);
        if fits { Ok(Some(bytes)) } else { Err(ReadError::TooLarge(limit)) }
    }

    /// Metadata of an entry, without following it; none if it is missing.
    pub(crate) fn stat(&self, path: impl AsRef<Path>) -> Result<Option<Stat>, ReadError> {
        let path = path.as_ref();
        let (parent, name) = split(path);
        let found = if parent.as_os_str().is_empty() {
            statat(&self.0, name, AtFlags::SYMLINK_NOFOLLOW)
        } else {
            match self.directory(parent)? {
                Some(parent) => statat(&parent.0, name, AtFlags::SYMLINK_NOFOLLOW),
                None => return Ok(None),
            }
        };
        match found {
            Ok(stat) => Ok(Some(stat)),
            Err(Errno::NOENT | Errno::NOTDIR) => Ok(None),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Target of a symbolic link.
    pub(crate) fn link(&self, path: impl AsRef<Path>) -> Result<Vec<u8>, ReadError> {
        let (parent, name) = split(path.as_ref());
        let read = |file: &File| readlinkat(file, name, Vec::new());
        let target = if parent.as_os_str().is_empty() {
            read(&self.0)?
        } else {
            let parent = self.directory(parent)?.ok_or(Errno::NOENT)?;
            read(&parent.0)?
        };
        Ok(target.into_bytes())
    }

    /// Entries of the directory, without `.` and `..`, in the order of the file system; an error
    /// above `limit` of them.
    pub(crate) fn entries(&self, limit: usize) -> io::Result<Vec<DirectoryEntry>> {
        let mut found = Vec::new();
        // Another handle: reading moves the position of its own.
        let file = self.open_beneath(Path::new("."), OFlags::RDONLY | OFlags::DIRECTORY)?;
        let mut buffer = [MaybeUninit::uninit(); 32 << 10];
        let mut entries = RawDir::new(&file, &mut buffer);
        while let Some(entry) = entries.next() {
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            if matches!(name, b"." | b"..") {
                continue;
            }
            if found.len() == limit {
                return Err(io::Error::other(format!("it has more than {limit} entries")));
            }
            found.push(DirectoryEntry { name: name.to_vec(), kind: entry.file_type() });
        }
        Ok(found)
    }

    fn open_beneath(&self, path: &Path, flags: OFlags) -> Result<File, Errno> {
        let resolve =
            ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        loop {
            match openat2(&self.0, path, flags | OFlags::CLOEXEC, Mode::empty(), resolve) {
                // A rename of a directory above races with the resolution (openat2(2)).
                Err(Errno::AGAIN) => std::thread::yield_now(),
                opened => return opened.map(File::from),
            }
        }
    }
}

/// Directory and name of a path.
fn split(path: &Path) -> (&Path, &OsStr) {
    let parent = path.parent().unwrap_or(Path::new(""));
    (parent, path.file_name().unwrap_or(OsStr::new(".")))
}

/// Text of a file with one line, without the line end; none if it is empty or not UTF-8.
pub(crate) fn line(bytes: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(bytes).ok()?.trim_end_matches(['\n', '\r']);
    (!text.is_empty() && !text.contains('\n')).then_some(text)
}

/// A path of git, whose parts are separated by slashes.
pub(crate) fn as_path(path: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{fs, os::unix::fs::symlink};

    #[test]
    fn links_fifos_and_large_files_are_refused() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().canonicalize().unwrap();
        fs::create_dir_all(root.join("in/deep")).unwrap();
        fs::create_dir(root.join("out")).unwrap();
        fs::write(root.join("out/secret"), "hush").unwrap();
        fs::write(root.join("in/deep/plain"), "plain\n").unwrap();
        symlink("../out/secret", root.join("in/link")).unwrap();
        symlink("../out", root.join("in/linked")).unwrap();
        rustix::fs::mknodat(
            rustix::fs::CWD,
            root.join("in/fifo"),
            FileType::Fifo,
            Mode::from_raw_mode(0o600),
            0,
        )
        .unwrap();
        let read = |path: &str| {
            OpenDirectory::open(&root.join("in"))
                .unwrap()
                .bytes(path, 6)
                .map_err(|why| why.to_string())
        };
        assert_eq!(read("deep/plain"), Ok(Some(b"plain\n".to_vec())));
        assert_eq!((read("missing"), read("deep/plain/x")), (Ok(None), Ok(None)));
        for (path, why) in [
            ("link", "is a link"),
            ("linked/secret", "is a link"),
            ("../out/secret", "is a link"),
            ("/etc/passwd", "is a link"),
            ("fifo", "no regular file"),
            ("deep", "no regular file"),
        ] {
            assert!(read(path).unwrap_err().contains(why), "{path}: {:?}", read(path));
        }
        fs::write(root.join("in/deep/plain"), "1234567").unwrap();
        assert!(read("deep/plain").unwrap_err().contains("larger than 6"));
        let root = OpenDirectory::open(&root.join("in")).unwrap();
        assert_eq!(root.link("link").unwrap(), b"../out/secret");
        assert!(root.directory("linked").is_err());
        let mut names: Vec<_> = root.entries(9).unwrap().into_iter().map(|it| it.name).collect();
        names.sort();
        assert_eq!(names, [&b"deep"[..], b"fifo", b"link", b"linked"]);
        assert!(root.entries(3).is_err());
    }
}
