//! Certificates and keys in PEM files.

use a2a_hub_config::{
    private_file::{self, NotPrivate},
    read_text,
};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _};
use std::{
    fs::{self, Metadata},
    io,
    path::{Path, PathBuf},
};

/// Largest size of a file, in bytes. A chain has some kilobytes, the CA list of a system 200.
const MAX_BYTES: u64 = 1 << 20;

/// Error of a file with certificates or a key. It quotes nothing of the file.
#[derive(Debug, thiserror::Error)]
pub enum TlsFileError {
    /// The file cannot be read.
    #[error("read {path}: {why}")]
    Unreadable {
        /// Path of the file.
        path: PathBuf,
        /// Error of the system.
        why: io::Error,
    },
    /// The file is no sequence of certificates in PEM.
    #[error("read {0}: it holds no certificate in PEM (`-----BEGIN CERTIFICATE-----`)")]
    NoCertificate(PathBuf),
    /// The file is no private key in PEM.
    #[error("read {0}: it holds no unencrypted private key in PEM (`-----BEGIN PRIVATE KEY-----`)")]
    NoKey(PathBuf),
    /// A certificate of a client lacks its key, or the other way round.
    #[error("use a certificate: name the files of the certificate and of its key")]
    Incomplete,
    /// The reading was cut off.
    #[error("read the TLS files: {0}")]
    Interrupted(String),
    /// Others may read the key.
    #[error("read {path}: others may read this key or change it; {}", private_file::remedy(path))]
    Shared {
        /// Path of the file.
        path: PathBuf,
    },
    /// The key belongs to another user.
    #[error(
        "read {path}: this key belongs to another user, who may change it; copy it with \
         `install -m 600 {path} COPY` as the hub's user, and name the copy"
    )]
    Foreign {
        /// Path of the file.
        path: PathBuf,
    },
}

/// Reads the certificates of a PEM file, in its order; at least one. Blocks on disk I/O.
///
/// # Errors
///
/// If the file cannot be read, or is no sequence of certificates.
pub fn read_certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsFileError> {
    let unreadable = |why| TlsFileError::Unreadable { path: path.to_owned(), why };
    // Opening a pipe would block until somebody writes to it.
    if !fs::metadata(path).map_err(unreadable)?.is_file() {
        return Err(TlsFileError::NoCertificate(path.to_owned()));
    }
    let text = read_text(path, MAX_BYTES).map_err(unreadable)?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(text.as_bytes()).collect();
    match found {
        Ok(found) if !found.is_empty() => Ok(found),
        Ok(_) | Err(_) => Err(TlsFileError::NoCertificate(path.to_owned())),
    }
}

/// Reads the private key of a PEM file of this user that nobody else may read. Links are followed,
/// because tools that renew certificates replace links. Blocks on disk I/O.
///
/// # Errors
///
/// If the file cannot be read, others may read it, or it is no key.
pub(crate) fn read_key(path: &Path) -> Result<PrivateKeyDer<'static>, TlsFileError> {
    let unreadable = |why| TlsFileError::Unreadable { path: path.to_owned(), why };
    let real = fs::canonicalize(path).map_err(unreadable)?;
    let text = match private_file::read_text(&real, 0o077, MAX_BYTES) {
        Ok(Some(text)) => text,
        Ok(None) | Err(NotPrivate::Link) => {
            return Err(unreadable(io::ErrorKind::NotFound.into()));
        }
        Err(NotPrivate::Io(why)) => return Err(unreadable(why)),
        Err(NotPrivate::NotPlain) => return Err(TlsFileError::NoKey(path.to_owned())),
        Err(NotPrivate::Shared) => return Err(TlsFileError::Shared { path: real }),
        Err(NotPrivate::Foreign) => return Err(TlsFileError::Foreign { path: real }),
    };
    let key = PrivateKeyDer::from_pem_slice(text.as_bytes());
    key.map_err(|_| TlsFileError::NoKey(path.to_owned()))
}

/// Identity and time of files, by which a change is noticed: device, inode, size, and time of the
/// last change of content or mode in seconds and nanoseconds. `None` for a file that cannot be
/// examined.
pub(crate) type FileStamps = Vec<Option<PemFileStamp>>;

/// Stamp of one file.
type PemFileStamp = (u64, u64, u64, i64, i64);

/// Stamps of these files. Links are followed. Blocks on disk I/O.
pub(crate) fn stamps(paths: &[&Path]) -> FileStamps {
    paths.iter().map(|path| Some(stamp(&fs::metadata(path).ok()?))).collect()
}

#[cfg(all(unix, not(feature = "without-unix")))]
fn stamp(meta: &Metadata) -> PemFileStamp {
    use std::os::unix::fs::MetadataExt as _;
    (meta.dev(), meta.ino(), meta.size(), meta.ctime(), meta.ctime_nsec())
}

/// Without a device, an inode and a time of change, the time of the last write has to do.
#[cfg(not(all(unix, not(feature = "without-unix"))))]
fn stamp(meta: &Metadata) -> PemFileStamp {
    let written = meta.modified().ok().and_then(|at| at.duration_since(std::time::UNIX_EPOCH).ok());
    let written = written.unwrap_or_default();
    let seconds = i64::try_from(written.as_secs()).unwrap_or(i64::MAX);
    (0, 0, meta.len(), seconds, written.subsec_nanos().into())
}
