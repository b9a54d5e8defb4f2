//! Reloads the configuration while the hub runs: settings that can change take effect at once,
//! settings that need a restart are reported and stay as they were, and an invalid configuration
//! changes nothing.

use super::{Hub, live_config::LiveConfig, triggers::TriggerOperations};
use crate::error::HubError;
use a2a_hub_config::Setting;
use a2a_hub_core::task::prices::Prices;
use a2a_hub_process::run_blocking;
use a2a_hub_protocol::{
    error::{A2aError, ErrorKind},
    hub::event::HubEventKind,
    operation::Reloaded,
};
use std::sync::Arc;

impl Hub {
    /// Reloads the configuration; completes even if the caller is dropped.
    pub(super) async fn reload(&self) -> Result<Reloaded, HubError> {
        let Some(live) = self.live.clone() else {
            let why = "this hub was not started from a configuration that could be read again";
            return Err(A2aError::new(ErrorKind::UnsupportedOperation, why).into());
        };
        let hub = self.clone();
        self.tasks.see_through(async move { hub.follow(&live).await }).await
    }

    async fn follow(&self, live: &LiveConfig) -> Result<Reloaded, HubError> {
        let _turn = live.turn.lock().await;
        let read = Arc::clone(&live.read);
        let read = run_blocking(move || read()).await.map_err(|why| why.to_string());
        let followed =
            read.flatten().and_then(|new| live.now().follow(&new).map_err(|why| why.to_string()));
        let followed = followed.map_err(|why| {
            tracing::warn!(why, "configuration reload failed, nothing is changed");
            let why = format!("reload the configuration: {why}; nothing was changed");
            A2aError::new(ErrorKind::UnsupportedOperation, why)
        })?;
        let omitted = self.plugins.follow(&followed).await;
        self.contexts.follow(&followed.config);
        self.tasks.set_prices(Prices(followed.config.prices.clone()));
        self.tasks.follow_worktrees(&followed.config.worktrees);
        if let Some(schedules) = &self.schedules {
            schedules.follow(&followed.config.schedule);
        }
        if let Some(triggers) = &self.triggers {
            triggers.follow(&followed.config.trigger);
        }
        if let Some(topics) = &self.topics {
            topics.follow(followed.config.topics.rules());
        }
        if let Some(notifiers) = &self.notifiers {
            notifiers.follow(&followed.config.notify);
        }
        TriggerOperations::record_baselines(self).await;
        self.set_default(followed.config.default_agent.clone());
        live.set(followed.config);

        let names = |all: Vec<Setting>| all.iter().map(Setting::to_string).collect::<Vec<_>>();
        let (changed, needs_restart) = (names(followed.changed), names(followed.needs_restart));
        tracing::info!(changed = changed.join(", "), "configuration reloaded");
        if !needs_restart.is_empty() {
            let settings = needs_restart.join(", ");
            tracing::warn!(settings, "some changed settings require a restart of the hub");
        }
        for agent in &omitted {
            tracing::warn!(agent = %agent.agent_id, why = agent.error, "agent cannot apply the new configuration");
        }
        let (changed_settings, later) = (changed.clone(), needs_restart.clone());
        self.events.publish(HubEventKind::ConfigReloaded {
            changed: changed_settings,
            needs_restart: later,
        });
        Ok(Reloaded { changed, needs_restart, left_out: omitted })
    }
}
