//! The hub that uses a data directory, as it says itself there: found also where the configuration has changed since it was started.

use super::run::RUN_FILE;
use rustix::{
    io::Errno,
    process::{Pid, test_kill_process},
};
use serde_json::Value;
use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// What the latest hub of the data directory `dir` wrote down when it was up: an object with its `pid`, its `socket`, its `http` address, and how it was
/// started. A hub that was killed leaves it behind.
pub(super) fn written_down(dir: &Path) -> io::Result<Value> {
    let text = fs::read_to_string(dir.join(RUN_FILE))?;
    serde_json::from_str(&text).map_err(io::Error::other)
}

/// The same of a hub that still runs, as far as its process id tells.
pub(super) fn of(dir: &Path) -> Option<Value> {
    let run = written_down(dir).ok()?;
    let pid = run["pid"].as_i64().and_then(|pid| Pid::from_raw(pid.try_into().ok()?))?;
    // Whoever may not be sent a signal is there.
    let is_there = matches!(test_kill_process(pid), Ok(()) | Err(Errno::PERM));
    is_there.then_some(run)
}

/// Where a hub listens that wrote this down; none if it serves no socket.
pub(super) fn socket(run: &Value) -> Option<PathBuf> {
    run["socket"].as_str().map(PathBuf::from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_hub_is_there_as_long_as_its_process_is() {
        let dir = tempfile::tempdir().unwrap();
        let socket = |dir: &Path| socket(&of(dir)?);
        assert_eq!(socket(dir.path()), None);
        let write = |run: Value| fs::write(dir.path().join(RUN_FILE), run.to_string()).unwrap();
        write(json!({ "pid": std::process::id(), "socket": "/a" }));
        assert_eq!(socket(dir.path()), Some("/a".into()));
        write(json!({ "pid": std::process::id(), "socket": null }));
        assert_eq!(socket(dir.path()), None);
        // Above the most that Linux gives.
        write(json!({ "pid": 1 << 23, "socket": "/a" }));
        assert_eq!(socket(dir.path()), None);
        fs::write(dir.path().join(RUN_FILE), "half of i").unwrap();
        assert_eq!(socket(dir.path()), None);
    }
}
