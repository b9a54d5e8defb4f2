//! Agents that the configuration names and that are elsewhere: each joins once its card is found.

use super::{Agent, Agents, agent::Body};
use crate::{
    config::{self, Remote},
    outbound::Outbound,
    remote::{Link, Place},
};
use a2a_hub_protocol::{id::AgentId, push::Secret};
use futures::future;
use std::{collections::BTreeSet, time::Duration};
use tokio::time::{sleep, timeout};

/// How long the hub waits for them when it starts; one that takes longer joins later.
const AT_THE_START: Duration = Duration::from_secs(3);

impl Agents {
    /// Has those join that are elsewhere. Those that are not found now are looked for until they are.
    pub async fn join_remote(&self, outbound: Outbound) {
        let all = self.shared.config.remote.iter().map(|(id, remote)| {
            let (agents, outbound, id, remote) =
                (self.clone(), outbound.clone(), id.clone(), remote.clone());
            async move {
                let first =
                    timeout(AT_THE_START, agents.find_remote(&id, &remote, &outbound)).await;
                if first.is_ok_and(|joined| joined) {
                    return;
                }
                let again = agents.clone();
                agents.shared.asks.spawn(async move {
                    let interval = again.shared.config.health.interval();
                    let looking = async {
                        while !again.find_remote(&id, &remote, &outbound).await {
                            sleep(interval).await;
                        }
                    };
                    again.shared.stop.run_until_cancelled(looking).await;
                });
            }
        });
        future::join_all(all).await;
    }

    /// Whether it was found, and joined.
    async fn find_remote(&self, id: &AgentId, remote: &Remote, outbound: &Outbound) -> bool {
        let token = remote.token_env.as_ref().and_then(|name| {
            config::environment(&BTreeSet::from([name.clone()]))
                .pop()
                .map(|(_, it)| Secret::new(it))
        });
        if token.is_none()
            && let Some(variable) = &remote.token_env
        {
            tracing::warn!(agent = %id, variable, "the token of an agent elsewhere is not set");
        }
        let Remote { url, sha256, origins, .. } = remote.clone();
        let place = Place { url, token, sha256, origins };
        let storage = self.shared.storage.clone();
        match Link::find(id.clone(), place, outbound.clone(), storage).await {
            Ok(link) => {
                let card = link.card().clone();
                let source = link.url().to_owned();
                let seat = self.a_seat(id);
                let body = Body::Remote(Box::new(link));
                self.seat(Agent::new(id.clone(), body, card, super::Source::Remote(source), seat));
                true
            }
            Err(why) => {
                tracing::warn!(agent = %id, %why, "an agent elsewhere is not there; it is looked for again");
                false
            }
        }
    }
}
