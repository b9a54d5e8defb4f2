//! The hub's own log: one line an event, on standard error.

use crate::config::{Level, Logging};
use std::time::Duration;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::{EnvFilter, fmt};

/// Starts logging; `verbose` shows everything.
pub fn start(logging: Logging, verbose: bool) {
    let level = match logging.level {
        Level::Debug => LevelFilter::DEBUG,
        Level::Info => LevelFilter::INFO,
        Level::Warn => LevelFilter::WARN,
        Level::Error => LevelFilter::ERROR,
    };
    // Libraries speak up from warnings on, however much of ours is shown.
    let ours = if verbose { LevelFilter::DEBUG } else { level };
    let filter = EnvFilter::new(format!("warn,a2a_hub={ours},a2a_hub_sandbox={ours}"));
    let lines = fmt().with_env_filter(filter).with_writer(std::io::stderr).with_target(false);
    // A second start in one process, as in tests, keeps the first.
    let _ =
        if logging.pretty { lines.try_init() } else { lines.json().flatten_event(true).try_init() };
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
