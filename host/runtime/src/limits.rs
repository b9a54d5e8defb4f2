//! What one run of an agent may use up. Each limit is per task, and passing it ends that task only.

use std::time::Duration;

/// The largest memory any agent can be given, in bytes.
pub const MAX_MEMORY_BYTES: usize = 1 << 30;

/// The room on this machine that runs share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// How many runs take it up.
    pub taken: usize,
    /// How many runs may take it up at once.
    pub most: usize,
}

/// How much one task's instance may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// All its linear memories together, in bytes.
    pub memory_bytes: usize,
    /// Time on the processor. Waiting is free.
    pub cpu: Duration,
    /// Events it emits, in all.
    pub events: u64,
    /// Bytes of the events it emits, in all.
    pub output_bytes: u64,
    /// Bytes it logs, in all, with a little for each line.
    pub log_bytes: u64,
}

impl Default for Limits {
    /// Room for a chatty coding agent (the longest answer seen is 40,000 deltas, 4.4 MB); not for a runaway one.
    fn default() -> Self {
        Self {
            memory_bytes: 64 << 20,
            cpu: Duration::from_secs(20),
            events: 100_000,
            output_bytes: 32 << 20,
            log_bytes: 64 << 10,
        }
    }
}
