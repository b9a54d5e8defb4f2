//! The hub's signer: signatures of notifications and of cards with one Ed25519 key, whose public
//! half is in the hub's `jwks.json`. Who can verify cannot sign.
//!
//! - A receiver verifies the origin and age of a notification: Standard Webhooks with the
//!   asymmetric scheme `v1a` (standardwebhooks.com, "Signature scheme").
//! - A client verifies a card (A2A 1.0, section 8.4): JWS with `EdDSA` (RFC 7515, RFC 8037).
//!
//! No text of one kind is one of the other: a card's begins with a header in base64url, and its
//! payload has the members of a card alone, so that it is no token either.
//!
//! To rotate the key, the operator moves it to `push-key.old`: at its next start the hub makes a
//! new key and signs with both, so that verifiers that know only the old one still work. Removing
//! that file removes the old key.

use a2a_hub_config::token::{TokenError, find_secret, open_secret};
use a2a_hub_protocol::{
    card::{SignedCard, signed_cards},
    member,
    push::PublicKey,
};
use base64::{
    Engine as _,
    engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD},
};
use ring::{
    digest::{SHA256, digest},
    signature::{Ed25519KeyPair, KeyPair as _},
};
use serde_json::{Value, json};
use std::{fs, io, path::Path};

/// File in the data directory with the private key, for this user only: the seed of an Ed25519 key
/// in hex.
const KEY_FILE: &str = "push-key";

/// File in the same directory with the previous key, until no verifier uses that.
const OLD_KEY_FILE: &str = "push-key.old";

/// File beside it with the public key, for receivers.
pub const PUBLIC_KEY_FILE: &str = "push-key.pub";

/// The hub's private keys.
pub struct HubSigner {
    new: SignerKey,
    old: Option<SignerKey>,
}

struct SignerKey {
    pair: Ed25519KeyPair,
    public: PublicKey,
}

/// Error of opening the keys.
#[derive(Debug, thiserror::Error)]
pub enum SignerError {
    /// The private key's file cannot be used.
    #[error(transparent)]
    Secret(#[from] TokenError),
    /// The file contains no key. Any 32 bytes are one.
    #[error("use the key in {0}: it is none; remove it, and the hub makes a new one")]
    NoKey(&'static str),
    /// The public key cannot be written.
    #[error("write the public key: {0}")]
    Public(#[from] io::Error),
}

impl HubSigner {
    /// Opens the keys in this data directory, which persist over restarts; makes a new one if none
    /// exists.
    pub fn open(dir: &Path) -> Result<Self, SignerError> {
        let new = SignerKey::read(&open_secret(dir.join(KEY_FILE))?, KEY_FILE)?;
        let old = find_secret(dir.join(OLD_KEY_FILE))?;
        let old = old.map(|old| SignerKey::read(&old, OLD_KEY_FILE)).transpose()?;
        // In the format of the Standard Webhooks libraries.
        let public = format!("whpk_{}\n", STANDARD.encode(new.pair.public_key()));
        fs::write(dir.join(PUBLIC_KEY_FILE), public)?;
        Ok(Self { new, old })
    }

    /// Checks the existing keys, and makes none.
    pub fn check(dir: &Path) -> Result<(), SignerError> {
        for file in [KEY_FILE, OLD_KEY_FILE] {
            let key = find_secret(dir.join(file))?;
            key.map(|key| SignerKey::read(&key, file)).transpose()?;
        }
        Ok(())
    }

    /// Header `webhook-signature` of a body with this id and time (seconds since 1970): one
    /// signature for each key.
    pub(crate) fn sign_notification(&self, id: &str, timestamp: i64, body: &[u8]) -> String {
        let signed = [format!("{id}.{timestamp}.").as_bytes(), body].concat();
        let sign = |key: &SignerKey| format!("v1a,{}", STANDARD.encode(key.pair.sign(&signed)));
        self.both().map(sign).collect::<Vec<_>>().join(" ")
    }

    /// Signatures of a card (A2A 1.0, section 8.4.2), of each key one for each form that a verifier
    /// may read: the specified one first. `keys_url` is where the hub publishes the keys.
    pub(crate) fn sign_card(&self, card: &Value, keys_url: Option<&str>) -> Vec<Value> {
        let forms = signed_cards(card);
        let of_key = |key: &SignerKey| {
            let kid = &key.public.kid;
            let mut header = json!({ "alg": "EdDSA", "typ": "JOSE", "kid": kid });
            if let Some(url) = keys_url {
                member::set(&mut header, "jku", url);
            }
            let protected = URL_SAFE_NO_PAD.encode(header.to_string());
            let of_form = |form: &SignedCard| {
                let signed = format!("{protected}.{}", URL_SAFE_NO_PAD.encode(&form.payload));
                let signature = URL_SAFE_NO_PAD.encode(key.pair.sign(signed.as_bytes()));
                json!({ "protected": protected, "signature": signature })
            };
            forms.iter().map(of_form).collect::<Vec<_>>()
        };
        self.both().flat_map(of_key).collect()
    }

    /// Header `webhook-key-id`: id of the key of the first signature.
    pub(crate) fn key_id(&self) -> &str {
        &self.new.public.kid
    }

    /// Public keys, in the order of the signatures.
    pub(crate) fn keys(&self) -> Vec<PublicKey> {
        self.both().map(|key| key.public.clone()).collect()
    }

    fn both(&self) -> impl Iterator<Item = &SignerKey> {
        [&self.new].into_iter().chain(&self.old)
    }
}

impl SignerKey {
    fn read(secret: &str, file: &'static str) -> Result<Self, SignerError> {
        let byte = |at| secret.get(at..at + 2).and_then(|hex| u8::from_str_radix(hex, 16).ok());
        let seed: Option<Vec<u8>> = (0..secret.len()).step_by(2).map(byte).collect();
        let pair = seed.and_then(|seed| Ed25519KeyPair::from_seed_unchecked(&seed).ok());
        let pair = pair.ok_or(SignerError::NoKey(file))?;
        let x = URL_SAFE_NO_PAD.encode(pair.public_key());
        let kid = URL_SAFE_NO_PAD.encode(digest(&SHA256, PublicKey::to_be_hashed(&x).as_bytes()));
        Ok(Self { pair, public: PublicKey::new(x, kid) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ring::signature::{ED25519, UnparsedPublicKey};

    /// True if `public` verifies the signature of `signed`.
    fn is_of(public: &PublicKey, signature: &str, signed: &[u8]) -> bool {
        let key = UnparsedPublicKey::new(&ED25519, URL_SAFE_NO_PAD.decode(&public.x).unwrap());
        let signature = STANDARD.decode(signature.strip_prefix("v1a,").unwrap()).unwrap();
        key.verify(signed, &signature).is_ok()
    }

    #[test]
    fn signature_verifies_with_published_key() {
        let dir = tempfile::tempdir().unwrap();
        let signer = HubSigner::open(dir.path()).unwrap();
        let signature = signer.sign_notification("task-1", 1_700_000_000, b"{}");
        let keys = HubSigner::open(dir.path()).unwrap().keys();
        assert_eq!(keys, signer.keys(), "it stays");
        assert_eq!((keys.len(), keys[0].kid.as_str()), (1, signer.key_id()));
        assert!(is_of(&keys[0], &signature, b"task-1.1700000000.{}"));
        assert!(!is_of(&keys[0], &signature, b"task-1.1700000001.{}"));
        assert!(!is_of(&keys[0], &signature, b"task-1.1700000000.{ }"));
        let file = fs::read_to_string(dir.path().join(PUBLIC_KEY_FILE)).unwrap();
        let written = STANDARD.decode(file.trim_end().strip_prefix("whpk_").unwrap()).unwrap();
        assert_eq!(URL_SAFE_NO_PAD.encode(written), keys[0].x);
    }

    #[test]
    fn old_key_signs_until_file_is_removed() {
        let dir = tempfile::tempdir().unwrap();
        let [file, old_file] = [KEY_FILE, OLD_KEY_FILE].map(|name| dir.path().join(name));
        let old = HubSigner::open(dir.path()).unwrap().keys().remove(0);
        fs::rename(&file, &old_file).unwrap();
        let signer = HubSigner::open(dir.path()).unwrap();
        let [new, still] = &signer.keys()[..] else { panic!("there must be two") };
        assert_eq!((still, signer.key_id()), (&old, new.kid.as_str()));
        assert_ne!(new, &old);
        let signatures = signer.sign_notification("id", 1, b"{}");
        let of = |key| signatures.split(' ').map(move |it| is_of(key, it, b"id.1.{}"));
        assert_eq!(of(new).collect::<Vec<_>>(), [true, false]);
        assert_eq!(of(&old).collect::<Vec<_>>(), [false, true]);

        fs::remove_file(&old_file).unwrap();
        assert_eq!(HubSigner::open(dir.path()).unwrap().keys(), std::slice::from_ref(new));
        fs::write(&old_file, "not a key").unwrap();
        let refused = HubSigner::open(dir.path()).err().unwrap().to_string();
        assert!(refused.contains(OLD_KEY_FILE), "{refused}");
    }

    /// The card's forms, and both keys of a change of keys.
    #[test]
    fn card_signatures_cover_each_form() {
        let dir = tempfile::tempdir().unwrap();
        HubSigner::open(dir.path()).unwrap();
        let [file, old] = [KEY_FILE, OLD_KEY_FILE].map(|name| dir.path().join(name));
        fs::rename(file, old).unwrap();
        let signer = HubSigner::open(dir.path()).unwrap();
        let card = json!({ "name": "n", "description": "", "supportedInterfaces": [], "url": "http://x/" });
        let forms = signed_cards(&card);
        let signatures = signer.sign_card(&card, Some("http://x/keys"));
        assert_eq!((forms.len(), signatures.len()), (2, 4));
        assert_eq!(signatures, signer.sign_card(&card, Some("http://x/keys")), "it is stable");
        let text = |one: &Value, member: &str| one[member].as_str().unwrap().to_owned();
        for (n, one) in signatures.iter().enumerate() {
            let (key, form) = (&signer.keys()[n / 2], &forms[n % 2]);
            let protected = text(one, "protected");
            let header = URL_SAFE_NO_PAD.decode(&protected).unwrap();
            let header: Value = serde_json::from_slice(&header).unwrap();
            let expected =
                json!({ "alg": "EdDSA", "typ": "JOSE", "kid": key.kid, "jku": "http://x/keys" });
            assert_eq!(header, expected);
            let signed = format!("{protected}.{}", URL_SAFE_NO_PAD.encode(&form.payload));
            let public = URL_SAFE_NO_PAD.decode(&key.x).unwrap();
            let signature = URL_SAFE_NO_PAD.decode(text(one, "signature")).unwrap();
            let public = UnparsedPublicKey::new(&ED25519, public);
            assert!(public.verify(signed.as_bytes(), &signature).is_ok());
        }
        let over_socket = signer.sign_card(&card, None).remove(0);
        let header = URL_SAFE_NO_PAD.decode(text(&over_socket, "protected")).unwrap();
        assert!(!String::from_utf8(header).unwrap().contains("jku"));
    }

    /// RFC 8037, appendix A.
    #[test]
    fn key_id_is_rfc8037_thumbprint() {
        let seed = "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60";
        let key = SignerKey::read(seed, KEY_FILE).unwrap().public;
        assert_eq!(key.x, "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo");
        assert_eq!(key.kid, "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k");
    }
}
