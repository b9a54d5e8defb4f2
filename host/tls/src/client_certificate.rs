//! Certificates that clients presented and that their CA vouches for.

use crate::fingerprints::{all_fingerprints, fingerprint, twin_fingerprints};
use a2a_hub_core::identity::{CertificateFingerprint, CertificateNames, CertificateValidity};
use rustls::pki_types::CertificateDer;
use x509_cert::{
    Certificate,
    der::Decode as _,
    ext::pkix::{SubjectAltName, name::GeneralName},
};

/// Certificate of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientCertificate {
    /// Names in it.
    pub names: CertificateNames,
    /// Validity. A certificate whose validity cannot be read is valid at no time.
    pub validity: CertificateValidity,
    /// Fingerprints of the certificate and of the intermediate ones that came with it, and of
    /// their twins.
    pub(crate) chain: Vec<CertificateFingerprint>,
}

impl ClientCertificate {
    /// Reads the chain that a handshake has verified, the client's own certificate first. `None` if
    /// it is empty.
    pub fn of_chain(chain: &[CertificateDer<'_>]) -> Option<Self> {
        let (own, intermediates) = chain.split_first()?;
        let mut this = Self::of_verified(own);
        this.chain.extend(all_fingerprints(intermediates));
        Some(this)
    }

    /// Reads a certificate that a handshake has verified. Names are taken from the subject's
    /// alternative names alone, and none if these are damaged or given twice.
    pub fn of_verified(certificate: &CertificateDer<'_>) -> Self {
        let parsed = ParsedCertificate::parse(certificate).unwrap_or_default();
        let ParsedCertificate { dns, uris, validity, addresses: _ } = parsed;
        let (fingerprint, twins) = (fingerprint(certificate), twin_fingerprints(certificate));
        let chain = [fingerprint].into_iter().chain(twins.iter().copied()).collect();
        Self { names: CertificateNames { fingerprint, twins, dns, uris }, validity, chain }
    }
}

/// Parts of a certificate that identify its holder.
#[derive(Debug)]
pub(crate) struct ParsedCertificate {
    pub(crate) dns: Vec<String>,
    pub(crate) uris: Vec<String>,
    /// IP addresses, 4 or 16 bytes each.
    pub(crate) addresses: Vec<Vec<u8>>,
    pub(crate) validity: CertificateValidity,
}

impl Default for ParsedCertificate {
    fn default() -> Self {
        let (dns, uris, addresses) = Default::default();
        let validity = CertificateValidity { not_before: u64::MAX, not_after: 0 };
        Self { dns, uris, addresses, validity }
    }
}

impl ParsedCertificate {
    /// Parses a certificate; `None` if it is damaged.
    pub(crate) fn parse(certificate: &CertificateDer<'_>) -> Option<Self> {
        let parsed = Certificate::from_der(certificate).ok()?;
        let content = parsed.tbs_certificate();
        let mut found = Self {
            validity: CertificateValidity {
                not_before: content.validity().not_before.to_unix_duration().as_secs(),
                not_after: content.validity().not_after.to_unix_duration().as_secs(),
            },
            ..Self::default()
        };
        let Ok(Some((_, SubjectAltName(names)))) = content.get_extension() else {
            return Some(found);
        };
        for name in names {
            match name {
                GeneralName::DnsName(name) => found.dns.push(name.as_str().to_owned()),
                GeneralName::UniformResourceIdentifier(name) => {
                    found.uris.push(name.as_str().to_owned());
                }
                GeneralName::IpAddress(address) => {
                    found.addresses.push(address.as_bytes().to_owned());
                }
                GeneralName::OtherName(_)
                | GeneralName::Rfc822Name(_)
                | GeneralName::DirectoryName(_)
                | GeneralName::EdiPartyName(_)
                | GeneralName::RegisteredId(_) => {}
            }
        }
        Some(found)
    }
}
