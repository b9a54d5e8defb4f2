//! Waiting on several things at once: not offered yet, and said so rather than never being ready.

use crate::{
    bindings::a2a::hub::wait::{Host, Source},
    state::State,
};

impl Host for State {
    async fn poll(
        &mut self,
        _sources: Vec<Source>,
        _timeout_ms: Option<u32>,
    ) -> wasmtime::Result<Vec<u32>> {
        Err(wasmtime::Error::msg("`wait.poll` is denied: this hub does not offer it"))
    }
}
