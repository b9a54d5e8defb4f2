//! Tests of agents that work together: delegation, routing, context memory, other hubs.

mod boards;
mod child_worktrees;
mod delegation;
mod finding;
mod granted_skills;
mod group_handoff;
mod handoff;
mod minds;
mod quota_waits;
mod remotes;
mod reviews;
mod routing;
mod shares;
mod topics;
mod worktree_setup;
mod worktrees;
