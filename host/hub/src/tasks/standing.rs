//! Questions that stand in the records of tasks after a restart, until whoever asked them comes to them again; and their answers.

use a2a_hub_core::facts;
use a2a_hub_protocol::{client::ClientCapabilities, message::Message, question::Question as Asked};
use a2a_hub_runtime::port::tasks::Answer;
use a2a_hub_store::{StoredTask, TaskStore};
use std::{collections::VecDeque, sync::Arc};

/// What a task's client has answered already of what is going to be asked again.
#[derive(Default)]
pub(super) struct Answers {
    given: VecDeque<(Asked, Message)>,
    /// Whether a question stands in the task's record, which is going to be asked again.
    pub(super) stands: bool,
    /// What that client can do with an answer.
    pub(super) client: ClientCapabilities,
}

impl Answers {
    /// No answers, of a task in whose record a question stands, or none.
    pub(super) fn none(stands: bool) -> Self {
        Self { stands, ..Self::default() }
    }

    /// Keeps an answer until its question is asked again.
    pub(super) fn keep(&mut self, answer: (Asked, Message)) {
        self.given.push_back(answer);
    }

    /// Keeps no answer, for another run begins.
    pub(super) fn begin(&mut self, client: &ClientCapabilities) {
        self.given.clear();
        self.client = client.clone();
    }

    /// The client's answer to a question that it was asked before the hub was restarted.
    pub(super) fn to(&mut self, of_child: Option<&Asked>) -> Option<Answer> {
        let is_it = |(asked, _): &(Asked, Message)| match of_child {
            Some(of_child) => asked.id == of_child.id,
            None => asked.task.is_none(),
        };
        let at = self.given.iter().position(is_it)?;
        let message = match of_child {
            // A child that is run again itself may take it only when it asks the next time.
            Some(_) => self.given.get(at)?.1.clone(),
            None => self.given.remove(at)?.1,
        };
        Some(Answer { message, client: self.client.clone() })
    }
}

/// Whether a child still asks what stands in its parent's record. The parent's agent comes to it again: it hears what the child tells on
/// its own, before or after the hub hands the child's question on.
pub(super) async fn is_still_asked(storage: Arc<dyn TaskStore>, stands: Option<Asked>) -> bool {
    let Some(stands) = stands else { return false };
    let Some(child) = &stands.task else { return false };
    let asks = |child: StoredTask| {
        let asked = Asked::of(child.task.metadata.as_ref());
        facts::asks(&child.task) && asked.is_some_and(|asked| asked.id == stands.id)
    };
    match storage.task(child).await {
        Ok(child) => child.is_some_and(asks),
        Err(why) => {
            tracing::warn!(%child, %why, "whether a child still asks cannot be read, and is taken for so");
            true
        }
    }
}
