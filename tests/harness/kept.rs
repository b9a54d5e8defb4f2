//! Support for agents that keep programs between their tasks.

use crate::{
    Client,
    stage::{said, send},
};
use anyhow::{Context as _, Result};
use serde_json::json;
use std::time::Duration;

/// Time within which a process must exit, also on a busy machine.
pub const SOON: Duration = Duration::from_secs(5);

/// Behaviour that counts the requests to the parked shell.
pub const COUNT: &str = "keep k n=$((n+1)); echo $n";

/// Configuration of a hub whose guest keeps programs, with these agent settings and limits.
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

/// Answer of the guest to this text.
pub async fn says(client: &Client, text: &str) -> Result<String> {
    Ok(said(&send(client, "guest", text).await?).to_owned())
}

/// Number of programs that the guest keeps, as the hub reports it.
pub async fn kept(client: &Client) -> Result<u64> {
    let status = client.call("hub/status", json!({})).await?;
    let agents = status["agents"].as_array().context("no agents")?;
    let guest = agents.iter().find(|agent| agent["id"] == "guest").context("no guest")?;
    Ok(guest["kept"].as_u64().unwrap_or_default())
}
