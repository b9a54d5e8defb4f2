//! Which of two versions of a component is the older one, in their maker's words: a signature says who made a component, and old
//! versions are signed as well (downgrade attack).

use crate::one_line::OneLine;
use semver::{Op, Version, VersionReq};

/// Whether what is `offered` may not take the place of what was `granted` as an update: it is older, or nobody can tell that it is
/// not. Where the granted one says no version, there is nothing to compare.
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

/// A version by the rules of Semantic Versioning; `1.2` is `1.2.0`, and `v1.2.0` is `1.2.0`.
pub(crate) fn parse(text: &str) -> Option<Version> {
    let text = text.trim();
    let text = text.strip_prefix('v').unwrap_or(text);
    let (numbers, rest) = text.split_at(text.find(['-', '+']).unwrap_or(text.len()));
    let missing = 2usize.checked_sub(numbers.matches('.').count())?;
    Version::parse(&format!("{numbers}{}{rest}", ".0".repeat(missing))).ok()
}

/// The lowest version that `required` can mean; none if it only says what is too new.
pub(crate) fn least(required: &VersionReq) -> Option<Version> {
    let from = required.comparators.iter().filter(|it| !matches!(it.op, Op::Less | Op::LessEq));
    let least = from.map(|it| {
        let [minor, patch] = [it.minor, it.patch].map(Option::unwrap_or_default);
        Version { pre: it.pre.clone(), ..Version::new(it.major, minor, patch) }
    });
    least.max()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_older_version_is_no_update_and_what_cannot_be_told_is_none_either() {
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
