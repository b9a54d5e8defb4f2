//! Baselines of triggers: the state of a source from which later changes count. They are recorded
//! before the operator learns that the triggers are there, so that no change after that is missed.

use super::{Hub, triggers::TriggerOperations};
use crate::error::HubError;
use a2a_hub_automation::{
    known_trigger::{KnownTrigger, Sight},
    poll::SourcePoll,
};
use a2a_hub_config::TriggerSource;
use a2a_hub_protocol::error::A2aError;
use futures::future::join_all;
use std::sync::Arc;

impl TriggerOperations<'_> {
    /// Records the baseline of each trigger of a hub that has none. Waits for the sources, at most
    /// as long as one poll may take; a source that does not answer gets its baseline by a later
    /// poll.
    pub(super) async fn record_baselines(hub: &Hub) {
        let Ok(operations) = TriggerOperations::new(hub) else { return };
        let _looks = operations.triggers.looks.lock().await;
        let all = operations.triggers.all();
        join_all(all.iter().map(async |(name, known)| {
            if let Err(why) = operations.record_baseline(name, known).await {
                let why = A2aError::from(why);
                tracing::warn!(trigger = name, %why, "cannot record the baseline of a trigger, trying again");
            }
        }))
        .await;
    }

    /// Records the baseline of one trigger, if it has none. The caller holds the lock of the polls:
    /// a concurrent poll could see an older state, and report the difference as an event.
    pub(super) async fn record_baseline(
        &self,
        name: &str,
        known: &Arc<KnownTrigger>,
    ) -> Result<(), HubError> {
        // Events count for it only once its owner may begin tasks.
        let Ok(runner) = self.runner(name, known) else { return Ok(()) };
        let poll = {
            let mut states = self.triggers.states().await?;
            let Some(memory) = states.get_mut(name) else { return Ok(()) };
            let lacks = match &known.rules.source {
                TriggerSource::Commits(..) => memory.state.heads.is_none(),
                TriggerSource::Files(..) => memory.files.is_none(),
                TriggerSource::Topics(_) => memory.state.topics_after.is_none(),
                TriggerSource::Tasks(..) | TriggerSource::Webhooks(_) => false,
            };
            if !lacks || !memory.state.is_active() {
                return Ok(());
            }
            SourcePoll::begin(known, memory.poll.take())
        };
        let began = poll.began;
        let sight = poll.sight().await;
        let mut states = self.triggers.states().await?;
        let Some(memory) = states.get_mut(name) else { return Ok(()) };
        let mut state = memory.state.clone();
        state.follow_tenant(runner.tenant.as_str());
        match sight {
            Err(late) => memory.poll = Some(late),
            // The next poll reports it.
            Ok(Err(_)) => {}
            Ok(Ok(Sight::Heads(heads))) => state.heads = Some(heads),
            Ok(Ok(Sight::Files(files))) => {
                memory.files = Some(files);
                memory.rest_after(began);
            }
            Ok(Ok(Sight::Reported)) => {
                self.triggers.see_topics(name, known, &runner.tenant, &mut state).await?;
            }
        }
        self.save(name, memory, &state).await
    }
}
