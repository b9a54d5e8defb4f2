//! A component that a client hands to the hub.

use std::path::PathBuf;

/// A component that is to become an agent.
#[derive(Clone, Debug, PartialEq)]
pub enum Component {
    /// A file on the hub's machine.
    File(PathBuf),
    /// The bytes of the component.
    Bytes(Vec<u8>),
}
