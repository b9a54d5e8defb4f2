//! Releases among tags: by version, the latest, and the previous one.

use std::cmp::Ordering;

use crate::git::Tag;

/// Tag name parsed as a version: `sdk-v1.2.0-rc.1` is family `sdk-v`, 1.2.0, before the final
/// 1.2.0.
struct Version<'a> {
    family: &'a str,
    numbers: Vec<u64>,
    prerelease: &'a str,
}

impl<'a> Version<'a> {
    fn parse(name: &'a str) -> Option<Self> {
        let (family, version) = name.split_at(name.find(|c: char| c.is_ascii_digit())?);
        let end = version.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(version.len());
        let (numbers, tail) = version.split_at(end);
        let mut numbers: Vec<u64> =
            numbers.split('.').filter_map(|number| number.parse().ok()).collect();
        while numbers.last() == Some(&0) {
            numbers.pop();
        }
        let prerelease = tail.split('+').next().unwrap_or_default();
        Some(Self { family, numbers, prerelease })
    }

    fn compare(&self, other: &Self) -> Ordering {
        let last = |version: &Self| version.prerelease.is_empty();
        let numbers = self.numbers.cmp(&other.numbers);
        numbers
            .then(last(self).cmp(&last(other)))
            .then_with(|| self.prerelease.cmp(other.prerelease))
    }
}

/// Tag with that name or version: `1.2` finds `v1.2.0`.
pub(crate) fn find<'a>(tags: &'a [Tag], query: &str) -> Option<&'a Tag> {
    let same = |tag: &&Tag| {
        let (Some(tag), Some(query)) = (Version::parse(&tag.name), Version::parse(query)) else {
            return false;
        };
        let plain = |family: &str| matches!(family, "" | "v" | "V");
        let related = tag.family == query.family || (plain(tag.family) && plain(query.family));
        related && tag.compare(&query).is_eq()
    };
    tags.iter().find(|tag| tag.name == query).or_else(|| tags.iter().find(same))
}

/// Newest release of tags sorted newest first; a pre-release only if no final release exists.
pub(crate) fn latest(tags: &[Tag]) -> Option<&Tag> {
    let is_final = |tag: &&Tag| Version::parse(&tag.name).is_some_and(|v| v.prerelease.is_empty());
    tags.iter().find(is_final).or(tags.first())
}

/// Release before one, among the tags in its history (newest first): the next lower version of the
/// same family. A final release skips pre-releases. Tags that are not versions are ordered by time.
pub(crate) fn previous<'a>(tags: &'a [Tag], release: &Tag) -> Option<&'a Tag> {
    let Some(version) = Version::parse(&release.name) else {
        return tags.iter().find(|tag| tag.commit != release.commit && tag.time <= release.time);
    };
    let lower = tags.iter().filter_map(|tag| {
        let other = Version::parse(&tag.name).filter(|other| other.family == version.family)?;
        let skipped = version.prerelease.is_empty() && !other.prerelease.is_empty();
        (!skipped && other.compare(&version).is_lt()).then_some((other, tag))
    });
    lower.max_by(|(a, _), (b, _)| a.compare(b)).map(|(_, tag)| tag)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tags(names: &[&str]) -> Vec<Tag> {
        let tag = |(time, name): (i64, &&str)| Tag {
            name: (*name).into(),
            time: 100 - time,
            commit: format!("commit of {name}"),
        };
        (0..).zip(names).map(tag).collect()
    }

    #[test]
    fn previous_release_follows_version_order() {
        let tags =
            tags(&["v1.2.0", "v1.2.0-rc.1", "sdk-v3.0", "v1.10", "v1.9.1", "nightly", "v1.1"]);
        let before = |name: &str| {
            let release = find(&tags, name)?;
            Some(previous(&tags, release)?.name.clone())
        };
        assert_eq!(before("v1.2.0").as_deref(), Some("v1.1"));
        assert_eq!(before("v1.2.0-rc.1").as_deref(), Some("v1.1"));
        assert_eq!(before("1.10.0").as_deref(), Some("v1.9.1"));
        assert_eq!(before("v1.9.1").as_deref(), Some("v1.2.0"));
        assert_eq!(before("sdk-v3.0"), None);
        assert_eq!(before("nightly").as_deref(), Some("v1.1"));
        assert_eq!(find(&tags, "1.2").map(|tag| tag.name.as_str()), Some("v1.2.0"));
        assert_eq!(find(&tags, "v3.0"), None);
        assert_eq!(latest(&tags[1..]).map(|tag| tag.name.as_str()), Some("sdk-v3.0"));
        assert_eq!(latest(&tags[5..6]).map(|tag| tag.name.as_str()), Some("nightly"));
    }
}
