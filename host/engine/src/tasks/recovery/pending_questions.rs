//! Restored questions: they stay in a task's record after a restart until the agent asks them
//! again; and their answers.

use a2a_hub_core::task::metadata;
use a2a_hub_protocol::{client::ClientCapabilities, message::Message, question::Question as Asked};
use a2a_hub_runtime::port::tasks::ClientAnswer;
use a2a_hub_store::{StoredTask, TaskStore};
use std::{collections::VecDeque, sync::Arc};

/// Client's answers to questions that will be asked again.
#[derive(Default)]
pub(in crate::tasks) struct Answers {
    given: VecDeque<(Asked, Message)>,
    /// True if the task's record contains an open question that will be asked again.
    pub(in crate::tasks) stands: bool,
    /// Capabilities of the client.
    pub(in crate::tasks) client: ClientCapabilities,
}

impl Answers {
    /// Creates an empty set; `stands` is true if a question is open in the task's record.
    pub(in crate::tasks) fn none(stands: bool) -> Self {
        Self { stands, ..Self::default() }
    }

    /// Stores an answer until its question is asked again.
    pub(in crate::tasks) fn keep(&mut self, answer: (Asked, Message)) {
        self.given.push_back(answer);
    }

    /// Clears the answers, for another run begins.
    pub(in crate::tasks) fn begin(&mut self, client: &ClientCapabilities) {
        self.given.clear();
        self.client = client.clone();
    }

    /// Client's answer to a question that was asked before the restart.
    pub(in crate::tasks) fn to(&mut self, of_child: Option<&Asked>) -> Option<ClientAnswer> {
        let is_it = |(asked, _): &(Asked, Message)| match of_child {
            Some(of_child) => asked.id == of_child.id,
            None => asked.task.is_none(),
        };
        let at = self.given.iter().position(is_it)?;
        let message = match of_child {
            // The copy stays: a child that is replayed itself may take the answer only when it asks
            // the next time.
            Some(_) => self.given.get(at)?.1.clone(),
            None => self.given.remove(at)?.1,
        };
        Some(ClientAnswer { message, client: self.client.clone() })
    }
}

/// True if a child still asks the question in its parent's record. The parent's agent will reach it
/// again: it sees the child's status itself, before or after the hub relays the child's question.
pub(in crate::tasks) async fn is_still_asked(
    storage: Arc<dyn TaskStore>,
    stands: Option<Asked>,
) -> bool {
    let Some(stands) = stands else { return false };
    let Some(child) = &stands.task else { return false };
    let asks = |child: StoredTask| {
        let asked = Asked::of(child.task.metadata.as_ref());
        metadata::asks(&child.task) && asked.is_some_and(|asked| asked.id == stands.id)
    };
    match storage.task(child).await {
        Ok(child) => child.is_some_and(asks),
        Err(why) => {
            tracing::warn!(%child, %why, "whether a child still asks cannot be read, and is taken for so");
            true
        }
    }
}
