//! The hub's own log: one line an event, on standard error, which is a file when the hub is in the background.

use crate::config::{Level, Logging};
use std::{
    fs::{self, File, OpenOptions},
    io,
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
    time::Duration,
};
use tracing::level_filters::LevelFilter;
use tracing_subscriber::{EnvFilter, fmt};

/// The log of a hub in the background, in its data directory.
pub const LOG_FILE: &str = "hub.log";

/// A log that is larger gives way to a new one when a hub starts; the one before it is kept.
const MAX_LOG: u64 = 10 << 20;

/// Opens the log of a hub in the background, for this user only.
pub fn open_log(data_dir: &Path) -> io::Result<(PathBuf, File)> {
    let path = data_dir.join(LOG_FILE);
    if fs::metadata(&path).is_ok_and(|log| log.len() > MAX_LOG) {
        fs::rename(&path, data_dir.join("hub.log.old"))?;
    }
    let log = OpenOptions::new().append(true).create(true).mode(0o600).open(&path)?;
    Ok((path, log))
}

/// Starts logging.
pub fn start(logging: Logging) {
    let level = match logging.level {
        Level::Debug => LevelFilter::DEBUG,
        Level::Info => LevelFilter::INFO,
        Level::Warn => LevelFilter::WARN,
        Level::Error => LevelFilter::ERROR,
    };
    // Libraries speak up from warnings on, however much of ours is shown.
    let filter = EnvFilter::new(format!("warn,a2a_hub={level},a2a_hub_sandbox={level}"));
    let lines = fmt().with_env_filter(filter).with_writer(io::stderr).with_target(false);
    // A second start in one process, as in tests, keeps the first.
    let _ =
        if logging.pretty { lines.try_init() } else { lines.json().flatten_event(true).try_init() };
}

/// A time in RFC 3339, of any offset and precision, as A2A writes it.
pub fn canonical(time: &str) -> Option<String> {
    time.parse::<jiff::Timestamp>().ok().map(|time| format!("{time:.3}"))
}

/// A time in RFC 3339 as HTTP writes it (RFC 9110, section 5.6.7).
pub fn http_date(time: &str) -> Option<String> {
    let time = time.parse::<jiff::Timestamp>().ok()?;
    jiff::fmt::rfc2822::DateTimePrinter::new().timestamp_to_rfc9110_string(&time).ok()
}

/// How long until HTTP's `Retry-After` is over (RFC 9110, section 10.2.3): it says seconds or a date.
pub fn retry_after(said: &str) -> Option<Duration> {
    let said = said.trim();
    if !said.is_empty() && said.bytes().all(|byte| byte.is_ascii_digit()) {
        // More digits than a number has are a long time, too.
        return Some(Duration::from_secs(said.parse().unwrap_or(u64::MAX)));
    }
    let then = jiff::fmt::rfc2822::DateTimeParser::new().parse_timestamp(said).ok()?;
    Some(until_time(then))
}

/// How long until a time that is written like [`timestamp`]; nothing if it is over, or is none.
pub fn until(time: &str) -> Duration {
    time.parse().map(until_time).unwrap_or_default()
}

fn until_time(then: jiff::Timestamp) -> Duration {
    jiff::Timestamp::now().duration_until(then).try_into().unwrap_or_default()
}

/// The time now as A2A writes it: RFC 3339 in UTC with milliseconds.
pub fn timestamp() -> String {
    format!("{:.3}", jiff::Timestamp::now())
}

/// The time `after` now, written the same way.
pub fn timestamp_in(after: Duration) -> String {
    let then = jiff::Timestamp::now().saturating_add(after);
    // Saturates at the year 9999, so there is always one.
    then.map(|then| format!("{then:.3}")).unwrap_or_else(|_| timestamp())
}

/// The time so long ago, written like [`timestamp`]: the order of such texts is that of their times.
pub fn timestamp_before(age: Duration) -> String {
    let then = jiff::Timestamp::now().checked_sub(age).unwrap_or(jiff::Timestamp::MIN);
    format!("{then:.3}")
}

/// How long ago a time was that is written like [`timestamp`]; nothing if it is yet to come, or is none.
pub fn age(time: &str) -> Duration {
    let since =
        time.parse().map(|then: jiff::Timestamp| then.duration_until(jiff::Timestamp::now()));
    since.ok().and_then(|since| since.try_into().ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        let soon = jiff::Timestamp::now() + jiff::SignedDuration::from_secs(60);
        let date = http_date(&soon.to_string()).unwrap();
        let told = retry_after(&date).unwrap();
        assert!((57..=60).contains(&told.as_secs()), "{date}: {told:?}");
        let seconds = |said: &str| retry_after(said).map(|it| it.as_secs());
        assert_eq!([" 120 ", "0"].map(seconds), [Some(120), Some(0)]);
        assert_eq!(seconds(&"9".repeat(30)), Some(u64::MAX));
        assert_eq!(seconds("Sun, 06 Nov 1994 08:49:37 GMT"), Some(0), "it is over");
        assert_eq!(["", "-1", "1.5", "soon", "1h"].map(seconds), [None; 5]);
    }

    #[test]
    fn how_long_until_then() {
        let told = until(&timestamp_in(Duration::from_secs(60)));
        assert!((57..=60).contains(&told.as_secs()), "{told:?}");
        let over = timestamp_before(Duration::from_secs(60));
        assert_eq!([over.as_str(), "soon"].map(until), [Duration::ZERO; 2]);
    }

    #[test]
    fn a_large_log_gives_way() {
        let dir = tempfile::tempdir().unwrap();
        let size = || fs::metadata(dir.path().join(LOG_FILE)).unwrap().len();
        let (_, log) = open_log(dir.path()).unwrap();
        log.set_len(MAX_LOG).unwrap();
        open_log(dir.path()).unwrap();
        assert_eq!(size(), MAX_LOG, "it is large enough, and not too large");
        log.set_len(MAX_LOG + 1).unwrap();
        open_log(dir.path()).unwrap();
        assert_eq!(size(), 0);
        assert!(dir.path().join("hub.log.old").exists());
    }
}
