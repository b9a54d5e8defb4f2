//! TLS of the hub's server: certificates from files that are read again when they change, and the
//! certificates of clients.

mod client;
mod client_certificate;
mod denied;
mod files;
mod fingerprints;
mod server;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
#[cfg(test)]
mod tests;

pub use client::read_client_tls;
pub use client_certificate::ClientCertificate;
pub use files::{TlsFileError, read_certificates};
pub use server::{ServerTls, TlsError, TlsStatus};
