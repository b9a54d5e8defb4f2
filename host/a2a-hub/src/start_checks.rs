//! Checks of a start: what it refuses, and what it warns of.

use a2a_hub_config::Config;
use a2a_hub_engine::people::People;
use a2a_hub_sandbox::{Engine, MAX_INSTANCES};
use anyhow::bail;

/// Refuses an address that other machines reach, for a hub that could identify nobody there.
pub(crate) fn require_authentication(config: &Config, people: &People) -> anyhow::Result<()> {
    let address = config.http.address();
    let is_reachable = config.http.enabled && !address.ip().is_loopback();
    let knows_somebody =
        people.any() || !config.tenants.is_empty() || config.tls.client_ca.is_some();
    if !is_reachable || knows_somebody {
        return Ok(());
    }
    bail!(
        "listen on {address}: the hub knows nobody who may call it from other machines; add a person (`a2a-hub start \
         --no-http`, `a2a-hub person add NAME`, `a2a-hub stop`), or set `[tenants.NAME]` or `tls.client_ca`"
    )
}

/// Collects and logs the faults that do not keep a hub from working.
pub(crate) fn warnings(losses: &[String], engine: &Engine, max_tasks: Option<u32>) -> Vec<String> {
    let pool = engine.lacks_pool().then(|| {
        let capacity = engine.run_capacity().max;
        format!(
            "the address space is too small for a guest pool: at most {capacity} guests run at once, and each starts more slowly; raise `ulimit -v`, or set `max_tasks` lower"
        )
    });
    let capacity = engine.run_capacity().max;
    let is_fewer = |max: &u32| !engine.lacks_pool() && *max as usize > capacity;
    let fewer = max_tasks.filter(is_fewer).map(|max| {
        let more = if capacity < MAX_INSTANCES as usize { ", or raise `vm.max_map_count`" } else { "" };
        format!(
            "`max_tasks` is {max}, and at most {capacity} agents run at once here; set it lower{more}"
        )
    });
    let warnings: Vec<_> = losses.iter().cloned().chain(pool).chain(fewer).collect();
    for warning in &warnings {
        tracing::warn!("{warning}");
    }
    warnings
}
