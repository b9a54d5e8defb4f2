//! Counts the open streams over all endpoints, within a quota per principal.

use a2a_hub_core::{
    access_control::Principal,
    scheduling::connection_quota::{ConnectionQuota, Holder, QuotaReached, Unit},
};
use a2a_hub_protocol::operation::OpenStreams;
use parking_lot::Mutex;
use std::sync::Arc;

/// Quota on the open streams of a hub. Clones share their state.
#[derive(Clone)]
pub struct StreamQuota(Arc<Mutex<ConnectionQuota<()>>>);

impl StreamQuota {
    /// Creates a quota of `max` open streams.
    pub fn new(max: usize) -> Self {
        Self(Arc::new(Mutex::new(ConnectionQuota::new(Unit::Streams, max))))
    }

    /// Takes a permit for one more stream of this principal.
    pub fn open(&self, principal: &Principal) -> Result<StreamPermit, QuotaReached> {
        let holder = Holder::from(Some(principal));
        // A stream is never idle, because waiting is its purpose.
        let admitted = self.0.lock().admit(holder, (), |()| None)?;
        Ok(StreamPermit { key: admitted.key, streams: self.clone() })
    }

    /// Number of open streams, and their limit.
    pub fn count(&self) -> OpenStreams {
        let streams = self.0.lock();
        OpenStreams { open: streams.open(), max: streams.limit() }
    }
}

/// An open stream, counted until this is dropped.
pub struct StreamPermit {
    key: u64,
    streams: StreamQuota,
}

impl Drop for StreamPermit {
    fn drop(&mut self) {
        self.streams.0.lock().release(self.key);
    }
}
