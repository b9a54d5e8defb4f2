//! Version requirement for an agent.

use crate::plugin::version;
use semver::{Version, VersionReq};
use std::fmt;

/// Version requirement in the syntax of Semantic Versioning as in Cargo: `2`, `^2.1`, `>=1.4, <3`.
/// A bare `2.1` is `^2.1`: that version or newer, with the same major version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requirement {
    text: String,
    read: VersionReq,
}

/// Error for a text that is no version requirement.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` says no versions ({why}); say for example `2`, `^2.1` or `>=1.4, <3`")]
pub struct InvalidRequirement {
    text: String,
    why: String,
}

impl Requirement {
    /// Parses a version requirement.
    pub fn parse(text: &str) -> Result<Self, InvalidRequirement> {
        let text = text.trim();
        let read = VersionReq::parse(text)
            .map_err(|why| InvalidRequirement { text: text.to_owned(), why: why.to_string() })?;
        Ok(Self { text: text.to_owned(), read })
    }

    /// The original text.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// True if the version satisfies the requirement.
    pub fn is_met_by(&self, version: &Version) -> bool {
        self.read.matches(version)
    }

    /// True if the version is too old: it does not satisfy the requirement, and precedes the first
    /// one that could.
    pub fn is_after(&self, version: &Version) -> bool {
        let lowest = version::lowest(&self.read);
        let is_before = lowest.is_some_and(|lowest| version.cmp_precedence(&lowest).is_lt());
        is_before && !self.is_met_by(version)
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`", self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requirement_distinguishes_matching_and_older_versions() {
        for (required, version, met, older) in [
            ("2", "2.1.0", true, false),
            ("2.1", "2.0.9", false, true),
            ("2.1", "3.0.0", false, false),
            ("^2.1.0", "1.3.0", false, true),
            ("~1.2", "1.3.0", false, false),
            ("=1.2.3", "1.2.2", false, true),
            (">=1.4, <3", "1.3.9", false, true),
            (">=1.4, <3", "3.0.0", false, false),
            ("<2", "2.0.0", false, false),
            ("2.*", "1.0.0", false, true),
            ("*", "0.0.1", true, false),
            ("2", "2.0.0-rc.1", false, true),
        ] {
            let (of, version) =
                (Requirement::parse(required).unwrap(), Version::parse(version).unwrap());
            assert_eq!(
                (of.is_met_by(&version), of.is_after(&version)),
                (met, older),
                "{required} and {version}"
            );
        }
        let wrong = Requirement::parse("latest").unwrap_err().to_string();
        assert!(
            wrong.contains("`latest` says no versions") && wrong.contains(">=1.4, <3"),
            "{wrong}"
        );
    }
}
