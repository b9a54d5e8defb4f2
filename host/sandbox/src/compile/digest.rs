//! Identity of a component.

use sha2::{Digest as _, Sha256};

/// SHA-256 digest of a component, in lower-case hexadecimal digits.
pub fn digest_of(component: &[u8]) -> String {
    format!("{:x}", Sha256::digest(component))
}
