//! Tables: fitted to a terminal with headers, or tab-separated and untruncated for pipes and files.

use crate::{
    text::{FAINT, PLAIN, Text},
    width::{cut, fold, one_line, wrapped},
};
use anstyle::Style;
use unicode_width::UnicodeWidthStr as _;

/// Separator between columns.
const GAP: &str = "  ";

/// Minimum width of a column that is shrunk.
const MIN_WIDTH: usize = 8;

/// Minimum width of a column on a terminal that is too narrow even for columns of [`MIN_WIDTH`].
const NARROW: usize = 4;

/// Style of the part of an id that suffices to name it.
const UNIQUE: Style = Style::new().bold();

/// Table of rows, each with lines below it.
pub struct Table {
    headers: Vec<String>,
    rows: Vec<TableRow>,
}

struct TableRow {
    cells: Vec<Cell>,
    /// Indented lines below the row.
    notes: Vec<String>,
}

/// Displayed part of an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Short<'i> {
    /// Beginning or end of the id that no other id has.
    pub text: &'i str,
    /// Length of the end of `text` that suffices to tell the id from the others; 0 if `text` is a
    /// beginning.
    pub unique: usize,
}

/// Content of a cell.
pub struct Cell {
    style: Style,
    words: String,
    /// Short form for terminals, which is never truncated.
    short: Option<String>,
    /// Length of the end of the short form that is highlighted; 0 highlights nothing.
    unique: usize,
    /// Branch of a tree in front of the content, whose blanks count.
    branch: String,
}

impl Cell {
    /// Creates a cell with a style.
    pub fn styled(style: Style, words: impl Into<String>) -> Self {
        Self { style, words: words.into(), short: None, unique: 0, branch: String::new() }
    }

    /// Creates a cell for an id with an unambiguous short form.
    pub fn named(name: &str, short: &str) -> Self {
        Self { short: Some(short.to_owned()), ..Self::from(name) }
    }

    /// Creates a cell for a name that is never truncated, of something that cannot be used.
    pub fn faint_name(name: &str) -> Self {
        Self { style: FAINT, ..Self::named(name, name) }
    }

    /// Creates a cell for an id whose displayed part has a highlighted end.
    pub fn id(id: &str, Short { text, unique }: Short<'_>) -> Self {
        Self { unique, ..Self::named(id, text) }
    }

    /// Creates a cell for an entry of a tree.
    pub fn branch(branch: String, words: &str) -> Self {
        Self { branch, ..Self::from(words) }
    }

    /// Returns the content as styled pieces of one line.
    fn pieces(&self, columns: usize) -> Vec<(Style, String)> {
        let line = cut(&self.line(), columns);
        match line.len().checked_sub(self.unique).filter(|_| self.unique > 0) {
            Some(at) if line.is_char_boundary(at) => {
                let (rest, unique) = line.split_at(at);
                vec![(FAINT, rest.to_owned()), (UNIQUE, unique.to_owned())]
            }
            Some(_) | None => vec![(self.style, line)],
        }
    }

    /// Returns the content as one line without control characters.
    fn line(&self) -> String {
        self.branch.clone() + &fold(self.short.as_ref().unwrap_or(&self.words))
    }
}

impl<T: Into<String>> From<T> for Cell {
    fn from(words: T) -> Self {
        Self::styled(PLAIN, words)
    }
}

impl Table {
    /// Creates a table with these headers and no rows.
    pub fn new(headers: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self { headers: headers.into_iter().map(Into::into).collect(), rows: Vec::new() }
    }

    /// Adds a row. Surplus cells without a header are dropped.
    pub fn row(&mut self, cells: impl Into<Vec<Cell>>) {
        let mut cells = cells.into();
        cells.truncate(self.headers.len());
        self.rows.push(TableRow { cells, notes: Vec::new() });
    }

    /// Adds a line below the last row.
    pub fn add_note(&mut self, line: impl Into<String>) {
        if let Some(row) = self.rows.last_mut() {
            row.notes.push(line.into());
        }
    }

    /// Renders the table for a terminal of `columns`, or for a pipe or a file.
    pub fn text(&self, columns: Option<usize>) -> Text {
        match columns {
            Some(columns) => self.fitted(columns),
            None => self.separated(),
        }
    }

    /// Renders one row per line with untruncated, tab-separated cells and without headers, for
    /// `cut` and `awk`.
    fn separated(&self) -> Text {
        let mut out = Text::new();
        for TableRow { cells, notes } in &self.rows {
            let cells: Vec<_> =
                cells.iter().map(|cell| cell.branch.clone() + &one_line(&cell.words)).collect();
            out.push(PLAIN, &(cells.join("\t") + "\n"));
            for line in notes {
                out.push(PLAIN, &format!("\t{}\n", one_line(line)));
            }
        }
        out
    }

    fn fitted(&self, columns: usize) -> Text {
        let widths = self.widths(columns);
        let mut out = Text::new();
        let header = self.headers.iter().zip(&widths);
        let header = header.map(|(header, width)| vec![(FAINT, cut(&fold(header), *width))]);
        line(&mut out, header, &widths);
        for TableRow { cells, notes } in &self.rows {
            let cells = cells.iter().zip(&widths).map(|(cell, width)| cell.pieces(*width));
            line(&mut out, cells, &widths);
            for note in notes {
                for line in wrapped(&one_line(note), columns.saturating_sub(4).max(MIN_WIDTH)) {
                    out.push(PLAIN, &format!("    {line}\n"));
                }
            }
        }
        out
    }

    /// Computes the columns' widths: the width of the widest cell. If the sum exceeds `columns`,
    /// the widest columns shrink first; columns with ids never shrink.
    fn widths(&self, columns: usize) -> Vec<usize> {
        let mut widths: Vec<_> = self.headers.iter().map(|it| fold(it).width()).collect();
        let mut gives_way = vec![true; widths.len()];
        for row in &self.rows {
            for (at, cell) in row.cells.iter().enumerate() {
                widths[at] = widths[at].max(cell.line().width());
                gives_way[at] &= cell.short.is_none();
            }
        }
        let gaps = GAP.len() * widths.len().saturating_sub(1);
        for min_width in [MIN_WIDTH, NARROW] {
            while widths.iter().sum::<usize>() + gaps > columns {
                let wide = (0..widths.len()).filter(|&at| gives_way[at] && widths[at] > min_width);
                let Some(widest) = wide.max_by_key(|&at| widths[at]) else { break };
                widths[widest] -= 1;
            }
        }
        widths
    }
}

fn line(out: &mut Text, cells: impl Iterator<Item = Vec<(Style, String)>>, widths: &[usize]) {
    let last = widths.len().saturating_sub(1);
    for (at, pieces) in cells.enumerate() {
        let mut taken = 0;
        for (style, words) in pieces {
            out.push(style, &words);
            taken += words.width();
        }
        if at < last {
            out.push(PLAIN, &(" ".repeat(widths[at].saturating_sub(taken)) + GAP));
        }
    }
    out.push(PLAIN, "\n");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::style_of;
    use proptest::prelude::*;

    fn table() -> Table {
        let mut table = Table::new(["TASK", "STATE", "ASKED"]);
        let working = Cell::styled(style_of("working"), "working");
        table.row([
            Cell::named("01a1fc8f-a111-7715-9c95-8a642d72e498", "01a1fc8f-a111"),
            working,
            "delete the old fixtures\nand the generated code that nobody needs any more".into(),
        ]);
        table.row([
            Cell::named("t", "t"),
            "completed".into(),
            "翻訳してください、この長い文章を全部".into(),
        ]);
        table.add_note("failed 5 times: connection refused");
        table.row([Cell::named("x\x1b[2J", "x\x1b[2J"), "".into(), "a\tb\u{202e}".into()]);
        table
    }

    #[test]
    fn a_table_fits_its_terminal() {
        insta::assert_snapshot!(table().text(Some(120)).words(), @r"
        TASK           STATE      ASKED
        01a1fc8f-a111  working    delete the old fixtures and the generated code that nobody needs any more
        t              completed  翻訳してください、この長い文章を全部
            failed 5 times: connection refused
        x\u{1b}[2J                a b\u{202e}
        ");
        insta::assert_snapshot!(table().text(Some(50)).words(), @r"
        TASK           STATE      ASKED
        01a1fc8f-a111  working    delete the old fixtures…
        t              completed  翻訳してください、この…
            failed 5 times: connection refused
        x\u{1b}[2J                a b\u{202e}
        ");
    }

    #[test]
    fn pipe_gets_untruncated_tab_separated_cells() {
        let shown = table().text(None).words().replace('\t', " → ");
        let shown = shown.replace('\x1b', "ESC").replace('\u{202e}', "RLO");
        insta::assert_snapshot!(shown, @"
        01a1fc8f-a111-7715-9c95-8a642d72e498 → working → delete the old fixtures and the generated code that nobody needs any more
        t → completed → 翻訳してください、この長い文章を全部
         → failed 5 times: connection refused
        xESC[2J →  → a bRLO
        ");
    }

    proptest! {
        #[test]
        fn rows_never_exceed_terminal_width(
            cells in prop::collection::vec(("\\PC{0,40}", "[a漢 ]{0,60}"), 0..6),
            columns in 30_usize..200,
        ) {
            let mut table = Table::new(["ONE", "OTHER"]);
            for (one, other) in cells {
                table.row([one.into(), other.into()]);
                table.add_note("漢".repeat(70));
            }
            for line in table.text(Some(columns)).words().lines() {
                prop_assert!(line.width() <= columns, "{line:?}");
            }
        }
    }
}
