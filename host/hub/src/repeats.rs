//! Which requests were made lately, and which tasks they began: a request that is made again is answered by that task.

use a2a_hub_clock as clock;
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

/// How many requests are remembered: some 11 megabytes. A hub that takes more within the window forgets the oldest.
const MOST: usize = 100_000;

/// The requests of the last minutes. Cheap to clone.
#[derive(Clone, Default)]
pub struct Repeats(Arc<Inner>);

#[derive(Default)]
struct Inner {
    window: Duration,
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    /// The requests that are being carried out, or wait for that.
    claimed: HashMap<Key, Turn>,
    /// The requests that have begun a task.
    begun: HashMap<Key, Begun>,
    /// The same, the oldest first.
    order: VecDeque<(Instant, Key)>,
}

/// A fingerprint as it is kept: the first half of its bytes, for there are many, and 2^64 requests would have to be made before two
/// had the same by chance.
type Key = [u8; KEY_LEN];

const KEY_LEN: usize = SHA256_OUTPUT_LEN / 2;

/// Whose turn it is to carry a request out, and which task came of it.
type Turn = Arc<AsyncMutex<Option<TaskId>>>;

/// The task that a request has begun. Small: of each request that was made lately there is one.
enum Begun {
    /// A task that the hub has named.
    Id(Uuid),
    /// A task that the program which holds the hub has named.
    Named(Box<TaskId>),
}

impl Begun {
    fn of(task: TaskId) -> Self {
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

impl Known {
    /// Forgets the requests that began their tasks before the window, and the oldest where there is no room.
    fn forget(&mut self, window: Duration) {
        let now = Instant::now();
        let old = |at: Instant| now.saturating_duration_since(at) >= window;
        while self.order.front().is_some_and(|(at, _)| old(*at)) || self.order.len() > MOST {
            let Some((_, oldest)) = self.order.pop_front() else { break };
            self.begun.remove(&oldest);
        }
    }

    /// A request began this task so long ago. Its window begins with that, whenever it was made first: a client that tries again and
    /// again has heard of no task before.
    fn began(&mut self, key: Key, task: TaskId, age: Duration) {
        if self.begun.insert(key, Begun::of(task)).is_some() {
            // Rare: the task that it began before was forgotten, or rejected at once.
            self.order.retain(|(_, known)| *known != key);
        }
        let now = Instant::now();
        // A machine that has just started has no time before.
        self.order.push_back((now.checked_sub(age).unwrap_or(now), key));
    }
}

/// What a request is known by: no two have the same.
pub type Fingerprint = String;

/// A request that is being carried out: the same one waits until that is done, also where a client is cut off meanwhile.
pub struct Claim {
    /// The fingerprint of the request that is being carried out.
    pub fingerprint: Fingerprint,
    /// The turn. It stands before the place, so that it is given up first.
    task: OwnedMutexGuard<Option<TaskId>>,
    place: Place,
}

impl Claim {
    /// The task that the request began before.
    pub fn task(&self) -> Option<&TaskId> {
        self.task.as_ref()
    }

    /// The request has begun this task.
    pub fn begun(mut self, task: TaskId) {
        let Place { key, repeats } = &self.place;
        repeats.0.known.lock().began(*key, task.clone(), Duration::ZERO);
        // For who waits for the turn already.
        *self.task = Some(task);
    }
}

/// The place of somebody who carries a request out, or waits for that. With the last place, nothing is left of a request that came to
/// nothing.
struct Place {
    key: Key,
    repeats: Repeats,
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut known = self.repeats.0.known.lock();
        // Whoever has a place holds the turn as well, until just before this.
        if known.claimed.get(&self.key).is_some_and(|turn| Arc::strong_count(turn) == 1) {
            known.claimed.remove(&self.key);
        }
    }
}

impl Repeats {
    /// Requests count as the same within this window; never, if there is none.
    pub fn within(window: Duration) -> Self {
        Self(Arc::new(Inner { window, known: Mutex::default() }))
    }

    /// Whether requests are remembered at all.
    pub(crate) fn are_remembered(&self) -> bool {
        !self.0.window.is_zero()
    }

    /// Since when requests are remembered; none if they are not.
    pub fn since(&self) -> Option<String> {
        (!self.0.window.is_zero()).then(|| clock::before(self.0.window))
    }

    /// Takes up a request, of which this is all that tells it from others; none if requests are not remembered.
    pub async fn claim(&self, request: &str) -> Option<Claim> {
        if self.0.window.is_zero() {
            return None;
        }
        let digest = digest(&SHA256, request.as_bytes());
        let (fingerprint, key) = (hex::encode(digest), key(digest.as_ref()));
        // Before the turn, so that whoever is cut off gives the turn up first.
        let place = Place { key, repeats: self.clone() };
        let task = self.turn(key).lock_owned().await;
        Some(Claim { fingerprint, task, place })
    }

    /// Whose turn a request is, after those are forgotten that began their tasks before the window.
    fn turn(&self, key: Key) -> Turn {
        let mut known = self.0.known.lock();
        known.forget(self.0.window);
        let Known { claimed, begun, .. } = &mut *known;
        let turn = claimed
            .entry(key)
            .or_insert_with(|| Turn::new(AsyncMutex::new(begun.get(&key).map(Begun::task))));
        Arc::clone(turn)
    }

    /// A hub before this one began a task for a request that long ago.
    pub fn remember(&self, fingerprint: &Fingerprint, task: TaskId, age: Duration) {
        let mut bytes = [0; SHA256_OUTPUT_LEN];
        if hex::decode_to_slice(fingerprint, &mut bytes).is_err() {
            // This hub did not make it: it is known by another digest.
            bytes.copy_from_slice(digest(&SHA256, fingerprint.as_bytes()).as_ref());
        }
        let mut known = self.0.known.lock();
        known.forget(self.0.window);
        known.began(key(&bytes), task, age);
    }
}

/// A digest as it is kept.
fn key(digest: &[u8]) -> Key {
    let mut key = Key::default();
    key.copy_from_slice(&digest[..KEY_LEN]);
    key
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::time::{sleep, timeout};

    const WINDOW: Duration = Duration::from_secs(600);

    async fn found(repeats: &Repeats, request: &str) -> Option<String> {
        repeats.claim(request).await.and_then(|claim| Some(claim.task()?.to_string()))
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_is_known_again_within_the_window_and_not_beyond() {
        let repeats = Repeats::within(WINDOW);
        repeats.claim("a").await.unwrap().begun(TaskId::new("t"));
        assert_eq!(found(&repeats, "b").await, None);
        sleep(WINDOW - Duration::from_secs(1)).await;
        assert_eq!(found(&repeats, "a").await.as_deref(), Some("t"));
        sleep(Duration::from_secs(1)).await;
        assert_eq!(found(&repeats, "a").await, None, "its window was not begun anew");
        assert!(Repeats::default().claim("a").await.is_none(), "without a window, none is known");
    }

    #[tokio::test(start_paused = true)]
    async fn the_same_request_waits_for_the_one_that_is_being_carried_out() {
        let repeats = Repeats::within(WINDOW);
        let first = repeats.claim("a").await.unwrap();
        assert!(timeout(WINDOW / 2, repeats.claim("a")).await.is_err());
        assert!(timeout(Duration::ZERO, repeats.claim("b")).await.is_ok(), "another need not");
        drop(first);
        let second = repeats.claim("a").await.unwrap();
        assert_eq!(second.task(), None, "the first one came to nothing");
        let task = TaskId::fresh();
        let third = found(&repeats, "a");
        let (third, ()) = tokio::join!(third, async { second.begun(task.clone()) });
        assert_eq!(third.as_deref(), Some(task.as_str()), "it waited for that");
        assert_eq!(found(&repeats, "a").await.as_deref(), Some(task.as_str()));
    }

    #[tokio::test(start_paused = true)]
    async fn a_window_begins_with_the_task_and_not_with_what_came_to_nothing_before() {
        let repeats = Repeats::within(WINDOW);
        drop(repeats.claim("a").await.unwrap());
        assert!(repeats.0.known.lock().claimed.is_empty(), "nothing is left of it");
        sleep(WINDOW / 2).await;
        let refused = repeats.claim("a").await.unwrap();
        let waiting = async {
            let claim = repeats.claim("a").await.unwrap();
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
    async fn what_takes_longer_than_the_window_is_carried_out_once() {
        let repeats = Repeats::within(WINDOW);
        let first = repeats.claim("a").await.unwrap();
        sleep(WINDOW * 2).await;
        assert!(timeout(WINDOW, repeats.claim("a")).await.is_err(), "it is under way");
        first.begun(TaskId::new("t"));
        assert_eq!(found(&repeats, "a").await.as_deref(), Some("t"));
        assert!(repeats.0.known.lock().claimed.is_empty());
    }

    /// It is gone, so that the request is carried out once more: by one of those who ask.
    #[tokio::test(start_paused = true)]
    async fn a_task_that_was_forgotten_is_begun_anew_once() {
        let repeats = Repeats::within(WINDOW);
        repeats.claim("a").await.unwrap().begun(TaskId::fresh());
        let first = repeats.claim("a").await.unwrap();
        assert!(first.task().is_some());
        assert!(timeout(WINDOW / 2, repeats.claim("a")).await.is_err());
        let anew = TaskId::fresh();
        first.begun(anew.clone());
        assert_eq!(found(&repeats, "a").await.as_deref(), Some(anew.as_str()));
    }

    #[test]
    fn what_is_kept_of_a_request_is_small_and_its_task_reads_as_before() {
        assert!(size_of::<(Key, Begun)>() <= 40, "{}", size_of::<(Key, Begun)>());
        for id in [TaskId::fresh().as_str(), "t", "0193B1E2-6B0A-7B0A-8B0A-0193B1E26B0A"] {
            assert_eq!(Begun::of(TaskId::new(id)).task().as_str(), id);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_a_hub_before_took_in_is_known_for_the_rest_of_its_window() {
        let repeats = Repeats::within(WINDOW);
        sleep(WINDOW).await;
        let fingerprint = hex::encode(digest(&SHA256, b"a"));
        repeats.remember(&fingerprint, TaskId::new("t"), WINDOW / 2);
        assert_eq!(found(&repeats, "a").await.as_deref(), Some("t"));
        sleep(WINDOW / 2).await;
        assert_eq!(found(&repeats, "a").await, None);
    }

    #[tokio::test(start_paused = true)]
    async fn no_more_are_remembered_than_there_is_room_for() {
        let repeats = Repeats::within(WINDOW);
        for n in 0..MOST + 10 {
            repeats.claim(&n.to_string()).await.unwrap().begun(TaskId::new("t"));
        }
        let known = repeats.0.known.lock();
        assert!(known.begun.len() <= MOST + 1 && known.order.len() == known.begun.len());
        assert!(known.claimed.is_empty());
    }
}
