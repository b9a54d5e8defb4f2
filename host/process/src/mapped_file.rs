//! Memory-mapped files: only the pages that are used are in memory, and they are the system's page
//! cache.

use rustix::mm::{MapFlags, ProtFlags, mmap};
use std::{fs::File, io, ptr, slice};

/// A whole file, mapped for reading until this process ends. No page of it is ever copied.
#[derive(Clone, Copy, Debug)]
pub struct MappedFile(&'static [u8]);

impl MappedFile {
    /// Maps this program's executable, even if the file was moved or replaced after the start; none
    /// if it cannot be mapped.
    pub fn of_this_program() -> Option<Self> {
        let file = File::open("/proc/self/exe");
        // SAFETY: this process runs this very file. A change of the file would change the program's
        // code as well.
        #[expect(unsafe_code, reason = "the file is this program's own")]
        let mapped = file.and_then(|file| unsafe { Self::map(&file) });
        mapped.inspect_err(|why| tracing::debug!(%why, "cannot map this program's file")).ok()
    }

    /// Maps a file.
    ///
    /// # Safety
    ///
    /// Nobody changes or truncates the file while this process lives, as holds for the file of a
    /// running program.
    ///
    /// # Errors
    /// If the file is empty, or the system cannot map such files.
    #[expect(unsafe_code, reason = "what is mapped is as good as the file")]
    pub unsafe fn map(file: &File) -> io::Result<Self> {
        let bytes = usize::try_from(file.metadata()?.len()).map_err(io::Error::other)?;
        // SAFETY: a new mapping at an address chosen by the system replaces no other mapping.
        let at =
            unsafe { mmap(ptr::null_mut(), bytes, ProtFlags::READ, MapFlags::PRIVATE, file, 0)? };
        // SAFETY: the system has mapped this many bytes there, nothing unmaps them, and the caller
        // guarantees that the file stays unchanged.
        Ok(Self(unsafe { slice::from_raw_parts(at.cast(), bytes) }))
    }

    /// Content of the file.
    pub fn bytes(self) -> &'static [u8] {
        self.0
    }
}
