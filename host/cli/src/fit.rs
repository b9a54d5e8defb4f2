//! Text that fits a terminal: cut, or broken into lines, by the columns that its characters take up.

use a2a_hub_core::terminal::clean;
use unicode_width::UnicodeWidthStr as _;

/// How many characters may share a column, such as a letter and its accents.
const MARKS: usize = 8;

/// `text` in one line: line breaks, tabs and blanks in a row are one blank.
pub(super) fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The same with nothing in it that a terminal would obey.
pub(super) fn fold(text: &str) -> String {
    clean(&one_line(text)).into_owned()
}

/// As much of `text` as fits into so many columns, with a sign where it was cut.
pub(super) fn cut(text: &str, columns: usize) -> String {
    if fitting(text, columns) == text.len() {
        return text.to_owned();
    }
    format!("{}…", &text[..fitting(text, columns.saturating_sub(1))])
}

/// `text` in lines of at most so many columns, broken between words where that can be, with nothing that a terminal obeys.
pub(super) fn wrapped(text: &str, columns: usize) -> Vec<String> {
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
            // What is wider than the terminal itself stands on a line alone.
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

/// Where the part of `text` ends that fits into so many columns.
fn fitting(text: &str, columns: usize) -> usize {
    let ends = text.char_indices().map(|(at, c)| at + c.len_utf8());
    // Measured anew with each character, for the next one can make an emoji of those before it; of characters that take up
    // no column, no more are looked at than somebody would write.
    let ends = ends.take(columns.saturating_mul(MARKS));
    ends.take_while(|&end| text[..end].width() <= columns).last().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn text_is_cut_between_characters_however_wide() {
        let cut = |columns| cut("漢字 and more", columns);
        assert_eq!(
            [0, 1, 2, 3, 4, 9, 13].map(cut),
            ["…", "…", "…", "漢…", "漢…", "漢字 and…", "漢字 and more"]
        );
    }

    #[test]
    fn lines_are_broken_between_words_where_they_can_be() {
        assert_eq!(wrapped("one two three\n\nfour", 7), ["one two", "three", "", "four"]);
        assert_eq!(wrapped("abcdefgh 漢字漢", 5), ["abcde", "fgh", "漢字", "漢"]);
        assert_eq!(wrapped("漢", 1), ["漢"]);
    }

    /// A quadratic time would let an agent hold up whoever looks at what it says.
    #[test]
    fn a_long_line_takes_no_long_time() {
        for c in ["x", "\u{301}", "漢", "x "] {
            let lines = wrapped(&c.repeat(300_000), 80);
            assert!(lines.len() > 400, "{c:?}");
        }
        assert!(cut(&"\u{301}".repeat(300_000), 80).len() < 2_000);
    }

    proptest! {
        #[test]
        fn nothing_is_wider_than_it_may_be(text in "\\PC{0,60}", columns in 2_usize..80) {
            prop_assert!(cut(&fold(&text), columns).width() <= columns);
            for line in wrapped(&text, columns) {
                prop_assert!(line.width() <= columns, "{line:?}");
            }
        }
    }
}
