//! Environment of the hub, read nowhere else.

#[cfg(any(test, not(unix), feature = "without-unix"))]
#[cfg_attr(
    all(unix, not(feature = "without-unix")),
    expect(unreachable_pub, reason = "tested on Unix too")
)]
mod portable;
#[cfg(all(unix, not(feature = "without-unix")))]
mod unix;

#[cfg(not(all(unix, not(feature = "without-unix"))))]
use portable as system;
#[cfg(all(unix, not(feature = "without-unix")))]
use unix as system;

pub use system::{is_executable, machine_name};
#[cfg(all(unix, not(feature = "without-unix")))]
pub use unix::path_of_process;

use crate::{
    error::ConfigError,
    layers::{Flag, Settings},
};
use a2a_hub_core::grant;
use std::{
    collections::BTreeSet,
    env,
    ffi::{OsStr, OsString},
    path::PathBuf,
};

impl Settings {
    /// Reads `file`, or the default file if it exists, and layers the environment and the `flags`
    /// on top.
    pub fn load(file: Option<PathBuf>, flags: &[Flag]) -> Result<Self, ConfigError> {
        let ours =
            env::vars_os().filter(|(name, _)| name.as_encoded_bytes().starts_with(b"A2A_HUB_"));
        let environment =
            ours.map(|(name, value)| match (name.into_string(), value.into_string()) {
                (Ok(name), Ok(value)) => Ok((name, value)),
                (Ok(name), Err(_)) => Err(ConfigError::NotText(name)),
                (Err(name), _) => Err(ConfigError::NotText(name.to_string_lossy().into_owned())),
            });
        let home = system::home_dir();
        Self::read(file, &environment.collect::<Result<_, _>>()?, home.as_deref(), flags)
    }
}

/// True if the user disabled colours (no-color.org), or the terminal has none.
pub fn is_colourless() -> bool {
    let is_set = |name| env::var_os(name).is_some_and(|value| !value.is_empty());
    is_set("NO_COLOR") || env::var_os("TERM").map_or(system::NEEDS_TERM, |term| term == "dumb")
}

/// True if the session of this process can show a window: it has a display of X or Wayland, or is
/// in Windows' subsystem for Linux.
pub fn shows_windows() -> bool {
    ["DISPLAY", "WAYLAND_DISPLAY", "WSL_DISTRO_NAME"].iter().any(|name| env::var_os(name).is_some())
}

/// Directory for short-lived files of this user (`XDG_RUNTIME_DIR`), if it exists.
pub fn runtime_dir() -> Option<PathBuf> {
    env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|dir| dir.is_dir())
}

/// True if the variable `HUB_POSIX_ONLY` is set: the hub then owns process trees with POSIX calls
/// only and confines no program. For tests of a port (`docs/decisions/0015-a-port-to-macos.md`).
pub fn is_posix_only() -> bool {
    env::var_os("HUB_POSIX_ONLY").is_some_and(|value| !value.is_empty())
}

/// Environment variables that a grant passes to a program, by its `words`. Read at the program's
/// start.
pub fn environment(words: &BTreeSet<String>) -> Vec<(String, String)> {
    let passed = |name: &str| words.iter().any(|word| grant::passes(word, name));
    full_environment().into_iter().filter(|(name, _)| passed(name)).collect()
}

/// Whole environment of this process, for a tool that its user runs through the hub, as a shell
/// would pass it on. Values that are not UTF-8 are left out.
pub fn full_environment() -> Vec<(String, String)> {
    let text = |(name, value): (OsString, OsString)| {
        Some((name.into_string().ok()?, value.into_string().ok()?))
    };
    env::vars_os().filter_map(text).collect()
}

/// Command of the user's editor: `VISUAL`, or `EDITOR`, or else `vi`.
pub fn editor() -> String {
    let named = |name| env::var_os(name).and_then(|it| it.into_string().ok());
    let chosen = ["VISUAL", "EDITOR"].into_iter().filter_map(named);
    chosen.into_iter().find(|it| !it.trim().is_empty()).unwrap_or_else(|| "vi".to_owned())
}

/// Command of the user's pager: `PAGER`, or else `less`, which passes colours on.
pub fn pager() -> String {
    let chosen = env::var_os("PAGER").and_then(|it| it.into_string().ok());
    chosen.filter(|it| !it.trim().is_empty()).unwrap_or_else(|| "less -FR".to_owned())
}

/// Directory of this program's caches, below the user's cache directory.
pub fn cache_dir() -> Option<PathBuf> {
    let absolute = |name| env::var_os(name).map(PathBuf::from).filter(|dir| dir.is_absolute());
    let caches = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")))?;
    Some(caches.join("a2a-hub"))
}

/// Absolute path of `name` on the hub's `PATH`.
pub fn find_program(name: &str) -> Option<PathBuf> {
    find_program_on(&env::var_os("PATH")?, name)
}

/// Absolute path of `name` on this search path.
pub fn find_program_on(path: &OsStr, name: &str) -> Option<PathBuf> {
    env::split_paths(path)
        .filter(|dir| dir.is_absolute())
        .map(|dir| dir.join(name))
        .find(|file| is_executable(file))
}
