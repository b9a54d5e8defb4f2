//! Agents without a hub, for tests.

use crate::{
    agent::{Agent, AgentDeps, AgentSource, AgentVersion, Terms},
    event_sink::EventSink,
    port::{
        files::Files,
        logins::Logins,
        peer_directory::{Peer, PeerAccess},
        programs::IdlePrograms,
    },
    registry::FindAgent,
};
use a2a_hub_config::{self as config, AgentConfig, SecretStore};
use a2a_hub_core::{grant::Grant, plugin::installation::InstallationId};
use a2a_hub_process::Supervisor;
use a2a_hub_protocol::{
    card::AgentCard,
    hub::event::HubEventKind,
    id::AgentId,
    operation::{FoundAgents, HealthStatus},
};
use a2a_hub_runtime::Runtime;
use serde_json::Value;
use std::{path::PathBuf, sync::Arc, time::Duration};
use tokio_util::sync::CancellationToken;

/// Discards all events.
struct DiscardingSink;

impl EventSink for DiscardingSink {
    fn publish(&self, _what: HubEventKind) {}
}

impl Agent {
    /// Creates an agent without a hub that may call `peers`; all its other dependencies are stubs.
    pub fn by_itself(
        id: AgentId,
        runtime: Arc<dyn Runtime>,
        card: AgentCard,
        config: AgentConfig,
        peers: Vec<AgentId>,
    ) -> Self {
        let peer = |id: &AgentId| Peer {
            id: id.clone(),
            aliases: Vec::new(),
            health: HealthStatus::Healthy,
            is_vouched_for: true,
            is_listed: true,
            card: Value::Null,
        };
        let nowhere = PathBuf::from("/nonexistent");
        let supervisor = Supervisor::new(nowhere.clone(), nowhere.clone(), Duration::ZERO);
        let grant = config.grant.clone().unwrap_or_else(|| Grant::everything(runtime.ask()));
        let deps = AgentDeps {
            config,
            terms: Terms { installation: InstallationId::from(&id), grant },
            workspaces: Vec::new(),
            home: nowhere.clone(),
            data_dir: nowhere.clone(),
            files: Files::new(&nowhere, supervisor.clone()),
            http_secrets: SecretStore::new(&nowhere),
            logins: Logins::none(id.clone()),
            hub_access: None,
            supervisor,
            idle_programs: IdlePrograms::default(),
            storage: Arc::new(a2a_hub_store::memory::MemoryStorage::failing_after(u64::MAX)),
            peers: PeerAccess {
                list: Arc::new(move || peers.iter().map(peer).collect()),
                find: Arc::new(|_, _| Box::pin(async { Ok(FoundAgents::default()) })),
            },
            breaker: config::Breaker::default().settings(),
            events: Arc::new(DiscardingSink),
            asking: Arc::default(),
            shutdown: CancellationToken::new(),
        };
        Self::new(id, runtime, card, AgentSource::BuiltIn, deps)
    }
}

/// Agents without a hub have no earlier versions.
#[async_trait::async_trait]
impl<F: Fn(&AgentId) -> Option<Arc<Agent>> + Send + Sync> FindAgent for F {
    fn find(&self, id: &AgentId) -> Option<Arc<Agent>> {
        self(id)
    }

    async fn version(&self, id: &AgentId, _: &AgentVersion) -> Result<Arc<Agent>, String> {
        Err(format!("there is no other {id}"))
    }
}
