//! Support for tests of questions and answers.

use crate::{Client, RpcError, message_to};
use anyhow::{Result, bail};
use serde_json::{Value, json};

/// Answer of a client to a task, for a certain question if given.
pub fn answer(task: &Value, text: &str, question: Option<&Value>) -> Value {
    let mut answer = message_to("guest", text);
    answer["message"]["taskId"] = task["id"].clone();
    // The task itself determines the agent.
    answer["message"]["metadata"] = json!({});
    if let Some(question) = question {
        answer["message"]["metadata"]["question"] = question.clone();
    }
    answer
}

/// Refusal of an answer: its code, text and data.
pub async fn refused(client: &Client, answer: Value) -> Result<(i64, String, Value)> {
    match client.call("message/send", answer).await {
        Err(RpcError::Refused { code, message, data }) => Ok((code, message, data)),
        other => bail!("it was taken: {other:?}"),
    }
}
