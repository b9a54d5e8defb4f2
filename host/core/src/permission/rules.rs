//! Decision of a request for permission by the rules that people have made.
//!
//! A rule that allows must name the agent, its program, the repository and the principal of the
//! request, and each command or path of the request needs such a rule. A rule that denies matches
//! more widely, and one match is enough. A request that the hub cannot read exactly is answered by
//! no rule, so people are asked even if a part of it would be denied.

mod check;
mod describe;
mod matching;
mod propose;
mod subject;
mod time;

use a2a_hub_protocol::permission::{Action, ActionPattern, PermissionRule, RuleEffect};
pub use check::check;
pub use describe::describe;
pub use matching::has_expired;
use matching::{allows, denies, denies_in_scope};
pub use propose::{patterns, warning};
use subject::parts;
pub use subject::{RequestScope, RuleSubject};

/// Answer of rules to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RuleVerdict<'r> {
    /// Each command or path is allowed by one of these rules.
    Allowed(Vec<&'r PermissionRule>),
    /// One command or path is denied by this rule.
    Denied(&'r PermissionRule),
}

/// Rule that may deny a request which the hub cannot read: one with effect `never` for commands, in
/// the scope of the request, if the request is for a command.
pub fn obscured<'r>(
    rules: &'r [PermissionRule],
    subject: &RuleSubject<'_>,
) -> Option<&'r PermissionRule> {
    let is_command = matches!(subject.request.action, Action::Other { runs: true, .. });
    let is_for_commands = |rule: &&PermissionRule| {
        rule.effect == RuleEffect::Never && matches!(rule.pattern, ActionPattern::Run { .. })
    };
    let mut candidates = rules.iter().filter(is_for_commands);
    candidates.find(|rule| is_command && denies_in_scope(rule, subject))
}

/// Answer of the rules to a request, or `None` if people must be asked.
pub fn decide<'r>(
    rules: &'r [PermissionRule],
    subject: &RuleSubject<'_>,
) -> Option<RuleVerdict<'r>> {
    let parts = parts(&subject.request.action);
    let denial = |effect| {
        let mut candidates = rules.iter().filter(move |rule| rule.effect == effect);
        candidates.find(|rule| parts.iter().any(|part| denies(rule, *part, subject)))
    };
    if let Some(rule) = denial(RuleEffect::Never).or_else(|| denial(RuleEffect::Deny)) {
        return Some(RuleVerdict::Denied(rule));
    }
    let mut allowing: Vec<&PermissionRule> = Vec::new();
    for part in &parts {
        let rule = rules.iter().find(|rule| allows(rule, *part, subject))?;
        if !allowing.contains(&rule) {
            allowing.push(rule);
        }
    }
    (!allowing.is_empty()).then_some(RuleVerdict::Allowed(allowing))
}
