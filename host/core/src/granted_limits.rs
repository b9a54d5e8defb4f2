//! What a plug-in may use up by its grant: the operator's numbers, beside what it may do. A manifest asks for none of them.

use serde::{Deserialize, Serialize, de::IntoDeserializer as _};
use std::{collections::BTreeMap, fmt, str::FromStr};

/// The most memory that a run can have, in MiB.
pub const MAX_MEMORY_MB: u32 = 1024;

/// The longest that anything is kept or waited for, in milliseconds: longer is a slip.
pub const MAX_WAIT_MS: u64 = 366 * 24 * 60 * 60 * 1000;

/// The numbers, by the names that the configuration has for them in `limits`. What is left out is as the configuration says.
pub type GrantedLimits = BTreeMap<LimitName, u64>;

/// What of a run is limited.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LimitName {
    /// Memory, in MiB.
    MemoryMb,
    /// Time on the processor, in milliseconds.
    CpuMs,
    /// Events that it emits.
    Events,
    /// Bytes of those events.
    OutputBytes,
    /// Bytes that it logs.
    LogBytes,
    /// Requests that it sends by HTTP.
    HttpRequests,
    /// Bytes of those requests and of their answers.
    HttpBytes,
    /// Bytes that it writes into its workspace.
    WorkspaceBytes,
    /// Files and directories that it makes there.
    WorkspaceFiles,
    /// Events each second.
    EventsPerSecond,
    /// Bytes of those events each second.
    OutputBytesPerSecond,
    /// Lines that it logs each second.
    LogLinesPerSecond,
    /// Calls of its memory each second.
    MemoryCallsPerSecond,
    /// Files that it writes each second.
    FilesPerSecond,
    /// Programs that it starts each second.
    ProgramsPerSecond,
    /// Programs that it keeps between its tasks.
    KeptPrograms,
    /// How long one is kept that no task takes up, in milliseconds.
    KeptIdleMs,
    /// Memory of those, in MiB.
    KeptMemoryMb,
}

/// A name that no limit has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("limit `{name}`: {why}")]
pub struct UnknownLimit {
    /// What was said.
    name: String,
    /// The names there are.
    why: String,
}

/// A number that something cannot be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OutOfRange {
    /// It must be between two others.
    #[error("it must be from {least} to {most}")]
    Between {
        /// The least that it can be.
        least: u64,
        /// The most.
        most: u64,
    },
    /// It must not be less.
    #[error("it must be {0} or more")]
    Less(u64),
}

impl OutOfRange {
    /// Checks a number against the least and the most that it can be.
    pub fn check(number: u64, least: u64, most: u64) -> Result<(), Self> {
        if (least..=most).contains(&number) {
            return Ok(());
        }
        Err(if most == u64::MAX { Self::Less(least) } else { Self::Between { least, most } })
    }
}

impl LimitName {
    /// Whether a limit can be this number: with none of some things no task comes to anything, and without others it does.
    pub fn check(self, number: u64) -> Result<(), OutOfRange> {
        let (least, most) = match self {
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
        OutOfRange::check(number, least, most)
    }
}

impl fmt::Display for LimitName {
    /// As the configuration has it.
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
    fn a_limit_is_said_as_in_the_configuration() {
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
    fn a_limit_without_which_no_task_ends_well_is_none() {
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
