//! Fits text to a terminal: truncates or wraps it by the display width of its characters.

use a2a_hub_core::text::terminal::clean;
use unicode_width::UnicodeWidthStr as _;

/// Maximum number of characters in one column, such as a letter and its accents.
const MARKS: usize = 8;

/// Collapses line breaks, tabs and runs of blanks to single blanks.
pub fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Collapses white space and removes control characters.
pub fn fold(text: &str) -> String {
    clean(&one_line(text)).into_owned()
}

/// Truncates `text` to `columns` and marks the cut with an ellipsis.
pub fn cut(text: &str, columns: usize) -> String {
    if fitting(text, columns) == text.len() {
        return text.to_owned();
    }
    format!("{}…", &text[..fitting(text, columns.saturating_sub(1))])
}

/// Wraps `text` to lines of at most `columns`, between words where possible, and removes control
/// characters.
pub fn wrapped(text: &str, columns: usize) -> Vec<String> {
    let mut lines = Vec::new();
    for line in clean(text).lines() {
        let line = line.replace('\t', "    ");
        let mut rest = line.as_str();
        loop {
            let end = fitting(rest, columns);
            if end == rest.len() {
                lines.push(rest.to_owned());
                break;
            }
            // A character that is wider than the terminal gets a line alone.
            let end = end.max(rest.ceil_char_boundary(1));
            let word = rest[..end].rfind(' ').filter(|at| *at > 0 && !rest[end..].starts_with(' '));
            let (this, next) = rest.split_at(word.unwrap_or(end));
            lines.push(this.to_owned());
            rest = next.strip_prefix(' ').unwrap_or(next);
            if rest.is_empty() {
                break;
            }
        }
    }
    lines
}

/// Length, in bytes, of the longest prefix of `text` that fits into `columns`.
fn fitting(text: &str, columns: usize) -> usize {
    let ends = text.char_indices().map(|(at, c)| at + c.len_utf8());
    // Each step measures the whole prefix, because the next character may combine with earlier ones
    // to one emoji. `MARKS` bounds the number of zero-width characters that are examined.
    let ends = ends.take(columns.saturating_mul(MARKS));
    ends.take_while(|&end| text[..end].width() <= columns).last().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn text_is_cut_between_wide_characters() {
        let cut = |columns| cut("漢字 and more", columns);
        assert_eq!(
            [0, 1, 2, 3, 4, 9, 13].map(cut),
            ["…", "…", "…", "漢…", "漢…", "漢字 and…", "漢字 and more"]
        );
    }

    #[test]
    fn lines_wrap_between_words() {
        assert_eq!(wrapped("one two three\n\nfour", 7), ["one two", "three", "", "four"]);
        assert_eq!(wrapped("abcdefgh 漢字漢", 5), ["abcde", "fgh", "漢字", "漢"]);
        assert_eq!(wrapped("漢", 1), ["漢"]);
    }

    /// Quadratic time would let an agent's output block the user's terminal.
    #[test]
    fn long_line_wraps_in_linear_time() {
        for c in ["x", "\u{301}", "漢", "x "] {
            let lines = wrapped(&c.repeat(300_000), 80);
            assert!(lines.len() > 400, "{c:?}");
        }
        assert!(cut(&"\u{301}".repeat(300_000), 80).len() < 2_000);
    }

    proptest! {
        #[test]
        fn wrapped_lines_never_exceed_width(text in "\\PC{0,60}", columns in 2_usize..80) {
            prop_assert!(cut(&fold(&text), columns).width() <= columns);
            for line in wrapped(&text, columns) {
                prop_assert!(line.width() <= columns, "{line:?}");
            }
        }
    }
}
