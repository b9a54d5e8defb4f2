//! Interfaces of an agent: versions of A2A (A2A 1.0, section 3.6), protocol bindings (section 5),
//! and the card entries that pair them (section 4.4.6).

use crate::model::error::{A2aError, ErrorKind};
use serde_json::json;

/// Version of A2A that the hub supports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Version {
    /// A2A 1.0: ProtoJSON on every binding.
    V1,
    /// A2A 0.3: a special JSON form over JSON-RPC, an older ProtoJSON form over REST and gRPC.
    V03,
}

impl Version {
    /// All supported versions, newest first.
    pub const ALL: [Self; 2] = [Self::V1, Self::V03];

    /// Version as clients and cards write it: major and minor, because a patch does not change the
    /// wire form.
    pub fn name(self) -> &'static str {
        match self {
            Self::V1 => "1.0",
            Self::V03 => "0.3",
        }
    }
}

/// Major and minor part of a version, such as `1.0` for `1.0.1` (A2A 1.0, section 3.6).
pub fn minor(version: &str) -> String {
    version.splitn(3, '.').take(2).collect::<Vec<_>>().join(".")
}

/// Version that a client names; an unsupported one is refused. Without a version, the method
/// determines it.
pub fn check_version(named: Option<&str>) -> Result<Option<Version>, A2aError> {
    let Some(named) = named.map(str::trim).filter(|named| !named.is_empty()) else {
        return Ok(None);
    };
    let requested = minor(named);
    if let Some(version) = Version::ALL.into_iter().find(|spoken| spoken.name() == requested) {
        return Ok(Some(version));
    }
    let spoken = Version::ALL.map(Version::name);
    let why = format!("A2A {named} is not spoken here; there are {}", spoken.join(" and "));
    let refusal = A2aError::new(ErrorKind::VersionNotSupported, why);
    Err(refusal.with(json!({ "supported": spoken.join(", ") })))
}

/// Refuses a request that is written in another version than the client names: it must be processed
/// by the semantics of the named version (A2A 1.0, section 3.6.2), in which it does not exist.
pub fn check_written(named: Option<Version>, written: Version) -> Result<(), A2aError> {
    let Some(named) = named.filter(|named| *named != written) else { return Ok(()) };
    let (named, written) = (named.name(), written.name());
    let why = format!(
        "`A2A-Version` names {named}, and this is a request of {written}; name {written}, or send the request of {named}"
    );
    let refusal = A2aError::new(ErrorKind::VersionNotSupported, why);
    Err(refusal.with(json!({ "named": named, "written": written })))
}

/// Protocol binding of A2A.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Binding {
    /// JSON-RPC 2.0 over HTTP or line-delimited (A2A 1.0, section 9).
    JsonRpc,
    /// gRPC (A2A 1.0, section 10).
    Grpc,
    /// HTTP+JSON, called REST (A2A 1.0, section 11).
    Rest,
}

impl Binding {
    /// All protocol bindings, in the order of cards.
    pub const ALL: [Self; 3] = [Self::JsonRpc, Self::Grpc, Self::Rest];

    /// Binding as cards name it: `protocolBinding` in 1.0, `transport` in 0.3.
    pub fn name(self) -> &'static str {
        match self {
            Self::JsonRpc => "JSONRPC",
            Self::Grpc => "GRPC",
            Self::Rest => "HTTP+JSON",
        }
    }
}

/// Interface of an agent: a URL with its binding and version (A2A 1.0, section 4.4.6).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// URL; for gRPC, host and port.
    pub url: String,
    /// Name of the binding in the card: one of A2A's, or the URI of a custom binding.
    pub binding: String,
    /// Version of A2A, such as `1.0`: major and minor.
    pub version: String,
    /// Tenant that a client must name to reach the agent. Does not exist in 0.3.
    pub tenant: Option<String>,
}

impl Interface {
    /// The binding, if A2A defines it.
    pub fn binding(&self) -> Option<Binding> {
        Binding::ALL.into_iter().find(|known| known.name() == self.binding)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unsupported_version_is_refused() {
        for good in [None, Some(""), Some("1.0"), Some("0.3"), Some("1.0.1"), Some(" 0.3.0")] {
            assert!(check_version(good).is_ok(), "{good:?}");
        }
        for bad in ["99.0", "1", "0.2", "x", "1.1"] {
            assert!(check_version(Some(bad)).is_err(), "{bad}");
        }
    }

    #[test]
    fn request_of_another_version_is_refused() {
        let check = |named, written| check_written(check_version(named).unwrap(), written);
        for named in [None, Some(""), Some("1.0"), Some("1.0.1")] {
            assert_eq!(check(named, Version::V1), Ok(()), "{named:?}");
        }
        assert_eq!(check(Some("0.3"), Version::V03), Ok(()));
        assert_eq!(check(None, Version::V03), Ok(()));
        let refused = check(Some("1.0"), Version::V03).unwrap_err();
        assert_eq!(refused.kind, ErrorKind::VersionNotSupported);
        insta::assert_snapshot!(refused.to_string(), @"`A2A-Version` names 1.0, and this is a request of 0.3; name 0.3, or send the request of 1.0");
        assert!(check(Some("0.3.0"), Version::V1).is_err());
    }
}
