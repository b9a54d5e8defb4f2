//! Writes the log of a hub in the foreground to its terminal.

pub(crate) use a2a_hub_terminal::log_line::line_text;

use crate::ui::console::Console;
use std::io::{self, Write};

/// Writer that shows a foreground hub's log on its terminal.
pub(crate) struct LogScreen {
    console: Console,
    /// True if lines are formatted for people; else they stay JSON.
    is_pretty: bool,
}

impl LogScreen {
    /// Creates a writer to the standard error of `console`.
    pub(crate) fn new(console: Console, is_pretty: bool) -> Self {
        Self { console, is_pretty }
    }
}

/// Each write is one event, as JSON with a line end.
impl Write for LogScreen {
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        let json = String::from_utf8_lossy(event);
        if self.is_pretty {
            self.console.log(&line_text(json.trim_end()))?;
        } else {
            self.console.log_json(json.trim_end())?;
        }
        Ok(event.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
