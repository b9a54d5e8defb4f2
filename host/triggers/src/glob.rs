//! Glob patterns for paths below a directory and for names of branches.
//!
//! `*` and `?` match within one component, `**` matches any number of components, and a leading `!`
//! excludes. Matching takes time in proportion to the lengths of pattern and path, whatever both
//! contain.

/// Maximum number of patterns of a trigger.
const MAX_PATTERNS: usize = 64;

/// Maximum length of a pattern in bytes.
const MAX_LENGTH: usize = 256;

/// Error of a pattern.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidGlob {
    /// The pattern is empty.
    #[error("a pattern is empty; write one such as \"src/**/*.rs\"")]
    Empty,
    /// The list has no pattern that includes something.
    #[error("no pattern includes anything; add one such as \"**\" before those with `!`")]
    OnlyExcludes,
    /// The list or one of its patterns is too long.
    #[error("at most {MAX_PATTERNS} patterns of {MAX_LENGTH} bytes each are allowed")]
    TooLong,
    /// The pattern leaves the directory.
    #[error(
        "`{0}` does not stay below the directory; write it without a leading `/`, and without `.` and `..`"
    )]
    Outside(String),
    /// `**` is only a part of a component.
    #[error("`{0}` has `**` beside other characters; write `**` between slashes, or one `*`")]
    Stars(String),
    /// The pattern uses the syntax of other globs.
    #[error("`{0}` has one of `[]{{}}\\`, which mean nothing here; write a pattern for each case")]
    Syntax(String),
}

/// GlobPart of a pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
enum GlobPart {
    /// `**`: any number of components.
    Any,
    /// A name with `*` and `?`.
    Name(Vec<u8>),
}

/// Pattern that was parsed.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Pattern {
    excludes: bool,
    components: Vec<GlobPart>,
}

/// List of patterns. A path matches if the last pattern that applies to it includes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Globs(Vec<Pattern>);

impl Globs {
    /// Parses a list of patterns.
    pub fn parse<S: AsRef<str>>(patterns: &[S]) -> Result<Self, InvalidGlob> {
        if patterns.len() > MAX_PATTERNS {
            return Err(InvalidGlob::TooLong);
        }
        let parsed = patterns.iter().map(|pattern| parse(pattern.as_ref()));
        let parsed = parsed.collect::<Result<Vec<_>, _>>()?;
        if parsed.iter().all(|pattern| pattern.excludes) {
            return Err(InvalidGlob::OnlyExcludes);
        }
        Ok(Self(parsed))
    }

    /// True if a path, which has components separated by `/`, matches.
    pub fn matches(&self, path: &str) -> bool {
        let path: Vec<&[u8]> = path.split('/').map(str::as_bytes).collect();
        let last = self.0.iter().rev().find(|pattern| {
            let reached = reached(&pattern.components, &path);
            reached[pattern.components.len()]
        });
        last.is_some_and(|pattern| !pattern.excludes)
    }

    /// True if something below a directory may match, so that the directory must be read.
    pub fn may_match_in(&self, dir: &str) -> bool {
        let path: Vec<&[u8]> = dir.split('/').map(str::as_bytes).collect();
        let mut is_needed = false;
        for pattern in &self.0 {
            let (all, reached) = (&pattern.components, reached(&pattern.components, &path));
            if pattern.excludes {
                // `!target/**` excludes all that is below `target`, unless a later one includes it.
                let ends_with_any = all.last() == Some(&GlobPart::Any);
                is_needed &= !(ends_with_any && reached[all.len()]);
            } else {
                is_needed |= reached[..all.len()].contains(&true)
                    || (all.last() == Some(&GlobPart::Any) && reached[all.len()]);
            }
        }
        is_needed
    }
}

fn parse(text: &str) -> Result<Pattern, InvalidGlob> {
    if text.len() > MAX_LENGTH {
        return Err(InvalidGlob::TooLong);
    }
    let (excludes, rest) = match text.strip_prefix('!') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    if rest.is_empty() {
        return Err(InvalidGlob::Empty);
    }
    if rest.contains(['[', ']', '{', '}', '\\']) {
        return Err(InvalidGlob::Syntax(text.to_owned()));
    }
    let mut components = Vec::new();
    for part in rest.split('/') {
        components.push(match part {
            "" | "." | ".." => return Err(InvalidGlob::Outside(text.to_owned())),
            "**" => GlobPart::Any,
            _ if part.contains("**") => return Err(InvalidGlob::Stars(text.to_owned())),
            _ => GlobPart::Name(part.as_bytes().to_vec()),
        });
    }
    components.dedup_by(|a, b| *a == GlobPart::Any && *b == GlobPart::Any);
    Ok(Pattern { excludes, components })
}

/// For each number of leading components of the pattern: true if they match the whole path.
fn reached(pattern: &[GlobPart], path: &[&[u8]]) -> Vec<bool> {
    let mut now = vec![false; pattern.len() + 1];
    now[0] = true;
    pass_any(pattern, &mut now);
    for name in path {
        let mut next = vec![false; pattern.len() + 1];
        for (at, component) in pattern.iter().enumerate() {
            match component {
                GlobPart::Any if now[at] || now[at + 1] => next[at + 1] = true,
                GlobPart::Name(wanted) if now[at] && is_match(wanted, name) => next[at + 1] = true,
                GlobPart::Any | GlobPart::Name(_) => {}
            }
        }
        // `**` stays where it is, for the next component.
        for (at, component) in pattern.iter().enumerate() {
            if *component == GlobPart::Any && next[at + 1] {
                next[at] = true;
            }
        }
        pass_any(pattern, &mut next);
        now = next;
    }
    now
}

/// Lets `**` match no component at all.
fn pass_any(pattern: &[GlobPart], reached: &mut [bool]) {
    for (at, component) in pattern.iter().enumerate() {
        if *component == GlobPart::Any && reached[at] {
            reached[at + 1] = true;
        }
    }
}

/// True if a name matches a pattern with `*` and `?`: the classic greedy match, which goes back to
/// the latest `*` only.
fn is_match(pattern: &[u8], name: &[u8]) -> bool {
    let (mut at, mut of) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while of < name.len() {
        match pattern.get(at) {
            Some(b'*') => {
                star = Some((at + 1, of));
                at += 1;
            }
            Some(&byte) if byte == b'?' || byte == name[of] => {
                at += 1;
                // `?` is one character, which may have several bytes.
                of += 1;
                while byte == b'?' && name.get(of).is_some_and(|byte| byte & 0xc0 == 0x80) {
                    of += 1;
                }
            }
            Some(_) | None => match &mut star {
                Some((after, taken)) => {
                    *taken += 1;
                    (at, of) = (*after, *taken);
                }
                None => return false,
            },
        }
    }
    pattern[at..].iter().all(|byte| *byte == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn paths_match_by_component() {
        for (patterns, path, expected) in [
            (&["*.rs"][..], "lib.rs", true),
            (&["*.rs"], "src/lib.rs", false),
            (&["**/*.rs"], "lib.rs", true),
            (&["**/*.rs"], "a/b/lib.rs", true),
            (&["src/**"], "src/a/b", true),
            (&["src/**"], "src", true),
            (&["src/**"], "srcs/a", false),
            (&["src/**/test/*.py"], "src/test/a.py", true),
            (&["src/**/test/*.py"], "src/x/y/test/a.py", true),
            (&["src/**/test/*.py"], "src/x/y/a.py", false),
            (&["**/a/**/b"], "x/a/y/a/b", true),
            (&["**"], "anything/at/all", true),
            (&["a?c"], "aéc", true),
            (&["a?c"], "ac", false),
            (&["*a*b*"], "xxaxxbxx", true),
            (&["*a*b*"], "xxbxxaxx", false),
            (&["**", "!**/*.tmp"], "a/b.tmp", false),
            (&["**", "!**/*.tmp", "**/keep.tmp"], "a/keep.tmp", true),
            (&["!*.tmp", "*"], "a.tmp", true),
            (&["main"], "main", true),
            (&["release/*"], "release/1.0", true),
            (&["release/*"], "release/1.0/fix", false),
        ] {
            let globs = Globs::parse(patterns).unwrap();
            assert_eq!(globs.matches(path), expected, "{patterns:?} {path}");
        }
    }

    #[test]
    fn only_needed_directories_are_read() {
        for (patterns, dir, expected) in [
            (&["src/**/*.rs"][..], "src", true),
            (&["src/**/*.rs"], "src/a/b", true),
            (&["src/**/*.rs"], "target", false),
            (&["docs/*.md"], "docs", true),
            (&["docs/*.md"], "docs/old", false),
            (&["**/*.rs", "!target/**"], "target", false),
            (&["**/*.rs", "!target/**"], "target/debug", false),
            (&["**/*.rs", "!target/**", "target/keep/*"], "target", true),
            (&["**/*.rs", "!**/x"], "x", true),
            (&["*/a/b"], "q", true),
            (&["*/a/b"], "q/b", false),
        ] {
            let globs = Globs::parse(patterns).unwrap();
            assert_eq!(globs.may_match_in(dir), expected, "{patterns:?} {dir}");
        }
    }

    #[test]
    fn invalid_pattern_names_rule() {
        let of = |patterns: &[&str]| Globs::parse(patterns).unwrap_err();
        assert_eq!(of(&[""]), InvalidGlob::Empty);
        assert_eq!(of(&[]), InvalidGlob::OnlyExcludes);
        assert_eq!(of(&["!a"]), InvalidGlob::OnlyExcludes);
        for outside in ["/etc/passwd", "../x", "a//b", "a/./b", "a/"] {
            assert_eq!(of(&[outside]), InvalidGlob::Outside(outside.to_owned()));
        }
        assert_eq!(of(&["a**"]), InvalidGlob::Stars("a**".to_owned()));
        assert_eq!(of(&["*.{rs,py}"]), InvalidGlob::Syntax("*.{rs,py}".to_owned()));
        assert_eq!(of(&[&"a".repeat(257)]), InvalidGlob::TooLong);
        assert_eq!(of(&["a"; 65]), InvalidGlob::TooLong);
    }

    /// A pattern that a backtracking matcher would take years for.
    #[test]
    fn hostile_pattern_is_fast() {
        let stars = "*a".repeat(100) + "b";
        assert!(!Globs::parse(&[stars]).unwrap().matches(&"a".repeat(20_000)));
        let anys = "**/a/".repeat(40) + "b";
        assert!(!Globs::parse(&[anys]).unwrap().matches(&["a"; 2_000].join("/")));
    }

    proptest! {
        /// A directory that is left out contains nothing that matches.
        #[test]
        fn left_out_directory_has_no_match(
            patterns in prop::collection::vec("!?(\\*\\*|[ab*?]{1,2})(/(\\*\\*|[ab*?]{1,2})){0,3}", 1..4),
            dir in "[ab]{1,2}(/[ab]{1,2}){0,2}",
            below in "[ab]{1,2}(/[ab]{1,2}){0,2}",
        ) {
            if let Ok(globs) = Globs::parse(&patterns) {
                let is_match = globs.matches(&format!("{dir}/{below}"));
                prop_assert!(!is_match || globs.may_match_in(&dir));
            }
        }

        #[test]
        fn any_pattern_and_path_are_handled(pattern in ".{0,40}", path in ".{0,40}") {
            if let Ok(globs) = Globs::parse(&[pattern]) {
                let _ = (globs.matches(&path), globs.may_match_in(&path));
            }
        }
    }
}
