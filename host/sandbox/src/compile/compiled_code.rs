//! Compiled code, and the only way to run it. Machine code runs unchecked, so only three kinds are
//! accepted: output of this hub's compiler, code bundled in the executable, and cache entries with
//! this hub's authentication tag (HMAC-SHA-256), verified on the very bytes that are run.

use super::cache_key::{CacheKey, MARK};
use std::ptr::NonNull;
use wasmtime::component::Component;

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
    Mapped(&'static [u8]),
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
    pub(crate) fn mapped(code: &'static [u8]) -> Self {
        Self::Mapped(code)
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
            Self::Mapped(code) => code,
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
                Self::Mapped(code) => Component::deserialize_raw(engine, NonNull::from(*code)),
            }
        }
    }
}
