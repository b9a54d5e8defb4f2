//! Registries that are asked for agents besides the hub's own.

use serde::{Deserialize, Serialize};

/// `[registry.<name>]`: another hub, or another registry of agents, that answers `GET /agents`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Registry {
    /// Where it is, without `/agents`, such as `http://127.0.0.1:8081`.
    pub url: String,
    /// The variable of the hub's environment that holds the bearer token to show it.
    pub token_env: Option<String>,
}

impl Registry {
    /// Where agents are asked for, without what is asked.
    pub fn agents_url(&self) -> String {
        format!("{}/agents", self.url.trim_end_matches('/'))
    }
}
