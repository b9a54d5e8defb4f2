//! Counts the open streams over all endpoints, within a quota per principal.

use a2a_hub_core::{
    access_control::Principal,
    scheduling::connection_quota::{ConnectionQuota, Holder, QuotaReached, Unit},
};
use a2a_hub_protocol::operation::OpenStreams;
use parking_lot::Mutex;
use std::sync::Arc;

/// The streams of a hub. Clones are one.
#[derive(Clone)]
pub(crate) struct StreamQuota(Arc<Mutex<ConnectionQuota<()>>>);

impl StreamQuota {
    /// Streams of which so many may be open at once.
    pub(crate) fn new(most: usize) -> Self {
        Self(Arc::new(Mutex::new(ConnectionQuota::new(Unit::Streams, most))))
    }

    /// Opens one more for this principal.
    pub(crate) fn open(&self, principal: &Principal) -> Result<StreamPermit, QuotaReached> {
        let holder = Holder::from(Some(principal));
        // A stream is never idle: it is there to wait.
        let admitted = self.0.lock().admit(holder, (), |()| None)?;
        Ok(StreamPermit { key: admitted.key, streams: self.clone() })
    }

    /// How many are open, and how many there may be.
    pub(crate) fn count(&self) -> OpenStreams {
        let streams = self.0.lock();
        OpenStreams { open: streams.open(), most: streams.most() }
    }
}

/// An open stream, counted until this is dropped.
pub(crate) struct StreamPermit {
    key: u64,
    streams: StreamQuota,
}

impl Drop for StreamPermit {
    fn drop(&mut self) {
        self.streams.0.lock().leave(self.key);
    }
}
