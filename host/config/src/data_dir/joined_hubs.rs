//! File `hubs.toml` in the data directory: remote hubs that this user joined, with the API keys
//! for them. Nobody else may read it.

use crate::{
    client_tls::ClientTlsFiles,
    data_dir::private_file::{self, NotPrivate},
};
use serde::{Deserialize, Serialize};
use std::{
    fmt,
    path::{Path, PathBuf},
};

/// Name of the file.
const FILE: &str = "hubs.toml";

/// Largest size of the file, in bytes.
const MAX_BYTES: u64 = 1 << 18;

/// File of the joined hubs of one data directory.
#[derive(Debug)]
pub struct JoinedHubs {
    path: PathBuf,
}

/// A remote hub that this user joined.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JoinedHub {
    /// Name under which commands find it.
    pub name: String,
    /// URL of the hub, without a trailing slash.
    pub url: String,
    /// Name of the person there.
    pub person: String,
    /// API key: a secret.
    pub key: String,
    /// Files for TLS.
    #[serde(default, skip_serializing_if = "ClientTlsFiles::is_empty")]
    pub tls: ClientTlsFiles,
}

/// Without the key.
impl fmt::Debug for JoinedHub {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, url, person, key: _, tls } = self;
        let mut shown = f.debug_struct("JoinedHub");
        shown.field("name", name).field("url", url).field("person", person).field("tls", tls);
        shown.finish_non_exhaustive()
    }
}

#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredHubs {
    #[serde(default, rename = "hub")]
    hubs: Vec<JoinedHub>,
}

/// Error of reading or writing the file.
#[derive(Debug, thiserror::Error)]
#[error("use the joined hubs in {path}: {why}")]
pub struct JoinedHubsError {
    path: PathBuf,
    why: String,
}

impl JoinedHubs {
    /// File in this data directory.
    pub fn new(data_dir: &Path) -> Self {
        Self { path: data_dir.join(FILE) }
    }

    /// Path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn failed(&self, why: impl Into<String>) -> JoinedHubsError {
        JoinedHubsError { path: self.path.clone(), why: why.into() }
    }

    /// Reads the hubs; none if the file does not exist. Blocks on disk I/O.
    ///
    /// # Errors
    ///
    /// If the file cannot be read, others may read it, or its content is not what `join` wrote.
    pub fn read(&self) -> Result<Vec<JoinedHub>, JoinedHubsError> {
        let text = match private_file::read_text(&self.path, 0o077, MAX_BYTES) {
            Ok(Some(text)) => text,
            // An invitation is spent before its key is written.
            Ok(None) if !private_file::can_be_private(&self.path) => {
                return Err(self.failed(private_file::remedy(&self.path)));
            }
            Ok(None) => return Ok(Vec::new()),
            Err(NotPrivate::Io(why)) => return Err(self.failed(why.to_string())),
            Err(
                NotPrivate::Link | NotPrivate::NotPlain | NotPrivate::Foreign | NotPrivate::Shared,
            ) => {
                let why = "others may read or write it, so its keys may be known; remove it, and \
                           join again";
                return Err(self.failed(why));
            }
        };
        let stored: StoredHubs = toml::from_str(&text).map_err(|why| self.failed(why.message()))?;
        Ok(stored.hubs)
    }

    /// Adds a hub, in place of one with the same name. Makes the data directory if it is missing.
    /// Blocks on disk I/O.
    ///
    /// # Errors
    ///
    /// As for [`read`](Self::read), or if the file cannot be written; it is then unchanged.
    pub fn add(&self, hub: JoinedHub) -> Result<(), JoinedHubsError> {
        let mut hubs = self.read()?;
        hubs.retain(|other| other.name != hub.name);
        hubs.push(hub);
        if let Some(dir) = self.path.parent() {
            private_file::create_dir(dir).map_err(|why| self.failed(why.to_string()))?;
        }
        let text =
            toml::to_string(&StoredHubs { hubs }).map_err(|why| self.failed(why.to_string()))?;
        private_file::replace(&self.path, text.as_bytes())
            .map_err(|why| self.failed(why.to_string()))
    }
}

#[cfg(all(test, unix, not(feature = "without-unix")))]
mod tests {
    use super::*;
    use std::{fs, os::unix::fs::PermissionsExt as _};

    fn hub(name: &str, key: &str) -> JoinedHub {
        let (name, key) = (name.to_owned(), key.to_owned());
        let (url, person) = ("https://hub.example".to_owned(), "ada".to_owned());
        JoinedHub { name, key, url, person, tls: ClientTlsFiles::default() }
    }

    #[test]
    fn joined_hubs_are_private_and_replaced_by_name() {
        let dir = tempfile::tempdir().unwrap();
        let file = JoinedHubs::new(&dir.path().join("new"));
        assert_eq!(file.read().unwrap(), []);
        file.add(hub("team", "a2ah_1")).unwrap();
        let ca = Some(PathBuf::from("/etc/ca.pem"));
        let other = JoinedHub {
            tls: ClientTlsFiles { ca, ..ClientTlsFiles::default() },
            ..hub("other", "a2ah_2")
        };
        file.add(other.clone()).unwrap();
        let shown = format!("{:?}", file.read().unwrap());
        assert!(shown.contains("team") && !shown.contains("a2ah_1"), "{shown}");
        file.add(hub("team", "a2ah_3")).unwrap();
        assert_eq!(file.read().unwrap(), [other, hub("team", "a2ah_3")]);
        assert_eq!(fs::metadata(file.path()).unwrap().permissions().mode() & 0o777, 0o600);
        fs::set_permissions(file.path(), fs::Permissions::from_mode(0o640)).unwrap();
        let refused = file.add(hub("third", "a2ah_4")).unwrap_err().to_string();
        assert!(refused.contains("others may read"), "{refused}");
        fs::set_permissions(file.path(), fs::Permissions::from_mode(0o600)).unwrap();
        fs::write(file.path(), "hub = 1").unwrap();
        let damaged = file.read().unwrap_err().to_string();
        assert!(!damaged.contains("a2ah_"), "{damaged}");
    }
}
