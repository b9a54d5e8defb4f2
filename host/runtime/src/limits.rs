//! What one run of an agent may use up. Each limit is per task, and passing it ends that task only.

use a2a_hub_core::granted_limits::MAX_MEMORY_MB;
use std::time::Duration;

/// The largest memory any agent can be given, in bytes.
pub const MAX_MEMORY_BYTES: usize = (MAX_MEMORY_MB as usize) << 20;

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
    /// Requests it sends by HTTP, in all.
    pub http_requests: u64,
    /// Bytes of those requests and of their answers, in all.
    pub http_bytes: u64,
    /// Bytes it writes into files of its workspace, in all, whatever it removes again.
    pub workspace_bytes: u64,
    /// Files and directories it makes there, in all.
    pub workspace_files: u64,
    /// How fast it may go on with what others have to do something for.
    pub rates: Rates,
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
            // A long afternoon with a model, or with an API that has pages.
            http_requests: 1_000,
            http_bytes: 64 << 20,
            // A large repository's worth of changes.
            workspace_bytes: 256 << 20,
            workspace_files: 10_000,
            rates: Rates::default(),
        }
    }
}

/// What a run may ask for each second. Twice as much may come at once; who asks for more waits, so that nothing is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rates {
    /// Events it emits.
    pub events: u64,
    /// Bytes of the events it emits.
    pub output_bytes: u64,
    /// Lines it logs.
    pub log_lines: u64,
    /// Values that it looks up, remembers and forgets.
    pub memory_calls: u64,
    /// Files it writes.
    pub files: u64,
    /// Programs that it starts, or looks at.
    pub programs: u64,
}

impl Default for Rates {
    /// More than a model says, a program prints or a person reads; and so little that eight runs which do nothing else take a
    /// tenth of a core.
    fn default() -> Self {
        Self {
            events: 1_000,
            output_bytes: 2 << 20,
            log_lines: 200,
            memory_calls: 200,
            files: 200,
            programs: 20,
        }
    }
}
