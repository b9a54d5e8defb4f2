//! Something of which there is one for those on the runtime that the store was opened on, and another one for those on any other, such as
//! that of low priority: whoever is given a turn there and is not polled keeps it, and may keep it long.

use tokio::runtime::{Handle, Id};

#[derive(Debug)]
pub(super) struct Lanes<T> {
    home: Option<Id>,
    of_home: T,
    of_others: T,
}

impl<T> Lanes<T> {
    /// Whoever calls this is at home.
    pub(super) fn new(of_home: T, of_others: T) -> Self {
        Self { home: here(), of_home, of_others }
    }

    /// That of whoever calls this.
    pub(super) fn of_caller(&self) -> &T {
        if here() == self.home { &self.of_home } else { &self.of_others }
    }
}

fn here() -> Option<Id> {
    Handle::try_current().ok().map(|runtime| runtime.id())
}
