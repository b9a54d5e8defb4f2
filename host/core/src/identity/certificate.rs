//! Client certificates: the names in them, and the person that each name belongs to.
//!
//! A name is compared byte by byte with the whole name in the certificate. Wildcards, other cases,
//! IP addresses and the subject's common name match nothing.

use super::{PersonName, PersonRights, scope::KeyScopes};
use crate::text::plain_text::line;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Prefix of the key of a [`Principal::Person`](crate::access_control::Principal::Person) who is
/// proven by a certificate. Ids of API keys have no colon.
const CERTIFICATE_KEY: &str = "cert:";

/// Separator between the id of an API key and the certificate of the connection that it came over.
const PROOF_SEPARATOR: char = '+';

/// Longest name in a certificate, in bytes (SPIFFE ID, section 2.3).
const MAX_NAME: usize = 2_048;

/// Longest DNS name, in bytes (RFC 1035, section 2.3.4).
const MAX_DNS: usize = 253;

/// Most characters of a foreign name in a refusal.
const MAX_QUOTED: usize = 120;

/// SHA-256 digest of a certificate in DER: 64 hexadecimal digits, in pairs with colons if wished.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(try_from = "String", into = "String")]
pub struct CertificateFingerprint([u8; 32]);

/// Error for a text that is no fingerprint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "a fingerprint is the SHA-256 digest of a certificate: 64 hexadecimal digits, as \
     `openssl x509 -noout -fingerprint -sha256 -in FILE` prints them"
)]
pub struct InvalidFingerprint;

impl CertificateFingerprint {
    /// Fingerprint with this digest.
    pub fn of_digest(digest: [u8; 32]) -> Self {
        Self(digest)
    }

    /// Parses hexadecimal digits, with or without colons between pairs.
    ///
    /// # Errors
    ///
    /// If the text has another form.
    pub fn parse(text: &str) -> Result<Self, InvalidFingerprint> {
        let pairs: Vec<&[u8]> = match text.contains(':') {
            true => text.split(':').map(str::as_bytes).collect(),
            false => text.as_bytes().chunks(2).collect(),
        };
        let byte = |pair: &&[u8]| {
            let digits = str::from_utf8(pair).ok().filter(|pair| pair.len() == 2)?;
            let is_hex = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
            is_hex.then(|| u8::from_str_radix(digits, 16).ok()).flatten()
        };
        let bytes: Option<Vec<u8>> = pairs.iter().map(byte).collect();
        let bytes = bytes.and_then(|bytes| bytes.try_into().ok());
        bytes.map(Self).ok_or(InvalidFingerprint)
    }
}

impl fmt::Display for CertificateFingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl TryFrom<String> for CertificateFingerprint {
    type Error = InvalidFingerprint;

    fn try_from(text: String) -> Result<Self, InvalidFingerprint> {
        Self::parse(&text)
    }
}

impl From<CertificateFingerprint> for String {
    fn from(fingerprint: CertificateFingerprint) -> Self {
        fingerprint.to_string()
    }
}

/// Name by which a rule finds certificates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CertificateName {
    /// Digest of one certificate.
    Fingerprint(CertificateFingerprint),
    /// SPIFFE ID: the only URI among the subject's alternative names.
    Uri(String),
    /// The only DNS name among the subject's alternative names.
    Dns(String),
}

/// Error for a text that is no name of a client.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is no name of a client: write a DNS name in lower-case ASCII without `*`, such as \
     `ada.corp.example`, or a SPIFFE ID, such as `spiffe://corp.example/ada`"
)]
pub struct InvalidSan(String);

impl CertificateName {
    /// Parses a DNS name or a SPIFFE ID of the subject's alternative names.
    ///
    /// # Errors
    ///
    /// If it is neither.
    pub fn parse_san(text: &str) -> Result<Self, InvalidSan> {
        match text.strip_prefix("spiffe://") {
            Some(rest) if is_spiffe_id(rest) && text.len() <= MAX_NAME => {
                Ok(Self::Uri(text.to_owned()))
            }
            None if is_dns_name(text) => Ok(Self::Dns(text.to_owned())),
            Some(_) | None => Err(InvalidSan(line(text, MAX_QUOTED))),
        }
    }
}

impl fmt::Display for CertificateName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fingerprint(fingerprint) => write!(f, "sha256:{fingerprint}"),
            Self::Uri(name) | Self::Dns(name) => f.write_str(name),
        }
    }
}

/// True for the trust domain and the path of a SPIFFE ID (SPIFFE ID, section 2).
fn is_spiffe_id(rest: &str) -> bool {
    let is_domain_byte = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'.' | b'-' | b'_');
    let is_path_byte =
        |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
    let (domain, path) = rest.split_once('/').unwrap_or((rest, ""));
    let is_segment =
        |part: &str| !matches!(part, "" | "." | "..") && part.bytes().all(is_path_byte);
    let has_path = rest.contains('/');
    !domain.is_empty()
        && domain.bytes().all(is_domain_byte)
        && (!has_path || path.split('/').all(is_segment))
}

/// True for a DNS name in lower-case ASCII that is no IPv4 address.
fn is_dns_name(text: &str) -> bool {
    let is_label = |label: &str| {
        let is_inner = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-');
        (1..=63).contains(&label.len())
            && label.bytes().all(is_inner)
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    let last_is_number =
        text.rsplit('.').next().is_some_and(|last| last.bytes().all(|byte| byte.is_ascii_digit()));
    text.len() <= MAX_DNS && text.split('.').all(is_label) && !last_is_number
}

/// Names in a client certificate that its issuer vouches for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateNames {
    /// Digest of the certificate.
    pub fingerprint: CertificateFingerprint,
    /// Digests of the certificate in its other encodings, which the holder can make: with the
    /// ECDSA signature (r, n - s) in place of (r, s). A rule for one of them is for this one too.
    pub twins: Vec<CertificateFingerprint>,
    /// DNS names among the subject's alternative names, as the certificate spells them.
    pub dns: Vec<String>,
    /// URIs among the subject's alternative names, as the certificate spells them.
    pub uris: Vec<String>,
}

impl CertificateNames {
    /// True if the certificate has this name. A certificate with two DNS names has neither of
    /// them, and the same holds for URIs (X509-SVID, section 2): it would be two clients.
    fn has(&self, name: &CertificateName) -> bool {
        match name {
            CertificateName::Fingerprint(fingerprint) => {
                *fingerprint == self.fingerprint || self.twins.contains(fingerprint)
            }
            CertificateName::Uri(uri) => self.uris == [uri.as_str()],
            CertificateName::Dns(dns) => self.dns == [dns.as_str()],
        }
    }
}

impl fmt::Display for CertificateNames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sha256:{}", self.fingerprint)?;
        let names = self.dns.iter().chain(&self.uris).take(4);
        names.into_iter().try_for_each(|name| write!(f, ", {}", line(name, MAX_QUOTED)))
    }
}

/// Person of the certificates with a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateRule {
    /// Name of the certificates.
    pub name: CertificateName,
    /// Person.
    pub person: PersonName,
    /// Scopes, which narrow the person's role.
    pub scopes: KeyScopes,
}

/// Reason why a certificate belongs to nobody.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnmappedCertificate {
    /// No rule has one of its names.
    #[error(
        "your client certificate ({0}) belongs to no person of this hub; the operator adds \
         `[[tls.client]]` with its `san` or `fingerprint` and a `person`"
    )]
    Unknown(String),
    /// Its names belong to several people.
    #[error(
        "your client certificate ({0}) has names of several people of this hub; get one for a \
         single person"
    )]
    Ambiguous(String),
}

/// Rules about client certificates: `[[tls.client]]`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CertificateRules(Vec<CertificateRule>);

impl CertificateRules {
    /// Rules in the order of the configuration.
    pub fn new(rules: Vec<CertificateRule>) -> Self {
        Self(rules)
    }

    /// Finds the rule of a certificate: the one with its fingerprint before the one with its URI
    /// and the one with its DNS name.
    ///
    /// # Errors
    ///
    /// If no rule has one of its names, or rules for several people have.
    pub fn find(&self, names: &CertificateNames) -> Result<&CertificateRule, UnmappedCertificate> {
        let rank = |rule: &&CertificateRule| match rule.name {
            CertificateName::Fingerprint(_) => 0,
            CertificateName::Uri(_) => 1,
            CertificateName::Dns(_) => 2,
        };
        let matching = || self.0.iter().filter(|rule| names.has(&rule.name));
        let first = matching().min_by_key(rank);
        let first = first.ok_or_else(|| UnmappedCertificate::Unknown(names.to_string()))?;
        match matching().all(|rule| rule.person == first.person) {
            true => Ok(first),
            false => Err(UnmappedCertificate::Ambiguous(names.to_string())),
        }
    }

    /// Rules for this person.
    pub fn of(&self, person: &PersonName) -> impl Iterator<Item = &CertificateRule> {
        self.0.iter().filter(move |rule| rule.person == *person)
    }

    /// Finds the rule for this person whose name has this text.
    fn by_text(&self, person: &PersonName, name: &str) -> Option<&CertificateRule> {
        self.0.iter().find(|rule| rule.person == *person && rule.name.to_string() == name)
    }
}

/// Credentials of a person that a request came with: an API key, a client certificate, or both.
/// Its text is the key of a [`Principal::Person`](crate::access_control::Principal::Person).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PersonProof<'t> {
    /// Id of the API key.
    pub key: Option<&'t str>,
    /// Text of the certificate's name.
    pub certificate: Option<&'t str>,
}

impl<'t> PersonProof<'t> {
    /// Reads the text of a proof.
    pub fn parse(text: &'t str) -> Self {
        if let Some(name) = text.strip_prefix(CERTIFICATE_KEY) {
            return Self { key: None, certificate: Some(name) };
        }
        match text.split_once(PROOF_SEPARATOR) {
            Some((key, rest)) => {
                let name = rest.strip_prefix(CERTIFICATE_KEY).unwrap_or(rest);
                Self { key: Some(key), certificate: Some(name) }
            }
            None => Self { key: Some(text), certificate: None },
        }
    }

    /// Rights by all credentials of the proof; each of them only narrows. `of_key` has the rights
    /// of an API key, and `of_certificate` those of a certificate with these scopes.
    pub fn rights(
        self,
        person: &PersonName,
        rules: &CertificateRules,
        of_key: impl FnOnce(&str) -> Option<PersonRights>,
        of_certificate: impl FnOnce(&KeyScopes) -> PersonRights,
    ) -> Option<PersonRights> {
        let key = match self.key {
            Some(key) => Some(of_key(key)?),
            None => None,
        };
        let Some(certificate) = self.certificate else { return key };
        let rule = rules.by_text(person, certificate)?;
        match key {
            None => Some(of_certificate(&rule.scopes)),
            Some(mut rights) => {
                rights.scopes = rights.scopes.intersection(&rule.scopes)?;
                Some(rights)
            }
        }
    }
}

impl fmt::Display for PersonProof<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.key, self.certificate) {
            (Some(key), Some(name)) => write!(f, "{key}{PROOF_SEPARATOR}{CERTIFICATE_KEY}{name}"),
            (Some(key), None) => f.write_str(key),
            (None, Some(name)) => write!(f, "{CERTIFICATE_KEY}{name}"),
            (None, None) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::PersonRole;
    use a2a_hub_protocol::id::TenantId;

    fn print(first: u8) -> CertificateFingerprint {
        CertificateFingerprint([first; 32])
    }

    fn names(dns: &[&str], uris: &[&str]) -> CertificateNames {
        let owned = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
        let (fingerprint, twins) = (print(1), vec![print(2)]);
        CertificateNames { fingerprint, twins, dns: owned(dns), uris: owned(uris) }
    }

    fn rule(name: CertificateName, person: &str, scopes: &[&str]) -> CertificateRule {
        let scopes = KeyScopes::parse(scopes.iter().copied()).unwrap();
        CertificateRule { name, person: PersonName::parse(person).unwrap(), scopes }
    }

    fn san(text: &str) -> CertificateName {
        CertificateName::parse_san(text).unwrap()
    }

    #[test]
    fn fingerprint_is_read_in_both_forms() {
        let plain = "0a".repeat(32);
        let colons = vec!["0A"; 32].join(":");
        assert_eq!(CertificateFingerprint::parse(&plain).unwrap(), print(10));
        assert_eq!(CertificateFingerprint::parse(&colons).unwrap().to_string(), plain);
        let short = &plain[2..];
        let signed = format!("+a{short}");
        for wrong in ["", "zz", short, &format!("{plain}0a"), &format!("0a:{short}"), &*signed] {
            assert_eq!(CertificateFingerprint::parse(wrong), Err(InvalidFingerprint), "{wrong}");
        }
    }

    #[test]
    fn rules_take_exact_names_only() {
        for good in
            ["ada.corp.example", "ada", "a-1.b", "spiffe://corp.example/ada/x_1", "spiffe://corp"]
        {
            assert_eq!(san(good).to_string(), good);
        }
        for wrong in [
            "",
            "*.corp.example",
            "Ada.corp",
            "ada.corp.",
            "10.0.0.1",
            "::1",
            "ad\u{e4}.corp",
            "ada\0.corp",
            "-a.b",
            "a..b",
            "https://corp.example/ada",
            "spiffe://",
            "spiffe:///ada",
            "spiffe://Corp/ada",
            "spiffe://corp/",
            "spiffe://corp/a//b",
            "spiffe://corp/../ada",
            "spiffe://corp/a%64a",
            "spiffe://corp/ada?x",
            "spiffe://corp:443/ada",
            "spiffe://ada@corp/x",
            "SPIFFE://corp/ada",
        ] {
            assert!(CertificateName::parse_san(wrong).is_err(), "{wrong}");
        }
    }

    /// Attempts to be Ada by a certificate that is not hers.
    #[test]
    fn similar_names_match_nobody() {
        let rules = CertificateRules::new(vec![
            rule(san("ada.corp.example"), "ada", &[]),
            rule(san("spiffe://corp.example/ada"), "ada", &[]),
            rule(san("bob.corp.example"), "bob", &[]),
        ]);
        let found = |dns: &[&str], uris: &[&str]| {
            rules.find(&names(dns, uris)).map(|rule| rule.person.to_string())
        };
        assert_eq!(found(&["ada.corp.example"], &[]).unwrap(), "ada");
        assert_eq!(found(&[], &["spiffe://corp.example/ada"]).unwrap(), "ada");
        assert_eq!(found(&["ada.corp.example"], &["spiffe://corp.example/ada"]).unwrap(), "ada");
        for (dns, uris) in [
            (&[][..], &[][..]),
            (&["*.corp.example"], &[]),
            (&["ada.corp.example\0.evil.example"], &[]),
            (&["ADA.corp.example"], &[]),
            (&["ada.corp.example."], &[]),
            (&["xn--ada-.corp.example"], &[]),
            (&["\u{430}da.corp.example"], &[]),
            (&["ada.corp.example", "evil.example"], &[]),
            (&["evil.example", "ada.corp.example"], &[]),
            (&["ada.corp.example", "ada.corp.example"], &[]),
            (&["spiffe://corp.example/ada"], &[]),
            (&[], &["ada.corp.example"]),
            (&[], &["spiffe://corp.example/ada", "spiffe://corp.example/eve"]),
            (&[], &["spiffe://corp.example/ADA"]),
            (&[], &["spiffe://corp.example/ada/"]),
            (&[], &["spiffe://corp.example/ada/x"]),
            (&[], &["spiffe://corp.example/%61da"]),
            (&[], &["spiffe://CORP.example/ada"]),
        ] {
            let refused = found(dns, uris).unwrap_err();
            assert!(matches!(refused, UnmappedCertificate::Unknown(_)), "{dns:?} {uris:?}");
            assert!(!refused.to_string().contains('\0'), "{refused}");
        }
        let both = found(&["bob.corp.example"], &["spiffe://corp.example/ada"]).unwrap_err();
        assert!(matches!(both, UnmappedCertificate::Ambiguous(_)), "{both}");
    }

    #[test]
    fn fingerprint_rule_precedes_name() {
        let pinned = rule(CertificateName::Fingerprint(print(1)), "ada", &["read"]);
        let named = rule(san("ada.corp"), "ada", &[]);
        let rules = CertificateRules::new(vec![named, pinned.clone()]);
        assert_eq!(rules.find(&names(&["ada.corp"], &[])).unwrap(), &pinned);
        let others = CertificateRules::new(vec![pinned, rule(san("ada.corp"), "bob", &[])]);
        assert!(others.find(&names(&["ada.corp"], &[])).is_err(), "two people");
    }

    /// The holder of a certificate cannot leave its rule by another encoding of its signature.
    #[test]
    fn fingerprint_rule_covers_twin() {
        let pinned = rule(CertificateName::Fingerprint(print(2)), "ada", &["read"]);
        let named = rule(san("ada.corp"), "ada", &[]);
        let rules = CertificateRules::new(vec![named, pinned.clone()]);
        assert_eq!(rules.find(&names(&["ada.corp"], &[])).unwrap(), &pinned);
        let other = rule(CertificateName::Fingerprint(print(3)), "ada", &["read"]);
        assert!(CertificateRules::new(vec![other]).find(&names(&[], &[])).is_err());
    }

    #[test]
    fn proof_narrows_by_each_credential() {
        let ada = PersonName::parse("ada").unwrap();
        let rules =
            CertificateRules::new(vec![rule(san("ada.corp"), "ada", &["read", "send:echo"])]);
        let rights = |scopes: &KeyScopes| PersonRights {
            name: PersonName::parse("ada").unwrap(),
            tenant: TenantId::default(),
            role: PersonRole::Member,
            scopes: scopes.clone(),
            expires_at: None,
        };
        let scopes_of = |proof: &str, key: Option<&[&str]>| {
            let of_key = |id: &str| {
                assert_eq!(id, "0a1b");
                key.map(|scopes| rights(&KeyScopes::parse(scopes.iter().copied()).unwrap()))
            };
            let found = PersonProof::parse(proof).rights(&ada, &rules, of_key, rights);
            found.map(|rights| rights.scopes.to_texts().join(" "))
        };
        let by_key = |key: &[&str]| scopes_of("0a1b+cert:ada.corp", Some(key));
        assert_eq!(scopes_of("cert:ada.corp", None).unwrap(), "read send:echo");
        assert_eq!(by_key(&[]).unwrap(), "read send:echo");
        assert_eq!(by_key(&["read", "cancel"]).unwrap(), "read");
        assert_eq!(by_key(&["send"]).unwrap(), "send:echo");
        assert_eq!(by_key(&["send:codex"]), None, "nothing is left, which is not everything");
        assert_eq!(by_key(&["cancel"]), None);
        assert_eq!(scopes_of("0a1b+cert:ada.corp", None), None, "the key was revoked");
        assert_eq!(scopes_of("0a1b", Some(&["cancel"])).unwrap(), "cancel");
        for unknown in ["cert:bob.corp", "0a1b+cert:bob.corp", "cert:", "0a1b+"] {
            assert_eq!(scopes_of(unknown, Some(&[])), None, "{unknown}");
        }
        for text in ["0a1b", "cert:spiffe://a/b", "0a1b+cert:ada.corp"] {
            assert_eq!(PersonProof::parse(text).to_string(), text);
        }
    }
}
