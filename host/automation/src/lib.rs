//! Schedules and triggers of a hub: their rules and states, and the messages of their runs. The
//! engine starts the tasks.

pub mod known_trigger;
pub mod message;
pub mod poll;
pub mod schedules;
pub mod topics;
pub mod triggers;

pub use schedules::{Schedules, WallClock};
pub use topics::Topics;
pub use triggers::Triggers;
