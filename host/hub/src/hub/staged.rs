//! A hub of fake agents over a store in memory, for the tests of what is above: no component, no program, no port.

#![allow(
    clippy::unwrap_used,
    reason = "a panic is how a test fails; with the feature, this is no test to the lint"
)]

use super::Hub;
use crate::{
    agents::{Agents, BuiltIn, PluginFolder},
    contexts::Contexts,
    events::Events,
    fake::Fake,
    push::{Pushes, Sender},
    tasks::Tasks,
};
use a2a_hub_config::Config;
use a2a_hub_process::Supervisor;
use a2a_hub_protocol::id::AgentId;
use a2a_hub_sandbox::{Engine, EngineSettings};
use a2a_hub_store::memory::MemoryStorage;
use std::{path::Path, sync::Arc, time::Duration};

impl Hub {
    /// A hub of these agents by their names. Its plugins folder is below `dir`, and nothing else is written there.
    pub fn of_fakes(dir: &Path, fakes: &[(&str, Fake)]) -> Self {
        let (config, events) = (Config::default(), Events::default());
        let storage = Arc::new(MemoryStorage::default());
        let tasks = Tasks::new(storage.clone(), events.clone());
        let contexts = Contexts::new(storage.clone(), &config);
        let sender = Sender::new(config.push.rules(), None);
        let (breaker, give_up) = (config.breaker.settings(), config.push.give_up());
        let pushes = Pushes::new(storage.clone(), tasks.clone(), sender, breaker, give_up);
        let few = EngineSettings { max_instances: 1, ..EngineSettings::default() };
        let agents = Agents::new(
            config,
            BuiltIn(&[]),
            dir.to_owned(),
            Engine::new(&few).unwrap(),
            Supervisor::new("/nonexistent".into(), dir.to_owned(), Duration::ZERO),
            storage,
            events.clone(),
        );
        let plugins = PluginFolder::open(dir.join("plugins"), agents.clone()).unwrap();
        for (id, fake) in fakes {
            let id = AgentId::parse(*id).unwrap();
            agents.join_runtime(&id, fake.card(), Arc::new(fake.clone()));
        }
        Self::new(agents, plugins, contexts, tasks, pushes, events)
    }
}
