//! Options that name and locate a remote agent on a command line.

use crate::ui::render::shell_word;
use a2a_hub_client::{A2aClient, Outbound};
use a2a_hub_config as config;
use a2a_hub_protocol::push::Secret;
use anyhow::Context as _;
use clap::Args;
use std::collections::BTreeSet;

/// Help heading of the options for remote agents.
pub(crate) const REMOTE: &str = "Remote agents";

/// Options of the connection to a remote agent.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct RemoteOptions {
    /// Environment variable that holds the bearer token for a remote agent
    #[arg(long, value_name = "VARIABLE", help_heading = REMOTE, requires = "agent")]
    token_env: Option<String>,
    /// Origin to which a remote agent's card may direct requests, with the token. May be given
    /// several times
    #[arg(long = "allow-origin", value_name = "URL", help_heading = REMOTE, requires = "agent")]
    origins: Vec<String>,
}

impl RemoteOptions {
    /// Returns the option of this group that was given although the agent is local to the hub.
    pub(crate) fn specified(&self) -> Option<&'static str> {
        let token = self.token_env.as_ref().map(|_| "--token-env");
        token.or_else(|| (!self.origins.is_empty()).then_some("--allow-origin"))
    }

    /// Formats the agent at `url` as an argument of a command.
    pub(crate) fn named(&self, url: &str) -> String {
        let token = self.token_env.iter().map(|name| format!(" --token-env {}", shell_word(name)));
        let origins = self.origins.iter().map(|url| format!(" --allow-origin {}", shell_word(url)));
        shell_word(url) + &token.chain(origins).collect::<String>()
    }

    /// Finds the agent through its card.
    pub(crate) async fn find(&self, url: &str) -> anyhow::Result<A2aClient> {
        let token = self.token_env.as_deref().map(token).transpose()?;
        Ok(A2aClient::find(Outbound::unguarded(), url, token, &self.origins).await?)
    }
}

/// True if `agent` is a URL.
pub(crate) fn is_url(agent: &str) -> bool {
    ["http://", "https://"].iter().any(|scheme| agent.starts_with(scheme))
}

fn token(name: &str) -> anyhow::Result<Secret> {
    let found = config::environment(&BTreeSet::from([name.to_owned()])).pop();
    let (_, token) = found.with_context(|| format!("read the token: {name} is not set"))?;
    Ok(Secret::new(token))
}
