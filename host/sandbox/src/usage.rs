//! What one instance has used up, and may still use: events, bytes of output, files.

use a2a_hub_core::{file_name, grant::EffectiveGrant};
use a2a_hub_runtime::{Failure, Limits};
use std::collections::BTreeSet;

/// What a task may still emit.
#[derive(Debug)]
pub(crate) struct Output {
    events_left: u64,
    bytes_left: u64,
}

impl Output {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self { events_left: limits.events, bytes_left: limits.output_bytes }
    }

    pub(crate) fn take(&mut self, events: u64, bytes: u64) -> Result<(), Failure> {
        let (Some(events_left), Some(bytes_left)) =
            (self.events_left.checked_sub(events), self.bytes_left.checked_sub(bytes))
        else {
            return Err(Failure::Exhausted(
                "emit more: this task's output limit is used up; the operator raises it with `events` or `output_bytes` \
                 in the agent's `limits`"
                    .to_owned(),
            ));
        };
        *self = Self { events_left, bytes_left };
        Ok(())
    }
}

/// Files one instance may write, however small: each takes a place in a directory.
const MAX_FILES: usize = 1_000;

/// What one instance has written, and may still write.
#[derive(Debug)]
pub(crate) struct Written {
    names: BTreeSet<String>,
    bytes_left: u64,
}

impl Written {
    pub(crate) fn new(held: &EffectiveGrant) -> Self {
        Self { names: BTreeSet::new(), bytes_left: held.files_bytes.unwrap_or(0) }
    }

    /// Takes a place for a file, and returns its name.
    pub(crate) fn take(&mut self, said: &str, bytes: usize) -> Result<String, Failure> {
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
