//! Comparison of versions of a component, as their maker writes them. A signature proves only the
//! maker, and old versions are signed as well (downgrade attack).

use crate::text::one_line::OneLine;
use semver::{Op, Version, VersionReq};

/// True if `offered` must not replace `granted` as an update: it is older, or the versions cannot
/// be compared. Without a granted version, any version is allowed.
pub fn is_downgrade(offered: Option<&OneLine>, granted: Option<&OneLine>) -> bool {
    let Some(granted) = granted else { return false };
    let Some(offered) = offered else { return true };
    if offered == granted {
        return false;
    }
    match (parse(offered.as_str()), parse(granted.as_str())) {
        (Some(offered), Some(granted)) => offered.cmp_precedence(&granted).is_lt(),
        (Some(_) | None, _) => true,
    }
}

/// Parses a version of Semantic Versioning; `1.2` is `1.2.0`, and `v1.2.0` is `1.2.0`.
pub(crate) fn parse(text: &str) -> Option<Version> {
    let text = text.trim();
    let text = text.strip_prefix('v').unwrap_or(text);
    let (numbers, rest) = text.split_at(text.find(['-', '+']).unwrap_or(text.len()));
    let missing = 2usize.checked_sub(numbers.matches('.').count())?;
    Version::parse(&format!("{numbers}{}{rest}", ".0".repeat(missing))).ok()
}

/// Lowest version that can satisfy `required`; `None` if it has only upper bounds.
pub(crate) fn lowest(required: &VersionReq) -> Option<Version> {
    let from = required.comparators.iter().filter(|it| !matches!(it.op, Op::Less | Op::LessEq));
    let lower_bounds = from.map(|it| {
        let [minor, patch] = [it.minor, it.patch].map(Option::unwrap_or_default);
        Version { pre: it.pre.clone(), ..Version::new(it.major, minor, patch) }
    });
    lower_bounds.max()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn older_or_incomparable_version_is_downgrade() {
        let line = |text: &str| OneLine::parse(text).ok();
        for (offered, granted, expected) in [
            ("1.0.1", "1.0.0", false),
            ("1.0.0", "1.0.0", false),
            ("1.0.0", "1.0.1", true),
            ("1.10", "1.9", false),
            ("1.9", "1.10", true),
            ("2", "1.9.9", false),
            ("v2.0.0", "1.0.0", false),
            ("2.0.0-rc.1", "2.0.0", true),
            ("2.0.0", "2.0.0-rc.1", false),
            ("2.0.0+b", "2.0.0+a", false),
            ("winter", "winter", false),
            ("winter", "autumn", true),
            ("winter", "1.0.0", true),
            ("1.0.0", "winter", true),
            ("1.0.0.1", "1.0.0", true),
            ("99999999999999999999.0.0", "1.0.0", true),
            ("", "1.0.0", true),
            ("1.0.0", "", false),
            ("", "", false),
        ] {
            let is = is_downgrade(line(offered).as_ref(), line(granted).as_ref());
            assert_eq!(is, expected, "`{offered}` after `{granted}`");
        }
    }
}
