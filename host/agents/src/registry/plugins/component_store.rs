//! Store of components by digest, in folders of the data directory. `components/<sha256>.wasm` has
//! components with a grant: the granted one runs from there while a new one in its file is held
//! back, also after a restart. `replays/<sha256>.wasm` has components whose runs are replayed after
//! a restart by the component that began them.

use a2a_hub_config::private_file;
use a2a_hub_sandbox::digest_of;
use bytes::Bytes;
use rustix::fs::{Mode, OFlags};
use std::{
    collections::BTreeSet,
    fmt,
    fs::{self, File},
    io::{self, Read as _},
    os::unix::fs::DirBuilderExt as _,
    path::{Path, PathBuf},
};

/// Folders in the data directory.
const GRANTED: &str = "components";
const REPLAYED: &str = "replays";

/// Largest component, in bytes; larger ones are not loaded either.
const MAX_BYTES: u64 = 128 << 20;

/// Stored copy of one component.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoredCopy {
    /// The component.
    Intact(Bytes),
    /// The file contains something else than the component.
    Damaged(PathBuf),
    /// The file is missing.
    Missing(PathBuf),
}

/// Describes the state of a copy, as the end of a sentence.
impl fmt::Display for StoredCopy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Intact(_) => f.write_str("the copy of the granted component is whole"),
            Self::Damaged(file) => {
                write!(f, "the copy of the granted component, {}, is damaged", file.display())
            }
            Self::Missing(file) => {
                write!(f, "the copy of the granted component, {}, is missing", file.display())
            }
        }
    }
}

/// Stored components of one hub. All methods block on the disk.
#[derive(Clone, Debug)]
pub struct ComponentStore {
    folder: PathBuf,
}

impl ComponentStore {
    /// Store of granted components in this data directory.
    pub fn for_grants(data_dir: &Path) -> Self {
        Self { folder: data_dir.join(GRANTED) }
    }

    /// Store of components for replays in this data directory.
    pub(in crate::registry) fn of_replays(data_dir: &Path) -> Self {
        Self { folder: data_dir.join(REPLAYED) }
    }

    /// Stores a copy of a component, unless one exists.
    ///
    /// # Errors
    ///
    /// If the copy cannot be written, such as on a full disk; then no copy exists.
    pub fn store(&self, component: &[u8]) -> io::Result<()> {
        let sha256 = digest_of(component);
        if self.read(&sha256)?.is_some() {
            return Ok(());
        }
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.folder)?;
        private_file::replace(&self.file(&sha256), component)
    }

    /// The component of this digest; none if the copy is missing or damaged.
    ///
    /// # Errors
    ///
    /// If the copy exists and cannot be read.
    pub fn read(&self, sha256: &str) -> io::Result<Option<Bytes>> {
        Ok(match self.load(sha256)? {
            StoredCopy::Intact(bytes) => Some(bytes),
            StoredCopy::Damaged(_) | StoredCopy::Missing(_) => None,
        })
    }

    /// State of the copy of this digest.
    ///
    /// # Errors
    ///
    /// If the copy exists and cannot be read.
    pub fn load(&self, sha256: &str) -> io::Result<StoredCopy> {
        // Validated, because the digest becomes a path.
        if sha256.len() != 64 || !sha256.bytes().all(|b| b.is_ascii_hexdigit()) {
            return Ok(StoredCopy::Missing(self.folder.clone()));
        }
        let path = self.file(sha256);
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let file = match rustix::fs::open(&path, flags, Mode::empty()) {
            Ok(file) => File::from(file),
            Err(rustix::io::Errno::NOENT) => return Ok(StoredCopy::Missing(path)),
            Err(rustix::io::Errno::LOOP) => return Ok(StoredCopy::Damaged(path)),
            Err(why) => return Err(why.into()),
        };
        let mut bytes = Vec::new();
        file.take(MAX_BYTES).read_to_end(&mut bytes)?;
        Ok(match digest_of(&bytes).eq_ignore_ascii_case(sha256) {
            true => StoredCopy::Intact(bytes.into()),
            false => StoredCopy::Damaged(path),
        })
    }

    /// Removes all copies except those of the given digests.
    ///
    /// # Errors
    ///
    /// If the folder cannot be read, or a copy cannot be removed.
    pub fn retain(&self, used: &BTreeSet<&str>) -> io::Result<()> {
        let entries = match fs::read_dir(&self.folder) {
            Err(why) if why.kind() == io::ErrorKind::NotFound => return Ok(()),
            entries => entries?,
        };
        for entry in entries {
            let name = entry?.file_name();
            let name = name.to_string_lossy();
            let is_used = name.strip_suffix(".wasm").is_some_and(|digest| used.contains(digest));
            if !is_used {
                private_file::ok_if_missing(fs::remove_file(self.folder.join(&*name)))?;
            }
        }
        Ok(())
    }

    fn file(&self, sha256: &str) -> PathBuf {
        self.folder.join(format!("{}.wasm", sha256.to_ascii_lowercase()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    #[test]
    fn copy_is_verified_by_digest() {
        let dir = tempfile::tempdir().unwrap();
        let kept = ComponentStore::for_grants(dir.path());
        let sha256 = digest_of(b"one");
        assert_eq!(kept.read(&sha256).unwrap(), None);
        kept.store(b"one").unwrap();
        kept.store(b"one").unwrap();
        assert_eq!(kept.read(&sha256).unwrap().unwrap(), "one");
        assert_eq!(kept.read(&sha256.to_uppercase()).unwrap().unwrap(), "one");
        let file = kept.file(&sha256);
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);

        fs::write(&file, "two").unwrap();
        assert_eq!(kept.read(&sha256).unwrap(), None, "somebody put another one there");
        assert_eq!(kept.load(&sha256).unwrap(), StoredCopy::Damaged(file.clone()));
        kept.store(b"one").unwrap();
        assert_eq!(kept.read(&sha256).unwrap().unwrap(), "one");
        fs::remove_file(&file).unwrap();
        assert_eq!(kept.load(&sha256).unwrap(), StoredCopy::Missing(file.clone()));
        symlink("/etc/hostname", &file).unwrap();
        assert_eq!(kept.read(&sha256).unwrap(), None);
        for name in ["", "../hub", "../../etc/passwd", &"z".repeat(64)] {
            assert_eq!(kept.read(name).unwrap(), None, "{name}");
        }
    }

    #[test]
    fn retain_removes_unused_copies() {
        let dir = tempfile::tempdir().unwrap();
        let kept = ComponentStore::for_grants(dir.path());
        kept.retain(&BTreeSet::new()).unwrap();
        kept.store(b"one").unwrap();
        kept.store(b"two").unwrap();
        let one = digest_of(b"one");
        kept.retain(&BTreeSet::from([one.as_str()])).unwrap();
        assert!(kept.read(&one).unwrap().is_some());
        assert_eq!(kept.read(&digest_of(b"two")).unwrap(), None);
    }
}
