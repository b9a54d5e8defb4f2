//! Serializes long answers, such as a task with megabytes of artifacts, one at a time on a blocking
//! thread. A client that reads such a task repeatedly delays no other client (head-of-line
//! blocking).

use a2a_hub_process::run_blocking;
use a2a_hub_protocol::{
    dialect::Dialect,
    error::A2aError,
    message::{Content, Message, Part},
    operation::Answer,
    task::Task,
};
use std::sync::Arc;
use tokio::sync::Semaphore;

/// Size in bytes of an answer that is serialized in about a millisecond.
const SHORT: usize = 256 << 10;

/// Maximum number of long answers that are serialized concurrently: they use at most one core.
const AT_ONCE: usize = 1;

/// Serializer of answers. Clones share its limit.
#[derive(Clone)]
pub(crate) struct LongAnswers(Arc<Semaphore>);

impl Default for LongAnswers {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(AT_ONCE)))
    }
}

impl LongAnswers {
    /// Serializes the answer, or returns it if it has no text form.
    pub(crate) async fn text(
        &self,
        dialect: Dialect,
        answer: Answer,
        sent: bool,
    ) -> Result<Result<Vec<u8>, Box<Answer>>, A2aError> {
        if bytes_of(&answer) <= SHORT {
            return Ok(dialect.answer_text(&answer, sent).ok_or_else(|| Box::new(answer)));
        }
        // The semaphore is never closed.
        let _permit = self.0.acquire().await;
        let spell = move || dialect.answer_text(&answer, sent).ok_or_else(|| Box::new(answer));
        run_blocking(spell).await.map_err(|_| A2aError::internal())
    }
}

/// Approximate size in bytes of the long parts of an answer; 0 for an answer without a text form.
fn bytes_of(answer: &Answer) -> usize {
    #[expect(clippy::wildcard_enum_match_arm, reason = "all others are written as values")]
    match answer {
        Answer::Task(task) => bytes_of_task(task),
        Answer::Message(message) => bytes_of_message(message),
        _ => 0,
    }
}

fn bytes_of_task(task: &Task) -> usize {
    let said = task.history.iter().chain(&task.status.message).map(bytes_of_message);
    let made = task.artifacts.iter().map(|artifact| bytes_of_parts(&artifact.parts));
    said.chain(made).sum()
}

fn bytes_of_message(message: &Message) -> usize {
    bytes_of_parts(&message.parts)
}

fn bytes_of_parts(parts: &[Part]) -> usize {
    let of_part = |part: &Part| match &part.content {
        Content::Text(text) | Content::Url(text) => text.len(),
        Content::Raw(bytes) => bytes.len(),
        // Bounded by the limits on guests and requests, and looked at only in large answers.
        Content::Data(_) => 0,
    };
    parts.iter().map(of_part).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use a2a_hub_protocol::message::Role;
    use std::thread;

    #[tokio::test]
    async fn long_answer_is_spelled_beside_the_clients_thread() {
        let answers = LongAnswers::default();
        let held = answers.0.acquire().await.unwrap();
        let spell = |bytes: usize| {
            let message = Message::text(Role::Agent, "x".repeat(bytes));
            answers.text(Dialect::Hub, Answer::Message(message), true)
        };
        assert!(spell(SHORT).await.unwrap().is_ok(), "a short one waits for nobody");
        let mut long = Box::pin(spell(SHORT + 1));
        assert!(futures::poll!(&mut long).is_pending(), "another long one is spelled");
        drop(held);
        let text = long.await.unwrap().unwrap();
        assert!(text.len() > SHORT && text.ends_with(b"}"), "{:?}", thread::current());
    }
}
