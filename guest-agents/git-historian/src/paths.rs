//! Finds the file or folder that a question means, or the most similar ones.

use std::collections::BTreeSet;

/// Length of a name per letter that may differ in a suggestion; with more differences it would be a
/// guess.
const FARTHEST: usize = 3;

/// Maximum number of suggestions.
const SUGGESTIONS: usize = 3;

/// Target of a path in a question.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum PathTarget {
    /// Repository as a whole.
    Root,
    /// File.
    File(String),
    /// Folder.
    Folder(String),
}

/// Finds a path, or a name that only one file or folder has; otherwise returns the most similar
/// paths.
pub(crate) fn find(query: &str, files: &[String]) -> Result<PathTarget, Vec<String>> {
    let path = query.trim_start_matches("./").trim_matches('/');
    if path.is_empty() || path == "." {
        return Ok(PathTarget::Root);
    }
    if files.iter().any(|file| file == path) {
        return Ok(PathTarget::File(path.to_owned()));
    }
    let folders: BTreeSet<&str> = files.iter().flat_map(|file| folders(file)).collect();
    if folders.contains(path) {
        return Ok(PathTarget::Folder(path.to_owned()));
    }
    let named = |full_path: &&str| is_named(full_path, path);
    let files_named: Vec<&str> = files.iter().map(String::as_str).filter(named).collect();
    let folders_named: Vec<&str> = folders.iter().copied().filter(named).collect();
    match (files_named.as_slice(), folders_named.as_slice()) {
        ([file], []) => Ok(PathTarget::File((*file).to_owned())),
        ([], [folder]) => Ok(PathTarget::Folder((*folder).to_owned())),
        ([], []) => Err(nearest(path, files.iter().map(String::as_str).chain(folders))),
        (files, folders) => {
            let all = folders.iter().chain(files);
            Err(all.take(SUGGESTIONS).map(|&path| path.to_owned()).collect())
        }
    }
}

fn folders(file: &str) -> impl Iterator<Item = &str> {
    file.match_indices('/').map(|(at, _)| &file[..at])
}

/// True if a path ends with `query`, or its file name without extension equals it, ignoring case.
fn is_named(full_path: &str, query: &str) -> bool {
    let (full_path, query) = (full_path.to_lowercase(), query.to_lowercase());
    let name = full_path.rsplit('/').next().unwrap_or_default();
    let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
    let ends = full_path
        .strip_suffix(query.as_str())
        .is_some_and(|rest| rest.is_empty() || rest.ends_with('/'));
    ends || stem == query
}

/// Most similar names, by the edit distance of the last component or of the whole.
pub(crate) fn nearest<'a>(query: &str, names: impl Iterator<Item = &'a str>) -> Vec<String> {
    let query = query.to_lowercase();
    let last = |path: &str| path.rsplit('/').next().unwrap_or_default().to_owned();
    let farthest = last(&query).len().div_ceil(FARTHEST);
    let mut scored: Vec<(usize, usize, &str)> = names
        .map(|name| {
            let lower = name.to_lowercase();
            let full_distance = distance(&query, &lower);
            (full_distance.min(distance(&last(&query), &last(&lower))), full_distance, name)
        })
        .filter(|(nearer, ..)| *nearer <= farthest)
        .collect();
    scored.sort_unstable();
    scored.into_iter().take(SUGGESTIONS).map(|(.., name)| name.to_owned()).collect()
}

/// Edit distance (Levenshtein).
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, a) in a.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, b) in b.iter().enumerate() {
            let changed = diagonal + usize::from(a != *b);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_found_by_suffix_or_stem() {
        let files =
            ["README.md", "src/lib.rs", "src/parser/mod.rs", "src/lexer.rs", "tests/lib.rs"];
        let files = files.map(str::to_owned);
        let file = |path: &str| Ok(PathTarget::File(path.into()));
        let folder = |path: &str| Ok(PathTarget::Folder(path.into()));
        let near = |paths: &[&str]| Err(paths.iter().map(|&path| path.to_owned()).collect());
        let cases = [
            (".", Ok(PathTarget::Root)),
            ("src/lib.rs", file("src/lib.rs")),
            ("./src/", folder("src")),
            ("lexer", file("src/lexer.rs")),
            ("readme", file("README.md")),
            ("parser", folder("src/parser")),
            ("parser/mod.rs", file("src/parser/mod.rs")),
            ("lib.rs", near(&["src/lib.rs", "tests/lib.rs"])),
            ("src/lexr.rs", near(&["src/lexer.rs", "src/lib.rs", "tests/lib.rs"])),
            ("pasrer", near(&["src/parser"])),
            ("zebra", near(&[])),
        ];
        for (asked, expected) in cases {
            assert_eq!(find(asked, &files), expected, "{asked}");
        }
    }
}
