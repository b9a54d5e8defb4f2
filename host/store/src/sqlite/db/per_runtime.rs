//! One value for the home runtime (on which the store was opened), and another for all other
//! runtimes, such as the low-priority one. A task there may hold a permit for long without being
//! polled, and must not block the home runtime (priority inversion).

use tokio::runtime::{Handle, Id};

#[derive(Debug)]
pub(in crate::sqlite) struct Lanes<T> {
    home: Option<Id>,
    of_home: T,
    of_others: T,
}

impl<T> Lanes<T> {
    /// Creates the pair; the caller's runtime is the home runtime.
    pub(in crate::sqlite) fn new(of_home: T, of_others: T) -> Self {
        Self { home: here(), of_home, of_others }
    }

    /// Value for the caller's runtime.
    pub(in crate::sqlite) fn of_caller(&self) -> &T {
        if here() == self.home { &self.of_home } else { &self.of_others }
    }
}

fn here() -> Option<Id> {
    Handle::try_current().ok().map(|runtime| runtime.id())
}
