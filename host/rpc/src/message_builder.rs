//! Message builder for protocols other than A2A. The messages have the form of the hub's dialect
//! and pass its validation.

use a2a_hub_protocol::{
    error::A2aError,
    id::{AgentId, MessageId, TaskId},
    member,
    operation::{Operation, SendMessage},
    question::QUESTION,
    v03::params::OfferedMessage,
};
use serde_json::{Value, json};

/// A message that creates a task.
pub struct Beginning<'a> {
    /// Target agent; the hub's default agent, if `None`.
    pub agent: Option<&'a AgentId>,
    /// Skill of the agent that is meant.
    pub skill: Option<&'a str>,
    /// Parts, in the JSON of A2A 0.3.
    pub parts: Vec<Value>,
    /// Conversation.
    pub context: Option<&'a str>,
    /// Working directory.
    pub directory: Option<&'a str>,
    /// Model of the agent's program.
    pub model: Option<&'a str>,
    /// Effort of the model.
    pub effort: Option<&'a str>,
    /// Permissions of the agent's programs, if less than the operator's setting.
    pub permissions: Option<&'a str>,
}

impl Beginning<'_> {
    /// Builds the operation.
    pub fn operation(self) -> Result<Operation, A2aError> {
        let mut message = message(self.parts);
        let mut facts = json!({
            "targetAgent": self.agent, "targetSkill": self.skill, "workingDirectory": self.directory, "model": self.model,
            "effort": self.effort, "permissions": self.permissions,
        });
        if let Some(facts) = facts.as_object_mut() {
            facts.retain(|_, value| !value.is_null());
        }
        member::set(&mut message, "metadata", facts);
        if let Some(context) = self.context {
            member::set(&mut message, "contextId", context);
        }
        stream(message)
    }
}

/// Builds the answer to a task's question, or to its current one if `question` is `None`.
pub fn answer(
    task: &TaskId,
    parts: Vec<Value>,
    question: Option<&str>,
) -> Result<Operation, A2aError> {
    let mut message = message(parts);
    member::set(&mut message, "taskId", json!(task));
    if let Some(question) = question {
        member::set(&mut message, "metadata", json!({ QUESTION: question }));
    }
    stream(message)
}

/// Wraps data as message parts, preceded by a text if the agent does not take JSON.
pub fn data(data: &Value, as_text: Option<&str>) -> Vec<Value> {
    let mut parts = as_text.map(text).unwrap_or_default();
    parts.push(json!({ "kind": "data", "data": data }));
    parts
}

/// Wraps a text as message parts.
pub fn text(content: &str) -> Vec<Value> {
    vec![json!({ "kind": "text", "text": content })]
}

fn message(parts: Vec<Value>) -> Value {
    let mut message = json!({ "kind": "message", "messageId": MessageId::fresh(), "role": "user" });
    message["parts"] = Value::Array(parts);
    message
}

fn stream(message: Value) -> Result<Operation, A2aError> {
    let offered: OfferedMessage =
        serde_json::from_value(message).map_err(|why| A2aError::invalid("message", why))?;
    let send = SendMessage::new(offered.accept("message")?, None)?;
    Ok(Operation::StreamMessage(Box::new(send)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn built_message_carries_all_fields() {
        let agent = AgentId::parse("echo").unwrap();
        let all = Beginning {
            agent: Some(&agent),
            skill: Some("s"),
            parts: text("hi"),
            context: Some("c"),
            directory: Some("/w"),
            model: Some("m"),
            effort: Some("high"),
            permissions: Some("ask"),
        };
        let Ok(Operation::StreamMessage(send)) = all.operation() else { panic!() };
        assert_eq!(send.agent, Some(agent.clone()));
        assert_eq!(send.working_directory.as_deref(), Some("/w"));
        assert_eq!(send.message.joined_text(), "hi");
        assert_eq!(send.message.context_id.unwrap().as_str(), "c");
        let facts = send.message.metadata.unwrap();
        assert_eq!((&facts["model"], &facts["permissions"]), (&json!("m"), &json!("ask")));
        assert_eq!((&facts["effort"], &facts["targetSkill"]), (&json!("high"), &json!("s")));
        let long = "x".repeat(a2a_hub_protocol::id::MAX_ID + 1);
        let (agent, skill, directory) = (None, None, None);
        let (model, effort, permissions) = (None, None, None);
        let (parts, context) = (text("hi"), Some(long.as_str()));
        let wrong =
            Beginning { agent, skill, parts, context, directory, model, effort, permissions };
        assert!(wrong.operation().is_err());
    }

    #[test]
    fn built_answer_names_task_and_question() {
        let Ok(Operation::StreamMessage(send)) = answer(&TaskId::new("t"), text("yes"), Some("q"))
        else {
            panic!()
        };
        assert_eq!(send.message.task_id, Some(TaskId::new("t")));
        assert_eq!(send.message.metadata.unwrap()[QUESTION], "q");
        assert_eq!(send.agent, None);
    }
}
