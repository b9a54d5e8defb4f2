//! How notifications are sent.

use a2a_hub_core::receiver::Rules;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// How notifications are sent to where their clients want them.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Push {
    /// Hosts that may be private addresses, speak plain HTTP and listen on any port, as they stand in a URL; `*` for all.
    pub trusted_hosts: Vec<String>,
    /// How long one event is tried before it is given up, in milliseconds.
    pub give_up_ms: u64,
    /// Whether to sign what is sent.
    pub sign: bool,
    /// Whether a receiver must answer a challenge before it is sent anything.
    pub challenge: bool,
}

impl Default for Push {
    /// Nobody is trusted; a receiver may be down for a day. It is not challenged, for those that the official SDKs help to
    /// write do not know how to answer.
    fn default() -> Self {
        let give_up_ms = 24 * 60 * 60 * 1000;
        Self { trusted_hosts: Vec::new(), give_up_ms, sign: true, challenge: false }
    }
}

impl Push {
    /// As `core` takes them.
    pub fn rules(&self) -> Rules {
        Rules { trusted: self.trusted_hosts.clone() }
    }

    /// How long one event is tried.
    pub fn give_up(&self) -> Duration {
        Duration::from_millis(self.give_up_ms)
    }
}
