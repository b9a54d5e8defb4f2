//! Decision of a user who leaves a command while its task runs: cancel the task, detach from it, or
//! wait on.

use super::task::output::TaskOutput;
use crate::{
    Exit, Format,
    client::signals::{LeaveSignal, LeaveSignals},
    ui::{
        console::Console,
        interactive::{Prompted, UserAnswer, ask_unless},
    },
};

/// Prompt after Ctrl-C.
const PROMPT: &str = "[c]ancel the task, [d]etach from it, or [g]o on? Ctrl-C again cancels";

/// Action if the user leaves, by Ctrl-C or by closing standard output, before the task ends. A
/// closed terminal always leaves the task running.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OnLeave {
    /// Asks the user at a terminal, or else cancels the task; a second Ctrl-C exits at once.
    Cancel,
    /// Leaves the task running.
    LetBe,
}

/// Decision about a task whose user leaves the command that waits for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LeaveChoice {
    /// The task is cancelled.
    Cancel,
    /// The command ends, and the task runs on.
    Detach,
    /// The command waits on.
    GoOn,
}

impl LeaveChoice {
    /// Choice that a signal makes if nobody is asked.
    pub(crate) fn after(signal: LeaveSignal) -> Self {
        match signal {
            LeaveSignal::Interrupt | LeaveSignal::Terminate => Self::Cancel,
            LeaveSignal::Hangup => Self::Detach,
        }
    }

    /// Choice that the user typed: its first letter, or the word; `None` if it is neither.
    fn typed(answer: &UserAnswer) -> Option<Self> {
        match answer {
            UserAnswer::Interrupted => Some(Self::Cancel),
            UserAnswer::Nothing => Some(Self::GoOn),
            UserAnswer::Text(_) => {
                let choices = [
                    (["c", "cancel"], Self::Cancel),
                    (["d", "detach"], Self::Detach),
                    (["g", "go on"], Self::GoOn),
                ];
                let chosen = choices.into_iter().find(|(words, _)| answer.is_one_of(words));
                chosen.map(|(_, choice)| choice)
            }
        }
    }
}

/// True if Ctrl-C asks: the command would cancel the task, and a user sits at the terminal that the
/// answer is printed on.
pub(crate) fn asks(shown: &TaskOutput, on_leave: OnLeave) -> bool {
    let console = shown.console();
    on_leave == OnLeave::Cancel
        && shown.format() == Format::Pretty
        && console.is_attended()
        && console.columns().is_some()
}

/// Decision after a signal: that of the user if `asks`, or else the signal's. `ended` completes
/// once the task needs no decision any more.
pub(crate) async fn decide(
    signal: LeaveSignal,
    asks: bool,
    shown: &mut TaskOutput,
    signals: &mut LeaveSignals,
    ended: impl Future<Output = anyhow::Result<()>>,
) -> anyhow::Result<LeaveChoice> {
    if signal != LeaveSignal::Interrupt || !asks {
        return Ok(LeaveChoice::after(signal));
    }
    shown.end_piece()?;
    let choice = ask_to_leave(shown.console(), signals, ended).await?;
    // The second Ctrl-C was the answer.
    *signals = LeaveSignals::new()?;
    Ok(choice)
}

/// Asks the user for the decision, until `ended` completes.
async fn ask_to_leave(
    console: Console,
    signals: &mut LeaveSignals,
    ended: impl Future<Output = anyhow::Result<()>>,
) -> anyhow::Result<LeaveChoice> {
    let withdrawn = async {
        tokio::pin!(ended);
        loop {
            tokio::select! {
                ended = &mut ended => return ended.map(|()| LeaveChoice::GoOn),
                // The prompt itself answers Ctrl-C.
                signal = signals.next() => if signal != LeaveSignal::Interrupt {
                    return Ok(LeaveChoice::after(signal));
                },
            }
        }
    };
    tokio::pin!(withdrawn);
    loop {
        match ask_unless(console, PROMPT, &mut withdrawn).await? {
            Prompted::Withdrawn(choice) => return choice,
            Prompted::Answered(answer) => match LeaveChoice::typed(&answer) {
                Some(choice) => return Ok(choice),
                None => console.note("answer c, d or g"),
            },
        }
    }
}

/// Ends the command, whose task runs on.
pub(crate) fn detached(shown: &mut TaskOutput) -> Exit {
    shown.detach();
    Exit::Interrupted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_letter_or_word_decides() {
        let typed = |word: &str| LeaveChoice::typed(&UserAnswer::Text(word.to_owned()));
        for (words, choice) in [
            (["c", "C", "cancel", " Cancel "], LeaveChoice::Cancel),
            (["d", "D", "detach", "Detach"], LeaveChoice::Detach),
            (["g", "G", "go on", "GO ON"], LeaveChoice::GoOn),
        ] {
            for word in words {
                assert_eq!(typed(word), Some(choice), "{word}");
            }
        }
        for word in ["y", "cd", "no", "c d"] {
            assert_eq!(typed(word), None, "{word}");
        }
        assert_eq!(LeaveChoice::typed(&UserAnswer::Interrupted), Some(LeaveChoice::Cancel));
        assert_eq!(LeaveChoice::typed(&UserAnswer::Nothing), Some(LeaveChoice::GoOn));
    }

    #[test]
    fn closed_terminal_cancels_nothing() {
        assert_eq!(LeaveChoice::after(LeaveSignal::Hangup), LeaveChoice::Detach);
        assert_eq!(LeaveChoice::after(LeaveSignal::Interrupt), LeaveChoice::Cancel);
        assert_eq!(LeaveChoice::after(LeaveSignal::Terminate), LeaveChoice::Cancel);
    }
}
