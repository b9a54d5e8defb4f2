//! Interactive terminals: a progress line while an agent works, and prompts.

use crate::{
    console::Console,
    dialogue::{MIN_COLUMNS, progress_line, silence_note, status_text},
    system::{self, Interrupts},
    text::{FAINT, PLAIN, Text},
    width::wrapped,
};
use anyhow::Context as _;
use std::{convert::Infallible, pin::pin, time::Duration};
use tokio::time::{Instant, Interval, interval_at, sleep_until};

/// Interval at which the progress line is redrawn.
pub const TICK: Duration = Duration::from_millis(125);

/// Time after which the progress line appears.
const QUIET: Duration = Duration::from_millis(150);

const FRAMES: [char; 8] = ['⠋', '⠙', '⠸', '⠴', '⠦', '⠧', '⠇', '⠏'];

/// Silence after which a note says what is waited for where the line is not visible; each further
/// note takes twice as long.
const SILENCE: Duration = Duration::from_secs(5);

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
    subject: String,
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
    message: String,
    /// Time of the next note where the line is not visible, and the silence before it; `None` if
    /// no note is wanted.
    next_note: Option<(Instant, Duration)>,
}

impl ProgressLine {
    /// Starts a progress line for `subject`. It is visible only if `shown`, and if the terminal can
    /// erase it.
    #[must_use]
    pub fn new(console: Console, subject: &str, shown: bool, printing: ProgressOutput) -> Self {
        let is_for_people = printing != ProgressOutput::Nothing;
        let is_noted = shown && is_for_people && !console.can_take_back();
        let shown = shown && is_for_people && console.can_take_back();
        let since = Instant::now();
        let next_note = is_noted.then_some((since + SILENCE, SILENCE));
        Self {
            console,
            subject: subject.to_owned(),
            since,
            ticks: interval_at(since + QUIET, TICK),
            drawn: false,
            frame: 0,
            shown,
            keeps: is_for_people && (!shown || printing == ProgressOutput::Messages),
            message: String::new(),
            next_note,
        }
    }

    /// Shows a progress message of the agent, if any.
    pub fn says(&mut self, message: Option<String>) {
        let Some(message) = message else { return };
        if self.keeps {
            self.clear();
            self.console.note(status_text(&message));
            if let Some((next, silence)) = &mut self.next_note {
                *next = Instant::now() + *silence;
            }
        }
        self.message = message;
    }

    /// Prints a line that stays above the progress line, such as one about an ended tool call.
    pub fn add_line(&mut self, line: &str) {
        self.clear();
        self.console.note(status_text(line));
    }

    /// Awaits `work`, and shows `doing` in the line until then.
    pub async fn during<T>(&mut self, doing: &str, work: impl Future<Output = T>) -> T {
        doing.clone_into(&mut self.message);
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
    pub fn keeps_messages(&self) -> bool {
        self.keeps
    }

    /// Waits until the line is due for redrawing, or a note about the silence is due; forever if
    /// neither is wanted.
    pub async fn tick(&mut self) {
        if self.shown {
            self.ticks.tick().await;
        } else if let Some((next, _)) = self.next_note {
            sleep_until(next).await;
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

    /// Redraws the line, or prints the note.
    pub fn draw(&mut self) {
        if let Some((_, silence)) = self.next_note {
            let seconds = self.since.elapsed().as_secs();
            self.console.note(silence_note(&self.subject, seconds, &self.message));
            self.next_note = Some((Instant::now() + silence * 2, silence * 2));
            return;
        }
        self.clear();
        self.frame = (self.frame + 1) % FRAMES.len();
        self.drawn = true;
        let columns = self.console.stderr_columns().unwrap_or(MIN_COLUMNS);
        let seconds = self.since.elapsed().as_secs();
        let line =
            progress_line(FRAMES[self.frame], &self.subject, seconds, &self.message, columns);
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
    let columns = console.stderr_columns().map_or(usize::MAX, |columns| columns.saturating_sub(3));
    for line in wrapped(hint, columns.max(MIN_COLUMNS)) {
        prompt.mark();
        prompt.push(FAINT, &format!("{line}\n"));
    }
    prompt.mark();
    prompt.push(PLAIN, "> ");
    system::discard_input().context("ask for the answer")?;
    console.prompt(&prompt);
    let mut interrupts = Interrupts::new()?;
    tokio::select! {
        line = system::read_line() => {
            let line = line.context("read the answer")?;
            Ok(Prompted::Answered(match line.trim() {
                "" => UserAnswer::Nothing,
                text => UserAnswer::Text(text.to_owned()),
            }))
        }
        () = interrupts.next() => Ok(Prompted::Answered(UserAnswer::Interrupted)),
        why = withdrawn => {
            console.prompt(&"\n".into());
            // The shell must not get half an answer.
            system::discard_input().context("withdraw the prompt")?;
            Ok(Prompted::Withdrawn(why))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::console::Wish;

    /// Console whose standard error cannot erase a line.
    fn pipe() -> Console {
        Console::new(Wish { raw: true, plain: true })
    }

    #[tokio::test(start_paused = true)]
    async fn silence_is_noted_at_doubling_intervals() {
        let begun = Instant::now();
        let mut progress = ProgressLine::new(pipe(), "codex", true, ProgressOutput::Line);
        let mut noted = Vec::new();
        while noted.len() < 3 {
            progress.tick().await;
            progress.draw();
            noted.push(begun.elapsed().as_secs());
        }
        assert_eq!(noted, [5, 15, 35]);
        tokio::time::sleep(Duration::from_secs(30)).await;
        progress.says(Some("reads".to_owned()));
        progress.tick().await;
        assert_eq!(begun.elapsed().as_secs(), 35 + 30 + 40, "a message breaks the silence");
    }

    #[tokio::test(start_paused = true)]
    async fn programs_get_no_note_about_silence() {
        for (wanted, printing) in [(true, ProgressOutput::Nothing), (false, ProgressOutput::Line)] {
            let mut progress = ProgressLine::new(pipe(), "codex", wanted, printing);
            let hour = Duration::from_hours(1);
            assert!(tokio::time::timeout(hour, progress.tick()).await.is_err(), "{printing:?}");
        }
    }
}
