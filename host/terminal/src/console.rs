//! Output of the command line, on standard output and standard error. Output to a terminal is
//! sanitised as a whole, because the parts that came from outside are no longer known; output to a
//! pipe or a file is unchanged.

use crate::{
    markdown_stream::ScreenSize,
    pager::read_by,
    system::{self, OutputStream},
    text::{RenderOptions, Text},
};
use a2a_hub_core::text::terminal;
use serde_json::Value;
use std::{
    io::{self, IsTerminal, Write as _},
    time::Duration,
};
use tokio::time::sleep;

/// Interval at which a closed standard output is polled for.
const POLL_INTERVAL: Duration = Duration::from_millis(250);

/// Width, in columns, of a terminal that does not report one.
const COLUMNS: usize = 80;

/// Height, in rows, of a terminal that does not report one.
const ROWS: usize = 24;

/// Output options of the user.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wish {
    /// Prints every byte unchanged, to a terminal as well.
    pub raw: bool,
    /// Prints no colours.
    pub plain: bool,
}

/// Output streams of the command line. Cheap to copy.
#[derive(Clone, Copy, Debug)]
pub struct Console {
    out: Outlet,
    err: Outlet,
}

/// One output stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Outlet {
    /// Width of the terminal, in columns; `None` for a pipe or a file.
    columns: Option<usize>,
    render_options: RenderOptions,
}

impl Outlet {
    fn for_output(output: OutputStream, wish: Wish) -> Self {
        let is_terminal = match output {
            OutputStream::Stdout => io::stdout().is_terminal(),
            OutputStream::Stderr => io::stderr().is_terminal(),
        };
        let columns = is_terminal.then(|| {
            let size = system::size(output);
            size.map(|(columns, _)| columns).filter(|columns| *columns > 0).unwrap_or(COLUMNS)
        });
        let plain = wish.plain || (is_terminal && !system::understands_escapes());
        Self::new(columns, Wish { plain, ..wish })
    }

    fn new(columns: Option<usize>, wish: Wish) -> Self {
        let is_terminal = columns.is_some();
        let cleaned = is_terminal && !wish.raw;
        let coloured = is_terminal && !wish.plain && !wish.raw;
        Self { columns, render_options: RenderOptions { cleaned, coloured } }
    }

    /// Wraps sentences at the terminal's width; nothing where every byte is printed unchanged.
    fn fitted(self, text: Text) -> Text {
        match self.columns.filter(|_| self.render_options.cleaned) {
            Some(columns) => text.wrapped(columns),
            None => text,
        }
    }

    /// Returns JSON text as it is printed to this stream.
    fn json(self, json: &str) -> String {
        if self.render_options.cleaned {
            terminal::clean_json(json).into_owned()
        } else {
            json.to_owned()
        }
    }
}

impl Console {
    /// Creates the console of this process.
    pub fn new(wish: Wish) -> Self {
        Self {
            out: Outlet::for_output(OutputStream::Stdout, wish),
            err: Outlet::for_output(OutputStream::Stderr, wish),
        }
    }

    /// Prints a result. Standard output holds nothing but results.
    pub fn print(self, text: &Text) -> io::Result<()> {
        print(&text.render(self.out.render_options))
    }

    /// Prints the bytes of a result as they are. To be used where standard output is no terminal.
    ///
    /// # Errors
    ///
    /// Standard output cannot be written.
    pub fn print_bytes(self, bytes: &[u8]) -> io::Result<()> {
        let mut out = io::stdout().lock();
        out.write_all(bytes)?;
        out.flush()
    }

    /// Prints a whole result, whose sentences are wrapped at the terminal's width.
    ///
    /// # Errors
    ///
    /// Standard output cannot be written.
    pub fn print_fitted(self, text: Text) -> io::Result<()> {
        self.print(&self.out.fitted(text))
    }

    /// Shows a long result: by the user's pager on a terminal, which is a command for the shell.
    ///
    /// # Errors
    ///
    /// Standard output cannot be written.
    pub fn page(self, text: &Text, pager: &str) -> io::Result<()> {
        let page = text.render(self.out.render_options);
        let is_read = self.out.columns.is_some()
            && io::stdin().is_terminal()
            && read_by("sh", &["-c", pager], &page);
        if is_read { Ok(()) } else { print(&page) }
    }

    /// Prints a result for programs, as one line of JSON.
    pub fn print_json(self, value: &Value) -> io::Result<()> {
        print(&self.out.json(&format!("{value}\n")))
    }

    /// Prints lines of serialized JSON.
    pub fn print_json_lines(self, lines: &str) -> io::Result<()> {
        print(&self.out.json(lines))
    }

    /// Prints a note on standard error, as a line.
    pub fn note(self, text: impl Into<Text>) {
        self.write_stderr(&self.err.fitted(text.into()), "\n");
    }

    /// Prints a prompt on standard error, without a line break.
    pub fn prompt(self, text: &Text) {
        self.write_stderr(text, "");
    }

    /// Prints a transient line on standard error.
    pub fn draw(self, line: &Text) {
        self.write_stderr(line, "");
    }

    /// Erases the transient line.
    pub fn take_back(self) {
        // An error of standard error cannot be reported anywhere.
        let _ = write!(io::stderr(), "\r\x1b[2K");
    }

    fn write_stderr(self, text: &Text, end: &str) {
        // An error of standard error cannot be reported anywhere.
        let _ = write!(io::stderr(), "{}{end}", text.render(self.err.render_options));
    }

    /// Prints a formatted event of the hub's log, as a line on standard error.
    pub fn log(self, event: &Text) -> io::Result<()> {
        writeln!(io::stderr(), "{}", event.render(self.err.render_options))
    }

    /// Prints a JSON event of the hub's log, as a line on standard error.
    pub fn log_json(self, event: &str) -> io::Result<()> {
        writeln!(io::stderr(), "{}", self.err.json(event))
    }

    /// Width of standard output, in columns; `None` if it is no terminal.
    pub fn columns(self) -> Option<usize> {
        self.out.columns
    }

    /// Width at which Markdown is rendered; `None` if Markdown is printed verbatim.
    pub fn columns_for_markdown(self) -> Option<usize> {
        self.out.columns.filter(|_| self.out.render_options.coloured)
    }

    /// Size of the terminal that standard output is, as it is now; columns as [`Self::columns`] of
    /// a terminal that reports none.
    pub fn screen(self) -> ScreenSize {
        let (columns, rows) = system::size(OutputStream::Stdout).unwrap_or_default();
        let known = |size: usize, default| if size > 0 { size } else { default };
        ScreenSize {
            columns: known(columns, self.out.columns.unwrap_or(COLUMNS)),
            rows: known(rows, ROWS),
        }
    }

    /// Prints text that has the codes of the terminal.
    ///
    /// # Errors
    ///
    /// Standard output cannot be written.
    pub fn print_drawn(self, drawn: &str) -> io::Result<()> {
        print(drawn)
    }

    /// Clears the terminal's screen.
    pub fn clear_screen(self) -> io::Result<()> {
        print("\x1b[H\x1b[J")
    }

    /// Width of standard error, in columns; `None` if it is no terminal.
    pub fn stderr_columns(self) -> Option<usize> {
        self.err.columns
    }

    /// True if standard error can erase a transient line.
    pub fn can_take_back(self) -> bool {
        self.err.render_options.coloured
    }

    /// Waits until standard output is closed by its reader; never returns while it is open or if
    /// that cannot be determined.
    pub async fn unread(self) {
        while !system::is_stdout_closed() {
            sleep(POLL_INTERVAL).await;
        }
    }

    /// True if a user can answer prompts.
    pub fn is_attended(self) -> bool {
        io::stdin().is_terminal() && self.err.columns.is_some()
    }
}

fn print(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    const WISH: Wish = Wish { raw: false, plain: false };

    fn look(columns: Option<usize>, wish: Wish) -> (bool, bool) {
        let RenderOptions { cleaned, coloured } = Outlet::new(columns, wish).render_options;
        (cleaned, coloured)
    }

    #[test]
    fn terminal_output_is_sanitised_pipes_are_not() {
        assert_eq!(look(Some(80), WISH), (true, true));
        assert_eq!(look(Some(80), Wish { plain: true, ..WISH }), (true, false));
        assert_eq!(look(Some(80), Wish { raw: true, ..WISH }), (false, false));
        assert_eq!(look(None, WISH), (false, false));
    }

    #[test]
    fn raw_output_is_not_wrapped() {
        let fitted = |columns, wish| Outlet::new(columns, wish).fitted("one two".into()).words();
        assert_eq!(fitted(Some(4), WISH), "one\ntwo");
        assert_eq!(fitted(Some(4), Wish { raw: true, ..WISH }), "one two");
        assert_eq!(fitted(None, WISH), "one two");
    }

    #[test]
    fn json_stays_json_on_a_terminal() {
        let value = serde_json::json!({ "a": "\x1b[2J\u{202e}\u{9b}" });
        let shown = Outlet::new(Some(80), WISH).json(&value.to_string());
        assert_eq!(shown, r#"{"a":"\u001b[2J\u202e\u009b"}"#);
        assert_eq!(serde_json::from_str::<Value>(&shown).unwrap(), value);
        assert_eq!(Outlet::new(None, WISH).json("\u{202e}"), "\u{202e}");
    }
}
