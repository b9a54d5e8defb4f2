//! What a running hub is told by signals: to stop, once or more often, and to read its configuration again.

use super::console::{Console, Wish};
use rustix::process::{Signal as Kill, getpid, kill_process};
use std::{
    fs,
    io::{self, IsTerminal as _},
};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// What tells a hub something.
pub(super) struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hangup: Signal,
    /// Whether the hub is to end with the terminal that it was started on.
    ends_with_terminal: bool,
}

/// What it is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Told {
    /// To stop.
    Stop,
    /// To read its configuration again.
    Reload,
}

/// SIGHUP, from now on: until the hub is up, it neither ends it nor is it lost.
pub(super) struct Hangup {
    signal: Signal,
    /// Whether whoever started the hub had it ignored, as `nohup` does.
    was_ignored: bool,
}

/// What tells a command that waits for a task to leave: Ctrl-C, or the end of its terminal or of whoever started it.
pub(super) struct Leaving {
    interrupt: Signal,
    terminate: Signal,
    hangup: Option<Signal>,
}

impl Leaving {
    pub(super) fn new() -> io::Result<Self> {
        // Whoever has it ignored wants the command to outlive the terminal, as `nohup` does.
        let ends = !is_ignored(Kill::HUP)?;
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: if ends { Some(signal(SignalKind::hangup())?) } else { None },
        })
    }

    /// The next time that it is told so.
    pub(super) async fn recv(&mut self) -> Option<()> {
        let hangup = async {
            match &mut self.hangup {
                Some(hangup) => hangup.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            told = self.interrupt.recv() => told,
            told = self.terminate.recv() => told,
            told = hangup => told,
        }
    }
}

impl Hangup {
    pub(super) fn new() -> io::Result<Self> {
        let was_ignored = is_ignored(Kill::HUP)?;
        Ok(Self { signal: signal(SignalKind::hangup())?, was_ignored })
    }
}

impl Signals {
    pub(super) fn new(hangup: Hangup) -> io::Result<Self> {
        let (terminate, interrupt) = (SignalKind::terminate(), SignalKind::interrupt());
        Ok(Self {
            terminate: signal(terminate)?,
            interrupt: signal(interrupt)?,
            hangup: hangup.signal,
            ends_with_terminal: is_on_terminal() && !hangup.was_ignored,
        })
    }

    /// What the hub is told next.
    pub(super) async fn next(&mut self) -> Told {
        tokio::select! {
            _ = self.terminate.recv() => Told::Stop,
            _ = self.interrupt.recv() => Told::Stop,
            _ = self.hangup.recv() => {
                // A terminal that was closed sends it as well, and takes with it who would end the hub.
                if self.ends_with_terminal && !is_on_terminal() { Told::Stop } else { Told::Reload }
            }
        }
    }

    /// Waits until it is told to stop.
    pub(super) async fn stop(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

/// Whether this process ignores a signal, as the system tells it.
fn is_ignored(signal: Kill) -> io::Result<bool> {
    let status = fs::read_to_string("/proc/self/status")?;
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or_default();
    Ok(mask >> (signal.as_raw() - 1) & 1 == 1)
}

/// Whether one of its three streams is a terminal, that still is one.
fn is_on_terminal() -> bool {
    let console = Console::new(Wish::default());
    io::stdin().is_terminal() || console.columns().is_some() || console.columns_beside().is_some()
}

/// Ends this process at once: its minders notice and end its programs, and the next hub finds what was stored.
pub(super) fn end_at_once() {
    // Nobody can be kept from killing oneself.
    let _ = kill_process(getpid(), Kill::KILL);
}
