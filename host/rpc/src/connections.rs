//! Tracks the open connections of one endpoint: the holder of each, its idle time, and the signal
//! to close. The limits per holder are in
//! [`connection_quota`](a2a_hub_core::scheduling::connection_quota).

use a2a_hub_core::{
    access_control::Principal,
    scheduling::connection_quota::{
        AdmittedConnection, ConnectionQuota, Holder, QuotaReached, Unit, idle_limit,
    },
    text::duration::Span,
};
use parking_lot::Mutex;
use rustix::io::Errno;
use std::{fmt, io, sync::Arc, time::Duration};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{Instant, sleep, sleep_until},
};
use tokio_util::sync::CancellationToken;

/// Accepted connections that may wait for the lookup of their process. These take descriptors, and
/// do not count in the quota. One lookup answers for all that wait, so an endpoint with more
/// connections accepts more of them at once.
const MIN_ARRIVALS: usize = 8;
const MAX_ARRIVALS: usize = 256;

/// Grace period of a new or just answered connection before it counts as idle: its next request may
/// be on its way.
const SETTLING: Duration = Duration::from_millis(100);

/// Pause after `accept` failed, for example because the system has no free file descriptors.
const NO_DESCRIPTORS: Duration = Duration::from_millis(100);

/// The connections of one endpoint. Clones share their state.
#[derive(Clone)]
pub struct Connections(Arc<ConnectionsInner>);

struct ConnectionsInner {
    quota: Mutex<ConnectionQuota<Arc<Activity>>>,
    /// Timeout for slow clients.
    timeout: Duration,
    arrivals: Arc<Semaphore>,
    /// Set while `accept` fails, after the failure was logged.
    is_accept_failing: Mutex<bool>,
}

/// Activity of one connection, read when the quota looks for an idle one.
struct Activity {
    /// Number of requests in progress, and the time of its last change.
    requests: Mutex<(usize, Instant)>,
    gives_way: CancellationToken,
}

impl Activity {
    fn idle_since(&self) -> Option<Instant> {
        let (requests, since) = *self.requests.lock();
        (requests == 0).then_some(since)
    }
}

/// Reason for which the hub closes an idle connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CloseReason {
    /// Another connection replaced it.
    GaveWay,
    /// The connection reached this idle limit.
    Idle(Duration),
}

impl fmt::Display for CloseReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::GaveWay => f.write_str(
                "the connection was idle, and another one needed its place; connect again for the next request",
            ),
            Self::Idle(limit) => {
                let limit = Span(*limit);
                write!(f, "the connection was idle for {limit}; connect again for the next request")
            }
        }
    }
}

impl Connections {
    /// Creates the state of an endpoint with at most `max` connections, and a timeout for slow
    /// clients.
    pub fn new(max: usize, timeout: Duration) -> Self {
        let quota = Mutex::new(ConnectionQuota::new(Unit::Connections, max));
        let arrivals = (max / 16).clamp(MIN_ARRIVALS, MAX_ARRIVALS);
        let arrivals = Arc::new(Semaphore::new(arrivals));
        Self(Arc::new(ConnectionsInner {
            quota,
            timeout,
            arrivals,
            is_accept_failing: Mutex::new(false),
        }))
    }

    /// Takes a permit for a connection whose holder is not yet known. The permit is taken before
    /// the connection is accepted, and released once the holder is known.
    pub async fn arrival(&self) -> Option<OwnedSemaphorePermit> {
        // The semaphore is never closed.
        Arc::clone(&self.0.arrivals).acquire_owned().await.ok()
    }

    /// Admits a connection of this principal, in place of an idle one if a limit is reached.
    pub fn admit(&self, principal: Option<&Principal>) -> Result<OpenConnection, QuotaReached> {
        let holder = Holder::from(principal);
        let limit = idle_limit(&holder, self.0.timeout);
        let gives_way = CancellationToken::new();
        let activity = Arc::new(Activity { requests: Mutex::new((0, Instant::now())), gives_way });
        let newcomer = || Arc::clone(&activity);
        let admitted = {
            let mut quota = self.0.quota.lock();
            match quota.admit(holder.clone(), newcomer(), since) {
                // The operator's own burst of connections must not lock the operator out until they
                // have settled.
                Err(_) if holder == Holder::Operator => {
                    let idle = |one: &Arc<Activity>| one.idle_since().map(Instant::into_std);
                    quota.admit(holder, newcomer(), idle)
                }
                admitted => admitted,
            }
        };
        let AdmittedConnection { key, evicted } = admitted?;
        if let Some(evicted) = evicted {
            evicted.gives_way.cancel();
        }
        Ok(OpenConnection { key, limit, activity, connections: self.clone() })
    }

    /// Records that a connection was accepted.
    pub fn accepted(&self) {
        *self.0.is_accept_failing.lock() = false;
    }

    /// Handles a failure of `accept`. If the system has no free descriptors, an idle connection is
    /// closed. The next `accept` follows after a pause, because a connection that stays in the
    /// backlog makes `accept` fail again at once.
    pub async fn accept_failed(&self, why: &io::Error) {
        match Errno::from_io_error(why) {
            // The client closed the connection, or a signal interrupted the call.
            Some(Errno::CONNABORTED | Errno::CONNRESET | Errno::INTR) => return,
            Some(Errno::MFILE | Errno::NFILE) => {
                if let Some(evicted) = self.0.quota.lock().evict(since) {
                    evicted.gives_way.cancel();
                }
            }
            Some(_) | None => {}
        }
        if !std::mem::replace(&mut *self.0.is_accept_failing.lock(), true) {
            tracing::warn!(%why, "cannot accept a connection, idle ones are closed meanwhile");
        }
        sleep(NO_DESCRIPTORS).await;
    }
}

/// Time since which a settled connection has been idle.
fn since(activity: &Arc<Activity>) -> Option<std::time::Instant> {
    let settled = activity.idle_since().filter(|since| since.elapsed() >= SETTLING);
    settled.map(Instant::into_std)
}

/// An admitted connection. It counts in the quota until this is dropped.
pub struct OpenConnection {
    key: u64,
    /// Idle limit, if any.
    limit: Option<Duration>,
    activity: Arc<Activity>,
    connections: Connections,
}

impl OpenConnection {
    /// Returns the counter of requests in progress.
    pub fn requests(&self) -> Requests {
        Requests(Arc::clone(&self.activity))
    }

    /// True if no request is in progress.
    pub fn is_idle(&self) -> bool {
        self.activity.idle_since().is_some()
    }

    /// Waits until the connection is to be closed, and returns the reason.
    pub async fn is_to_close(&self) -> CloseReason {
        tokio::select! {
            () = self.activity.gives_way.cancelled() => CloseReason::GaveWay,
            limit = self.idle_for_long() => CloseReason::Idle(limit),
        }
    }

    async fn idle_for_long(&self) -> Duration {
        let Some(limit) = self.limit else { return std::future::pending().await };
        loop {
            let now = Instant::now();
            let since = self.activity.idle_since();
            if since.is_some_and(|since| now.saturating_duration_since(since) >= limit) {
                return limit;
            }
            // A busy connection can reach the limit only one full limit from now.
            let next = since.unwrap_or(now).checked_add(limit);
            match next {
                Some(next) => sleep_until(next).await,
                None => std::future::pending().await,
            }
        }
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.connections.0.quota.lock().release(self.key);
    }
}

/// Counts the requests of one connection that are in progress. Clones share their state.
#[derive(Clone)]
pub struct Requests(Arc<Activity>);

impl Requests {
    /// Counts a request as in progress until the result is dropped.
    pub fn begin(&self) -> Busy {
        let mut requests = self.0.requests.lock();
        *requests = (requests.0 + 1, Instant::now());
        Busy(Arc::clone(&self.0))
    }
}

/// A request in progress.
pub struct Busy(Arc<Activity>);

impl Drop for Busy {
    fn drop(&mut self) {
        let mut requests = self.0.requests.lock();
        *requests = (requests.0 - 1, Instant::now());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use a2a_hub_protocol::id::AgentId;
    use futures::poll;
    use std::pin::pin;

    const PATIENCE: Duration = Duration::from_secs(30);

    fn agent(name: &str) -> Principal {
        Principal::of_tree(AgentId::parse(name).unwrap(), "1.1")
    }

    #[tokio::test(start_paused = true)]
    async fn idle_connection_of_an_agent_is_closed_after_a_while() {
        let connections = Connections::new(100, PATIENCE);
        let open = connections.admit(Some(&agent("a"))).unwrap();
        let begun = Instant::now();
        let busy = open.requests().begin();
        let mut closing = pin!(open.is_to_close());
        assert!(poll!(closing.as_mut()).is_pending());
        tokio::time::advance(PATIENCE * 20).await;
        assert!(poll!(closing.as_mut()).is_pending(), "a request is under way");
        drop(busy);
        assert_eq!(closing.await, CloseReason::Idle(PATIENCE * 10));
        assert!(begun.elapsed() >= PATIENCE * 30);

        let open = connections.admit(Some(&Principal::Operator)).unwrap();
        let year = tokio::time::timeout(Duration::from_secs(31_536_000), open.is_to_close());
        assert!(year.await.is_err(), "the operator's stays");
    }

    #[tokio::test(start_paused = true)]
    async fn idle_connection_gives_way_and_busy_one_does_not() {
        let connections = Connections::new(4, PATIENCE);
        let first = connections.admit(None).unwrap();
        let busy = first.requests().begin();
        assert!(connections.admit(None).is_err(), "one of three is all that strangers have");
        drop(busy);
        assert!(connections.admit(None).is_err(), "its next request may be on its way");
        tokio::time::advance(SETTLING).await;
        let second = connections.admit(None).unwrap();
        assert_eq!(first.is_to_close().await, CloseReason::GaveWay);
        drop(first);
        assert_eq!(connections.0.quota.lock().open(), 1, "it was counted once");
        drop(second);
        assert_eq!(connections.0.quota.lock().open(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn operator_replaces_its_newest_idle_connection() {
        let connections = Connections::new(1, PATIENCE);
        let first = connections.admit(Some(&Principal::Operator)).unwrap();
        let second = connections.admit(Some(&Principal::Operator)).unwrap();
        assert_eq!(first.is_to_close().await, CloseReason::GaveWay);
        let _busy = second.requests().begin();
        assert!(connections.admit(Some(&Principal::Operator)).is_err(), "none is idle");
    }

    #[tokio::test(start_paused = true)]
    async fn missing_descriptors_close_an_idle_connection_and_do_not_spin() {
        let connections = Connections::new(4, PATIENCE);
        let open = connections.admit(None).unwrap();
        tokio::time::advance(SETTLING).await;
        let begun = Instant::now();
        connections.accept_failed(&Errno::MFILE.into()).await;
        assert_eq!(
            (open.is_to_close().await, begun.elapsed()),
            (CloseReason::GaveWay, NO_DESCRIPTORS)
        );
        connections.accept_failed(&Errno::CONNABORTED.into()).await;
        assert_eq!(begun.elapsed(), NO_DESCRIPTORS, "one that hung up delays nobody");
    }
}
