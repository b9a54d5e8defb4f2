//! Component that a client passes to the hub.

use std::path::PathBuf;

/// A component to register as an agent.
#[derive(Clone, Debug, PartialEq)]
pub enum ComponentSource {
    /// Path on the hub's machine.
    File(PathBuf),
    /// Bytes of the component.
    Bytes(Vec<u8>),
}
