//! Rules for task logs that all stores share: permitted events, and folding.

use super::{Head, StorageError};
use a2a_hub_core::task::{
    fold::TaskFold,
    metadata,
    state::{self, IllegalEvent},
    trace_context,
};
use a2a_hub_protocol::{
    event::TaskEvent,
    id::TaskId,
    message::Message,
    operation::ContextInfo,
    task::{Task, TaskState},
};
use std::{borrow::Borrow, sync::Arc};

/// Longest indexed path of a directory in bytes: the longest that Linux accepts.
const MAX_PATH: usize = 4096;

/// Summary of a task's log after it has taken `events`, or the reason why it refuses them.
pub(super) fn extend(
    known: Option<Head>,
    task: &TaskId,
    expected: u64,
    events: &[Arc<TaskEvent>],
) -> Result<Head, StorageError> {
    let found = known.as_ref().map_or(0, |head| head.seq);
    if found != expected {
        return Err(StorageError::Conflict { task: task.clone(), expected, found });
    }
    let (mut head, rest) = match (known, events) {
        (Some(head), _) => (head, events),
        (None, [first, rest @ ..]) => (begin(task, first)?, rest),
        (None, []) => return Err(StorageError::Uncreated(task.clone())),
    };
    for event in rest {
        apply(&mut head, event)?;
    }
    Ok(head)
}

fn begin(task: &TaskId, first: &TaskEvent) -> Result<Head, StorageError> {
    match first {
        TaskEvent::Created(created) if created.task.id == *task => Ok(Head {
            task: task.clone(),
            context: created.task.context_id.clone().of_tenant(&created.tenant),
            agent: created.agent.clone(),
            state: created.task.status.state,
            seq: 1,
            created: created.task.status.timestamp.clone(),
            updated: created.task.status.timestamp.clone(),
            directory: metadata::working_directory(&created.task).filter(|it| it.len() <= MAX_PATH),
            parent: created.parent.as_ref().map(|parent| parent.task.clone()),
            workflow: trace_context::workflow(created),
        }),
        TaskEvent::Created(_)
        | TaskEvent::Status(_)
        | TaskEvent::Artifact(_)
        | TaskEvent::Input(_)
        | TaskEvent::Reply(_) => Err(StorageError::Uncreated(task.clone())),
    }
}

fn apply(head: &mut Head, event: &TaskEvent) -> Result<(), IllegalEvent> {
    let from = head.state;
    if from.is_final() {
        return Err(IllegalEvent::Over(from));
    }
    let to = match event {
        TaskEvent::Created(_) => return Err(IllegalEvent::CreatedTwice),
        TaskEvent::Status(update) => Some(update.status.state),
        TaskEvent::Reply(_) => Some(TaskState::Completed),
        TaskEvent::Artifact(_) | TaskEvent::Input(_) => None,
    };
    // The caller has checked the event with `core` already; checked again, a bug there cannot make
    // an unreadable log.
    if let Some(to) = to {
        if !state::allows(from, to) {
            return Err(IllegalEvent::Transition { from, to });
        }
        head.state = to;
    }
    if let TaskEvent::Status(update) = event {
        head.updated.clone_from(&update.status.timestamp);
    }
    if let TaskEvent::Input(message) = event
        && let Some(directory) = metadata::directory_of(message).filter(|it| it.len() <= MAX_PATH)
    {
        head.directory = Some(directory.to_owned());
    }
    head.seq += 1;
    Ok(())
}

/// Folds `events` into a task; `known` is the fold of the events before them.
///
/// # Errors
///
/// If the events are no log of the task.
pub fn fold<E: Borrow<TaskEvent>>(
    id: &TaskId,
    known: Option<Task>,
    events: impl IntoIterator<Item = E>,
) -> Result<Task, StorageError> {
    fold_page(id, known.map(TaskFold::new), events).map(TaskFold::into_task)
}

/// Folds one page of a log that is read in pages; `known` is the fold of the pages before it.
///
/// # Errors
///
/// If the events are no log of the task.
pub fn fold_page<E: Borrow<TaskEvent>>(
    id: &TaskId,
    known: Option<TaskFold>,
    events: impl IntoIterator<Item = E>,
) -> Result<TaskFold, StorageError> {
    let corrupt = |why| StorageError::Corrupt { subject: format!("the log of task {id}"), why };
    let mut known = known;
    for event in events {
        match (&mut known, event.borrow()) {
            (Some(task), event) => task
                .apply(event)
                .map_err(|illegal| corrupt(format!("one of its events would {illegal}")))?,
            (None, TaskEvent::Created(created)) => {
                known = Some(TaskFold::new(created.task.clone()));
            }
            (None, _) => break,
        }
    }
    known.ok_or_else(|| corrupt("it does not begin with the task's creation".into()))
}

/// Summary of a conversation with one task.
pub(super) fn context_of(head: &Head) -> ContextInfo {
    ContextInfo {
        id: head.context.clone(),
        task_count: 1,
        agents: vec![head.agent.clone()],
        created_at: head.created.clone(),
        updated_at: head.updated.clone(),
        last_state: head.state,
        last_task_id: head.task.clone(),
        working_directory: head.directory.clone(),
        parent_task_id: head.parent.clone(),
    }
}

/// Adds a newer task to the summary of its conversation.
pub(super) fn join(info: &mut ContextInfo, newer: &Head) {
    info.task_count += 1;
    if let Err(index) = info.agents.binary_search(&newer.agent) {
        info.agents.insert(index, newer.agent.clone());
    }
    info.updated_at = newer.updated.clone().max(std::mem::take(&mut info.updated_at));
    info.last_state = newer.state;
    info.last_task_id = newer.task.clone();
    info.working_directory.clone_from(&newer.directory);
    info.parent_task_id.clone_from(&newer.parent);
}

/// Collects the messages of final tasks, added newest first, up to a limit.
pub(super) struct Conversation {
    newest_first: Vec<Message>,
    limit: usize,
}

impl Conversation {
    pub(super) fn new(limit: usize) -> Self {
        Self { newest_first: Vec::new(), limit }
    }

    pub(super) fn is_enough(&self) -> bool {
        self.newest_first.len() >= self.limit
    }

    pub(super) fn add(&mut self, task: Task) {
        let messages = task.history.into_iter().chain(task.status.message);
        self.newest_first.extend(messages.collect::<Vec<_>>().into_iter().rev());
    }

    pub(super) fn oldest_first(mut self) -> Vec<Message> {
        self.newest_first.truncate(self.limit);
        self.newest_first.reverse();
        self.newest_first
    }
}
