//! Restored questions: they stay in a task's record after a restart until the agent asks them
//! again; and their answers.

use a2a_hub_core::task::metadata;
use a2a_hub_protocol::{
    client::ClientCapabilities, message::Message, question::Question as AgentQuestion,
};
use a2a_hub_runtime::port::tasks::ClientAnswer;
use a2a_hub_store::{StoredTask, TaskStore};
use std::{collections::VecDeque, sync::Arc};

/// Client's answers to questions that will be asked again.
#[derive(Default)]
pub(in crate::tasks) struct Answers {
    restored: VecDeque<(AgentQuestion, Message)>,
    /// True if the task's record contains an open question that will be asked again.
    pub(in crate::tasks) has_open_question: bool,
    /// Capabilities of the client.
    pub(in crate::tasks) client: ClientCapabilities,
}

impl Answers {
    /// Creates an empty set; `has_open_question` is true if a question is open in the task's
    /// record.
    pub(in crate::tasks) fn none(has_open_question: bool) -> Self {
        Self { has_open_question, ..Self::default() }
    }

    /// Stores an answer until its question is asked again.
    pub(in crate::tasks) fn push(&mut self, answer: (AgentQuestion, Message)) {
        self.restored.push_back(answer);
    }

    /// Clears the answers, for another run begins.
    pub(in crate::tasks) fn begin(&mut self, client: &ClientCapabilities) {
        self.restored.clear();
        self.client = client.clone();
    }

    /// Client's answer to a question that was asked before the restart.
    pub(in crate::tasks) fn to(
        &mut self,
        of_child: Option<&AgentQuestion>,
    ) -> Option<ClientAnswer> {
        let is_it = |(question, _): &(AgentQuestion, Message)| match of_child {
            Some(of_child) => question.id == of_child.id,
            None => question.task.is_none(),
        };
        let at = self.restored.iter().position(is_it)?;
        let message = match of_child {
            // The copy stays: a child that is replayed itself may take the answer only when it asks
            // the next time.
            Some(_) => self.restored.get(at)?.1.clone(),
            None => self.restored.remove(at)?.1,
        };
        Some(ClientAnswer { message, client: self.client.clone() })
    }
}

/// True if a child still asks the question in its parent's record. The parent's agent will reach it
/// again: it sees the child's status itself, before or after the hub relays the child's question.
pub(in crate::tasks) async fn child_still_asks(
    storage: Arc<dyn TaskStore>,
    question: Option<AgentQuestion>,
) -> bool {
    let Some(question) = question else { return false };
    let Some(child) = &question.task else { return false };
    let asks = |child: StoredTask| {
        let current = AgentQuestion::from_metadata(child.task.metadata.as_ref());
        metadata::asks(&child.task) && current.is_some_and(|current| current.id == question.id)
    };
    match storage.task(child).await {
        Ok(child) => child.is_some_and(asks),
        Err(why) => {
            tracing::warn!(%child, %why, "cannot read child task, assuming its question is still open");
            true
        }
    }
}
