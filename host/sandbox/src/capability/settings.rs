//! The operator's settings for the agent: available without a grant in every call except the
//! card's.

use crate::store::{bindings::a2a::hub::settings::Host, state::GuestState};

impl Host for GuestState {
    fn get(&mut self, name: String) -> wasmtime::Result<Option<String>> {
        Ok(match &self.replay {
            Some(replay) => replay.setting(&name),
            None => self.ports.settings.get(&name).cloned(),
        })
    }
}
