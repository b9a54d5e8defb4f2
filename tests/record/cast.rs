//! Recordings of a terminal in asciinema's format, version 2: a header, then one line an output.

use anyhow::{Context as _, Result, ensure};
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, fmt};

/// Version of the format.
const VERSION: u32 = 2;

/// First line of a recording.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub(crate) struct Header {
    version: u32,
    /// Columns and rows of the terminal.
    pub(crate) width: usize,
    pub(crate) height: usize,
    pub(crate) title: String,
    /// Longest pause in seconds that players show.
    pub(crate) idle_time_limit: f64,
    env: BTreeMap<String, String>,
}

/// A recording.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Cast {
    pub(crate) header: Header,
    pub(crate) outputs: Vec<Output>,
}

/// Text that the terminal showed at a time.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Output {
    /// Milliseconds since the start: a whole number, so that a cast is read as it was written.
    pub(crate) at_ms: u64,
    pub(crate) text: String,
}

impl Cast {
    /// Creates an empty recording of a terminal of this size.
    pub(crate) fn new(title: &str, (width, height): (usize, usize)) -> Self {
        let env = [("SHELL", "bash"), ("TERM", super::terminal::TERM)];
        let env = env.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let title = title.to_owned();
        let header = Header { version: VERSION, width, height, title, idle_time_limit: 1.5, env };
        Self { header, outputs: Vec::new() }
    }

    /// Reads a recording. Events other than output are refused, since this program writes none.
    pub(crate) fn parse(text: &str) -> Result<Self> {
        let mut lines = text.lines();
        let header = lines.next().context("a cast has a header")?;
        let header: Header = serde_json::from_str(header).context("failed to read the header")?;
        ensure!(header.version == VERSION, "a cast of version {}", header.version);
        let mut outputs = Vec::new();
        for (number, line) in lines.enumerate() {
            let read: (f64, String, String) = serde_json::from_str(line)
                .with_context(|| format!("failed to read event {}", number + 1))?;
            let (seconds, kind, text) = read;
            ensure!(kind == "o", "event {} is no output: {kind}", number + 1);
            let passed = std::time::Duration::try_from_secs_f64(seconds)?;
            outputs.push(Output { at_ms: u64::try_from((passed.as_micros() + 500) / 1000)?, text });
        }
        ensure!(outputs.is_sorted_by_key(|output| output.at_ms), "the events are out of order");
        Ok(Self { header, outputs })
    }

    /// Milliseconds of each output, with pauses cut as players do.
    pub(crate) fn times(&self) -> Vec<u64> {
        let longest = std::time::Duration::from_secs_f64(self.header.idle_time_limit);
        let longest = u64::try_from(longest.as_millis()).unwrap_or(u64::MAX);
        let (mut now, mut before) = (0, 0);
        let mut times = Vec::with_capacity(self.outputs.len());
        for output in &self.outputs {
            now += (output.at_ms - before).min(longest);
            before = output.at_ms;
            times.push(now);
        }
        times
    }
}

impl fmt::Display for Cast {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let header = serde_json::to_string(&self.header).map_err(|_| fmt::Error)?;
        writeln!(f, "{header}")?;
        for Output { at_ms, text } in &self.outputs {
            let text = serde_json::to_string(text).map_err(|_| fmt::Error)?;
            writeln!(f, "[{}.{:03}, \"o\", {text}]", at_ms / 1000, at_ms % 1000)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cast(times: &[u64]) -> Cast {
        let mut cast = Cast::new("a title", (80, 24));
        let output = |&at_ms| Output { at_ms, text: "\u{1b}[1mé\"\r\n".to_owned() };
        cast.outputs = times.iter().map(output).collect();
        cast
    }

    #[test]
    fn cast_is_read_as_it_was_written() {
        let written = cast(&[0, 1, 1999, 61_001]);
        let text = written.to_string();
        assert_eq!(Cast::parse(&text).unwrap(), written);
        assert!(text.contains("\n[61.001, \"o\", \"\\u001b[1mé"), "{text}");
    }

    #[test]
    fn wrong_casts_are_refused() {
        let good = cast(&[5, 7]).to_string();
        for (from, to) in
            [("\"version\":2", "\"version\":3"), ("\"o\"", "\"i\""), ("0.005", "0.009"), ("{", "")]
        {
            let wrong = good.replacen(from, to, 1);
            assert_ne!(wrong, good);
            assert!(Cast::parse(&wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn long_pauses_are_cut() {
        assert_eq!(cast(&[1_000, 5_000, 5_100]).times(), [1_000, 2_500, 2_600]);
    }
}
