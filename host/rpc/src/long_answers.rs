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
use serde_json::Value;
use std::sync::Arc;
use tokio::sync::Semaphore;

/// Size in bytes of an answer that is serialized in about a millisecond.
const SHORT: usize = 256 << 10;

/// Maximum number of long answers that are serialized concurrently: they use at most one core.
const AT_ONCE: usize = 1;

/// Serializer of answers. Clones share its limit.
#[derive(Clone)]
pub struct LongAnswers(Arc<Semaphore>);

impl Default for LongAnswers {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(AT_ONCE)))
    }
}

impl LongAnswers {
    /// Serializes the answer, or returns it if it has no text form.
    pub async fn text(
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
    let messages = task.history.iter().chain(&task.status.message).map(bytes_of_message);
    let artifacts = task.artifacts.iter().map(|artifact| bytes_of_parts(&artifact.parts));
    messages.chain(artifacts).sum()
}

fn bytes_of_message(message: &Message) -> usize {
    bytes_of_parts(&message.parts)
}

fn bytes_of_parts(parts: &[Part]) -> usize {
    let of_part = |part: &Part| match &part.content {
        Content::Text(text) | Content::Url(text) => text.len(),
        Content::Raw(bytes) => bytes.len(),
        Content::Data(data) => bytes_of_json(data),
    };
    parts.iter().map(of_part).sum()
}

/// Recursion is bounded, because the depth of JSON from guests and clients is limited.
fn bytes_of_json(value: &Value) -> usize {
    // Quotes, a separator, and short values such as numbers.
    4 + match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(bytes_of_json).sum(),
        Value::Object(members) => {
            members.iter().map(|(name, value)| name.len() + bytes_of_json(value)).sum()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use a2a_hub_protocol::message::Role;
    use std::thread;

    #[tokio::test]
    async fn long_answer_is_serialized_off_thread() {
        let answers = LongAnswers::default();
        let held = answers.0.acquire().await.unwrap();
        let spell = |bytes: usize| {
            let message = Message::text(Role::Agent, "x".repeat(bytes));
            answers.text(Dialect::Hub, Answer::Message(message), true)
        };
        assert!(spell(SHORT).await.unwrap().is_ok(), "a short one waits for nobody");
        let mut long = Box::pin(spell(SHORT + 1));
        assert!(futures::poll!(&mut long).is_pending(), "another long one is spelled");
        let data = Part::data(vec![0; SHORT].into());
        let data = Answer::Message(Message { parts: vec![data], ..Message::text(Role::Agent, "") });
        let data = answers.text(Dialect::Hub, data, true);
        assert!(futures::poll!(Box::pin(data)).is_pending(), "data counts like text");
        drop(held);
        let text = long.await.unwrap().unwrap();
        assert!(text.len() > SHORT && text.ends_with(b"}"), "{:?}", thread::current());
    }
}
