//! Sanitises untrusted text for a terminal: escapes characters that a terminal interprets (escape
//! sequence injection, CWE-150) and characters that deceive a reader ("Trojan Source",
//! bidirectional text, CVE-2021-42574).
//!
//! Each character is judged by itself and its predecessor, so a text that arrives in pieces can be
//! sanitised piece by piece: no cut between pieces lets a sequence through.

use std::borrow::Cow;

/// First character of each line of the hub's own dialogue on a terminal. It is escaped in untrusted
/// text, like all lookalikes, so that no agent can forge a question of the hub.
pub const MARK: char = '┇';

/// The mark, and its lookalikes among the dashed vertical lines.
const MARKS: [char; 6] = [MARK, '┆', '┊', '┋', '╎', '╏'];

/// Escapes a text for a terminal: interpreted and deceptive characters become visible escapes such
/// as `\u{1b}`. A Windows line end becomes a line feed.
pub fn clean(text: &str) -> Cow<'_, str> {
    escaped(text, |c, out| out.extend(c.escape_unicode()))
}

/// The same for JSON text, with JSON escapes, so that the JSON value stays the same.
pub fn clean_json(json: &str) -> Cow<'_, str> {
    escaped(json, |c, out| {
        for unit in c.encode_utf16(&mut [0; 2]) {
            *out += &format!("\\u{unit:04x}");
        }
    })
}

/// True if `c` must not occur in text that people read as a name, such as the name of a file.
pub fn is_deceptive(c: char) -> bool {
    is_never_shown(c) || is_companion(c)
}

fn escaped(text: &str, escape: impl Fn(char, &mut String)) -> Cow<'_, str> {
    let mut before = None;
    let mut chars = text.char_indices().peekable();
    let mut out: Option<String> = None;
    while let Some((at, c)) = chars.next() {
        let ends_line = c == '\r' && chars.peek().is_some_and(|(_, next)| *next == '\n');
        let shown = is_shown(c, before);
        if !shown {
            let out = out.get_or_insert_with(|| text[..at].to_owned());
            if !ends_line {
                escape(c, out);
            }
        } else if let Some(out) = &mut out {
            out.push(c);
        }
        // An escaped character cannot be joined with the next one.
        before = shown.then_some(c);
    }
    out.map_or(Cow::Borrowed(text), Cow::Owned)
}

/// True if `c` is shown unchanged after `before`.
fn is_shown(c: char, before: Option<char>) -> bool {
    match c {
        '\n' | '\t' => true,
        _ if is_never_shown(c) => false,
        _ if is_companion(c) => before.is_some_and(|before| is_joined(before, c)),
        _ => true,
    }
}

fn is_never_shown(c: char) -> bool {
    c.is_control() || is_bidi(c) || is_invisible(c) || MARKS.contains(&c)
}

/// True for characters that reverse the order of text (Unicode, UAX #9): `txt.a` could appear as
/// `a.txt`.
fn is_bidi(c: char) -> bool {
    matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// True for characters that are always invisible (Unicode, `Default_Ignorable_Code_Point`), or
/// break a line invisibly.
fn is_invisible(c: char) -> bool {
    matches!(
        c,
        '\u{ad}'
            | '\u{34f}'
            | '\u{115f}'
            | '\u{1160}'
            | '\u{17b4}'
            | '\u{17b5}'
            | '\u{180e}'
            | '\u{200b}'
            | '\u{2028}'
            | '\u{2029}'
            | '\u{2060}'..='\u{2065}'
            | '\u{206a}'..='\u{206f}'
            | '\u{3164}'
            | '\u{feff}'
            | '\u{ffa0}'
            | '\u{fff0}'..='\u{fffb}'
            | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}'
    )
}

/// True for invisible characters that change their neighbours: joiners and variation selectors.
/// Emoji and many scripts need them; between Latin letters they only hide something.
fn is_companion(c: char) -> bool {
    matches!(c, '\u{200c}' | '\u{200d}' | '\u{180b}'..='\u{180f}' | '\u{fe00}'..='\u{fe0f}')
}

/// True if a companion after `before` changes its appearance.
fn is_joined(before: char, companion: char) -> bool {
    let is_joiner = |c| matches!(c, '\u{200c}' | '\u{200d}');
    match before {
        // Variation selector of an emoji, and the characters that it is joined with.
        '\u{fe0e}' | '\u{fe0f}' => is_joiner(companion),
        // Characters of keycap emoji.
        '0'..='9' | '#' | '*' => !is_joiner(companion),
        _ => !before.is_ascii() && is_shown(before, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn control_characters_are_escaped() {
        let cases = [
            ("plain, ünïcödé, 漢字, ✓ and 🎉", "plain, ünïcödé, 漢字, ✓ and 🎉"),
            ("lines\nand\ttabs\n", "lines\nand\ttabs\n"),
            ("\x1b[2J\x1b[H", r"\u{1b}[2J\u{1b}[H"),
            ("\x1b]0;title\x07", r"\u{1b}]0;title\u{7}"),
            ("\x1b]52;c;aGk=\x1b\\", r"\u{1b}]52;c;aGk=\u{1b}\"),
            ("\u{9b}31m\u{9d}0;t\u{9c}", r"\u{9b}31m\u{9d}0;t\u{9c}"),
            ("a\0b\x08c\x7f\x0b\x0c\x0e", r"a\u{0}b\u{8}c\u{7f}\u{b}\u{c}\u{e}"),
            ("right\rwrong", r"right\u{d}wrong"),
            ("Windows\r\nhas two\r\n", "Windows\nhas two\n"),
            ("cut\r", r"cut\u{d}"),
            ("\r\r\n", "\\u{d}\n"),
        ];
        for (text, shown) in cases {
            assert_eq!(clean(text), shown, "{text:?}");
        }
    }

    #[test]
    fn deceptive_characters_are_escaped() {
        let cases = [
            ("\u{202e}gpj.exe", r"\u{202e}gpj.exe"),
            (
                "a\u{2066}b\u{2069}c\u{61c}d\u{200e}e\u{200f}",
                r"a\u{2066}b\u{2069}c\u{61c}d\u{200e}e\u{200f}",
            ),
            (
                "pass\u{200b}word pass\u{200d}word \u{feff}x",
                r"pass\u{200b}word pass\u{200d}word \u{feff}x",
            ),
            ("soft\u{ad}hyphen\u{2028}line", r"soft\u{ad}hyphen\u{2028}line"),
            ("x\u{e0041}\u{e0042}", r"x\u{e0041}\u{e0042}"),
            ("\u{200d}", r"\u{200d}"),
            ("é\u{200d}\u{200d}", "é\u{200d}\\u{200d}"),
            ("a\u{fe0f}", r"a\u{fe0f}"),
            ("┇ the hub asks ╏ ┆", r"\u{2507} the hub asks \u{254f} \u{2506}"),
            ("│ a table ┃ has ║ lines", "│ a table ┃ has ║ lines"),
        ];
        for (text, shown) in cases {
            assert_eq!(clean(text), shown, "{text:?}");
        }
        // A family, a heart on fire, a keycap, Persian and Devanagari need joiners and selectors.
        for text in [
            "👨\u{200d}👩\u{200d}👧",
            "❤\u{fe0f}\u{200d}🔥",
            "1\u{fe0f}\u{20e3}",
            "می\u{200c}خواهم",
            "क्\u{200d}ष",
        ] {
            assert_eq!(clean(text), text);
        }
    }

    #[test]
    fn cleaned_json_keeps_its_value() {
        let cleaned = clean_json("{\"a\":\"\u{202e}\u{9b}\u{e0041}\u{7f}é\"}");
        assert_eq!(cleaned, r#"{"a":"\u202e\u009b\udb40\udc41\u007fé"}"#);
    }

    #[test]
    fn deceptive_characters_are_recognised_in_names() {
        assert!("a\u{202e}\u{200d}\u{1b}\u{fe0f}".chars().skip(1).all(is_deceptive));
        assert!(!"Überblick 漢字.md".chars().any(is_deceptive));
    }

    /// Generates text with many critical characters.
    fn hostile() -> impl Strategy<Value = String> {
        let c = prop_oneof![
            any::<char>(),
            (0u32..0x120).prop_filter_map("no character", char::from_u32),
            (0x2000u32..0x2070).prop_filter_map("no character", char::from_u32),
            prop::sample::select(vec!['\x1b', '\r', '\n', '\u{200d}', '\u{fe0f}', '┇', '👩', 'a']),
        ];
        prop::collection::vec(c, 0..40).prop_map(String::from_iter)
    }

    proptest! {
        #[test]
        fn cleaned_text_has_no_control_characters(text in hostile()) {
            for shown in [clean(&text), clean_json(&text)] {
                for c in shown.chars() {
                    prop_assert!(!c.is_control() || c == '\n' || c == '\t', "{c:?} in {shown:?}");
                    prop_assert!(!is_bidi(c) && !is_invisible(c) && !MARKS.contains(&c), "{c:?} in {shown:?}");
                }
            }
        }

        /// Sanitising a stream piece by piece lets nothing through for any cuts, and keeps each
        /// line break.
        #[test]
        fn cutting_lets_no_sequence_through(pieces in prop::collection::vec(hostile(), 0..6)) {
            let shown: String = pieces.iter().map(|piece| clean(piece)).collect();
            prop_assert!(shown.chars().all(|c| !c.is_control() || c == '\n' || c == '\t'), "{shown:?}");
            let lines = |text: &str| text.matches('\n').count();
            prop_assert_eq!(lines(&shown), lines(&pieces.concat()));
        }

        #[test]
        fn cleaning_is_idempotent(text in hostile()) {
            let shown = clean(&text).into_owned();
            prop_assert_eq!(clean(&shown).into_owned(), shown.clone());
        }

        #[test]
        fn ordinary_text_is_unchanged(text in "[ -~äöüßéñ漢字カナ👍🎉✓│\n\t]{0,60}") {
            prop_assert_eq!(clean(&text), text.as_str());
        }
    }
}
