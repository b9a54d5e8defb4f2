//! Environment on systems other than Unix.

use std::{
    env,
    path::{Path, PathBuf},
};

/// True if a terminal without the variable `TERM` shows no colours.
pub(super) const NEEDS_TERM: bool = false;

/// Directory of the user's profile.
pub(super) fn home_dir() -> Option<PathBuf> {
    env::home_dir().filter(|home| home.is_absolute())
}

/// Name of this machine, as Windows and most shells know it.
pub fn machine_name() -> String {
    let named = ["COMPUTERNAME", "HOSTNAME"].iter().find_map(env::var_os);
    named.map_or_else(|| "a client".to_owned(), |name| name.to_string_lossy().into_owned())
}

/// True if `file` is a plain file: the system decides by its name whether it is a program.
pub fn is_executable(file: &Path) -> bool {
    file.is_file()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_are_no_programs() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("tool.exe");
        std::fs::write(&file, "").unwrap();
        assert!(is_executable(&file));
        assert!(!is_executable(dir.path()) && !is_executable(&dir.path().join("none")));
    }

    #[test]
    fn profile_is_absolute_directory() {
        assert!(home_dir().is_none_or(|home| home.is_absolute()));
        assert!(!NEEDS_TERM && !machine_name().is_empty());
    }
}
