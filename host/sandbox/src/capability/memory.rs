//! Small values stored by an agent, which outlive instances, reloads and restarts.

use super::journal::once_up;
use crate::store::{
    bindings::a2a::hub::{memory::Host, types},
    convert::failure_to_guest,
    state::GuestState,
    usage::{pace, wait},
};
use a2a_hub_runtime::{
    Failure,
    port::memory::{MAX_KEY, MemoryPort},
};
use std::sync::Arc;

impl GuestState {
    /// Memory port, after the guest's rate limit.
    async fn memory(&mut self, key: Option<&str>) -> Result<Arc<dyn MemoryPort>, Failure> {
        self.require_in_step("remember values")?;
        if key.is_some_and(|key| key.is_empty() || key.len() > MAX_KEY) {
            return Err(Failure::Invalid(format!("a key is 1 to {MAX_KEY} bytes long")));
        }
        let Some(memory) = self.ports.memory.clone() else {
            self.ports.tell_refused("memory");
            return Err(Failure::Denied(format!(
                "remember values: not granted; the manifest must ask with `[memory]`, and the operator allows it with \
                 `memory = true` in `[agents.{0}.grant]` of the hub's configuration, or to a plug-in with `a2a-hub plugin grant {0} --memory`",
                self.agent
            )));
        };
        let time = pace(&mut self.paces.memory_calls, 1);
        wait(time, &self.cancel).await?;
        Ok(memory)
    }
}

impl Host for GuestState {
    async fn get(
        &mut self,
        key: String,
    ) -> wasmtime::Result<Result<Option<Vec<u8>>, types::Failure>> {
        let memory = self.memory(Some(&key)).await;
        let (recorded, cancel) = (self.replay.is_some(), self.cancel.clone());
        let done = async {
            let memory = memory?;
            once_up(recorded, &cancel, || memory.get(&key)).await
        };
        Ok(done.await.map_err(failure_to_guest))
    }

    async fn set(
        &mut self,
        key: String,
        value: Vec<u8>,
    ) -> wasmtime::Result<Result<(), types::Failure>> {
        let memory = self.memory(Some(&key)).await;
        let (recorded, cancel) = (self.replay.is_some(), self.cancel.clone());
        let done = async {
            let memory = memory?;
            once_up(recorded, &cancel, || memory.set(&key, value.clone())).await
        };
        Ok(done.await.map_err(failure_to_guest))
    }

    async fn delete(&mut self, key: String) -> wasmtime::Result<Result<(), types::Failure>> {
        let memory = self.memory(Some(&key)).await;
        let (recorded, cancel) = (self.replay.is_some(), self.cancel.clone());
        let done = async {
            let memory = memory?;
            once_up(recorded, &cancel, || memory.delete(&key)).await
        };
        Ok(done.await.map_err(failure_to_guest))
    }

    async fn keys(
        &mut self,
        prefix: String,
    ) -> wasmtime::Result<Result<Vec<String>, types::Failure>> {
        let memory = self.memory(None).await;
        let (recorded, cancel) = (self.replay.is_some(), self.cancel.clone());
        let done = async {
            let memory = memory?;
            once_up(recorded, &cancel, || memory.keys(&prefix)).await
        };
        Ok(done.await.map_err(failure_to_guest))
    }
}
