//! Resource limits in a plug-in's grant: numbers of the operator, in addition to the permissions. A
//! manifest asks for none of them.

use serde::{Deserialize, Serialize, de::IntoDeserializer as _};
use std::{collections::BTreeMap, fmt, str::FromStr};

/// Maximum memory of a run, in MiB.
pub const MAX_MEMORY_MB: u32 = 1024;

/// Maximum time for keeping or waiting, in milliseconds; a larger value is a mistake.
pub const MAX_WAIT_MS: u64 = 366 * 24 * 60 * 60 * 1000;

/// Limits, by their names in the configuration's `limits`. A limit that is left out is as in the
/// configuration.
pub type GrantedLimits = BTreeMap<LimitName, u64>;

/// Name of a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LimitName {
    /// Memory, in MiB.
    MemoryMb,
    /// Processor time, in milliseconds.
    CpuMs,
    /// Number of events.
    Events,
    /// Size of the events, in bytes.
    OutputBytes,
    /// Size of the log, in bytes.
    LogBytes,
    /// Number of HTTP requests.
    HttpRequests,
    /// Size of the HTTP requests and responses, in bytes.
    HttpBytes,
    /// Bytes written into the workspace.
    WorkspaceBytes,
    /// Files and directories created in the workspace.
    WorkspaceFiles,
    /// Events each second.
    EventsPerSecond,
    /// Bytes of events each second.
    OutputBytesPerSecond,
    /// Log lines each second.
    LogLinesPerSecond,
    /// Memory calls each second.
    MemoryCallsPerSecond,
    /// Files written each second.
    FilesPerSecond,
    /// Programs started each second.
    ProgramsPerSecond,
    /// Idle programs kept between tasks.
    KeptPrograms,
    /// Maximum idle time of a kept program, in milliseconds.
    KeptIdleMs,
    /// Memory of idle programs, in MiB.
    KeptMemoryMb,
}

/// Error for an unknown limit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("limit `{name}`: {why}")]
pub struct UnknownLimit {
    /// Unknown name.
    name: String,
    /// Message with the known names.
    why: String,
}

/// Error for a number that is out of range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OutOfRange {
    /// It must be between two bounds.
    #[error("it must be from {min} to {max}")]
    Between {
        /// Lower bound, inclusive.
        min: u64,
        /// Upper bound, inclusive.
        max: u64,
    },
    /// It must not be less than this.
    #[error("it must be {0} or more")]
    Less(u64),
}

impl OutOfRange {
    /// Checks a number against a minimum and a maximum.
    pub fn check(number: u64, min: u64, max: u64) -> Result<(), Self> {
        if (min..=max).contains(&number) {
            return Ok(());
        }
        Err(if max == u64::MAX { Self::Less(min) } else { Self::Between { min, max } })
    }
}

impl LimitName {
    /// Checks a value of this limit. Zero is allowed only for resources that a task can do without.
    pub fn check(self, number: u64) -> Result<(), OutOfRange> {
        let (min, max) = match self {
            Self::MemoryMb => (1, MAX_MEMORY_MB.into()),
            Self::CpuMs => (1, MAX_WAIT_MS),
            Self::Events
            | Self::OutputBytes
            | Self::EventsPerSecond
            | Self::OutputBytesPerSecond
            | Self::LogLinesPerSecond
            | Self::MemoryCallsPerSecond
            | Self::FilesPerSecond
            | Self::ProgramsPerSecond => (1, u64::MAX),
            Self::LogBytes
            | Self::HttpRequests
            | Self::HttpBytes
            | Self::WorkspaceBytes
            | Self::WorkspaceFiles
            | Self::KeptPrograms
            | Self::KeptMemoryMb => (0, u64::MAX),
            Self::KeptIdleMs => (0, MAX_WAIT_MS),
        };
        OutOfRange::check(number, min, max)
    }
}

impl fmt::Display for LimitName {
    /// Name in the configuration.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

impl FromStr for LimitName {
    type Err = UnknownLimit;

    fn from_str(name: &str) -> Result<Self, UnknownLimit> {
        Self::deserialize(name.into_deserializer()).map_err(|why: serde::de::value::Error| {
            UnknownLimit { name: name.to_owned(), why: why.to_string() }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limit_names_match_configuration() {
        assert_eq!("cpu_ms".parse(), Ok(LimitName::CpuMs));
        assert_eq!("events_per_second".parse(), Ok(LimitName::EventsPerSecond));
        let why = "cpu".parse::<LimitName>().unwrap_err().to_string();
        assert!(
            why.starts_with(
                "limit `cpu`: unknown variant `cpu`, expected one of `memory_mb`, `cpu_ms`"
            ),
            "{why}"
        );
    }

    #[test]
    fn limit_out_of_range_is_refused() {
        assert_eq!(LimitName::HttpRequests.check(0), Ok(()));
        assert_eq!(LimitName::MemoryMb.check(1024), Ok(()));
        for (name, number, why) in [
            (LimitName::MemoryMb, 1025, "memory_mb: it must be from 1 to 1024"),
            (LimitName::MemoryMb, 0, "memory_mb: it must be from 1 to 1024"),
            (LimitName::EventsPerSecond, 0, "events_per_second: it must be 1 or more"),
        ] {
            assert_eq!(format!("{name}: {}", name.check(number).unwrap_err()), why);
        }
    }
}
