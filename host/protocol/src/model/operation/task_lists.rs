//! Lists of tasks: the filters, and a listed task.

use super::page::{Page, TaskCursor};
use crate::model::{
    id::{AgentId, ContextId, TenantId},
    task::{Task, TaskState},
};

/// Filter for tasks, newest first, and the detail of each task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskQuery {
    /// Restricts the list to tasks whose id begins with this prefix.
    pub id_prefix: Option<String>,
    /// Restricts the list to tasks of this agent.
    pub agent: Option<AgentId>,
    /// Restricts the list to tasks whose status changed at this time or later: RFC 3339 in UTC with
    /// milliseconds.
    pub since: Option<String>,
    /// Restricts the list to tasks of this conversation.
    pub context: Option<ContextId>,
    /// Restricts the list to tasks of this tenant.
    pub tenant: Option<TenantId>,
    /// Restricts the list to tasks whose client last set this working directory.
    pub directory: Option<String>,
    /// Restricts the list to tasks of this workflow, including the root task whose id is the
    /// workflow's name.
    pub workflow: Option<String>,
    /// Restricts the list to tasks in this state.
    pub state: Option<TaskState>,
    /// Section of the filtered list.
    pub page: Page,
    /// Maximum number of latest messages of each task; all, if `None`.
    pub history_length: Option<usize>,
    /// True to include artifacts. The artifacts of a thousand tasks may have gigabytes.
    pub include_artifacts: bool,
    /// True for what a table shows: the request in one line, a short message of the status, no
    /// history and no artifacts.
    pub is_summary: bool,
}

impl TaskQuery {
    /// All tasks, in this section of the list, with their whole history and without artifacts.
    pub fn all(page: Page) -> Self {
        let (id_prefix, agent, since, context) = Default::default();
        let (tenant, directory, workflow, state) = Default::default();
        Self {
            id_prefix,
            agent,
            since,
            context,
            tenant,
            directory,
            workflow,
            state,
            page,
            history_length: None,
            include_artifacts: false,
            is_summary: false,
        }
    }
}

/// Filter for a page of tasks, most recently changed status first, and the detail of each task (A2A
/// 1.0, section 3.1.4).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskPageQuery {
    /// Restricts the list to tasks of this agent.
    pub agent: Option<AgentId>,
    /// Restricts the list to tasks of this conversation.
    pub context: Option<ContextId>,
    /// Restricts the list to tasks of this tenant.
    pub tenant: Option<TenantId>,
    /// Restricts the list to tasks in this state.
    pub state: Option<TaskState>,
    /// Restricts the list to tasks whose status changed at this time or later: RFC 3339 in UTC with
    /// milliseconds.
    pub since: Option<String>,
    /// Cursor: the page begins after this task.
    pub after: Option<TaskCursor>,
    /// Maximum number of tasks of a page.
    pub size: usize,
    /// Maximum number of latest messages of each task; all, if `None`.
    pub history_length: Option<usize>,
    /// True to include artifacts.
    pub include_artifacts: bool,
}

/// Task in a list of tasks of all agents.
#[derive(Clone, Debug, PartialEq)]
pub struct ListedTask {
    /// Agent of the task.
    pub agent: AgentId,
    /// Snapshot of the task.
    pub task: Task,
    /// Facts that stand for the history, of a summary.
    pub summary: Option<TaskSummary>,
}

/// Facts that a summary of a task has in place of its history.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaskSummary {
    /// Request that the task works on, in one line.
    pub request: String,
    /// Working directory that its client last set.
    pub working_directory: Option<String>,
}
