//! Limits of one agent run. Each limit applies to one task, and exceeding it ends only that task.

use a2a_hub_core::grant::resource_limits::MAX_MEMORY_MB;
use std::time::Duration;

/// Largest memory that an agent can be given, in bytes.
pub const MAX_MEMORY_BYTES: usize = (MAX_MEMORY_MB as usize) << 20;

/// Capacity of this machine for runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunCapacity {
    /// Number of runs that use it.
    pub running: usize,
    /// Limit of concurrent runs.
    pub max: usize,
}

/// Limits of one task's instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Total size of its linear memories, in bytes.
    pub memory_bytes: usize,
    /// CPU time. Waiting is free.
    pub cpu: Duration,
    /// Total number of emitted events.
    pub events: u64,
    /// Total size of emitted events, in bytes.
    pub output_bytes: u64,
    /// Total size of logged text in bytes, with a small charge for each line.
    pub log_bytes: u64,
    /// Total number of HTTP requests.
    pub http_requests: u64,
    /// Total size of those requests and their answers, in bytes.
    pub http_bytes: u64,
    /// Total number of bytes written to workspace files; removed files count as well.
    pub workspace_bytes: u64,
    /// Total number of files and directories created there.
    pub workspace_files: u64,
    /// Rate limits of requests that cause work for others.
    pub rates: Rates,
}

impl Default for Limits {
    /// Enough for a verbose coding agent (the longest answer seen is 40,000 deltas, 4.4 MB), but
    /// not for a runaway one.
    fn default() -> Self {
        Self {
            memory_bytes: 64 << 20,
            cpu: Duration::from_secs(20),
            events: 100_000,
            output_bytes: 32 << 20,
            log_bytes: 64 << 10,
            // A long afternoon with a model, or with a paged API.
            http_requests: 1_000,
            http_bytes: 64 << 20,
            // Changes to a large repository.
            workspace_bytes: 256 << 20,
            workspace_files: 10_000,
            rates: Rates::default(),
        }
    }
}

/// Rate limits of a run, in units a second. A burst of twice as many is allowed; beyond that the
/// run waits, so nothing is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rates {
    /// Emitted events.
    pub events: u64,
    /// Bytes of emitted events.
    pub output_bytes: u64,
    /// Log lines.
    pub log_lines: u64,
    /// Reads, writes and deletions of memory values.
    pub memory_calls: u64,
    /// Written files.
    pub files: u64,
    /// Started or inspected programs.
    pub programs: u64,
}

impl Default for Rates {
    /// More than a model emits, a program prints or a person reads; yet eight runs that do nothing
    /// else take only a tenth of a core.
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
