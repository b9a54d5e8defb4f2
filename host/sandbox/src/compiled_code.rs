//! Code that was compiled from a component, and the one door to running it. Machine code is run as it stands, so nothing comes
//! through that door but what the compiler of this hub has just made, what the program's own file carries, or what bears this hub's
//! mark of authenticity (HMAC-SHA-256), checked on the very bytes that are then run.

use ring::hmac;
use std::ptr::NonNull;
use subtle::ConstantTimeEq as _;
use wasmtime::component::Component;

/// What the mark is of, beside the name and the bytes: a mark of another kind of file under the same key is none of these.
const DOMAIN: &[u8] = b"a2a-hub compiled code 1\0";

/// Bytes of a mark.
pub(crate) const MARK: usize = 32;

/// The key of a hub's marks: whoever has it can have the hub run any machine code.
#[derive(Clone)]
pub struct CacheKey(hmac::Key);

impl std::fmt::Debug for CacheKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("CacheKey")
    }
}

impl CacheKey {
    /// The key that is made of this secret.
    pub fn new(secret: &[u8]) -> Self {
        Self(hmac::Key::new(hmac::HMAC_SHA256, secret))
    }

    /// The mark of what is kept under a name.
    pub(crate) fn mark(&self, name: &str, kept: &[u8]) -> hmac::Tag {
        let mut context = hmac::Context::with_key(&self.0);
        for piece in [DOMAIN, name.as_bytes(), &[0], kept] {
            context.update(piece);
        }
        context.sign()
    }

    /// Splits a file into its mark and what is kept there; none if the mark is not of this key, this name and these bytes.
    pub(crate) fn unmark<'f>(&self, name: &str, file: &'f [u8]) -> Option<&'f [u8]> {
        let (mark, kept) = file.split_at_checked(MARK)?;
        // As slow for a near miss as for a far one (timing attack).
        let is_ours: bool = self.mark(name, kept).as_ref().ct_eq(mark).into();
        is_ours.then_some(kept)
    }
}

/// Code that may be run.
#[derive(Debug)]
pub(crate) enum CompiledCode {
    /// In memory of this process: the content of a file, and where in it the code begins.
    Read {
        /// All of the file.
        file: Vec<u8>,
        /// Where the code begins.
        at: usize,
    },
    /// In the mapped file of this program.
    InPlace(&'static [u8]),
}

impl CompiledCode {
    /// What the compiler of this program has made a moment ago, here or in a worker.
    pub(crate) fn fresh(code: Vec<u8>) -> Self {
        Self::Read { file: code, at: 0 }
    }

    /// What the file of this program carries, read.
    pub(crate) fn carried(code: Vec<u8>) -> Self {
        Self::Read { file: code, at: 0 }
    }

    /// What the file of this program carries, mapped.
    pub(crate) fn carried_in_place(code: &'static [u8]) -> Self {
        Self::InPlace(code)
    }

    /// What a file holds, if it bears the mark that this hub gave it under this name.
    pub(crate) fn marked(key: &CacheKey, name: &str, file: Vec<u8>) -> Option<Self> {
        key.unmark(name, &file)?;
        Some(Self::Read { file, at: MARK })
    }

    /// The code itself.
    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            Self::Read { file, at } => &file[*at..],
            Self::InPlace(code) => code,
        }
    }

    /// The component, ready to be linked. Fails where the engine has no room for what the component is made of.
    #[expect(
        unsafe_code,
        reason = "wasmtime runs what it is given; see the comment for why that is safe here"
    )]
    pub(crate) fn load(&self, engine: &wasmtime::Engine) -> wasmtime::Result<Component> {
        // SAFETY: `deserialize` wants bytes that `precompile_component` of this very version of wasmtime has made and nobody has
        // changed. There are three ways to a `CompiledCode`: made a moment ago by this program; part of this program's own file, which
        // nobody can change who could not as well change the program; or found under a mark whose key only this hub has, and whose
        // name says the version and the settings of the compiler. wasmtime checks version and settings itself, too. What was read is in
        // memory of this process and not in a file that somebody could write to meanwhile, and the engine copies it before it looks. What is run in
        // place is never unmapped, and the system lets nobody write to the file of a program that runs.
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
    fn a_mark_is_of_one_key_one_name_and_these_bytes() {
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
        // What a name ends in is no part of what is kept.
        let shifted = file(&key, "a", b".cwasm\0code");
        assert_eq!(key.unmark("a.cwasm", &shifted), None);
    }
}
