//! Secrets that the hub adds to agents' requests: from its environment, or from files that only its
//! user can read. Each request looks them up, so that a change counts at once.

use crate::{
    data_dir::private_file::{self, NotPrivate},
    environment::environment,
};
use a2a_hub_core::{
    grant::EffectiveGrant,
    text::redact::{MIN_BYTES, Secrets, is_secret},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    io::{self, Read as _},
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

/// Folder of the data directory that contains the secrets.
const FOLDER: &str = "secrets";

/// Longest secret, in bytes: no header is longer.
const MAX_BYTES: u64 = 8 << 10;

/// Reads secrets from the environment and the data directory.
#[derive(Clone, Debug)]
pub struct SecretStore {
    folder: PathBuf,
}

/// Reason why a secret is not used.
#[derive(Debug, thiserror::Error)]
pub enum SecretError {
    /// Neither the variable nor the file exists.
    #[error("it has no value: set the variable `{name}` where the hub is started, or put it into {}, with mode 0600", .file.display())]
    Missing {
        /// Name of the secret, and of its variable.
        name: String,
        /// File that could contain it.
        file: PathBuf,
    },
    /// Another user could have written or read the file.
    #[error("{} is not the hub's alone: make it a plain file of the hub's own user, with `chmod 600`", .0.display())]
    Open(PathBuf),
    /// The value cannot be part of a header.
    #[error(
        "it is no text of one line with {MIN_BYTES} to {MAX_BYTES} bytes, which is what a header can have and the hub can find again"
    )]
    Unfit,
    /// The file cannot be read.
    #[error("read {}: {why}", .file.display())]
    Unread {
        /// The file.
        file: PathBuf,
        /// Reason of the system.
        why: io::Error,
    },
}

impl SecretStore {
    /// Secrets below this data directory.
    pub fn new(data_dir: &Path) -> Self {
        Self { folder: data_dir.join(FOLDER) }
    }

    /// Secrets of these names. Blocks on the disk.
    pub fn all<'n>(
        &self,
        names: impl IntoIterator<Item = &'n str>,
    ) -> Result<BTreeMap<String, String>, (String, SecretError)> {
        let secret = |name: &str| match self.secret(name) {
            Ok(value) => Ok((name.to_owned(), value)),
            Err(why) => Err((name.to_owned(), why)),
        };
        names.into_iter().map(secret).collect()
    }

    /// All secrets in files, by name; those that cannot be used are left out. Blocks on the disk.
    pub fn stored(&self) -> BTreeMap<String, String> {
        let files = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let names = files.filter_map(|file| file.file_name().into_string().ok());
        let named = names.filter_map(|name| self.all([name.as_str()]).ok());
        named.flatten().collect()
    }

    /// Values that an agent must not disclose: secrets among its variables and settings, and those
    /// that are sent for it. The agent never sees the latter here, but it may learn them another
    /// way.
    pub fn among(
        &self,
        known: impl Iterator<Item = (String, String)>,
        grant: &EffectiveGrant,
    ) -> Secrets {
        let sent = grant.http.secrets();
        let sent = sent.iter().filter_map(|name| self.all([name.as_str()]).ok()).flatten();
        Secrets::new(known.filter(|(name, _)| is_secret(name)).chain(sent))
    }

    /// One secret. The file takes precedence over the variable, because it is the operator's latest
    /// word.
    fn secret(&self, name: &str) -> Result<String, SecretError> {
        let file = self.folder.join(name);
        let value = match read(&file) {
            Err(SecretError::Unread { why, .. }) if why.kind() == io::ErrorKind::NotFound => {
                let mut passed = environment(&BTreeSet::from([name.to_owned()]));
                let name = name.to_owned();
                passed.pop().map(|(_, value)| value).ok_or(SecretError::Missing { name, file })?
            }
            read => read?,
        };
        let value = value.trim();
        let fits =
            value.len() >= MIN_BYTES && value.bytes().all(|byte| (b' '..0x7f).contains(&byte));
        if fits { Ok(value.to_owned()) } else { Err(SecretError::Unfit) }
    }
}

fn read(file: &Path) -> Result<String, SecretError> {
    let unread = |why| SecretError::Unread { file: file.to_owned(), why };
    let open = || SecretError::Open(file.to_owned());
    let opened = private_file::open(file, 0o077).map_err(|why| match why {
        NotPrivate::Io(why) => unread(why),
        NotPrivate::Link | NotPrivate::NotPlain | NotPrivate::Foreign | NotPrivate::Shared => {
            open()
        }
    })?;
    if opened.metadata().map_err(unread)?.nlink() != 1 {
        return Err(open());
    }
    let mut value = String::new();
    match opened.take(MAX_BYTES + 1).read_to_string(&mut value) {
        Ok(_) if value.len() as u64 <= MAX_BYTES => Ok(value),
        Ok(_) => Err(SecretError::Unfit),
        Err(why) if why.kind() == io::ErrorKind::InvalidData => Err(SecretError::Unfit),
        Err(why) => Err(unread(why)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    #[test]
    fn secret_file_must_be_private() {
        let data = tempfile::tempdir().unwrap();
        let store = SecretStore::new(data.path());
        let folder = data.path().join(FOLDER);
        fs::create_dir(&folder).unwrap();
        let file = folder.join("A_KEY");
        let write = |text: &str, mode: u32| {
            fs::write(&file, text).unwrap();
            fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
        };
        let said = || match store.all(["A_KEY"]) {
            Ok(found) => found["A_KEY"].clone(),
            Err((name, why)) => {
                format!("{name}: {why}").replace(data.path().to_str().unwrap(), "/data")
            }
        };
        assert_eq!(
            said(),
            "A_KEY: it has no value: set the variable `A_KEY` where the hub is started, or put it into /data/secrets/A_KEY, with mode \
             0600"
        );
        write("sk-12345678\n", 0o600);
        assert_eq!(said(), "sk-12345678");
        let open = "A_KEY: /data/secrets/A_KEY is not the hub's alone: make it a plain file of the hub's own user, with `chmod 600`";
        for mode in [0o640, 0o604, 0o660] {
            write("sk-12345678", mode);
            assert_eq!(said(), open);
        }
        let unfit = "A_KEY: it is no text of one line";
        let long = "x".repeat(9_000);
        for text in
            ["short", "two\nlines-of-it", "sk-\u{fc}\u{fc}\u{fc}\u{fc}\u{fc}", long.as_str()]
        {
            write(text, 0o600);
            assert!(said().starts_with(unfit), "{}", said());
        }
        write("sk-12345678", 0o600);
        fs::rename(&file, folder.join("OTHER")).unwrap();
        symlink(folder.join("OTHER"), &file).unwrap();
        assert_eq!(said(), open, "a link leads anywhere");
        fs::remove_file(&file).unwrap();
        fs::hard_link(folder.join("OTHER"), &file).unwrap();
        assert_eq!(said(), open, "somebody else may have put the link there");
    }
}
