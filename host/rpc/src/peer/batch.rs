//! Batched identification of peers. A lookup scans descriptors and processes, at the same cost for
//! one connection and for a thousand. Therefore connections that arrive during a lookup share the
//! next one.

use crate::{
    lineage::Lineages,
    peer::identity::{self, ConnectionEnds},
};
use a2a_hub_core::access_control::Principal;
use a2a_hub_process::run_blocking;
use parking_lot::Mutex;
use std::{
    mem::{replace, take},
    sync::Arc,
};
use tokio::sync::oneshot;
use tokio_util::task::TaskTracker;

/// Handle for lookups. Clones share one queue.
#[derive(Clone)]
pub struct PeerLookup(Arc<LookupInner>);

struct LookupInner {
    lineage: Lineages,
    queue: Mutex<LookupQueue>,
    /// Running lookups. No shutdown waits for them; each connection waits for its own result.
    looks: TaskTracker,
}

#[derive(Default)]
struct LookupQueue {
    waiting: Vec<(ConnectionEnds, oneshot::Sender<Option<Principal>>)>,
    /// True while a lookup runs, which also serves the waiting connections.
    is_looking: bool,
}

impl PeerLookup {
    /// Creates the lookup with an empty queue.
    pub fn new(lineage: Lineages) -> Self {
        Self(Arc::new(LookupInner { lineage, queue: Mutex::default(), looks: TaskTracker::new() }))
    }

    /// Identifies the peer of a loopback connection; `None` for another user, or if the owner
    /// cannot be determined.
    pub async fn identify(&self, ends: ConnectionEnds) -> Option<Principal> {
        let (sender, receiver) = oneshot::channel();
        let is_first = {
            let mut queue = self.0.queue.lock();
            queue.waiting.push((ends, sender));
            !replace(&mut queue.is_looking, true)
        };
        if is_first {
            // Spawned, so that a dropped connection does not cancel the lookup of others.
            self.0.looks.spawn(self.clone().drain_queue());
        }
        receiver.await.ok().flatten()
    }

    /// Looks up peers until the queue is empty.
    async fn drain_queue(self) {
        loop {
            let batch = {
                let mut queue = self.0.queue.lock();
                if queue.waiting.is_empty() {
                    queue.is_looking = false;
                    return;
                }
                take(&mut queue.waiting)
            };
            let (ends, senders): (Vec<ConnectionEnds>, Vec<_>) = batch.into_iter().unzip();
            let lineage = Arc::clone(&self.0.lineage);
            let found = run_blocking(move || identity::over_tcp(&ends, &lineage)).await;
            // A failed lookup drops the senders, which yields `None`.
            for (sender, principal) in senders.into_iter().zip(found.unwrap_or_default()) {
                let _ = sender.send(principal); // the connection may be closed
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lineage::Lineage;
    use futures::future::join_all;
    use std::{
        net::{TcpListener, TcpStream},
        sync::atomic::{AtomicUsize, Ordering::SeqCst},
        thread,
        time::Duration,
    };

    /// Slow lineage that counts lookups and maps every second socket to an agent's program.
    #[derive(Default)]
    struct Slow(AtomicUsize);

    impl Lineage for Slow {
        fn of_process(&self, _: i32) -> Option<Principal> {
            None
        }

        fn of_sockets(&self, inodes: &[u64]) -> Vec<Option<Principal>> {
            self.0.fetch_add(1, SeqCst);
            #[expect(clippy::disallowed_methods, reason = "a look blocks")]
            thread::sleep(Duration::from_millis(20));
            let who = |inode: &u64| match inode % 2 {
                0 => Principal::Operator,
                _ => Principal::Anonymous,
            };
            inodes.iter().map(who).map(Some).collect()
        }
    }

    #[tokio::test]
    async fn concurrent_lookups_share_one_batch() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let here = listener.local_addr().unwrap();
        let clients: Vec<_> = (0..50).map(|_| TcpStream::connect(here).unwrap()).collect();
        let slow = Arc::new(Slow::default());
        let peers = PeerLookup::new(Arc::clone(&slow) as Lineages);
        let asked =
            clients.iter().map(|client| peers.identify((here, client.local_addr().unwrap())));
        let told = join_all(asked).await;
        for (client, told) in clients.iter().zip(told) {
            let owner = a2a_hub_process::socket_owner::SocketOwner::find(
                here,
                client.local_addr().unwrap(),
            );
            let expected = slow.of_sockets(&[owner.unwrap().inode]).remove(0);
            assert_eq!(told, expected);
            if slow.0.load(SeqCst) > 12 {
                break; // enough samples
            }
        }
        let looks = slow.0.load(SeqCst);
        assert!(looks <= 13, "{looks} looks");

        // A dropped request does not block later ones.
        let mut gone = Box::pin(peers.identify((here, clients[0].local_addr().unwrap())));
        assert!(futures::poll!(&mut gone).is_pending());
        drop(gone);
        assert!(peers.identify((here, clients[1].local_addr().unwrap())).await.is_some());
    }
}
