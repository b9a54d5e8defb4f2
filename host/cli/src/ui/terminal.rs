//! Interactive terminals: a progress line while an agent works, and prompts.

use super::{
    console::Console,
    text::{FAINT, PLAIN, Text},
};
pub(crate) use a2a_hub_terminal::dialogue::{question, quoted};

use crate::{Format, Global};
use a2a_hub_terminal::dialogue::{LEAST, progress_line, status_text};
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
        let line = progress_line(FRAMES[self.frame], &self.who, seconds, &self.said, columns);
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
