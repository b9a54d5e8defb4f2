//! Files for programs, in a directory of this run.

use crate::host::Host;
use crate::{Context, Failure};

impl Context {
    /// Writes a file that is deleted when this run ends, and returns its absolute path.
    ///
    /// Only the last component of `name` is used, without characters that could mislead. The hub
    /// adds a number if the name is taken. Once the manifest's `[files]` limits are used up, the
    /// result is [`Failure::Exhausted`].
    pub fn put_file(&self, name: &str, bytes: &[u8]) -> Result<String, Failure> {
        self.hub.put_file(name, bytes)
    }
}
