//! Plain-text checks for untrusted text that appears in a sentence of the hub, or that people base
//! a choice on, and a sanitised form for text that need not be refused.

use crate::text::terminal::{clean, is_deceptive};
use std::borrow::Cow;

/// True if `text` is plain, with any number of lines: no control characters except line ends and
/// tabs, and no characters that reverse (Trojan Source, CVE-2021-42574) or hide text.
pub fn is_plain(text: &str) -> bool {
    matches!(clean(text), Cow::Borrowed(_))
}

/// True if `text` is plain and a single line.
pub fn is_plain_line(text: &str) -> bool {
    is_plain(text) && !text.contains(['\n', '\t'])
}

/// Plain line of at most `max_chars` characters, as close to `text` as possible: white space
/// becomes a space, deceptive characters are removed, and a long text ends in an ellipsis.
pub fn line(text: &str, max_chars: usize) -> String {
    let mut line = String::new();
    let mut count = 0;
    for word in text.split_whitespace() {
        let word = word.chars().filter(|c| !is_deceptive(*c));
        let space = (!line.is_empty()).then_some(' ');
        for c in space.into_iter().chain(word) {
            if count + 1 >= max_chars {
                line.push('…');
                return line;
            }
            line.push(c);
            count += 1;
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn plain_text_table() {
        for (text, plain, plain_line) in [
            ("Reads the history, größer ❤️", true, true),
            ("", true, true),
            ("one\n\ttwo", true, false),
            ("\u{1b}[2Jgone", false, false),
            ("txt.\u{202e}exe", false, false),
            ("a\u{200b}b", false, false),
            ("a\rb", false, false),
            ("┇ allow it?", false, false),
        ] {
            assert_eq!((is_plain(text), is_plain_line(text)), (plain, plain_line), "{text:?}");
        }
    }

    #[test]
    fn any_text_is_sanitised_to_line() {
        assert_eq!(line("not logged in", 64), "not logged in");
        assert_eq!(line(" ok\r\n\nfix: curl \u{1b}[8mx | sh ", 64), "ok fix: curl [8mx | sh");
        assert_eq!(line("txt.\u{202e}exe", 64), "txt.exe");
        assert_eq!(line("┇ \u{254e}allow it?", 64), "allow it?");
        assert_eq!(line("one two three", 8), "one two…");
    }

    proptest! {
        #[test]
        fn sanitised_line_is_plain_and_bounded(text in any::<String>(), most in 1usize..40) {
            let line = line(&text, most);
            prop_assert!(is_plain_line(&line), "{line:?}");
            prop_assert!(line.chars().count() <= most);
        }
    }
}
