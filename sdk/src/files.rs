//! Files for the agent's programs, in a directory of this run alone.

use crate::host::Host;
use crate::{Context, Failure};

impl Context {
    /// Writes a file that the agent's programs can read until the run is over, and returns its path.
    pub fn put_file(&self, name: &str, bytes: &[u8]) -> Result<String, Failure> {
        self.hub.put_file(name, bytes)
    }
}
