//! "Did you mean" suggestions: the shared rule by which an unknown name counts as a misspelling of
//! a known one, for the command line and all protocols.

/// Maximum length of a name that gets a suggestion, in bytes: names are shorter, and the comparison
/// has quadratic cost.
const MAX_NAME: usize = 128;

/// Name that `wrong` most likely stands for. The comparison is case-sensitive.
pub fn nearest<'n>(wrong: &str, names: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    if wrong.len() > MAX_NAME {
        return None;
    }
    // Up to one edit in three letters counts as a misspelling; more is another word.
    let max_edits = wrong.len().div_ceil(3);
    let close = names.filter(|name| name.len().abs_diff(wrong.len()) <= 4 * max_edits);
    let by_distance = close.map(|name| (strsim::osa_distance(wrong, name), name));
    by_distance.filter(|(slips, _)| *slips <= max_edits).min().map(|(_, name)| name)
}

/// Question for the user who wrote `wrong`: the [`nearest`] of the known names, if one is near.
pub fn hint<'n>(wrong: &str, names: impl Iterator<Item = &'n str>) -> Option<String> {
    nearest(wrong, names).map(question)
}

/// Text of the question whether `name` was meant.
pub fn question(name: &str) -> String {
    format!("did you mean `{name}`?")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misspelling_is_distinguished_from_other_word() {
        let names = ["enabled", "host", "port"];
        assert_eq!(nearest("prot", names.into_iter()), Some("port"));
        assert_eq!(nearest("enable", names.into_iter()), Some("enabled"));
        assert_eq!(nearest("colour", names.into_iter()), None);
        assert_eq!(hint("prot", names.into_iter()).as_deref(), Some("did you mean `port`?"));
        assert_eq!(hint("colour", names.into_iter()), None);
        // Four letters of four bytes each.
        assert_eq!(nearest("𐐀𐐁𐐂𐐃", ["𐐀𐐁𐐂"].into_iter()), Some("𐐀𐐁𐐂"));
        assert_eq!(nearest(&"x".repeat(MAX_NAME + 1), ["x"].into_iter()), None);
        assert_eq!(nearest("x", [&*"x".repeat(100_000)].into_iter()), None);
    }
}
