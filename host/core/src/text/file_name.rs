//! Sanitises untrusted file names: the result names one file in one directory, and cannot be read
//! as an option.

use crate::text::terminal::is_deceptive;
use std::collections::BTreeSet;

/// Maximum length of a name, in bytes: less than half of the limit of file systems, because
/// programs add suffixes.
pub const MAX_BYTES: usize = 100;

/// Maximum length of an extension that is kept when a name is cut; a longer one is part of a
/// sentence.
const MAX_ENDING: usize = 16;

/// Safe name close to `requested`, different from all `taken` names.
///
/// A safe name has 1 to [`MAX_BYTES`] bytes, without separators, control characters and deceptive
/// characters, and does not begin with a dot, a dash or a blank.
pub fn unused(requested: &str, taken: &BTreeSet<String>) -> String {
    let name = safe(requested);
    // A cut name may itself end in `-2`, and so be the same as its second one.
    let mut tries = (1..=taken.len() + 2).map(|number| numbered(&name, number));
    tries.find(|name| !taken.contains(name)).unwrap_or_else(|| name.clone())
}

fn safe(requested: &str) -> String {
    let last = requested.rsplit(['/', '\\']).next().unwrap_or_default();
    let cleaned: String = last.chars().filter(|c| !is_deceptive(*c)).collect();
    let misleads = |c: char| matches!(c, '.' | '-') || c.is_whitespace();
    match cleaned.trim_start_matches(misleads).trim_end() {
        "" => "file".to_owned(),
        name => numbered(name, 1),
    }
}

/// `name` itself for number 1, then `name-2.txt` and so on, cut to the maximum length.
fn numbered(name: &str, number: usize) -> String {
    let dot = name.rfind('.').filter(|&dot| dot > 0 && name.len() - dot <= MAX_ENDING);
    let (stem, ending) = name.split_at(dot.unwrap_or(name.len()));
    let mark = if number == 1 { String::new() } else { format!("-{number}") };
    let max_stem = MAX_BYTES.saturating_sub(mark.len() + ending.len());
    let cut = stem.floor_char_boundary(max_stem);
    format!("{}{mark}{ending}", &stem[..cut])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn unsafe_parts_of_name_are_removed() {
        let cases = [
            ("notes.txt", "notes.txt"),
            ("../../x", "x"),
            ("/etc/passwd", "passwd"),
            (r"C:\Users\me\a.png", "a.png"),
            ("..", "file"),
            ("", "file"),
            ("dir/", "file"),
            (".bashrc", "bashrc"),
            ("--output=x", "output=x"),
            (" - .a b.txt \n", "a b.txt"),
            ("a\nb\0c", "abc"),
            ("a\u{202e}gpj.exe", "agpj.exe"),
            ("Überblick.md", "Überblick.md"),
        ];
        for (said, kept) in cases {
            assert_eq!(unused(said, &BTreeSet::new()), kept, "{said:?}");
        }
    }

    #[test]
    fn taken_name_gets_a_number() {
        let mut taken = BTreeSet::new();
        for expected in ["a.txt", "a-2.txt", "a-3.txt"] {
            let name = unused("a.txt", &taken);
            assert_eq!(name, expected);
            taken.insert(name);
        }
        let own = format!("{}-2", "a".repeat(MAX_BYTES - 2));
        assert!(unused(&own, &BTreeSet::from([own.clone()])).ends_with("a-3"), "{own}");
        let long = format!("{}.tar", "ü".repeat(100));
        let first = unused(&long, &BTreeSet::new());
        let second = unused(&long, &BTreeSet::from([first.clone()]));
        assert!(first.len() <= MAX_BYTES && first.ends_with("ü.tar"), "{first}");
        assert!(second.len() <= MAX_BYTES && second.ends_with("ü-2.tar"), "{second}");
    }

    proptest! {
        #[test]
        fn every_name_is_safe_and_new(said in proptest::collection::vec("\\PC{0,130}|[./\\\\ \n-]{0,4}", 0..4)) {
            let said = said.concat();
            let mut taken = BTreeSet::new();
            for _ in 0..12 {
                let name = unused(&said, &taken);
                prop_assert!((1..=MAX_BYTES).contains(&name.len()), "{name:?}");
                prop_assert!(!name.contains(['/', '\\']) && !name.contains(char::is_control), "{name:?}");
                prop_assert!(!name.starts_with(['.', '-', ' ']), "{name:?}");
                prop_assert!(taken.insert(name));
            }
        }
    }
}
