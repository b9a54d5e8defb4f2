//! What an agent hands on of its rights to another one that it calls: no more than the operator says, and never more than it has.

use super::{Agent, narrowed::most};
use a2a_hub_config::Permissions;
use a2a_hub_core::{facts, trace::PARENT_TASK};
use a2a_hub_protocol::{
    id::AgentId,
    question::{Question, QuestionKind},
    task::Task,
};

impl Agent {
    /// The most that another agent's program may do without asking in a task that this one gives it for `task`: what the operator
    /// grants, and no more than this one's own may there if others bound that.
    pub fn lends(&self, child: &AgentId, task: &Task) -> Permissions {
        let granted = self.live.now().agents.terms(child.as_str()).unwrap_or_default().permissions;
        most(task, facts::has(task, PARENT_TASK)).map_or(granted, |most| most.min(granted))
    }

    /// Whether this agent may answer what one that it called asks: ordinary questions, and where the operator leaves that to it, what that
    /// one wants permission for. A login is for the client alone, and so is what others ask further down.
    pub fn answers(&self, child: &AgentId, asked: &Question) -> bool {
        let terms = self.live.now().agents.terms(child.as_str()).unwrap_or_default();
        match asked.kind {
            QuestionKind::Input => true,
            QuestionKind::Permission => terms.approve && asked.task.is_none(),
            QuestionKind::Auth => false,
        }
    }
}
