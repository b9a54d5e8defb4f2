//! Execution of code in place, from the mapped executable. Of the bundled agents only the pages
//! that are read or run are in memory, and they are the system's page cache.

use rustix::mm::{MprotectFlags, mprotect};
use wasmtime::CustomCodeMemory;

/// Alignment of code in a file for mapping: the size of a page.
pub(crate) const ALIGNMENT: usize = 4096;

/// True on processors that run written code without an explicit cache flush.
pub(crate) const IS_POSSIBLE: bool = cfg!(target_arch = "x86_64");

/// Makes code executable for an engine that also runs code in place: wasmtime delegates all code
/// memory or none.
pub(crate) fn memory() -> Option<std::sync::Arc<dyn CustomCodeMemory>> {
    IS_POSSIBLE.then(|| std::sync::Arc::new(CodeMemory) as _)
}

struct CodeMemory;

impl CustomCodeMemory for CodeMemory {
    fn required_alignment(&self) -> usize {
        ALIGNMENT
    }

    #[expect(
        unsafe_code,
        reason = "wasmtime asks for it; see the comment for why that is safe here"
    )]
    fn publish_executable(&self, code: *const u8, bytes: usize) -> wasmtime::Result<()> {
        // SAFETY: wasmtime passes pages of the code that it loads, to which nobody writes from here
        // on: its own copy, or a `MappedFile`. They are readable before and after.
        let done = unsafe {
            mprotect(code.cast_mut().cast(), bytes, MprotectFlags::READ | MprotectFlags::EXEC)
        };
        done.map_err(|why| wasmtime::Error::from(std::io::Error::from(why)))
    }

    fn unpublish_executable(&self, _: *const u8, _: usize) -> wasmtime::Result<()> {
        // Called before wasmtime frees code: its own copy is unmapped then anyway, and code in
        // place may have other users.
        Ok(())
    }
}
