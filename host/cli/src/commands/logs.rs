//! `logs`: prints the log of the background hub.

use crate::{
    Exit, Format, Global, block_on,
    log_files::{LOG_FILE, OLD_LOG_FILE},
    ui::text::Text,
};
use a2a_hub_terminal::log_line::line_text;
use anyhow::Context as _;
use clap::Args;
use std::{
    fs::File,
    io::{Read as _, Seek as _, SeekFrom},
    path::PathBuf,
    time::Duration,
};
use tokio::time::sleep;

/// Interval at which the log is polled.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// Number of bytes that are read at the end of a log to find its last lines.
const TAIL: u64 = 4 << 20;

#[derive(Debug, Args)]
pub(crate) struct Logs {
    /// Continue with new lines as they are logged
    #[arg(long, short)]
    follow: bool,
    /// Number of the latest lines to begin with
    #[arg(long, short = 'n', value_name = "COUNT", default_value_t = 50)]
    lines: usize,
}

pub(crate) fn logs(global: &Global, logs: &Logs) -> anyhow::Result<Exit> {
    let path = global.data_dir()?.join(LOG_FILE);
    let mut log = LogReader::open(path)?;
    let mut text = log.more()?;
    show(global, last_lines(&text, logs.lines))?;
    if !logs.follow {
        return Ok(Exit::Done);
    }
    // An incomplete line is kept until the rest arrives.
    text.drain(..text.rfind('\n').map_or(0, |end| end + 1));
    block_on(async {
        loop {
            sleep(POLL_INTERVAL).await;
            text.push_str(&log.more()?);
            let complete = text.rfind('\n').map_or(0, |end| end + 1);
            show(global, &text[..complete])?;
            text.drain(..complete);
        }
    })
}

/// Reader of a growing log.
pub(crate) struct LogReader {
    path: PathBuf,
    file: File,
    /// Read position, in bytes.
    at: u64,
}

impl LogReader {
    /// Opens a log and positions the reader before its last lines.
    pub(crate) fn open(path: PathBuf) -> anyhow::Result<Self> {
        let file = File::open(&path).with_context(|| {
            format!(
                "read {}; a hub in the foreground logs to its standard error (under systemd: `journalctl --user -u a2a-hub`)",
                path.display()
            )
        })?;
        let at = file.metadata()?.len().saturating_sub(TAIL);
        Ok(Self { path, file, at })
    }

    /// Reads what was appended since the last call. A log that is shorter than before was rotated:
    /// the rest of the old log is at the same position of its copy.
    pub(crate) fn more(&mut self) -> anyhow::Result<String> {
        let mut bytes = Vec::new();
        if self.file.metadata()?.len() < self.at {
            if let Ok(mut old) = File::open(self.path.with_file_name(OLD_LOG_FILE)) {
                read_from(&mut old, self.at, &mut bytes)?;
            }
            self.at = 0;
        }
        self.at += read_from(&mut self.file, self.at, &mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}

/// Appends up to `TAIL` bytes of the log from position `at`, and returns their number.
fn read_from(log: &mut File, at: u64, into: &mut Vec<u8>) -> anyhow::Result<u64> {
    log.seek(SeekFrom::Start(at))?;
    Ok(log.take(TAIL).read_to_end(into).context("read the log")? as u64)
}

fn show(global: &Global, lines: &str) -> anyhow::Result<()> {
    match global.format {
        Format::Json => global.console().print_json_lines(lines)?,
        Format::Pretty => {
            let mut text = Text::new();
            for line in lines.lines() {
                text.append(line_text(line));
                text.append("\n".into());
            }
            global.console().print(&text)?;
        }
    }
    Ok(())
}

/// Returns the last `count` complete lines of `text`.
fn last_lines(text: &str, count: usize) -> &str {
    let text = &text[..text.rfind('\n').map_or(0, |end| end + 1)];
    let start = text.rmatch_indices('\n').nth(count).map_or(0, |(at, _)| at + 1);
    &text[start..]
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn rotated_log_is_followed_without_loss() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(LOG_FILE);
        fs::write(&path, "one\n").unwrap();
        let mut log = LogReader::open(path.clone()).unwrap();
        assert_eq!(log.more().unwrap(), "one\n");
        assert_eq!(log.more().unwrap(), "");
        fs::write(path.with_file_name(OLD_LOG_FILE), "one\ntwo\n").unwrap();
        fs::write(&path, "3\n").unwrap();
        assert_eq!(log.more().unwrap(), "two\n3\n", "the same file, emptied");
        fs::write(&path, "3\nfour\n").unwrap();
        assert_eq!(log.more().unwrap(), "four\n");
    }

    #[test]
    fn last_lines_excludes_partial_line() {
        assert_eq!(last_lines("a\nb\nc\nhal", 2), "b\nc\n");
        assert_eq!(last_lines("a\n", 5), "a\n");
        assert_eq!(last_lines("half", 5), "");
        assert_eq!(last_lines("a\nb\n", 0), "");
    }
}
