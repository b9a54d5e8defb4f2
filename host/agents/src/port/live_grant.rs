//! Current grant of an agent, also for running tasks: a revocation takes effect within a moment.
//! Running tasks keep the grant from their start, minus everything revoked since.

use a2a_hub_config::AgentConfig;
use a2a_hub_core::{
    grant::{Ask, EffectiveGrant, Grant, intersect},
    plugin::installation::InstallationId,
};
use a2a_hub_protocol::id::AgentId;
use a2a_hub_runtime::{Failure, Runtime};
use parking_lot::Mutex;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Weak},
};
use tokio::{sync::watch, task::JoinSet};
use tokio_util::sync::CancellationToken;

/// Current grant of one version of an agent. Clones follow the same grant.
#[derive(Clone)]
pub(crate) struct LiveGrant(Arc<watch::Sender<Arc<EffectiveGrant>>>);

impl LiveGrant {
    pub(crate) fn new(grant: Arc<EffectiveGrant>) -> Self {
        Self(Arc::new(watch::Sender::new(grant)))
    }

    /// Revokes everything that `held` does not include.
    #[cfg(test)]
    pub(crate) fn narrow_to(&self, held: EffectiveGrant) {
        self.0.send_replace(Arc::new(held));
    }

    /// The current grant.
    pub(crate) fn now(&self) -> Arc<EffectiveGrant> {
        Arc::clone(&self.0.borrow())
    }

    /// Refuses `action` unless the current grant satisfies `allowed`. The agent was allowed it at
    /// the start of its task.
    pub(crate) fn must(
        &self,
        action: &str,
        allowed: impl FnOnce(&EffectiveGrant) -> bool,
    ) -> Result<(), Failure> {
        if allowed(&self.now()) { Ok(()) } else { Err(revoked(action)) }
    }

    /// Token that is cancelled as soon as the grant no longer satisfies `allowed`.
    pub(crate) fn watch(
        &self,
        allowed: impl Fn(&EffectiveGrant) -> bool + Send + Sync + 'static,
    ) -> Revocation {
        let (token, mut watching) = (CancellationToken::new(), JoinSet::new());
        let (cancel, mut now) = (token.clone(), self.0.subscribe());
        watching.spawn(async move {
            // Without a sender the grant can no longer change.
            if now.wait_for(|grant| !allowed(grant)).await.is_ok() {
                cancel.cancel();
            }
        });
        Revocation { token, _watching: watching }
    }
}

/// Refusal after a revocation.
pub(crate) fn revoked(action: &str) -> Failure {
    Failure::Denied(format!(
        "{action}: the grant was revoked by the operator; `a2a-hub plugin list` tells what is granted now"
    ))
}

/// Watcher of one right. Dropping it stops the watch.
pub(crate) struct Revocation {
    /// Cancelled on revocation.
    pub(crate) token: CancellationToken,
    _watching: JoinSet<()>,
}

/// All versions of agents that are, or were, registered on this hub and may still run tasks.
#[derive(Default)]
pub(crate) struct LiveVersions(Mutex<BTreeMap<AgentId, Vec<LiveVersion>>>);

/// One version of an agent under its settings.
struct LiveVersion {
    /// The component's request for capabilities and its digest. The component itself is dropped
    /// with the agent.
    ask: Ask,
    digest: Option<String>,
    installation: InstallationId,
    config: AgentConfig,
    /// Dead once the agent and all its tasks are dropped.
    live: Weak<watch::Sender<Arc<EffectiveGrant>>>,
}

impl LiveVersions {
    /// Adds a newly registered agent.
    pub(crate) fn add(
        &self,
        id: &AgentId,
        runtime: &dyn Runtime,
        installation: InstallationId,
        config: AgentConfig,
        live: &LiveGrant,
    ) {
        let (ask, digest) = (runtime.ask().clone(), runtime.digest().map(str::to_owned));
        let mut seats = self.0.lock();
        let of_agent = seats.entry(id.clone()).or_default();
        of_agent.retain(|version| version.live.strong_count() > 0);
        let live = Arc::downgrade(&live.0);
        of_agent.push(LiveVersion { ask, digest, installation, config, live });
    }

    /// Digests of the components that are registered or still run tasks.
    pub(crate) fn digests(&self) -> BTreeSet<String> {
        let seats = self.0.lock();
        let there = seats.values().flatten().filter(|version| version.live.strong_count() > 0);
        there.filter_map(|version| version.digest.clone()).collect()
    }

    /// Revokes everything from all versions of `id`.
    pub(crate) fn revoke(&self, id: &AgentId) {
        for version in self.0.lock().get(id).into_iter().flatten() {
            if let Some(live) = version.live.upgrade() {
                live.send_replace(Arc::new(EffectiveGrant::default()));
            }
        }
    }

    /// Narrows all versions of `id` with the same installation or the same component to `grant`.
    pub(crate) fn restrict(
        &self,
        id: &AgentId,
        installation: &InstallationId,
        digest: Option<&str>,
        grant: &Grant,
    ) {
        let seats = self.0.lock();
        for version in seats.get(id).into_iter().flatten() {
            let same_component = digest.is_some() && version.digest.as_deref() == digest;
            if version.installation != *installation && !same_component {
                continue;
            }
            let mut now = intersect(&version.ask, grant);
            now.apply_overrides(&version.config.programs, &version.config.env);
            if let Some(live) = version.live.upgrade() {
                live.send_replace(Arc::new(now));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use tokio::time::timeout;

    fn remembering(bytes: Option<u64>) -> Arc<EffectiveGrant> {
        Arc::new(EffectiveGrant { memory_bytes: bytes, ..EffectiveGrant::default() })
    }

    #[tokio::test(start_paused = true)]
    async fn watch_fires_on_revocation_only() {
        let live = LiveGrant::new(remembering(Some(10)));
        let watch = live.clone().watch(|held| held.memory_bytes.is_some());
        live.0.send_replace(remembering(Some(100)));
        let told = timeout(Duration::from_secs(1), watch.token.cancelled()).await;
        assert!(told.is_err(), "nothing was taken away");
        assert!(live.must("remember", |held| held.memory_bytes.is_some()).is_ok());

        live.0.send_replace(remembering(None));
        timeout(Duration::from_secs(1), watch.token.cancelled()).await.unwrap();
        let why = live.must("remember", |held| held.memory_bytes.is_some()).unwrap_err();
        assert!(why.to_string().starts_with("remember: the grant was revoked by the operator"));
        let late = live.watch(|held| held.memory_bytes.is_some());
        timeout(Duration::from_secs(1), late.token.cancelled()).await.unwrap();
    }
}
