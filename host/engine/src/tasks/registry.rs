//! Registry of running actors; shuts down tasks that begin during the shutdown.

use super::{command::ActorCommand, ports::ProgramCalls};
use a2a_hub_protocol::id::{AgentId, ContextId, TaskId};
use a2a_hub_store::feed::FeedHandle;
use std::{
    collections::HashMap,
    ops::{Deref, DerefMut},
    sync::Weak,
};
use tokio::sync::mpsc;

/// Handle to a task's running actor.
#[derive(Clone)]
pub(super) struct ActorHandle {
    pub(super) agent: AgentId,
    /// Delegation port for its agent's programs.
    pub(super) calls: Option<Weak<dyn ProgramCalls>>,
    pub(super) context: ContextId,
    pub(super) commands: mpsc::Sender<ActorCommand>,
    pub(super) listener: FeedHandle,
}

/// Running actors, by task id.
#[derive(Default)]
pub(super) struct RunningTasks {
    tasks: HashMap<TaskId, ActorHandle>,
    is_going_down: bool,
}

impl RunningTasks {
    /// Registers a new task before its actor is first polled. During the shutdown the task gets a
    /// shutdown command at once, since the shutdown has already listed its tasks.
    pub(super) fn begin(&mut self, id: TaskId, task: ActorHandle) {
        if self.is_going_down {
            // The channel is new, so it has capacity.
            let _ = task.commands.try_send(ActorCommand::Shutdown);
        }
        self.tasks.insert(id, task);
    }

    /// Makes tasks that begin from now on shut down; returns the running tasks, which the caller
    /// must command.
    pub(super) fn go_down(&mut self) -> Vec<ActorHandle> {
        self.is_going_down = true;
        self.tasks.values().cloned().collect()
    }
}

impl Deref for RunningTasks {
    type Target = HashMap<TaskId, ActorHandle>;

    fn deref(&self) -> &Self::Target {
        &self.tasks
    }
}

impl DerefMut for RunningTasks {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.tasks
    }
}
