//! The files beside a database, by name, and how one is made.

use std::{
    fs::OpenOptions,
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
};

/// The path of the file whose name is that of `file` with this ending.
pub(super) fn beside(file: &Path, ending: &str) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

/// The write-ahead log that belongs to the database `file`.
pub(super) fn log_of(file: &Path) -> PathBuf {
    beside(file, "-wal")
}

/// Opens or makes a file that nobody but this user can read.
pub(super) fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false).mode(0o600);
    options
}
