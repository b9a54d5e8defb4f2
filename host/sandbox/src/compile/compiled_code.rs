//! Compiled code, and the only way to run it. Machine code runs unchecked, so only three kinds are
//! accepted: output of this hub's compiler, code bundled in the executable, and cache entries with
//! this hub's authentication tag (HMAC-SHA-256), verified on the very bytes that are run.

use ring::hmac;
use std::ptr::NonNull;
use subtle::ConstantTimeEq as _;
use wasmtime::component::Component;

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
    pub(crate) fn mark(&self, name: &str, kept: &[u8]) -> hmac::Tag {
        let mut context = hmac::Context::with_key(&self.0);
        for piece in [DOMAIN, name.as_bytes(), &[0], kept] {
            context.update(piece);
        }
        context.sign()
    }

    /// Verifies a file's tag; returns the data, or none if key, name or bytes do not match.
    pub(crate) fn unmark<'f>(&self, name: &str, file: &'f [u8]) -> Option<&'f [u8]> {
        let (mark, kept) = file.split_at_checked(MARK)?;
        // Constant-time comparison (timing attack).
        let is_ours: bool = self.mark(name, kept).as_ref().ct_eq(mark).into();
        is_ours.then_some(kept)
    }
}

/// Code that may be run.
#[derive(Debug)]
pub(crate) enum CompiledCode {
    /// Code in memory of this process.
    Read {
        /// Whole content of the file.
        file: Vec<u8>,
        /// Offset of the code.
        at: usize,
    },
    /// Code in the mapped executable.
    InPlace(&'static [u8]),
}

impl CompiledCode {
    /// Output of this program's compiler, from this process or a worker.
    pub(crate) fn fresh(code: Vec<u8>) -> Self {
        Self::Read { file: code, at: 0 }
    }

    /// A copy of bundled code.
    pub(crate) fn carried(code: Vec<u8>) -> Self {
        Self::Read { file: code, at: 0 }
    }

    /// Bundled code in the mapped executable.
    pub(crate) fn carried_in_place(code: &'static [u8]) -> Self {
        Self::InPlace(code)
    }

    /// Content of a cache file, if its tag is valid for this name.
    pub(crate) fn marked(key: &CacheKey, name: &str, file: Vec<u8>) -> Option<Self> {
        key.unmark(name, &file)?;
        Some(Self::Read { file, at: MARK })
    }

    /// The code.
    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            Self::Read { file, at } => &file[*at..],
            Self::InPlace(code) => code,
        }
    }

    /// Loads the component for linking. Fails if the engine has no capacity for its parts.
    #[expect(
        unsafe_code,
        reason = "wasmtime runs what it is given; see the comment for why that is safe here"
    )]
    pub(crate) fn load(&self, engine: &wasmtime::Engine) -> wasmtime::Result<Component> {
        // SAFETY: `deserialize` requires unmodified output of `precompile_component` of this very
        // version of wasmtime. A `CompiledCode` has one of three sources: made a moment ago by this
        // program; part of this program's own file, which nobody can change who could not change
        // the program as well; or found under a tag whose key only this hub has, and whose name
        // contains the version and the settings of the compiler. wasmtime checks version and
        // settings itself, too. Code that was read is in memory of this process, not in a file that
        // could change meanwhile, and the engine copies it before it parses it. Code in place is
        // never unmapped, and the system denies writes to the file of a running program.
        unsafe {
            match self {
                Self::Read { .. } => Component::deserialize(engine, self.bytes()),
                Self::InPlace(code) => Component::deserialize_raw(engine, NonNull::from(*code)),
            }
        }
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
