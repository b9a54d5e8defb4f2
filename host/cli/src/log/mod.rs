//! The hub's log: its files, and the form of one line.

pub(super) mod hub_log;
pub(super) mod log_line;
