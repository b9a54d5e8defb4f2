//! People who are proven by a client certificate.

use super::{People, ProvenPerson};
use a2a_hub_core::{
    access_control::Principal,
    identity::{CertificateNames, PersonName, PersonProof, UnmappedCertificate},
};

/// Reason why a client certificate identifies nobody.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoCertificate {
    /// No rule says whose it is, or several do.
    #[error(transparent)]
    Unmapped(#[from] UnmappedCertificate),
    /// The person of the certificate is not known.
    #[error(
        "your client certificate belongs to {0}, who is no person of this hub; the operator adds \
         one with `a2a-hub person add {0}`"
    )]
    NoPerson(PersonName),
}

impl People {
    /// Identifies the person of a verified client certificate.
    ///
    /// # Errors
    ///
    /// If it is nobody's, or its person is not known.
    pub fn identify_certificate(
        &self,
        names: &CertificateNames,
    ) -> Result<ProvenPerson, NoCertificate> {
        let rule = self.certificates.find(names)?;
        let name = rule.person.clone();
        let mut known = self.known.write();
        if !known.by_name.contains_key(&name) {
            return Err(NoCertificate::NoPerson(name));
        }
        let text = rule.name.to_string();
        let proof = PersonProof { key: None, certificate: Some(&text) };
        let revoked = known.certified.entry(name.clone()).or_default().clone();
        let principal = Principal::Person { name, key: proof.to_string() };
        Ok(ProvenPerson { principal, revoked, expires_in: None, is_new_use: false })
    }
}
