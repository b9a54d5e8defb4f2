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
    made: HashMap<Key, Made>,
    /// The same, the oldest first.
    order: VecDeque<(Instant, Key)>,
}

/// A fingerprint as it is kept: the first half of its bytes, for there are many, and 2^64 requests would have to be made before two
/// had the same by chance.
type Key = [u8; KEY_LEN];

const KEY_LEN: usize = SHA256_OUTPUT_LEN / 2;

/// How far a request has come. Small: of each that was made lately there is one.
enum Made {
    /// It is being carried out, was asked for again, or came to nothing.
    Claimed(Turn),
    /// It has begun this task.
    Begun(Uuid),
    /// The same, of a task that the program which holds the hub has named.
    BegunNamed(Box<TaskId>),
}

/// Whose turn it is to carry a request out, and which task came of it.
type Turn = Arc<AsyncMutex<Option<TaskId>>>;

impl Made {
    fn begun(task: TaskId) -> Self {
        match Uuid::try_parse(task.as_str()) {
            Ok(id) if id.to_string() == task.as_str() => Self::Begun(id),
            Ok(_) | Err(_) => Self::BegunNamed(Box::new(task)),
        }
    }

    /// Whose turn it is, from now on.
    fn turn(&mut self) -> Turn {
        let task = match self {
            Self::Claimed(turn) => return Arc::clone(turn),
            Self::Begun(task) => TaskId::new(task.to_string()),
            Self::BegunNamed(task) => TaskId::clone(task),
        };
        let turn = Turn::new(AsyncMutex::new(Some(task)));
        *self = Self::Claimed(Arc::clone(&turn));
        turn
    }
}

/// What a request is known by: no two have the same.
pub type Fingerprint = String;

/// A request that is being carried out: the same one waits until that is done, also where a client is cut off meanwhile.
pub struct Claim {
    /// The fingerprint of the request that is being carried out.
    pub fingerprint: Fingerprint,
    key: Key,
    task: OwnedMutexGuard<Option<TaskId>>,
    repeats: Repeats,
}

impl Claim {
    /// The task that the request began before.
    pub fn task(&self) -> Option<&TaskId> {
        self.task.as_ref()
    }

    /// The request has begun this task.
    pub fn begun(mut self, task: TaskId) {
        let mut known = self.repeats.0.known.lock();
        if let Some(made) = known.made.get_mut(&self.key) {
            *made = Made::begun(task.clone());
        }
        // For who waits for the turn already.
        *self.task = Some(task);
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
        let turn = self.made(key, Duration::ZERO, Made::turn);
        Some(Claim { task: turn.lock_owned().await, fingerprint, key, repeats: self.clone() })
    }

    /// A hub before this one began a task for a request that long ago.
    pub fn remember(&self, fingerprint: &Fingerprint, task: TaskId, age: Duration) {
        let mut bytes = [0; SHA256_OUTPUT_LEN];
        if hex::decode_to_slice(fingerprint, &mut bytes).is_err() {
            // This hub did not make it: it is known by another digest.
            bytes.copy_from_slice(digest(&SHA256, fingerprint.as_bytes()).as_ref());
        }
        self.made(key(&bytes), age, |made| *made = Made::begun(task));
    }

    /// What there is of a request that was made so long ago, after those are forgotten that were made before the window.
    fn made<T>(&self, key: Key, age: Duration, then: impl FnOnce(&mut Made) -> T) -> T {
        let mut known = self.0.known.lock();
        let Known { made, order } = &mut *known;
        let now = Instant::now();
        let old = |at: Instant| now.saturating_duration_since(at) >= self.0.window;
        while order.front().is_some_and(|(at, _)| old(*at)) || order.len() > MOST {
            let Some((_, oldest)) = order.pop_front() else { break };
            made.remove(&oldest);
        }
        then(made.entry(key).or_insert_with(|| {
            // A machine that has just started has no time before.
            order.push_back((now.checked_sub(age).unwrap_or(now), key));
            Made::Claimed(Turn::default())
        }))
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
        assert!(size_of::<(Key, Made)>() <= 40, "{}", size_of::<(Key, Made)>());
        for id in [TaskId::fresh().as_str(), "t", "0193B1E2-6B0A-7B0A-8B0A-0193B1E26B0A"] {
            let turn = Made::begun(TaskId::new(id)).turn();
            assert_eq!(turn.try_lock().unwrap().as_ref().map(TaskId::as_str), Some(id));
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
        assert!(known.made.len() <= MOST + 1 && known.order.len() == known.made.len());
    }
}
