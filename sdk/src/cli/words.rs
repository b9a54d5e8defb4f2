//! Short texts for people: a tool in a status, a single line, an exit.

use serde_json::Value;

use super::Action;
use crate::foreign::NotJson;
use crate::{Exit, ExitStatus};

/// Maximum length of a command or path in a status, which shows people the progress, not every
/// detail.
const STATUS_CHARS: usize = 160;

/// Most informative members of a tool's input, best first.
pub(super) const TELLING: [&str; 8] =
    ["command", "file_path", "path", "absolute_path", "pattern", "url", "query", "description"];

/// Status such as "running Bash: cargo test".
pub fn running(tool: &str, input: &Value) -> String {
    let detail = TELLING.iter().find_map(|key| input[*key].as_str());
    match detail {
        Some(detail) => cut(&format!("running {tool}: {detail}")),
        None => cut(&format!("running {tool}")),
    }
}

/// First line, cut to the length of a status.
pub fn cut(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    match line.char_indices().nth(STATUS_CHARS) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None if line.len() < text.trim_end().len() => format!("{line} …"),
        None => line.to_owned(),
    }
}

/// Maximum size of a text in the final status of a task. The hub takes a message of 1 MiB.
const MAX_STATUS: usize = 512 * 1024;

/// Size of the beginning of a longer text in a status: clients show the artifact with the whole
/// text as well.
const BEGINNING: usize = 4 * 1024;

/// Text of a final status: the whole text, or the beginning of one that is too long for a status,
/// with a sentence on the rest.
pub(super) fn final_status(text: String, rest: &str) -> String {
    if text.len() <= MAX_STATUS {
        return text;
    }
    let begin = &text[..text.floor_char_boundary(BEGINNING)];
    format!("{begin}\n… cut here, of {} bytes{rest}", text.len())
}

/// Log line about a line of the program that cannot be read; none about a blank line.
pub fn skipped(line: &str, fault: &NotJson) -> Vec<Action> {
    if line.trim().is_empty() {
        return Vec::new();
    }
    vec![Action::Log(format!("skipped a line that is not JSON ({fault}): {}", cut(line)))]
}

/// Text such as "exit code 1" or "signal 9".
pub fn describe_exit(exit: &Exit) -> String {
    match exit.status {
        ExitStatus::Code(code) => format!("exit code {code}"),
        ExitStatus::Signal(signal) => format!("signal {signal}"),
    }
}

/// Last line of a program's standard error, as the reason of its exit. A program killed from
/// outside writes no reason: its last line is about something else.
pub fn last_words(exit: &Exit) -> Option<&str> {
    const FROM_OUTSIDE: [ExitStatus; 4] = [
        ExitStatus::Signal(1),
        ExitStatus::Signal(2),
        ExitStatus::Signal(9),
        ExitStatus::Signal(15),
    ];
    // Indented lines continue something: a stack trace, a logged value.
    let tells = |line: &&str| {
        !line.trim().is_empty()
            && !line.starts_with([' ', '\t', '}'])
            && !line.contains(" [DEBUG] ")
    };
    let last = exit.stderr.lines().rfind(tells).map(str::trim);
    last.filter(|_| !FROM_OUTSIDE.contains(&exit.status))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn killed_program_has_no_last_words() {
        let exit = |status| Exit {
            status,
            stderr: "a warning\nthe reason \n    at x\n[now] [DEBUG] {\n  x\n}\n".into(),
        };
        assert_eq!(last_words(&exit(ExitStatus::Code(1))), Some("the reason"));
        assert_eq!(last_words(&exit(ExitStatus::Signal(6))), Some("the reason"));
        assert_eq!(last_words(&exit(ExitStatus::Signal(9))), None);
        let silent = Exit { status: ExitStatus::Code(1), stderr: "\n".into() };
        assert_eq!(last_words(&silent), None);
    }

    #[test]
    fn long_final_status_is_cut() {
        let long = "ä".repeat(600_000);
        let status = final_status(long.clone(), "; the artifact `answer` has the whole text");
        assert!(status.len() < BEGINNING + 100 && status.starts_with("ää"));
        assert!(
            status.ends_with(
                "\n… cut here, of 1200000 bytes; the artifact `answer` has the whole text"
            )
        );
        assert_eq!(final_status("short".into(), ""), "short");
    }

    #[test]
    fn status_is_one_short_line() {
        assert_eq!(
            running("Bash", &json!({ "command": "cargo test\nrm x" })),
            "running Bash: cargo test …"
        );
        assert_eq!(running("Think", &json!({})), "running Think");
        let long = running("Read", &json!({ "file_path": "ä".repeat(500) }));
        assert_eq!(long.chars().count(), STATUS_CHARS + 1);
    }
}
