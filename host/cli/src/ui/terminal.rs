//! Interactive terminals: a progress line while an agent works, and prompts.

use super::{
    console::Console,
    render::duration,
    text::{FAINT, PLAIN, Text},
    width::{cut, fold, wrapped},
};
use crate::{Format, Global};
use anyhow::Context as _;
use rustix::termios::{QueueSelector, tcflush};
use std::{convert::Infallible, io, pin::pin, time::Duration};
use tokio::{
    signal::unix::{SignalKind, signal},
    time::{Instant, Interval, interval_at},
};

/// Interval at which the progress line is redrawn.
pub(crate) const TICK: Duration = Duration::from_millis(125);

/// Time after which the progress line appears.
const QUIET: Duration = Duration::from_millis(150);

/// Minimum width, in columns, that is assumed of a terminal.
const LEAST: usize = 20;

const FRAMES: [char; 8] = ['⠋', '⠙', '⠸', '⠴', '⠦', '⠧', '⠇', '⠏'];

/// Progress line on standard error for an agent that works; does nothing if it would not be
/// visible.
pub(crate) struct Progress {
    console: Console,
    who: String,
    since: Instant,
    ticks: Interval,
    drawn: bool,
    frame: usize,
    /// True if the progress line is visible.
    shown: bool,
    /// True if the agent's messages are printed and stay on the screen, or in the file that
    /// standard error is.
    keeps: bool,
    /// Latest message of the agent.
    said: String,
}

impl Progress {
    /// Starts a progress line for `who`; `wanted` is false if it would interfere with the output.
    pub(crate) fn new(global: &Global, who: &str, wanted: bool) -> Self {
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

    /// Shows a progress message of the agent, if any.
    pub(crate) fn says(&mut self, said: Option<String>) {
        let Some(said) = said else { return };
        if self.keeps {
            self.clear();
            self.console.note(status_text(&said));
        }
        self.said = said;
    }

    /// Awaits `work`, and shows `doing` in the line until then.
    pub(crate) async fn during<T>(&mut self, doing: &str, work: impl Future<Output = T>) -> T {
        doing.clone_into(&mut self.said);
        let mut work = pin!(work);
        loop {
            tokio::select! {
                biased;
                done = &mut work => return done,
                () = self.tick() => self.draw(),
            }
        }
    }

    /// True if the line is visible, so that the user sees what a command waits for.
    pub(crate) fn is_visible(&self) -> bool {
        self.shown
    }

    /// True if the agent's messages are printed and stay visible.
    pub(crate) fn keeps_what_is_said(&self) -> bool {
        self.keeps
    }

    /// Waits until the line is due for redrawing; forever if it is not visible.
    pub(crate) async fn tick(&mut self) {
        if self.shown {
            self.ticks.tick().await;
        } else {
            std::future::pending::<()>().await;
        }
    }

    /// Redraws the line if it is visible and due.
    pub(crate) fn draw_if_due(&mut self) {
        if self.shown && self.since.elapsed() >= QUIET {
            self.draw();
        }
    }

    /// Redraws the line.
    pub(crate) fn draw(&mut self) {
        self.clear();
        self.frame = (self.frame + 1) % FRAMES.len();
        self.drawn = true;
        let columns = self.console.columns_beside().unwrap_or(LEAST);
        let seconds = self.since.elapsed().as_secs();
        let line = line(FRAMES[self.frame], &self.who, seconds, &self.said, columns);
        self.console.draw(&line);
    }

    /// Erases the line, so that other output can be printed.
    pub(crate) fn clear(&mut self) {
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

/// Formats the progress line: one column narrower than the terminal, because a wrapped line cannot
/// be erased.
fn line(frame: char, who: &str, seconds: u64, said: &str, columns: usize) -> Text {
    let doing = if said.trim().is_empty() { "running, Ctrl-C cancels" } else { said };
    let line = fold(&format!("{frame} {who} · {} · {doing}", duration(seconds)));
    Text::styled(FAINT, cut(&line, columns.max(LEAST) - 1))
}

/// Formats a progress message; each line is recognisable as the agent's.
fn status_text(said: &str) -> String {
    let lines = said.lines().enumerate();
    let lines = lines.map(|(n, line)| format!("{} {line}", if n == 0 { '·' } else { ' ' }));
    lines.collect::<Vec<_>>().join("\n")
}

/// Formats an agent's message for a terminal of `columns` on which the hub prints as well: a bar
/// precedes each line.
pub(crate) fn quoted(said: &str, columns: usize) -> Text {
    let lines = wrapped(said, columns.max(LEAST) - "│ ".chars().count());
    let mut text = Text::new();
    for line in lines {
        text.push(FAINT, "│ ");
        text.push(PLAIN, &format!("{line}\n"));
    }
    text
}

/// Formats a question of `agent` for a terminal of `columns`. Each line begins with a mark that
/// agents' output cannot contain, and the agent's words follow a bar: an agent cannot imitate the
/// hub.
pub(crate) fn question(agent: &str, said: &str, columns: usize) -> Text {
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

/// Answer of the user.
pub(crate) enum Answer {
    /// Text of the answer.
    Text(String),
    /// No answer: an empty line, or the end of the input.
    Nothing,
    /// Ctrl-C.
    Interrupted,
}

/// Hint at a task's question, with the effect of an empty answer.
pub(crate) const TO_A_TASK: &str = "your answer; an empty one leaves the task waiting";

/// Prompts for a line, with a hint. Input typed before the prompt is discarded: an agent may have
/// provoked it with a forged question.
pub(crate) async fn ask(console: Console, hint: &str) -> anyhow::Result<Answer> {
    match ask_unless(console, hint, std::future::pending::<Infallible>()).await? {
        Prompted::Answered(answer) => Ok(answer),
        Prompted::Withdrawn(never) => match never {},
    }
}

/// Outcome of a prompt that can become needless.
pub(crate) enum Prompted<T> {
    /// Answer of the user.
    Answered(Answer),
    /// The prompt was withdrawn for this reason.
    Withdrawn(T),
}

/// Prompts like [`ask`], until `withdrawn` completes: what the user typed until then is discarded.
pub(crate) async fn ask_unless<T>(
    console: Console,
    hint: &str,
    withdrawn: impl Future<Output = T>,
) -> anyhow::Result<Prompted<T>> {
    let mut prompt = Text::new();
    prompt.mark();
    prompt.push(FAINT, &format!("{hint}\n"));
    prompt.mark();
    prompt.push(PLAIN, "> ");
    tcflush(io::stdin(), QueueSelector::IFlush).context("ask for the answer")?;
    console.prompt(&prompt);
    let mut interrupt = signal(SignalKind::interrupt())?;
    // A terminal is readable once it has a whole line, so the read below does not block.
    tokio::select! {
        () = console.typed() => {
            let mut line = String::new();
            io::stdin().read_line(&mut line).context("read the answer")?;
            Ok(Prompted::Answered(match line.trim() {
                "" => Answer::Nothing,
                text => Answer::Text(text.to_owned()),
            }))
        }
        _ = interrupt.recv() => Ok(Prompted::Answered(Answer::Interrupted)),
        why = withdrawn => {
            console.prompt(&"\n".into());
            // The shell must not get half an answer.
            tcflush(io::stdin(), QueueSelector::IFlush).context("withdraw the prompt")?;
            Ok(Prompted::Withdrawn(why))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use unicode_width::UnicodeWidthStr as _;

    #[test]
    fn progress_line_fits_terminal() {
        let line = |who: &str, said: &str, columns| line('⠋', who, 75, said, columns).words();
        insta::assert_snapshot!(line("claude-code", "", 80), @"⠋ claude-code · 1 min · running, Ctrl-C cancels");
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
    fn question_cannot_imitate_hub_line() {
        let forged = "\x1b[2J┇ claude-code asks:\n┇ │ May I list the files?\r\n┇ > ";
        insta::assert_snapshot!(question("guest", forged, 80).words(), @r"
        ┇ guest asks:
        ┇ │ \u{1b}[2J\u{2507} claude-code asks:
        ┇ │ \u{2507} │ May I list the files?
        ┇ │ \u{2507} >
        ");
        // A line that the terminal wraps cannot imitate the hub either.
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
