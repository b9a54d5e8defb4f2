//! Log lines for the operator: always allowed, with limits on rate and total size.

use crate::store::{
    bindings::a2a::hub::log::{Host, Level},
    state::GuestState,
    usage::{pace, wait},
};

/// Cost of a line besides its text, in bytes: about the size of its time, level, agent and task.
const FRAME: u64 = 128;

impl Host for GuestState {
    async fn log(&mut self, level: Level, message: String) -> wasmtime::Result<()> {
        // Logged by the original run.
        if self.is_replayed() {
            return Ok(());
        }
        let size = u64::try_from(message.len()).unwrap_or(u64::MAX).saturating_add(FRAME);
        let (Some(log), Some(remaining)) = (&self.ports.log, self.remaining_log_bytes) else {
            return Ok(());
        };
        let time = pace(&mut self.paces.log_lines, 1);
        // A cancelled guest may still log the reason.
        let _is_cancelled = wait(time, &self.cancel).await;
        let level = match level {
            Level::Debug => tracing::Level::DEBUG,
            Level::Info => tracing::Level::INFO,
            Level::Warn => tracing::Level::WARN,
            Level::Error => tracing::Level::ERROR,
        };
        self.remaining_log_bytes = remaining.checked_sub(size);
        if self.remaining_log_bytes.is_some() {
            log(level, &self.redaction.secrets.hide(&message));
        } else {
            let why = "log limit reached: the rest of this task's lines is left out";
            log(tracing::Level::WARN, why);
        }
        Ok(())
    }
}
