//! TLS of outgoing connections.

use crate::files::{TlsFileError, read_certificates, read_key};
use a2a_hub_client::outbound::ClientTls;
use a2a_hub_config::ClientTlsFiles;

/// Reads the files of a client. Blocks on disk I/O.
///
/// # Errors
///
/// If a file is missing or unusable, or a certificate is named without its key.
pub fn read_client_tls(files: &ClientTlsFiles) -> Result<ClientTls, TlsFileError> {
    let roots = match &files.ca {
        Some(ca) => read_certificates(ca)?,
        None => Vec::new(),
    };
    let identity = match (&files.cert, &files.cert_key) {
        (Some(cert), Some(key)) => Some((read_certificates(cert)?, read_key(key)?)),
        (None, None) => None,
        (Some(_), None) | (None, Some(_)) => return Err(TlsFileError::Incomplete),
    };
    Ok(ClientTls { roots, identity })
}
