//! The hub as a process: put into the background, and told to stop.

use rustix::process::{Pid, Signal};
use std::{
    collections::BTreeMap,
    ffi::OsString,
    fs::File,
    io,
    os::unix::process::CommandExt as _,
    path::Path,
    process::{ExitStatus, Stdio},
    time::Duration,
};

/// How often it is looked whether a process is gone.
const LOOK: Duration = Duration::from_millis(20);

/// A hub that was put into the background.
#[derive(Debug)]
pub struct Background(std::process::Child);

impl Background {
    /// Starts `program`, with its output going to `log`, away from this terminal's signals; in this environment only, if one
    /// is given.
    #[expect(
        clippy::disallowed_methods,
        reason = "the hub itself is no guest's program: nobody minds it"
    )]
    pub fn start(
        program: &Path,
        args: &[OsString],
        environment: Option<BTreeMap<String, String>>,
        log: File,
    ) -> io::Result<Self> {
        let error = log.try_clone()?;
        let mut command = std::process::Command::new(program);
        if let Some(environment) = environment {
            command.env_clear().envs(environment);
        }
        let child = command
            .args(args)
            .stdin(Stdio::null())
            .stdout(log)
            .stderr(error)
            .process_group(0)
            .spawn()?;
        Ok(Self(child))
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.0.id()
    }

    /// How it ended, if it has.
    pub fn ended(&mut self) -> io::Result<Option<ExitStatus>> {
        self.0.try_wait()
    }
}

/// Leaves the terminal that the parent was started on, so that closing it ends nothing.
pub fn leave_terminal() {
    // It fails only for the leader of a process group, which has left by being one.
    let _ = rustix::process::setsid();
}

/// Asks the process `pid` to end, and waits until it has; false if it has not within `patience`.
pub async fn terminate(pid: i32, patience: Duration) -> io::Result<bool> {
    let Some(pid) = Pid::from_raw(pid) else { return Err(io::ErrorKind::InvalidInput.into()) };
    match rustix::process::kill_process(pid, Signal::TERM) {
        Ok(()) => {}
        Err(rustix::io::Errno::SRCH) => return Ok(true),
        Err(why) => return Err(why.into()),
    }
    let gone = async {
        while rustix::process::test_kill_process(pid).is_ok() {
            tokio::time::sleep(LOOK).await;
        }
    };
    Ok(tokio::time::timeout(patience, gone).await.is_ok())
}
