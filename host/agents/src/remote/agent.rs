//! A remote agent as one of this hub's agents: its trusted card, its health and its tasks.

use super::{
    endpoint::RemoteEndpoint,
    peer::RemotePeer,
    run::RemoteRun,
    trust::{TrustError, Trusted},
};
use a2a_hub_client::{A2aClient, Outbound, card};
use a2a_hub_core::{grant::Ask, task::recovery::Resumability};
use a2a_hub_protocol::{
    card::AgentCard,
    id::{AgentId, TaskId},
    operation::HealthStatus,
    task::Task,
};
use a2a_hub_runtime::{Call, Failure, HealthReport, Run, Runtime, Work};
use a2a_hub_store::AgentMemory;
use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

/// An agent of this hub that forwards its work to a remote agent.
pub(crate) struct RemoteAgent {
    id: AgentId,
    peer: RemotePeer,
    endpoint: RemoteEndpoint,
    outbound: Outbound,
    card: AgentCard,
    trusted: Trusted,
    /// Empty: a remote agent has no capability of this machine.
    ask: Ask,
    /// True if the remote card has changed and the new one is trusted.
    renewed: AtomicBool,
}

impl RemoteAgent {
    /// Creates the agent `id` from the cached trusted card, without a request. The first time, from
    /// the card that it fetches.
    pub(crate) async fn find(
        id: AgentId,
        endpoint: RemoteEndpoint,
        outbound: Outbound,
        storage: Arc<dyn AgentMemory>,
    ) -> Result<Self, TrustError> {
        match Trusted::recall(&id, &endpoint, &outbound, &*storage).await? {
            Some(used) => Self::with_card(id, endpoint, outbound, storage, used),
            None => Self::find_anew(id, endpoint, outbound, storage, None).await,
        }
    }

    /// Creates the agent `id` from the card that it fetches, if that is trusted, and caches the
    /// card. With `accepted`, the operator approves the card of this digest (hexadecimal).
    pub(crate) async fn find_anew(
        id: AgentId,
        endpoint: RemoteEndpoint,
        outbound: Outbound,
        storage: Arc<dyn AgentMemory>,
        accepted: Option<&str>,
    ) -> Result<Self, TrustError> {
        let used = Trusted::recall(&id, &endpoint, &outbound, &*storage).await?;
        let now = Trusted::fetch(&id, &endpoint, &outbound, used.as_ref(), accepted).await?;
        let agent = Self::with_card(id, endpoint, outbound, Arc::clone(&storage), now)?;
        agent.trusted.store(&agent.id, &*storage).await?;
        Ok(agent)
    }

    fn with_card(
        id: AgentId,
        endpoint: RemoteEndpoint,
        outbound: Outbound,
        storage: Arc<dyn AgentMemory>,
        trusted: Trusted,
    ) -> Result<Self, TrustError> {
        let base = card::base(&endpoint.url)?;
        let (origins, token) = (&endpoint.origins, endpoint.token.clone());
        let client = A2aClient::of_card(outbound.clone(), &base, token, origins, trusted.card())?;
        let card = client.card().clone();
        let peer = RemotePeer::new(id.clone(), Arc::new(client), storage);
        let (ask, renewed) = Default::default();
        Ok(Self { id, peer, endpoint, outbound, card, trusted, ask, renewed })
    }

    /// Card of the remote agent.
    pub(crate) fn card(&self) -> &AgentCard {
        &self.card
    }

    /// URL of the remote agent.
    pub(crate) fn url(&self) -> &str {
        &self.endpoint.url
    }

    /// Fetches the card: healthy if it is the one in use or is trusted as well.
    async fn check(&self) -> HealthReport {
        let now =
            Trusted::fetch(&self.id, &self.endpoint, &self.outbound, Some(&self.trusted), None)
                .await;
        let report = |status, why: &TrustError| {
            let (detail, fix) = (Some(why.to_string()), why.fix());
            HealthReport { status, version: None, detail, fix }
        };
        match now {
            Ok(now) => {
                self.renewed.store(now.digest() != self.trusted.digest(), Ordering::Relaxed);
                let version = Some(self.card.version.clone());
                HealthReport { status: HealthStatus::Healthy, version, detail: None, fix: None }
            }
            Err(why) if why.is_distrust() => report(HealthStatus::Degraded, &why),
            Err(why) => report(HealthStatus::Unhealthy, &why),
        }
    }
}

#[async_trait::async_trait]
impl Runtime for RemoteAgent {
    fn ask(&self) -> &Ask {
        &self.ask
    }

    fn start(&self, call: Call, work: Work) -> Box<dyn Run> {
        Box::new(RemoteRun::start(self.peer.clone(), &call, work))
    }

    fn follow(&self, call: Call, task: Task) -> Option<Box<dyn Run>> {
        Some(Box::new(RemoteRun::follow(self.peer.clone(), &call, task)))
    }

    async fn resumability(&self, task: &TaskId) -> Resumability {
        if self.peer.has(task).await { Resumability::Work } else { Resumability::Nothing }
    }

    async fn health(&self, _call: Call) -> Result<HealthReport, Failure> {
        Ok(self.check().await)
    }

    async fn clean_up(&self, _call: Call, task: &TaskId) -> Result<(), Failure> {
        self.peer.stop(task, None).await.map_err(|why| Failure::Unavailable(why.to_string()))
    }

    async fn forget(&self, task: &TaskId) {
        self.peer.forget(task).await;
    }

    fn is_renewed(&self) -> bool {
        self.renewed.load(Ordering::Relaxed)
    }
}
