//! An agent elsewhere as one of this hub's own: its pinned card, how it is, and what it calls our conversations and tasks.

use super::{
    RemoteAgent, RemoteError, card,
    run::RemoteRun,
    trust::{TrustError, Trusted},
};
use crate::{outbound::Outbound, storage::Storage};
use a2a_hub_protocol::{
    card::AgentCard,
    id::{AgentId, ContextId, TaskId},
    operation::HealthStatus,
    push::Secret,
    task::Task,
};
use a2a_hub_sandbox::{Report, capability::tasks::TaskPort, guest::Work};
use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

/// How many bytes of names are remembered of one agent: those of ten thousand conversations.
pub(super) const MAX_NAMES: u64 = 1 << 20;

/// The tie between an agent of ours and the one elsewhere that does its work. Cheap to clone.
#[derive(Clone)]
pub struct Link {
    id: AgentId,
    agent: Arc<RemoteAgent>,
    storage: Arc<dyn Storage>,
    place: Arc<Place>,
    used: Arc<Trusted>,
    /// Whether its card is another one by now, which is trusted as well.
    renewed: Arc<AtomicBool>,
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link").field("id", &self.id).finish_non_exhaustive()
    }
}

/// Where an agent elsewhere is found, and what makes its card trusted.
pub struct Place {
    /// Its URL.
    pub url: String,
    /// What it is shown.
    pub token: Option<Secret>,
    /// The digest of its card, if the operator pins it; otherwise the first that was seen is.
    pub sha256: Option<String>,
    /// Origins that its card may send us to beside its own.
    pub origins: Vec<String>,
    /// Where the keys are of which one must have signed its card; none if it need not be signed.
    pub keys: Vec<String>,
}

impl Link {
    /// The agent that is to be called `id` here, by the card that is in use, without asking it; the first time, by the
    /// card that it has.
    pub async fn find(
        id: AgentId,
        place: Place,
        outbound: Outbound,
        storage: Arc<dyn Storage>,
    ) -> Result<Self, TrustError> {
        match Trusted::recall(&id, &place, &outbound, &*storage).await? {
            Some(used) => Self::tie(id, place, outbound, storage, used),
            None => Self::find_anew(id, place, outbound, storage, None).await,
        }
    }

    /// The same by the card that it has now, if that is trusted: from now on it is the one in use. The operator approves
    /// it by its digest, in hex.
    pub async fn find_anew(
        id: AgentId,
        place: Place,
        outbound: Outbound,
        storage: Arc<dyn Storage>,
        accepted: Option<&str>,
    ) -> Result<Self, TrustError> {
        let used = Trusted::recall(&id, &place, &outbound, &*storage).await?;
        let now = Trusted::look(&id, &place, &outbound, used.as_ref(), accepted).await?;
        let link = Self::tie(id, place, outbound, storage, now)?;
        link.used.keep(&link.id, &*link.storage).await?;
        Ok(link)
    }

    fn tie(
        id: AgentId,
        place: Place,
        outbound: Outbound,
        storage: Arc<dyn Storage>,
        used: Trusted,
    ) -> Result<Self, TrustError> {
        let base = card::base(&place.url)?;
        let token = place.token.clone();
        let agent = RemoteAgent::of_card(outbound, &base, token, &place.origins, used.card())?;
        let (agent, place, used, renewed) =
            (Arc::new(agent), Arc::new(place), Arc::new(used), Arc::default());
        Ok(Self { id, agent, storage, place, used, renewed })
    }

    /// The card of the agent elsewhere.
    pub fn card(&self) -> &AgentCard {
        self.agent.card()
    }

    /// Where it is.
    pub fn url(&self) -> &str {
        &self.place.url
    }

    /// Sets it to work on a task of ours, of which `port` hears.
    pub fn start(&self, port: Arc<dyn TaskPort>, work: Work) -> RemoteRun {
        RemoteRun::start(self.clone(), port, work)
    }

    /// Listens again to what it does for a task of ours, which it was given before this hub started.
    pub fn follow(&self, port: Arc<dyn TaskPort>, task: Task) -> RemoteRun {
        RemoteRun::follow(self.clone(), port, task)
    }

    /// Whether it was given a task of ours, and has said what it calls it.
    pub async fn has(&self, task: &TaskId) -> bool {
        self.task(task).await.is_some()
    }

    /// How it is: whether its card is there, and still the one in use, or another that is trusted as well.
    pub async fn check(&self) -> Report {
        let now =
            Trusted::look(&self.id, &self.place, &self.agent.outbound, Some(&self.used), None)
                .await;
        let report = |status, why: &TrustError| {
            let (detail, fix) = (Some(why.to_string()), why.fix());
            Report { status, version: None, detail, fix }
        };
        match now {
            Ok(now) => {
                self.renewed.store(now.digest() != self.used.digest(), Ordering::Relaxed);
                let version = Some(self.card().version.clone());
                Report { status: HealthStatus::Healthy, version, detail: None, fix: None }
            }
            Err(why) if why.is_distrust() => report(HealthStatus::Degraded, &why),
            Err(why) => report(HealthStatus::Unhealthy, &why),
        }
    }

    /// Whether its card was another one when it was last asked, which is trusted as well.
    pub fn is_renewed(&self) -> bool {
        self.renewed.load(Ordering::Relaxed)
    }

    /// Has it stop what it does for a task of ours, if it still does.
    pub async fn stop(&self, task: &TaskId) -> Result<(), RemoteError> {
        let Some(theirs) = self.task(task).await else { return Ok(()) };
        let stopped = self.agent.cancel(theirs).await.map(|_| ());
        self.forget(task).await;
        stopped
    }

    pub(super) fn agent(&self) -> &RemoteAgent {
        &self.agent
    }

    /// What it calls a task of ours that it still works on.
    pub(super) async fn task(&self, ours: &TaskId) -> Option<TaskId> {
        self.known(&task_key(ours)).await.map(TaskId::new)
    }

    /// What it calls a conversation of ours.
    pub(super) async fn context(&self, ours: &ContextId) -> Option<ContextId> {
        self.known(&context_key(ours)).await.map(ContextId::new)
    }

    pub(super) async fn remember(
        &self,
        ours: (&TaskId, &ContextId),
        theirs: (&TaskId, &ContextId),
    ) {
        self.keep(&task_key(ours.0), theirs.0.as_str()).await;
        if !theirs.1.as_str().is_empty() {
            self.keep(&context_key(ours.1), theirs.1.as_str()).await;
        }
    }

    /// A task of ours is over: what it is called there is of no use any more.
    pub async fn forget(&self, ours: &TaskId) {
        if let Err(why) = self.storage.forget(&self.id, &task_key(ours)).await {
            tracing::warn!(agent = %self.id, %why, "cannot forget the name of a task");
        }
    }

    async fn known(&self, key: &str) -> Option<String> {
        let found = self.storage.recall(&self.id, key).await;
        String::from_utf8(found.ok().flatten()?).ok()
    }

    /// What cannot be kept costs a conversation its memory, not the task.
    async fn keep(&self, key: &str, name: &str) {
        let kept = self.storage.remember(&self.id, key, name.as_bytes().to_vec(), MAX_NAMES);
        if let Err(why) = kept.await {
            tracing::warn!(agent = %self.id, %why, "cannot keep what an agent elsewhere calls something");
        }
    }
}

fn task_key(ours: &TaskId) -> String {
    format!("remote/task/{ours}")
}

fn context_key(ours: &ContextId) -> String {
    format!("remote/context/{ours}")
}
