//! Memory: small values that outlive the run, stored as JSON.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::host::Host;
use crate::{Context, Failure};

impl Context {
    /// Stores a value under a key of 1 to 256 bytes. The value survives reloads and restarts.
    pub fn remember(&self, key: &str, value: &(impl Serialize + ?Sized)) -> Result<(), Failure> {
        let json = serde_json::to_vec(value)
            .map_err(|e| Failure::Invalid(format!("cannot keep `{key}` as JSON: {e}")))?;
        self.hub.set(key, &json)
    }

    /// Reads the value of a key. A value of another type, such as one of an older version of the
    /// agent, counts as `None`.
    pub fn recall<T: DeserializeOwned>(&self, key: &str) -> Result<Option<T>, Failure> {
        Ok(self.hub.get(key)?.and_then(|json| serde_json::from_slice(&json).ok()))
    }

    /// Deletes the value of a key.
    pub fn forget(&self, key: &str) -> Result<(), Failure> {
        self.hub.delete(key)
    }

    /// Keys that begin with a prefix, sorted.
    pub fn remembered(&self, prefix: &str) -> Result<Vec<String>, Failure> {
        self.hub.keys(prefix)
    }
}
