//! An agent elsewhere as one of this hub's own: its pinned card, how it is, and what it calls our conversations and tasks.

use super::{RemoteAgent, RemoteError, run::RemoteRun};
use crate::{outbound::Outbound, storage::Storage};
use a2a_hub_protocol::{
    card::AgentCard,
    id::{AgentId, ContextId, TaskId},
    operation::HealthStatus,
    push::Secret,
    task::Task,
};
use a2a_hub_sandbox::{Report, capability::tasks::TaskPort, guest::Work};
use std::{fmt, sync::Arc};

/// How many bytes of names are remembered of one agent: those of ten thousand conversations.
const MAX_NAMES: u64 = 1 << 20;

/// Where the digest of the card is kept that the operator trusts.
const PIN: &str = "remote/card";

/// The tie between an agent of ours and the one elsewhere that does its work. Cheap to clone.
#[derive(Clone)]
pub struct Link {
    id: AgentId,
    agent: RemoteAgent,
    storage: Arc<dyn Storage>,
    url: String,
    token: Option<Secret>,
    /// The digest of the card that is trusted.
    pinned: String,
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link").field("id", &self.id).field("url", &self.url).finish_non_exhaustive()
    }
}

/// Where an agent elsewhere is found.
pub struct Place {
    /// Its URL.
    pub url: String,
    /// What it is shown.
    pub token: Option<Secret>,
    /// The digest of its card, if the operator pins it; otherwise the first that was seen is.
    pub sha256: Option<String>,
}

impl Link {
    /// Finds the agent that is to be called `id` here.
    pub async fn find(
        id: AgentId,
        place: Place,
        outbound: Outbound,
        storage: Arc<dyn Storage>,
    ) -> Result<Self, RemoteError> {
        let Place { url, token, sha256 } = place;
        let agent = RemoteAgent::find(outbound, &url, token.clone()).await?;
        let known = storage.recall(&id, PIN).await.ok().flatten();
        let known = known.and_then(|digest| String::from_utf8(digest).ok());
        let pinned = sha256.map(|digest| digest.to_ascii_lowercase()).or(known);
        let is_new = pinned.is_none();
        let pinned = pinned.unwrap_or_else(|| agent.digest().to_owned());
        let link = Self { id, agent, storage, url, token, pinned };
        if is_new {
            link.keep(PIN, &link.pinned).await;
        }
        Ok(link)
    }

    /// The card of the agent elsewhere.
    pub fn card(&self) -> &AgentCard {
        self.agent.card()
    }

    /// Where it is.
    pub fn url(&self) -> &str {
        &self.url
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

    /// How it is: whether its card is there, and the one that is trusted.
    pub async fn check(&self) -> Report {
        let outbound = self.agent.outbound.clone();
        let report = |status, detail, fix| Report { status, version: None, detail, fix };
        match RemoteAgent::find(outbound, &self.url, self.token.clone()).await {
            Err(why) => report(HealthStatus::Unhealthy, Some(why.to_string()), None),
            Ok(now) if now.digest() != self.pinned => {
                let id = &self.id;
                let detail =
                    format!("its card is not the one that was trusted: {} is pinned", self.pinned);
                let fix =
                    format!("look at the card, then set `remote.{id}.sha256` to {}", now.digest());
                report(HealthStatus::Degraded, Some(detail), Some(fix))
            }
            Ok(now) => {
                let version = Some(now.card().version.clone());
                Report { version, ..report(HealthStatus::Healthy, None, None) }
            }
        }
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
