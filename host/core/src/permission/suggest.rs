//! Rules that would have answered earlier requests as people did.

use super::rules::{RequestScope, RuleSubject, RuleVerdict, check, decide, patterns};
use a2a_hub_protocol::permission::{PermissionRequest, PermissionRule};

/// Fewest allowed requests that a suggested rule answers.
const MIN_ANSWERS: usize = 3;

/// Most suggested rules.
const MAX_SUGGESTED: usize = 20;

/// Request that a person has answered.
#[derive(Clone, Debug)]
pub struct PastRequest {
    /// Request.
    pub request: PermissionRequest,
    /// Facts of its task.
    pub scope: RequestScope,
    /// True if the person allowed it.
    pub allowed: bool,
}

/// Suggested rules, tested on the same requests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Suggestions {
    /// Rules, each with the number of allowed requests that it would have answered; the most useful
    /// first. They have no id.
    pub rules: Vec<(PermissionRule, usize)>,
    /// Number of allowed requests that all of them together would have answered.
    pub answered: usize,
}

impl PastRequest {
    fn subject<'a>(
        &'a self,
        is_sensitive: &'a dyn Fn(&str) -> bool,
        now: &'a str,
    ) -> RuleSubject<'a> {
        self.scope.subject(&self.request, is_sensitive, now)
    }

    /// Rules that allow exactly this request, without an id; empty if none can.
    fn exact_rules(&self, is_sensitive: &dyn Fn(&str) -> bool, now: &str) -> Vec<PermissionRule> {
        let patterns = patterns(&self.subject(is_sensitive, now)).unwrap_or_default();
        let rules = patterns.into_iter().filter_map(|pattern| {
            let rule = self.scope.rule(&self.request, pattern, now);
            let is_possible = |trusts_workspace| {
                // The texts that a check needs are given when the rule is made.
                let named = PermissionRule {
                    id: "suggested".to_owned(),
                    created_by: "suggested".to_owned(),
                    trusts_workspace,
                    ..rule.clone()
                };
                check(&named, self.scope.confined, is_sensitive).is_ok()
            };
            let trusts_workspace = [false, true].into_iter().find(|trusts| is_possible(*trusts))?;
            Some(PermissionRule { trusts_workspace, ..rule })
        });
        rules.collect()
    }
}

/// Exact rules for requests that people have allowed several times, and that `rules` do not answer.
/// None of them would have allowed a request that a person denied.
pub fn suggest(
    past: &[PastRequest],
    rules: &[PermissionRule],
    is_sensitive: &dyn Fn(&str) -> bool,
    now: &str,
) -> Suggestions {
    // Rules that allow a request together, if they do.
    let allowing = |past: &PastRequest, rules: &[PermissionRule]| match decide(
        rules,
        &past.subject(is_sensitive, now),
    ) {
        Some(RuleVerdict::Allowed(rules)) => Some(rules.into_iter().cloned().collect()),
        Some(RuleVerdict::Denied(_)) | None => None::<Vec<PermissionRule>>,
    };
    let mut counted: Vec<(PermissionRule, usize)> = Vec::new();
    let open = past
        .iter()
        .filter(|past| past.allowed && decide(rules, &past.subject(is_sensitive, now)).is_none());
    for past in open {
        for rule in past.exact_rules(is_sensitive, now) {
            match counted.iter_mut().find(|(known, _)| *known == rule) {
                Some((_, count)) => *count += 1,
                None => counted.push((rule, 1)),
            }
        }
    }
    counted.retain(|(_, count)| *count >= MIN_ANSWERS);
    counted.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    counted.truncate(MAX_SUGGESTED);
    loop {
        let suggested: Vec<_> = counted.iter().map(|(rule, _)| rule.clone()).collect();
        let wrong = past.iter().filter(|past| !past.allowed);
        let wrong: Vec<_> = wrong.filter_map(|past| allowing(past, &suggested)).flatten().collect();
        if wrong.is_empty() {
            let allowed = past.iter().filter(|past| past.allowed);
            let answered = allowed.filter(|past| allowing(past, &suggested).is_some()).count();
            return Suggestions { rules: counted, answered };
        }
        counted.retain(|(rule, _)| !wrong.contains(rule));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use a2a_hub_protocol::{
        id::AgentId,
        permission::{Action, ActionPattern},
    };

    fn past(words: &str, allowed: bool) -> PastRequest {
        let command = |words: &str| words.split(' ').map(str::to_owned).collect();
        let commands = words.split(" && ").map(command).collect();
        let action = Action::Run { commands, directory: "/w".to_owned() };
        PastRequest {
            request: PermissionRequest {
                vendor: "claude".to_owned(),
                outside_sandbox: false,
                action,
            },
            scope: RequestScope {
                agent: AgentId::parse("coder").unwrap(),
                through: Vec::new(),
                root: "/w".to_owned(),
                repository: "/src/shop".to_owned(),
                principal: Some("operator".to_owned()),
                confined: false,
            },
            allowed,
        }
    }

    fn words(suggestions: &Suggestions) -> Vec<(String, bool, usize)> {
        let rules = suggestions.rules.iter().map(|(rule, count)| {
            let ActionPattern::Run { words, .. } = &rule.pattern else { panic!("{rule:?}") };
            (words.join(" "), rule.trusts_workspace, *count)
        });
        rules.collect()
    }

    /// A history of 200 answers: what was allowed often is suggested, what was denied once is not.
    #[test]
    fn suggested_rules_answer_as_people_did() {
        let mut history = Vec::new();
        history.extend((0..60).map(|_| past("cargo test --lib", true)));
        history.extend((0..40).map(|_| past("mkdir out", true)));
        history.extend((0..30).map(|_| past("cargo fmt && mkdir out", true)));
        history.extend((0..40).map(|_| past("npm install", true)));
        history.push(past("npm install", false));
        history.extend((0..27).map(|number| past(&format!("touch file{number}"), true)));
        history.extend((0..2).map(|_| past("cp a b", true)));
        assert_eq!(history.len(), 200);
        let now = "2026-01-31T12:00:00Z";
        let suggested = suggest(&history, &[], &|_| false, now);
        let wanted = [
            ("mkdir out".to_owned(), false, 70),
            ("cargo test --lib".to_owned(), true, 60),
            ("cargo fmt".to_owned(), true, 30),
        ];
        assert_eq!(words(&suggested), wanted);
        assert_eq!(suggested.answered, 130, "and none that was denied");

        let mut known = suggested.rules[0].0.clone();
        known.id = "known".to_owned();
        let rest = suggest(&history, &[known], &|_| false, now);
        assert_eq!(rest.rules.len(), 3, "the rule for `mkdir out` is part of a chain");
        let none = suggest(&history[..2], &[], &|_| false, now);
        assert_eq!(none, Suggestions::default());
    }
}
