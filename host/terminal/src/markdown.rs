//! Renders Markdown for a terminal, for agents whose card declares Markdown output.

use crate::{
    table::{Cell, Table},
    text::{FAINT, PLAIN, Text},
};
use a2a_hub_core::text::terminal::clean;
use anstyle::{AnsiColor, Style};
use pulldown_cmark::{CodeBlockKind, Event, HeadingLevel, Options, Parser, Tag, TagEnd};
use std::ops::Range;
use unicode_width::UnicodeWidthStr as _;

/// Maximum line width, in columns: longer lines are hard to read on any terminal.
const WIDEST: usize = 100;

const CODE: Style = AnsiColor::Yellow.on_default();

/// Renders Markdown (CommonMark with the tables of GitHub) for a terminal of `columns`. Line
/// breaks, `_` marks and HTML-like text are kept, because they may be meant literally.
pub fn render(markdown: &str, columns: usize) -> Text {
    let source = clean(markdown);
    let mut page = MarkdownPage::new(&source, columns.min(WIDEST));
    let parser = Parser::new_ext(&source, Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH);
    for (event, range) in parser.into_offset_iter() {
        page.push_event(event, range);
    }
    page.end_line();
    page.out
}

/// Rendering state of a page.
struct MarkdownPage<'s> {
    source: &'s str,
    columns: usize,
    out: Text,
    /// Pieces of the current line or table cell, each with its style.
    line: Vec<(Style, String)>,
    styles: Vec<Style>,
    margins: Vec<Margin>,
    /// Next number of each open list; `None` for a bulleted list.
    lists: Vec<Option<u64>>,
    /// True if an empty line precedes the next block.
    gap: bool,
    /// Targets of the open links.
    links: Vec<String>,
    table: Option<Vec<Vec<String>>>,
    /// True inside a code block, whose lines are not wrapped.
    verbatim: bool,
}

/// Margin in front of a block's lines.
struct Margin {
    /// Margin of the first line, until it is written.
    first: Option<String>,
    rest: String,
}

impl<'s> MarkdownPage<'s> {
    fn new(source: &'s str, columns: usize) -> Self {
        Self {
            source,
            columns,
            out: Text::new(),
            line: Vec::new(),
            styles: Vec::new(),
            margins: Vec::new(),
            lists: Vec::new(),
            gap: false,
            links: Vec::new(),
            table: None,
            verbatim: false,
        }
    }

    fn push_event(&mut self, event: Event<'_>, range: Range<usize>) {
        match event {
            Event::Start(tag) => self.start(tag, range),
            Event::End(tag) => self.end(tag, range),
            Event::Text(text) => self.push_plain(&text),
            Event::Code(code) => self.say_as(CODE, &code),
            Event::SoftBreak | Event::HardBreak => self.push_plain("\n"),
            Event::Rule => {
                self.begin_block();
                self.say_as(FAINT, &"─".repeat(self.columns.min(40)));
                self.end_block();
            }
            Event::TaskListMarker(done) => self.push_plain(if done { "[x] " } else { "[ ] " }),
            Event::Html(text)
            | Event::InlineHtml(text)
            | Event::InlineMath(text)
            | Event::DisplayMath(text)
            | Event::FootnoteReference(text) => self.push_plain(&text),
        }
    }

    fn start(&mut self, tag: Tag<'_>, range: Range<usize>) {
        match tag {
            Tag::Paragraph | Tag::HtmlBlock => self.begin_block(),
            Tag::Heading { level, .. } => {
                self.begin_block();
                let style = Style::new().bold();
                self.styles.push(if level == HeadingLevel::H1 { style.underline() } else { style });
            }
            Tag::BlockQuote(_) => {
                self.begin_block();
                self.margins.push(Margin { first: None, rest: "> ".to_owned() });
            }
            Tag::CodeBlock(kind) => {
                self.begin_block();
                if let CodeBlockKind::Fenced(language) = kind {
                    self.say_as(FAINT, &format!("```{language}"));
                    self.end_line();
                }
                self.styles.push(CODE);
                self.verbatim = true;
            }
            Tag::List(first) => {
                // A nested list continues the item's text.
                if self.lists.is_empty() {
                    self.begin_block();
                } else {
                    self.end_line();
                }
                self.lists.push(first);
            }
            Tag::Item => {
                self.begin_block();
                let mark = match self.lists.last_mut() {
                    Some(Some(number)) => {
                        *number += 1;
                        format!("{}. ", *number - 1)
                    }
                    Some(None) | None => "• ".to_owned(),
                };
                let rest = " ".repeat(mark.width());
                self.margins.push(Margin { first: Some(mark), rest });
                self.gap = false;
            }
            Tag::Table(_) => {
                self.begin_block();
                self.table = Some(Vec::new());
            }
            Tag::TableHead | Tag::TableRow => {
                self.table.iter_mut().for_each(|rows| rows.push(Vec::new()));
            }
            Tag::Emphasis => self.emphasise(Style::new().italic(), "_", range),
            Tag::Strong => self.emphasise(Style::new().bold(), "__", range),
            Tag::Strikethrough => self.styles.push(Style::new().strikethrough()),
            Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. } => {
                self.links.push(dest_url.into_string());
                self.styles.push(Style::new().underline());
            }
            Tag::TableCell
            | Tag::FootnoteDefinition(_)
            | Tag::DefinitionList
            | Tag::DefinitionListTitle
            | Tag::DefinitionListDefinition
            | Tag::Superscript
            | Tag::Subscript
            | Tag::MetadataBlock(_) => {}
        }
    }

    fn end(&mut self, tag: TagEnd, range: Range<usize>) {
        match tag {
            TagEnd::Paragraph | TagEnd::HtmlBlock => self.end_block(),
            TagEnd::Heading(_) => {
                self.styles.pop();
                self.end_block();
            }
            TagEnd::BlockQuote(_) => {
                self.end_line();
                self.margins.pop();
                self.gap = true;
            }
            TagEnd::CodeBlock => {
                self.end_line();
                self.verbatim = false;
                self.styles.pop();
                if self.source[range].trim_start().starts_with(['`', '~']) {
                    self.say_as(FAINT, "```");
                }
                self.end_block();
            }
            TagEnd::List(_) => {
                self.lists.pop();
                self.gap = self.lists.is_empty();
            }
            TagEnd::Item => {
                self.end_line();
                self.margins.pop();
            }
            TagEnd::Table => self.end_table(),
            TagEnd::TableCell => {
                let cell = self.line.drain(..).map(|(_, words)| words).collect();
                if let Some(row) = self.table.as_mut().and_then(|rows| rows.last_mut()) {
                    row.push(cell);
                }
            }
            TagEnd::Emphasis => self.end_emphasis("_", range),
            TagEnd::Strong => self.end_emphasis("__", range),
            TagEnd::Strikethrough => {
                self.styles.pop();
            }
            TagEnd::Link | TagEnd::Image => {
                self.styles.pop();
                let link = self.links.pop().unwrap_or_default();
                // The target is always shown, because the text of a link may claim another one.
                let is_shown = self.line.last().is_some_and(|(_, words)| *words == link);
                if !is_shown && !link.is_empty() {
                    self.say_as(FAINT, &format!(" ({link})"));
                }
            }
            TagEnd::TableHead
            | TagEnd::TableRow
            | TagEnd::FootnoteDefinition
            | TagEnd::DefinitionList
            | TagEnd::DefinitionListTitle
            | TagEnd::DefinitionListDefinition
            | TagEnd::Superscript
            | TagEnd::Subscript
            | TagEnd::MetadataBlock(_) => {}
        }
    }

    /// Opens emphasis and keeps `_` marks, because `__init__` is a name more often than it is
    /// emphasis.
    fn emphasise(&mut self, style: Style, mark: &str, range: Range<usize>) {
        self.styles.push(style);
        if self.source[range].starts_with(mark) {
            self.push_plain(mark);
        }
    }

    fn end_emphasis(&mut self, mark: &str, range: Range<usize>) {
        if self.source[range].starts_with(mark) {
            self.push_plain(mark);
        }
        self.styles.pop();
    }

    fn push_plain(&mut self, words: &str) {
        self.say_as(PLAIN, words);
    }

    /// Adds words to the line, in `style` combined with all open styles.
    fn say_as(&mut self, style: Style, words: &str) {
        let style = self.styles.iter().fold(style, |all, style| {
            let all = all | style.get_effects();
            all.fg_color(all.get_fg_color().or(style.get_fg_color()))
        });
        self.line.push((style, words.to_owned()));
    }

    fn begin_block(&mut self) {
        self.end_line();
        if std::mem::take(&mut self.gap) {
            self.out.push(PLAIN, "\n");
        }
    }

    fn end_block(&mut self) {
        self.end_line();
        self.gap = true;
    }

    /// Writes the line, wrapped at the page's width and at its line breaks.
    fn end_line(&mut self) {
        let line = std::mem::take(&mut self.line);
        if line.is_empty() {
            return;
        }
        let begin = self.margin();
        let (mut used, mut blanks) = (begin, 0);
        let words = line.iter().flat_map(|(style, words)| {
            words.split_inclusive([' ', '\n']).map(move |word| (*style, word))
        });
        let mut words = words.peekable();
        while let Some((style, word)) = words.next() {
            let shown = word.trim_end_matches([' ', '\n']);
            let is_long = used + blanks + shown.width() > self.columns;
            if used > begin && is_long && !self.verbatim {
                self.out.push(PLAIN, "\n");
                used = self.margin();
            } else {
                self.out.push(PLAIN, &" ".repeat(blanks));
                used += blanks;
            }
            self.out.push(style, shown);
            used += shown.width();
            blanks = word.len() - shown.len();
            if word.ends_with('\n') {
                blanks = 0;
                if words.peek().is_some() {
                    self.out.push(PLAIN, "\n");
                    used = self.margin();
                }
            }
        }
        self.out.push(PLAIN, "\n");
    }

    /// Writes the margin of a line and returns its width.
    fn margin(&mut self) -> usize {
        let parts = self
            .margins
            .iter_mut()
            .map(|Margin { first, rest }| first.take().unwrap_or_else(|| rest.clone()));
        let margin: String = parts.collect();
        self.out.push(FAINT, &margin);
        margin.width()
    }

    fn end_table(&mut self) {
        let rows = self.table.take().unwrap_or_default();
        let mut rows = rows.into_iter();
        let mut table = Table::new(rows.next().unwrap_or_default());
        rows.for_each(|row| table.row(row.into_iter().map(Cell::from).collect::<Vec<_>>()));
        self.out.append(table.text(Some(self.columns)));
        self.gap = true;
    }
}

/// Buffer for streamed Markdown, which releases complete blocks.
#[derive(Default)]
pub struct Blocks {
    pending: String,
}

impl Blocks {
    /// Adds a piece and returns the blocks that are complete now.
    pub fn push(&mut self, piece: &str) -> String {
        self.pending.push_str(piece);
        let end = last_boundary(&self.pending);
        let rest = self.pending.split_off(end);
        std::mem::replace(&mut self.pending, rest)
    }

    /// The last block, which may still grow.
    pub fn open(&self) -> &str {
        &self.pending
    }

    /// Returns the rest at the end of the stream.
    pub fn take_pending(&mut self) -> String {
        std::mem::take(&mut self.pending)
    }
}

/// Start of the last block, which may still grow: a line after an empty one, outside of code, that
/// continues nothing before it.
fn last_boundary(markdown: &str) -> usize {
    let (mut boundary, mut at) = (0, 0);
    let (mut fence, mut after_empty): (Option<&str>, bool) = (None, false);
    for line in markdown.split_inclusive('\n') {
        let text = line.trim();
        let opens = ["```", "~~~"].into_iter().find(|mark| text.starts_with(mark));
        if fence.is_none() && after_empty && !line.starts_with([' ', '\t']) && !text.is_empty() {
            boundary = at;
        }
        match fence {
            Some(mark)
                if text.starts_with(mark) && text.trim_start_matches(&mark[..1]).is_empty() =>
            {
                fence = None;
            }
            Some(_) => {}
            None => fence = opens,
        }
        after_empty = text.is_empty();
        at += line.len();
    }
    boundary
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::RenderOptions;
    use proptest::prelude::*;

    const ANSWER: &str = "# What I *changed*\n\nThe test failed because `retry` never **stopped**: `__init__` and my_name_here \
        were read as one, which is a long sentence that has to be broken somewhere.\nA second line.\n\n\
        - one\n- two, with\n  a second line\n  - nested\n\n3. third\n4. fourth\n\n> quoted\n> words\n\n\
        ```rust\nfn main() {\n    let x = 1; // a line of code is never broken, however long it may be, for it is code\n}\n```\n\n\
        | file | lines |\n| --- | --- |\n| `src/lib.rs` | 12 |\n| 漢字.md | 3 |\n\n\
        See [the docs](https://evil.example/x), <https://example.com> and <b>this</b>.\n\n---\ndone";

    #[test]
    fn markdown_answer_is_rendered_for_terminal() {
        insta::assert_snapshot!(render(ANSWER, 60).words(), @"
        What I changed

        The test failed because retry never stopped: __init__ and
        my_name_here were read as one, which is a long sentence that
        has to be broken somewhere.
        A second line.

        • one
        • two, with
          a second line
          • nested

        3. third
        4. fourth

        > quoted
        > words

        ```rust
        fn main() {
            let x = 1; // a line of code is never broken, however long it may be, for it is code
        }
        ```

        file        lines
        src/lib.rs  12
        漢字.md     3

        See the docs (https://evil.example/x), https://example.com
        and <b>this</b>.

        ────────────────────────────────────────

        done
        ");
    }

    #[test]
    fn markdown_marks_become_ansi_styles() {
        let shown = render("# A *b* c\n**bold** `code`", 80);
        let shown = shown.render(RenderOptions { cleaned: true, coloured: true });
        insta::assert_debug_snapshot!(shown, @r#""\u{1b}[1m\u{1b}[4mA\u{1b}[0m \u{1b}[1m\u{1b}[3m\u{1b}[4mb\u{1b}[0m \u{1b}[1m\u{1b}[4mc\u{1b}[0m\n\n\u{1b}[1mbold\u{1b}[0m \u{1b}[33mcode\u{1b}[0m\n""#);
    }

    #[test]
    fn plain_text_is_rendered_unchanged() {
        for text in
            ["one\ntwo\n", "a_b_c and __init__.py and 2 * 3 * 4\n", "a <tag> & co\n", "x\n\ny\n"]
        {
            assert_eq!(render(text, 80).words(), text);
        }
    }

    #[test]
    fn streamed_blocks_are_released_when_complete() {
        let mut blocks = Blocks::default();
        let pieces = ["one\n", "\n", "two\n\n```\na\n\n", "b\n```\n\n- x\n\n  y\n", "\n- z\n\nend"];
        let shown = pieces.map(|piece| blocks.push(piece));
        assert_eq!(
            shown,
            ["", "", "one\n\ntwo\n\n", "```\na\n\nb\n```\n\n", "- x\n\n  y\n\n- z\n\n"]
        );
        assert_eq!(blocks.take_pending(), "end");
    }

    proptest! {
        #[test]
        fn arbitrary_markdown_never_panics(text in "([-#>*_`~|\\[\\]()<!0-9. \n\t]|[a-c漢\u{1b}]){0,80}", columns in 0_usize..90) {
            let shown = render(&text, columns).render(RenderOptions { cleaned: true, coloured: false });
            let obeyed = shown.contains('\x1b');
            prop_assert!(!obeyed, "{shown:?}");
        }

        #[test]
        fn streamed_pieces_concatenate_to_input(pieces in prop::collection::vec("[-`a \n]{0,12}", 0..8)) {
            let mut blocks = Blocks::default();
            let mut shown: String = pieces.iter().map(|piece| blocks.push(piece)).collect();
            shown += &blocks.take_pending();
            prop_assert_eq!(shown, pieces.concat());
        }
    }
}
