//! Scripted calls of other agents, and the messages between an agent and others.

use std::{cell::RefCell, collections::VecDeque, rc::Rc, time::Duration};

use super::process::Stop;
use crate::host::CallHandle;
use crate::{CallOptions, ChildTask, Failure, Message, TaskState, Update};

/// Messages to the agent at work, and those that it sends to others.
#[derive(Default)]
pub(super) struct Inbox {
    pub(super) messages: VecDeque<Message>,
    pub(super) sent: Vec<(String, Message)>,
    pub(super) answered: Vec<(String, String)>,
}

/// Scripted call of another agent.
pub(crate) struct ScriptedCall {
    id: String,
    inbox: Rc<RefCell<Inbox>>,
    /// Fails if the task is cancelled.
    check: Stop,
    updates: RefCell<VecDeque<Update>>,
}

impl ScriptedCall {
    pub(super) fn new(
        id: String,
        inbox: Rc<RefCell<Inbox>>,
        check: Stop,
        updates: Vec<Update>,
    ) -> Self {
        Self { id, inbox, check, updates: RefCell::new(updates.into()) }
    }

    pub(super) fn is_ready(&self) -> bool {
        !self.updates.borrow().is_empty()
    }
}

impl CallHandle for ScriptedCall {
    fn next(&self, _: Option<Duration>) -> Result<Update, Failure> {
        (self.check)()?;
        self.updates.borrow_mut().pop_front().ok_or(Failure::Timeout)
    }

    fn task_id(&self) -> String {
        self.id.clone()
    }

    fn answer(&self, message: &Message) -> Result<(), Failure> {
        let said = (self.id.clone(), message.text());
        self.inbox.borrow_mut().answered.push(said);
        Ok(())
    }

    fn send(&self, message: &Message) -> Result<(), Failure> {
        (self.check)()?;
        let sent = (self.id.clone(), message.clone());
        self.inbox.borrow_mut().sent.push(sent);
        Ok(())
    }

    fn cancel(&self) {
        self.updates.borrow_mut().clear();
    }
}

/// Describes a child by all that it will report.
pub(super) fn child(id: &str, agent: &str, options: &CallOptions, updates: &[Update]) -> ChildTask {
    let end = updates.iter().find_map(|update| match update {
        Update::Finished(outcome) => Some(outcome.state().unwrap_or(TaskState::Completed)),
        Update::Event(_) => None,
    });
    let state = end.unwrap_or(TaskState::Working);
    ChildTask { task_id: id.to_owned(), agent: agent.to_owned(), key: options.key.clone(), state }
}
