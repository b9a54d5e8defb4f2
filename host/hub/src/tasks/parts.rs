//! What the tasks of a hub have in common. It is cloned for each task, so that all of it is held by one pointer.

use super::{
    directory::Directory, parking::Parking, phase::Phase, run_queue::RunQueue,
    running_tasks::RunningTasks,
};
use crate::{events::Events, spans::Spans};
use a2a_hub_core::tree::Trees;
use a2a_hub_protocol::id::TaskId;
use a2a_hub_store::{Readiness, TaskStore};
use parking_lot::Mutex;
use std::sync::{Arc, atomic::AtomicBool};
use tokio_util::task::TaskTracker;

/// The parts of [`Tasks`](super::Tasks), for the tasks alone.
#[derive(Clone)]
pub struct TasksParts {
    pub(super) storage: Arc<dyn TaskStore>,
    pub(super) readiness: Readiness,
    pub(super) events: Events,
    /// Where the spans of those go that are over.
    pub(super) spans: Spans,
    pub(super) actors: TaskTracker,
    pub(super) running: Arc<Mutex<RunningTasks>>,
    pub(super) queue: RunQueue,
    pub(super) parking: Parking,
    /// The trees of tasks that agents gave one another.
    pub(super) trees: Arc<Mutex<Trees>>,
    /// Knows the agents by name, group and skill.
    pub(super) directory: Directory,
    /// Whether the hub is up.
    pub(super) phase: Phase,
    /// The tasks whose agents were cut off at their work by the hub's end.
    pub(super) cut: Arc<Mutex<Vec<TaskId>>>,
    /// Whether a task may be of another than the default tenant.
    pub(super) may_have_tenants: Arc<AtomicBool>,
}
