//! What a component is known by.

use sha2::{Digest as _, Sha256};

/// The SHA-256 digest of a component, in lower-case hex.
pub fn digest_of(component: &[u8]) -> String {
    format!("{:x}", Sha256::digest(component))
}
