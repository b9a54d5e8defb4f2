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
    sync::{Mutex as Turn, OwnedMutexGuard},
    time::Instant,
};

/// How many requests are remembered: some 25 megabytes. A hub that takes more within the window forgets the oldest.
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
    made: HashMap<Key, Arc<Turn<Option<TaskId>>>>,
    /// The same, the oldest first.
    order: VecDeque<(Instant, Key)>,
}

/// A fingerprint as it is kept: there are many.
type Key = [u8; SHA256_OUTPUT_LEN];

/// What a request is known by: no two have the same.
pub type Fingerprint = String;

/// A request that is being carried out: the same one waits until that is done, also where a client is cut off meanwhile.
pub struct Claim {
    /// The fingerprint of the request that is being carried out.
    pub fingerprint: Fingerprint,
    task: OwnedMutexGuard<Option<TaskId>>,
}

impl Claim {
    /// The task that the request began before.
    pub fn task(&self) -> Option<&TaskId> {
        self.task.as_ref()
    }

    /// The request has begun this task.
    pub fn begun(mut self, task: TaskId) {
        *self.task = Some(task);
    }
}

impl Repeats {
    /// Requests count as the same within this window; never, if there is none.
    pub fn within(window: Duration) -> Self {
        Self(Arc::new(Inner { window, known: Mutex::default() }))
    }

    /// Whether requests are remembered at all.
    pub fn are_remembered(&self) -> bool {
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
        let fingerprint = fingerprint(request);
        let task = self.turn(&fingerprint, Duration::ZERO);
        Some(Claim { task: task.lock_owned().await, fingerprint })
    }

    /// A hub before this one began a task for a request that long ago.
    pub async fn remember(&self, fingerprint: &Fingerprint, task: TaskId, age: Duration) {
        let turn = self.turn(fingerprint, age);
        *turn.lock().await = Some(task);
    }

    fn turn(&self, fingerprint: &Fingerprint, age: Duration) -> Arc<Turn<Option<TaskId>>> {
        let key = key(fingerprint);
        let mut known = self.0.known.lock();
        let Known { made, order } = &mut *known;
        let now = Instant::now();
        let old = |at: Instant| now.saturating_duration_since(at) >= self.0.window;
        while order.front().is_some_and(|(at, _)| old(*at)) || order.len() > MOST {
            let Some((_, oldest)) = order.pop_front() else { break };
            made.remove(&oldest);
        }
        let turn = made.entry(key).or_insert_with(|| {
            // A machine that has just started has no time before.
            order.push_back((now.checked_sub(age).unwrap_or(now), key));
            Arc::default()
        });
        Arc::clone(turn)
    }
}

fn fingerprint(request: &str) -> Fingerprint {
    hex::encode(digest(&SHA256, request.as_bytes()))
}

/// A fingerprint as it is kept: by its bytes, or, of one that this hub did not make, by those of another digest.
fn key(fingerprint: &Fingerprint) -> Key {
    let mut key = Key::default();
    if hex::decode_to_slice(fingerprint, &mut key).is_err() {
        key.copy_from_slice(digest(&SHA256, fingerprint.as_bytes()).as_ref());
    }
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
        second.begun(TaskId::new("t"));
        assert_eq!(found(&repeats, "a").await.as_deref(), Some("t"));
    }

    #[tokio::test(start_paused = true)]
    async fn what_a_hub_before_took_in_is_known_for_the_rest_of_its_window() {
        let repeats = Repeats::within(WINDOW);
        sleep(WINDOW).await;
        repeats.remember(&fingerprint("a"), TaskId::new("t"), WINDOW / 2).await;
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
