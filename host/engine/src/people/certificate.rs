//! People who are proven by a client certificate.

use super::{KnownPeople, People, ProvenPerson};
use a2a_hub_clock as clock;
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

impl KnownPeople {
    /// Last moment of a person's certificate, by the text of its rule's name. `None` for one that
    /// has come with no request yet, or that ends after the year 9999.
    pub(super) fn certificate_end(&self, person: &PersonName, rule: &str) -> Option<String> {
        let end = self.certified.get(person)?.ends.get(rule)?;
        clock::at_ms(end.saturating_mul(1_000))
    }
}

impl People {
    /// Identifies the person of a verified client certificate. `end` is the last second in which
    /// the certificate is valid, since 1970.
    ///
    /// # Errors
    ///
    /// If it is nobody's, or its person is not known.
    pub fn identify_certificate(
        &self,
        names: &CertificateNames,
        end: u64,
    ) -> Result<ProvenPerson, NoCertificate> {
        let rule = self.certificates.find(names)?;
        let (name, text) = (rule.person.clone(), rule.name.to_string());
        let (revoked, is_later) = {
            let known = self.known.read();
            let Some(certified) = known.certified.get(&name) else {
                return Err(NoCertificate::NoPerson(name));
            };
            let is_later = certified.ends.get(&text).is_none_or(|known| *known < end);
            (certified.removed.clone(), is_later)
        };
        // Once for each certificate, as for a renewed one.
        if is_later && let Some(certified) = self.known.write().certified.get_mut(&name) {
            let known = certified.ends.entry(text.clone()).or_default();
            *known = end.max(*known);
        }
        let proof = PersonProof { key: None, certificate: Some(&text) };
        let principal = Principal::Person { name, key: proof.to_string() };
        Ok(ProvenPerson { principal, revoked, expires_in: None, is_new_use: false })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use a2a_hub_core::{
        access_control::Caller,
        identity::{
            CertificateFingerprint, CertificateName, CertificateRule, CertificateRules, KeyScopes,
        },
    };
    use a2a_hub_protocol::{
        error::A2aError,
        id::TenantId,
        operation::{KeyTerms, PeopleReport, PeopleRequest},
    };
    use a2a_hub_store::memory::MemoryStorage;
    use std::sync::Arc;

    async fn ask(
        people: &People,
        principal: Principal,
        request: PeopleRequest,
    ) -> Result<PeopleReport, A2aError> {
        let caller = Caller { principal, tenant: TenantId::default() };
        people.perform(&caller, request, &[]).await
    }

    #[tokio::test]
    async fn key_ends_with_certificate_that_makes_it() {
        let rules = vec![CertificateRule {
            name: CertificateName::parse_san("ada.corp").unwrap(),
            person: PersonName::parse("ada").unwrap(),
            scopes: KeyScopes::parse(["admin", "read"]).unwrap(),
        }];
        let people = People::open(Arc::new(MemoryStorage::default()), None).await;
        let people = people.with_certificates(CertificateRules::new(rules));
        let added = PeopleRequest::Add { name: "ada".to_owned(), role: "owner".to_owned() };
        ask(&people, Principal::Operator, added).await.unwrap();
        let names = CertificateNames {
            fingerprint: CertificateFingerprint::of_digest([1; 32]),
            twins: Vec::new(),
            dns: vec!["ada.corp".to_owned()],
            uris: Vec::new(),
        };
        let terms = |for_ms: u64| KeyTerms {
            person: "ada".to_owned(),
            label: "laptop".to_owned(),
            scopes: vec!["read".to_owned()],
            for_ms,
        };
        let in_an_hour = clock::now_ms() / 1_000 + 3_600;
        let ada = people.identify_certificate(&names, in_an_hour).unwrap().principal;
        let key = async |for_ms: u64| {
            ask(&people, ada.clone(), PeopleRequest::NewKey(terms(for_ms))).await.map(drop)
        };
        let endless = key(0).await.unwrap_err();
        assert!(endless.message.contains("must end before"), "{}", endless.message);
        assert!(key(2 * 3_600_000).await.is_err());
        key(1_800_000).await.unwrap();
        let invite = PeopleRequest::Invite(terms(2 * 3_600_000));
        let invited = ask(&people, ada.clone(), invite).await.unwrap();
        let PeopleReport::Invitation(invited) = invited else { panic!("no invitation") };
        assert_eq!(Some(invited.expires_at), clock::at_ms(in_an_hour * 1_000));
        // A renewed certificate extends the end, and one of before does not shorten it.
        people.identify_certificate(&names, in_an_hour + 3_600).unwrap();
        people.identify_certificate(&names, in_an_hour).unwrap();
        key(5_400_000).await.unwrap();
        assert!(key(3 * 3_600_000).await.is_err());
    }
}
