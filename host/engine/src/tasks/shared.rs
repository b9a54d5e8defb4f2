//! State that all tasks of a hub share. Each task clones it, so it is behind one pointer.

use super::{
    account_quotas::AccountQuotas, actor::eviction::EvictionQueue,
    delegation::directory::Directory, permissions::RuleBook, recovery::phase::HubPhase,
    registry::RunningTasks, run_queue::RunQueue,
};
use crate::observability::{hub_events::Events, span_export::Spans};
use a2a_hub_core::task::{prices::Prices, tree_budget::Trees};
use a2a_hub_protocol::id::TaskId;
use a2a_hub_store::{Readiness, TaskStore};
use a2a_hub_worktrees::Worktrees;
use parking_lot::Mutex;
use std::{
    collections::BTreeMap,
    sync::{Arc, atomic::AtomicBool},
};
use tokio_util::task::TaskTracker;

/// Fields of [`Tasks`](super::Tasks), for the modules below `tasks`.
#[derive(Clone)]
pub struct TasksParts {
    pub(super) storage: Arc<dyn TaskStore>,
    /// Rules that answer requests for permission.
    pub(super) permissions: Arc<RuleBook>,
    pub(super) readiness: Readiness,
    pub(super) events: Events,
    /// Receives the spans of finished tasks.
    pub(super) spans: Spans,
    pub(super) actors: TaskTracker,
    pub(super) running: Arc<Mutex<RunningTasks>>,
    pub(super) queue: RunQueue,
    pub(super) evictions: EvictionQueue,
    /// Trees of delegated tasks.
    pub(super) trees: Arc<Mutex<Trees>>,
    /// Prices of models; tasks that begin later use a new list.
    pub(super) prices: Arc<Mutex<Arc<Prices>>>,
    /// Worktrees of the tasks; none in a hub without them.
    pub(super) worktrees: Option<Worktrees>,
    /// Tasks whose worktrees this process made, until the tasks have ended, with the roots of their
    /// trees.
    pub(super) worktrees_in_use: Arc<Mutex<BTreeMap<TaskId, TaskId>>>,
    /// Finds agents by name, group and skill.
    pub(super) directory: Directory,
    /// Phase of the hub: starting, up or stopping.
    pub(super) phase: HubPhase,
    /// Tasks whose agents were interrupted at work by the shutdown.
    pub(super) cut: Arc<Mutex<Vec<TaskId>>>,
    /// Quotas of the agents' accounts.
    pub(super) quotas: AccountQuotas,
    /// True if tasks of tenants other than the default may exist.
    pub(super) may_have_tenants: Arc<AtomicBool>,
}
