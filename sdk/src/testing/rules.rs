//! Rules of the operator for tests: each answers the requests for permission whose facts contain a
//! text.

/// Rules, the first of which that fits counts.
#[derive(Default)]
pub(super) struct ScriptedRules(Vec<ScriptedRule>);

struct ScriptedRule {
    /// Text of the facts, as JSON.
    part: String,
    /// Name of the rule, or the reason of a denial.
    answer: Result<String, String>,
}

impl ScriptedRules {
    pub(super) fn allow(&mut self, part: &str) {
        let answer = Ok(format!("rule `{part}`"));
        self.0.push(ScriptedRule { part: part.to_owned(), answer });
    }

    pub(super) fn deny(&mut self, part: &str, reason: &str) {
        let answer = Err(reason.to_owned());
        self.0.push(ScriptedRule { part: part.to_owned(), answer });
    }

    /// Answer to a request with these facts, if a rule fits.
    pub(super) fn answer(&self, facts: &str) -> Option<Result<String, String>> {
        let rule = self.0.iter().find(|rule| facts.contains(&rule.part))?;
        Some(rule.answer.clone())
    }
}
