//! The hub's own log: one line an event, on standard error, which is a file when the hub is in the background.

use a2a_hub_config::{Level, Logging};
use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
    sync::Mutex,
};
use tracing::level_filters::LevelFilter;
use tracing_subscriber::{EnvFilter, fmt::writer::BoxMakeWriter};

/// The log of a hub in the background, in its data directory.
pub(crate) const LOG_FILE: &str = "hub.log";

/// What was logged before the log was last begun anew, beside it.
pub(crate) const OLD_LOG_FILE: &str = "hub.log.old";

/// A log that is larger is begun anew, in bytes.
const MAX_LOG: u64 = 10 << 20;

/// Opens the log of a hub in the background, for this user only.
pub(crate) fn open_log(data_dir: &Path) -> io::Result<(PathBuf, File)> {
    let path = data_dir.join(LOG_FILE);
    let log = OpenOptions::new().append(true).create(true).mode(0o600).open(&path)?;
    Ok((path, log))
}

/// A log that is begun anew when it is too large. `to` is the file at `path`, opened to append.
struct Bounded<W> {
    path: PathBuf,
    to: W,
}

impl<W: Write> Write for Bounded<W> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        if fs::metadata(&self.path).is_ok_and(|log| log.len() > MAX_LOG) {
            // Where that fails, a long log is better than none.
            let _ = begin_anew(&self.path);
        }
        self.to.write(line)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

/// Copies the log and empties it. It stays the same file, for it is also what the hub's process has as its standard error,
/// where a crash has its last words.
fn begin_anew(log: &Path) -> io::Result<()> {
    let kept = fs::copy(log, log.with_file_name(OLD_LOG_FILE));
    // On a full disk it is emptied all the more.
    OpenOptions::new().write(true).open(log)?.set_len(0)?;
    kept.map(drop)
}

/// Starts logging, on standard error; `file` is where that leads, if it is the hub's own log.
pub(crate) fn start(logging: Logging, file: Option<PathBuf>) {
    let level = match logging.level {
        Level::Debug => LevelFilter::DEBUG,
        Level::Info => LevelFilter::INFO,
        Level::Warn => LevelFilter::WARN,
        Level::Error => LevelFilter::ERROR,
    };
    // Libraries speak up from warnings on, however much of ours is shown.
    let filter = EnvFilter::new(format!("warn,a2a_hub={level},a2a_hub_sandbox={level}"));
    let to = match file {
        Some(path) => BoxMakeWriter::new(Mutex::new(Bounded { path, to: io::stderr() })),
        None => BoxMakeWriter::new(io::stderr),
    };
    let lines =
        tracing_subscriber::fmt().with_env_filter(filter).with_writer(to).with_target(false);
    // A second start in one process, as in tests, keeps the first.
    let _ =
        if logging.pretty { lines.try_init() } else { lines.json().flatten_event(true).try_init() };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_log_is_begun_anew() {
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
