//! Answers to questions that tasks ask.

use crate::{Client, RpcError, message_to};
use anyhow::{Result, bail};
use serde_json::{Value, json};

/// A client's word to a task, and which question it is for.
pub fn answer(task: &Value, text: &str, question: Option<&Value>) -> Value {
    let mut answer = message_to("guest", text);
    answer["message"]["taskId"] = task["id"].clone();
    // The task tells whose it is.
    answer["message"]["metadata"] = json!({});
    if let Some(question) = question {
        answer["message"]["metadata"]["question"] = question.clone();
    }
    answer
}

/// How an answer is refused: with which code, words and data.
pub async fn refused(client: &Client, answer: Value) -> Result<(i64, String, Value)> {
    match client.call("message/send", answer).await {
        Err(RpcError::Refused { code, message, data }) => Ok((code, message, data)),
        other => bail!("it was taken: {other:?}"),
    }
}
