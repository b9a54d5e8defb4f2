//! Signatures, by which a receiver knows that news are this hub's and new: Standard Webhooks, with the asymmetric scheme
//! `v1a` (standardwebhooks.com, "Signature scheme"). Whoever can check one cannot make one.

use crate::auth::{TokenError, open_secret};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use ring::signature::{Ed25519KeyPair, KeyPair as _};
use std::{fs, io, path::Path};

/// The file in the data directory that holds the private key, for this user only: the seed of an Ed25519 key in hex.
const KEY_FILE: &str = "push-key";

/// The file beside it that holds the public key, for whoever is to check signatures.
pub const PUBLIC_KEY_FILE: &str = "push-key.pub";

/// The hub's key.
pub struct Seal(Ed25519KeyPair);

/// Why nothing can be signed.
#[derive(Debug, thiserror::Error)]
pub enum SealError {
    /// The private key cannot be used.
    #[error(transparent)]
    Secret(#[from] TokenError),
    /// It is no key. 32 bytes always are one.
    #[error("use the key in {KEY_FILE}: it is none; remove it, and the hub makes a new one")]
    NoKey,
    /// The public key cannot be written.
    #[error("write the public key: {0}")]
    Public(#[from] io::Error),
}

impl Seal {
    /// The key of the hub with this data directory, which stays the same over restarts; a new one if there is none.
    pub fn open(dir: &Path) -> Result<Self, SealError> {
        let secret = open_secret(dir.join(KEY_FILE))?;
        let byte = |at| secret.get(at..at + 2).and_then(|hex| u8::from_str_radix(hex, 16).ok());
        let seed: Option<Vec<u8>> = (0..secret.len()).step_by(2).map(byte).collect();
        let key = Ed25519KeyPair::from_seed_unchecked(&seed.ok_or(SealError::NoKey)?);
        let seal = Self(key.map_err(|_| SealError::NoKey)?);
        fs::write(dir.join(PUBLIC_KEY_FILE), format!("{}\n", seal.public_key()))?;
        Ok(seal)
    }

    /// The public key, as the libraries of Standard Webhooks take it.
    fn public_key(&self) -> String {
        format!("whpk_{}", STANDARD.encode(self.0.public_key()))
    }

    /// The header `webhook-signature` of a body sent under this id at this time, in seconds since 1970.
    pub(super) fn sign(&self, id: &str, timestamp: i64, body: &[u8]) -> String {
        let signed = [format!("{id}.{timestamp}.").as_bytes(), body].concat();
        format!("v1a,{}", STANDARD.encode(self.0.sign(&signed)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ring::signature::{ED25519, UnparsedPublicKey};

    #[test]
    fn whoever_has_the_public_key_can_check() {
        let dir = tempfile::tempdir().unwrap();
        let signature = Seal::open(dir.path()).unwrap().sign("task-1", 1_700_000_000, b"{}");
        let public = fs::read_to_string(dir.path().join(PUBLIC_KEY_FILE)).unwrap();
        assert_eq!(
            format!("{}\n", Seal::open(dir.path()).unwrap().public_key()),
            public,
            "it stays"
        );

        let bytes =
            |text: &str, prefix| STANDARD.decode(text.strip_prefix(prefix).unwrap()).unwrap();
        let key = UnparsedPublicKey::new(&ED25519, bytes(public.trim_end(), "whpk_"));
        let signature = bytes(&signature, "v1a,");
        assert!(key.verify(b"task-1.1700000000.{}", &signature).is_ok());
        assert!(key.verify(b"task-1.1700000001.{}", &signature).is_err());
        assert!(key.verify(b"task-1.1700000000.{ }", &signature).is_err());
    }
}
