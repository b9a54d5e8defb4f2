//! Names of the files beside a database, and creation of private files.

use std::{
    fs::OpenOptions,
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
};

/// Path with this suffix appended to the file's name.
pub(in crate::sqlite) fn with_suffix(file: &Path, ending: &str) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

/// Write-ahead log of the database `file`.
pub(in crate::sqlite) fn log_of(file: &Path) -> PathBuf {
    with_suffix(file, "-wal")
}

/// Options to open or create a file that only this user can read.
pub(in crate::sqlite) fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false).mode(0o600);
    options
}
