//! The hub's log: its files, and the form of one line.

pub(super) use crate::log_files as hub_log;
pub(super) use a2a_hub_terminal::log_line;
