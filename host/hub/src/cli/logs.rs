//! `logs`: what the hub in the background said.

use super::{Exit, Format, Global, block_on, print, render::Paint, terminal::paint};
use crate::telemetry::LOG_FILE;
use anyhow::Context as _;
use clap::Args;
use serde_json::Value;
use std::{
    fs::File,
    io::{Read as _, Seek as _, SeekFrom},
    os::unix::fs::MetadataExt as _,
    path::Path,
    time::Duration,
};
use tokio::time::sleep;

/// How often it is looked whether there is more.
const LOOK: Duration = Duration::from_millis(200);

/// How much of a log's end is read to find its last lines.
const TAIL: u64 = 4 << 20;

#[derive(Debug, Args)]
pub(super) struct Logs {
    /// Go on with what is logged from now on
    #[arg(long, short)]
    follow: bool,
    /// Begin with so many of the latest lines
    #[arg(long, short = 'n', value_name = "COUNT", default_value_t = 50)]
    lines: usize,
}

pub(super) fn logs(global: &Global, logs: &Logs) -> anyhow::Result<Exit> {
    let path = global.settings(Vec::new())?.config.data_dir()?.join(LOG_FILE);
    let mut log = open(&path)?;
    let size = log.metadata()?.len();
    log.seek(SeekFrom::Start(size.saturating_sub(TAIL)))?;
    let mut text = read(&mut log)?;
    show(global, last_lines(&text, logs.lines))?;
    if !logs.follow {
        return Ok(Exit::Done);
    }
    // What is not a whole line yet waits for its rest.
    text.drain(..text.rfind('\n').map_or(0, |end| end + 1));
    block_on(async {
        loop {
            sleep(LOOK).await;
            text.push_str(&read(&mut log)?);
            let whole = text.rfind('\n').map_or(0, |end| end + 1);
            show(global, &text[..whole])?;
            text.drain(..whole);
            // A hub that starts may have begun a new log.
            if std::fs::metadata(&path)
                .is_ok_and(|now| log.metadata().is_ok_and(|log| log.ino() != now.ino()))
            {
                log = open(&path)?;
            }
        }
    })
}

fn open(path: &Path) -> anyhow::Result<File> {
    File::open(path).with_context(|| {
        format!(
            "read {}; a hub in the foreground logs to its standard error (under systemd: `journalctl --user -u a2a-hub`)",
            path.display()
        )
    })
}

fn read(log: &mut File) -> anyhow::Result<String> {
    let mut bytes = Vec::new();
    log.take(TAIL).read_to_end(&mut bytes).context("read the log")?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn show(global: &Global, lines: &str) -> anyhow::Result<()> {
    match global.format {
        Format::Json => print(lines)?,
        Format::Pretty => {
            let paint = paint();
            print(&lines.lines().map(|line| line_text(line, paint) + "\n").collect::<String>())?;
        }
    }
    Ok(())
}

/// The last `count` whole lines of `text`.
fn last_lines(text: &str, count: usize) -> &str {
    let text = &text[..text.rfind('\n').map_or(0, |end| end + 1)];
    let start = text.rmatch_indices('\n').nth(count).map_or(0, |(at, _)| at + 1);
    &text[start..]
}

/// A line of the log for people; one that is no JSON as it is.
fn line_text(line: &str, paint: Paint) -> String {
    let Ok(Value::Object(mut event)) = serde_json::from_str(line) else { return line.to_owned() };
    let mut take = |name: &str| match event.remove(name) {
        Some(Value::String(text)) => text,
        other => other.map(|value| value.to_string()).unwrap_or_default(),
    };
    let (time, level, message) = (take("timestamp"), take("level"), take("message"));
    let time = time.get(..19).unwrap_or(&time).replace('T', " ");
    let facts = event.iter().map(|(name, value)| match value.as_str() {
        Some(text) => format!(" {name}={text}"),
        None => format!(" {name}={value}"),
    });
    let level = paint.state(&format!("{level:<5}"));
    let facts = paint.faint(&facts.collect::<String>());
    format!("{} {level} {message}{facts}", paint.faint(&time))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_as_people_see_them() {
        let lines = [
            r#"{"timestamp":"2026-01-31T12:00:00.123456Z","level":"INFO","message":"agent joined","agent":"echo","source":"built-in"}"#,
            r#"{"timestamp":"2026-01-31T12:00:01.5Z","level":"WARN","message":"tasks were cut off","tasks":2}"#,
            "thread 'main' panicked",
        ];
        let shown = lines.map(|line| line_text(line, Paint(false))).join("\n");
        insta::assert_snapshot!(shown, @r"
        2026-01-31 12:00:00 INFO  agent joined agent=echo source=built-in
        2026-01-31 12:00:01 WARN  tasks were cut off tasks=2
        thread 'main' panicked
        ");
    }

    #[test]
    fn the_last_lines_are_whole() {
        assert_eq!(last_lines("a\nb\nc\nhal", 2), "b\nc\n");
        assert_eq!(last_lines("a\n", 5), "a\n");
        assert_eq!(last_lines("half", 5), "");
        assert_eq!(last_lines("a\nb\n", 0), "");
    }
}
