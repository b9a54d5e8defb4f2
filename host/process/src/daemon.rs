//! The hub as a daemon: started in the background, stopped, and killed if it does not react.

use super::{
    inherited::InheritedDescriptors,
    proc::{now, wait_for},
};
use rustix::{
    event::{PollFd, PollFlags},
    process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal},
};
use std::{
    collections::BTreeMap,
    ffi::OsString,
    fs::{self, File, TryLockError},
    io::{self, Read as _},
    os::{
        fd::OwnedFd,
        unix::{fs::MetadataExt as _, process::CommandExt as _},
    },
    path::Path,
    process::{ExitStatus, Stdio},
    time::Duration,
};
use tokio::task::spawn_blocking;

/// Settings of glibc's allocator for a hub in the background, as environment variables that it
/// reads at process start: memory that agents used is returned to the machine once they are gone.
/// By default a freed large text makes the allocator keep all texts of that size, in up to eight
/// heaps for each core.
pub const ALLOCATOR: [(&str, &str); 3] = [
    ("MALLOC_ARENA_MAX", "4"),
    ("MALLOC_MMAP_THRESHOLD_", "131072"),
    ("MALLOC_TRIM_THRESHOLD_", "131072"),
];

/// A hub in the background.
#[derive(Debug)]
pub struct Background(std::process::Child);

impl Background {
    /// Starts `program` in a new process group, away from this terminal's signals, with its output
    /// in `log`. `environment` and `directory` replace the inherited ones if given. The hub keeps
    /// no other descriptor of this process open, such as a lock of the shell that started it.
    #[expect(
        clippy::disallowed_methods,
        reason = "the hub itself is no guest's program: nobody minds it"
    )]
    pub fn start(
        program: &Path,
        args: &[OsString],
        environment: Option<BTreeMap<String, String>>,
        directory: Option<&Path>,
        log: File,
    ) -> io::Result<Self> {
        let error = log.try_clone()?;
        let mut command = std::process::Command::new(program);
        command.envs(ALLOCATOR);
        if let Some(environment) = environment {
            command.env_clear().envs(environment);
        }
        if let Some(directory) = directory {
            command.current_dir(directory);
        }
        InheritedDescriptors::of_now()?.withhold_from(&mut command)?;
        let command = command.args(args).stdin(Stdio::null()).stdout(log).stderr(error);
        Ok(Self(command.process_group(0).spawn()?))
    }

    /// Process id of the daemon.
    pub fn id(&self) -> u32 {
        self.0.id()
    }

    /// Exit status, if the daemon has ended.
    pub fn ended(&mut self) -> io::Result<Option<ExitStatus>> {
        self.0.try_wait()
    }
}

/// Leaves the parent's terminal, so that closing the terminal ends nothing.
pub fn leave_terminal() {
    // It fails only for a process group leader, which has left the terminal's process group
    // already.
    let _ = rustix::process::setsid();
}

/// Sends SIGTERM to the process `pid` and waits until it has ended; false if it has not within
/// `timeout`.
pub async fn terminate(pid: i32, timeout: Duration) -> io::Result<bool> {
    ask(pid, Signal::TERM, timeout).await
}

/// Repeats the request with SIGINT, for a process that may have got SIGTERM just before: a second
/// signal of a kind is lost while the first is pending (signal(7)).
pub async fn terminate_again(pid: i32, timeout: Duration) -> io::Result<bool> {
    ask(pid, Signal::INT, timeout).await
}

async fn ask(pid: i32, kind: Signal, timeout: Duration) -> io::Result<bool> {
    let pid = Pid::from_raw(pid).ok_or(io::ErrorKind::InvalidInput)?;
    match pidfd_open(pid, PidfdFlags::empty()) {
        Ok(process) => signal(process, kind, timeout).await,
        Err(rustix::io::Errno::SRCH) => Ok(true),
        Err(why) => Err(why.into()),
    }
}

/// Signals a process and waits until it has ended, reaped or not; false if it has not within
/// `timeout`.
async fn signal(process: OwnedFd, signal: Signal, timeout: Duration) -> io::Result<bool> {
    match pidfd_send_signal(&process, signal) {
        Ok(()) => {}
        Err(rustix::io::Errno::SRCH) => return Ok(true),
        Err(why) => return Err(why.into()),
    }
    let has_ended = move || {
        let deadline = now() + timeout;
        loop {
            // A pidfd is readable once its process has ended.
            let mut handle = [PollFd::new(&process, PollFlags::IN)];
            wait_for(&mut handle, deadline.saturating_duration_since(now()));
            if !handle[0].revents().is_empty() || now() >= deadline {
                return !handle[0].revents().is_empty();
            }
        }
    };
    spawn_blocking(has_ended).await.map_err(io::Error::other)
}

/// A running hub, identified by the lock that it holds on its data directory.
#[derive(Debug)]
pub struct HubProcess {
    /// Process id.
    pub pid: i32,
    process: OwnedFd,
}

/// Reason why the holder of a lock is unknown.
#[derive(Debug, thiserror::Error)]
pub enum Unproven {
    /// The lock cannot be read.
    #[error("inspect the lock {0}: {1}")]
    Io(String, io::Error),
    /// The holder of the lock is not the process that the lock names.
    #[error(
        "the lock {0} is held, but not by the process that it names; find out who holds it, for instance with `fuser`"
    )]
    Other(String),
}

/// The hub that holds the lock `file`, if any. The lock names a process, and the system confirms
/// that this process has the file open, so that a stale pid is never mistaken for the hub.
pub fn holder(file: &Path) -> Result<Option<HubProcess>, Unproven> {
    let shown = || file.display().to_string();
    let failed = |why| Unproven::Io(shown(), why);
    let mut lock = match File::open(file) {
        Ok(lock) => lock,
        Err(why) if why.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(why) => return Err(failed(why)),
    };
    match lock.try_lock() {
        // Closing the file releases the lock at once.
        Ok(()) => return Ok(None),
        Err(TryLockError::WouldBlock) => {}
        Err(TryLockError::Error(why)) => return Err(failed(why)),
    }
    let mut signed = String::new();
    lock.read_to_string(&mut signed).map_err(failed)?;
    let pid = signed.trim().parse().ok().and_then(Pid::from_raw);
    // Opened first, so that all later checks apply to this process.
    let process = pid.and_then(|pid| Some((pid, pidfd_open(pid, PidfdFlags::empty()).ok()?)));
    let Some((pid, process)) = process else { return Err(Unproven::Other(shown())) };
    let lock = lock.metadata().map_err(failed)?;
    if !has_open(pid, &lock) {
        return Err(Unproven::Other(shown()));
    }
    Ok(Some(HubProcess { pid: pid.as_raw_pid(), process }))
}

/// True if a process of this user has this file open.
fn has_open(pid: Pid, file: &fs::Metadata) -> bool {
    let uid = rustix::process::geteuid().as_raw();
    let Ok(open) = fs::read_dir(format!("/proc/{pid}/fd")) else { return false };
    let is_same_user =
        fs::metadata(format!("/proc/{pid}")).is_ok_and(|process| process.uid() == uid);
    let mut files = open.filter_map(|entry| fs::metadata(entry.ok()?.path()).ok());
    is_same_user && files.any(|open| (open.dev(), open.ino()) == (file.dev(), file.ino()))
}

impl HubProcess {
    /// Kills the hub and waits until it is gone; false if it is stuck in the kernel for longer than
    /// `timeout`.
    pub async fn kill(self, timeout: Duration) -> io::Result<bool> {
        signal(self.process, Signal::KILL, timeout).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    fn lock(dir: &Path, signed: u32) -> (std::path::PathBuf, File) {
        let path = dir.join("hub.lock");
        let mut file = File::create(&path).unwrap();
        writeln!(file, "{signed}").unwrap();
        (path, file)
    }

    #[test]
    fn daemon_keeps_no_lock_of_its_caller() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lock");
        let lock = File::create(&path).unwrap();
        lock.lock().unwrap();
        // As a shell opens its files.
        rustix::io::fcntl_setfd(&lock, rustix::io::FdFlags::empty()).unwrap();
        let log = File::create(dir.path().join("log")).unwrap();
        let args = ["-c".into(), "echo up; sleep 20".into()];
        let mut daemon = Background::start(Path::new("/bin/sh"), &args, None, None, log).unwrap();
        while fs::read(dir.path().join("log")).unwrap().is_empty() {
            assert!(daemon.ended().unwrap().is_none(), "it runs");
            crate::proc::pause(Duration::from_millis(5));
        }
        drop(lock);
        assert!(File::open(&path).unwrap().try_lock().is_ok(), "nobody has it");
        daemon.0.kill().unwrap();
        daemon.0.wait().unwrap();
    }

    #[test]
    fn only_lock_holder_counts_as_hub() {
        let dir = tempfile::tempdir().unwrap();
        assert!(holder(&dir.path().join("none")).unwrap().is_none());
        let (path, file) = lock(dir.path(), std::process::id());
        assert!(holder(&path).unwrap().is_none(), "a hub that is gone left it");
        file.lock().unwrap();
        let found = holder(&path).unwrap().unwrap();
        assert_eq!(u32::try_from(found.pid).unwrap(), std::process::id());
        drop(file);

        // Neither pid 1 nor a missing process has the file open.
        for other in [1, u32::try_from(i32::MAX).unwrap()] {
            let (path, file) = lock(dir.path(), other);
            file.lock().unwrap();
            assert!(matches!(holder(&path), Err(Unproven::Other(_))), "{other}");
        }
        let (path, mut file) = lock(dir.path(), 1);
        file.set_len(0).unwrap();
        write!(file, "-1; rm").unwrap();
        file.lock().unwrap();
        assert!(matches!(holder(&path), Err(Unproven::Other(_))));
    }
}
