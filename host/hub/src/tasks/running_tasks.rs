//! The tasks whose actors run, and what those hear that begin while the hub is going down.

use super::{command::Command, feed::Listener, relations::Calls};
use a2a_hub_protocol::id::{AgentId, ContextId, TaskId};
use std::{
    collections::HashMap,
    ops::{Deref, DerefMut},
    sync::Weak,
};
use tokio::sync::mpsc;

/// A task whose actor runs.
#[derive(Clone)]
pub(super) struct Running {
    pub(super) agent: AgentId,
    /// Where its agent's programs give tasks to other agents.
    pub(super) calls: Option<Weak<dyn Calls>>,
    pub(super) context: ContextId,
    pub(super) commands: mpsc::Sender<Command>,
    pub(super) listener: Listener,
}

/// The tasks whose actors run, by their ids.
#[derive(Default)]
pub(super) struct RunningTasks {
    tasks: HashMap<TaskId, Running>,
    is_going_down: bool,
}

impl RunningTasks {
    /// Takes in a task that begins, before its actor has had a turn. If the hub is going down, the task is the first to hear of it: whoever gives the
    /// orders has counted those that there were.
    pub(super) fn begin(&mut self, id: TaskId, task: Running) {
        if self.is_going_down {
            // There is room, for nobody has ordered anything yet.
            let _ = task.commands.try_send(Command::Shutdown);
        }
        self.tasks.insert(id, task);
    }

    /// Has tasks that begin from now on hear that the hub is going down; returns those that are to be told.
    pub(super) fn go_down(&mut self) -> Vec<Running> {
        self.is_going_down = true;
        self.tasks.values().cloned().collect()
    }
}

impl Deref for RunningTasks {
    type Target = HashMap<TaskId, Running>;

    fn deref(&self) -> &Self::Target {
        &self.tasks
    }
}

impl DerefMut for RunningTasks {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.tasks
    }
}
