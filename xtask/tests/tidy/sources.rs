//! Files that the rules read, and their division into code and tests.

use std::{
    env, fs,
    path::{Path, PathBuf},
};

/// Files that are third-party or generated.
const UNTOLD: &[&str] = &[".git", "target", "dist", "node_modules", "Cargo.lock", "LICENSE"];

/// True if the file at `path` contains only tests and their support. A benchmark does not count.
pub(crate) fn is_test(path: &str) -> bool {
    let is_among_tests = path.contains("/tests/") || path.starts_with("tests/");
    is_among_tests && !path.starts_with("tests/bench/") || path.ends_with("/tests.rs")
}

/// Number of lines that are neither blank nor a comment.
pub(crate) fn lines_of_code(text: &str) -> usize {
    let lines = text.lines().map(str::trim);
    lines.filter(|line| !line.is_empty() && !line.starts_with("//")).count()
}

/// Text before the file's own tests.
pub(crate) fn without_tests(text: &str) -> &str {
    let declared = text.match_indices("\nmod tests").find_map(|(at, _)| {
        let attribute = text[..at].rfind('\n').map_or(0, |line_break| line_break + 1);
        text[attribute..at].starts_with("#[cfg(").then_some(attribute)
    });
    &text[..declared.unwrap_or(text.len())]
}

/// Rust sources under `dir`, with their text.
pub(crate) fn sources(dir: &str) -> Vec<(String, String)> {
    files(dir).into_iter().filter(|(path, _)| path.ends_with(".rs")).collect()
}

/// Text files under `dir`, by path from the root, with their text.
pub(crate) fn files(dir: &str) -> Vec<(String, String)> {
    let mut pending = vec![root().join(dir)];
    let mut found = Vec::new();
    while let Some(dir) = pending.pop() {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            let untold = UNTOLD.iter().any(|name| path.ends_with(name));
            if path.is_dir() && !untold {
                pending.push(path);
            } else if let (false, Ok(text)) = (untold, fs::read_to_string(&path)) {
                let path = path.strip_prefix(root()).unwrap().to_str().unwrap().to_owned();
                found.push((path, text));
            }
        }
    }
    found
}

/// Text of the file at a path from the root.
pub(crate) fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Root of the workspace.
pub(crate) fn root() -> PathBuf {
    // Read at run time, since the folder may have moved since the build.
    let xtask = env::var_os("CARGO_MANIFEST_DIR").unwrap();
    Path::new(&xtask).parent().unwrap().to_owned()
}
