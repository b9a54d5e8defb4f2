//! Result of one of `doctor`'s checks, with a fix.

use serde::Serialize;

/// Severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Verdict {
    Ok,
    Warn,
    Fail,
}

impl Verdict {
    /// Word for the verdict in the output.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warn => "warn",
            Self::Fail => "fail",
        }
    }
}

/// Result of one check.
#[derive(Debug, Serialize)]
pub(super) struct Finding {
    pub(super) verdict: Verdict,
    pub(super) about: String,
    pub(super) found: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) fix: Option<String>,
}

pub(super) fn ok(about: &str, found: impl Into<String>) -> Finding {
    Finding { verdict: Verdict::Ok, about: about.to_owned(), found: found.into(), fix: None }
}

pub(super) fn warn(about: &str, found: impl Into<String>, fix: impl Into<String>) -> Finding {
    Finding { verdict: Verdict::Warn, fix: Some(fix.into()), ..ok(about, found) }
}

pub(super) fn fail(about: &str, found: impl Into<String>, fix: impl Into<String>) -> Finding {
    Finding { verdict: Verdict::Fail, ..warn(about, found, fix) }
}
