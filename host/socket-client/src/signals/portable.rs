//! Ctrl-C as the only signal.

use super::leave_signal::LeaveSignal;
use a2a_hub_terminal::Interrupts;
use std::io;

/// Signal handlers of a command that waits for a task: Ctrl-C. The end of its console ends the
/// process.
#[derive(Debug)]
pub struct CtrlCOnly(Interrupts);

impl CtrlCOnly {
    /// Installs the handlers.
    ///
    /// # Errors
    /// The system refuses a handler.
    pub fn new() -> io::Result<Self> {
        Ok(Self(Interrupts::new()?))
    }

    /// Waits for the next of these signals.
    pub async fn next(&mut self) -> LeaveSignal {
        self.0.next().await;
        LeaveSignal::Interrupt
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use tokio::time::timeout;

    #[tokio::test]
    async fn signal_is_awaited() {
        let mut signals = CtrlCOnly::new().unwrap();
        assert!(timeout(Duration::from_millis(20), signals.next()).await.is_err());
    }
}
