//! Byte limit in a grant, written `true`, `false` or as a number.

use serde::{Deserialize, Serialize};

/// Limit in bytes of a resource.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "RawAllowance", into = "RawAllowance")]
pub enum Allowance {
    /// None: written `false`, or left out.
    #[default]
    None,
    /// The number that the manifest asks for: written `true`. The record of a grant contains the
    /// number instead.
    AsAsked,
    /// The operator's number, but at most the number that the manifest asks for.
    Bytes(u64),
}

#[derive(Serialize, Deserialize)]
#[serde(untagged, expecting = "expected true, false or a number of bytes")]
enum RawAllowance {
    Flag(bool),
    Bytes(u64),
}

impl From<RawAllowance> for Allowance {
    fn from(raw: RawAllowance) -> Self {
        match raw {
            RawAllowance::Flag(false) => Self::None,
            RawAllowance::Flag(true) => Self::AsAsked,
            RawAllowance::Bytes(bytes) => Self::Bytes(bytes),
        }
    }
}

impl From<Allowance> for RawAllowance {
    fn from(allowance: Allowance) -> Self {
        match allowance {
            Allowance::None => Self::Flag(false),
            Allowance::AsAsked => Self::Flag(true),
            Allowance::Bytes(bytes) => Self::Bytes(bytes),
        }
    }
}

impl Allowance {
    /// Effective limit if the manifest asks for `requested` bytes; `None` without permission.
    pub fn limit_for(self, requested: Option<u64>) -> Option<u64> {
        match (self, requested) {
            (Self::None, _) | (_, None) => None,
            (Self::AsAsked, Some(requested)) => Some(requested),
            (Self::Bytes(max), Some(requested)) => Some(requested.min(max)),
        }
    }

    /// Makes the limit explicit: replaces `AsAsked` by the number that the manifest asks for.
    #[must_use]
    pub fn settled(self, requested: Option<u64>) -> Self {
        match (self, requested) {
            (Self::AsAsked, Some(requested)) => Self::Bytes(requested),
            (Self::AsAsked, None) => Self::None,
            (explicit @ (Self::None | Self::Bytes(_)), _) => explicit,
        }
    }

    /// True if nothing is allowed.
    pub fn is_none(&self) -> bool {
        *self == Self::None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limit_is_smaller_of_grant_and_manifest() {
        let cases = [
            (Allowance::None, Some(9), None),
            (Allowance::AsAsked, Some(9), Some(9)),
            (Allowance::AsAsked, None, None),
            (Allowance::Bytes(4), Some(9), Some(4)),
            (Allowance::Bytes(99), Some(9), Some(9)),
            (Allowance::Bytes(99), None, None),
        ];
        for (allowance, asked, wanted) in cases {
            assert_eq!(allowance.limit_for(asked), wanted, "{allowance:?} {asked:?}");
            assert_eq!(allowance.settled(asked).limit_for(asked), wanted, "settled: {allowance:?}");
        }
        let settled = Allowance::AsAsked.settled(Some(9));
        assert_eq!(
            settled.limit_for(Some(1_000_000)),
            Some(9),
            "what a later manifest asks is not granted"
        );
    }

    #[test]
    fn byte_limit_round_trips() {
        for (text, allowance) in [
            ("false", Allowance::None),
            ("true", Allowance::AsAsked),
            ("4096", Allowance::Bytes(4096)),
        ] {
            assert_eq!(serde_json::from_str::<Allowance>(text).unwrap(), allowance);
            assert_eq!(serde_json::to_string(&allowance).unwrap(), text);
        }
        let wrong = serde_json::from_str::<Allowance>("\"much\"").unwrap_err().to_string();
        assert!(wrong.contains("expected true, false or a number of bytes"), "{wrong}");
    }
}
