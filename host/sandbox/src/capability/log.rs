//! Lines for the operator: always there, capped, and no faster than anybody would read them.

use crate::{
    bindings::a2a::hub::log::{Host, Level},
    state::State,
    usage::{pace, wait},
};

/// What a line costs besides its text, in bytes: about what the hub writes around it, its time, level, agent and task.
const FRAME: u64 = 128;

impl Host for State {
    async fn log(&mut self, level: Level, message: String) -> wasmtime::Result<()> {
        // The operator has read it.
        if self.is_replayed() {
            return Ok(());
        }
        let size = u64::try_from(message.len()).unwrap_or(u64::MAX).saturating_add(FRAME);
        let (Some(log), Some(left)) = (&self.ports.log, self.log_bytes_left) else { return Ok(()) };
        let time = pace(&mut self.paces.log_lines, 1);
        // Who is asked to stop may say why.
        let _is_cancelled = wait(time, &self.cancel).await;
        let level = match level {
            Level::Debug => tracing::Level::DEBUG,
            Level::Info => tracing::Level::INFO,
            Level::Warn => tracing::Level::WARN,
            Level::Error => tracing::Level::ERROR,
        };
        self.log_bytes_left = left.checked_sub(size);
        if self.log_bytes_left.is_some() {
            log(level, &self.redaction.secrets.hide(&message));
        } else {
            let why = "log limit reached: the rest of this task's lines is left out";
            log(tracing::Level::WARN, why);
        }
        Ok(())
    }
}
