//! The hub's log: one event per line on standard error, which is a file for a background hub.
//!
//! ```text
//!  tracing ──► Queue (bounded) ──► a thread ─┬─► Bounded ──► standard error, a file
//!                                            ├─► standard error, a pipe
//!                                            └─► LogScreen ──► a terminal, sanitised
//! ```

mod queue;

use a2a_hub_config::{Level, Logging};
use queue::LineQueue;
use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};
use tracing::level_filters::LevelFilter;
use tracing_subscriber::{
    filter::Targets,
    fmt,
    layer::{Layer, SubscriberExt as _},
    registry, reload,
    util::SubscriberInitExt as _,
};

/// File name of a background hub's log, in the data directory.
pub(crate) const LOG_FILE: &str = "hub.log";

/// File name of the rotated log, in the data directory.
pub(crate) const OLD_LOG_FILE: &str = "hub.log.old";

/// Size, in bytes, above which the log is rotated.
const MAX_LOG: u64 = 10 << 20;

/// Time that the hub's shutdown waits for its last log lines. A disk needs milliseconds; a stalled
/// reader is not waited for.
const LAST_LINES: Duration = Duration::from_secs(1);

/// Opens a background hub's log, with access for this user only.
pub(crate) fn open_log(data_dir: &Path) -> io::Result<(PathBuf, File)> {
    let path = data_dir.join(LOG_FILE);
    let log = OpenOptions::new().append(true).create(true).mode(0o600).open(&path);
    match log {
        Ok(log) => Ok((path, log)),
        Err(why) => Err(io::Error::new(why.kind(), format!("{}: {why}", path.display()))),
    }
}

/// Log file with rotation by size. `to` is the file at `path`, opened to append.
struct Bounded<W> {
    path: PathBuf,
    to: W,
}

impl<W: Write> Write for Bounded<W> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        if fs::metadata(&self.path).is_ok_and(|log| log.len() > MAX_LOG) {
            // If rotation fails, a long log is better than none.
            let _ = begin_anew(&self.path);
        }
        self.to.write(line)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

/// Rotates the log by copying and truncating it. The file stays the same because it is also the
/// standard error of the hub's process, to which a crash writes its last message.
fn begin_anew(log: &Path) -> io::Result<()> {
    let copied = fs::copy(log, log.with_file_name(OLD_LOG_FILE));
    // The log is truncated even if the copy fails, most of all on a full disk.
    OpenOptions::new().write(true).open(log)?.set_len(0)?;
    copied.map(drop)
}

/// Handle of the started log. Dropping it waits until the last lines are written.
#[must_use]
pub(crate) struct HubLog {
    queue: LineQueue,
    set_level: Arc<dyn Fn(Level) + Send + Sync>,
}

impl HubLog {
    /// Returns a function that changes the log level.
    pub(crate) fn set_level(&self) -> Arc<dyn Fn(Level) + Send + Sync> {
        Arc::clone(&self.set_level)
    }
}

impl Drop for HubLog {
    fn drop(&mut self) {
        self.queue.close(LAST_LINES);
    }
}

/// Destination of log lines.
pub(crate) enum Sink {
    /// Standard error, which is the log file at this path.
    File(PathBuf),
    /// Standard error, if it is neither the log file nor a terminal.
    StandardError,
    /// A terminal. Each write to the writer is one event, as JSON with a line end.
    Terminal(Box<dyn Write + Send>),
}

/// Starts logging. A failing sink costs log lines and never affects the hub.
pub(crate) fn start(logging: Logging, sink: Sink) -> io::Result<HubLog> {
    let is_pretty = logging.pretty && !matches!(sink, Sink::Terminal(_));
    let lost =
        |lines| tracing::warn!(lines, "lines of this log were lost: it could not be written");
    let queue = match sink {
        Sink::File(path) => LineQueue::before(Bounded { path, to: io::stderr() }, lost)?,
        Sink::StandardError => LineQueue::before(io::stderr(), lost)?,
        Sink::Terminal(shows) => LineQueue::before(shows, lost)?,
    };
    let to = queue.clone();
    let lines = fmt::layer()
        .with_writer(move || to.clone())
        .with_ansi(false)
        .with_target(false)
        // The layer would print its errors on standard error itself, and panic if that is closed.
        .log_internal_errors(false);
    let lines = if is_pretty {
        lines.boxed()
    } else {
        // One span identifies the line's task or agent; the list of spans would only repeat it.
        lines.json().flatten_event(true).with_span_list(false).boxed()
    };
    let (filter, filters) = reload::Layer::new(filter(logging.level));
    // A second start in one process, as in tests, keeps the first subscriber.
    let _ = registry().with(filter).with(lines).try_init();
    let set_level = Arc::new(move |level| drop(filters.reload(self::filter(level))));
    Ok(HubLog { queue, set_level })
}

/// Builds the filter: libraries log from warnings on, the hub's crates from `level` on. The filter
/// depends only on target and level, so tracing evaluates it once per call site, not at each step
/// of each task.
fn filter(level: Level) -> Targets {
    let level = match level {
        Level::Debug => LevelFilter::DEBUG,
        Level::Info => LevelFilter::INFO,
        Level::Warn => LevelFilter::WARN,
        Level::Error => LevelFilter::ERROR,
    };
    // `rmcp` (the MCP SDK) logs errors of its clients, and each disconnect.
    let others = [("rmcp", LevelFilter::OFF), ("a2a_hub", level)];
    Targets::new().with_default(LevelFilter::WARN).with_targets(others)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unwritable_log_is_named() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join(LOG_FILE)).unwrap();
        let why = open_log(dir.path()).unwrap_err().to_string();
        assert!(why.starts_with(&format!("{}/hub.log: ", dir.path().display())), "{why}");
    }

    #[test]
    fn large_log_is_rotated_in_place() {
        let dir = tempfile::tempdir().unwrap();
        let (path, file) = open_log(dir.path()).unwrap();
        let mut log = Bounded { path: path.clone(), to: file.try_clone().unwrap() };
        let sizes = || {
            let old = fs::metadata(path.with_file_name(OLD_LOG_FILE));
            (fs::metadata(&path).unwrap().len(), old.ok().map(|old| old.len()))
        };
        file.set_len(MAX_LOG - 2).unwrap();
        log.write_all(b"a\n").unwrap();
        assert_eq!(sizes(), (MAX_LOG, None), "it is large enough, and not too large");
        log.write_all(b"b\n").unwrap();
        assert_eq!(sizes(), (MAX_LOG + 2, None));
        log.write_all(b"c\n").unwrap();
        assert_eq!(sizes(), (2, Some(MAX_LOG + 2)));
        assert_eq!(fs::read(&path).unwrap(), b"c\n");
        (&file).write_all(b"d\n").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"c\nd\n", "whoever has it open goes on at its end");
    }
}
