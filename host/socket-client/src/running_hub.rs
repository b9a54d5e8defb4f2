//! Run file of the hub that uses a data directory. It locates the hub even if the configuration has
//! changed since the start.

use rustix::{
    io::Errno,
    process::{Pid, test_kill_process},
};
use serde::Deserialize as _;
use serde_json::Value;
use std::{
    ffi::{OsStr, OsString},
    fs, io,
    os::unix::ffi::{OsStrExt as _, OsStringExt as _},
    path::{Path, PathBuf},
};

/// Run file: the file in the data directory with the running hub's address.
pub const RUN_FILE: &str = "run.json";

/// Reads the run file of the latest hub of the data directory `dir`: an object with its `pid`,
/// `socket` and `http` address, and its command line. A killed hub leaves the file behind.
pub fn written_down(dir: &Path) -> io::Result<Value> {
    let text = fs::read_to_string(dir.join(RUN_FILE))?;
    serde_json::from_str(&text).map_err(io::Error::other)
}

/// Reads the run file if the process of its `pid` exists.
pub fn read_if_running(dir: &Path) -> Option<Value> {
    let run = written_down(dir).ok()?;
    let pid = run["pid"].as_i64().and_then(|pid| Pid::from_raw(pid.try_into().ok()?))?;
    // EPERM also means that the process exists.
    let is_there = matches!(test_kill_process(pid), Ok(()) | Err(Errno::PERM));
    is_there.then_some(run)
}

/// Returns the socket's path; `None` if the hub serves no socket.
pub fn socket(run: &Value) -> Option<PathBuf> {
    system_text(&run["socket"]).map(PathBuf::from)
}

/// Encodes a path or an argument for the run file: a string, or an array of bytes if it is not
/// UTF-8, as a path may be.
pub fn system_value(text: &OsStr) -> Value {
    match text.to_str() {
        Some(text) => text.into(),
        None => text.as_bytes().into(),
    }
}

/// Decodes a path or an argument of the run file.
pub fn system_text(value: &Value) -> Option<OsString> {
    match value.as_str() {
        Some(text) => Some(text.into()),
        None => Vec::deserialize(value).ok().map(OsString::from_vec),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn run_file_keeps_path_that_is_no_utf8() {
        for (path, value) in [
            (OsStr::from_bytes(b"/caf\xc3\xa9"), json!("/café")),
            (OsStr::from_bytes(b"/caf\xe9"), json!([47, 99, 97, 102, 233])),
        ] {
            assert_eq!(system_value(path), value);
            assert_eq!(system_text(&value).as_deref(), Some(path));
        }
        for odd in [json!(null), json!(["/a"]), json!([256]), json!({})] {
            assert_eq!(system_text(&odd), None, "{odd}");
        }
    }

    #[test]
    fn run_file_of_dead_process_is_ignored() {
        let dir = tempfile::tempdir().unwrap();
        let socket = |dir: &Path| socket(&read_if_running(dir)?);
        assert_eq!(socket(dir.path()), None);
        let write = |run: Value| fs::write(dir.path().join(RUN_FILE), run.to_string()).unwrap();
        write(json!({ "pid": std::process::id(), "socket": "/a" }));
        assert_eq!(socket(dir.path()), Some("/a".into()));
        write(json!({ "pid": std::process::id(), "socket": null }));
        assert_eq!(socket(dir.path()), None);
        // Above the maximum process id of Linux.
        write(json!({ "pid": 1 << 23, "socket": "/a" }));
        assert_eq!(socket(dir.path()), None);
        fs::write(dir.path().join(RUN_FILE), "half of i").unwrap();
        assert_eq!(socket(dir.path()), None);
    }
}
