//! Files `.a2a-hub/worktree.toml` that the operator trusts: a copy of each in the folder
//! `trusted-worktrees` of the data directory, by the digest of its repository's path. A file is
//! trusted as long as its text equals the copy.
//!
//! Write access to this folder is operator access: a copy that others may write to counts as none.

use crate::data_dir::{private_file, trusted_flows::trusted_text};
use sha2::{Digest as _, Sha256};
use std::{
    fs::{self, DirBuilder},
    io,
    os::unix::{ffi::OsStrExt as _, fs::DirBuilderExt as _},
    path::{Path, PathBuf},
};

/// Name of the folder in the data directory.
const FOLDER: &str = "trusted-worktrees";

/// Trusted files of one data directory.
#[derive(Clone, Debug)]
pub struct TrustedWorktrees {
    dir: PathBuf,
}

impl TrustedWorktrees {
    /// Trusted files of the hub with this data directory.
    pub fn new(data_dir: &Path) -> Self {
        Self { dir: data_dir.join(FOLDER) }
    }

    /// Path of the copy for a repository, which its git directory stands for.
    pub fn path(&self, repository: &Path) -> PathBuf {
        let digest = hex::encode(Sha256::digest(repository.as_os_str().as_bytes()));
        self.dir.join(format!("{digest}.toml"))
    }

    /// Text that is trusted in a repository; `None` without a copy that counts. Blocks on disk I/O.
    ///
    /// # Errors
    ///
    /// Returns the error of the system if the copy cannot be read.
    pub fn text(&self, repository: &Path) -> io::Result<Option<String>> {
        trusted_text(&self.path(repository))
    }

    /// Trusts this text in a repository.
    ///
    /// # Errors
    ///
    /// Returns the error of the system; the old copy is then unchanged.
    pub fn trust(&self, repository: &Path, text: &str) -> io::Result<()> {
        DirBuilder::new().recursive(true).mode(0o700).create(&self.dir)?;
        private_file::replace(&self.path(repository), text.as_bytes())
    }

    /// Trusts no text in a repository any longer.
    ///
    /// # Errors
    ///
    /// Returns the error of the system if the copy still exists.
    pub fn revoke(&self, repository: &Path) -> io::Result<()> {
        private_file::ok_if_missing(fs::remove_file(self.path(repository)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trust_counts_for_one_repository() {
        let dir = tempfile::tempdir().unwrap();
        let trusted = TrustedWorktrees::new(dir.path());
        let (one, other) = (Path::new("/src/one/.git"), Path::new("/src/other/.git"));
        assert_eq!(trusted.text(one).unwrap(), None);
        trusted.trust(one, "ports = 1").unwrap();
        assert_eq!(trusted.text(one).unwrap().as_deref(), Some("ports = 1"));
        assert_eq!(trusted.text(other).unwrap(), None);
        trusted.revoke(one).unwrap();
        trusted.revoke(one).unwrap();
        assert_eq!(trusted.text(one).unwrap(), None);
    }
}
