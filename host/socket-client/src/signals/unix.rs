//! Signals of Unix.

use super::leave_signal::LeaveSignal;
use a2a_hub_config::is_colourless;
use a2a_hub_terminal::console::{Console, Wish};
use rustix::process::{Signal as Kill, getpid, kill_process};
use std::{
    fs,
    io::{self, IsTerminal as _},
};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Signal handlers of the hub.
pub struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hangup: Signal,
    /// True if the hub ends with the terminal that it was started on.
    ends_with_terminal: bool,
}

/// Request of a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignalRequest {
    /// Stop the hub.
    Stop,
    /// Reload the configuration.
    Reload,
}

/// Handler of SIGHUP, installed early: while the hub starts, the signal neither ends it nor gets
/// lost.
pub struct Hangup {
    signal: Signal,
    /// True if the parent process had SIGHUP ignored, as `nohup` does.
    was_ignored: bool,
}

/// Signal handlers of a command that waits for a task: Ctrl-C, SIGTERM, or the end of its terminal.
pub struct LeaveSignals {
    interrupt: Signal,
    terminate: Signal,
    hangup: Option<Signal>,
}

impl LeaveSignals {
    /// Installs the handlers.
    ///
    /// # Errors
    /// The system refuses a handler.
    pub fn new() -> io::Result<Self> {
        // A parent process that ignores SIGHUP, as `nohup` does, wants the command to outlive the
        // terminal.
        let ends = !is_ignored(Kill::HUP)?;
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: if ends { Some(signal(SignalKind::hangup())?) } else { None },
        })
    }

    /// Waits for the next of these signals.
    pub async fn next(&mut self) -> LeaveSignal {
        let hangup = async {
            match &mut self.hangup {
                Some(hangup) => hangup.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = self.interrupt.recv() => LeaveSignal::Interrupt,
            _ = self.terminate.recv() => LeaveSignal::Terminate,
            _ = hangup => LeaveSignal::Hangup,
        }
    }
}

impl Hangup {
    /// Installs the handler.
    ///
    /// # Errors
    /// The system refuses a handler.
    pub fn new() -> io::Result<Self> {
        let was_ignored = is_ignored(Kill::HUP)?;
        Ok(Self { signal: signal(SignalKind::hangup())?, was_ignored })
    }
}

impl Signals {
    /// Installs the other handlers of the hub.
    ///
    /// # Errors
    /// The system refuses a handler.
    pub fn new(hangup: Hangup) -> io::Result<Self> {
        let (terminate, interrupt) = (SignalKind::terminate(), SignalKind::interrupt());
        Ok(Self {
            terminate: signal(terminate)?,
            interrupt: signal(interrupt)?,
            hangup: hangup.signal,
            ends_with_terminal: is_on_terminal() && !hangup.was_ignored,
        })
    }

    /// Waits for the next request.
    pub async fn next(&mut self) -> SignalRequest {
        tokio::select! {
            _ = self.terminate.recv() => SignalRequest::Stop,
            _ = self.interrupt.recv() => SignalRequest::Stop,
            _ = self.hangup.recv() => {
                // A closed terminal sends SIGHUP as well; the hub then ends, because its user can
                // no longer do so.
                if self.ends_with_terminal && !is_on_terminal() { SignalRequest::Stop } else { SignalRequest::Reload }
            }
        }
    }

    /// Waits for a request to stop.
    pub async fn stop(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

/// True if this process ignores `signal`, according to procfs; false on a system without it.
fn is_ignored(signal: Kill) -> io::Result<bool> {
    let status = match fs::read_to_string("/proc/self/status") {
        Err(why) if why.kind() == io::ErrorKind::NotFound => return Ok(false),
        status => status?,
    };
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or_default();
    Ok(mask >> (signal.as_raw() - 1) & 1 == 1)
}

/// True if standard input, output or error is an open terminal.
fn is_on_terminal() -> bool {
    let console = Console::new(Wish { raw: false, plain: is_colourless() });
    io::stdin().is_terminal() || console.columns().is_some() || console.stderr_columns().is_some()
}

/// Kills this process: its minders end its programs, and the next hub recovers the stored tasks.
pub fn end_at_once() {
    // Sending a signal to the own process cannot fail.
    let _ = kill_process(getpid(), Kill::KILL);
}
