//! Files and directories of `/proc`, read with few system calls: the identification of a caller
//! reads some hundred of them while the caller waits.

use std::ffi::CStr;
use std::io;
use std::mem::MaybeUninit;

use rustix::fd::{AsFd as _, BorrowedFd, OwnedFd};
use rustix::fs::{AtFlags, CWD, Mode, OFlags, RawDir, Stat, openat, readlinkat_raw, statat};
use rustix::io::{Errno, read};
use rustix::path::Arg;

/// Read size, in bytes: enough for most files of a process, and much less than a page.
const PIECE: usize = 1024;

/// Bytes of directory entries for each system call.
const ENTRIES: usize = 4096;

/// Bytes of a link that are read. Links to sockets and memory files begin with their kind, and
/// those to sockets are shorter than this.
const LINK: usize = 64;

/// A directory of `/proc`. Its entries are opened relative to its descriptor, because the kernel
/// resolves a whole path anew for each file.
pub(super) struct ProcDirectory(OwnedFd);

impl ProcDirectory {
    /// Opens a directory. Fails if it is gone or not accessible.
    pub(super) fn open(path: impl Arg) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Self(openat(CWD, path, flags, Mode::empty())?))
    }

    /// Calls `f` for each readable entry.
    pub(super) fn each(&self, mut f: impl FnMut(&CStr)) {
        let mut buffer = [const { MaybeUninit::uninit() }; ENTRIES];
        let mut entries = RawDir::new(&self.0, &mut buffer);
        while let Some(Ok(entry)) = entries.next() {
            let name = entry.file_name();
            if !name.to_bytes().starts_with(b".") {
                f(name);
            }
        }
    }

    /// Numeric entries, such as processes and threads.
    pub(super) fn numbers(&self) -> Vec<i32> {
        let mut numbers = Vec::new();
        self.each(|name| numbers.extend(name.to_str().ok().and_then(|it| it.parse::<i32>().ok())));
        numbers
    }

    /// Content of a file in the directory.
    pub(super) fn read_file(&self, file: impl Arg) -> io::Result<Vec<u8>> {
        read_file_at(self.0.as_fd(), file)
    }

    /// Passes the start of a link's target to `f`; none if the link is gone.
    pub(super) fn link<T>(&self, name: &CStr, f: impl FnOnce(&[u8]) -> Option<T>) -> Option<T> {
        let mut buffer = [const { MaybeUninit::uninit() }; LINK];
        let (link, _) = readlinkat_raw(&self.0, name, &mut buffer).ok()?;
        f(link)
    }

    /// True if link targets are denied: opening the directory and following its links are separate
    /// rights.
    pub(super) fn hides_links(&self) -> bool {
        let mut hides = None;
        self.each(|name| {
            hides.get_or_insert_with(|| {
                let mut buffer = [const { MaybeUninit::uninit() }; LINK];
                let first = readlinkat_raw(&self.0, name, &mut buffer);
                first.is_err_and(|why| why == Errno::ACCESS)
            });
        });
        hides.unwrap_or(false)
    }

    /// Metadata of a link's target.
    pub(super) fn target_metadata(&self, name: &CStr) -> Option<Stat> {
        statat(&self.0, name, AtFlags::empty()).ok()
    }
}

/// Content of a file of `/proc`.
pub(super) fn read_file(file: impl Arg) -> io::Result<Vec<u8>> {
    read_file_at(CWD, file)
}

/// Reads a file. `fs::read` would query the length first, which is reported as 0, read in pieces of
/// 32 bytes and more, and read once more for the end. A piece that is not full is the last one: the
/// kernel collects its text in a page and returns it on request (`seq_read_iter`), so that it fills
/// any buffer that is smaller than a page by the longest line. A larger buffer might stay partly
/// empty although more text follows.
fn read_file_at(directory: BorrowedFd<'_>, file: impl Arg) -> io::Result<Vec<u8>> {
    let file = openat(directory, file, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    let mut content = Vec::new();
    let mut buffer = [const { MaybeUninit::uninit() }; PIECE];
    loop {
        let (piece, rest) = read(&file, &mut buffer)?;
        content.extend_from_slice(piece);
        if !rest.is_empty() {
            return Ok(content);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;
    use std::fs;
    use std::os::fd::AsRawFd as _;

    #[test]
    fn content_equals_plain_read() {
        for file in ["/proc/filesystems", "/proc/self/environ", "/proc/self/limits"] {
            assert_eq!(read_file(file).unwrap(), fs::read(file).unwrap());
        }
        assert!(read_file("/proc/self/nothing").is_err());
    }

    /// Several pages long, in lines: the kernel returns it in pages that are not quite full.
    #[test]
    fn long_file_is_read_completely() {
        let barrier = std::sync::Barrier::new(151);
        std::thread::scope(|scope| {
            for _ in 0..150 {
                scope.spawn(|| {
                    barrier.wait();
                    barrier.wait();
                });
            }
            // All have mapped their stacks.
            barrier.wait();
            // Each thread has a stack and a guard. Concurrent tests may map memory as well.
            let lines = |file: Vec<u8>| file.iter().filter(|byte| **byte == b'\n').count();
            let ours = lines(read_file("/proc/self/maps").unwrap());
            let theirs = lines(fs::read("/proc/self/maps").unwrap());
            barrier.wait();
            assert!(theirs > 300 && ours.abs_diff(theirs) < 30, "{ours} lines of {theirs}");
        });
    }

    #[test]
    fn directory_lists_numbers_files_links() {
        let open: Vec<_> = (0..600).map(|_| fs::File::open("/dev/null").unwrap()).collect();
        let directory = ProcDirectory::open("/proc/self/fd").unwrap();
        let numbers: HashSet<_> = directory.numbers().into_iter().collect();
        assert!(open.iter().all(|file| numbers.contains(&file.as_raw_fd())), "more than one piece");

        let directory = ProcDirectory::open("/proc/self").unwrap();
        assert!(
            directory
                .read_file("stat")
                .unwrap()
                .starts_with(std::process::id().to_string().as_bytes())
        );
        let program = std::env::current_exe().unwrap();
        let begins = |link: &[u8]| Some(program.as_os_str().as_encoded_bytes().starts_with(link));
        assert_eq!(directory.link(c"exe", begins), Some(true));
        assert_eq!(directory.link(c"stat", begins), None, "no link");
        use std::os::unix::fs::MetadataExt as _;
        let behind = directory.target_metadata(c"exe").map(|file| file.st_ino);
        assert_eq!(behind, Some(fs::metadata(&program).unwrap().ino()));
        assert!(ProcDirectory::open("/proc/self/stat").is_err());
    }
}
