//! Opening files below a directory without blocking. A FIFO swapped in between a check and the open
//! (TOCTOU) would block a thread of the hub until its other end opens, which may never happen.

use a2a_hub_process::{Panicked, run_blocking};
use rustix::{
    fs::{
        Mode, OFlags, ResolveFlags, Timespec, Timestamps, UTIME_NOW, UTIME_OMIT, futimens, openat2,
    },
    io::Errno,
};
use std::{fs::File, io, sync::Arc};
use wasmtime_wasi::{
    filesystem::{Descriptor, Dir, File as OpenFile, OpenMode},
    p2::{
        FsError, FsResult,
        bindings::filesystem::types::{
            DescriptorFlags, ErrorCode, NewTimestamp, OpenFlags, PathFlags,
        },
    },
};

/// Attempts to resolve a path that is renamed concurrently.
const TRIES: usize = 8;

/// Open mode.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OpenOptions {
    flags: OFlags,
    mode: OpenMode,
    creates: bool,
}

impl OpenOptions {
    /// Open mode for WASI flags.
    pub(crate) fn from_wasi(
        path: PathFlags,
        open: OpenFlags,
        access: DescriptorFlags,
    ) -> Result<Self, ErrorCode> {
        let synced = DescriptorFlags::FILE_INTEGRITY_SYNC
            | DescriptorFlags::DATA_INTEGRITY_SYNC
            | DescriptorFlags::REQUESTED_WRITE_SYNC;
        if access.intersects(synced) {
            return Err(ErrorCode::Unsupported);
        }
        let makes = OpenFlags::CREATE | OpenFlags::EXCLUSIVE | OpenFlags::TRUNCATE;
        if open.contains(OpenFlags::DIRECTORY) && open.intersects(makes) {
            return Err(ErrorCode::Invalid);
        }
        let creates = open.contains(OpenFlags::CREATE);
        let truncates = open.contains(OpenFlags::TRUNCATE);
        let writes = creates || truncates || access.contains(DescriptorFlags::WRITE);
        // Without write access, a file is opened for reading even if no access was requested.
        let reads =
            access.contains(DescriptorFlags::READ) || !access.contains(DescriptorFlags::WRITE);
        let mut flags = match (reads, writes) {
            (true, true) => OFlags::RDWR,
            (false, true) => OFlags::WRONLY,
            (_, false) => OFlags::RDONLY,
        };
        flags.set(OFlags::CREATE, creates);
        flags.set(OFlags::EXCL, creates && open.contains(OpenFlags::EXCLUSIVE));
        flags.set(OFlags::TRUNC, truncates);
        flags.set(OFlags::DIRECTORY, open.contains(OpenFlags::DIRECTORY));
        flags.set(OFlags::NOFOLLOW, !path.contains(PathFlags::SYMLINK_FOLLOW));
        let mut mode = OpenMode::empty();
        mode.set(OpenMode::READ, reads);
        mode.set(OpenMode::WRITE, writes);
        Ok(Self { flags, mode, creates })
    }

    /// True if the open may change something.
    fn changes(self) -> bool {
        self.creates || self.mode.contains(OpenMode::WRITE)
    }
}

/// Opens a file or directory below `dir`, and nothing else; none if this kernel has no `openat2`.
pub(crate) async fn open(
    dir: &Dir,
    path: String,
    options: OpenOptions,
) -> FsResult<Option<Descriptor>> {
    if dir.perms.write_not_permitted() && options.changes() {
        return Err(ErrorCode::NotPermitted.into());
    }
    let start = Arc::clone(&dir.dir);
    let opened = run_blocking(move || open_now(&start, &path, options.flags)).await;
    let Some(file) = to_fs_result(opened)? else { return Ok(None) };
    let (perms, mode) = (dir.perms, options.mode);
    let is_directory = file.metadata().map_err(FsError::from)?.is_dir();
    Ok(Some(if is_directory {
        Descriptor::Dir(Dir::new(file, perms, mode, false))
    } else {
        Descriptor::File(OpenFile::new(file, perms, mode, false))
    }))
}

/// Sets the times of a file or directory below `dir`, through links; false if this kernel has no
/// `openat2`.
pub(crate) async fn set_times(
    dir: &Dir,
    path: String,
    accessed: NewTimestamp,
    modified: NewTimestamp,
) -> FsResult<bool> {
    if dir.perms.write_not_permitted() {
        return Err(ErrorCode::NotPermitted.into());
    }
    let times = Timestamps { last_access: time(accessed)?, last_modification: time(modified)? };
    let start = Arc::clone(&dir.dir);
    let set = move || {
        let file = match open_now(&start, &path, OFlags::WRONLY) {
            // A directory, or a file that its owner may only read.
            Err(Errno::ISDIR | Errno::ACCESS) => open_now(&start, &path, OFlags::RDONLY),
            opened => opened,
        };
        let Some(file) = file? else { return Ok(None) };
        futimens(file, &times).map(Some)
    };
    Ok(to_fs_result(run_blocking(set).await)?.is_some())
}

/// Time as `futimens` takes it.
fn time(timestamp: NewTimestamp) -> Result<Timespec, ErrorCode> {
    let (tv_sec, nanos) = match timestamp {
        NewTimestamp::NoChange => (0, UTIME_OMIT),
        NewTimestamp::Now => (0, UTIME_NOW),
        NewTimestamp::Timestamp(at) => {
            let seconds = i64::try_from(at.seconds).map_err(|_| ErrorCode::Overflow)?;
            if at.nanoseconds >= 1_000_000_000 {
                return Err(ErrorCode::Invalid);
            }
            (seconds, at.nanoseconds.into())
        }
    };
    Ok(Timespec { tv_sec, tv_nsec: nanos })
}

type Tried<T> = Result<Result<Option<T>, Errno>, Panicked>;

fn to_fs_result<T>(tried: Tried<T>) -> FsResult<Option<T>> {
    let tried = tried.map_err(|why| FsError::from(io::Error::other(why)))?;
    tried.map_err(|why| match why {
        // The path leads outside, or is a FIFO without a reader.
        Errno::XDEV | Errno::NXIO => ErrorCode::NotPermitted.into(),
        why => FsError::from(io::Error::from(why)),
    })
}

/// None if the kernel, or a filter of its calls, does not know `openat2`.
fn open_now(start: &File, path: &str, flags: OFlags) -> Result<Option<File>, Errno> {
    let flags = flags | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let mode =
        if flags.contains(OFlags::CREATE) { Mode::from_raw_mode(0o666) } else { Mode::empty() };
    let beneath = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    let mut opened = Err(Errno::AGAIN);
    for _ in 0..TRIES {
        opened = openat2(start, path, flags, mode, beneath);
        if !matches!(opened, Err(Errno::AGAIN)) {
            break;
        }
    }
    let file = match opened {
        // Filters refuse unknown calls with either error.
        Err(Errno::NOSYS | Errno::PERM) => return Ok(None),
        opened => File::from(opened?),
    };
    let is_plain = file.metadata().is_ok_and(|it| it.is_file() || it.is_dir());
    if is_plain { Ok(Some(file)) } else { Err(Errno::NXIO) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{CWD, FileType, mknodat};
    use std::{
        fs,
        os::unix::fs::{MetadataExt as _, symlink},
        sync::mpsc,
        thread,
        time::{Duration, Instant},
    };
    use tempfile::TempDir;
    use wasmtime_wasi::{FsPerms, p2::bindings::clocks::wall_clock::Datetime};

    fn pipe(at: &std::path::Path) {
        mknodat(CWD, at, FileType::Fifo, Mode::RWXU, 0).unwrap();
    }

    fn of(dir: &TempDir, perms: FsPerms) -> Dir {
        Dir::new(File::open(dir.path()).unwrap(), perms, OpenMode::READ, false)
    }

    async fn tried(dir: &Dir, path: &str, flags: OpenFlags, access: DescriptorFlags) -> String {
        let how = match OpenOptions::from_wasi(PathFlags::SYMLINK_FOLLOW, flags, access) {
            Ok(how) => how,
            Err(why) => return format!("{why:?}"),
        };
        match open(dir, path.to_owned(), how).await {
            Ok(Some(Descriptor::Dir(_))) => "a directory".to_owned(),
            Ok(Some(Descriptor::File(_))) => "a file".to_owned(),
            Ok(None) => "not by this kernel".to_owned(),
            Err(why) => why.downcast().map_or_else(|why| why.to_string(), |why| format!("{why:?}")),
        }
    }

    #[tokio::test]
    async fn only_paths_below_are_opened() {
        let (dir, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::write(dir.path().join("a"), "x").unwrap();
        fs::create_dir(dir.path().join("sub")).unwrap();
        symlink("a", dir.path().join("inside")).unwrap();
        symlink(outside.path(), dir.path().join("out")).unwrap();
        symlink("loop", dir.path().join("loop")).unwrap();
        pipe(&dir.path().join("pipe"));
        symlink("pipe", dir.path().join("to-pipe")).unwrap();
        let (read, write) = (DescriptorFlags::READ, DescriptorFlags::WRITE);
        let (none, new) = (OpenFlags::empty(), OpenFlags::CREATE | OpenFlags::EXCLUSIVE);
        let whole = of(&dir, FsPerms::ReadWrite);
        for (path, open, access, wanted) in [
            ("a", none, read, "a file"),
            ("inside", none, read | write, "a file"),
            ("sub", none, read, "a directory"),
            ("sub/../a", none, read, "a file"),
            ("sub/new", new, write, "a file"),
            ("sub/new", new, write, "exist"),
            ("a", OpenFlags::DIRECTORY, read, "not-directory"),
            ("a", OpenFlags::DIRECTORY | OpenFlags::CREATE, read, "invalid"),
            ("sub", none, write, "is-directory"),
            ("../a", none, read, "not-permitted"),
            ("/etc/passwd", none, read, "not-permitted"),
            ("out", none, read, "not-permitted"),
            ("out/new", new, write, "not-permitted"),
            ("loop", none, read, "loop"),
            ("pipe", none, read, "not-permitted"),
            ("pipe", none, write, "not-permitted"),
            ("to-pipe", OpenFlags::TRUNCATE, write, "not-permitted"),
            ("none", none, read, "no-entry"),
            ("nul\0", none, read, "invalid"),
        ] {
            let said = tried(&whole, path, open, access).await;
            let named = format!("name: \"{wanted}\"");
            assert!(said == wanted || said.contains(&named), "{path}: {said}");
        }
        let reader = of(&dir, FsPerms::ReadOnly);
        for (open, access) in [(none, write), (new, read), (OpenFlags::TRUNCATE, read)] {
            let said = tried(&reader, "a", open, access).await;
            assert!(said.contains("not-permitted"), "{said}");
        }
        assert_eq!(fs::read(dir.path().join("a")).unwrap(), b"x");
    }

    #[tokio::test]
    async fn setting_fifo_times_does_not_block() {
        let dir = tempfile::tempdir().unwrap();
        pipe(&dir.path().join("pipe"));
        fs::write(dir.path().join("a"), "x").unwrap();
        let whole = of(&dir, FsPerms::ReadWrite);
        let then = |seconds| NewTimestamp::Timestamp(Datetime { seconds, nanoseconds: 7 });
        for name in ["a", "."] {
            let set = set_times(&whole, name.to_owned(), NewTimestamp::NoChange, then(1_000));
            assert!(set.await.unwrap());
            let there = fs::metadata(dir.path().join(name)).unwrap();
            assert_eq!((there.mtime(), there.mtime_nsec()), (1_000, 7), "{name}");
        }
        let set = async |dir: &Dir, path: &str, at| {
            set_times(dir, path.to_owned(), NewTimestamp::Now, at).await.is_err()
        };
        assert!(set(&whole, "pipe", then(1)).await);
        assert!(set(&whole, "a", then(u64::MAX)).await);
        assert!(set(&whole, "../a", then(1)).await);
        assert!(set(&of(&dir, FsPerms::ReadOnly), "a", then(1)).await);
    }

    /// A concurrent thread renames a FIFO and a link to the outside over the file, as fast as it
    /// can.
    #[tokio::test]
    async fn toctou_fifo_swap_does_not_block() {
        let (dir, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::write(outside.path().join("secret"), "secret").unwrap();
        let (place, secret) = (dir.path().to_owned(), outside.path().join("secret"));
        let (stop, stopped) = mpsc::channel::<()>();
        let swapping = thread::spawn(move || {
            while stopped.try_recv() == Err(mpsc::TryRecvError::Empty) {
                for kind in 0..3 {
                    let next = place.join("next");
                    match kind {
                        0 => fs::write(&next, "plain").unwrap(),
                        1 => pipe(&next),
                        _ => symlink(&secret, &next).unwrap(),
                    }
                    fs::rename(&next, place.join("a")).unwrap();
                }
            }
        });
        let whole = of(&dir, FsPerms::ReadWrite);
        let how = OpenOptions::from_wasi(
            PathFlags::SYMLINK_FOLLOW,
            OpenFlags::empty(),
            DescriptorFlags::READ | DescriptorFlags::WRITE,
        );
        #[expect(clippy::disallowed_methods, reason = "the file system has a time of its own")]
        let begun = Instant::now();
        let mut opened = 0;
        while begun.elapsed() < Duration::from_millis(500) {
            let file = open(&whole, "a".to_owned(), how.unwrap()).await;
            if let Ok(Some(Descriptor::File(file))) = file {
                let mut said = String::new();
                io::Read::read_to_string(&mut &*file.file, &mut said).unwrap();
                assert!(said.is_empty() || said == "plain", "{said}");
                opened += 1;
            }
        }
        stop.send(()).unwrap();
        swapping.join().unwrap();
        assert!(opened > 0, "it was never a file");
    }
}
