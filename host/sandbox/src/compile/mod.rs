//! Compilation of components to machine code, and the authenticated cache of the results.

pub(super) mod bundled_code;
pub(super) mod cache;
pub(super) mod cache_key;
pub(super) mod code_mmap;
pub(super) mod compiled_code;
pub(super) mod compiler;
pub(super) mod digest;
pub(super) mod settings;
