//! Environment as Unix has it.

use std::{
    env,
    ffi::{OsStr, OsString},
    fs,
    os::unix::{ffi::OsStrExt as _, fs::PermissionsExt as _},
    path::{Path, PathBuf},
};

/// True if a terminal without the variable `TERM` shows no colours.
pub(super) const NEEDS_TERM: bool = true;

/// Home directory of the user, as shells know it.
pub(super) fn home_dir() -> Option<PathBuf> {
    env::var_os("HOME").filter(|home| !home.is_empty()).map(PathBuf::from)
}

/// Name of this machine in its network.
pub fn machine_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// True if `file` is a plain file with an executable bit.
pub fn is_executable(file: &Path) -> bool {
    fs::metadata(file).is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

/// Search path of another process of this user, as it was started. Needs procfs.
pub fn path_of_process(pid: i32) -> Option<OsString> {
    let environment = fs::read(format!("/proc/{pid}/environ")).ok()?;
    let path = environment.split(|byte| *byte == 0).find_map(|it| it.strip_prefix(b"PATH="))?;
    Some(OsStr::from_bytes(path).to_owned())
}
