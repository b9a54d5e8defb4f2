//! Texts of API keys and invitations: a prefix by which scanners find leaked ones, the id, the
//! secret, and a checksum that tells a mistyped key from an unknown one.
//!
//! ```text
//! a2ah_<id: 12 hex digits>_<secret: 64 hex digits>_<checksum: 8 hex digits>
//! a2ai_<secret: 64 hex digits>_<checksum: 8 hex digits>
//! ```

use a2a_hub_protocol::error::{A2aError, ErrorKind};
use ring::digest::{SHA256, digest};

/// Beginning of each API key.
pub const KEY_PREFIX: &str = "a2ah_";

/// Beginning of each invitation.
const INVITATION_PREFIX: &str = "a2ai_";

/// Random bytes of a secret: 256 bits cannot be guessed.
const SECRET_BYTES: usize = 32;

/// Random bytes of an id.
const ID_BYTES: usize = 6;

/// Hexadecimal digits of the checksum.
const CHECKSUM: usize = 8;

/// A new API key.
pub(super) struct FreshKey {
    /// The whole text, with the secret.
    pub(super) text: String,
    pub(super) id: String,
}

impl FreshKey {
    /// Makes a key.
    pub(super) fn make() -> Result<Self, A2aError> {
        let (id, secret) = (random::<ID_BYTES>()?, random::<SECRET_BYTES>()?);
        let text = with_checksum(&format!("{KEY_PREFIX}{id}_{secret}"));
        Ok(Self { text, id })
    }
}

/// Makes an invitation.
pub(super) fn fresh_invitation() -> Result<String, A2aError> {
    Ok(with_checksum(&format!("{INVITATION_PREFIX}{}", random::<SECRET_BYTES>()?)))
}

/// Id of a key; `None` if the text is no complete key.
pub(super) fn id_of_key(text: &str) -> Option<&str> {
    let (content, checksum) = text.rsplit_once('_')?;
    if checksum != checksum_of(content) {
        return None;
    }
    let (id, _) = content.strip_prefix(KEY_PREFIX)?.split_once('_')?;
    Some(id)
}

/// SHA-256 digest of a text, in hexadecimal digits.
pub(super) fn digest_of(text: &str) -> String {
    hex::encode(digest(&SHA256, text.as_bytes()))
}

fn with_checksum(content: &str) -> String {
    let checksum = checksum_of(content);
    format!("{content}_{checksum}")
}

fn checksum_of(content: &str) -> String {
    digest_of(content).chars().take(CHECKSUM).collect()
}

fn random<const BYTES: usize>() -> Result<String, A2aError> {
    let mut random = [0; BYTES];
    let filled = getrandom::fill(&mut random);
    filled.map_err(|why| A2aError::new(ErrorKind::Internal, why.to_string()))?;
    Ok(hex::encode(random))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_names_its_id() {
        let FreshKey { text, id } = FreshKey::make().unwrap();
        assert_eq!((id_of_key(&text), text.len()), (Some(&*id), 5 + 12 + 1 + 64 + 1 + 8));
        assert_ne!(text, FreshKey::make().unwrap().text);
    }

    #[test]
    fn damaged_key_is_recognised() {
        let FreshKey { text, .. } = FreshKey::make().unwrap();
        let cut = &text[..text.len() - 1];
        let swapped = text.replacen("a2ah_", "a2ai_", 1);
        let upper = text.to_uppercase();
        for wrong in ["", "_", "a2ah_", "a2ah__", "a2ah_x_y_z", cut, &swapped, &upper] {
            assert_eq!(id_of_key(wrong), None, "{wrong}");
        }
        assert_eq!(id_of_key(&fresh_invitation().unwrap()), None);
    }
}
