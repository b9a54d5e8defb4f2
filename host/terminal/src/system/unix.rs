//! Terminals by `termios` and `poll`, and Ctrl-C as a signal.

use super::OutputStream;
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    termios::{QueueSelector, Winsize, tcflush, tcgetwinsize},
};
use std::{io, os::fd::AsFd, time::Duration};
use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    time::sleep,
};

/// Interval at which a terminal is polled for a line that the user typed.
const KEYS: Duration = Duration::from_millis(30);

/// Each terminal of Unix does.
pub(crate) fn understands_escapes() -> bool {
    true
}

/// Columns and rows of the terminal that the stream is; `None` if it is none.
pub(crate) fn size(output: OutputStream) -> Option<(usize, usize)> {
    let size = match output {
        OutputStream::Stdout => tcgetwinsize(io::stdout()),
        OutputStream::Stderr => tcgetwinsize(io::stderr()),
    };
    let Winsize { ws_col, ws_row, .. } = size.ok()?;
    Some((ws_col.into(), ws_row.into()))
}

fn events(stream: impl AsFd, wanted: PollFlags) -> PollFlags {
    let mut watched = [PollFd::new(&stream, wanted)];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    match poll(&mut watched, Some(&now)) {
        Ok(_) => watched[0].revents(),
        Err(_) => PollFlags::empty(),
    }
}

/// True if the reader of standard output closed it.
pub(crate) fn is_stdout_closed() -> bool {
    events(io::stdout(), PollFlags::empty()).intersects(PollFlags::ERR | PollFlags::HUP)
}

/// Discards what the user typed and nobody read.
pub(crate) fn discard_input() -> io::Result<()> {
    Ok(tcflush(io::stdin(), QueueSelector::IFlush)?)
}

/// Reads the next line that the user types, or an empty one at the end of the input.
/// Cancel-safe: a terminal is readable once it has a whole line, so the read does not block.
pub(crate) async fn read_line() -> io::Result<String> {
    while events(io::stdin(), PollFlags::IN).is_empty() {
        sleep(KEYS).await;
    }
    let mut line = String::new();
    io::stdin().read_line(&mut line)?;
    Ok(line)
}

/// Interrupts by the user: Ctrl-C, which no longer ends the process.
#[derive(Debug)]
pub struct Interrupts(Signal);

impl Interrupts {
    /// Installs the handler.
    ///
    /// # Errors
    ///
    /// The system refuses it.
    pub fn new() -> io::Result<Self> {
        Ok(Self(signal(SignalKind::interrupt())?))
    }

    /// Waits for the next interrupt. Cancel-safe.
    pub async fn next(&mut self) {
        self.0.recv().await;
    }
}
