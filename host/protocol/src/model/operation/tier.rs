//! Confinement of an agent's programs, as reported to clients.

use schemars::JsonSchema;
use serde::Serialize;

/// How the programs of an agent are held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ProgramTier {
    /// By the kernel: a program sees, writes and reaches what is named, and nothing else.
    Confined,
    /// By nothing: a program may do all that the hub's user may.
    Plain,
}
