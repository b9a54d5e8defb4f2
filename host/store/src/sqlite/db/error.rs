//! Errors of SQLite and of its files, with the fix for each.

use crate::StorageError;
use rusqlite::ErrorCode::{self, *};
use std::io;

/// Fixes for a database that cannot be written, by SQLite's error codes.
const WAYS_OUT: &[(&[ErrorCode], &str)] = &[
    (&[DiskFull], FREE_SPACE),
    (
        &[SystemIoFailure],
        "make room on the disk of the data directory, raise the limit on the size of files (`ulimit -f`), or see whether the disk \
         is sound",
    ),
    (&[ReadOnly, CannotOpen, PermissionDenied], ACCESS),
    (&[DatabaseBusy, DatabaseLocked], "end the program that holds the database, such as a backup"),
    (&[DatabaseCorrupt, NotADatabase], "restore the data directory from a backup, or move it away"),
];

/// Fixes for a file that cannot be used.
const FILE_WAYS_OUT: &[(&[io::ErrorKind], &str)] = &[
    (&[io::ErrorKind::PermissionDenied, io::ErrorKind::ReadOnlyFilesystem], ACCESS),
    (&[io::ErrorKind::StorageFull, io::ErrorKind::QuotaExceeded], FREE_SPACE),
    (&[io::ErrorKind::FileTooLarge], "raise the limit on the size of files (`ulimit -f`)"),
];

const FREE_SPACE: &str = "make room on the disk of the data directory";

const ACCESS: &str = "let the hub's user write to the data directory and to the files in it, or choose another with \
                      `--data-dir`";

/// Fix for an error of SQLite, as the end of a sentence for people.
pub(in crate::sqlite) fn way_out(why: &rusqlite::Error) -> &'static str {
    let code = why.sqlite_error_code();
    let known = WAYS_OUT.iter().find(|(codes, _)| code.is_some_and(|code| codes.contains(&code)));
    known.map_or("see the hub's log", |(_, way_out)| way_out)
}

/// Store error for an error of SQLite.
pub(in crate::sqlite) fn because_of(why: &rusqlite::Error) -> StorageError {
    unavailable(format!("{why}; {}", way_out(why)))
}

/// Store error for a system error with a file.
pub(in crate::sqlite) fn no_file(action: &str, why: &io::Error) -> StorageError {
    let known = FILE_WAYS_OUT.iter().find(|(kinds, _)| kinds.contains(&why.kind()));
    let way_out = known.map(|(_, way_out)| format!("; {way_out}")).unwrap_or_default();
    unavailable(format!("{action}: {why}{way_out}"))
}

/// True if stored data is damaged, and not just unreachable.
pub(in crate::sqlite) fn is_damage(why: &rusqlite::Error) -> bool {
    matches!(why.sqlite_error_code(), Some(DatabaseCorrupt | NotADatabase))
}

/// Error for a store that cannot be used now.
pub(in crate::sqlite) fn unavailable(why: impl std::fmt::Display) -> StorageError {
    StorageError::Unavailable(why.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rusqlite::ffi;

    #[test]
    fn only_corruption_suggests_restore() {
        let told = |code| {
            let why = rusqlite::Error::SqliteFailure(ffi::Error::new(code), None);
            (way_out(&why), is_damage(&why))
        };
        assert_eq!(told(ffi::SQLITE_FULL), (FREE_SPACE, false));
        for closed in [ffi::SQLITE_READONLY, ffi::SQLITE_CANTOPEN, ffi::SQLITE_READONLY_DIRECTORY] {
            assert_eq!(told(closed), (ACCESS, false), "{closed}");
        }
        for broken in [ffi::SQLITE_IOERR_WRITE, ffi::SQLITE_IOERR_FSYNC, ffi::SQLITE_IOERR_SHMSIZE]
        {
            let (way_out, is_damage) = told(broken);
            assert!(way_out.contains("ulimit -f") && !is_damage, "{way_out}");
        }
        for damaged in [ffi::SQLITE_CORRUPT, ffi::SQLITE_NOTADB] {
            let (way_out, is_damage) = told(damaged);
            assert!(way_out.contains("backup") && is_damage, "{way_out}");
        }
        assert_eq!(told(ffi::SQLITE_MISUSE).0, "see the hub's log");
    }
}
