//! CPU time of guests: its measurement and its fair distribution.

pub(super) mod epoch_ticker;
pub(super) mod scheduler;
pub(super) mod thread_time;
