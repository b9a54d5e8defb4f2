//! Files that an agent passes to its programs: named and counted here, written by the hub.

use crate::store::{
    bindings::a2a::hub::{files::Host, types},
    convert::failure_to_guest,
    state::GuestState,
    usage::{pace, wait},
};
use a2a_hub_runtime::Failure;

impl GuestState {
    async fn put_file(&mut self, name: &str, bytes: Vec<u8>) -> Result<String, Failure> {
        self.require_in_step("write files")?;
        let Some(port) = self.ports.files.clone() else {
            self.ports.tell_refused("files");
            return Err(Failure::Denied(format!(
                "write files: not granted; the manifest must ask with `[files]`, and the operator allows it with \
                 `files = true` in `[agents.{0}.grant]` of the hub's configuration, or to a plug-in with `a2a-hub plugin grant {0} --files`",
                self.agent
            )));
        };
        if self.cancel.is_cancelled() {
            return Err(Failure::Cancelled);
        }
        let name = self.written.reserve(name, bytes.len())?;
        let time = pace(&mut self.paces.files, 1);
        wait(time, &self.cancel).await?;
        port.put(&name, bytes).await
    }
}

impl Host for GuestState {
    async fn put(
        &mut self,
        name: String,
        bytes: Vec<u8>,
    ) -> wasmtime::Result<Result<String, types::Failure>> {
        Ok(self.put_file(&name, bytes).await.map_err(failure_to_guest))
    }
}
