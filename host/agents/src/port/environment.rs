//! Lookup in the environment that is built for a program.

use std::path::Path;

/// Effective value of a variable: the last entry wins.
pub(crate) fn last<'e>(env: &'e [(String, String)], name: &str) -> Option<&'e str> {
    env.iter().rev().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
}

/// Search path of a program: its own directory, then those of `system`.
pub(crate) fn search_path(program: &Path, system: &str) -> String {
    let directory = program.parent().unwrap_or(Path::new("/")).display();
    format!("{directory}:{system}")
}
