//! Tests of what happens to tasks and data when a hub is started, stopped, killed or short of
//! something.

mod backups;
mod crash;
mod faults;
pub(crate) mod full_disk;
mod hub_events;
mod logging;
mod permission_kills;
mod queue;
mod repeats;
mod replay;
mod restarts;
mod schedules;
mod ulimits;
mod unattended;
mod upkeep;
mod waiting;
mod which_hub;
mod worktrees;
