//! An agent that keeps programs between its tasks.

use crate::{
    Client,
    stage::{said, send},
};
use anyhow::{Context as _, Result};
use serde_json::json;
use std::time::Duration;

/// Whatever is to be gone is, within this time, also on a machine under load.
pub const SOON: Duration = Duration::from_secs(5);

/// Counts how often the shell that is kept was asked.
pub const COUNT: &str = "keep k n=$((n+1)); echo $n";

/// The configuration of a hub whose guest keeps programs: with these settings of the agent, and these limits.
pub fn config(agent: &str, limits: &str) -> String {
    format!(
        "[breaker]
        failures = 1000
        [agents.guest]
        max_running = 100
        {agent}
        [agents.guest.grant]
        files = true
        delegate = ['echo']
        [agents.guest.grant.process.sh]
        [agents.guest.grant.process.sleep]
        [agents.guest.limits]
        programs_per_second = 10000
        {limits}"
    )
}

/// What the guest says to this.
pub async fn says(client: &Client, text: &str) -> Result<String> {
    Ok(said(&send(client, "guest", text).await?).to_owned())
}

/// How many programs the guest keeps, as the hub tells.
pub async fn kept(client: &Client) -> Result<u64> {
    let status = client.call("hub/status", json!({})).await?;
    let agents = status["agents"].as_array().context("no agents")?;
    let guest = agents.iter().find(|agent| agent["id"] == "guest").context("no guest")?;
    Ok(guest["kept"].as_u64().unwrap_or_default())
}
