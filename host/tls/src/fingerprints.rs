//! Fingerprints of certificates, also of their other encodings.
//!
//! An ECDSA signature (r, s) has a twin (r, n - s), where n is the order of the curve: verifiers
//! accept both, and to make one from the other needs no private key. The fingerprint covers the
//! signature. Therefore the holder of a certificate can give it another fingerprint.

use a2a_hub_core::identity::CertificateFingerprint;
use ring::digest;
use rustls::pki_types::CertificateDer;
use x509_cert::der::{
    Decode as _, Encode as _, Error, Reader as _, SliceReader, Tag,
    asn1::{AnyRef, BitStringRef, UintRef},
};

/// Orders of the curves P-256 and P-384 (SEC 2, sections 2.4.2 and 2.5.1), on which the TLS library
/// verifies signatures.
const ORDERS: [&[u8]; 2] = [
    &[
        0xff, 0xff, 0xff, 0xff, 0x00, 0x00, 0x00, 0x00, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
        0xff, 0xbc, 0xe6, 0xfa, 0xad, 0xa7, 0x17, 0x9e, 0x84, 0xf3, 0xb9, 0xca, 0xc2, 0xfc, 0x63,
        0x25, 0x51,
    ],
    &[
        0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
        0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xc7, 0x63, 0x4d, 0x81, 0xf4, 0x37,
        0x2d, 0xdf, 0x58, 0x1a, 0x0d, 0xb2, 0x48, 0xb0, 0xa7, 0x7a, 0xec, 0xec, 0x19, 0x6a, 0xcc,
        0xc5, 0x29, 0x73,
    ],
];

/// Digest of a certificate.
pub(crate) fn fingerprint(certificate: &[u8]) -> CertificateFingerprint {
    let digest = digest::digest(&digest::SHA256, certificate);
    let mut bytes = [0; 32];
    bytes.copy_from_slice(digest.as_ref());
    CertificateFingerprint::of_digest(bytes)
}

/// Digests of the twins of a certificate.
pub(crate) fn twin_fingerprints(certificate: &CertificateDer<'_>) -> Vec<CertificateFingerprint> {
    twins(certificate).iter().map(|twin| fingerprint(twin)).collect()
}

/// Digests of certificates and of their twins.
pub(crate) fn all_fingerprints(chain: &[CertificateDer<'_>]) -> Vec<CertificateFingerprint> {
    let all = |one: &CertificateDer<'_>| [vec![fingerprint(one)], twin_fingerprints(one)].concat();
    chain.iter().flat_map(all).collect()
}

/// Twins of a certificate: one for each curve that its issuer's key may be on, since the signature
/// does not name the curve. That of the wrong curve is no certificate. None for other signatures.
pub(crate) fn twins(certificate: &CertificateDer<'_>) -> Vec<Vec<u8>> {
    let twin = |order: &&[u8]| twin(certificate, order).ok().flatten();
    ORDERS.iter().filter_map(twin).collect()
}

fn twin(certificate: &[u8], order: &[u8]) -> Result<Option<Vec<u8>>, Error> {
    let mut reader = SliceReader::new(certificate)?;
    let (content, algorithm, signature) = reader.sequence(|it| {
        Ok::<_, Error>((it.tlv_bytes()?, it.tlv_bytes()?, BitStringRef::decode(it)?))
    })?;
    let mut reader = SliceReader::new(signature.raw_bytes())?;
    let (r, s) =
        reader.sequence(|it| Ok::<_, Error>((UintRef::decode(it)?, UintRef::decode(it)?)))?;
    let Some(s) = difference(order, s.as_bytes()) else { return Ok(None) };
    let signature = sequence(&[&r.to_der()?, &UintRef::new(&s)?.to_der()?])?;
    let signature = BitStringRef::from_bytes(&signature)?.to_der()?;
    sequence(&[content, algorithm, &signature]).map(Some)
}

/// Encodes a sequence of encoded parts.
fn sequence(parts: &[&[u8]]) -> Result<Vec<u8>, Error> {
    AnyRef::new(Tag::Sequence, &parts.concat())?.to_der()
}

/// Subtracts `less` from `number`, both in big-endian order; `None` if `less` is larger.
fn difference(number: &[u8], less: &[u8]) -> Option<Vec<u8>> {
    let padding = number.len().checked_sub(less.len())?;
    let padded = [&vec![0; padding], less].concat();
    let (mut result, mut borrow) = (number.to_vec(), false);
    for (digit, taken) in result.iter_mut().zip(padded).rev() {
        let (rest, is_less) = digit.overflowing_sub(taken);
        let (rest, borrows) = rest.overflowing_sub(u8::from(borrow));
        (*digit, borrow) = (rest, is_less || borrows);
    }
    (!borrow).then_some(result)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::TestCa;
    use rustls::pki_types::pem::PemObject as _;

    #[test]
    fn difference_borrows() {
        for (number, less, expected) in [
            (&[1, 0, 0][..], &[1][..], Some(vec![0, 255, 255])),
            (&[1, 0, 0], &[1, 0, 0], Some(vec![0, 0, 0])),
            (&[2, 1], &[1, 2], Some(vec![0, 255])),
            (&[2, 1], &[], Some(vec![2, 1])),
            (&[1, 0], &[1, 1], None),
            (&[1], &[1, 0], None),
        ] {
            assert_eq!(difference(number, less), expected, "{number:?} {less:?}");
        }
    }

    #[test]
    fn twin_of_twin_is_the_certificate() {
        let pem = TestCa::new().cert();
        let certificate = CertificateDer::from_pem_slice(pem.as_bytes()).unwrap();
        let twin = CertificateDer::from(twins(&certificate).remove(0));
        assert_ne!(twin, certificate);
        assert_eq!(twins(&twin).remove(0), certificate.as_ref());
        assert!(twin_fingerprints(&twin).contains(&fingerprint(&certificate)));
        assert!(twins(&CertificateDer::from(&b"junk"[..])).is_empty());
    }
}
