//! Log of the hubs of a test, in memory: one JSON event per line, as the program writes it.

use parking_lot::Mutex;
use std::io::{self, Write};
use tracing_subscriber::{
    filter::{LevelFilter, Targets},
    fmt,
    layer::SubscriberExt as _,
    registry,
    util::SubscriberInitExt as _,
};

static LINES: Mutex<Vec<u8>> = Mutex::new(Vec::new());

/// Writer to the log in memory.
struct Memory;

impl Write for Memory {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        LINES.lock().write(line)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Starts logging, once per process.
pub(crate) fn start() {
    let lines = fmt::layer().with_writer(|| Memory).with_ansi(false).with_target(false);
    let lines = lines.json().flatten_event(true).with_span_list(false);
    // The program's default level.
    let others = [("rmcp", LevelFilter::OFF), ("a2a_hub", LevelFilter::INFO)];
    let filter = Targets::new().with_default(LevelFilter::WARN).with_targets(others);
    // A second hub in the process uses the first one's log.
    let _ = registry().with(filter).with(lines).try_init();
}

/// Returns the log so far.
pub(crate) fn so_far() -> String {
    String::from_utf8_lossy(&LINES.lock()).into_owned()
}
