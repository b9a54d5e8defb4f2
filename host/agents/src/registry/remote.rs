//! Registration of remote agents from the configuration, once their cards are found.

use super::Agents;
use crate::{
    agent::{Agent, AgentSource},
    remote::{RemoteAgent, RemoteEndpoint, TrustError},
};
use a2a_hub_client::Outbound;
use a2a_hub_config::{self as config, ClientTlsFiles, Remote};
use a2a_hub_process::run_blocking;
use a2a_hub_protocol::{id::AgentId, push::Secret};
use a2a_hub_runtime::Runtime as _;
use a2a_hub_tls::{TlsFileError, read_client_tls};
use futures::future;
use std::{collections::BTreeSet, sync::Arc, time::Duration};
use tokio::time::{sleep, timeout};

/// Time that the start of the hub waits for remote agents; slower ones are registered later.
const AT_THE_START: Duration = Duration::from_secs(3);

impl Agents {
    /// Registers all configured remote agents. Agents that were never found are retried.
    pub(super) async fn join_remote(&self) {
        let ids: Vec<_> = self.shared.config().remote.keys().cloned().collect();
        self.join_these(&ids).await;
    }

    /// Registers these remote agents, now or once they are found.
    async fn join_these(&self, ids: &[AgentId]) {
        let all = ids.iter().map(|id| async move {
            let mut on_its_way = self.shared.joining.one();
            match timeout(AT_THE_START, self.join_one_remote(id)).await {
                Ok(true) => return,
                // The agent cannot be found now.
                Ok(false) => on_its_way = None,
                // The result is not known yet.
                Err(_) => {}
            }
            let (agents, id) = (self.clone(), id.clone());
            self.shared.asks.spawn(async move {
                let looking = async {
                    // The search stops once the configuration no longer names the agent.
                    while agents.find(&id).is_none()
                        && agents.shared.config().remote.contains_key(&id)
                        && !agents.join_one_remote(&id).await
                    {
                        on_its_way = None;
                        sleep(agents.shared.config().health.interval()).await;
                    }
                };
                agents.shared.stop.run_until_cancelled(looking).await;
            });
        });
        future::join_all(all).await;
    }

    /// Applies a new configuration to these remote agents: each leaves and is registered again
    /// under its new settings.
    pub(super) async fn rejoin_remote(&self, ids: &BTreeSet<AgentId>) {
        for id in ids {
            if self.find(id).is_some_and(|agent| matches!(agent.source, AgentSource::Remote(_))) {
                self.deregister(id);
            }
            self.set_rejected(&table(id), None);
        }
        let config = self.shared.config();
        let named: Vec<_> =
            ids.iter().filter(|id| config.remote.contains_key(*id)).cloned().collect();
        self.join_these(&named).await;
    }

    /// Registers the remote agent `id` with its current card, which the operator may approve by
    /// digest. None if the configuration names no such agent. On failure the registered agent
    /// stays.
    pub(super) async fn reload_remote(
        &self,
        id: &AgentId,
        accepted: Option<&str>,
    ) -> Option<Result<(), TrustError>> {
        let (endpoint, files) = self.remote_settings(id)?;
        let outbound = match self.outbound(files).await {
            Ok(outbound) => outbound,
            Err(why) => return Some(Err(why.into())),
        };
        let storage = self.shared.storage.clone();
        let found = RemoteAgent::find_anew(id.clone(), endpoint, outbound, storage, accepted).await;
        Some(found.map(|remote| self.register_remote(id, remote)))
    }

    /// Registers a remote agent; false if it was not found. The reason is listed with the rejected
    /// plug-ins.
    async fn join_one_remote(&self, id: &AgentId) -> bool {
        let Some((endpoint, files)) = self.remote_settings(id) else { return false };
        let found = match self.outbound(files).await {
            Ok(outbound) => {
                let storage = self.shared.storage.clone();
                RemoteAgent::find(id.clone(), endpoint, outbound, storage).await
            }
            Err(why) => Err(why.into()),
        };
        match found {
            Ok(remote) => {
                self.register_remote(id, remote);
                true
            }
            Err(why) => {
                tracing::warn!(agent = %id, %why, "remote agent cannot join, trying again");
                let (table, why) = (table(id), why.with_way_out());
                let is_reported =
                    self.rejected().iter().any(|it| it.file == table && it.error == why);
                if !is_reported {
                    self.set_rejected(&table, Some(why));
                }
                false
            }
        }
    }

    fn register_remote(&self, id: &AgentId, remote: RemoteAgent) {
        let (card, source) = (remote.card().clone(), AgentSource::Remote(remote.url().to_owned()));
        let runtime = Arc::new(remote);
        let terms = self.terms_of(id, &source, runtime.ask(), None);
        let deps = self.deps_of(id, terms);
        self.set_rejected(&table(id), None);
        self.register(Agent::new(id.clone(), runtime, card, source, deps));
    }

    /// HTTP client for an agent with these files for TLS.
    async fn outbound(&self, files: ClientTlsFiles) -> Result<Outbound, TlsFileError> {
        if files.is_empty() {
            return Ok(self.shared.outbound.clone());
        }
        let read = run_blocking(move || read_client_tls(&files)).await;
        let tls = read.map_err(|why| TlsFileError::Interrupted(why.to_string()))??;
        Ok(Outbound::unguarded().with_tls(tls))
    }

    /// Settings of the agent from one reading of the configuration: its endpoint, and its files
    /// for TLS.
    fn remote_settings(&self, id: &AgentId) -> Option<(RemoteEndpoint, ClientTlsFiles)> {
        let remote = self.shared.config().remote.get(id)?.clone();
        let Remote { url, token_env, sha256, origins, keys, tls } = remote;
        let token = token_env.as_ref().and_then(|name| {
            let found = config::environment(&BTreeSet::from([name.clone()])).pop();
            found.map(|(_, token)| Secret::new(token))
        });
        if let (None, Some(variable)) = (&token, &token_env) {
            tracing::warn!(agent = %id, variable, "token variable of a remote agent is not set");
        }
        Some((RemoteEndpoint { url, token, sha256, origins, keys }, tls))
    }
}

/// Name of the agent's table in the configuration.
pub(super) fn table(id: &AgentId) -> String {
    format!("remote.{id}")
}
