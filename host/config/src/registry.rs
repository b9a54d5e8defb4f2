//! Registries that are searched for agents beside the hub's own.

use serde::{Deserialize, Serialize};

/// `[registry.<name>]`: another hub, or another registry of agents, that serves `GET /agents`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Registry {
    /// URL without `/agents`, such as `http://127.0.0.1:8081`.
    pub url: String,
    /// Variable of the hub's environment that holds the bearer token.
    pub token_env: Option<String>,
}

impl Registry {
    /// URL of the list of agents, without a query.
    pub fn agents_url(&self) -> String {
        format!("{}/agents", self.url.trim_end_matches('/'))
    }
}
