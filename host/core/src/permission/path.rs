//! Paths of requests and patterns of rules, compared as text.

use crate::text::plain_text::is_plain_line;

/// Maximum length of a path in bytes: `PATH_MAX` of Linux.
const MAX_PATH: usize = 4096;

/// Absolute path without `.`, `..`, empty components and deceptive characters. A slash at its end
/// is removed.
pub(super) fn canonical(path: &str) -> Option<&str> {
    let path = path.strip_suffix('/').filter(|path| !path.is_empty()).unwrap_or(path);
    let from_root = path.strip_prefix('/')?;
    let is_canonical = path.len() <= MAX_PATH
        && is_plain_line(path)
        && (from_root.is_empty() || is_canonical_relative(from_root));
    is_canonical.then_some(path)
}

/// True for a path without `.`, `..` and empty components.
pub(super) fn is_canonical_relative(path: &str) -> bool {
    path.split('/').all(|component| !matches!(component, "" | "." | ".."))
}

/// Path relative to `root`, which is empty for `root` itself. `None` if it lies outside, or if one
/// of them is not canonical.
pub(super) fn relative<'p>(path: &'p str, root: &str) -> Option<&'p str> {
    let (path, root) = (canonical(path)?, canonical(root)?);
    // Rules for a checkout at `/` would hold for every file of the machine.
    let inner = path.strip_prefix(root).filter(|_| root != "/")?;
    if inner.is_empty() { Some(inner) } else { inner.strip_prefix('/') }
}

/// Path of a relative one below `directory`.
pub(super) fn join(directory: &str, relative: &str) -> Option<String> {
    let directory = canonical(directory)?;
    let directory = directory.strip_suffix('/').unwrap_or(directory);
    let path = format!("{directory}/{relative}");
    (is_canonical_relative(relative) && canonical(&path) == Some(&path)).then_some(path)
}

/// True if a path lies in a repository's own data, which configure programs.
pub(super) fn is_in_git(relative: &str) -> bool {
    relative.split('/').any(|component| component.eq_ignore_ascii_case(".git"))
}

/// True if `pattern` matches the whole of `path`: `*` stands for any characters but `/`, and `**`
/// for any characters. The cost grows with the product of both lengths.
pub(super) fn matches(pattern: &str, path: &str) -> bool {
    let text: Vec<char> = path.chars().collect();
    // For each number of leading characters of `text`: true if the pattern so far matches them.
    let mut reached = vec![true];
    reached.resize(text.len() + 1, false);
    let mut rest = pattern.chars().peekable();
    while let Some(token) = rest.next() {
        reached = if token == '*' {
            let crosses = rest.next_if_eq(&'*').is_some();
            after_wildcard(&reached, &text, crosses)
        } else {
            let steps = reached.iter().zip(&text);
            let moved = steps.map(|(reached, next)| *reached && *next == token);
            [false].into_iter().chain(moved).collect()
        };
        if !reached.contains(&true) {
            return false;
        }
    }
    reached.last() == Some(&true)
}

/// Reached positions after a wildcard, which crosses `/` if `crosses`.
fn after_wildcard(reached: &[bool], text: &[char], crosses: bool) -> Vec<bool> {
    let mut is_open = false;
    let before = [None].into_iter().chain(text.iter().map(Some));
    let each = reached.iter().zip(before).map(|(reached, before)| {
        is_open &= crosses || before != Some(&'/');
        is_open |= *reached;
        is_open
    });
    each.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_outside_of_root_are_refused() {
        for (path, root, expected) in [
            ("/w", "/w", Some("")),
            ("/w/", "/w", Some("")),
            ("/w/a/b", "/w/", Some("a/b")),
            ("/wide/a", "/w", None),
            ("/w/../a", "/w", None),
            ("/w/./a", "/w", None),
            ("/w//a", "/w", None),
            ("/w/a\n", "/w", None),
            ("/w/a\u{202e}b", "/w", None),
            ("w/a", "w", None),
            ("a", "", None),
            ("/a", "/", None),
        ] {
            assert_eq!(relative(path, root), expected, "{path} {root}");
        }
    }

    #[test]
    fn relative_path_is_joined_without_dots() {
        for (directory, path, expected) in [
            ("/w", "a/b", Some("/w/a/b")),
            ("/", "a", Some("/a")),
            ("/w", "../a", None),
            ("/w", "/a", None),
            ("/w", "", None),
            ("w", "a", None),
        ] {
            assert_eq!(join(directory, path).as_deref(), expected, "{directory} {path}");
        }
    }

    #[test]
    fn wildcards_match_whole_path_only() {
        for (pattern, path, expected) in [
            ("", "", true),
            ("a", "a", true),
            ("a", "ab", false),
            ("*", "a", true),
            ("*", "a/b", false),
            ("**", "a/b", true),
            ("**", "", true),
            ("src/*.rs", "src/a.rs", true),
            ("src/*.rs", "src/a/b.rs", false),
            ("src/**", "src/a/b.rs", true),
            ("src/**", "src", false),
            ("**/a.rs", "x/y/a.rs", true),
            ("**/a.rs", "a.rs", false),
            ("*a*b", "xaab", true),
            ("*a*b", "xaa", false),
            ("s*/x", "src/x", true),
        ] {
            assert_eq!(matches(pattern, path), expected, "{pattern} {path}");
        }
    }
}
