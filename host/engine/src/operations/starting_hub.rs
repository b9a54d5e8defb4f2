//! A hub before its start: all parts exist, and nothing runs.

use super::{Hub, LiveConfig, parts::HubParts, triggers::TriggerOperations};
use crate::conversations::{contexts::Contexts, repeats::Repeats};
use crate::observability::hub_events::Events;
use crate::{
    devices::Devices,
    notify::Notifiers,
    people::People,
    push::Pushes,
    routing::Routes,
    signer::HubSigner,
    tasks::{Recovered, ReviewLocks, Tasks},
};
use a2a_hub_agents::Joined;
use a2a_hub_automation::{Schedules, Triggers};
use a2a_hub_clock as clock;
use a2a_hub_protocol::id::{AgentId, TenantId};
use a2a_hub_store::{Copies, StorageError};
use a2a_hub_tls::ServerTls;
use parking_lot::Mutex;
use std::{collections::BTreeSet, sync::Arc};
use tokio::time::Instant;

/// A hub whose agents have joined and whose routes are known. Only [`StartingHub::recover`] creates
/// a [`Hub`], so that no earlier task continues, and no client is served, before all of this is
/// set.
pub struct StartingHub(HubParts);

impl StartingHub {
    /// Creates a hub from its parts. What happens is published to `events`, and to the receivers in
    /// `pushes`.
    pub fn new(
        joined: Joined,
        routes: Routes,
        contexts: Contexts,
        tasks: Tasks,
        pushes: Pushes,
        events: Events,
    ) -> Self {
        let (agents, plugins) = joined.into_parts();
        Self(HubParts {
            agents,
            plugins,
            contexts,
            tasks,
            pushes,
            signer: None,
            events,
            devices: Arc::default(),
            people: Arc::default(),
            tls: None,
            default_agent: Arc::default(),
            live: None,
            warnings: Arc::default(),
            copies: None,
            losses: Arc::default(),
            repeats: Repeats::default(),
            tenants: Arc::default(),
            routes,
            schedules: None,
            triggers: None,
            topics: None,
            notifiers: None,
            started: Instant::now(),
            since: clock::now(),
            closed: Arc::default(),
            review_locks: ReviewLocks::default(),
        })
    }

    /// Sets a configuration that can be reloaded.
    #[must_use]
    pub fn with_config(self, live: Arc<LiveConfig>) -> Self {
        let this = self.with_default_agent(live.now().default_agent);
        Self(HubParts { live: Some(live), ..this.0 })
    }

    /// Sets the agent for messages that name no agent.
    #[must_use]
    pub fn with_default_agent(self, agent: Option<AgentId>) -> Self {
        Self(HubParts { default_agent: Arc::new(Mutex::new(agent)), ..self.0 })
    }

    /// Sets the devices of the operator, which are kept in a file.
    #[must_use]
    pub fn with_devices(self, devices: Devices) -> Self {
        Self(HubParts { devices: Arc::new(devices), ..self.0 })
    }

    /// Sets the people whom the operator let in.
    #[must_use]
    pub fn with_people(self, people: People) -> Self {
        Self(HubParts { people: Arc::new(people), ..self.0 })
    }

    /// Sets the TLS of the HTTP server, whose condition the hub reports.
    #[must_use]
    pub fn with_tls(self, tls: Option<ServerTls>) -> Self {
        Self(HubParts { tls, ..self.0 })
    }

    /// Sets the signer of cards, whose public keys the hub publishes.
    #[must_use]
    pub fn with_signer(self, signer: Option<Arc<HubSigner>>) -> Self {
        Self(HubParts { signer, ..self.0 })
    }

    /// Sets warnings for the hub's status.
    #[must_use]
    pub fn with_warnings(self, warnings: Vec<String>) -> Self {
        Self(HubParts { warnings: warnings.into(), ..self.0 })
    }

    /// Sets the store that the operator can back up.
    #[must_use]
    pub fn with_copies(self, store: Arc<dyn Copies>) -> Self {
        Self(HubParts { copies: Some(store), ..self.0 })
    }

    /// Sets the losses that the store found when it was opened, one sentence each. They are among
    /// the warnings as well.
    #[must_use]
    pub fn with_losses(self, losses: Vec<String>) -> Self {
        Self(HubParts { losses: losses.into(), ..self.0 })
    }

    /// Sets the memory of requests, by which a repeated request gets the task of the first.
    #[must_use]
    pub fn with_repeats(self, repeats: Repeats) -> Self {
        Self(HubParts { repeats, ..self.0 })
    }

    /// Sets the tenants that share the hub with the default one.
    #[must_use]
    pub fn with_tenants(self, tenants: BTreeSet<TenantId>) -> Self {
        Self(HubParts { tenants: tenants.into(), ..self.0 })
    }

    /// Sets the schedules, which [`Hub::keep_automations`] carries out.
    #[must_use]
    pub fn with_schedules(self, schedules: Schedules) -> Self {
        Self(HubParts { schedules: Some(Arc::new(schedules)), ..self.0 })
    }

    /// Sets the triggers, which [`Hub::keep_automations`] carries out as well, and their topics.
    #[must_use]
    pub fn with_triggers(self, triggers: Triggers) -> Self {
        let topics = Some(triggers.topics());
        Self(HubParts { triggers: Some(Arc::new(triggers)), topics, ..self.0 })
    }

    /// Sets the notifiers, which [`Hub::keep_notifiers`] runs.
    #[must_use]
    pub fn with_notifiers(self, notifiers: Notifiers) -> Self {
        Self(HubParts { notifiers: Some(Arc::new(notifiers)), ..self.0 })
    }

    /// Recovers the tasks of the previous process, and records the baselines of new triggers;
    /// operations can be carried out afterwards.
    ///
    /// # Errors
    ///
    /// If the store cannot be used.
    pub async fn recover(self) -> Result<(Hub, Recovered), StorageError> {
        let hub = Hub(Arc::new(self.0));
        let recovered = hub.tasks.recover().await?;
        TriggerOperations::record_baselines(&hub).await;
        Ok((hub, recovered))
    }
}
