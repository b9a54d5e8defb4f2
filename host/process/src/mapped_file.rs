//! A file that stands in memory as it is, to be read and run from there: only those of its pages are in memory that were needed, and they
//! are the system's cache of the file.

use parking_lot::Mutex;
use rustix::mm::{MapFlags, ProtFlags, mmap};
use std::{fs::File, io, ptr, slice};

/// All that were mapped.
static ALL: Mutex<Vec<MappedFile>> = Mutex::new(Vec::new());

/// All of a file, mapped to be read until this process ends. No copy of any of its pages is ever made.
#[derive(Clone, Copy, Debug)]
pub struct MappedFile(&'static [u8]);

impl MappedFile {
    /// Maps the file of this program, also when it was moved or replaced since this process started; none where it cannot be mapped.
    pub fn of_this_program() -> Option<Self> {
        let file = File::open("/proc/self/exe");
        // SAFETY: this process runs the very file. Whoever changed it meanwhile would change the code of the program, too.
        #[expect(unsafe_code, reason = "the file is this program's own")]
        let mapped = file.and_then(|file| unsafe { Self::map(&file) });
        mapped.inspect_err(|why| tracing::debug!(%why, "cannot map this program's file")).ok()
    }

    /// All that were mapped so far.
    pub(crate) fn all() -> Vec<Self> {
        ALL.lock().clone()
    }

    /// Maps a file.
    ///
    /// # Safety
    ///
    /// Nobody changes the file, or cuts it off, while this process lives, as is true of the file of a program that runs.
    ///
    /// # Errors
    /// If the file is empty, or the system maps no such files.
    #[expect(unsafe_code, reason = "what is mapped is as good as the file")]
    pub unsafe fn map(file: &File) -> io::Result<Self> {
        let bytes = usize::try_from(file.metadata()?.len()).map_err(io::Error::other)?;
        // SAFETY: a new mapping, at an address that the system chooses, takes nobody's place.
        let at =
            unsafe { mmap(ptr::null_mut(), bytes, ProtFlags::READ, MapFlags::PRIVATE, file, 0)? };
        // SAFETY: the system has mapped so many bytes there, nothing unmaps them, and the caller knows that the file stays as it is.
        let mapped = Self(unsafe { slice::from_raw_parts(at.cast(), bytes) });
        ALL.lock().push(mapped);
        Ok(mapped)
    }

    /// What is in the file.
    pub fn bytes(self) -> &'static [u8] {
        self.0
    }
}
