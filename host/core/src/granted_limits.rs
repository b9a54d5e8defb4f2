//! What a plug-in may use up by its grant: the operator's numbers, beside what it may do. A manifest asks for none of them.

use serde::{Deserialize, Serialize, de::IntoDeserializer as _};
use std::{collections::BTreeMap, str::FromStr};

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
}
