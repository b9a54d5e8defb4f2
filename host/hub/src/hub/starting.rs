//! A hub before it begins: all that it is made of is there, and nothing is at work.

use super::{Hub, LiveConfig, parts::HubParts};
use crate::{
    contexts::Contexts,
    events::Events,
    push::Pushes,
    repeats::Repeats,
    routes::Routes,
    tasks::{Recovered, Tasks},
};
use a2a_hub_agents::Joined;
use a2a_hub_clock as clock;
use a2a_hub_protocol::id::{AgentId, TenantId};
use a2a_hub_store::{Copies, StorageError};
use parking_lot::Mutex;
use std::{collections::BTreeSet, sync::Arc};
use tokio::time::Instant;

/// A hub whose agents have joined and whose routes are known. There is no [`Hub`] but by [`StartingHub::take_up`], so that no task of an
/// earlier hub goes on, and no client is served, before all of this is set.
pub struct StartingHub(HubParts);

impl StartingHub {
    /// A hub of these agents, conversations and tasks, which tell of themselves in `events` and wherever `pushes` says.
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
            events,
            default_agent: Arc::default(),
            live: None,
            warnings: Arc::default(),
            copies: None,
            losses: Arc::default(),
            repeats: Repeats::default(),
            tenants: Arc::default(),
            routes,
            started: Instant::now(),
            since: clock::now(),
            closed: Arc::default(),
        })
    }

    /// The same, under a configuration that can be read again.
    #[must_use]
    pub fn with_config(self, live: Arc<LiveConfig>) -> Self {
        let this = self.with_default_agent(live.now().default_agent);
        Self(HubParts { live: Some(live), ..this.0 })
    }

    /// The same; a message that names no agent is for this one.
    #[must_use]
    pub fn with_default_agent(self, agent: Option<AgentId>) -> Self {
        Self(HubParts { default_agent: Arc::new(Mutex::new(agent)), ..self.0 })
    }

    /// The same, which tells this to whoever looks after it.
    #[must_use]
    pub fn with_warnings(self, warnings: Vec<String>) -> Self {
        Self(HubParts { warnings: warnings.into(), ..self.0 })
    }

    /// The same, whose operator can have a copy of its store made.
    #[must_use]
    pub fn with_copies(self, store: Arc<dyn Copies>) -> Self {
        Self(HubParts { copies: Some(store), ..self.0 })
    }

    /// The same, whose store had lost this when it was opened, each in a sentence. It stands among the warnings as well.
    #[must_use]
    pub fn with_losses(self, losses: Vec<String>) -> Self {
        Self(HubParts { losses: losses.into(), ..self.0 })
    }

    /// The same, where a request that was made before is answered by the task that it began.
    #[must_use]
    pub fn with_repeats(self, repeats: Repeats) -> Self {
        Self(HubParts { repeats, ..self.0 })
    }

    /// The same, which these tenants share beside the default one.
    #[must_use]
    pub fn with_tenants(self, tenants: BTreeSet<TenantId>) -> Self {
        Self(HubParts { tenants: tenants.into(), ..self.0 })
    }

    /// Takes up what an earlier hub left unfinished; from now on operations can be carried out.
    ///
    /// # Errors
    ///
    /// If the store cannot be used.
    pub async fn take_up(self) -> Result<(Hub, Recovered), StorageError> {
        let hub = Hub(Arc::new(self.0));
        let recovered = hub.tasks.recover().await?;
        Ok((hub, recovered))
    }
}
