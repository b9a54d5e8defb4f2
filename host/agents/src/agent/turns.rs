//! How many agents are asked at once how they are.

use tokio::sync::Semaphore;

/// Who may be asked at once how they are (bulkhead): however many strangers there are, no other waits for them.
pub(crate) struct Turns {
    /// Of those that the operator knows of: each may start a program.
    pub(super) others: Semaphore,
    /// Of the others: they have nothing to wait for, and little time.
    pub(super) strangers: Semaphore,
}

impl Default for Turns {
    fn default() -> Self {
        Self { others: Semaphore::new(4), strangers: Semaphore::new(8) }
    }
}
