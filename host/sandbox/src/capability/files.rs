//! Files that an agent hands to its programs: named and counted here, written by the hub.

use crate::{
    bindings::a2a::hub::{files::Host, types},
    convert::failure_to_guest,
    failure::Failure,
    state::State,
};
use a2a_hub_core::{file_name, grant::Held};
use std::collections::BTreeSet;

/// Files one instance may write, however small: each takes a place in a directory.
const MAX_FILES: usize = 1_000;

/// The hub's side: a directory of one instance, which goes when this is dropped.
#[async_trait::async_trait]
pub trait FilesPort: Send + Sync {
    /// Writes a file that is not there yet, and returns its absolute path. `name` is as [`file_name::unused`] makes one.
    async fn put(&self, name: &str, bytes: Vec<u8>) -> Result<String, Failure>;
}

/// What one instance has written, and may still write.
#[derive(Debug)]
pub(crate) struct Written {
    names: BTreeSet<String>,
    bytes_left: u64,
}

impl Written {
    pub(crate) fn new(held: &Held) -> Self {
        Self { names: BTreeSet::new(), bytes_left: held.files_bytes.unwrap_or(0) }
    }

    /// Takes a place for a file, and returns its name.
    fn take(&mut self, said: &str, bytes: usize) -> Result<String, Failure> {
        let left = u64::try_from(bytes).ok().and_then(|bytes| self.bytes_left.checked_sub(bytes));
        let Some(left) = left else {
            return Err(Failure::Exhausted(format!(
                "write a file of {bytes} bytes: {} are left of what the manifest's `[files]` asks for",
                self.bytes_left
            )));
        };
        if self.names.len() == MAX_FILES {
            return Err(Failure::Exhausted(format!(
                "write a file: there are {MAX_FILES}, which is all that one task may have"
            )));
        }
        let name = file_name::unused(said, &self.names);
        self.names.insert(name.clone());
        self.bytes_left = left;
        Ok(name)
    }
}

impl State {
    async fn put_file(&mut self, name: &str, bytes: Vec<u8>) -> Result<String, Failure> {
        let Some(port) = self.ports.files.clone() else {
            return Err(Failure::Denied(format!(
                "write files: not granted; the manifest must ask with `[files]`, and the operator allows it with \
                 `files = true` in `[agents.{}.grant]` of the hub's configuration",
                self.agent
            )));
        };
        if self.cancel.is_cancelled() {
            return Err(Failure::Cancelled);
        }
        let name = self.written.take(name, bytes.len())?;
        port.put(&name, bytes).await
    }
}

impl Host for State {
    async fn put(
        &mut self,
        name: String,
        bytes: Vec<u8>,
    ) -> wasmtime::Result<Result<String, types::Failure>> {
        Ok(self.put_file(&name, bytes).await.map_err(failure_to_guest))
    }
}
