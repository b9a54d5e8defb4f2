//! Blackboards of flows: for the programs of agents that work in a flow, and for those who may read
//! its task.

use super::{parts::HubParts, topics::require_delegation};
use crate::error::HubError;
use a2a_hub_core::access_control::{Caller, Principal};
use a2a_hub_protocol::boards::{BoardRequest, board_report};
use a2a_hub_protocol::{
    error::{A2aError, ErrorKind},
    id::TaskId,
    task::Task,
};
use serde_json::Value;

/// Carries out a request for blackboards. The caller's access has been checked.
pub(super) async fn perform(
    hub: &HubParts,
    caller: &Caller,
    request: BoardRequest,
) -> Result<Value, HubError> {
    let caller_task = match &caller.principal {
        Principal::AgentTask { agent, task } => {
            require_delegation(hub, agent, "blackboards")?;
            Some(task)
        }
        Principal::Operator
        | Principal::OperatorHttp
        | Principal::OperatorToken
        | Principal::Device { .. }
        | Principal::Automation { .. }
        | Principal::Client(_)
        | Principal::Person { .. }
        | Principal::Anonymous => None,
    };
    match (request, caller_task) {
        (BoardRequest::Read { task, step }, caller_task) => {
            let task = read(hub, caller, caller_task, task).await?;
            let (id, state) = (task.id.as_str(), task.status.state.name());
            let report = board_report(id, state, task.metadata.as_ref(), step.as_deref());
            Ok(report.map_err(|why| A2aError::invalid("task", why))?)
        }
        (BoardRequest::Change(contribution), Some(caller_task)) => {
            let answer = hub.tasks.change_board(caller_task, contribution).await?;
            answer.ok_or_else(|| {
                let why = "the flow has not answered yet, and may still make the change; `read_blackboard` shows whether it did";
                A2aError::new(ErrorKind::Timeout, why).into()
            })
        }
        (BoardRequest::Change(_), None) => {
            let why = "only programs of agents that have a turn at a blackboard change it";
            Err(A2aError::new(ErrorKind::UnsupportedOperation, why).into())
        }
    }
}

/// Task whose boards are read: one that the caller may see, or the one of the flow in which the
/// calling program works.
async fn read(
    hub: &HubParts,
    caller: &Caller,
    caller_task: Option<&TaskId>,
    task: Option<String>,
) -> Result<Task, HubError> {
    let task = match (task.map(TaskId::new), caller_task) {
        (Some(task), _) => task,
        (None, Some(caller_task)) => {
            return hub.tasks.nearest_board_task(caller_task).await?.ok_or_else(|| {
                let why = format!("no flow with a blackboard called task `{caller_task}`, nor one above it; name a task in `task`");
                A2aError::invalid("task", why).into()
            });
        }
        (None, None) => {
            let why = "name the task of a flow in `task`, as `a2a-hub tasks` lists it";
            return Err(A2aError::invalid("task", why).into());
        }
    };
    if let Some(caller_task) = caller_task
        && hub.tasks.require_within(&task, caller_task).await.is_err()
    {
        hub.tasks.require_within(caller_task, &task).await?;
    }
    let (_, context) = hub.tasks.whose(&task).await?;
    if *context.tenant() != caller.tenant {
        return Err(A2aError::no_task(&task).into());
    }
    Ok(hub.tasks.get(&task).await?.task)
}
