//! Client certificates that the operator denied, and the check of those that clients present.

use crate::fingerprints::all_fingerprints;
use a2a_hub_core::identity::CertificateFingerprint;
use parking_lot::RwLock;
use rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, Error, SignatureScheme,
    client::danger::HandshakeSignatureValid,
    pki_types::{CertificateDer, UnixTime},
    server::danger::{ClientCertVerified, ClientCertVerifier},
};
use std::{collections::BTreeSet, slice, sync::Arc};
use tokio::sync::watch;

/// Denied certificates, which handshakes and open connections read.
#[derive(Debug)]
pub(crate) struct DeniedCertificates {
    denied: RwLock<BTreeSet<CertificateFingerprint>>,
    /// Changed with `denied`.
    changes: watch::Sender<()>,
}

impl DeniedCertificates {
    /// Starts with these certificates.
    pub(crate) fn new(denied: impl IntoIterator<Item = CertificateFingerprint>) -> Self {
        let denied = RwLock::new(denied.into_iter().collect());
        Self { denied, changes: watch::channel(()).0 }
    }

    /// Replaces the denied certificates.
    pub(crate) fn set(&self, denied: impl IntoIterator<Item = CertificateFingerprint>) {
        let denied: BTreeSet<_> = denied.into_iter().collect();
        let mut known = self.denied.write();
        if *known != denied {
            tracing::info!(certificates = denied.len(), "denied client certificates changed");
            *known = denied;
            drop(known);
            self.changes.send_replace(());
        }
    }

    /// True if one of the certificates is denied.
    pub(crate) fn contains(&self, certificates: &[CertificateFingerprint]) -> bool {
        let denied = self.denied.read();
        certificates.iter().any(|certificate| denied.contains(certificate))
    }

    /// Waits until one of the certificates is denied.
    pub(crate) async fn until_contains(&self, certificates: &[CertificateFingerprint]) {
        let mut changes = self.changes.subscribe();
        while !self.contains(certificates) {
            // The sender lives as long as this value.
            if changes.changed().await.is_err() {
                return std::future::pending().await;
            }
        }
    }
}

/// Verifier of client certificates that refuses denied ones, also as a part of the chain that the
/// client presents: a denied intermediate CA denies what it issued. A CA of `tls.client_ca` is none
/// of these: the operator removes it from that file.
#[derive(Debug)]
pub(crate) struct DenyingVerifier {
    pub(crate) verifier: Arc<dyn ClientCertVerifier>,
    pub(crate) denied: Arc<DeniedCertificates>,
}

impl ClientCertVerifier for DenyingVerifier {
    fn offer_client_auth(&self) -> bool {
        self.verifier.offer_client_auth()
    }

    fn client_auth_mandatory(&self) -> bool {
        self.verifier.client_auth_mandatory()
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.verifier.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        let is_denied = |chain: &[_]| self.denied.contains(&all_fingerprints(chain));
        if is_denied(slice::from_ref(certificate)) || is_denied(intermediates) {
            return Err(CertificateError::Revoked.into());
        }
        self.verifier.verify_client_cert(certificate, intermediates, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verifier.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verifier.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.verifier.supported_verify_schemes()
    }
}
