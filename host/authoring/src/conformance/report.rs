//! Report about a component, for people and for programs such as an index of components.

use a2a_hub_core::{grant::Ask, text::plain_text::line};
use a2a_hub_sandbox::digest_of;
use serde::Serialize;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// Schema of the report; an incompatible schema needs a new name.
const SCHEMA: &str = "urn:a2a-hub:plugin-test:v1";

/// Result of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The component conforms.
    Passed,
    /// The component does not conform.
    Failed,
    /// The component showed nothing that the check could judge.
    NotApplicable,
}

/// Result of one check. Text from the component is sanitised to one plain line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Check {
    /// Stable name of the check across versions of the hub.
    pub id: &'static str,
    /// Requirement for every component.
    pub rule: &'static str,
    /// Result of the check.
    #[serde(rename = "result")]
    pub verdict: Verdict,
    /// Finding.
    pub found: String,
    /// Fix, if the check failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fix: Option<&'static str>,
}

/// Requirement of each check, by the check's name, in the order of a report.
pub(super) const RULES: &[(&str, &str)] = &[
    ("manifest.read", "its manifest can be followed"),
    ("component.loads", "it compiles within the hub's limits and fits the contract"),
    ("card.valid", "it says its card within two seconds, in plain text"),
    ("card.a2a", "its card has what A2A asks of one"),
    ("card.stable", "it says the same card each time"),
    ("card.manifest", "card and manifest name one version"),
    ("health.in-time", "it says how it is within a second, having been granted nothing"),
    ("message.plain", "a message brings its task to an end, or leaves it at work"),
    ("message.empty", "so does one without a word"),
    ("message.huge", "so does a text of 1 MB"),
    ("message.unicode", "so does text of any script, with control characters"),
    ("message.data", "so does JSON nested 60 levels deep"),
    ("message.file", "so does a file, or a URL of one"),
    (
        "message.context",
        "so does one of a conversation that it does not know, with 50 messages before it",
    ),
    ("cancel.in-time", "a task that is cancelled at work ends within a second"),
    ("cancel.cleans-up", "cleaning up after a cancelled task takes two seconds at most"),
    ("limits.output", "it ends by itself once it may tell no more"),
    ("capabilities.denied", "it goes on, or fails in words, when a capability is denied"),
    ("capabilities.granted", "so it does with memory and files, where it asks for those"),
    ("manifest.declares", "its manifest asks for all that it uses"),
    ("reload", "it is loaded again while a task is at work, and both versions work"),
    ("time.bounded", "all checks end in their time"),
];

fn check(id: &'static str, verdict: Verdict, found: impl Into<String>) -> Check {
    let rule = RULES.iter().find(|(name, _)| *name == id).map_or("", |(_, rule)| *rule);
    Check { id, rule, verdict, found: found.into(), fix: None }
}

pub(super) fn passed(id: &'static str, found: impl Into<String>) -> Check {
    check(id, Verdict::Passed, found)
}

pub(super) fn not_applicable(id: &'static str, found: impl Into<String>) -> Check {
    check(id, Verdict::NotApplicable, found)
}

pub(super) fn failed(id: &'static str, found: impl Into<String>, fix: &'static str) -> Check {
    Check { fix: Some(fix), ..check(id, Verdict::Failed, found) }
}

/// Sanitises text by or about a component to one plain line.
pub(super) fn sanitize(text: &str) -> String {
    line(text, 400)
}

/// Results of all checks of one component.
#[derive(Debug)]
pub struct Report {
    file: PathBuf,
    sha256: String,
    bytes: usize,
    id: Option<String>,
    version: Option<String>,
    checks: Vec<Check>,
}

impl Report {
    pub(super) fn new(file: &Path, bytes: &[u8]) -> Self {
        let (id, version, checks) = Default::default();
        let (file, sha256) = (file.to_owned(), digest_of(bytes));
        Self { file, sha256, bytes: bytes.len(), id, version, checks }
    }

    /// Records the component's id and version from its manifest.
    pub(super) fn manifest(&mut self, ask: &Ask) {
        self.id = ask.id.as_ref().map(ToString::to_string);
        self.version = ask.version.as_ref().map(ToString::to_string);
    }

    pub(super) fn manifest_line(&self) -> String {
        let id = self.id.as_deref().unwrap_or("it names no id");
        let version = self.version.as_deref().map(|version| format!(" {version}"));
        format!("{id}{}", version.unwrap_or_default())
    }

    /// Returns the checks in the order of their execution.
    pub fn checks(&self) -> &[Check] {
        &self.checks
    }

    pub(super) fn add(&mut self, check: Check) {
        self.checks.push(check);
    }

    /// Adds the checks that did not run as not applicable, with this reason.
    pub(super) fn cut_off(mut self, why: &str) -> Self {
        for (id, _) in RULES.iter().filter(|(id, _)| *id != "time.bounded") {
            if self.checks.iter().all(|check| check.id != *id) {
                self.checks.push(not_applicable(id, format!("not tried: {why}")));
            }
        }
        self
    }

    /// True if no check failed.
    pub fn is_passed(&self) -> bool {
        self.count(Verdict::Failed) == 0
    }

    fn count(&self, verdict: Verdict) -> usize {
        self.checks.iter().filter(|check| check.verdict == verdict).count()
    }

    /// Returns the report as JSON, for programs such as an index of components.
    pub fn to_json(&self) -> Value {
        let Self { file, sha256, bytes, id, version, checks } = self;
        let file = file.display().to_string();
        json!({
            "schema": SCHEMA, "hub": env!("CARGO_PKG_VERSION"), "contract": "a2a:hub@0.1.0",
            "component": { "file": file, "sha256": sha256, "bytes": bytes, "id": id, "version": version },
            "passed": self.is_passed(),
            "counts": { "passed": self.count(Verdict::Passed), "failed": self.count(Verdict::Failed),
                "notApplicable": self.count(Verdict::NotApplicable) },
            "checks": checks,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> Report {
        let mut report = Report::new(Path::new("x.wasm"), b"x");
        report.add(passed("manifest.read", "x 1.0"));
        report.add(failed("component.loads", "it is [2J not", "build it again"));
        report
    }

    #[test]
    fn aborted_report_lists_all_checks() {
        let report = report().cut_off("it does not load");
        assert_eq!(report.checks.len(), RULES.len() - 1);
        assert!(!report.is_passed());
        let json = report.to_json();
        assert_eq!(
            json["counts"],
            json!({ "passed": 1, "failed": 1, "notApplicable": RULES.len() - 3 })
        );
        assert_eq!(json["checks"][1]["result"], "failed");
        assert_eq!(json["checks"][1]["fix"], "build it again");
        assert_eq!(json["checks"][2]["result"], "not-applicable");
        assert_eq!(json["checks"][2]["found"], "not tried: it does not load");
    }
}
