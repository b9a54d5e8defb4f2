//! Recovery of unfinished tasks after a restart of the hub.

mod begin_again;
mod client_input;
pub(super) mod pending_questions;
pub(super) mod phase;
pub(super) mod recover_tasks;
pub(super) mod tend_children;
