//! Files and directories of `/proc`, read with few calls of the kernel: a look at who asks reads some hundred of them, while somebody waits.

use std::ffi::CStr;
use std::io;
use std::mem::MaybeUninit;

use rustix::buffer::spare_capacity;
use rustix::fd::{AsFd as _, BorrowedFd, OwnedFd};
use rustix::fs::{AtFlags, CWD, Mode, OFlags, RawDir, Stat, openat, readlinkat_raw, statat};
use rustix::io::read;
use rustix::path::Arg;

/// Bytes that hold what most files of `/proc` tell of a process.
const USUAL: usize = 1024;

/// Bytes of entries that the kernel is asked for at a time.
const ENTRIES: usize = 4096;

/// Bytes of a link that are read. Links to sockets and files in memory begin with what they are, and the former are shorter than this.
const LINK: usize = 64;

/// A directory of `/proc`. What is in it is reached by its descriptor: the kernel looks a whole path up anew for each file.
pub(super) struct Directory(OwnedFd);

impl Directory {
    /// Fails if it is gone, or not ours to look into.
    pub(super) fn open(path: impl Arg) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Self(openat(CWD, path, flags, Mode::empty())?))
    }

    /// Looks at each name in it, as far as it can be read.
    pub(super) fn each(&self, mut look: impl FnMut(&CStr)) {
        let mut buffer = [const { MaybeUninit::uninit() }; ENTRIES];
        let mut entries = RawDir::new(&self.0, &mut buffer);
        while let Some(Ok(entry)) = entries.next() {
            let name = entry.file_name();
            if !name.to_bytes().starts_with(b".") {
                look(name);
            }
        }
    }

    /// The names that are numbers, as those of processes and threads are.
    pub(super) fn numbers(&self) -> Vec<i32> {
        let mut numbers = Vec::new();
        self.each(|name| numbers.extend(name.to_str().ok().and_then(|it| it.parse::<i32>().ok())));
        numbers
    }

    /// What a file in it tells.
    pub(super) fn told(&self, file: impl Arg) -> io::Result<Vec<u8>> {
        told_at(self.0.as_fd(), file)
    }

    /// Has the beginning of where a link in it leads looked at; nothing if it is gone.
    pub(super) fn link<T>(&self, name: &CStr, look: impl FnOnce(&[u8]) -> Option<T>) -> Option<T> {
        let mut buffer = [const { MaybeUninit::uninit() }; LINK];
        let (link, _) = readlinkat_raw(&self.0, name, &mut buffer).ok()?;
        look(link)
    }

    /// What the file is that a link in it leads to.
    pub(super) fn behind(&self, name: &CStr) -> Option<Stat> {
        statat(&self.0, name, AtFlags::empty()).ok()
    }
}

/// What a file of `/proc` tells.
pub(super) fn told(file: impl Arg) -> io::Result<Vec<u8>> {
    told_at(CWD, file)
}

/// `fs::read` would ask for the length first, which is told as 0, read in pieces of 32 bytes and more, and once more for the end. The kernel
/// fills what it is given as long as it has something to tell (`seq_read_iter`), so that a piece that is not full is the last one.
fn told_at(directory: BorrowedFd<'_>, file: impl Arg) -> io::Result<Vec<u8>> {
    let file = openat(directory, file, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    let mut told = Vec::with_capacity(USUAL);
    while read(&file, spare_capacity(&mut told))? > 0 && told.len() == told.capacity() {
        told.reserve(USUAL);
    }
    Ok(told)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;
    use std::fs;
    use std::os::fd::AsRawFd as _;

    #[test]
    fn what_is_told_is_what_the_file_has() {
        for file in
            ["/proc/self/status", "/proc/self/maps", "/proc/self/environ", "/proc/self/limits"]
        {
            let read = |it: Vec<u8>| it.split(|byte| *byte == b'\n').count();
            let (ours, theirs) = (read(told(file).unwrap()), read(fs::read(file).unwrap()));
            assert!(ours.abs_diff(theirs) < 20 && ours > 0, "{file}: {ours} lines, {theirs}");
        }
        // One that does not change, and is longer than what is asked for at first.
        let symbols = "/proc/filesystems";
        assert_eq!(told(symbols).unwrap(), fs::read(symbols).unwrap());
        assert!(told("/proc/self/nothing").is_err());
    }

    #[test]
    fn a_directory_has_names_files_and_links() {
        let open: Vec<_> = (0..600).map(|_| fs::File::open("/dev/null").unwrap()).collect();
        let directory = Directory::open("/proc/self/fd").unwrap();
        let numbers: HashSet<_> = directory.numbers().into_iter().collect();
        assert!(open.iter().all(|file| numbers.contains(&file.as_raw_fd())), "more than one piece");

        let directory = Directory::open("/proc/self").unwrap();
        assert!(
            directory.told("stat").unwrap().starts_with(std::process::id().to_string().as_bytes())
        );
        let program = std::env::current_exe().unwrap();
        let begins = |link: &[u8]| Some(program.as_os_str().as_encoded_bytes().starts_with(link));
        assert_eq!(directory.link(c"exe", begins), Some(true));
        assert_eq!(directory.link(c"stat", begins), None, "no link");
        use std::os::unix::fs::MetadataExt as _;
        let behind = directory.behind(c"exe").map(|file| file.st_ino);
        assert_eq!(behind, Some(fs::metadata(&program).unwrap().ino()));
        assert!(Directory::open("/proc/self/stat").is_err());
    }
}
