//! Difference of two texts, line by line.

use crate::text::{FAINT, PLAIN, Text};
use similar::{ChangeTag, TextDiff};

/// Unchanged lines around a change.
const AROUND: usize = 3;

/// Lines that differ, each behind `+` or `-`, with those around them.
pub fn difference(before: &str, after: &str) -> Text {
    let mut shown = Text::new();
    let compared = TextDiff::from_lines(before, after);
    for (index, group) in compared.grouped_ops(AROUND).iter().enumerate() {
        if index > 0 {
            shown.push(FAINT, "...\n");
        }
        for change in group.iter().flat_map(|part| compared.iter_changes(part)) {
            let (mark, style) = match change.tag() {
                ChangeTag::Delete => ("-", PLAIN),
                ChangeTag::Insert => ("+", PLAIN),
                ChangeTag::Equal => (" ", FAINT),
            };
            shown.push(style, &format!("{mark} {}\n", change.value().trim_end_matches('\n')));
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn difference_marks_changed_lines() {
        let before = "a\nb\nc\nd\ne\nf\ng\nrun = [\"true\"]\n";
        let after = before.replace("true", "sh").replace("a\n", "");
        let expected = "- a\n  b\n  c\n  d\n  e\n  f\n  g\n- run = [\"true\"]\n+ run = [\"sh\"]\n";
        assert_eq!(difference(before, &after).words(), expected);
    }
}
