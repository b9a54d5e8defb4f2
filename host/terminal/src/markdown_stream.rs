//! Markdown that is printed while it arrives: complete blocks stay on the screen, and the open
//! block is drawn again as it grows.

use crate::{
    markdown::{Blocks, render},
    text::{RenderOptions, Text},
};
use std::fmt::Write as _;
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// Rows of the screen that the open block leaves free: for the progress line and a note.
const FREE_ROWS: usize = 3;

/// Maximum number of times that an open block is drawn while it grows to twice its size: drawing
/// costs as much as the block is long. Blocks of fewer bytes are drawn with each piece.
const MAX_DRAWS_PER_DOUBLING: usize = 64;

/// Look of streamed Markdown: it is only drawn on terminals with colours.
const RENDER_OPTIONS: RenderOptions = RenderOptions { cleaned: true, coloured: true };

/// Size of the terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScreenSize {
    /// Width in columns.
    pub columns: usize,
    /// Height in rows.
    pub rows: usize,
}

/// Markdown of one answer on a terminal, whose cursor stays below it.
#[derive(Default)]
pub struct MarkdownStream {
    blocks: Blocks,
    /// Lines of the open block on the screen.
    drawn: Vec<StyledLine>,
    /// Number of the first lines of `drawn` that stay as they are: they may have left the screen.
    fixed: usize,
    /// Size, in bytes, of the open block when it was drawn; 0 if it is not on the screen.
    drawn_size: usize,
    /// True once a block was printed: an empty line precedes the next one.
    has_begun: bool,
    /// Width at which `drawn` was printed.
    columns: usize,
}

/// Line of rendered Markdown.
#[derive(Clone, Debug, PartialEq, Eq)]
struct StyledLine {
    /// Text with the terminal's codes.
    shown: String,
    /// Number of columns.
    width: usize,
    /// Text without codes; empty unless the line is wider than the terminal.
    long: String,
}

impl MarkdownStream {
    /// Adds a piece; returns the characters and codes to print.
    pub fn push(&mut self, piece: &str, screen: ScreenSize) -> String {
        let complete = self.blocks.push(piece);
        let mut out = self.draw_complete(&complete, screen);
        let size = self.blocks.open().len();
        let has_grown = size.abs_diff(self.drawn_size) >= size / MAX_DRAWS_PER_DOUBLING;
        if has_grown && !self.blocks.open().trim().is_empty() {
            let open = self.blocks.open().to_owned();
            out += &self.draw(&open, screen);
            self.drawn_size = size;
            self.fix_beyond(screen);
        }
        out
    }

    /// Ends the answer; returns the characters and codes to print.
    pub fn end(&mut self, screen: ScreenSize) -> String {
        let rest = self.blocks.take_pending();
        self.draw_complete(&rest, screen)
    }

    /// Prints whole Markdown in place of the open block, or below what was printed.
    pub fn draw_complete(&mut self, markdown: &str, screen: ScreenSize) -> String {
        if markdown.trim().is_empty() {
            return String::new();
        }
        let out = self.draw(markdown, screen);
        self.end_block();
        out
    }

    /// Records that other text was printed: an empty line separates the next block from it.
    pub fn follow_text(&mut self) {
        self.has_begun = true;
    }

    /// Takes the open block off the screen, so that something else can be printed in its place.
    pub fn hide(&mut self, screen: ScreenSize) -> String {
        let retained = self.fixed.min(self.drawn.len());
        let out = erase(&self.drawn[retained..], screen.columns);
        self.drawn.truncate(retained);
        self.drawn_size = 0;
        out
    }

    /// Draws the open block again, below what was printed since [`Self::hide`].
    pub fn show(&mut self, screen: ScreenSize) -> String {
        self.push("", screen)
    }

    /// Draws Markdown in place of the open block: only the lines that changed.
    fn draw(&mut self, markdown: &str, screen: ScreenSize) -> String {
        if self.columns != screen.columns {
            // The terminal has wrapped the lines anew, so that their rows are unknown.
            self.fixed = self.drawn.len();
            self.columns = screen.columns;
        }
        let lines = lines(markdown, screen.columns, self.has_begun);
        let same = self.drawn.iter().zip(&lines).take_while(|(old, new)| old == new).count();
        let from = same.max(self.fixed);
        let mut out = erase(self.drawn.get(from..).unwrap_or_default(), screen.columns);
        for line in lines.iter().skip(from) {
            out += &line.shown;
            out.push('\n');
        }
        // Fixed lines count as they were printed.
        let fixed = self.fixed.min(self.drawn.len());
        self.drawn.truncate(fixed);
        self.drawn.extend(lines.into_iter().skip(fixed));
        out
    }

    fn end_block(&mut self) {
        self.has_begun |= !self.drawn.is_empty();
        self.drawn.clear();
        self.fixed = 0;
        self.drawn_size = 0;
    }

    /// Fixes the lines above those that are surely on the screen.
    fn fix_beyond(&mut self, screen: ScreenSize) {
        let mut free_rows = screen.rows.saturating_sub(FREE_ROWS).max(1);
        let mut first = self.drawn.len();
        while let Some(line) = first.checked_sub(1).map(|at| &self.drawn[at]) {
            match free_rows.checked_sub(line.rows(screen.columns)) {
                Some(remaining) => free_rows = remaining,
                None => break,
            }
            first -= 1;
        }
        self.fixed = self.fixed.max(first);
    }
}

impl StyledLine {
    /// Number of rows on a terminal of `columns`, which breaks longer lines between characters.
    fn rows(&self, columns: usize) -> usize {
        if self.width <= columns || columns == 0 {
            return 1;
        }
        let (mut rows, mut used) = (1, 0);
        for width in self.long.chars().filter_map(|c| c.width()) {
            // A wide character does not begin in the last column.
            if used + width > columns {
                rows += 1;
                used = 0;
            }
            used += width;
        }
        rows
    }
}

/// Lines of rendered Markdown, after an empty one if others precede it.
fn lines(markdown: &str, columns: usize, is_more: bool) -> Vec<StyledLine> {
    let rendered = render(markdown, columns);
    if rendered.words().is_empty() {
        return Vec::new();
    }
    let mut text = Text::from(if is_more { "\n" } else { "" });
    text.append(rendered);
    let plain = text.render(RenderOptions { coloured: false, ..RENDER_OPTIONS });
    let shown = text.render(RENDER_OPTIONS);
    let lines = shown.lines().zip(plain.lines());
    let lines = lines.map(|(shown, plain)| {
        let width = plain.width();
        let long = if width > columns { plain.to_owned() } else { String::new() };
        StyledLine { shown: shown.to_owned(), width, long }
    });
    lines.collect()
}

/// Codes that erase the lines above the cursor, which is at the beginning of a row.
fn erase(lines: &[StyledLine], columns: usize) -> String {
    let rows: usize = lines.iter().map(|line| line.rows(columns)).sum();
    let mut out = String::new();
    if rows > 0 {
        // Writing to a string cannot fail.
        let _ = write!(out, "\x1b[{rows}A\r\x1b[J");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SCREEN: ScreenSize = ScreenSize { columns: 20, rows: 8 };

    /// Terminal that obeys the codes of this module, of any height.
    #[derive(Default)]
    struct Rows {
        rows: Vec<String>,
        /// Rows that have left a screen of this many rows cannot be changed.
        height: usize,
    }

    impl Rows {
        fn print(&mut self, text: &str) {
            for (at, part) in text.split("\x1b[").enumerate() {
                let rest = match part.split_once(|c: char| c.is_ascii_alphabetic()) {
                    Some((up, rest)) if at > 0 && part[up.len()..].starts_with('A') => {
                        let up: usize = up.parse().unwrap();
                        assert!(up < self.height, "{up} rows up of {}", self.height);
                        self.rows.truncate(self.rows.len() - up);
                        rest
                    }
                    // The erased rows are gone already, and styles have no rows.
                    Some((_, rest)) if at > 0 => rest,
                    Some(_) | None => part,
                };
                let rest = rest.trim_start_matches('\r');
                for line in rest.split_inclusive('\n') {
                    if self.rows.last().is_none_or(|row| row.ends_with('\n')) {
                        self.rows.push(String::new());
                    }
                    if let Some(row) = self.rows.last_mut() {
                        row.push_str(line);
                    }
                }
            }
        }

        fn text(&self) -> String {
            self.rows.concat()
        }
    }

    fn streamed(pieces: &[&str], screen: ScreenSize) -> Vec<String> {
        let (mut stream, mut rows) =
            (MarkdownStream::default(), Rows { height: screen.rows, ..Rows::default() });
        let mut shown = Vec::new();
        for piece in pieces {
            rows.print(&stream.push(piece, screen));
            shown.push(rows.text());
        }
        rows.print(&stream.end(screen));
        shown.push(rows.text());
        shown
    }

    #[test]
    fn open_paragraph_is_shown_at_once() {
        let shown = streamed(&["The *te", "st* fai", "led.\n\nNext", " block"], SCREEN);
        assert_eq!(
            shown,
            [
                "The *te\n",
                "The test fai\n",
                "The test failed.\n\nNext\n",
                "The test failed.\n\nNext block\n",
                "The test failed.\n\nNext block\n",
            ]
        );
    }

    #[test]
    fn only_changed_lines_are_drawn_again() {
        let mut stream = MarkdownStream::default();
        stream.push("```\none\ntwo\n", SCREEN);
        let added = stream.push("three\n", SCREEN);
        assert!(!added.contains("one") && added.contains("three"), "{added:?}");
    }

    #[test]
    fn long_block_is_drawn_rarely() {
        let mut stream = MarkdownStream::default();
        let mut draws = (0..1_000).map(|_| stream.push("a line\n", SCREEN));
        let count = draws.by_ref().filter(|drawn| !drawn.is_empty()).count();
        assert!((100..500).contains(&count), "{count}");
        drop(draws);
        let rest = stream.end(SCREEN);
        assert!(rest.ends_with("a line\n"), "{rest:?}");
    }

    #[test]
    fn lines_beyond_screen_are_not_touched() {
        let code: Vec<String> = (0..40).map(|n| format!("line {n}\n")).collect();
        let mut pieces = vec!["```\n"];
        pieces.extend(code.iter().map(String::as_str));
        pieces.push("```\n\nend");
        let last = streamed(&pieces, SCREEN).pop().unwrap();
        assert_eq!(last, format!("```\n{}```\n\nend\n", code.concat()));
    }

    #[test]
    fn note_is_printed_above_open_block() {
        let (mut stream, mut rows) =
            (MarkdownStream::default(), Rows { height: SCREEN.rows, ..Rows::default() });
        rows.print(&stream.push("one two", SCREEN));
        rows.print(&stream.hide(SCREEN));
        rows.print("· reads a.rs\n");
        rows.print(&stream.show(SCREEN));
        rows.print(&stream.push(" three", SCREEN));
        rows.print(&stream.end(SCREEN));
        assert_eq!(rows.text(), "· reads a.rs\none two three\n");
    }

    #[test]
    fn long_line_of_code_counts_its_rows() {
        let line = |plain: &str| lines(&format!("```\n{plain}\n```"), 10, false).remove(1);
        assert_eq!(line("0123456789").rows(10), 1);
        assert_eq!(line("01234567890").rows(10), 2);
        assert_eq!(line("012345678漢").rows(10), 2);
        assert_eq!(line(&"漢".repeat(11)).rows(10), 3);
    }

    proptest! {
        #[test]
        fn streamed_answer_ends_as_rendered_whole(
            pieces in prop::collection::vec("[a-c \n*`]{0,9}|\n\n|- |[|]a[|]", 0..12),
        ) {
            // `Rows` does not break the lines of code that are wider than the terminal.
            let screen = ScreenSize { columns: 200, rows: 500 };
            let pieces: Vec<&str> = pieces.iter().map(String::as_str).collect();
            let shown = streamed(&pieces, screen).pop().unwrap();
            let mut blocks = Blocks::default();
            let mut parts: Vec<String> = pieces.iter().map(|piece| blocks.push(piece)).collect();
            parts.push(blocks.take_pending());
            let mut expected = String::new();
            for part in parts.iter().filter(|part| !part.trim().is_empty()) {
                let is_more = !expected.is_empty();
                let lines = lines(part, 200, is_more);
                expected.extend(lines.iter().map(|line| format!("{}\n", line.shown)));
            }
            let plain = |text: &str| anstyle_free(text);
            prop_assert_eq!(plain(&shown), plain(&expected));
        }
    }

    /// The text without codes of styles.
    fn anstyle_free(text: &str) -> String {
        let parts = text.split("\x1b[").enumerate();
        let parts = parts.map(|(at, part)| match part.split_once('m') {
            Some((_, rest)) if at > 0 => rest,
            Some(_) | None => part,
        });
        parts.collect()
    }
}
