//! Patterns for a program's arguments, matched position by position; no shell is involved.
//!
//! | token | matches |
//! | --- | --- |
//! | `log` | itself |
//! | `{}` | a non-empty argument, with `-` first only after a literal `--` or `--end-of-options` |
//! | `--since={}` | the same text up to `{}`, then any text that is not empty |
//! | `[TOKEN]` or `[TOKEN TOKEN]` | all of these, or nothing |
//! | `{}*`, last | any number of arguments as by `{}` |
//!
//! The author of a component writes its patterns and also chooses the arguments, so the cost of
//! matching is bounded in advance. A pattern is a nondeterministic finite automaton: a list of
//! steps without backward transitions, in which each argument is compared at most once with each
//! step. So the cost grows with the product of both lengths, which is limited to
//! [`MAX_COMPARISONS`].

use serde::{Deserialize, Serialize};
use std::mem;

/// Maximum number of tokens in all patterns of one program, each pair of brackets counted as one
/// more: several times as many as in the longest manifest.
pub const MAX_TOKENS: usize = 1_024;

/// Maximum number of comparisons of a token with an argument for one start of a program: some
/// milliseconds of work.
pub const MAX_COMPARISONS: usize = 1 << 20;

/// Allowed argument patterns of one program.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Vec<Vec<String>>", into = "Vec<Vec<String>>")]
pub struct Forms {
    /// Original patterns.
    written: Vec<Vec<String>>,
    forms: Vec<Vec<PatternStep>>,
}

/// Error for patterns that are longer than anyone would write by hand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "a program's forms of arguments have more than {MAX_TOKENS} tokens, with brackets; name only what the agent uses"
)]
pub struct TooManyTokens;

/// Step of a pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
enum PatternStep {
    /// One argument that matches this token.
    One(String),
    /// Any number of free arguments if it is the last step; otherwise it matches nothing.
    Any,
    /// The following steps are optional, up to the step `end`.
    Optional { end: usize },
}

/// Reachability of a step: first while an argument can be an option, second after the end of
/// options.
type Reached = [bool; 2];

impl Forms {
    /// Upper bound of comparisons for this number of arguments.
    pub fn comparisons(&self, args: usize) -> usize {
        let tokens: usize = self.forms.iter().map(Vec::len).sum();
        tokens.saturating_mul(args)
    }

    /// True if `args` match one of the patterns.
    pub fn allow(&self, args: &[String]) -> bool {
        self.forms.iter().any(|form| allows(form, args))
    }
}

impl Forms {
    /// Original patterns, each a list of tokens.
    pub fn written(&self) -> &[Vec<String>] {
        &self.written
    }
}

impl TryFrom<Vec<Vec<String>>> for Forms {
    type Error = TooManyTokens;

    fn try_from(written: Vec<Vec<String>>) -> Result<Self, TooManyTokens> {
        let mut remaining = MAX_TOKENS;
        let forms =
            written.iter().map(|form| steps(form, &mut remaining)).collect::<Result<_, _>>()?;
        Ok(Self { written, forms })
    }
}

impl From<Forms> for Vec<Vec<String>> {
    fn from(forms: Forms) -> Self {
        forms.written
    }
}

/// Compiles a pattern to steps, and deducts them from `remaining`.
fn steps(form: &[String], remaining: &mut usize) -> Result<Vec<PatternStep>, TooManyTokens> {
    enum Next<'t> {
        Token(&'t str),
        EndOf(usize),
    }
    let mut steps = Vec::new();
    let mut rest: Vec<Next<'_>> = form.iter().rev().map(|token| Next::Token(token)).collect();
    while let Some(next) = rest.pop() {
        let token = match next {
            Next::Token(token) => token,
            Next::EndOf(optional) => {
                steps[optional] = PatternStep::Optional { end: steps.len() };
                continue;
            }
        };
        *remaining = remaining.checked_sub(1).ok_or(TooManyTokens)?;
        let inside = token.strip_prefix('[').and_then(|token| token.strip_suffix(']'));
        match inside {
            Some(inside) => {
                rest.push(Next::EndOf(steps.len()));
                rest.extend(inside.split(' ').rev().map(Next::Token));
                // The end is set once the inner tokens are compiled.
                steps.push(PatternStep::Optional { end: usize::MAX });
            }
            None if token == "{}*" => steps.push(PatternStep::Any),
            None => steps.push(PatternStep::One(token.to_owned())),
        }
    }
    Ok(steps)
}

fn allows(form: &[PatternStep], args: &[String]) -> bool {
    let end = form.len();
    let nowhere = || vec![Reached::default(); end + 1];
    let (mut places, mut after) = (nowhere(), nowhere());
    places[0][0] = true;
    // `None` marks the end of the arguments.
    for arg in args.iter().map(Some).chain([None]) {
        // A step that is reached without an argument comes later in the list, so the same pass
        // handles it.
        for (at, step) in form.iter().enumerate() {
            for free in [false, true] {
                let plane = usize::from(free);
                if !places[at][plane] {
                    continue;
                }
                let fits = |token| arg.is_some_and(|arg| fits(token, arg, free));
                match step {
                    PatternStep::Optional { end } => {
                        places[at + 1][plane] = true;
                        places[*end][plane] = true;
                    }
                    PatternStep::One(token) if fits(token) => {
                        after[at + 1][usize::from(free || ends_options(token))] = true;
                    }
                    PatternStep::Any => {
                        places[at + 1][plane] |= at + 1 == end;
                        after[at][plane] |= fits("{}");
                    }
                    PatternStep::One(_) => {}
                }
            }
        }
        if arg.is_none() {
            return places[end].contains(&true);
        }
        places = mem::replace(&mut after, nowhere());
    }
    false
}

fn ends_options(token: &str) -> bool {
    token == "--" || token == "--end-of-options"
}

/// True if one argument matches a token; `free` if the argument cannot be an option.
fn fits(token: &str, arg: &str, free: bool) -> bool {
    match token.strip_suffix("{}") {
        Some("") => !arg.is_empty() && (free || !arg.starts_with('-')),
        Some(prefix) => arg.strip_prefix(prefix).is_some_and(|rest| !rest.is_empty()),
        None => token == arg,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::{collection::vec, prelude::*};

    fn words(text: &str) -> Vec<String> {
        text.split('|').filter(|word| !word.is_empty()).map(str::to_owned).collect()
    }

    fn allowed(form: &[String], args: &[String]) -> bool {
        Forms::try_from(vec![form.to_vec()]).unwrap().allow(args)
    }

    #[test]
    fn patterns_match_position_by_position() {
        let cases = [
            ("log", "log", true),
            ("log", "log|-p", false),
            ("log", "", false),
            ("show|{}", "show|abc", true),
            ("show|{}", "show|--output=/etc/passwd", false),
            ("show|{}", "show|", false),
            ("show|--|{}", "show|--|-odd-name", true),
            ("log|--since={}", "log|--since=1 week", true),
            ("log|--since={}", "log|--since=", false),
            ("log|[--since={}]|--", "log|--", true),
            ("log|[--since={}]|--", "log|--since=x|--", true),
            ("log|[-n {}]|--", "log|-n|5|--", true),
            ("log|[-n {}]|--", "log|-n|--", false),
            ("log|[-n {}]|--", "log|-n|-p|--", false),
            ("log|--|{}*", "log|--", true),
            ("log|--|{}*", "log|--|a|-b|c", true),
            ("log|{}*", "log|a|-b", false),
            ("{}*|log", "a|log", false),
            ("[-a]|[-a]|x", "-a|x", true),
            ("[-- [{}]]|x", "--|-a|x", true),
            ("[-- [{}]]|x", "-a|x", false),
            ("", "", true),
            ("", "x", false),
        ];
        for (form, args, expected) in cases {
            assert_eq!(allowed(&words(form), &words(args)), expected, "{form} / {args}");
        }
    }

    #[test]
    fn patterns_round_trip() {
        let written = vec![words("log|[-n {}]"), Vec::new()];
        assert_eq!(Vec::from(Forms::try_from(written.clone()).unwrap()), written);
    }

    #[test]
    fn hostile_pattern_is_refused_or_fast() {
        let deep = "[".repeat(30_000) + "a" + &"]".repeat(30_000);
        let long = vec!["a".to_owned(); MAX_TOKENS + 1];
        for form in [vec![deep], long] {
            assert_eq!(Forms::try_from(vec![form]), Err(TooManyTokens));
        }
        let deep = "[".repeat(MAX_TOKENS - 1) + "a" + &"]".repeat(MAX_TOKENS - 1);
        assert!(allowed(&[deep], &words("a")));
        // Each of the many ways to skip half of the steps fails only at the last argument.
        let optional = vec!["[a]".to_owned(); MAX_TOKENS / 2];
        let mut args = vec!["a".to_owned(); MAX_TOKENS / 4];
        assert!(allowed(&optional, &args));
        args.push("b".to_owned());
        assert!(!allowed(&optional, &args));
    }

    /// Maximum number of comparisons: exponential for a backtracking matcher, and minutes of work
    /// for one that keeps the positions in a sorted set.
    #[test]
    fn worst_case_is_tokens_times_arguments() {
        let optional = vec!["[{}]".to_owned(); MAX_TOKENS / 2];
        let forms = Forms::try_from(vec![optional]).unwrap();
        let mut args = vec!["a".to_owned(); MAX_COMPARISONS / MAX_TOKENS];
        assert_eq!(forms.comparisons(args.len()), MAX_COMPARISONS);
        assert!(!forms.allow(&args), "there are more arguments than places");
        args.truncate(MAX_TOKENS / 2);
        assert!(forms.allow(&args));
    }

    /// Reference implementation by definition; its cost is the number of ways to skip optional
    /// tokens.
    fn by_definition(form: &[&str], args: &[String], free: bool) -> bool {
        let Some((&token, rest)) = form.split_first() else { return args.is_empty() };
        if token == "{}*" {
            return rest.is_empty() && args.iter().all(|arg| fits("{}", arg, free));
        }
        if let Some(inside) = token.strip_prefix('[').and_then(|token| token.strip_suffix(']')) {
            let with: Vec<&str> = inside.split(' ').chain(rest.iter().copied()).collect();
            return by_definition(&with, args, free) || by_definition(rest, args, free);
        }
        let Some((arg, more)) = args.split_first() else { return false };
        fits(token, arg, free) && by_definition(rest, more, free || ends_options(token))
    }

    proptest! {
        #[test]
        fn matcher_agrees_with_reference_implementation(
            form in vec("(a|-b|--|\\{\\}|x=\\{\\}|\\{\\}\\*){1}|\\[{1,2}(a|-b|--|\\{\\}|\\{\\}\\*)( (\\[?a\\]?|--|\\{\\}\\*?)){0,2}\\]{1,2}", 0..6),
            args in vec("a|-b|--|x=|x=1|", 0..6),
        ) {
            let tokens: Vec<&str> = form.iter().map(String::as_str).collect();
            prop_assert_eq!(allowed(&form, &args), by_definition(&tokens, &args, false), "{:?} {:?}", form, args);
        }
    }
}
