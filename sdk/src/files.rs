//! Files for programs, in a directory of this run alone.

use crate::host::Host;
use crate::{Context, Failure};

impl Context {
    /// Writes a file that goes when this run ends, and returns its absolute path.
    ///
    /// Only the last component of `name` counts, without what could mislead; the hub gives it a number if it is taken.
    /// [`Failure::Exhausted`] once the manifest's `[files]` are used up.
    pub fn put_file(&self, name: &str, bytes: &[u8]) -> Result<String, Failure> {
        self.hub.put_file(name, bytes)
    }
}
