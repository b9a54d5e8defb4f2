//! Code that is run where it stands in the program's own file: mapped, not copied. Of what the hub's agents are made of, only those
//! pages are in memory that were read or run, and they are the system's cache of the file.

use rustix::mm::{MprotectFlags, mprotect};
use wasmtime::CustomCodeMemory;

/// Where code begins in a file, so that it can be mapped: at a multiple of these bytes, the size of a page.
pub(crate) const ALIGNMENT: usize = 4096;

/// Whether it is done here: where a processor runs what was written as it stands, with no cache to be told of it.
pub(crate) const IS_POSSIBLE: bool = cfg!(target_arch = "x86_64");

/// Makes code executable, for an engine that is to run code in place as well: wasmtime leaves all of it to whoever does any.
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
        // SAFETY: wasmtime names pages of the code that it loads, which nobody writes to from here on: its own copy, or a
        // `MappedFile`. They can be read before and after.
        let done = unsafe {
            mprotect(code.cast_mut().cast(), bytes, MprotectFlags::READ | MprotectFlags::EXEC)
        };
        done.map_err(|why| wasmtime::Error::from(std::io::Error::from(why)))
    }

    fn unpublish_executable(&self, _: *const u8, _: usize) -> wasmtime::Result<()> {
        // Asked for before wasmtime lets go of code: its own copy is unmapped then, and what runs in place may be somebody else's, too.
        Ok(())
    }
}
