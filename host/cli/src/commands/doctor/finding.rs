//! Result of one of `doctor`'s checks, with a fix.

use serde::Serialize;

/// Severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum CheckVerdict {
    Ok,
    Warn,
    Fail,
}

impl CheckVerdict {
    /// Word for the verdict in the output.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warn => "warn",
            Self::Fail => "fail",
        }
    }
}

/// Result of one check.
#[derive(Debug, Serialize)]
pub(crate) struct CheckResult {
    pub(crate) verdict: CheckVerdict,
    pub(crate) about: String,
    pub(crate) found: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) fix: Option<String>,
}

pub(crate) fn ok(about: &str, found: impl Into<String>) -> CheckResult {
    CheckResult {
        verdict: CheckVerdict::Ok,
        about: about.to_owned(),
        found: found.into(),
        fix: None,
    }
}

pub(crate) fn warn(about: &str, found: impl Into<String>, fix: impl Into<String>) -> CheckResult {
    CheckResult { verdict: CheckVerdict::Warn, fix: Some(fix.into()), ..ok(about, found) }
}

pub(crate) fn fail(about: &str, found: impl Into<String>, fix: impl Into<String>) -> CheckResult {
    CheckResult { verdict: CheckVerdict::Fail, ..warn(about, found, fix) }
}
