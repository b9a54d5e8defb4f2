//! Settings of push notifications.

use a2a_hub_core::push::receiver_policy::Rules;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Settings of push notifications.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Push {
    /// Hosts that may have private addresses, use plain HTTP and listen on any port, as written in
    /// URLs; `*` for all.
    pub trusted_hosts: Vec<String>,
    /// Time after which the delivery of an event is given up, in milliseconds.
    pub give_up_ms: u64,
    /// True to sign notifications.
    pub sign: bool,
    /// True to require that a receiver answers a challenge before it gets notifications.
    pub challenge: bool,
}

impl Default for Push {
    /// By default no host is trusted, and a receiver may be down for a day. Receivers are not
    /// challenged: those that the official SDKs help to write cannot answer.
    fn default() -> Self {
        let give_up_ms = 24 * 60 * 60 * 1000;
        Self { trusted_hosts: Vec::new(), give_up_ms, sign: true, challenge: false }
    }
}

impl Push {
    /// Rules for receivers, in the form of `core`.
    pub fn rules(&self) -> Rules {
        Rules { trusted: self.trusted_hosts.clone() }
    }

    /// Time after which the delivery of an event is given up.
    pub fn give_up(&self) -> Duration {
        Duration::from_millis(self.give_up_ms)
    }
}
