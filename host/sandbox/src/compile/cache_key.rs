//! Key of the compile cache: marks each file with an authentication tag (HMAC-SHA-256), and accepts
//! only files with the right tag.

use ring::hmac;
use subtle::ConstantTimeEq as _;

/// Domain separator of the tag: tags of other kinds of files under the same key differ.
const DOMAIN: &[u8] = b"a2a-hub compiled code 1\0";

/// Length of a tag, in bytes.
pub(crate) const MARK: usize = 32;

/// Key that authenticates a hub's compiled code. A process with the key can make the hub run any
/// machine code.
#[derive(Clone)]
pub struct CacheKey(hmac::Key);

impl std::fmt::Debug for CacheKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("CacheKey")
    }
}

impl CacheKey {
    /// Key derived from this secret.
    pub fn new(secret: &[u8]) -> Self {
        Self(hmac::Key::new(hmac::HMAC_SHA256, secret))
    }

    /// Tag of data stored under a name.
    pub(crate) fn mark(&self, name: &str, data: &[u8]) -> hmac::Tag {
        let mut context = hmac::Context::with_key(&self.0);
        for piece in [DOMAIN, name.as_bytes(), &[0], data] {
            context.update(piece);
        }
        context.sign()
    }

    /// Verifies a file's tag; returns the data, or none if key, name or bytes do not match.
    pub(crate) fn unmark<'f>(&self, name: &str, file: &'f [u8]) -> Option<&'f [u8]> {
        let (mark, data) = file.split_at_checked(MARK)?;
        // Constant-time comparison (timing attack).
        let is_ours: bool = self.mark(name, data).as_ref().ct_eq(mark).into();
        is_ours.then_some(data)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tag_covers_key_name_and_bytes() {
        let (key, other) = (CacheKey::new(&[1; 32]), CacheKey::new(&[2; 32]));
        let file =
            |key: &CacheKey, name, kept: &[u8]| [key.mark(name, kept).as_ref(), kept].concat();
        let kept = file(&key, "a.cwasm", b"code");
        assert_eq!(key.unmark("a.cwasm", &kept), Some(&b"code"[..]));
        assert_eq!(other.unmark("a.cwasm", &kept), None, "another hub's");
        assert_eq!(
            key.unmark("b.cwasm", &kept),
            None,
            "another component's, or another compiler's"
        );
        for length in 0..kept.len() {
            assert_eq!(key.unmark("a.cwasm", &kept[..length]), None, "cut off at {length}");
        }
        for at in 0..kept.len() {
            let mut changed = kept.clone();
            changed[at] ^= 1;
            assert_eq!(key.unmark("a.cwasm", &changed), None, "changed at {at}");
        }
        // The boundary between name and data is authenticated.
        let shifted = file(&key, "a", b".cwasm\0code");
        assert_eq!(key.unmark("a.cwasm", &shifted), None);
    }
}
