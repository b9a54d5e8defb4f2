//! Comparison of a rule with one command or path of a request.

use super::{
    subject::{RequestPart, RuleSubject},
    time,
};
use crate::permission::{path, programs, shell};
use a2a_hub_protocol::permission::{ActionPattern, PermissionRule, RuleEffect};
use std::cmp::Ordering;

/// Pattern word that stands for any one word.
pub(super) const ANY_WORD: &str = "*";

/// Last pattern word that stands for any number of words, and pattern of every path.
pub(super) const ANY_REST: &str = "**";

/// True if the rule allows the part. Each fact that the rule leaves open matches nothing.
pub(super) fn allows(
    rule: &PermissionRule,
    part: RequestPart<'_>,
    subject: &RuleSubject<'_>,
) -> bool {
    rule.effect == RuleEffect::Allow
        && rule.agent.as_ref() == Some(subject.agent)
        && rule.through == subject.through
        && rule.vendor.as_deref() == Some(subject.request.vendor.as_str())
        && (rule.outside_sandbox || !subject.request.outside_sandbox)
        && rule.repository.as_deref() == Some(subject.repository)
        && subject.principal.is_some()
        && rule.principal.as_deref() == subject.principal
        && is_before_expiry(rule, subject.now)
        && allows_action(rule, part, subject)
}

/// True if the rule denies the part. Facts that the rule leaves open match everything.
pub(super) fn denies(
    rule: &PermissionRule,
    part: RequestPart<'_>,
    subject: &RuleSubject<'_>,
) -> bool {
    denies_in_scope(rule, subject) && denies_action(&rule.pattern, part, subject)
}

/// True if the rule denies anything in the scope of the request.
pub(super) fn denies_in_scope(rule: &PermissionRule, subject: &RuleSubject<'_>) -> bool {
    rule.effect != RuleEffect::Allow
        && rule.agent.as_ref().is_none_or(|agent| agent == subject.agent)
        && (rule.through.is_empty() || rule.through == subject.through)
        && rule.vendor.as_ref().is_none_or(|vendor| *vendor == subject.request.vendor)
        && rule.repository.as_ref().is_none_or(|repository| repository == subject.repository)
        && rule.principal.as_deref().is_none_or(|principal| Some(principal) == subject.principal)
        && !has_expired(rule, subject.now)
}

fn is_before_expiry(rule: &PermissionRule, now: &str) -> bool {
    let order = |expiry: &String| time::compare(now, expiry);
    rule.expires_at.as_ref().is_none_or(|expiry| order(expiry) == Some(Ordering::Less))
}

/// True if the rule has certainly expired: a time that cannot be read does not end a denial.
pub fn has_expired(rule: &PermissionRule, now: &str) -> bool {
    let order = rule.expires_at.as_ref().and_then(|expiry| time::compare(now, expiry));
    order.is_some_and(Ordering::is_ge)
}

fn allows_action(rule: &PermissionRule, part: RequestPart<'_>, subject: &RuleSubject<'_>) -> bool {
    match (&rule.pattern, part) {
        (
            ActionPattern::Run { words: pattern, directory: inner },
            RequestPart::Run { words, directory },
        ) => {
            let directory = path::relative(directory, subject.root);
            directory.is_some_and(|directory| path::matches(inner, directory))
                && allows_run(rule, pattern, words, subject)
        }
        (ActionPattern::Edit { path: pattern }, RequestPart::Edit { path }) => {
            let path = path::relative(path, subject.root).filter(|path| !path.is_empty());
            path.is_some_and(|path| !is_obeyed(path, subject) && path::matches(pattern, path))
        }
        (ActionPattern::Read { path: pattern }, RequestPart::Read { path }) => {
            allows_read(pattern, path, subject)
        }
        (
            ActionPattern::Run { .. } | ActionPattern::Edit { .. } | ActionPattern::Read { .. },
            RequestPart::Run { .. } | RequestPart::Edit { .. } | RequestPart::Read { .. },
        ) => false,
    }
}

fn allows_run(
    rule: &PermissionRule,
    pattern: &[String],
    words: &[String],
    subject: &RuleSubject<'_>,
) -> bool {
    let (Some(program), Some(named)) = (words.first(), pattern.first()) else { return false };
    let has_free_words = pattern.iter().any(|word| is_free(word));
    named == program
        && shell::check_command(words).is_ok()
        && programs::launches(program).is_none()
        && !(has_free_words && programs::takes_exact_arguments(program).is_some())
        && is_code_trusted(rule, program, subject)
        && words_match(pattern, words)
}

/// True if the program may run code that the agent may have changed: its maker trusts it, or the
/// sandbox confines it.
fn is_code_trusted(rule: &PermissionRule, program: &str, subject: &RuleSubject<'_>) -> bool {
    let runs_workspace_code =
        programs::runs_workspace_code(program).is_some() || programs::is_private_path(program);
    let is_confined = subject.confined && !programs::asks_service(program);
    !runs_workspace_code || rule.trusts_workspace || is_confined
}

/// True for files that programs obey. No rule allows to change them, and no pattern to read them.
pub(super) fn is_obeyed(relative: &str, subject: &RuleSubject<'_>) -> bool {
    path::is_in_git(relative) || (subject.is_sensitive)(relative)
}

fn allows_read(pattern: &str, path: &str, subject: &RuleSubject<'_>) -> bool {
    match path::relative(path, subject.root) {
        Some(path) if is_obeyed(path, subject) => !pattern.contains('*') && pattern == path,
        Some(path) => path::matches(pattern, path),
        None => !pattern.contains('*') && pattern == path && path::canonical(path) == Some(path),
    }
}

fn denies_action(
    pattern: &ActionPattern,
    part: RequestPart<'_>,
    subject: &RuleSubject<'_>,
) -> bool {
    match (pattern, part) {
        (
            ActionPattern::Run { words: pattern, directory: inner },
            RequestPart::Run { words, directory },
        ) => denies_path(inner, directory, subject) && denies_run(pattern, words),
        (ActionPattern::Edit { path: pattern }, RequestPart::Edit { path })
        | (ActionPattern::Read { path: pattern }, RequestPart::Read { path }) => {
            denies_path(pattern, path, subject)
        }
        (
            ActionPattern::Run { .. } | ActionPattern::Edit { .. } | ActionPattern::Read { .. },
            RequestPart::Run { .. } | RequestPart::Edit { .. } | RequestPart::Read { .. },
        ) => false,
    }
}

/// True if a denied path matches, without regard to case, since some file systems ignore it. `**`
/// also stands for paths outside of the repository.
fn denies_path(pattern: &str, path: &str, subject: &RuleSubject<'_>) -> bool {
    let matches = |path: &str| path::matches(&pattern.to_lowercase(), &path.to_lowercase());
    pattern == ANY_REST
        || path::relative(path, subject.root).is_some_and(matches)
        || (pattern.starts_with('/') && matches(path))
}

/// True if the words match, or those of a program that they start, by the path or the name of it.
fn denies_run(pattern: &[String], words: &[String]) -> bool {
    let is_launcher = words.first().is_some_and(|program| programs::launches(program).is_some());
    let starts = if is_launcher { words.len() } else { 1 };
    (0..starts).any(|start| {
        let (Some((named, pattern)), Some((program, words))) =
            (pattern.split_first(), words.get(start..).and_then(|words| words.split_first()))
        else {
            return false;
        };
        is_program(named, program) && words_match(pattern, words)
    })
}

/// True if `program` may be the one that a denial names.
fn is_program(named: &str, program: &str) -> bool {
    let is_same = |program: &str| named.eq_ignore_ascii_case(program);
    let named_base = programs::base_name(named);
    is_same(program)
        || is_same(programs::base_name(program))
        || (!program.contains('/') && named_base.eq_ignore_ascii_case(program))
}

/// True if a pattern's words match all words.
fn words_match(pattern: &[String], words: &[String]) -> bool {
    let matches = |(pattern, word): (&String, &String)| pattern == ANY_WORD || pattern == word;
    match pattern.split_last() {
        Some((last, before)) if last == ANY_REST => {
            words.len() >= before.len() && before.iter().zip(words).all(matches)
        }
        _ => pattern.len() == words.len() && pattern.iter().zip(words).all(matches),
    }
}

/// True for a pattern word that stands for others.
pub(super) fn is_free(word: &str) -> bool {
    word == ANY_WORD || word == ANY_REST
}
