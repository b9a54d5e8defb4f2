//! Idempotency: remembers recent requests and their tasks, so that a repeated request gets the task
//! of the first.

use a2a_hub_clock as clock;
use a2a_hub_core::scheduling::{resources::SharedResource, shares::Holder};
use a2a_hub_protocol::id::TaskId;
use parking_lot::Mutex;
use ring::digest::{SHA256, SHA256_OUTPUT_LEN, digest};
use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
    time::Duration,
};
use tokio::{
    sync::{Mutex as AsyncMutex, OwnedMutexGuard},
    time::Instant,
};
use uuid::Uuid;

/// Resource whose shares limit the remembered requests: a flood of one holder does not make the hub
/// carry out a repeated request of another one again.
const REQUESTS: SharedResource = SharedResource::Requests;

/// Requests within the idempotency window. Cheap to clone.
#[derive(Clone, Default)]
pub struct Repeats(Arc<RecentRequests>);

#[derive(Default)]
struct RecentRequests {
    window: Duration,
    known: Mutex<RequestTable>,
}

#[derive(Default)]
struct RequestTable {
    /// Requests in progress, or waiting for one that is.
    claimed: HashMap<Key, RequestLock>,
    /// Requests that have begun a task.
    begun: HashMap<Key, BegunTask>,
    /// Keys of `begun` by the holder of the request, oldest first.
    order: HashMap<Holder, VecDeque<(Instant, Key)>>,
    /// True if tasks of an earlier run are among `begun`: their keys may be an older hub's.
    restored: bool,
}

/// Stored fingerprint: the first half of its bytes, to save memory. A chance collision takes some
/// 2^64 requests.
type Key = [u8; KEY_LEN];

const KEY_LEN: usize = SHA256_OUTPUT_LEN / 2;

/// Lock of a request in progress, with the task that it has begun.
type RequestLock = Arc<AsyncMutex<Option<TaskId>>>;

/// Task that a request has begun. Small, since one exists for each recent request.
enum BegunTask {
    /// Id that the hub generated.
    Id(Uuid),
    /// Id that the embedding program chose.
    Named(Box<TaskId>),
}

impl BegunTask {
    fn from_task_id(task: TaskId) -> Self {
        match Uuid::try_parse(task.as_str()) {
            Ok(id) if id.to_string() == task.as_str() => Self::Id(id),
            Ok(_) | Err(_) => Self::Named(Box::new(task)),
        }
    }

    fn task(&self) -> TaskId {
        match self {
            Self::Id(task) => TaskId::new(task.to_string()),
            Self::Named(task) => TaskId::clone(task),
        }
    }
}

impl RequestTable {
    /// Drops requests whose tasks began before the window, and old ones beyond the limit.
    fn forget(&mut self, window: Duration) {
        let now = Instant::now();
        let old = |at: Instant| now.saturating_duration_since(at) >= window;
        for requests in self.order.values_mut() {
            while let Some((_, oldest)) = requests.pop_front_if(|(at, _)| old(*at)) {
                self.begun.remove(&oldest);
            }
        }
        while self.begun.len() as u64 > REQUESTS.default_total() && self.evict_oldest() {}
        self.order.retain(|_, requests| !requests.is_empty());
    }

    /// Drops the oldest request of the holder with more than a share, or else the oldest of all.
    /// Returns false if none is left.
    fn evict_oldest(&mut self) -> bool {
        let shares = REQUESTS.shares(REQUESTS.default_total());
        let counts = self.order.iter().map(|(holder, its)| (holder.clone(), its.len() as u64));
        let oldest = || {
            let first = |its: &VecDeque<(Instant, Key)>| its.front().map(|(at, _)| *at);
            let ages = self.order.iter().filter_map(|(holder, its)| Some((first(its)?, holder)));
            ages.min().map(|(_, holder)| holder.clone())
        };
        let Some(holder) = shares.beyond(counts).or_else(oldest) else { return false };
        let dropped = self.order.get_mut(&holder).and_then(VecDeque::pop_front);
        dropped.is_some_and(|(_, key)| self.begun.remove(&key).is_some())
    }

    /// Records that a request began this task that long ago. The window starts with the task, not
    /// with the first try: a client that retries has seen no task before.
    fn began(&mut self, holder: Holder, key: Key, task: TaskId, age: Duration) {
        if self.begun.insert(key, BegunTask::from_task_id(task)).is_some() {
            // Rare: the earlier task was deleted, or rejected at once.
            let all = self.order.values_mut();
            all.for_each(|its| its.retain(|(_, known)| *known != key));
        }
        let now = Instant::now();
        // Shortly after boot, the clock cannot go back that far.
        let at = now.checked_sub(age).unwrap_or(now);
        self.order.entry(holder).or_default().push_back((at, key));
    }
}

/// Unique id of a request.
pub type Fingerprint = String;

/// Claim on a request in progress: an identical request waits until the claim is dropped, also if
/// the client disconnects.
pub struct Claim {
    /// Fingerprint of the request.
    pub fingerprint: Fingerprint,
    /// The lock. Declared before `request_ref`, so that it is dropped first.
    task: OwnedMutexGuard<Option<TaskId>>,
    request_ref: RequestRef,
    holder: Holder,
}

impl Claim {
    /// Task that the request began before.
    pub fn task(&self) -> Option<&TaskId> {
        self.task.as_ref()
    }

    /// Records the task that the request has begun.
    pub fn begun(mut self, task: TaskId) {
        let RequestRef { key, repeats } = &self.request_ref;
        let holder = self.holder.clone();
        repeats.0.known.lock().began(holder, *key, task.clone(), Duration::ZERO);
        // For identical requests that already wait for the lock.
        *self.task = Some(task);
    }
}

/// Reference to a request in progress or waiting. Dropping the last one removes a request that
/// began no task.
struct RequestRef {
    key: Key,
    repeats: Repeats,
}

impl Drop for RequestRef {
    fn drop(&mut self) {
        let mut known = self.repeats.0.known.lock();
        // Each reference holds the lock's `Arc` as well, until just before this.
        if known.claimed.get(&self.key).is_some_and(|turn| Arc::strong_count(turn) == 1) {
            known.claimed.remove(&self.key);
        }
    }
}

impl Repeats {
    /// Creates a memory with this window; a window of zero disables it.
    pub fn within(window: Duration) -> Self {
        Self(Arc::new(RecentRequests { window, known: Mutex::default() }))
    }

    /// True if requests are remembered.
    pub fn are_remembered(&self) -> bool {
        !self.0.window.is_zero()
    }

    /// Start of the window (RFC 3339); none if requests are not remembered.
    pub fn since(&self) -> Option<String> {
        (!self.0.window.is_zero()).then(|| clock::before(self.0.window))
    }

    /// Claims a request, given as text that distinguishes it from others; none if requests are not
    /// remembered. `older` is the request's text by the rule of older hubs, and `holder` has the
    /// request in its share.
    pub async fn claim(&self, holder: Holder, request: &str, older: &str) -> Option<Claim> {
        if self.0.window.is_zero() {
            return None;
        }
        let digested = digest(&SHA256, request.as_bytes());
        let (fingerprint, key) = (hex::encode(digested), key(digested.as_ref()));
        // Created before the lock is taken, so that on cancellation the lock is released first.
        let request_ref = RequestRef { key, repeats: self.clone() };
        let mut task = self.turn(key).lock_owned().await;
        if task.is_none() {
            *task = self.begun_by_older_hub(older);
        }
        Some(Claim { fingerprint, task, request_ref, holder })
    }

    /// Task that a hub of an older version began for the request. Its texts had less of a request,
    /// so such a task counts for all requests that this hub distinguishes.
    fn begun_by_older_hub(&self, text: &str) -> Option<TaskId> {
        if !self.0.known.lock().restored {
            return None;
        }
        let older = key(digest(&SHA256, text.as_bytes()).as_ref());
        self.0.known.lock().begun.get(&older).map(BegunTask::task)
    }

    /// Lock of a request; expired requests are dropped first.
    fn turn(&self, key: Key) -> RequestLock {
        let mut known = self.0.known.lock();
        known.forget(self.0.window);
        let RequestTable { claimed, begun, .. } = &mut *known;
        let turn = claimed.entry(key).or_insert_with(|| {
            RequestLock::new(AsyncMutex::new(begun.get(&key).map(BegunTask::task)))
        });
        Arc::clone(turn)
    }

    /// Records a task that the previous process began for a request of this holder that long ago.
    pub fn remember(&self, holder: Holder, fingerprint: &Fingerprint, task: TaskId, age: Duration) {
        let mut bytes = [0; SHA256_OUTPUT_LEN];
        if hex::decode_to_slice(fingerprint, &mut bytes).is_err() {
            // Not a digest of this hub's; it is hashed.
            bytes.copy_from_slice(digest(&SHA256, fingerprint.as_bytes()).as_ref());
        }
        let mut known = self.0.known.lock();
        known.forget(self.0.window);
        known.restored = true;
        known.began(holder, key(&bytes), task, age);
    }
}

/// Stored form of a digest.
fn key(digest: &[u8]) -> Key {
    let mut key = Key::default();
    key.copy_from_slice(&digest[..KEY_LEN]);
    key
}

#[cfg(test)]
mod tests {
    use super::*;
    use a2a_hub_protocol::id::AgentId;
    use tokio::time::{sleep, timeout};

    const WINDOW: Duration = Duration::from_secs(600);

    async fn found(repeats: &Repeats, request: &str) -> Option<String> {
        repeats
            .claim(Holder::Operator, request, "")
            .await
            .and_then(|claim| Some(claim.task()?.to_string()))
    }

    #[tokio::test(start_paused = true)]
    async fn request_is_remembered_only_within_window() {
        let repeats = Repeats::within(WINDOW);
        repeats.claim(Holder::Operator, "a", "").await.unwrap().begun(TaskId::new("t"));
        assert_eq!(found(&repeats, "b").await, None);
        sleep(WINDOW - Duration::from_secs(1)).await;
        assert_eq!(found(&repeats, "a").await.as_deref(), Some("t"));
        sleep(Duration::from_secs(1)).await;
        assert_eq!(found(&repeats, "a").await, None, "its window was not begun anew");
        assert!(
            Repeats::default().claim(Holder::Operator, "a", "").await.is_none(),
            "without a window, none is known"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn identical_request_waits_for_first() {
        let repeats = Repeats::within(WINDOW);
        let first = repeats.claim(Holder::Operator, "a", "").await.unwrap();
        assert!(timeout(WINDOW / 2, repeats.claim(Holder::Operator, "a", "")).await.is_err());
        assert!(
            timeout(Duration::ZERO, repeats.claim(Holder::Operator, "b", "")).await.is_ok(),
            "another need not"
        );
        drop(first);
        let second = repeats.claim(Holder::Operator, "a", "").await.unwrap();
        assert_eq!(second.task(), None, "the first one came to nothing");
        let task = TaskId::fresh();
        let third = found(&repeats, "a");
        let (third, ()) = tokio::join!(third, async { second.begun(task.clone()) });
        assert_eq!(third.as_deref(), Some(task.as_str()), "it waited for that");
        assert_eq!(found(&repeats, "a").await.as_deref(), Some(task.as_str()));
    }

    #[tokio::test(start_paused = true)]
    async fn window_starts_when_task_begins() {
        let repeats = Repeats::within(WINDOW);
        drop(repeats.claim(Holder::Operator, "a", "").await.unwrap());
        assert!(repeats.0.known.lock().claimed.is_empty(), "nothing is left of it");
        sleep(WINDOW / 2).await;
        let refused = repeats.claim(Holder::Operator, "a", "").await.unwrap();
        let waiting = async {
            let claim = repeats.claim(Holder::Operator, "a", "").await.unwrap();
            assert_eq!(claim.task(), None);
            sleep(WINDOW / 4).await;
            claim.begun(TaskId::new("t"));
        };
        tokio::join!(waiting, async { drop(refused) });
        sleep(WINDOW - Duration::from_secs(1)).await;
        assert_eq!(found(&repeats, "a").await.as_deref(), Some("t"));
        sleep(Duration::from_secs(1)).await;
        assert_eq!(found(&repeats, "a").await, None, "its window was not begun anew");
        let known = repeats.0.known.lock();
        assert!(known.claimed.is_empty() && known.begun.is_empty() && known.order.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn request_longer_than_window_runs_once() {
        let repeats = Repeats::within(WINDOW);
        let first = repeats.claim(Holder::Operator, "a", "").await.unwrap();
        sleep(WINDOW * 2).await;
        assert!(
            timeout(WINDOW, repeats.claim(Holder::Operator, "a", "")).await.is_err(),
            "it is under way"
        );
        first.begun(TaskId::new("t"));
        assert_eq!(found(&repeats, "a").await.as_deref(), Some("t"));
        assert!(repeats.0.known.lock().claimed.is_empty());
    }

    /// The earlier task is gone, so the request is carried out again, by only one of its callers.
    #[tokio::test(start_paused = true)]
    async fn deleted_task_is_begun_again_once() {
        let repeats = Repeats::within(WINDOW);
        repeats.claim(Holder::Operator, "a", "").await.unwrap().begun(TaskId::fresh());
        let first = repeats.claim(Holder::Operator, "a", "").await.unwrap();
        assert!(first.task().is_some());
        assert!(timeout(WINDOW / 2, repeats.claim(Holder::Operator, "a", "")).await.is_err());
        let anew = TaskId::fresh();
        first.begun(anew.clone());
        assert_eq!(found(&repeats, "a").await.as_deref(), Some(anew.as_str()));
    }

    #[test]
    fn remembered_request_is_small_and_lossless() {
        assert!(size_of::<(Key, BegunTask)>() <= 40, "{}", size_of::<(Key, BegunTask)>());
        for id in [TaskId::fresh().as_str(), "t", "0193B1E2-6B0A-7B0A-8B0A-0193B1E26B0A"] {
            assert_eq!(BegunTask::from_task_id(TaskId::new(id)).task().as_str(), id);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn restored_request_expires_with_its_window() {
        let repeats = Repeats::within(WINDOW);
        sleep(WINDOW).await;
        let fingerprint = hex::encode(digest(&SHA256, b"a"));
        repeats.remember(Holder::Operator, &fingerprint, TaskId::new("t"), WINDOW / 2);
        assert_eq!(found(&repeats, "a").await.as_deref(), Some("t"));
        sleep(WINDOW / 2).await;
        assert_eq!(found(&repeats, "a").await, None);
    }

    #[tokio::test(start_paused = true)]
    async fn restored_task_is_found_by_older_text() {
        let repeats = Repeats::within(WINDOW);
        let found = async |request, older| {
            repeats
                .claim(Holder::Operator, request, older)
                .await
                .unwrap()
                .task()
                .map(ToString::to_string)
        };
        repeats.claim(Holder::Operator, "new", "old").await.unwrap().begun(TaskId::new("t"));
        assert_eq!(found("another", "old").await, None, "of this run");
        let older = hex::encode(digest(&SHA256, b"older"));
        repeats.remember(Holder::Operator, &older, TaskId::new("u"), Duration::ZERO);
        assert_eq!(found("other", "older").await.as_deref(), Some("u"));
        assert_eq!(found("another", "old").await, None);
    }

    #[tokio::test(start_paused = true)]
    async fn flood_forgets_requests_of_its_sender() {
        let repeats = Repeats::within(WINDOW);
        let agent = |name: &str| Holder::Agent(AgentId::parse(name).unwrap());
        let send = async |holder: Holder, request: &str| {
            repeats.claim(holder, request, "").await.unwrap().begun(TaskId::new("t"));
        };
        send(Holder::Operator, "operator").await;
        send(agent("other"), "other").await;
        send(Holder::Client("acme".to_owned()), "client").await;
        let most = usize::try_from(REQUESTS.default_total()).unwrap();
        for n in 0..most + 10 {
            send(agent("greedy"), &n.to_string()).await;
        }
        for kept in ["operator", "other", "client"] {
            assert!(found(&repeats, kept).await.is_some(), "{kept}");
        }
        assert_eq!(found(&repeats, "0").await, None, "the oldest of the greedy one");
        let known = repeats.0.known.lock();
        let ordered: usize = known.order.values().map(VecDeque::len).sum();
        assert_eq!((known.begun.len(), ordered), (most, most));
        assert!(known.claimed.is_empty());
    }
}
