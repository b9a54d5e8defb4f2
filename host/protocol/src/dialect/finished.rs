//! A task that is over, as the text that its clients are sent: nothing can happen to it any more, so that it is spelled once and
//! passed on as it is.

use super::Dialect;
use crate::{
    codec::spelled::Form,
    model::{
        id::{AgentId, ContextId},
        task::Task,
    },
};
use std::sync::OnceLock;

/// A task that is over, in 1.0's JSON, and in other forms once somebody asked for them.
#[derive(Debug)]
pub struct FinishedTask {
    agent: AgentId,
    context: ContextId,
    /// One for each form; that of 1.0 is there.
    texts: [OnceLock<Box<str>>; Form::ALL.len()],
}

impl FinishedTask {
    /// A task of `agent` that is over; none of one that is not.
    pub fn of(agent: AgentId, task: &Task) -> Option<Self> {
        if !task.status.state.is_final() {
            return None;
        }
        let text = String::from_utf8(Form::V1.text(task)).ok()?;
        Some(Self::stored(agent, task.context_id.clone(), text))
    }

    /// A task that was spelled before, by [`document`](Self::document), of an agent and a conversation.
    pub fn stored(agent: AgentId, context: ContextId, document: String) -> Self {
        let texts = <[OnceLock<Box<str>>; Form::ALL.len()]>::default();
        if let Some(text) = texts.get(Form::V1.number()) {
            let _ = text.set(document.into());
        }
        Self { agent, context, texts }
    }

    /// The agent whose task it is.
    pub fn agent(&self) -> &AgentId {
        &self.agent
    }

    /// The conversation that it belongs to.
    pub fn context(&self) -> &ContextId {
        &self.context
    }

    /// The task in the JSON of 1.0, in which it is kept. It is read as a task of the model, too, which has the same members.
    pub fn document(&self) -> &str {
        let text = self.texts.get(Form::V1.number()).and_then(OnceLock::get);
        text.map(Box::as_ref).unwrap_or_default()
    }

    /// The task itself.
    ///
    /// # Errors
    ///
    /// If what is kept is no task.
    pub fn task(&self) -> Result<Task, serde_json::Error> {
        let task = serde_json::from_str::<Task>(self.document())?;
        Ok(Task { context_id: self.context.clone(), ..task })
    }

    /// The task as text in this dialect, ready to be sent.
    ///
    /// # Errors
    ///
    /// If what is kept is no task.
    pub fn text(&self, dialect: Dialect) -> Result<&str, serde_json::Error> {
        let form = dialect.form();
        let Some(text) = self.texts.get(form.number()) else { return Ok(self.document()) };
        if let Some(text) = text.get() {
            return Ok(text);
        }
        let written = String::from_utf8(form.text(&self.task()?)).unwrap_or_default();
        Ok(text.get_or_init(|| written.into()))
    }

    /// Bytes that it takes up, with the texts that it may yet have.
    pub fn size(&self) -> usize {
        // The other forms are a little longer, and whoever wants one wants no other.
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
        /// What is kept is the task, and says the same in each dialect as the task itself does.
        #[test]
        fn what_is_kept_is_told_as_the_task_is(mut task in any_whole_task()) {
            let agent = AgentId::parse("echo").unwrap();
            task.status.state = TaskState::Completed;
            // No task of the hub's is without one.
            task.status.timestamp = "2026-01-01T00:00:00.000Z".to_owned();
            let finished = FinishedTask::of(agent.clone(), &task).unwrap();
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
        fn only_what_is_over_is_kept(mut task in any_whole_task()) {
            let agent = AgentId::parse("echo").unwrap();
            for state in TaskState::ALL {
                task.status.state = state;
                let kept = FinishedTask::of(agent.clone(), &task);
                prop_assert_eq!(kept.is_some(), state.is_final());
            }
        }
    }
}
