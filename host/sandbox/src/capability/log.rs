//! Lines for the operator: always there, capped.

use crate::{
    bindings::a2a::hub::log::{Host, Level},
    state::State,
};

impl Host for State {
    fn log(&mut self, level: Level, message: String) -> wasmtime::Result<()> {
        let size = u64::try_from(message.len()).unwrap_or(u64::MAX);
        let Some(log) = &self.ports.log else { return Ok(()) };
        if self.log_bytes_left == 0 {
            return Ok(());
        }
        let level = match level {
            Level::Debug => tracing::Level::DEBUG,
            Level::Info => tracing::Level::INFO,
            Level::Warn => tracing::Level::WARN,
            Level::Error => tracing::Level::ERROR,
        };
        match self.log_bytes_left.checked_sub(size) {
            Some(left) => {
                self.log_bytes_left = left;
                log(level, &self.redaction.secrets.hide(&message));
            }
            None => {
                self.log_bytes_left = 0;
                log(
                    tracing::Level::WARN,
                    "log limit reached: the rest of this task's lines is left out",
                );
            }
        }
        Ok(())
    }
}
