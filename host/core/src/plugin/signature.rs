//! Signatures of components: detached minisign signatures (Ed25519 over a BLAKE2b digest), verified
//! with keys that the operator named.
//!
//! A signature proves the publisher of a component, and nothing about its behaviour. One publisher
//! signs several components, and old versions too. So a signed update must also have the name of
//! the component that it replaces, and must not be older.

use minisign_verify::{Error, PublicKey, Signature};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Maximum size of a signature file in bytes: four lines, two of which are comments.
pub const MAX_BYTES: usize = 4 << 10;

/// Maximum length of a key's name in bytes, because messages to people contain it.
const MAX_NAME: usize = 64;

/// Policy for signatures of components.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SignaturePolicy {
    /// Ignores signatures.
    Off,
    /// Admits unsigned components with a warning, and refuses invalid signatures.
    Warn,
    /// Admits only components signed with a named key.
    Require,
}

/// Keys that the operator named.
#[derive(Clone, Debug, Default)]
pub struct TrustedKeys(BTreeMap<String, PublicKey>);

/// Error for an unusable key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidKey {
    /// The name is invalid.
    #[error(
        "call a key `{0}`: a key's name is 1 to {MAX_NAME} characters of `a-z`, `0-9`, `.`, `_` and `-`, and begins with a letter or \
         a digit"
    )]
    Name(String),
    /// The key is no public key of minisign.
    #[error(
        "verify signatures by the key `{0}`: it is no public key of minisign; give the second line of its `.pub` file, which \
         begins with `RW`"
    )]
    Key(String),
}

/// Origin of a component according to its signature.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Provenance {
    /// It has no signature.
    Unsigned,
    /// It is signed with the key of this name.
    Signed(String),
    /// It is signed with a key that the operator did not name.
    Stranger,
    /// A named key signed other contents.
    Forged(String),
    /// A named key signed with minisign's legacy algorithm, which is not verified.
    Old(String),
    /// Its signature cannot be parsed.
    Unreadable(&'static str),
}

/// Reason why a component is refused because of its signature.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Untrusted {
    /// The policy requires a signature, and the component has none.
    #[error(
        "nobody signed it, and `plugins.policy` is `require`: sign it (`minisign -Sm FILE.wasm`), put the `.minisig` beside it and \
         name the key in `plugins.keys`, or set `plugins.policy` to `warn`"
    )]
    Unsigned,
    /// The key is not one of the operator's.
    #[error(
        "it is signed with a key that `plugins.keys` does not name, and `plugins.policy` is `require`: if you trust its owner, name \
         the key with `plugins.keys.NAME = \"RW...\"`"
    )]
    Stranger,
    /// The signature is for other contents.
    #[error(
        "its signature is of another file: since the key `{0}` signed, somebody changed the component or the signature; fetch both \
         again"
    )]
    Forged(String),
    /// The signature uses the legacy algorithm, which is not verified.
    #[error(
        "its signature by the key `{0}` is of minisign's old kind, which signs no digest of the file and is not verified: have it \
         signed anew, with `a2a-hub plugin sign FILE.wasm` or `minisign -SHm FILE.wasm`"
    )]
    Old(String),
    /// The signature cannot be parsed.
    #[error("its signature cannot be read: {0}; fetch the `.minisig` again, or remove it")]
    Unreadable(&'static str),
}

impl TrustedKeys {
    /// Parses keys, each the base64 line of a `.pub` file of minisign, by the names that the
    /// operator gave them.
    pub fn named<'k>(
        keys: impl IntoIterator<Item = (&'k String, &'k String)>,
    ) -> Result<Self, InvalidKey> {
        let named = keys.into_iter().map(|(name, key)| {
            if !is_name(name) {
                return Err(InvalidKey::Name(name.clone()));
            }
            let public =
                PublicKey::from_base64(key.trim()).map_err(|_| InvalidKey::Key(name.clone()))?;
            Ok((name.clone(), public))
        });
        named.collect::<Result<_, _>>().map(Self)
    }

    /// Verifies the signature file that came with `component`. Hashes the whole component, so call
    /// it on a thread that may block.
    pub fn provenance(&self, component: &[u8], signature: Option<&str>) -> Provenance {
        let Some(signature) = signature else { return Provenance::Unsigned };
        let Ok(signature) = Signature::decode(signature) else {
            return Provenance::Unreadable("it is not what `minisign -S` writes");
        };
        for (name, key) in &self.0 {
            match key.verify(component, &signature, false) {
                Ok(()) => return Provenance::Signed(name.clone()),
                Err(Error::UnexpectedKeyId) => {}
                // The legacy algorithm (before 2021) signs no digest, so a signature could be
                // passed off as that of another text.
                Err(Error::UnexpectedAlgorithm | Error::UnsupportedLegacyMode) => {
                    return Provenance::Old(name.clone());
                }
                Err(
                    Error::InvalidSignature
                    | Error::InvalidEncoding
                    | Error::UnsupportedAlgorithm
                    | Error::IoError(_),
                ) => return Provenance::Forged(name.clone()),
            }
        }
        Provenance::Stranger
    }
}

fn is_name(name: &str) -> bool {
    let mut bytes = name.bytes();
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    bytes.next().is_some_and(is_plain)
        && name.len() <= MAX_NAME
        && bytes.all(|byte| is_plain(byte) || matches!(byte, b'.' | b'_' | b'-'))
}

impl SignaturePolicy {
    /// Checks if a component of this origin may join. Invalid signatures are refused under every
    /// policy that checks them: a missing signature can be innocent, an invalid one means that
    /// something was changed.
    pub fn admit(self, provenance: &Provenance) -> Result<(), Untrusted> {
        match (self, provenance) {
            (Self::Off, _)
            | (Self::Warn | Self::Require, Provenance::Signed(_))
            | (Self::Warn, Provenance::Unsigned | Provenance::Stranger) => Ok(()),
            (Self::Require, Provenance::Unsigned) => Err(Untrusted::Unsigned),
            (Self::Require, Provenance::Stranger) => Err(Untrusted::Stranger),
            (Self::Warn | Self::Require, Provenance::Forged(key)) => {
                Err(Untrusted::Forged(key.clone()))
            }
            (Self::Warn | Self::Require, Provenance::Old(key)) => Err(Untrusted::Old(key.clone())),
            (Self::Warn | Self::Require, Provenance::Unreadable(why)) => {
                Err(Untrusted::Unreadable(why))
            }
        }
    }
}

impl Provenance {
    /// Name of the operator's key that signed it.
    pub fn signer(&self) -> Option<&str> {
        match self {
            Self::Signed(key) => Some(key),
            Self::Unsigned
            | Self::Stranger
            | Self::Forged(_)
            | Self::Old(_)
            | Self::Unreadable(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two keys made by minisign 0.10, with their signatures of the text `component`.
    const FIRST: &str = "RWSWo1m4ztjchfgmToGUoMLB3iq4AEbF6qcbOHElw2dD3pbKt9RYOg+1";
    const BY_FIRST: &str = "untrusted comment: signature
RUSWo1m4ztjchSI5QTdfOUZlVt9QbSMCc5UR31P/J7KBZgC8dnTqN0V2zZdj0vgSQ6MiFTCEAl0AwLG4sAz9WNKZaKQZLu6p0go=
trusted comment: a trusted comment
wR0iPbApHX6siJ7qFbTLNWaW2veTEI4pfcXonzNZZFWhn1ImvuiWEyHgflJ4PSRvP7Y38siE24VkoLCZ9qMiCQ==
";
    const SECOND: &str = "RWT2Alrg8oRVgc9+ypDzRkrOSHfZ3uk6WCm2gkdQJovR2W2gI1Z71FFU";
    const BY_SECOND: &str = "untrusted comment: signature
RUT2Alrg8oRVgX176ikFHRJ+IFUkS8hDZLwyCc5h1L+UKO52YVCUrk2GEqLAaBADQ88ko4ogy320+QdB62CHiYyfFbyzLyDRiQ0=
trusted comment: a trusted comment
LPsohJr2oPaPoqxZap0w+kOoPLNzUUgK3eibmyzoGWN16XsTamN7QZnt+GSKoFAb+UTRgLkwc1jKOH/FAMi7DA==
";

    fn keys(named: &[(&str, &str)]) -> Result<TrustedKeys, InvalidKey> {
        let named = named.iter().map(|(name, key)| ((*name).to_owned(), (*key).to_owned()));
        TrustedKeys::named(&named.collect::<BTreeMap<_, _>>())
    }

    #[test]
    fn signature_matches_one_key_and_component() {
        let both = keys(&[("first", FIRST), ("second", SECOND)]).unwrap();
        let one = keys(&[("first", FIRST)]).unwrap();
        let signed = |by: &str| Provenance::Signed(by.to_owned());
        assert_eq!(both.provenance(b"component", Some(BY_FIRST)), signed("first"));
        assert_eq!(both.provenance(b"component", Some(BY_SECOND)), signed("second"));
        assert_eq!(one.provenance(b"component", Some(BY_SECOND)), Provenance::Stranger);
        assert_eq!(one.provenance(b"component", None), Provenance::Unsigned);
        let forged = Provenance::Forged("first".to_owned());
        assert_eq!(one.provenance(b"componenT", Some(BY_FIRST)), forged);
        // The comment that minisign calls trusted is signed as well.
        let retold = BY_FIRST.replace("a trusted", "another");
        assert_eq!(one.provenance(b"component", Some(&retold)), forged);
        // Key id of the first key in a signature of the second.
        let (first, second) = (line(BY_FIRST, 1), line(BY_SECOND, 1));
        let borrowed = BY_SECOND.replace(second, &format!("{}{}", &first[..14], &second[14..]));
        assert_eq!(one.provenance(b"component", Some(&borrowed)), forged);
    }

    /// Key with a legacy signature, without a digest.
    const THIRD: &str = "RWRSGeNydIg9jRBSUuSykur1ya5ss9TS0xJZAF8iagIRGqijAaRSxkOl";
    const BY_THIRD: &str = "untrusted comment: signature
RWRSGeNydIg9jSXYmxunci9sfUzKzN/yDpGxbY5YzEbmKzjeWuh+juob1hKiyeQlMPYTHY/rnou1kLhVYwKcZiNBV79Vz+VB5g4=
trusted comment: a trusted comment
5cvsEQZYGssnL7mLp8+MPgaXR5USxjGz/FpVQZKqT3OYQU3K4CMvtbo07EmVGFsFoSReKIr0NJs/wzFEDSzGBQ==
";

    #[test]
    fn legacy_signature_is_reported_as_old() {
        let old = Provenance::Old("third".to_owned());
        let third = keys(&[("first", FIRST), ("third", THIRD)]).unwrap();
        assert_eq!(third.provenance(b"component", Some(BY_THIRD)), old);
        let key = PublicKey::from_base64(THIRD).unwrap();
        let signature = Signature::decode(BY_THIRD).unwrap();
        assert!(key.verify(b"component", &signature, true).is_ok(), "it is a good one of its kind");
        let first = keys(&[("first", FIRST)]).unwrap();
        assert_eq!(first.provenance(b"component", Some(BY_THIRD)), Provenance::Stranger);
    }

    fn line(text: &str, at: usize) -> &str {
        text.lines().nth(at).unwrap()
    }

    #[test]
    fn invalid_signature_text_is_unreadable() {
        let keys = keys(&[("first", FIRST)]).unwrap();
        for text in ["", "signed, honestly", &BY_FIRST[..100], &BY_FIRST.replace('=', "!")] {
            let told = keys.provenance(b"component", Some(text));
            assert!(matches!(told, Provenance::Unreadable(_)), "{text}: {told:?}");
        }
    }

    #[test]
    fn policy_determines_admitted_provenance() {
        use SignaturePolicy::{Off, Require, Warn};
        let (signed, forged) =
            (Provenance::Signed("a".to_owned()), Provenance::Forged("a".to_owned()));
        for (provenance, admitted_by) in [
            (signed, &[Off, Warn, Require][..]),
            (Provenance::Unsigned, &[Off, Warn]),
            (Provenance::Stranger, &[Off, Warn]),
            (forged, &[Off]),
            (Provenance::Old("a".to_owned()), &[Off]),
            (Provenance::Unreadable("it is short"), &[Off]),
        ] {
            for policy in [Off, Warn, Require] {
                let admitted = policy.admit(&provenance).is_ok();
                assert_eq!(admitted, admitted_by.contains(&policy), "{policy:?} {provenance:?}");
            }
        }
    }

    #[test]
    fn invalid_key_or_name_is_refused() {
        let (name, key) = (keys(&[("A key", FIRST)]), keys(&[("a", "RWx")]));
        insta::assert_snapshot!(name.unwrap_err(), @"call a key `A key`: a key's name is 1 to 64 characters of `a-z`, `0-9`, `.`, `_` and `-`, and begins with a letter or a digit");
        insta::assert_snapshot!(key.unwrap_err(), @"verify signatures by the key `a`: it is no public key of minisign; give the second line of its `.pub` file, which begins with `RW`");
        assert!(keys(&[("a.b_c-1", &format!(" {SECOND}\n"))]).is_ok());
    }

    #[test]
    fn refusals_name_the_way_out() {
        let told =
            |provenance| SignaturePolicy::Require.admit(&provenance).unwrap_err().to_string();
        insta::assert_snapshot!(told(Provenance::Unsigned), @"nobody signed it, and `plugins.policy` is `require`: sign it (`minisign -Sm FILE.wasm`), put the `.minisig` beside it and name the key in `plugins.keys`, or set `plugins.policy` to `warn`");
        insta::assert_snapshot!(told(Provenance::Stranger), @r#"it is signed with a key that `plugins.keys` does not name, and `plugins.policy` is `require`: if you trust its owner, name the key with `plugins.keys.NAME = "RW..."`"#);
        insta::assert_snapshot!(told(Provenance::Forged("acme".to_owned())), @"its signature is of another file: since the key `acme` signed, somebody changed the component or the signature; fetch both again");
        insta::assert_snapshot!(told(Provenance::Old("acme".to_owned())), @"its signature by the key `acme` is of minisign's old kind, which signs no digest of the file and is not verified: have it signed anew, with `a2a-hub plugin sign FILE.wasm` or `minisign -SHm FILE.wasm`");
    }
}
