//! Anchors of comments: which lines of a file a comment is about after the file has changed.

use serde::{Deserialize, Serialize};

/// Lines of a file, counted from 1; both ends belong to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LineRange {
    /// First line.
    pub first: u32,
    /// Last line.
    pub last: u32,
}

/// Replaced lines between two versions of a file: a hunk of a unified diff without context. With a
/// count of 0, the start is the line after which the lines of the other side are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineChange {
    /// First replaced line of the old version.
    pub old_start: u32,
    /// Number of replaced lines.
    pub old_count: u32,
    /// Number of lines that replace them.
    pub new_count: u32,
}

/// Reads the hunks of one file from a unified diff without context (`git diff -U0`). All other
/// lines of such a diff begin with another character than `@`, or precede the first hunk.
pub fn line_changes(diff: &[u8]) -> Vec<LineChange> {
    let hunks = diff.split(|byte| *byte == b'\n').filter(|line| line.starts_with(b"@@ -"));
    hunks.filter_map(|line| hunk(&String::from_utf8_lossy(line))).collect()
}

/// Reads `@@ -START[,COUNT] +START[,COUNT] @@`.
fn hunk(line: &str) -> Option<LineChange> {
    let mut words = line.split(' ').skip(1);
    let (old_start, old_count) = side(words.next()?.strip_prefix('-')?)?;
    let (_, new_count) = side(words.next()?.strip_prefix('+')?)?;
    Some(LineChange { old_start, old_count, new_count })
}

fn side(text: &str) -> Option<(u32, u32)> {
    let (start, count) = text.split_once(',').unwrap_or((text, "1"));
    Some((start.parse().ok()?, count.parse().ok()?))
}

impl LineRange {
    /// The same lines after these changes; none if one of them was changed or removed, or if lines
    /// were inserted between them. `changes` are in the order of the file.
    #[must_use]
    pub fn after(self, changes: &[LineChange]) -> Option<Self> {
        let mut shift = 0_i64;
        for change in changes {
            let start = change.old_start;
            if change.old_count == 0 {
                if start >= self.last {
                    break;
                }
                if start >= self.first {
                    return None;
                }
            } else {
                if start > self.last {
                    break;
                }
                if start.saturating_add(change.old_count) > self.first {
                    return None;
                }
            }
            shift += i64::from(change.new_count) - i64::from(change.old_count);
        }
        let moved = |line: u32| u32::try_from(i64::from(line) + shift).ok();
        Some(Self { first: moved(self.first)?, last: moved(self.last)? })
    }

    /// The parts of these lines that the changes remove. For comments on the old side of a diff:
    /// they are outdated once other lines are removed than at the time of the comment.
    pub fn removed_by(self, changes: &[LineChange]) -> Vec<Self> {
        let removed = changes.iter().filter(|change| change.old_count > 0).filter_map(|change| {
            let last = change.old_start.saturating_add(change.old_count - 1);
            let part = Self { first: self.first.max(change.old_start), last: self.last.min(last) };
            (part.first <= part.last).then_some(part)
        });
        // Neighbouring changes remove one range.
        let mut merged: Vec<Self> = Vec::new();
        for part in removed {
            match merged.last_mut() {
                Some(previous) if previous.last.saturating_add(1) >= part.first => {
                    previous.last = part.last;
                }
                _ => merged.push(part),
            }
        }
        merged
    }

    /// Number of lines.
    pub fn count(self) -> u32 {
        self.last.saturating_sub(self.first).saturating_add(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn range(first: u32, last: u32) -> LineRange {
        LineRange { first, last }
    }

    #[test]
    fn hunks_are_read_from_diff() {
        let diff = b"diff --git a/1 b/2\nindex 1..2 100644\n--- a/1\n+++ b/2\n@@ -3 +3,2 @@ fn x\n-@@ -9 +9 @@\n\
                     +a\n+b\n@@ -7,0 +9 @@\n+c\n\\ No newline at end of file\n@@ -9,2 +10,0 @@\n-d\n-e\n";
        let change =
            |old_start, old_count, new_count| LineChange { old_start, old_count, new_count };
        assert_eq!(line_changes(diff), [change(3, 1, 2), change(7, 0, 1), change(9, 2, 0)]);
        for wrong in ["@@ -x +1 @@", "@@ -1", "@@ -99999999999 +1 @@", "@@ -1,x +1 @@", "\u{fffd}"]
        {
            assert_eq!(line_changes(wrong.as_bytes()), []);
        }
    }

    #[test]
    fn range_follows_changes_around_it() {
        let change =
            |old_start, old_count, new_count| LineChange { old_start, old_count, new_count };
        for (changes, expected) in [
            (vec![], Some(range(5, 6))),
            (vec![change(4, 0, 3)], Some(range(8, 9))),
            (vec![change(5, 0, 1)], None),
            (vec![change(6, 0, 1)], Some(range(5, 6))),
            (vec![change(4, 1, 0)], Some(range(4, 5))),
            (vec![change(4, 2, 2)], None),
            (vec![change(6, 3, 0)], None),
            (vec![change(7, 1, 9)], Some(range(5, 6))),
            (vec![change(1, 2, 2), change(3, 1, 5), change(9, 1, 0)], Some(range(9, 10))),
            (vec![change(u32::MAX, u32::MAX, 1)], Some(range(5, 6))),
            (vec![change(1, u32::MAX, 1)], None),
        ] {
            assert_eq!(range(5, 6).after(&changes), expected, "{changes:?}");
        }
    }

    #[test]
    fn removed_lines_are_cut_to_range() {
        let change =
            |old_start, old_count, new_count| LineChange { old_start, old_count, new_count };
        let changes = [change(2, 0, 9), change(3, 3, 1), change(6, 1, 0), change(9, 9, 9)];
        assert_eq!(range(5, 10).removed_by(&changes), [range(5, 6), range(9, 10)]);
        assert_eq!(range(7, 8).removed_by(&changes), []);
    }

    /// One edit of a random file: it copies `kept` lines, removes some and inserts some.
    fn edits() -> impl Strategy<Value = Vec<(u32, u32, u32)>> {
        proptest::collection::vec((1_u32..5, 0_u32..4, 0_u32..4), 0..8)
    }

    proptest! {
        /// A range that follows the changes has the same lines afterwards; one that does not has a
        /// changed line in it.
        #[test]
        fn followed_range_has_same_lines(edits in edits(), first in 1_u32..20, count in 0_u32..6) {
            let (mut old, mut new, mut changes) = (Vec::new(), Vec::new(), Vec::new());
            let mut fresh = 0_u32;
            let mut line = || { fresh += 1; fresh };
            for (kept, removed, inserted) in edits {
                for _ in 0..kept {
                    let same = line();
                    old.push(same);
                    new.push(same);
                }
                let before = u32::try_from(old.len()).unwrap();
                old.extend((0..removed).map(|_| line()));
                new.extend((0..inserted).map(|_| line()));
                if removed + inserted > 0 {
                    let old_start = before + u32::from(removed > 0);
                    changes.push(LineChange { old_start, old_count: removed, new_count: inserted });
                }
            }
            for _ in 0..30 {
                let same = line();
                old.push(same);
                new.push(same);
            }
            let of = |lines: &[u32], range: LineRange| {
                lines[range.first as usize - 1..range.last as usize].to_vec()
            };
            let range = LineRange { first, last: first + count };
            let quoted = of(&old, range);
            match range.after(&changes) {
                Some(moved) => prop_assert_eq!(of(&new, moved), quoted.clone()),
                None => prop_assert!(!new.windows(quoted.len()).any(|lines| lines == quoted)),
            }
            let removed: Vec<_> =
                range.removed_by(&changes).into_iter().flat_map(|part| of(&old, part)).collect();
            let gone: Vec<_> = quoted.into_iter().filter(|line| !new.contains(line)).collect();
            prop_assert_eq!(removed, gone);
        }

        #[test]
        fn any_bytes_are_read_as_diff(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let changes = line_changes(&[b"@@ -".as_slice(), &bytes].concat());
            let _ = LineRange { first: 1, last: u32::MAX }.after(&changes);
            let _ = LineRange { first: 1, last: u32::MAX }.removed_by(&changes);
        }
    }
}
