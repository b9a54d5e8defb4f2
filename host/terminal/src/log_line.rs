//! Formats a line of the hub's log for people.

use crate::{
    console::Console,
    text::{FAINT, Text, style_of},
};
use serde_json::Value;
use std::io::{self, Write};

/// Indentation of a message's continuation lines: a multi-line message of an agent cannot imitate a
/// log line of the hub (log injection, CWE-117).
const GOES_ON: &str = "\n    ";

/// Formats a JSON log line for people; returns any other line unchanged.
pub fn line_text(line: &str) -> Text {
    let Ok(Value::Object(mut event)) = serde_json::from_str(line) else { return line.into() };
    let mut take = |name: &str| match event.remove(name) {
        Some(Value::String(text)) => text,
        other => other.map(|value| value.to_string()).unwrap_or_default(),
    };
    let (time, level, message) = (take("timestamp"), take("level"), take("message"));
    // The span's fields identify the agent and task, unless the event has fields of the same names.
    if let Some(Value::Object(span)) = event.remove("span") {
        for (name, value) in span.into_iter().filter(|(name, _)| name != "name") {
            event.entry(name).or_insert(value);
        }
    }
    let time = time.get(..19).unwrap_or(&time).replace('T', " ");
    let facts = event.iter().map(|(name, value)| match value.as_str() {
        Some(text) => format!(" {name}={text}"),
        None => format!(" {name}={value}"),
    });
    let mut text = Text::styled(FAINT, format!("{time} "));
    text.push(style_of(&level), &format!("{level:<5}"));
    text.append(format!(" {}", message.trim_end().replace('\n', GOES_ON)).into());
    text.push(FAINT, &facts.collect::<String>().replace('\n', GOES_ON));
    text
}

/// Writer that shows the log of a hub in the foreground on its terminal.
pub struct LogScreen {
    console: Console,
    /// True if lines are formatted for people; else they stay JSON.
    is_pretty: bool,
}

impl LogScreen {
    /// Creates a writer to the standard error of `console`.
    pub fn new(console: Console, is_pretty: bool) -> Self {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_log_lines_are_formatted() {
        let lines = [
            r#"{"timestamp":"2026-01-31T12:00:00.123456Z","level":"INFO","message":"agent joined","agent":"echo","source":"built-in"}"#,
            r#"{"timestamp":"2026-01-31T12:00:01.5Z","level":"WARN","message":"running tasks were interrupted by the shutdown","tasks":2}"#,
            r#"{"timestamp":"2026-01-31T12:00:02Z","level":"WARN","message":"of a task","why":"x","span":{"agent":"echo","task":"0199","name":"task"}}"#,
            "thread 'main' panicked",
        ];
        let shown = lines.map(|line| line_text(line).words()).join("\n");
        insta::assert_snapshot!(shown, @r"
        2026-01-31 12:00:00 INFO  agent joined agent=echo source=built-in
        2026-01-31 12:00:01 WARN  running tasks were interrupted by the shutdown tasks=2
        2026-01-31 12:00:02 WARN  of a task agent=echo task=0199 why=x
        thread 'main' panicked
        ");
    }

    #[test]
    fn multiline_message_cannot_forge_log_line() {
        let forged = "said\n2026-01-31 12:00:01 ERROR the hub was broken into";
        let event = serde_json::json!({ "timestamp": "2026-01-31T12:00:00Z", "level": "INFO", "message": forged, "task": forged });
        insta::assert_snapshot!(line_text(&event.to_string()).words(), @r"
        2026-01-31 12:00:00 INFO  said
            2026-01-31 12:00:01 ERROR the hub was broken into task=said
            2026-01-31 12:00:01 ERROR the hub was broken into
        ");
    }
}
