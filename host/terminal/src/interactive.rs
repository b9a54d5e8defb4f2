//! Interactive terminals: a progress line while an agent works, and prompts.

use crate::{
    console::Console,
    dialogue::{LEAST, progress_line, status_text},
    text::{FAINT, PLAIN, Text},
};
use anyhow::Context as _;
use rustix::termios::{QueueSelector, tcflush};
use std::{convert::Infallible, io, pin::pin, time::Duration};
use tokio::{
    signal::unix::{SignalKind, signal},
    time::{Instant, Interval, interval_at},
};

/// Interval at which the progress line is redrawn.
pub const TICK: Duration = Duration::from_millis(125);

/// Time after which the progress line appears.
const QUIET: Duration = Duration::from_millis(150);

const FRAMES: [char; 8] = ['⠋', '⠙', '⠸', '⠴', '⠦', '⠧', '⠇', '⠏'];

/// ProgressOutput of an agent's messages while it works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgressOutput {
    /// Neither the line nor messages are printed: the output is for programs.
    Nothing,
    /// The line is printed with the latest message, or the messages where it is not visible.
    Line,
    /// The messages are printed, and stay above the line.
    Messages,
}

/// Progress line on standard error for an agent that works; does nothing if it would not be
/// visible.
pub struct ProgressLine {
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

impl ProgressLine {
    /// Starts a progress line for `who`. It is visible only if `shown`, and if the terminal can
    /// erase it.
    #[must_use]
    pub fn new(console: Console, who: &str, shown: bool, printing: ProgressOutput) -> Self {
        let is_for_people = printing != ProgressOutput::Nothing;
        let shown = shown && is_for_people && console.can_take_back();
        let since = Instant::now();
        Self {
            console,
            who: who.to_owned(),
            since,
            ticks: interval_at(since + QUIET, TICK),
            drawn: false,
            frame: 0,
            shown,
            keeps: is_for_people && (!shown || printing == ProgressOutput::Messages),
            said: String::new(),
        }
    }

    /// Shows a progress message of the agent, if any.
    pub fn says(&mut self, said: Option<String>) {
        let Some(said) = said else { return };
        if self.keeps {
            self.clear();
            self.console.note(status_text(&said));
        }
        self.said = said;
    }

    /// Awaits `work`, and shows `doing` in the line until then.
    pub async fn during<T>(&mut self, doing: &str, work: impl Future<Output = T>) -> T {
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
    pub fn is_visible(&self) -> bool {
        self.shown
    }

    /// True if the agent's messages are printed and stay visible.
    pub fn keeps_what_is_said(&self) -> bool {
        self.keeps
    }

    /// Waits until the line is due for redrawing; forever if it is not visible.
    pub async fn tick(&mut self) {
        if self.shown {
            self.ticks.tick().await;
        } else {
            std::future::pending::<()>().await;
        }
    }

    /// Redraws the line if it is visible and due.
    pub fn draw_if_due(&mut self) {
        if self.shown && self.since.elapsed() >= QUIET {
            self.draw();
        }
    }

    /// Redraws the line.
    pub fn draw(&mut self) {
        self.clear();
        self.frame = (self.frame + 1) % FRAMES.len();
        self.drawn = true;
        let columns = self.console.stderr_columns().unwrap_or(LEAST);
        let seconds = self.since.elapsed().as_secs();
        let line = progress_line(FRAMES[self.frame], &self.who, seconds, &self.said, columns);
        self.console.draw(&line);
    }

    /// Erases the line, so that other output can be printed.
    pub fn clear(&mut self) {
        if std::mem::take(&mut self.drawn) {
            self.console.take_back();
        }
    }
}

impl Drop for ProgressLine {
    fn drop(&mut self) {
        self.clear();
    }
}

/// Answer of the user.
pub enum UserAnswer {
    /// Text of the answer.
    Text(String),
    /// No answer: an empty line, or the end of the input.
    Nothing,
    /// Ctrl-C.
    Interrupted,
}

impl UserAnswer {
    /// True if the answer is one of these lower-case words, in any case.
    #[must_use]
    pub fn is_one_of(&self, words: &[&str]) -> bool {
        matches!(self, Self::Text(word) if words.contains(&&*word.trim().to_lowercase()))
    }
}

/// Hint at a task's question, with the effect of an empty answer.
pub const TO_A_TASK: &str = "your answer; an empty one leaves the task waiting";

/// Prompts for a line, with a hint. Input typed before the prompt is discarded: an agent may have
/// provoked it with a forged question.
pub async fn ask(console: Console, hint: &str) -> anyhow::Result<UserAnswer> {
    match ask_unless(console, hint, std::future::pending::<Infallible>()).await? {
        Prompted::Answered(answer) => Ok(answer),
        Prompted::Withdrawn(never) => match never {},
    }
}

/// Outcome of a prompt that can become needless.
pub enum Prompted<T> {
    /// Answer of the user.
    Answered(UserAnswer),
    /// The prompt was withdrawn for this reason.
    Withdrawn(T),
}

/// Prompts like [`ask`], until `withdrawn` completes: what the user typed until then is discarded.
pub async fn ask_unless<T>(
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
                "" => UserAnswer::Nothing,
                text => UserAnswer::Text(text.to_owned()),
            }))
        }
        _ = interrupt.recv() => Ok(Prompted::Answered(UserAnswer::Interrupted)),
        why = withdrawn => {
            console.prompt(&"\n".into());
            // The shell must not get half an answer.
            tcflush(io::stdin(), QueueSelector::IFlush).context("withdraw the prompt")?;
            Ok(Prompted::Withdrawn(why))
        }
    }
}
