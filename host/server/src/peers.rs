//! Who is at the other end of many connections that come at once. To find out is to look through descriptors and processes, which costs
//! the same for one and for a thousand; so all that came while one look was taken are told by the next one.

use crate::peer::{self, Ends, Lineages};
use a2a_hub_core::access::Principal;
use a2a_hub_process::run_blocking;
use parking_lot::Mutex;
use std::{
    mem::{replace, take},
    sync::Arc,
};
use tokio::sync::oneshot;
use tokio_util::task::TaskTracker;

/// Where connections ask. Clones are one.
#[derive(Clone)]
pub(crate) struct Peers(Arc<Shared>);

struct Shared {
    lineage: Lineages,
    queue: Mutex<Queue>,
    /// Those that look. Nobody need wait for them: connections do, each for its own.
    looks: TaskTracker,
}

#[derive(Default)]
struct Queue {
    waiting: Vec<(Ends, oneshot::Sender<Option<Principal>>)>,
    /// Whether somebody looks, who will look for those that wait, too.
    is_looking: bool,
}

impl Peers {
    pub(crate) fn new(lineage: Lineages) -> Self {
        Self(Arc::new(Shared { lineage, queue: Mutex::default(), looks: TaskTracker::new() }))
    }

    /// Who is at the other end of a loopback connection: none if it is not the user that the hub runs as, or that cannot be found out.
    pub(crate) async fn who(&self, ends: Ends) -> Option<Principal> {
        let (told, hears) = oneshot::channel();
        let is_first = {
            let mut queue = self.0.queue.lock();
            queue.waiting.push((ends, told));
            !replace(&mut queue.is_looking, true)
        };
        if is_first {
            // By itself, so that a connection that ends leaves nobody waiting.
            self.0.looks.spawn(self.clone().look());
        }
        hears.await.ok().flatten()
    }

    /// Looks until nobody waits any more.
    async fn look(self) {
        loop {
            let batch = {
                let mut queue = self.0.queue.lock();
                if queue.waiting.is_empty() {
                    queue.is_looking = false;
                    return;
                }
                take(&mut queue.waiting)
            };
            let (ends, told): (Vec<Ends>, Vec<_>) = batch.into_iter().unzip();
            let lineage = Arc::clone(&self.0.lineage);
            let found = run_blocking(move || peer::over_tcp(&ends, &lineage)).await;
            // A look that failed tells nobody: their senders are dropped.
            for (told, principal) in told.into_iter().zip(found.unwrap_or_default()) {
                let _ = told.send(principal); // who hung up hears nothing
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::peer::Lineage;
    use futures::future::join_all;
    use std::{
        net::{TcpListener, TcpStream},
        sync::atomic::{AtomicUsize, Ordering::SeqCst},
        thread,
        time::Duration,
    };

    /// To whom every second socket is an agent's program; counts how often it looks, and takes its time.
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
    async fn as_many_as_come_meanwhile_are_told_by_one_look() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let here = listener.local_addr().unwrap();
        let clients: Vec<_> = (0..50).map(|_| TcpStream::connect(here).unwrap()).collect();
        let slow = Arc::new(Slow::default());
        let peers = Peers::new(Arc::clone(&slow) as Lineages);
        let asked = clients.iter().map(|client| peers.who((here, client.local_addr().unwrap())));
        let told = join_all(asked).await;
        for (client, told) in clients.iter().zip(told) {
            let owner = crate::socket_owner::SocketOwner::find(here, client.local_addr().unwrap());
            let expected = slow.of_sockets(&[owner.unwrap().inode]).remove(0);
            assert_eq!(told, expected);
            if slow.0.load(SeqCst) > 12 {
                break; // enough of them
            }
        }
        let looks = slow.0.load(SeqCst);
        assert!(looks <= 13, "{looks} looks");

        // One that hung up leaves nobody waiting.
        let mut gone = Box::pin(peers.who((here, clients[0].local_addr().unwrap())));
        assert!(futures::poll!(&mut gone).is_pending());
        drop(gone);
        assert!(peers.who((here, clients[1].local_addr().unwrap())).await.is_some());
    }
}
