//! Publisher's key, and detached minisign signatures of components.

use crate::{
    component::Component,
    error::{AuthoringError, Doing as _, FailureKind},
};
use a2a_hub_config::private_file::{self, NotPrivate};
use a2a_hub_core::{
    plugin::signature::{Provenance, TrustedKeys},
    text::plain_text,
};
use jiff::Timestamp;
use minisign::{KeyPair, PublicKey, SecretKey, SecretKeyBox};
use rustix::fs::{Mode, OFlags};
use std::{
    fmt,
    fs::{self, DirBuilder, File},
    io::{self, Read as _, Write as _},
    os::unix::fs::DirBuilderExt as _,
    path::{Path, PathBuf},
};

/// Maximum size, in bytes, of a key's file: two lines.
const MAX_BYTES: u64 = 4 << 10;

/// A new key.
#[derive(Debug)]
pub struct NewKey {
    /// Public key, in the form for an operator's configuration.
    pub base64: String,
    /// Path of the public key's file, next to that of the secret key.
    pub public: PathBuf,
}

impl NewKey {
    /// Creates a key and writes its secret half to the file `path`, encrypted if a password is
    /// given. Keys are never overwritten.
    ///
    /// # Errors
    /// If one of its files exists; and I/O errors.
    pub fn make(path: &Path, password: Option<String>) -> Result<Self, AuthoringError> {
        let pair = match password {
            None => KeyPair::generate_unencrypted_keypair(),
            password => KeyPair::generate_encrypted_keypair(password),
        };
        let KeyPair { pk, sk } = pair.doing(making)?;
        let folder = path.parent().unwrap_or(path);
        let created = DirBuilder::new().recursive(true).mode(0o700).create(folder);
        created.doing(|| format!("make {}", folder.display()))?;
        let comment = Some("secret key of an a2a-hub publisher");
        write_new(path, sk.to_box(comment).doing(making)?.to_string().as_bytes())?;
        let public = public_of(path);
        let boxed = pk.to_box().doing(making)?.to_string();
        if let Err(why) = write_new(&public, boxed.as_bytes()) {
            // The secret key is useless without the public one.
            let _ = fs::remove_file(path);
            return Err(why);
        }
        Ok(Self { base64: pk.to_base64(), public })
    }
}

/// Checks that a new key's files do not exist, before the user chooses a password.
///
/// # Errors
/// If one of them exists.
pub fn new_key_must_fit(path: &Path) -> Result<(), AuthoringError> {
    for file in [path, &public_of(path)] {
        if fs::symlink_metadata(file).is_ok() {
            let why = format!(
                "make a key: {} is there already, and no key is ever overwritten",
                file.display()
            );
            return Err(AuthoringError::new(FailureKind::KeyUnusable, why));
        }
    }
    Ok(())
}

fn making() -> String {
    "make a key".to_owned()
}

fn public_of(key: &Path) -> PathBuf {
    let mut name = key.as_os_str().to_owned();
    name.push(".pub");
    name.into()
}

/// Writes a new file of mode 0600 and syncs it to the disk.
fn write_new(path: &Path, bytes: &[u8]) -> Result<(), AuthoringError> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let opened = rustix::fs::open(path, flags, Mode::RUSR | Mode::WUSR).map_err(io::Error::from);
    let mut file = File::from(opened.doing(|| format!("make {}", path.display()))?);
    let written = file.write_all(bytes).and_then(|()| file.sync_all());
    if written.is_err() {
        // A partial key is useless, and would block another attempt.
        let _ = fs::remove_file(path);
    }
    written.doing(|| format!("write {}", path.display()))
}

/// File of a secret key that only its owner can read.
pub struct KeyFile {
    path: PathBuf,
    text: String,
    open: Option<SecretKey>,
}

/// Redacted: the secret key permits signing.
impl fmt::Debug for KeyFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyFile").field("place", &self.path).finish_non_exhaustive()
    }
}

impl KeyFile {
    /// Reads a file that [`NewKey::make`] or minisign wrote.
    ///
    /// # Errors
    /// If the file is missing ([`FailureKind::KeyMissing`]), readable by others
    /// ([`FailureKind::KeyShared`]), or no key file.
    pub fn read(path: &Path) -> Result<Self, AuthoringError> {
        let file = private_file::open(path, 0o077).map_err(|why| match why {
            NotPrivate::Io(why) if why.kind() == io::ErrorKind::NotFound => {
                refused(path, FailureKind::KeyMissing, "there is none")
            }
            NotPrivate::Io(why) => unusable(path, &why.to_string()),
            NotPrivate::Link | NotPrivate::NotPlain => {
                unusable(path, "it is no plain file; name the file itself")
            }
            NotPrivate::Foreign => unusable(path, "it belongs to another user"),
            NotPrivate::Shared => refused(path, FailureKind::KeyShared, "others may read it"),
        })?;
        let mut text = String::new();
        let read = file.take(MAX_BYTES).read_to_string(&mut text);
        read.doing(|| format!("read {}", path.display()))?;
        let open = match SecretKeyBox::from(text.clone()).into_unencrypted_secret_key() {
            Ok(key) => Some(key),
            Err(why) if why.to_string().contains("encrypted") => None,
            Err(why) => {
                return Err(unusable(path, &format!("it is no secret key of minisign ({why})")));
            }
        };
        Ok(Self { path: path.to_owned(), text, open })
    }

    /// True if the key is encrypted.
    pub fn needs_password(&self) -> bool {
        self.open.is_none()
    }

    /// Decrypts the key; the password is ignored if the key is not encrypted.
    ///
    /// # Errors
    /// If the password is wrong.
    pub fn unlock(self, password: Option<String>) -> Result<SigningKey, AuthoringError> {
        let Self { path, text, open } = self;
        let key = match open {
            Some(key) => key,
            None => {
                let boxed = SecretKeyBox::from(text);
                let key = boxed.into_secret_key(Some(password.unwrap_or_default()));
                key.map_err(|why| unusable(&path, &why.to_string()))?
            }
        };
        let public = PublicKey::from_secret_key(&key).doing(|| "read the key".to_owned())?;
        Ok(SigningKey { key, public })
    }
}

fn unusable(path: &Path, why: &str) -> AuthoringError {
    refused(path, FailureKind::KeyUnusable, why)
}

fn refused(path: &Path, kind: FailureKind, why: &str) -> AuthoringError {
    AuthoringError::new(kind, format!("read the key {}: {why}", path.display()))
}

/// Secret key that is ready to sign.
pub struct SigningKey {
    key: SecretKey,
    public: PublicKey,
}

/// Redacted: only the public half is shown.
impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SigningKey").field("public", &self.base64()).finish_non_exhaustive()
    }
}

impl SigningKey {
    /// Returns the public key, in the form for an operator's configuration.
    pub fn base64(&self) -> String {
        self.public.to_base64()
    }

    /// Signs a component, and writes the signature to the file `path`.
    ///
    /// # Errors
    /// If no hub would accept the signature; and I/O errors.
    pub fn sign(&self, component: &Component, path: &Path) -> Result<(), AuthoringError> {
        let name = component.path.file_name().unwrap_or_default().to_string_lossy();
        let now = Timestamp::now().as_second();
        let comment = format!("timestamp:{now}\tfile:{}\thashed", plain_text::line(&name, 200));
        let signed = minisign::sign(
            Some(&self.public),
            &self.key,
            &*component.bytes,
            Some(&comment),
            Some("signature of an a2a-hub publisher"),
        );
        let signature = signed.doing(|| "sign".to_owned())?.into_string();
        require_accepted(component, &signature, &self.base64())?;
        private_file::replace(path, signature.as_bytes())
            .doing(|| format!("write {}", path.display()))
    }
}

/// Verifies the signature with the hub's own check, before it is published.
fn require_accepted(
    component: &Component,
    signature: &str,
    base64: &str,
) -> Result<(), AuthoringError> {
    let action = || format!("sign {}", component.path.display());
    let named = [("it".to_owned(), base64.to_owned())];
    let keys = TrustedKeys::named(named.iter().map(|(name, key)| (name, key)));
    match keys.doing(action)?.provenance(&component.bytes, Some(signature)) {
        Provenance::Signed(_) => Ok(()),
        Provenance::Unsigned
        | Provenance::Stranger
        | Provenance::Forged(_)
        | Provenance::Old(_)
        | Provenance::Unreadable(_) => {
            let why =
                format!("{}: no hub would accept this signature; is the key damaged?", action());
            Err(AuthoringError::new(FailureKind::Other, why))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    #[test]
    fn key_file_is_private_and_never_overwritten() {
        let dir = tempfile::tempdir().unwrap();
        let place = dir.path().join("a key");
        write_new(&place, b"secret").unwrap();
        assert_eq!(fs::metadata(&place).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(write_new(&place, b"other").is_err());
        assert_eq!(fs::read(&place).unwrap(), b"secret");
        let link = dir.path().join("link");
        symlink(dir.path().join("elsewhere"), &link).unwrap();
        assert!(write_new(&link, b"x").is_err());
        assert!(!dir.path().join("elsewhere").exists());
        assert_eq!(public_of(&place), dir.path().join("a key.pub"));
    }

    #[test]
    fn signature_is_valid_for_one_component() {
        let KeyPair { pk, sk } = KeyPair::generate_unencrypted_keypair().unwrap();
        let component = |bytes: &[u8]| {
            let bytes = [b"\0asm\x0d\0\x01\0", bytes].concat();
            Component::new("x.wasm".into(), bytes).unwrap()
        };
        let one = component(b"");
        let signed = minisign::sign(Some(&pk), &sk, &*one.bytes, None, None).unwrap().into_string();
        require_accepted(&one, &signed, &pk.to_base64()).unwrap();
        let other = component(b"\0\x02\x01n");
        assert!(require_accepted(&other, &signed, &pk.to_base64()).is_err());
    }

    #[test]
    fn new_key_signs_and_stays_private() {
        let dir = tempfile::tempdir().unwrap();
        let [place, signature] = ["my.key", "x.wasm.minisig"].map(|name| dir.path().join(name));
        assert_eq!(KeyFile::read(&place).unwrap_err().kind(), FailureKind::KeyMissing);
        new_key_must_fit(&place).unwrap();
        let made = NewKey::make(&place, None).unwrap();
        assert_eq!(new_key_must_fit(&place).unwrap_err().kind(), FailureKind::KeyUnusable);
        assert!(NewKey::make(&place, None).is_err());
        let file = KeyFile::read(&place).unwrap();
        assert!(!file.needs_password());
        let key = file.unlock(None).unwrap();
        assert_eq!(key.base64(), made.base64);
        let component = Component::new("x.wasm".into(), b"\0asm\x0d\0\x01\0".to_vec()).unwrap();
        key.sign(&component, &signature).unwrap();
        let text = fs::read_to_string(&signature).unwrap();
        require_accepted(&component, &text, &made.base64).unwrap();
        fs::set_permissions(&place, fs::Permissions::from_mode(0o640)).unwrap();
        assert_eq!(KeyFile::read(&place).unwrap_err().kind(), FailureKind::KeyShared);
        let told = format!("{key:?}");
        assert!(told.contains(&made.base64) && told.len() < 120, "{told}");
    }
}
