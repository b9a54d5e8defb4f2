//! The forms that a program's arguments may have, compared position by position; no shell is involved.
//!
//! | token | fits |
//! | --- | --- |
//! | `log` | itself |
//! | `{}` | one argument, not empty, not beginning with `-` unless a literal `--` or `--end-of-options` came before |
//! | `--since={}` | the same text up to `{}`, then any text that is not empty |
//! | `[TOKEN]` or `[TOKEN TOKEN]` | all of these, or nothing |
//! | `{}*`, last | any number of arguments as by `{}` |
//!
//! Whoever made a component wrote its forms and chooses the arguments too, so the work of comparing them is bounded before it
//! is done: a form is a nondeterministic finite automaton, a list of steps of which none leads back, and each argument is shown
//! once at most to each step. So the work grows with their product, which is limited to [`MAX_COMPARISONS`].

use serde::{Deserialize, Serialize};
use std::mem;

/// Tokens in all forms of one program, each pair of brackets counted as one more: several times what the longest
/// manifest has.
pub const MAX_TOKENS: usize = 1_024;

/// How often a token is compared with an argument, at most, until it is known whether a program may be started so: some
/// milliseconds of work.
pub const MAX_COMPARISONS: usize = 1 << 20;

/// The forms of one program's arguments.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Vec<Vec<String>>", into = "Vec<Vec<String>>")]
pub struct Forms {
    /// As they were written.
    written: Vec<Vec<String>>,
    forms: Vec<Vec<Step>>,
}

/// Forms that nobody would write by hand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "a program's forms of arguments have more than {MAX_TOKENS} tokens, with brackets; name only what the agent uses"
)]
pub struct TooManyTokens;

/// What a form has at one place.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    /// One argument that fits this token.
    One(String),
    /// Any number of free arguments, if it is the last step; else nothing at all.
    Any,
    /// What follows may be left out, up to the step `end`.
    Optional { end: usize },
}

/// Whether a form may be at a step: while what comes can be an option, and once it can be none any more.
type Reached = [bool; 2];

impl Forms {
    /// How often a token is compared with one of so many arguments, at most.
    pub fn comparisons(&self, args: usize) -> usize {
        let tokens: usize = self.forms.iter().map(Vec::len).sum();
        tokens.saturating_mul(args)
    }

    /// Whether `args` are of one of these forms.
    pub fn allow(&self, args: &[String]) -> bool {
        self.forms.iter().any(|form| allows(form, args))
    }
}

impl Forms {
    /// The forms as they were written, each a list of tokens.
    pub fn written(&self) -> &[Vec<String>] {
        &self.written
    }
}

impl TryFrom<Vec<Vec<String>>> for Forms {
    type Error = TooManyTokens;

    fn try_from(written: Vec<Vec<String>>) -> Result<Self, TooManyTokens> {
        let mut room = MAX_TOKENS;
        let forms = written.iter().map(|form| steps(form, &mut room)).collect::<Result<_, _>>()?;
        Ok(Self { written, forms })
    }
}

impl From<Forms> for Vec<Vec<String>> {
    fn from(forms: Forms) -> Self {
        forms.written
    }
}

/// The steps of a form, taken from the `room` that there is.
fn steps(form: &[String], room: &mut usize) -> Result<Vec<Step>, TooManyTokens> {
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
                steps[optional] = Step::Optional { end: steps.len() };
                continue;
            }
        };
        *room = room.checked_sub(1).ok_or(TooManyTokens)?;
        let inside = token.strip_prefix('[').and_then(|token| token.strip_suffix(']'));
        match inside {
            Some(inside) => {
                rest.push(Next::EndOf(steps.len()));
                rest.extend(inside.split(' ').rev().map(Next::Token));
                // Where it ends is known once its tokens have had their steps.
                steps.push(Step::Optional { end: usize::MAX });
            }
            None if token == "{}*" => steps.push(Step::Any),
            None => steps.push(Step::One(token.to_owned())),
        }
    }
    Ok(steps)
}

fn allows(form: &[Step], args: &[String]) -> bool {
    let end = form.len();
    let nowhere = || vec![Reached::default(); end + 1];
    let (mut places, mut after) = (nowhere(), nowhere());
    places[0][0] = true;
    // None stands for the end of the arguments.
    for arg in args.iter().map(Some).chain([None]) {
        // What is reached from a step without an argument stands behind it, and is looked at in the same pass.
        for (at, step) in form.iter().enumerate() {
            for free in [false, true] {
                let plane = usize::from(free);
                if !places[at][plane] {
                    continue;
                }
                let fits = |token| arg.is_some_and(|arg| fits(token, arg, free));
                match step {
                    Step::Optional { end } => {
                        places[at + 1][plane] = true;
                        places[*end][plane] = true;
                    }
                    Step::One(token) if fits(token) => {
                        after[at + 1][usize::from(free || ends_options(token))] = true;
                    }
                    Step::Any => {
                        places[at + 1][plane] |= at + 1 == end;
                        after[at][plane] |= fits("{}");
                    }
                    Step::One(_) => {}
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

/// Whether one argument fits a token; `free` if it can be no option.
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
    fn forms_are_matched_position_by_position() {
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
    fn what_is_written_is_written_again() {
        let written = vec![words("log|[-n {}]"), Vec::new()];
        assert_eq!(Vec::from(Forms::try_from(written.clone()).unwrap()), written);
    }

    #[test]
    fn a_hostile_form_is_refused_or_soon_compared() {
        let deep = "[".repeat(30_000) + "a" + &"]".repeat(30_000);
        let long = vec!["a".to_owned(); MAX_TOKENS + 1];
        for form in [vec![deep], long] {
            assert_eq!(Forms::try_from(vec![form]), Err(TooManyTokens));
        }
        let deep = "[".repeat(MAX_TOKENS - 1) + "a" + &"]".repeat(MAX_TOKENS - 1);
        assert!(allowed(&[deep], &words("a")));
        // Each of the many ways to leave half of them out fails at the last argument only.
        let optional = vec!["[a]".to_owned(); MAX_TOKENS / 2];
        let mut args = vec!["a".to_owned(); MAX_TOKENS / 4];
        assert!(allowed(&optional, &args));
        args.push("b".to_owned());
        assert!(!allowed(&optional, &args));
    }

    /// As many comparisons as are made for anybody: exponential for who tries one way after the other, and minutes for who
    /// keeps the places in a sorted set.
    #[test]
    fn the_worst_case_is_the_product_of_tokens_and_arguments() {
        let optional = vec!["[{}]".to_owned(); MAX_TOKENS / 2];
        let forms = Forms::try_from(vec![optional]).unwrap();
        let mut args = vec!["a".to_owned(); MAX_COMPARISONS / MAX_TOKENS];
        assert_eq!(forms.comparisons(args.len()), MAX_COMPARISONS);
        assert!(!forms.allow(&args), "there are more arguments than places");
        args.truncate(MAX_TOKENS / 2);
        assert!(forms.allow(&args));
    }

    /// The definition, which takes as long as there are ways to leave something out.
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
        fn it_is_as_defined(
            form in vec("(a|-b|--|\\{\\}|x=\\{\\}|\\{\\}\\*){1}|\\[{1,2}(a|-b|--|\\{\\}|\\{\\}\\*)( (\\[?a\\]?|--|\\{\\}\\*?)){0,2}\\]{1,2}", 0..6),
            args in vec("a|-b|--|x=|x=1|", 0..6),
        ) {
            let tokens: Vec<&str> = form.iter().map(String::as_str).collect();
            prop_assert_eq!(allowed(&form, &args), by_definition(&tokens, &args, false), "{:?} {:?}", form, args);
        }
    }
}
