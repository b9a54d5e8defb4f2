//! Styled text for people. Sanitising for terminals happens when the text is printed.

use crate::width::wrapped;
use a2a_hub_core::text::terminal;
use anstyle::{AnsiColor, Style};
use std::fmt;
use unicode_width::UnicodeWidthStr as _;

/// Prefix of the line with the command that fixes an error.
pub const HELPS: &str = "help: ";

/// No style.
pub const PLAIN: Style = Style::new();

/// Style of secondary text.
pub const FAINT: Style = Style::new().dimmed();

/// Style of the hub's own lines in a dialogue, used for nothing else.
const HUB: Style = AnsiColor::Cyan.on_default().bold();

/// Sequence of styled pieces. All words count as untrusted: only this module writes terminal escape
/// codes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Text(Vec<TextPiece>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum TextPiece {
    Words(Style, String),
    /// Mark in front of the hub's own lines, which no words can contain.
    Mark,
}

/// Form in which text is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RenderOptions {
    /// True if control characters are shown as escapes.
    pub cleaned: bool,
    /// True if styles are written.
    pub coloured: bool,
}

impl Text {
    /// Creates an empty text.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates a text of one style.
    pub fn styled(style: Style, words: impl Into<String>) -> Self {
        Self(vec![TextPiece::Words(style, words.into())])
    }

    /// Adds words.
    pub fn push(&mut self, style: Style, words: &str) {
        match self.0.last_mut() {
            Some(TextPiece::Words(last, text)) if *last == style => text.push_str(words),
            Some(_) | None => self.0.push(TextPiece::Words(style, words.to_owned())),
        }
    }

    /// Adds the mark that precedes the hub's own lines.
    pub fn mark(&mut self) {
        self.0.push(TextPiece::Mark);
    }

    /// Appends another text.
    pub fn append(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    /// Wraps a text of one style between words. Lines that a user copies, which are indented or
    /// begin with [`HELPS`], are left whole.
    pub fn wrapped(&self, columns: usize) -> Self {
        let [TextPiece::Words(style, words)] = &*self.0 else { return self.clone() };
        let lines = words.split('\n').map(|line| {
            let is_copied = line.starts_with(HELPS) || line.starts_with("  ");
            if is_copied || line.width() <= columns {
                line.to_owned()
            } else {
                wrapped(line, columns).join("\n")
            }
        });
        Self::styled(*style, lines.collect::<Vec<_>>().join("\n"))
    }

    /// Returns the words without styles.
    pub fn words(&self) -> String {
        self.render(RenderOptions { cleaned: false, coloured: false })
    }

    /// Renders the text.
    pub fn render(&self, options: RenderOptions) -> String {
        let mut out = String::new();
        for piece in &self.0 {
            match piece {
                TextPiece::Words(style, words) if options.cleaned => {
                    dress(&mut out, *style, &terminal::clean(words), options);
                }
                TextPiece::Words(style, words) => dress(&mut out, *style, words, options),
                TextPiece::Mark => dress(&mut out, HUB, &format!("{} ", terminal::MARK), options),
            }
        }
        out
    }
}

fn dress(out: &mut String, style: Style, words: &str, options: RenderOptions) {
    if options.coloured && !style.is_plain() && !words.is_empty() {
        *out += &format!("{style}{words}{style:#}");
    } else {
        *out += words;
    }
}

impl fmt::Write for Text {
    fn write_str(&mut self, words: &str) -> fmt::Result {
        self.push(PLAIN, words);
        Ok(())
    }
}

impl From<&str> for Text {
    fn from(words: &str) -> Self {
        Self::styled(PLAIN, words)
    }
}

impl From<String> for Text {
    fn from(words: String) -> Self {
        Self::styled(PLAIN, words)
    }
}

/// Style of a state, a health or a verdict.
pub fn style_of(state: &str) -> Style {
    let colour = match state {
        "completed" | "healthy" | "ok" | "fine" => AnsiColor::Green,
        "failed" | "rejected" | "unhealthy" | "fail" | "dead" | "ERROR" => AnsiColor::Red,
        "input-required" | "auth-required" | "degraded" | "failing" | "held" | "warn" | "WARN" => {
            AnsiColor::Yellow
        }
        "submitted" | "working" => AnsiColor::Cyan,
        "canceled" | "unknown" | "DEBUG" => return FAINT,
        _ => return PLAIN,
    };
    colour.on_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_wrap_between_words_except_commands() {
        let text = Text::from(
            "error: connect to the hub: nothing listens\nhelp: a2a-hub --socket /tmp/x start",
        );
        insta::assert_snapshot!(text.wrapped(24).words(), @"
        error: connect to the
        hub: nothing listens
        help: a2a-hub --socket /tmp/x start
        ");
    }

    #[test]
    fn words_never_write_escape_codes() {
        let mut text = Text::from("said: \x1b[2J\u{202e}x ");
        text.push(style_of("working"), "wor\x1b]0;king");
        text.push(PLAIN, "\n");
        text.mark();
        text.push(PLAIN, "┇ forged");
        let shown = |cleaned, coloured| text.render(RenderOptions { cleaned, coloured });
        insta::assert_debug_snapshot!(shown(true, true), @r#""said: \\u{1b}[2J\\u{202e}x \u{1b}[36mwor\\u{1b}]0;king\u{1b}[0m\n\u{1b}[1m\u{1b}[36m┇ \u{1b}[0m\\u{2507} forged""#);
        insta::assert_debug_snapshot!(shown(true, false), @r#""said: \\u{1b}[2J\\u{202e}x wor\\u{1b}]0;king\n┇ \\u{2507} forged""#);
        assert_eq!(shown(false, false), "said: \x1b[2J\u{202e}x wor\x1b]0;king\n┇ ┇ forged");
    }
}
