//! Finished task with its serialized forms. It cannot change any more, so each form is written at
//! most once.

use super::Dialect;
use crate::{
    codec::spelled::Form,
    model::{
        id::{AgentId, ContextId},
        task::Task,
    },
};
use std::sync::OnceLock;

/// A finished task as 1.0 JSON, with other forms cached on first use.
#[derive(Debug)]
pub struct FinishedTask {
    agent: AgentId,
    context: ContextId,
    /// Text of each form; that of 1.0 is always set.
    texts: [OnceLock<Box<str>>; Form::ALL.len()],
}

impl FinishedTask {
    /// Serializes a task of `agent`; `None` if its state is not final.
    pub fn from_task(agent: AgentId, task: &Task) -> Option<Self> {
        if !task.status.state.is_final() {
            return None;
        }
        let text = String::from_utf8(Form::V1.text(task)).ok()?;
        Some(Self::stored(agent, task.context_id.clone(), text))
    }

    /// Restores a task from its [`document`](Self::document), with its agent and conversation.
    pub fn stored(agent: AgentId, context: ContextId, document: String) -> Self {
        let texts = <[OnceLock<Box<str>>; Form::ALL.len()]>::default();
        if let Some(text) = texts.get(Form::V1.number()) {
            let _ = text.set(document.into());
        }
        Self { agent, context, texts }
    }

    /// Agent of the task.
    pub fn agent(&self) -> &AgentId {
        &self.agent
    }

    /// Conversation of the task.
    pub fn context(&self) -> &ContextId {
        &self.context
    }

    /// The task as 1.0 JSON, which is the stored form. Its members equal those of the model, so
    /// serde reads it as a [`Task`].
    pub fn document(&self) -> &str {
        let text = self.texts.get(Form::V1.number()).and_then(OnceLock::get);
        text.map(Box::as_ref).unwrap_or_default()
    }

    /// Deserializes the task.
    ///
    /// # Errors
    ///
    /// If the stored text is not a task.
    pub fn task(&self) -> Result<Task, serde_json::Error> {
        let task = serde_json::from_str::<Task>(self.document())?;
        Ok(Task { context_id: self.context.clone(), ..task })
    }

    /// Text of the task in this dialect.
    ///
    /// # Errors
    ///
    /// If the stored text is not a task.
    pub fn text(&self, dialect: Dialect) -> Result<&str, serde_json::Error> {
        let form = dialect.form();
        let Some(text) = self.texts.get(form.number()) else { return Ok(self.document()) };
        if let Some(text) = text.get() {
            return Ok(text);
        }
        let written = String::from_utf8(form.text(&self.task()?)).unwrap_or_default();
        Ok(text.get_or_init(|| written.into()))
    }

    /// Estimated memory in bytes, including forms that may still be cached.
    pub fn size(&self) -> usize {
        // Other forms are slightly longer, and a client usually asks for only one of them.
        2 * self.document().len() + size_of::<Self>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        codec::protojson::tests::any_whole_task,
        dialect::Wire,
        model::{
            interface::{Binding, Version},
            operation::Answer,
            task::TaskState,
        },
    };
    use proptest::prelude::*;

    proptest! {
        /// The stored task equals the task, and has the same text in each dialect.
        #[test]
        fn finished_task_text_equals_answer(mut task in any_whole_task()) {
            let agent = AgentId::parse("echo").unwrap();
            task.status.state = TaskState::Completed;
            // Every task of the hub has a timestamp.
            task.status.timestamp = "2026-01-01T00:00:00.000Z".to_owned();
            let finished = FinishedTask::from_task(agent.clone(), &task).unwrap();
            let (context, document) = (task.context_id.clone(), finished.document().to_owned());
            let again = FinishedTask::stored(agent, context, document);
            prop_assert_eq!(&again.task().unwrap(), &task);
            let answer = Answer::Task(Box::new(task));
            let official = |version, binding| Dialect::Official(Wire { version, binding });
            for dialect in [
                Dialect::Hub,
                official(Version::V1, Binding::JsonRpc),
                official(Version::V03, Binding::JsonRpc),
                official(Version::V03, Binding::Rest),
            ] {
                let told = String::from_utf8(dialect.answer_text(&answer, false).unwrap()).unwrap();
                for finished in [&finished, &again] {
                    prop_assert_eq!(finished.text(dialect).unwrap(), &told);
                }
            }
        }

        #[test]
        fn only_final_states_are_finished(mut task in any_whole_task()) {
            let agent = AgentId::parse("echo").unwrap();
            for state in TaskState::ALL {
                task.status.state = state;
                let kept = FinishedTask::from_task(agent.clone(), &task);
                prop_assert_eq!(kept.is_some(), state.is_final());
            }
        }
    }
}
