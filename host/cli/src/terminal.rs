//! What is different when a person sits at a terminal: a line that moves while an agent works, and questions.

use super::{
    Format, Global,
    console::Console,
    fit::{cut, fold, wrapped},
    render::duration,
    text::{FAINT, PLAIN, Text},
};
use anyhow::Context as _;
use rustix::termios::{QueueSelector, tcflush};
use std::{io, time::Duration};
use tokio::{
    signal::unix::{SignalKind, signal},
    sync::oneshot,
    time::{Instant, Interval, interval_at},
};

/// How often the moving line moves.
pub(super) const TICK: Duration = Duration::from_millis(125);

/// What is answered sooner needs no line.
const QUIET: Duration = Duration::from_millis(400);

/// Fewer columns are not used, however narrow the terminal says that it is.
const LEAST: usize = 20;

const FRAMES: [char; 8] = ['⠋', '⠙', '⠸', '⠴', '⠦', '⠧', '⠇', '⠏'];

/// A line on standard error that says that an agent is at work; nothing where nobody sees it.
pub(super) struct Progress {
    console: Console,
    who: String,
    since: Instant,
    ticks: Interval,
    drawn: bool,
    frame: usize,
    /// Whether the line is seen.
    shown: bool,
    /// Whether what the agent says stays on the screen, or in the log that standard error is.
    keeps: bool,
    /// What the agent said last.
    said: String,
}

impl Progress {
    /// Work of `who` that begins now; `wanted` is false where the line would be in the way.
    pub(super) fn new(global: &Global, who: &str, wanted: bool) -> Self {
        let console = global.console();
        let is_for_people = global.format == Format::Pretty;
        let shown = wanted && is_for_people && console.can_take_back();
        let since = Instant::now();
        Self {
            console,
            who: who.to_owned(),
            since,
            ticks: interval_at(since + QUIET, TICK),
            drawn: false,
            frame: 0,
            shown,
            keeps: is_for_people && (!shown || global.verbose),
            said: String::new(),
        }
    }

    /// Shows what the agent says while it works, if it does.
    pub(super) fn says(&mut self, said: Option<String>) {
        let Some(said) = said else { return };
        if self.keeps {
            self.clear();
            self.console.note(status_text(&said));
        }
        self.said = said;
    }

    /// Whether what was said is on the screen, or in the log that standard error is.
    pub(super) fn keeps_what_is_said(&self) -> bool {
        self.keeps
    }

    /// Waits until the line is to be drawn anew: for ever, if nobody sees it.
    pub(super) async fn tick(&mut self) {
        if self.shown {
            self.ticks.tick().await;
        } else {
            std::future::pending::<()>().await;
        }
    }

    /// Draws the line anew, if somebody sees it and it is wanted by now.
    pub(super) fn draw_if_due(&mut self) {
        if self.shown && self.since.elapsed() >= QUIET {
            self.draw();
        }
    }

    /// Draws the line anew.
    pub(super) fn draw(&mut self) {
        self.clear();
        self.frame = (self.frame + 1) % FRAMES.len();
        self.drawn = true;
        let columns = self.console.columns_beside().unwrap_or(LEAST);
        let seconds = self.since.elapsed().as_secs();
        let line = line(FRAMES[self.frame], &self.who, seconds, &self.said, columns);
        self.console.draw(&line);
    }

    /// Takes the line back, so that something else can be printed.
    pub(super) fn clear(&mut self) {
        if std::mem::take(&mut self.drawn) {
            self.console.take_back();
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.clear();
    }
}

/// The moving line: one column less than there are, for a wrapped line cannot be taken back.
fn line(frame: char, who: &str, seconds: u64, said: &str, columns: usize) -> Text {
    let doing = if said.trim().is_empty() { "at work, Ctrl-C cancels" } else { said };
    let line = fold(&format!("{frame} {who} · {} · {doing}", duration(seconds)));
    Text::styled(FAINT, cut(&line, columns.max(LEAST) - 1))
}

/// What an agent says while it works: each line is seen to be its own.
fn status_text(said: &str) -> String {
    let lines = said.lines().enumerate();
    let lines = lines.map(|(n, line)| format!("{} {line}", if n == 0 { '·' } else { ' ' }));
    lines.collect::<Vec<_>>().join("\n")
}

/// What an agent says, on a terminal with so many columns, where the hub speaks as well: each line stands behind a bar.
pub(super) fn quoted(said: &str, columns: usize) -> Text {
    let lines = wrapped(said, columns.max(LEAST) - "│ ".chars().count());
    let mut text = Text::new();
    for line in lines {
        text.push(FAINT, "│ ");
        text.push(PLAIN, &format!("{line}\n"));
    }
    text
}

/// A question of `agent` on a terminal with so many columns. Each of its lines begins with what no agent can say, and its own
/// words stand behind a bar: whatever an agent says, it cannot speak as the hub.
pub(super) fn question(agent: &str, said: &str, columns: usize) -> Text {
    let mut text = Text::new();
    text.mark();
    text.push(PLAIN, &format!("{agent} asks:\n"));
    for line in wrapped(said, columns.max(LEAST) - "┇ │ ".chars().count()) {
        text.mark();
        text.push(FAINT, "│ ");
        text.push(PLAIN, &format!("{line}\n"));
    }
    text
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

/// What an empty answer to a task's question comes to.
pub(super) const TO_A_TASK: &str = "your answer; an empty one leaves the task waiting";

/// Asks for a line, with this hint. What was typed before is no answer: an agent may have had it typed by a question of its own making.
pub(super) async fn ask(console: Console, hint: &str) -> anyhow::Result<Answer> {
    let mut prompt = Text::new();
    prompt.mark();
    prompt.push(FAINT, &format!("{hint}\n"));
    prompt.mark();
    prompt.push(PLAIN, "> ");
    tcflush(io::stdin(), QueueSelector::IFlush).context("ask for the answer")?;
    console.prompt(&prompt);
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
    use unicode_width::UnicodeWidthStr as _;

    #[test]
    fn the_line_fits() {
        let line = |who: &str, said: &str, columns| line('⠋', who, 75, said, columns).words();
        insta::assert_snapshot!(line("claude-code", "", 80), @"⠋ claude-code · 1 min · at work, Ctrl-C cancels");
        let said = "Running\n  `cargo test --workspace` in the background";
        insta::assert_snapshot!(line("claude-code", said, 80), @"⠋ claude-code · 1 min · Running `cargo test --workspace` in the background");
        insta::assert_snapshot!(line("claude-code", said, 30), @"⠋ claude-code · 1 min · Runn…");
        for who in ["a".repeat(200), "漢".repeat(200), "\x1b".repeat(200), "a\nb\r".repeat(99)] {
            for columns in [0, 30, 80] {
                let line = line(&who, &who, columns);
                assert!(line.width() < columns.max(LEAST), "{line}");
                assert!(!line.contains('\n'), "{line}");
            }
        }
    }

    #[test]
    fn an_agent_cannot_speak_as_the_hub() {
        let forged = "\x1b[2J┇ claude-code asks:\n┇ │ May I list the files?\r\n┇ > ";
        insta::assert_snapshot!(question("guest", forged, 80).words(), @r"
        ┇ guest asks:
        ┇ │ \u{1b}[2J\u{2507} claude-code asks:
        ┇ │ \u{2507} │ May I list the files?
        ┇ │ \u{2507} >
        ");
        // Nor by a line so long that the terminal would begin a new one.
        let long = format!("{}┇ the hub asks", "x".repeat(40));
        let shown = question("guest", &long, 30).words();
        insta::assert_snapshot!(shown, @r"
        ┇ guest asks:
        ┇ │ xxxxxxxxxxxxxxxxxxxxxxxxxx
        ┇ │ xxxxxxxxxxxxxx\u{2507} the
        ┇ │ hub asks
        ");
        assert!(shown.lines().all(|line| line.width() <= 30), "{shown}");
    }
}
