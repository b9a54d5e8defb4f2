//! Confinement of an agent's programs, as reported to clients.

use schemars::JsonSchema;
use serde::Serialize;

/// Confinement of an agent's programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ProgramTier {
    /// Confined by the kernel: a program sees, writes and reaches only what its settings name.
    Confined,
    /// Not confined: a program may do all that the hub's user may do.
    Plain,
}
