//! How an agent is spoken to: versions of A2A (A2A 1.0, section 3.6), protocol bindings (section 5), and the interfaces
//! of a card that pair them (section 4.4.6).

use crate::model::error::{A2aError, ErrorKind};
use serde_json::json;

/// A version of A2A that is spoken here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Version {
    /// A2A 1.0: ProtoJSON on every binding.
    V1,
    /// A2A 0.3: JSON of its own over JSON-RPC, ProtoJSON of its own over REST and gRPC.
    V03,
}

impl Version {
    /// Every version, the newest first.
    pub const ALL: [Self; 2] = [Self::V1, Self::V03];

    /// The version as clients and cards name it: major and minor, for a patch changes nothing on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Self::V1 => "1.0",
            Self::V03 => "0.3",
        }
    }
}

/// Major and minor of a version, such as `1.0` of `1.0.1` (A2A 1.0, section 3.6).
pub fn minor(version: &str) -> String {
    version.splitn(3, '.').take(2).collect::<Vec<_>>().join(".")
}

/// Whether a version that a client names is spoken; to name none is to leave it to the method.
pub fn check_version(named: Option<&str>) -> Result<(), A2aError> {
    let Some(named) = named.map(str::trim).filter(|named| !named.is_empty()) else { return Ok(()) };
    let asked = minor(named);
    if Version::ALL.into_iter().any(|spoken| spoken.name() == asked) {
        return Ok(());
    }
    let spoken = Version::ALL.map(Version::name);
    let why = format!("A2A {named} is not spoken here; there are {}", spoken.join(" and "));
    let refusal = A2aError::new(ErrorKind::VersionNotSupported, why);
    Err(refusal.with(json!({ "supported": spoken.join(", ") })))
}

/// A protocol binding of A2A: what requests travel in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Binding {
    /// JSON-RPC 2.0, over HTTP or a line each (A2A 1.0, section 9).
    JsonRpc,
    /// gRPC (A2A 1.0, section 10).
    Grpc,
    /// HTTP with JSON, REST for short (section 11).
    Rest,
}

impl Binding {
    /// Every protocol binding, as cards list them.
    pub const ALL: [Self; 3] = [Self::JsonRpc, Self::Grpc, Self::Rest];

    /// The binding as cards call it: the `protocolBinding` of 1.0, and the `transport` of 0.3.
    pub fn name(self) -> &'static str {
        match self {
            Self::JsonRpc => "JSONRPC",
            Self::Grpc => "GRPC",
            Self::Rest => "HTTP+JSON",
        }
    }
}

/// One interface of an agent: a URL, and what is spoken there (A2A 1.0, section 4.4.6).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// The URL, or for gRPC host and port.
    pub url: String,
    /// The binding as the card calls it: of A2A, or somebody's own by its URI.
    pub binding: String,
    /// The version of A2A that is spoken there, such as `1.0`: major and minor.
    pub version: String,
    /// The tenant that a client names there to be brought to the agent. 0.3 has no word for it.
    pub tenant: Option<String>,
}

impl Interface {
    /// The binding, if it is one of A2A's own.
    pub fn binding(&self) -> Option<Binding> {
        Binding::ALL.into_iter().find(|known| known.name() == self.binding)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_checked() {
        for good in [None, Some(""), Some("1.0"), Some("0.3"), Some("1.0.1"), Some(" 0.3.0")] {
            assert_eq!(check_version(good), Ok(()), "{good:?}");
        }
        for bad in ["99.0", "1", "0.2", "x", "1.1"] {
            assert!(check_version(Some(bad)).is_err(), "{bad}");
        }
    }
}
