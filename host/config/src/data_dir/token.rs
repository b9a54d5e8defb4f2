//! Bearer tokens of a hub: secrets in files that only its user can read, for callers that the
//! kernel does not identify.

use crate::data_dir::private_file::{self, NotPrivate};
use a2a_hub_core::access_control::Principal;
use a2a_hub_protocol::id::TenantId;
use rustix::fs::{Mode, OFlags};
use std::{
    fs::File,
    io::{self, Read as _, Write as _},
    path::{Path, PathBuf},
};
use subtle::ConstantTimeEq as _;

/// File in the data directory with the hub's token.
pub const TOKEN_FILE: &str = "http-token";

/// Folder in the data directory with the tenants' tokens, one file for each, named after the
/// tenant.
pub const TENANTS_DIR: &str = "tenants";

/// Random bytes of a token: 256 bits cannot be guessed.
const BYTES: usize = 32;

/// Secret that its holder sends with each request.
pub struct Token(String);

/// The hub's own token, and one for each tenant.
pub struct Tokens {
    hub_token: Token,
    tenants: Vec<(TenantId, Token)>,
}

impl Tokens {
    /// Opens the tokens in this data directory, for the hub and these tenants. A tenant's token is
    /// in the folder [`TENANTS_DIR`], in the file of the tenant's name.
    pub fn open<'t>(
        dir: &Path,
        tenants: impl Iterator<Item = &'t TenantId>,
    ) -> Result<Self, TokenError> {
        let hub_token = Token::open(dir)?;
        let folder = dir.join(TENANTS_DIR);
        let open = |tenant: &TenantId| {
            make_folder(&folder)?;
            Ok((tenant.clone(), Token(open_secret(folder.join(tenant.as_str()))?)))
        };
        Ok(Self { hub_token, tenants: tenants.map(open).collect::<Result<_, _>>()? })
    }

    /// Checks the existing tokens, and makes none.
    pub fn check<'t>(
        dir: &Path,
        tenants: impl Iterator<Item = &'t TenantId>,
    ) -> Result<(), TokenError> {
        let folder = dir.join(TENANTS_DIR);
        let files = tenants.map(|tenant| folder.join(tenant.as_str()));
        std::iter::once(dir.join(TOKEN_FILE)).chain(files).try_for_each(check_secret)
    }

    /// Principal of this token; none if it is unknown.
    pub fn whose(&self, offered: &str) -> Option<Principal> {
        if self.hub_token.is(offered) {
            return Some(Principal::OperatorToken);
        }
        let (tenant, _) = self.tenants.iter().find(|(_, token)| token.is(offered))?;
        Some(Principal::Client(tenant.to_string()))
    }
}

/// Makes a folder that only this user may access, unless it exists.
fn make_folder(path: &Path) -> Result<(), TokenError> {
    match rustix::fs::mkdir(path, Mode::RWXU) {
        Ok(()) | Err(rustix::io::Errno::EXIST) => Ok(()),
        Err(why) => Err(TokenError::Io { path: path.to_owned(), why: why.into() }),
    }
}

/// Error of opening a token.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// The file cannot be used.
    #[error("use the token in {path}: {why}")]
    Io {
        /// File with the secret.
        path: PathBuf,
        /// Error of the system.
        why: io::Error,
    },
    /// Others could know the token.
    #[error(
        "use the token in {0}: others may read or write that file; remove it, and the hub makes a new one"
    )]
    Known(PathBuf),
    /// The content is not what the hub wrote.
    #[error("use the token in {0}: the file is damaged; remove it, and the hub makes a new one")]
    Damaged(PathBuf),
}

impl Token {
    /// Opens the token in this data directory, which persists over restarts; makes a new one if
    /// none exists.
    pub fn open(dir: &Path) -> Result<Self, TokenError> {
        Ok(Self(open_secret(dir.join(TOKEN_FILE))?))
    }

    /// Makes a new token that is in no file.
    pub fn fresh() -> io::Result<Self> {
        random().map(Self)
    }

    /// Text of the token, for a client.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Compares `offered` with the token in constant time, so that response times reveal nothing
    /// (timing attack).
    pub fn is(&self, offered: &str) -> bool {
        self.0.as_bytes().ct_eq(offered.as_bytes()).into()
    }
}

/// Reads the secret in a file that only this user can read: 256 random bits in hex. Makes it if the
/// file does not exist.
pub fn open_secret(path: PathBuf) -> Result<String, TokenError> {
    match make(&path) {
        Err(why) if why.kind() == io::ErrorKind::AlreadyExists => read(path),
        created => created.map_err(|why| TokenError::Io { path, why }),
    }
}

/// Reads the secret in a file; none if the file does not exist.
pub fn find_secret(path: PathBuf) -> Result<Option<String>, TokenError> {
    match read(path) {
        Err(TokenError::Io { why, .. }) if why.kind() == io::ErrorKind::NotFound => Ok(None),
        read => read.map(Some),
    }
}

/// Checks a secret, if its file exists.
fn check_secret(path: PathBuf) -> Result<(), TokenError> {
    find_secret(path).map(drop)
}

fn make(path: &Path) -> io::Result<String> {
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
    let file = rustix::fs::open(path, flags, Mode::RUSR | Mode::WUSR)?;
    let token = random()?;
    File::from(file).write_all(token.as_bytes())?;
    Ok(token)
}

fn random() -> io::Result<String> {
    let mut random = [0; BYTES];
    getrandom::fill(&mut random)?;
    Ok(hex::encode(random))
}

fn read(path: PathBuf) -> Result<String, TokenError> {
    let failed = |why| TokenError::Io { path: path.clone(), why };
    let file = match private_file::open(&path, 0o077) {
        Ok(file) => file,
        Err(NotPrivate::Io(why)) => return Err(failed(why)),
        Err(NotPrivate::Link) => return Err(failed(rustix::io::Errno::LOOP.into())),
        Err(NotPrivate::NotPlain | NotPrivate::Foreign | NotPrivate::Shared) => {
            return Err(TokenError::Known(path));
        }
    };
    let mut token = String::new();
    file.take(1 << 10).read_to_string(&mut token).map_err(failed)?;
    let token = token.trim_end();
    let is_valid = token.len() == 2 * BYTES && token.bytes().all(|c| c.is_ascii_hexdigit());
    if is_valid { Ok(token.to_owned()) } else { Err(TokenError::Damaged(path)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{
        fs,
        os::unix::fs::{MetadataExt as _, PermissionsExt as _},
    };

    #[test]
    fn token_file_is_private_and_persistent() {
        let dir = tempfile::tempdir().unwrap();
        let token = Token::open(dir.path()).unwrap();
        let file = dir.path().join(TOKEN_FILE);
        assert_eq!(fs::metadata(&file).unwrap().mode() & 0o777, 0o600);
        let text = fs::read_to_string(&file).unwrap();
        assert!(
            token.is(&text) && !token.is(&text[1..]) && !token.is("") && !token.is(&"0".repeat(64))
        );
        assert!(Token::open(dir.path()).unwrap().is(&text), "it stays the same");

        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
        assert!(matches!(Token::open(dir.path()), Err(TokenError::Known(_))));
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        fs::write(&file, "short").unwrap();
        assert!(matches!(Token::open(dir.path()), Err(TokenError::Damaged(_))));
    }

    #[test]
    fn each_tenant_has_own_token() {
        let dir = tempfile::tempdir().unwrap();
        let tenants = ["acme", "other"].map(|name| TenantId::parse(name).unwrap());
        let tokens = Tokens::open(dir.path(), tenants.iter()).unwrap();
        let kept = |name: &str| fs::read_to_string(dir.path().join(name)).unwrap();
        assert_eq!(tokens.whose(&kept("http-token")), Some(Principal::OperatorToken));
        assert_eq!(tokens.whose(&kept("tenants/acme")), Some(Principal::Client("acme".to_owned())));
        assert_eq!(
            tokens.whose(&kept("tenants/other")),
            Some(Principal::Client("other".to_owned()))
        );
        assert_eq!(tokens.whose(""), None);
        assert_eq!(fs::metadata(dir.path().join("tenants")).unwrap().mode() & 0o777, 0o700);
        let fewer = Tokens::open(dir.path(), tenants[..1].iter()).unwrap();
        assert_eq!(
            fewer.whose(&kept("tenants/other")),
            None,
            "who is no tenant any more is nobody"
        );
        assert_eq!(fewer.whose(&kept("tenants/acme")), Some(Principal::Client("acme".to_owned())));
    }

    #[test]
    fn token_symlink_is_not_followed() {
        let (dir, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        Token::open(other.path()).unwrap();
        let link = dir.path().join(TOKEN_FILE);
        std::os::unix::fs::symlink(other.path().join(TOKEN_FILE), link).unwrap();
        assert!(matches!(Token::open(dir.path()), Err(TokenError::Io { .. })));
    }
}
