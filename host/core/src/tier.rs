//! How an agent's programs are held: which tier, and what of the network, by whose agent it is and what the operator said.

use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// How the programs of an agent are held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tier {
    /// By the kernel: a program sees, writes and reaches what is named, and nothing else.
    Confined,
    /// By nothing but the forms of its arguments: a program may do all that the hub's user may.
    Plain,
}

/// Whose agent it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The hub's: it was built with it.
    BuiltIn,
    /// Anybody's: it is a file that somebody put there.
    Plugin,
}

/// What of the network a confined program is granted: none, the ports of the web, or these TCP ports.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged, expecting = "expected `true`, `false` or a list of TCP ports")]
pub enum NetworkGrant {
    /// The web's ports, or none.
    Web(bool),
    /// Ports by their numbers, of any host.
    Ports(BTreeSet<u16>),
}

/// Where the web is served: HTTPS and HTTP.
const WEB: [u16; 2] = [443, 80];

/// The tier of an agent's programs. `confine` is the operator's word; without one, what the hub was not built with is confined.
///
/// | agent | no word | `confine = true` | `confine = false` |
/// | --- | --- | --- | --- |
/// | built in | plain | confined | plain |
/// | plug-in | confined | confined | plain |
pub fn tier(origin: Origin, confine: Option<bool>) -> Tier {
    let is_confined = confine.unwrap_or(match origin {
        Origin::BuiltIn => false,
        Origin::Plugin => true,
    });
    if is_confined { Tier::Confined } else { Tier::Plain }
}

/// The TCP ports that a confined program of an agent may call; none is no network at all. Without the operator's word a built-in
/// agent's program reaches the web, where its model is.
pub fn ports(origin: Origin, granted: Option<&NetworkGrant>) -> BTreeSet<u16> {
    match (granted, origin) {
        (Some(NetworkGrant::Ports(ports)), _) => ports.clone(),
        (Some(NetworkGrant::Web(true)), _) | (None, Origin::BuiltIn) => WEB.into(),
        (Some(NetworkGrant::Web(false)), _) | (None, Origin::Plugin) => BTreeSet::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stranger_s_programs_are_confined_unless_the_operator_says_otherwise() {
        let cases = [
            (Origin::BuiltIn, None, Tier::Plain),
            (Origin::BuiltIn, Some(true), Tier::Confined),
            (Origin::BuiltIn, Some(false), Tier::Plain),
            (Origin::Plugin, None, Tier::Confined),
            (Origin::Plugin, Some(true), Tier::Confined),
            (Origin::Plugin, Some(false), Tier::Plain),
        ];
        for (origin, confine, expected) in cases {
            assert_eq!(tier(origin, confine), expected, "{origin:?} {confine:?}");
        }
    }

    #[test]
    fn a_stranger_s_programs_have_no_network_unless_the_operator_says_which() {
        let own = NetworkGrant::Ports([8443].into());
        let cases: [(_, _, &[u16]); 8] = [
            (Origin::Plugin, None, &[]),
            (Origin::Plugin, Some(&NetworkGrant::Web(false)), &[]),
            (Origin::Plugin, Some(&NetworkGrant::Web(true)), &[80, 443]),
            (Origin::Plugin, Some(&own), &[8443]),
            (Origin::BuiltIn, None, &[80, 443]),
            (Origin::BuiltIn, Some(&NetworkGrant::Web(false)), &[]),
            (Origin::BuiltIn, Some(&NetworkGrant::Web(true)), &[80, 443]),
            (Origin::BuiltIn, Some(&own), &[8443]),
        ];
        for (origin, granted, expected) in cases {
            assert!(ports(origin, granted).iter().eq(expected), "{origin:?} {granted:?}");
        }
    }
}
