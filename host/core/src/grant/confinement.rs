//! Confinement of an agent's programs: sandbox and network access, by the origin of the agent and
//! the operator's settings.

use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// Confinement of an agent's programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tier {
    /// Sandboxed by the kernel: a program can access only what is named.
    Confined,
    /// Not sandboxed: only the argument patterns restrict a program, which runs with all rights of
    /// the hub's user.
    Plain,
}

/// Origin of an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AgentOrigin {
    /// Built into the hub.
    BuiltIn,
    /// A plug-in file.
    Plugin,
}

/// Network grant of a confined program: none, the ports of the web, or these TCP ports.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged, expecting = "expected `true`, `false` or a list of TCP ports")]
pub enum NetworkGrant {
    /// The web's ports, or none.
    Web(bool),
    /// Ports by number, of any host.
    Ports(BTreeSet<u16>),
}

/// Ports of HTTPS and HTTP.
const WEB: [u16; 2] = [443, 80];

/// Confinement of an agent's programs. `confine` is the operator's setting; without it, only
/// plug-ins are confined.
///
/// | agent | not set | `confine = true` | `confine = false` |
/// | --- | --- | --- | --- |
/// | built in | plain | confined | plain |
/// | plug-in | confined | confined | plain |
pub fn tier(origin: AgentOrigin, confine: Option<bool>) -> Tier {
    let is_confined = confine.unwrap_or(match origin {
        AgentOrigin::BuiltIn => false,
        AgentOrigin::Plugin => true,
    });
    if is_confined { Tier::Confined } else { Tier::Plain }
}

/// TCP ports that a confined program of an agent may connect to; an empty set means no network.
/// Without a grant, a built-in agent's program may reach the web, where its model is.
pub fn ports(origin: AgentOrigin, granted: Option<&NetworkGrant>) -> BTreeSet<u16> {
    match (granted, origin) {
        (Some(NetworkGrant::Ports(ports)), _) => ports.clone(),
        (Some(NetworkGrant::Web(true)), _) | (None, AgentOrigin::BuiltIn) => WEB.into(),
        (Some(NetworkGrant::Web(false)), _) | (None, AgentOrigin::Plugin) => BTreeSet::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plugin_programs_are_confined_by_default() {
        let cases = [
            (AgentOrigin::BuiltIn, None, Tier::Plain),
            (AgentOrigin::BuiltIn, Some(true), Tier::Confined),
            (AgentOrigin::BuiltIn, Some(false), Tier::Plain),
            (AgentOrigin::Plugin, None, Tier::Confined),
            (AgentOrigin::Plugin, Some(true), Tier::Confined),
            (AgentOrigin::Plugin, Some(false), Tier::Plain),
        ];
        for (origin, confine, expected) in cases {
            assert_eq!(tier(origin, confine), expected, "{origin:?} {confine:?}");
        }
    }

    #[test]
    fn plugin_programs_have_no_network_by_default() {
        let own = NetworkGrant::Ports([8443].into());
        let cases: [(_, _, &[u16]); 8] = [
            (AgentOrigin::Plugin, None, &[]),
            (AgentOrigin::Plugin, Some(&NetworkGrant::Web(false)), &[]),
            (AgentOrigin::Plugin, Some(&NetworkGrant::Web(true)), &[80, 443]),
            (AgentOrigin::Plugin, Some(&own), &[8443]),
            (AgentOrigin::BuiltIn, None, &[80, 443]),
            (AgentOrigin::BuiltIn, Some(&NetworkGrant::Web(false)), &[]),
            (AgentOrigin::BuiltIn, Some(&NetworkGrant::Web(true)), &[80, 443]),
            (AgentOrigin::BuiltIn, Some(&own), &[8443]),
        ];
        for (origin, granted, expected) in cases {
            assert!(ports(origin, granted).iter().eq(expected), "{origin:?} {granted:?}");
        }
    }
}
