//! Ownership of process trees: counted for callers that wait for an owner's end, and transferred
//! with a tree that outlives its first owner.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use tokio::sync::watch;

use super::lineage::{Behalf, TreeOwner};

/// Live trees by owner, and whether new ones are refused.
#[derive(Debug, Default)]
pub(super) struct LiveTrees {
    pub(super) closed: bool,
    pub(super) by_owner: HashMap<String, usize>,
}

impl LiveTrees {
    fn add(&mut self, owner: &str) {
        *self.by_owner.entry(owner.to_owned()).or_default() += 1;
    }

    fn remove(&mut self, owner: &str) {
        if let Some(count) = self.by_owner.get_mut(owner) {
            *count -= 1;
            if *count == 0 {
                self.by_owner.remove(owner);
            }
        }
    }
}

/// Owner of one tree. Clones refer to the same tree.
#[derive(Clone, Debug)]
pub(super) struct Owned {
    trees: watch::Sender<LiveTrees>,
    behalf: Behalf,
    /// Set once the tree is gone.
    has_ended: Arc<AtomicBool>,
}

impl Owned {
    /// Current behalf of the tree.
    pub(super) fn behalf(&self) -> Behalf {
        Arc::clone(&self.behalf)
    }

    /// Transfers the tree to another owner; false if it is gone.
    pub(super) fn pass_to(&self, owner: &str) -> bool {
        self.trees.send_if_modified(|trees| {
            // The end is set under the same lock.
            if self.has_ended.load(Ordering::Relaxed) {
                return false;
            }
            let mut behalf = self.behalf.lock();
            trees.remove(&behalf.owner);
            trees.add(owner);
            owner.clone_into(&mut behalf.owner);
            true
        })
    }
}

/// A tree's entry among the live ones; dropped when the tree is gone.
#[derive(Debug)]
pub(super) struct Lease(Owned);

impl Lease {
    /// Registers a tree; none once starts are refused.
    pub(super) fn acquire(
        trees: &watch::Sender<LiveTrees>,
        behalf: TreeOwner,
    ) -> Option<(Owned, Self)> {
        let taken = trees.send_if_modified(|trees| {
            if !trees.closed {
                trees.add(&behalf.owner);
            }
            !trees.closed
        });
        let behalf = Arc::new(Mutex::new(behalf));
        let owned = Owned { trees: trees.clone(), behalf, has_ended: Arc::default() };
        taken.then(|| (owned.clone(), Self(owned)))
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.0.trees.send_modify(|trees| {
            self.0.has_ended.store(true, Ordering::Relaxed);
            trees.remove(&self.0.behalf.lock().owner);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tree_counts_for_its_current_owner() {
        let trees = watch::Sender::<LiveTrees>::default();
        let behalf = |owner: &str| TreeOwner {
            agent: "codex".to_owned(),
            owner: owner.to_owned(),
            tree: "1.0".to_owned(),
        };
        let (owned, lease) = Lease::acquire(&trees, behalf("one")).unwrap();
        let (_, other) = Lease::acquire(&trees, behalf("one")).unwrap();
        let counted = |owner: &str| trees.borrow().by_owner.get(owner).copied();
        assert_eq!(counted("one"), Some(2));
        assert!(owned.pass_to("two"));
        assert_eq!((counted("one"), counted("two")), (Some(1), Some(1)));
        assert_eq!(owned.behalf().lock().owner, "two");
        drop(lease);
        assert_eq!((counted("one"), counted("two")), (Some(1), None));
        assert!(!owned.pass_to("three"), "nothing of it is left");
        assert_eq!(counted("three"), None);
        drop(other);
        assert!(trees.borrow().by_owner.is_empty());
        trees.send_modify(|trees| trees.closed = true);
        assert!(Lease::acquire(&trees, behalf("late")).is_none());
    }
}
