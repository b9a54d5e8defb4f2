//! The event log in SQLite: events, their rows, finished tasks, retention and sizes.

pub(super) mod events;
pub(super) mod finished_tasks;
pub(super) mod memory_sizes;
pub(super) mod retention;
pub(super) mod rows;
