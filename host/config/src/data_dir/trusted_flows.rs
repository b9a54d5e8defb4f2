//! Flow files that the operator trusts: a copy of each in the folder `trusted-flows` of the data
//! directory. A flow is trusted as long as its file equals the copy.
//!
//! Write access to this folder is operator access: a copy that others may write to counts as none.

use crate::data_dir::private_file::{self, NotPrivate};
use a2a_hub_protocol::id::AgentId;
use std::{
    fs::{self, DirBuilder},
    io,
    os::unix::fs::{DirBuilderExt as _, MetadataExt as _},
    path::{Path, PathBuf},
};

/// Name of the folder in the data directory.
const FOLDER: &str = "trusted-flows";

/// Size limit of a flow file and of its copy, in bytes.
pub const MAX_FLOW_BYTES: u64 = 64 << 10;

/// Trusted flows of one data directory.
#[derive(Clone, Debug)]
pub struct TrustedFlows {
    dir: PathBuf,
}

/// Metadata that changes with a copy.
pub type TrustStamp = (u64, u64, i64, i64);

impl TrustedFlows {
    /// Trusted flows of the hub with this data directory.
    pub fn new(data_dir: &Path) -> Self {
        Self { dir: data_dir.join(FOLDER) }
    }

    /// Path of a flow's copy.
    pub fn path(&self, flow: &AgentId) -> PathBuf {
        self.dir.join(format!("{flow}.flow.toml"))
    }

    /// Metadata of a flow's copy, to detect changes; `None` without a copy.
    pub fn stamp(&self, flow: &AgentId) -> Option<TrustStamp> {
        let meta = fs::symlink_metadata(self.path(flow)).ok()?;
        Some((meta.ino(), meta.len(), meta.ctime(), meta.ctime_nsec()))
    }

    /// Text of a flow that is trusted; `None` without a copy that counts. Blocks on disk I/O.
    ///
    /// # Errors
    ///
    /// Returns the error of the system if the copy cannot be read.
    pub fn text(&self, flow: &AgentId) -> io::Result<Option<String>> {
        trusted_text(&self.path(flow))
    }

    /// Trusts a flow with this text.
    ///
    /// # Errors
    ///
    /// Returns the error of the system with the path; the old copy is then unchanged.
    pub fn trust(&self, flow: &AgentId, text: &str) -> io::Result<()> {
        let path = self.path(flow);
        let created = DirBuilder::new().recursive(true).mode(0o700).create(&self.dir);
        let written = created.and_then(|()| private_file::replace(&path, text.as_bytes()));
        written
            .map_err(|why| io::Error::new(why.kind(), format!("write {}: {why}", path.display())))
    }

    /// Trusts a flow no longer.
    ///
    /// # Errors
    ///
    /// Returns the error of the system if the copy still exists.
    pub fn revoke(&self, flow: &AgentId) -> io::Result<()> {
        private_file::ok_if_missing(fs::remove_file(self.path(flow)))
    }
}

/// Text of a copy; `None` if it is missing, too large, or others may write to it.
pub(super) fn trusted_text(path: &Path) -> io::Result<Option<String>> {
    match private_file::read_text(path, 0o022, MAX_FLOW_BYTES) {
        Ok(text) => Ok(text),
        Err(NotPrivate::Io(why)) if why.kind() == io::ErrorKind::FileTooLarge => Ok(None),
        Err(NotPrivate::Io(why)) => Err(why),
        Err(NotPrivate::Link | NotPrivate::NotPlain | NotPrivate::Foreign | NotPrivate::Shared) => {
            Ok(None)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    #[test]
    fn unwritable_copy_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("plain");
        fs::write(&file, "").unwrap();
        let id = AgentId::parse("review").unwrap();
        let why = TrustedFlows::new(&file).trust(&id, "one").unwrap_err().to_string();
        assert!(why.starts_with(&format!("write {}/", file.display())), "{why}");
    }

    #[test]
    fn only_own_private_copy_counts() {
        let dir = tempfile::tempdir().unwrap();
        let (flows, id) = (TrustedFlows::new(dir.path()), AgentId::parse("review").unwrap());
        assert_eq!(flows.text(&id).unwrap(), None);
        flows.trust(&id, "one").unwrap();
        let stamp = flows.stamp(&id);
        assert_eq!(flows.text(&id).unwrap().as_deref(), Some("one"));
        flows.trust(&id, "two").unwrap();
        assert_eq!(flows.text(&id).unwrap().as_deref(), Some("two"));
        assert_ne!(flows.stamp(&id), stamp);
        fs::set_permissions(flows.path(&id), fs::Permissions::from_mode(0o666)).unwrap();
        assert_eq!(flows.text(&id).unwrap(), None, "others may write to it");
        flows.revoke(&id).unwrap();
        flows.revoke(&id).unwrap();
        let other = dir.path().join("other");
        fs::write(&other, "three").unwrap();
        symlink(&other, flows.path(&id)).unwrap();
        assert_eq!(flows.text(&id).unwrap(), None, "it is a link");
    }
}
