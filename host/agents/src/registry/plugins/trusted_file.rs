//! Files that only this user can have written: components and flow files.

use super::file_error::FileError;
use a2a_hub_config::private_file::{self, NotPrivate};
use bytes::Bytes;
use std::{
    fs::{self, File},
    io::Read as _,
    os::unix::fs::MetadataExt as _,
    path::Path,
};

/// Metadata of a file that changes with its content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::registry) struct FileStamp {
    inode: u64,
    pub(in crate::registry) size: u64,
    changed: (i64, i64),
}

impl FileStamp {
    pub(in crate::registry) fn from_metadata(meta: &fs::Metadata) -> Self {
        Self { inode: meta.ino(), size: meta.len(), changed: (meta.ctime(), meta.ctime_nsec()) }
    }
}

/// Reads a file that only this user can have written. The checks apply to the open file, and the
/// bytes are read once for hash and compiler.
pub(in crate::registry) fn read_trusted(path: &Path, max_bytes: u64) -> Result<Bytes, FileError> {
    let file = private_file::open(path, 0o022).map_err(|why| match why {
        NotPrivate::Io(why) => FileError::Io(why),
        NotPrivate::Link | NotPrivate::NotPlain => FileError::NotPlain,
        NotPrivate::Foreign => FileError::Foreign,
        NotPrivate::Shared => FileError::Writable,
    })?;
    if file.metadata()?.nlink() != 1 {
        return Err(FileError::NotPlain);
    }
    read_all(file, max_bytes)
}

/// Reads an open file up to a limit.
pub(in crate::registry) fn read_all(file: File, max_bytes: u64) -> Result<Bytes, FileError> {
    let mut bytes = Vec::new();
    file.take(max_bytes + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > max_bytes {
        return Err(FileError::Large(max_bytes));
    }
    Ok(bytes.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    const MAX_BYTES: u64 = 64;

    #[test]
    fn shared_or_linked_file_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("a.wasm");
        fs::write(&file, "x").unwrap();
        assert_eq!(read_trusted(&file, MAX_BYTES).unwrap(), "x");

        fs::set_permissions(&file, fs::Permissions::from_mode(0o662)).unwrap();
        assert!(matches!(read_trusted(&file, MAX_BYTES), Err(FileError::Writable)));
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();

        let link = dir.path().join("link.wasm");
        symlink(&file, &link).unwrap();
        assert!(matches!(read_trusted(&link, MAX_BYTES), Err(FileError::NotPlain)));
        fs::hard_link(&file, dir.path().join("twin.wasm")).unwrap();
        assert!(matches!(read_trusted(&file, MAX_BYTES), Err(FileError::NotPlain)));
        assert!(matches!(read_trusted(dir.path(), MAX_BYTES), Err(FileError::NotPlain)));
    }
}
