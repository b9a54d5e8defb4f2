//! SQLite VFS that coalesces writes to the write-ahead log.
//!
//! SQLite writes each frame of its log with two system calls, one for 24 bytes and one for a page,
//! and a task that is answered at once has some seventeen frames. SQLite's file access can be
//! replaced (its documentation, "The SQLite OS Interface or VFS"): this VFS is the default one,
//! except for six functions of a log file. It buffers frames, and writes the buffer when a frame
//! ends a transaction, when the buffer is full, and before any other operation on the file. So
//! other users of the file find everything that SQLite has committed, as with the default VFS, and
//! a sync covers everything that was written.

mod gathered;

use gathered::Gathered;
use rusqlite::{
    Connection, OpenFlags,
    ffi::{
        SQLITE_CANTOPEN, SQLITE_IOERR, SQLITE_IOERR_WRITE, SQLITE_OK, SQLITE_OPEN_WAL,
        sqlite3_file, sqlite3_filename, sqlite3_int64, sqlite3_io_methods, sqlite3_vfs,
        sqlite3_vfs_find, sqlite3_vfs_register,
    },
};
use std::{
    ffi::{CStr, c_int, c_void},
    path::Path,
    ptr, slice,
    sync::{
        OnceLock,
        atomic::{AtomicPtr, Ordering::Relaxed},
    },
};

/// Name of the VFS.
const NAME: &CStr = c"coalesced-log";

/// Opens a database with coalesced log writes. The connection must sync each transaction
/// (`synchronous=FULL`).
pub(in crate::sqlite) fn open(file: &Path, flags: OpenFlags) -> rusqlite::Result<Connection> {
    match BELOW.get_or_init(register) {
        Some(_) => Connection::open_with_flags_and_vfs(file, flags, NAME),
        // Without a default VFS, SQLite itself reports what is missing.
        None => Connection::open_with_flags(file, flags),
    }
}

/// The default VFS, once this one is registered on top of it.
static BELOW: OnceLock<Option<Below>> = OnceLock::new();

struct Below {
    /// Lives until the process ends, and may be used from any thread.
    vfs: AtomicPtr<sqlite3_vfs>,
    open: OpenFile,
    /// Offset of the buffer in the memory of a file: behind the default VFS's own part.
    gathered_at: usize,
}

type OpenFile = unsafe extern "C" fn(
    *mut sqlite3_vfs,
    sqlite3_filename,
    *mut sqlite3_file,
    c_int,
    *mut c_int,
) -> c_int;

/// Registers the VFS with SQLite; none without a default VFS.
#[expect(unsafe_code, reason = "SQLite knows what opens its files by pointers")]
fn register() -> Option<Below> {
    // SAFETY: the null name selects SQLite's default VFS. SQLite initializes itself first, if
    // needed.
    let vfs = unsafe { sqlite3_vfs_find(ptr::null()) };
    // SAFETY: a VFS that SQLite finds lives until the process ends.
    let below = unsafe { vfs.as_ref() }?;
    let gathered_at =
        usize::try_from(below.szOsFile).ok()?.next_multiple_of(align_of::<Gathered>());
    let size = gathered_at.checked_add(size_of::<Gathered>())?;
    // The replaced functions use nothing of this struct except the maximum length of a path.
    let this = sqlite3_vfs {
        szOsFile: c_int::try_from(size).ok()?,
        pNext: ptr::null_mut(),
        zName: NAME.as_ptr(),
        xOpen: Some(open_file),
        ..*below
    };
    // SAFETY: the struct is never freed, as SQLite requires. It does not become the default VFS.
    let registered = unsafe { sqlite3_vfs_register(Box::leak(Box::new(this)), 0) };
    (registered == SQLITE_OK).then_some(Below {
        vfs: AtomicPtr::new(vfs),
        open: below.xOpen?,
        gathered_at,
    })
}

/// Functions of a log file, and the default ones that they wrap.
struct Functions {
    all: sqlite3_io_methods,
    below: &'static sqlite3_io_methods,
    close: unsafe extern "C" fn(*mut sqlite3_file) -> c_int,
    read: unsafe extern "C" fn(*mut sqlite3_file, *mut c_void, c_int, sqlite3_int64) -> c_int,
    write: unsafe extern "C" fn(*mut sqlite3_file, *const c_void, c_int, sqlite3_int64) -> c_int,
    truncate: unsafe extern "C" fn(*mut sqlite3_file, sqlite3_int64) -> c_int,
    sync: unsafe extern "C" fn(*mut sqlite3_file, c_int) -> c_int,
    size: unsafe extern "C" fn(*mut sqlite3_file, *mut sqlite3_int64) -> c_int,
}

/// Functions of all log files.
static FUNCTIONS: OnceLock<Option<Functions>> = OnceLock::new();

impl Functions {
    /// Functions for a log with these default ones. None if some are missing, or if an earlier log
    /// had different ones: they depend on the way of locking files.
    fn above(below: &'static sqlite3_io_methods) -> Option<&'static Self> {
        let functions = FUNCTIONS.get_or_init(|| {
            let all = sqlite3_io_methods {
                xClose: Some(close),
                xRead: Some(read),
                xWrite: Some(write),
                xTruncate: Some(truncate),
                xSync: Some(sync),
                xFileSize: Some(size),
                ..*below
            };
            Some(Self {
                all,
                below,
                close: below.xClose?,
                read: below.xRead?,
                write: below.xWrite?,
                truncate: below.xTruncate?,
                sync: below.xSync?,
                size: below.xFileSize?,
            })
        });
        functions.as_ref().filter(|functions| ptr::eq(functions.below, below))
    }
}

/// Opens a file for SQLite, and replaces the functions of a log file.
///
/// # Safety
///
/// `file` is memory for a file, and the other arguments are those of SQLite.
#[expect(unsafe_code, reason = "SQLite gives room for a file by a pointer")]
unsafe extern "C" fn open_file(
    _: *mut sqlite3_vfs,
    name: sqlite3_filename,
    file: *mut sqlite3_file,
    flags: c_int,
    out_flags: *mut c_int,
) -> c_int {
    let Some(Some(below)) = BELOW.get() else { return SQLITE_CANTOPEN };
    // SAFETY: SQLite makes this call, and provides more memory than the default VFS needs.
    let opened = unsafe { (below.open)(below.vfs.load(Relaxed), name, file, flags, out_flags) };
    if opened == SQLITE_OK && flags & SQLITE_OPEN_WAL != 0 {
        // SAFETY: an open file has its functions, and those of SQLite live until the process ends.
        let functions = unsafe { (*file).pMethods.as_ref() };
        if let Some(functions) = functions.and_then(Functions::above) {
            // SAFETY: the memory behind the file has room for it, and contains nothing yet.
            unsafe { gathered_of(file, below).write(Gathered::default()) };
            // SAFETY: the file is open, and nobody uses it yet.
            unsafe { (*file).pMethods = &raw const functions.all };
        }
    }
    opened
}

/// Buffer of a file.
///
/// # Safety
///
/// `file` is in the memory that SQLite provided for it.
#[expect(unsafe_code, reason = "SQLite knows a file by a pointer")]
unsafe fn gathered_of(file: *mut sqlite3_file, below: &Below) -> *mut Gathered {
    // SAFETY: the memory extends to the end of the buffer, which is its last part.
    unsafe { file.byte_add(below.gathered_at).cast() }
}

/// An open log, during a call of one of its functions.
struct Log {
    file: *mut sqlite3_file,
    gathered: *mut Gathered,
    functions: &'static Functions,
}

impl Log {
    /// The log on which SQLite calls a function; none if nothing is registered.
    ///
    /// # Safety
    ///
    /// `file` was opened by [`open_file`] and has the functions of a log.
    #[expect(unsafe_code, reason = "SQLite knows a file by a pointer")]
    unsafe fn of(file: *mut sqlite3_file) -> Option<Self> {
        let (below, functions) = (BELOW.get()?.as_ref()?, FUNCTIONS.get()?.as_ref()?);
        // SAFETY: the caller guarantees that `file` is a log.
        Some(Self { file, gathered: unsafe { gathered_of(file, below) }, functions })
    }

    #[expect(unsafe_code, reason = "SQLite knows a file by a pointer")]
    fn gathered(&mut self) -> &mut Gathered {
        // SAFETY: it was written there when the file was opened, and SQLite calls one function on a
        // file at a time.
        unsafe { &mut *self.gathered }
    }

    /// Writes to the file itself.
    #[expect(unsafe_code, reason = "SQLite takes bytes by a pointer")]
    fn to_file(&self) -> impl Fn(&[u8], i64) -> c_int + use<> {
        let (file, write) = (self.file, self.functions.write);
        move |bytes, offset| match c_int::try_from(bytes.len()) {
            // SAFETY: the file is open, and the pointer is valid for this many bytes.
            Ok(length) => unsafe { write(file, bytes.as_ptr().cast(), length, offset) },
            Err(_) => SQLITE_IOERR_WRITE,
        }
    }

    /// Writes the buffer to the file.
    fn flush(&mut self) -> c_int {
        let to_file = self.to_file();
        self.gathered().flush(to_file)
    }
}

/// Flushes the buffer, then calls the default function of the file; returns the error if the flush
/// fails.
///
/// # Safety
///
/// `$file` is a log on which SQLite calls this function, with these arguments.
macro_rules! after_flush {
    ($file:ident, $function:ident($($argument:ident),*)) => {{
        // SAFETY: the caller guarantees that `$file` is a log.
        let Some(mut log) = (unsafe { Log::of($file) }) else { return SQLITE_IOERR };
        match log.flush() {
            // SAFETY: SQLite makes this call with these arguments.
            SQLITE_OK => unsafe { (log.functions.$function)($file $(, $argument)*) },
            failed => failed,
        }
    }};
}

#[expect(unsafe_code, reason = "SQLite knows a file by a pointer")]
unsafe extern "C" fn close(file: *mut sqlite3_file) -> c_int {
    // SAFETY: SQLite calls this function on a log.
    let Some(mut log) = (unsafe { Log::of(file) }) else { return SQLITE_IOERR };
    // The rest belongs to no committed transaction.
    log.flush();
    // SAFETY: it was written there when the file was opened, and nobody uses it again.
    unsafe { log.gathered.drop_in_place() };
    // SAFETY: SQLite makes this call.
    unsafe { (log.functions.close)(file) }
}

#[expect(unsafe_code, reason = "SQLite gives bytes by a pointer")]
unsafe extern "C" fn write(
    file: *mut sqlite3_file,
    from: *const c_void,
    length: c_int,
    offset: sqlite3_int64,
) -> c_int {
    // SAFETY: SQLite calls this function on a log.
    let log = unsafe { Log::of(file) };
    let (Some(mut log), Ok(length)) = (log, usize::try_from(length)) else { return SQLITE_IOERR };
    // SAFETY: SQLite keeps this many bytes valid there during the call.
    let piece = unsafe { slice::from_raw_parts(from.cast(), length) };
    let to_file = log.to_file();
    log.gathered().write(piece, offset, to_file)
}

#[expect(unsafe_code, reason = "SQLite gives room for bytes by a pointer")]
unsafe extern "C" fn read(
    file: *mut sqlite3_file,
    to: *mut c_void,
    length: c_int,
    offset: sqlite3_int64,
) -> c_int {
    after_flush!(file, read(to, length, offset))
}

#[expect(unsafe_code, reason = "SQLite knows a file by a pointer")]
unsafe extern "C" fn truncate(file: *mut sqlite3_file, length: sqlite3_int64) -> c_int {
    after_flush!(file, truncate(length))
}

#[expect(unsafe_code, reason = "SQLite knows a file by a pointer")]
unsafe extern "C" fn sync(file: *mut sqlite3_file, how: c_int) -> c_int {
    after_flush!(file, sync(how))
}

#[expect(unsafe_code, reason = "SQLite takes the size by a pointer")]
unsafe extern "C" fn size(file: *mut sqlite3_file, told: *mut sqlite3_int64) -> c_int {
    after_flush!(file, size(told))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use tempfile::{TempDir, tempdir};

    fn database(dir: &TempDir) -> Connection {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
        let db = open(&dir.path().join("it.db"), flags).unwrap();
        db.execute_batch(
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 0;
             CREATE TABLE rows (number INTEGER PRIMARY KEY, bytes BLOB)",
        )
        .unwrap();
        db
    }

    fn rows(db: &Connection) -> (i64, String) {
        let count = db.query_row("SELECT count(*) FROM rows", [], |row| row.get(0)).unwrap();
        let whole = db.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
        (count, whole)
    }

    /// Number of write calls of this process so far.
    fn writes() -> u64 {
        let io = fs::read_to_string("/proc/self/io").unwrap();
        let line = io.lines().find_map(|line| line.strip_prefix("syscw: ")).unwrap();
        line.parse().unwrap()
    }

    #[test]
    fn transaction_frames_are_coalesced() {
        let dir = tempdir().unwrap();
        let db = database(&dir);
        let before = writes();
        db.execute(
            "WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 30)
             INSERT INTO rows SELECT n, randomblob(4000) FROM n",
            [],
        )
        .unwrap();
        let log = fs::metadata(dir.path().join("it.db-wal")).unwrap().len();
        assert!(log > 30 * 4_096, "{log} bytes");
        // Other tests may run in parallel; two calls for each frame would be more than sixty.
        assert!(writes() - before < 30, "{} pieces", writes() - before);
    }

    #[test]
    fn plain_connection_reads_all_commits() {
        let dir = tempdir().unwrap();
        let db = database(&dir);
        let (file, log) = (dir.path().join("it.db"), dir.path().join("it.db-wal"));
        let reader = Connection::open(&file).unwrap();
        for number in 1..=300 {
            db.execute("INSERT INTO rows VALUES (?1, randomblob(5000))", [number]).unwrap();
            if number % 50 == 0 {
                assert_eq!(rows(&reader), (number, "ok".to_owned()));
                // The files as a killed process leaves them.
                let killed = tempdir().unwrap();
                fs::copy(&file, killed.path().join("it.db")).unwrap();
                fs::copy(&log, killed.path().join("it.db-wal")).unwrap();
                let killed = Connection::open(killed.path().join("it.db")).unwrap();
                assert_eq!(rows(&killed), (number, "ok".to_owned()));
            }
            if number % 70 == 0 {
                reader.pragma_query(None, "wal_checkpoint", |_| Ok(())).unwrap();
            }
        }
    }

    /// A transaction larger than SQLite's cache is written before its commit, and some of its pages
    /// are read and written again.
    #[test]
    fn large_transaction_commits_or_rolls_back() {
        let dir = tempdir().unwrap();
        let db = database(&dir);
        db.pragma_update(None, "cache_size", 10).unwrap();
        let change = |many: i64| {
            for number in 1..=many {
                db.execute("INSERT INTO rows VALUES (?1, randomblob(9000))", [number]).unwrap();
            }
            db.execute("UPDATE rows SET bytes = randomblob(9000) WHERE number % 3 = 0", [])
                .unwrap();
        };
        db.execute_batch("BEGIN").unwrap();
        change(300);
        db.execute_batch("ROLLBACK").unwrap();
        assert_eq!(rows(&db), (0, "ok".to_owned()));
        db.execute_batch("BEGIN").unwrap();
        change(200);
        db.execute_batch("COMMIT").unwrap();
        assert_eq!(rows(&db), (200, "ok".to_owned()));
        let reader = Connection::open(dir.path().join("it.db")).unwrap();
        assert_eq!(rows(&reader), (200, "ok".to_owned()));
    }
}
