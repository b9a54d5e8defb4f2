//! The one place where the command line prints, on standard output and standard error. What a terminal sees is cleaned, all
//! of it, for nobody can tell afterwards what of it came from outside; what a pipe or a file gets is as it was said.

use super::text::{Look, Text};
use a2a_hub_config as config;
use a2a_hub_core::terminal;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde_json::Value;
use std::{
    io::{self, IsTerminal, Write as _},
    os::fd::AsFd,
    time::Duration,
};
use tokio::time::sleep;

/// How often it is looked whether somebody still reads standard output.
const LOOK: Duration = Duration::from_millis(250);

/// How wide a terminal is that does not say.
const COLUMNS: usize = 80;

/// What the user wants to see of what others say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Wish {
    /// Every byte as it is, to a terminal too.
    pub(super) raw: bool,
    /// No colours.
    pub(super) plain: bool,
}

/// Where the command line prints. Cheap to copy.
#[derive(Clone, Copy, Debug)]
pub(super) struct Console {
    out: Outlet,
    err: Outlet,
}

/// A stream that something is printed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Outlet {
    /// How many columns the terminal has; none if no terminal reads it.
    columns: Option<usize>,
    look: Look,
}

impl Outlet {
    fn of(stream: &(impl IsTerminal + AsFd), wish: Wish) -> Self {
        let columns = stream.is_terminal().then(|| {
            let size = rustix::termios::tcgetwinsize(stream).map(|size| usize::from(size.ws_col));
            size.ok().filter(|columns| *columns > 0).unwrap_or(COLUMNS)
        });
        Self::new(columns, wish, config::is_colourless())
    }

    fn new(columns: Option<usize>, wish: Wish, colourless: bool) -> Self {
        let is_terminal = columns.is_some();
        let cleaned = is_terminal && !wish.raw;
        let coloured = is_terminal && !wish.plain && !wish.raw && !colourless;
        Self { columns, look: Look { cleaned, coloured } }
    }

    /// JSON text as it is printed here.
    fn json(self, json: &str) -> String {
        if self.look.cleaned { terminal::clean_json(json).into_owned() } else { json.to_owned() }
    }
}

impl Console {
    /// The console of this process.
    pub(super) fn new(wish: Wish) -> Self {
        Self { out: Outlet::of(&io::stdout(), wish), err: Outlet::of(&io::stderr(), wish) }
    }

    /// Prints a result: standard output holds nothing else.
    pub(super) fn print(self, text: &Text) -> io::Result<()> {
        print(&text.shown(self.out.look))
    }

    /// Prints a result for programs, on a line of its own.
    pub(super) fn print_json(self, value: &Value) -> io::Result<()> {
        print(&self.out.json(&format!("{value}\n")))
    }

    /// Prints lines that are JSON already.
    pub(super) fn print_json_lines(self, lines: &str) -> io::Result<()> {
        print(&self.out.json(lines))
    }

    /// Prints help that somebody asked for.
    pub(super) fn print_help(why: &clap::Error) -> io::Result<()> {
        why.print()
    }

    /// Says something beside the result, on a line of its own.
    pub(super) fn note(self, text: impl Into<Text>) {
        self.say(&text.into(), "\n");
    }

    /// Says something beside the result, after which somebody types on.
    pub(super) fn prompt(self, text: &Text) {
        self.say(text, "");
    }

    /// Shows a line on standard error that can be taken back.
    pub(super) fn draw(self, line: &Text) {
        self.say(line, "");
    }

    /// Takes back the line that was drawn last.
    pub(super) fn take_back(self) {
        // There is nowhere left to say that standard error is gone.
        let _ = write!(io::stderr(), "\r\x1b[2K");
    }

    fn say(self, text: &Text, end: &str) {
        // The same.
        let _ = write!(io::stderr(), "{}{end}", text.shown(self.err.look));
    }

    /// Shows an event of the hub's own log, on a line of its own.
    pub(super) fn log(self, event: &Text) -> io::Result<()> {
        writeln!(io::stderr(), "{}", event.shown(self.err.look))
    }

    /// The same of one that is JSON.
    pub(super) fn log_json(self, event: &str) -> io::Result<()> {
        writeln!(io::stderr(), "{}", self.err.json(event))
    }

    /// How many columns there are for a result; none if no terminal shows it.
    pub(super) fn columns(self) -> Option<usize> {
        self.out.columns
    }

    /// How many columns there are for text that is not shown as it was written; none if it is to be.
    pub(super) fn columns_for_markdown(self) -> Option<usize> {
        self.out.columns.filter(|_| self.out.look.coloured)
    }

    /// Takes away all that a terminal shows.
    pub(super) fn clear_screen(self) -> io::Result<()> {
        print("\x1b[H\x1b[J")
    }

    /// How many columns there are for what is said beside the result; none if no terminal shows it.
    pub(super) fn columns_beside(self) -> Option<usize> {
        self.err.columns
    }

    /// Whether a line on standard error can be taken back.
    pub(super) fn can_take_back(self) -> bool {
        self.err.look.coloured
    }

    /// Waits until nobody reads standard output any more; for ever where somebody does, or nobody can tell.
    pub(super) async fn unread(self) {
        let gone = || {
            let out = io::stdout();
            let mut watched = [PollFd::new(&out, PollFlags::empty())];
            let now = Timespec { tv_sec: 0, tv_nsec: 0 };
            poll(&mut watched, Some(&now)).is_ok()
                && watched[0].revents().intersects(PollFlags::ERR | PollFlags::HUP)
        };
        while !gone() {
            sleep(LOOK).await;
        }
    }

    /// Whether there is somebody who can be asked.
    pub(super) fn is_attended(self) -> bool {
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
        let Look { cleaned, coloured } = Outlet::new(columns, wish, false).look;
        (cleaned, coloured)
    }

    #[test]
    fn terminals_are_shown_cleaned_text_and_pipes_get_every_byte() {
        assert_eq!(look(Some(80), WISH), (true, true));
        assert_eq!(look(Some(80), Wish { plain: true, ..WISH }), (true, false));
        assert_eq!(look(Some(80), Wish { raw: true, ..WISH }), (false, false));
        assert_eq!(look(None, WISH), (false, false));
        assert!(!Outlet::new(Some(80), WISH, true).look.coloured, "NO_COLOR");
    }

    #[test]
    fn json_stays_json_on_a_terminal() {
        let value = serde_json::json!({ "a": "\x1b[2J\u{202e}\u{9b}" });
        let shown = Outlet::new(Some(80), WISH, false).json(&value.to_string());
        assert_eq!(shown, r#"{"a":"\u001b[2J\u202e\u009b"}"#);
        assert_eq!(serde_json::from_str::<Value>(&shown).unwrap(), value);
        assert_eq!(Outlet::new(None, WISH, false).json("\u{202e}"), "\u{202e}");
    }
}
