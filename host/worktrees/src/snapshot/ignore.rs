//! Rules of git for files that are not counted (gitignore(5)): those of the user, of the
//! repository, and of each directory.

use gix_glob::{
    pattern::Case,
    search::pattern::{List, Mapping},
};
use gix_ignore::search::{Ignore, pattern_matching_relative_path};
use std::path::PathBuf;

/// Largest file of rules, in bytes: each rule is tried with each name.
pub(crate) const RULES_LIMIT: u64 = 256 << 10;

/// Most rules of one file.
const MAX_RULES: usize = 5_000;

/// Most asterisks and question marks of a rule: the time to match a name grows with their power.
const MAX_WILDCARDS: usize = 12;

/// Most `**` of a rule.
const MAX_DOUBLE: usize = 3;

/// Rules that count in a directory, weakest first.
#[derive(Default)]
pub(crate) struct IgnoreRules {
    lists: Vec<List<Ignore>>,
}

impl IgnoreRules {
    /// Adds rules for the directory `at` and all below it; the empty path is the top.
    pub(crate) fn add(&mut self, at: &[u8], rules: &[u8]) {
        let mut path = at.to_vec();
        if !at.is_empty() {
            path.push(b'/');
        }
        let base = (!at.is_empty()).then(|| path.into());
        let rules = cheap_rules(rules);
        let patterns = gix_ignore::parse(&rules, false);
        let patterns = patterns.map(|(pattern, sequence_number, value)| Mapping {
            pattern,
            value,
            sequence_number,
        });
        let list = List { patterns: patterns.collect(), source: None::<PathBuf>, base };
        if !list.patterns.is_empty() {
            self.lists.push(list);
        }
    }

    /// Forgets the rules of directories that do not contain `at`. Directories are visited depth
    /// first.
    pub(crate) fn forget_outside(&mut self, at: &[u8]) {
        let contains = |list: &List<Ignore>| {
            list.base.as_ref().is_none_or(|base| {
                at.starts_with(base) || base.strip_suffix(b"/").is_some_and(|base| at == base)
            })
        };
        self.lists.retain(contains);
    }

    /// True if a path is ignored. The directory above it must not be.
    pub(crate) fn ignores(&self, path: &[u8], is_directory: bool) -> bool {
        let name_at = path.iter().rposition(|byte| *byte == b'/').map(|at| at + 1);
        let found = self.lists.iter().rev().find_map(|list| {
            pattern_matching_relative_path(
                list,
                path.into(),
                name_at,
                Some(is_directory),
                Case::Sensitive,
            )
        });
        found.is_some_and(|found| !found.pattern.is_negative())
    }
}

/// The rules of a file without those that would take long to match (CWE-1333).
pub(crate) fn cheap_rules(rules: &[u8]) -> Vec<u8> {
    let is_cheap = |line: &&[u8]| {
        let wildcards = line.iter().filter(|byte| matches!(byte, b'*' | b'?' | b'[')).count();
        let doubles = line.windows(2).filter(|pair| *pair == b"**").count();
        wildcards <= MAX_WILDCARDS && doubles <= MAX_DOUBLE
    };
    let lines = rules.split_inclusive(|byte| *byte == b'\n');
    lines.filter(is_cheap).take(MAX_RULES).collect::<Vec<_>>().concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deeper_rules_win() {
        let mut rules = IgnoreRules::default();
        rules.add(b"", b"*.log\n/target/\nbuild\n!keep.log\n");
        assert!(rules.ignores(b"a.log", false) && rules.ignores(b"src/a.log", false));
        assert!(!rules.ignores(b"keep.log", false));
        assert!(rules.ignores(b"target", true) && !rules.ignores(b"target", false));
        assert!(!rules.ignores(b"src/target", true) && rules.ignores(b"src/build", true));
        rules.forget_outside(b"src");
        rules.add(b"src", b"!a.log\n/only\n");
        assert!(!rules.ignores(b"src/a.log", false) && rules.ignores(b"src/only", false));
        assert!(rules.ignores(b"src/deep/b.log", false) && !rules.ignores(b"src/deep/only", false));
        rules.forget_outside(b"src2");
        assert!(rules.ignores(b"src2/a.log", false) && !rules.ignores(b"only", false));
    }

    #[test]
    fn costly_rules_are_left_out() {
        let mut rules = IgnoreRules::default();
        let costly = ["a*".repeat(200), "**/a/".repeat(60) + "b", "*".repeat(90_000)].join("\n");
        rules.add(b"", format!("{costly}\nplain\n").as_bytes());
        assert!(rules.ignores(b"plain", false));
        assert!(!rules.ignores(&b"a".repeat(250), false));
    }
}
