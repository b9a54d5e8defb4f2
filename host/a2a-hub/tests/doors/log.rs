//! What the hubs of a test log, kept in memory: a line an event in JSON, as the program writes it.

use parking_lot::Mutex;
use std::io::{self, Write};
use tracing_subscriber::EnvFilter;

/// As much as the program logs where nothing else is set.
const FILTER: &str = "warn,rmcp=off,a2a_hub=info,a2a_hub_sandbox=info";

static LINES: Mutex<Vec<u8>> = Mutex::new(Vec::new());

/// Where the lines go.
struct Memory;

impl Write for Memory {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        LINES.lock().write(line)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Starts logging, once a process.
pub(crate) fn start() {
    let lines = tracing_subscriber::fmt().with_env_filter(EnvFilter::new(FILTER));
    let lines = lines.with_writer(|| Memory).with_ansi(false).with_target(false);
    // A second hub in one process logs with the first.
    let _ = lines.json().flatten_event(true).with_span_list(false).try_init();
}

/// What was logged so far.
pub(crate) fn so_far() -> String {
    String::from_utf8_lossy(&LINES.lock()).into_owned()
}
