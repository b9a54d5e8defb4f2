//! The environment of the hub: the one place that reads it.

use crate::{
    error::ConfigError,
    layers::{Flag, Settings},
};
use a2a_hub_core::grant;
use std::{
    collections::BTreeSet,
    env,
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
};

impl Settings {
    /// Reads `file`, or the default file if there is one, and puts the environment and the `flags` on top.
    pub fn load(file: Option<PathBuf>, flags: &[Flag]) -> Result<Self, ConfigError> {
        let ours =
            env::vars_os().filter(|(name, _)| name.as_encoded_bytes().starts_with(b"A2A_HUB_"));
        let environment =
            ours.map(|(name, value)| match (name.into_string(), value.into_string()) {
                (Ok(name), Ok(value)) => Ok((name, value)),
                (Ok(name), Err(_)) => Err(ConfigError::NotText(name)),
                (Err(name), _) => Err(ConfigError::NotText(name.to_string_lossy().into_owned())),
            });
        let home = env::var_os("HOME").filter(|home| !home.is_empty()).map(PathBuf::from);
        Self::read(file, &environment.collect::<Result<_, _>>()?, home.as_deref(), flags)
    }
}

/// Whether the user asks for text without colours, as no-color.org has it, or has a terminal that knows none.
pub fn is_colourless() -> bool {
    let is_set = |name| env::var_os(name).is_some_and(|value| !value.is_empty());
    is_set("NO_COLOR") || env::var_os("TERM").is_none_or(|term| term == "dumb")
}

/// The hub's own environment, read when a program is started: only what a grant passes on leaves it, as its `words` say.
pub fn environment(words: &BTreeSet<String>) -> Vec<(String, String)> {
    let passed = |name: &str| words.iter().any(|word| grant::passes(word, name));
    whole_environment().into_iter().filter(|(name, _)| passed(name)).collect()
}

/// The whole environment that this program was started in, for a tool that its user runs by it: as a shell would pass it on. What is
/// no text is left out.
pub fn whole_environment() -> Vec<(String, String)> {
    let text = |(name, value): (OsString, OsString)| {
        Some((name.into_string().ok()?, value.into_string().ok()?))
    };
    env::vars_os().filter_map(text).collect()
}

/// Where `name` is on the hub's `PATH`, as an absolute path.
pub fn find_program(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    env::split_paths(&path)
        .filter(|dir| dir.is_absolute())
        .map(|dir| dir.join(name))
        .find(|file| is_executable(file))
}

/// Whether `file` is a file that somebody may run.
pub fn is_executable(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    fs::metadata(file).is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}
