//! Forms of words: names, paths, versions and revisions.

use crate::words::Word;

/// Verbs whose object was added to the code or removed.
pub(super) const ORIGIN_VERBS: [&str; 13] = [
    "introduced",
    "introduce",
    "added",
    "add",
    "created",
    "create",
    "removed",
    "remove",
    "deleted",
    "delete",
    "dropped",
    "appear",
    "appeared",
];

/// Words that precede a path.
pub(super) const BEFORE_PATH: [&str; 14] = [
    "in",
    "under",
    "of",
    "to",
    "inside",
    "within",
    "file",
    "folder",
    "directory",
    "know",
    "knows",
    "about",
    "on",
    "touched",
];

/// Words that are never paths, even in the position of one.
const NOT_A_PATH: [&str; 34] = [
    "a",
    "an",
    "the",
    "this",
    "that",
    "these",
    "it",
    "its",
    "here",
    "there",
    "repo",
    "repository",
    "project",
    "code",
    "codebase",
    "history",
    "commit",
    "commits",
    "release",
    "version",
    "general",
    "total",
    "all",
    "most",
    "best",
    "change",
    "changes",
    "file",
    "files",
    "folder",
    "directory",
    "line",
    "me",
    "what",
];

/// Path in a sentence: a word that looks like one, or else the word in the position of one.
pub(super) fn path(words: &[Word]) -> Option<String> {
    let looks = words.iter().find(|word| !word.text.contains("..") && looks_like_path(&word.text));
    let placed = || {
        let mut places = (0..words.len())
            .rev()
            .filter(|&at| !words[at].quoted && BEFORE_PATH.contains(&words[at].lower.as_str()));
        places.find_map(|at| {
            let after = words.get(at + 1)?;
            let the = usize::from(["the", "our", "my"].contains(&after.lower.as_str()));
            words.get(at + 1 + the).filter(|word| word.quoted || is_name(word))
        })
    };
    looks.or_else(placed).map(|word| word.text.clone())
}

pub(super) fn is_name(word: &Word) -> bool {
    let allowed = |c: char| c.is_alphanumeric() || "._-+@".contains(c);
    let name = word.text.chars().all(allowed) && !is_small(word);
    name && !is_version(&word.text)
        && !is_revision(&word.text)
        && !ORIGIN_VERBS.contains(&word.lower.as_str())
        && !BEFORE_PATH.contains(&word.lower.as_str())
}

pub(super) fn is_small(word: &Word) -> bool {
    NOT_A_PATH.contains(&word.lower.as_str())
}

pub(super) fn looks_like_path(text: &str) -> bool {
    let extension = |text: &str| {
        text.rsplit_once('.').is_some_and(|(stem, extension)| {
            let short = (1..=8).contains(&extension.len());
            let plain = extension.chars().all(|c| c.is_ascii_alphanumeric());
            !stem.is_empty() && short && plain && extension.contains(|c: char| c.is_alphabetic())
        })
    };
    let dotted = text.len() > 1 && text.starts_with('.');
    !text.contains([' ', ':', '('])
        && !is_version(text)
        && (text.contains('/') || dotted || extension(text))
}

/// True for versions such as `v1`, `1.2`, `v1.2.0-rc.1`, `sdk-v2.0`.
pub(super) fn is_version(text: &str) -> bool {
    if let Some((name, version)) = text.split_once('-')
        && name.chars().all(char::is_alphabetic)
        && name != "v"
    {
        return is_version(version);
    }
    let number = text.strip_prefix(['v', 'V']).unwrap_or(text);
    let tail = number.trim_start_matches(|c: char| c.is_ascii_digit());
    let marked = number.len() < text.len() || tail.starts_with('.');
    let plain = number.chars().all(|c| c.is_ascii_alphanumeric() || ".-+".contains(c));
    number.starts_with(|c: char| c.is_ascii_digit())
        && marked
        && plain
        && (tail.is_empty() || tail.starts_with(['.', '-', '+']))
}

/// True for revisions such as `abc1234`, `HEAD`, `HEAD~2`.
pub(super) fn is_revision(text: &str) -> bool {
    let hex = text.len() >= 7 && text.len() <= 64 && text.chars().all(|c| c.is_ascii_hexdigit());
    let head = text
        .strip_prefix("HEAD")
        .is_some_and(|rest| rest.is_empty() || rest.starts_with(['~', '^']));
    head || (hex && text.contains(|c: char| c.is_ascii_digit()))
}
