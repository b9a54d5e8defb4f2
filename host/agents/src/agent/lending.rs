//! Rights that an agent passes on to an agent that it calls: at most those that the operator
//! grants, and never more than its own.

use super::{Agent, permission_limits::max_permissions};
use a2a_hub_config::Permissions;
use a2a_hub_core::{
    grant::delegate::Callee,
    task::{metadata, trace_context::PARENT_TASK},
};
use a2a_hub_protocol::{
    question::{Question, QuestionKind},
    task::Task,
};

impl Agent {
    /// Most permissive mode for the programs of `child` in a child task of `task`: the operator's
    /// grant, limited to the caller's own mode in `task` if that is bounded.
    pub fn lends(&self, child: &Callee, task: &Task) -> Permissions {
        let granted = self.live.now().agents.terms(child).unwrap_or_default().permissions;
        max_permissions(task, metadata::has(task, PARENT_TASK))
            .map_or(granted, |max| max.min(granted))
    }

    /// Most permissive mode of this agent's programs in `task`, which a client began.
    pub fn permissions_in(&self, task: &Task) -> Permissions {
        let configured = self.config.permissions;
        max_permissions(task, false).map_or(configured, |max| max.min(configured))
    }

    /// Most permissive mode of this agent's programs in `task`, which a client or an agent began.
    pub fn permissions_of_chain(&self, task: &Task) -> Permissions {
        let configured = self.config.permissions;
        max_permissions(task, metadata::has(task, PARENT_TASK))
            .map_or(configured, |max| max.min(configured))
    }

    /// True if `child` may work in a worktree for this agent. A worktree costs the operator's disk,
    /// so a plug-in needs a grant; agents that came with the hub, and flows, need none.
    pub fn lends_worktrees(&self, child: &Callee) -> bool {
        let granted = || self.live.now().agents.terms(child);
        self.is_first_party() || granted().is_some_and(|terms| terms.worktrees)
    }

    /// True if this agent may answer a question of an agent that it called. It may answer ordinary
    /// questions; permission requests only if the operator grants `approve` and the child itself
    /// asks. Logins, and permission requests from further down, are for the client alone.
    pub fn answers(&self, child: &Callee, question: &Question) -> bool {
        let terms = self.live.now().agents.terms(child).unwrap_or_default();
        match question.kind {
            QuestionKind::Input => true,
            QuestionKind::Permission => terms.approve && question.task.is_none(),
            QuestionKind::Auth => false,
        }
    }
}
