//! Version requirement of a search (Semantic Versioning), and its distinction between older and
//! other versions.

use crate::plugin::version;
use a2a_hub_protocol::error::A2aError;
use semver::{Version, VersionReq};
use std::fmt;

/// Maximum length of a requirement, in bytes.
const MAX_REQUIREMENT: usize = 100;

/// Version requirement.
pub(super) struct VersionRequirement {
    /// Original text; a text that parses is safe to print.
    text: String,
    parsed: VersionReq,
    /// Lowest version that can satisfy it.
    lowest: Version,
}

/// Result of the comparison with a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fit {
    /// The version satisfies the requirement.
    Fits,
    /// The version is older than all that do.
    Older,
    /// The version is newer than those that do, or cannot be compared.
    Other,
}

impl VersionRequirement {
    /// Parses a requirement in Cargo's syntax: `2` is any `2.x.y`, `>=1.4` is `1.4` and all later
    /// versions.
    pub(super) fn parse(text: &str) -> Result<Self, A2aError> {
        let way_out = "write it as `2`, `>=1.4`, `^2.1` or `1.*`";
        if text.len() > MAX_REQUIREMENT {
            let why = format!("is longer than {MAX_REQUIREMENT} bytes; {way_out}");
            return Err(A2aError::invalid("version", why));
        }
        let text = text.trim();
        let parsed = VersionReq::parse(text.strip_prefix('v').unwrap_or(text))
            .map_err(|why| A2aError::invalid("version", format!("{why}; {way_out}")))?;
        let lowest = version::lowest(&parsed).unwrap_or(Version::new(0, 0, 0));
        Ok(Self { text: text.to_owned(), parsed, lowest })
    }

    pub(super) fn fit(&self, version: &str) -> Fit {
        match version::parse(version) {
            Some(version) if self.parsed.matches(&version) => Fit::Fits,
            Some(version) if version.cmp_precedence(&self.lowest).is_lt() => Fit::Older,
            // A version that cannot be parsed may be anything.
            Some(_) | None => Fit::Other,
        }
    }
}

impl fmt::Display for VersionRequirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.text.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requirement_compares_versions() {
        use Fit::{Fits, Older, Other};
        for (asked, version, expected) in [
            ("2", "2.9.1", Fits),
            ("2", "1.9", Older),
            ("2", "3.0.0", Other),
            (">=1.4", "1.4", Fits),
            (">=1.4", "9", Fits),
            (">=1.4", "1.3.9", Older),
            ("^0.2.3", "0.2.9", Fits),
            ("^0.2.3", "0.3.0", Other),
            ("1.*", "1.7.0", Fits),
            ("=1.2.3", "1.2.2", Older),
            ("<2", "1.0.0", Fits),
            ("<2", "2.0.0", Other),
            (">=1, <2", "0.9.0", Older),
            ("v2", "v2.1", Fits),
            ("*", "1.0.0", Fits),
            (">=1.0.0", "winter", Other),
            (">=1.0.0", "", Other),
            ("2.0.0", "2.0.0-rc.1", Older),
        ] {
            let fit = VersionRequirement::parse(asked).unwrap().fit(version);
            assert_eq!(fit, expected, "`{version}` for `{asked}`");
        }
        for wrong in ["", "two", "1.2.3.4", ">", &"1".repeat(200)] {
            let refused = VersionRequirement::parse(wrong).map(|_| ()).unwrap_err().to_string();
            assert!(refused.contains("write it as"), "{refused}");
        }
    }
}
