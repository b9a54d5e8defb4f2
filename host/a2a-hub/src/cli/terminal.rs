//! What is different when a person sits at a terminal: colours, a line that moves while an agent works, questions.

use super::render::{Paint, duration};
use a2a_hub_config as config;
use anyhow::Context as _;
use std::{
    io::{self, IsTerminal as _, Write as _},
    time::Duration,
};
use tokio::{
    signal::unix::{SignalKind, signal},
    sync::oneshot,
    time::{Instant, Interval, interval_at},
};

/// How often the moving line moves.
const TICK: Duration = Duration::from_millis(125);

/// What is answered sooner needs no line.
const QUIET: Duration = Duration::from_millis(400);

/// It is kept shorter than most terminals are wide, for a wrapped line cannot be taken back.
const COLUMNS: usize = 78;

const FRAMES: [char; 8] = ['⠋', '⠙', '⠸', '⠴', '⠦', '⠧', '⠇', '⠏'];

/// Colours for standard output, if somebody looks at it and wants them.
pub(super) fn paint() -> Paint {
    Paint(io::stdout().is_terminal() && !config::is_colourless())
}

/// Whether there is somebody who can be asked.
pub(super) fn is_attended() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// A line on standard error that says that an agent is at work; nothing where nobody sees it.
pub(super) struct Progress {
    who: String,
    since: Instant,
    ticks: Interval,
    drawn: bool,
    frame: usize,
    shown: bool,
}

impl Progress {
    /// Work of `who` that begins now; `wanted` is false where the line would be in the way.
    pub(super) fn new(who: &str, wanted: bool) -> Self {
        let shown = wanted && io::stderr().is_terminal() && !config::is_colourless();
        let since = Instant::now();
        let ticks = interval_at(since + QUIET, TICK);
        Self { who: who.to_owned(), since, ticks, drawn: false, frame: 0, shown }
    }

    /// Waits until the line is to be drawn anew: for ever, if nobody sees it.
    pub(super) async fn tick(&mut self) {
        if self.shown {
            self.ticks.tick().await;
        } else {
            std::future::pending::<()>().await;
        }
    }

    /// Draws the line anew.
    pub(super) fn draw(&mut self) {
        self.frame = (self.frame + 1) % FRAMES.len();
        self.drawn = true;
        let line = line(FRAMES[self.frame], &self.who, self.since.elapsed().as_secs());
        // It is an ornament: when standard error is gone, so is the line.
        let _ = write!(io::stderr(), "\r\x1b[2K{line}");
    }

    /// Takes the line back, so that something else can be printed.
    pub(super) fn clear(&mut self) {
        if std::mem::take(&mut self.drawn) {
            let _ = write!(io::stderr(), "\r\x1b[2K");
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.clear();
    }
}

fn line(frame: char, who: &str, seconds: u64) -> String {
    let line = format!("{frame} {who} is at work, {} · Ctrl-C cancels", duration(seconds));
    line.chars().take(COLUMNS).collect()
}

/// What a person answers.
pub(super) enum Answer {
    /// This.
    Text(String),
    /// Nothing: an empty line, or the end of the input.
    Nothing,
    /// Ctrl-C.
    Interrupted,
}

/// Asks for a line.
pub(super) async fn ask() -> anyhow::Result<Answer> {
    write!(io::stderr(), "> ").context("ask for the answer")?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let (typed, line) = oneshot::channel();
    // A thread that nobody waits for: a read of the terminal cannot be called off.
    std::thread::spawn(move || {
        let mut line = String::new();
        let read = io::stdin().read_line(&mut line).map(|_| line);
        let _ = typed.send(read);
    });
    tokio::select! {
        line = line => {
            let line = line.context("read the answer")?.context("read the answer")?;
            Ok(match line.trim() {
                "" => Answer::Nothing,
                text => Answer::Text(text.to_owned()),
            })
        }
        _ = interrupt.recv() => Ok(Answer::Interrupted),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_fits() {
        insta::assert_snapshot!(line('⠋', "claude-code", 75), @"⠋ claude-code is at work, 1 min · Ctrl-C cancels");
        assert_eq!(line('⠋', &"a".repeat(200), 1).chars().count(), COLUMNS);
    }
}
