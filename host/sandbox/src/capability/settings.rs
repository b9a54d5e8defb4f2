//! What the operator set for the agent: nothing to ask for, and there in every call but the one for its card.

use crate::{bindings::a2a::hub::settings::Host, state::State};

impl Host for State {
    fn get(&mut self, name: String) -> wasmtime::Result<Option<String>> {
        Ok(match &self.replay {
            Some(replay) => replay.setting(&name),
            None => self.ports.settings.get(&name).cloned(),
        })
    }
}
