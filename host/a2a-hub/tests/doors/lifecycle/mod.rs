//! Tests of a hub that starts, waits, is replaced or is interrupted.

mod crash;
mod loading;
mod patience;
mod queue;
mod repeats;
mod replacing;
mod schedules;
mod soak;
mod triggers;
mod upkeep;
mod waiting;
mod webhook_triggers;
