//! Lines of a dialogue at a terminal: progress, and the words and questions of agents.

use crate::{
    render::duration,
    text::{FAINT, PLAIN, Text},
    width::{cut, fold, wrapped},
};

/// Minimum width, in columns, that is assumed of a terminal.
pub const MIN_COLUMNS: usize = 20;

/// Formats the progress line: one column narrower than the terminal, because a wrapped line cannot
/// be erased.
pub fn progress_line(
    frame: char,
    subject: &str,
    seconds: u64,
    message: &str,
    columns: usize,
) -> Text {
    let doing = if message.trim().is_empty() { "running, Ctrl-C cancels" } else { message };
    let line = fold(&format!("{frame} {subject} · {} · {doing}", duration(seconds)));
    Text::styled(FAINT, cut(&line, columns.max(MIN_COLUMNS) - 1))
}

/// Most columns of the latest message in a note about silence.
const MAX_NOTE_COLUMNS: usize = 200;

/// Formats the note about what a command waits for, where no progress line is visible.
pub fn silence_note(subject: &str, seconds: u64, message: &str) -> Text {
    let doing = if message.trim().is_empty() { String::new() } else { format!(": {message}") };
    let line = fold(&format!("still waiting: {subject}, {}{doing}", duration(seconds)));
    Text::styled(FAINT, cut(&line, MAX_NOTE_COLUMNS))
}

/// Formats a progress message; each line is recognisable as the agent's.
pub fn status_text(message: &str) -> String {
    let lines = message.lines().enumerate();
    let lines = lines.map(|(n, line)| format!("{} {line}", if n == 0 { '·' } else { ' ' }));
    lines.collect::<Vec<_>>().join("\n")
}

/// Formats an agent's message for a terminal of `columns` on which the hub prints as well: a bar
/// precedes each line.
pub fn quoted(message: &str, columns: usize) -> Text {
    let lines = wrapped(message, columns.max(MIN_COLUMNS) - "│ ".chars().count());
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
pub fn question(agent: &str, message: &str, columns: usize) -> Text {
    let mut text = Text::new();
    text.mark();
    text.push(PLAIN, &format!("{agent} asks:\n"));
    for line in wrapped(message, columns.max(MIN_COLUMNS) - "┇ │ ".chars().count()) {
        text.mark();
        text.push(FAINT, "│ ");
        text.push(PLAIN, &format!("{line}\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use unicode_width::UnicodeWidthStr as _;

    #[test]
    fn silence_note_is_one_line() {
        let note = |said: &str| silence_note("codex", 65, said).words();
        assert_eq!(note(""), "still waiting: codex, 1 min");
        assert_eq!(
            note("reads\n\u{1b}[2Ja.rs"),
            "still waiting: codex, 1 min: reads \\u{1b}[2Ja.rs"
        );
        assert!(note(&"x".repeat(900)).chars().count() <= MAX_NOTE_COLUMNS);
    }

    #[test]
    fn progress_line_fits_terminal() {
        let line =
            |who: &str, said: &str, columns| progress_line('⠋', who, 75, said, columns).words();
        insta::assert_snapshot!(line("claude-code", "", 80), @"⠋ claude-code · 1 min · running, Ctrl-C cancels");
        let said = "Running\n  `cargo test --workspace` in the background";
        insta::assert_snapshot!(line("claude-code", said, 80), @"⠋ claude-code · 1 min · Running `cargo test --workspace` in the background");
        insta::assert_snapshot!(line("claude-code", said, 30), @"⠋ claude-code · 1 min · Runn…");
        for who in ["a".repeat(200), "漢".repeat(200), "\x1b".repeat(200), "a\nb\r".repeat(99)] {
            for columns in [0, 30, 80] {
                let line = line(&who, &who, columns);
                assert!(line.width() < columns.max(MIN_COLUMNS), "{line}");
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
