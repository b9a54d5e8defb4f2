//! Test support: runs an agent natively, against a hub that follows a script and records all calls.

mod child;
mod exchange;
mod host;
mod mind;
mod process;
mod program;
mod recording;
mod rules;
mod shapes;
mod step;
mod workspace;

use crate::{Agent, Context, Health, Message, Part, Run, Task};

pub use host::ScriptedHost;
pub use process::KeptPrograms;
pub use program::Program;
pub use recording::{
    acp_recorded, acp_told, end, ended_tool_calls, failure, fed, metadata, split_behind, streamed,
};
pub use shapes::{deciding_members, feed_reshaped, reshaped, shapes, unanswered_members};

impl ScriptedHost {
    /// Runs an agent on a task with that text, with a subscribed client.
    pub fn run<A: Agent>(&self, text: &str) -> Run {
        A::run(&self.context(), &task(text))
    }

    /// Runs an agent's health check.
    pub fn health<A: Agent>(&self) -> Health {
        A::health(&self.context())
    }

    /// Creates a context with a subscribed client.
    pub fn context(&self) -> Context {
        Context::new(self.clone(), true)
    }

    /// Creates a context without a subscribed client.
    pub fn silent_context(&self) -> Context {
        Context::new(self.clone(), false)
    }
}

/// Creates a task with that text and an empty history, in context `context-1`.
pub fn task(text: &str) -> Task {
    Task {
        id: "task-1".into(),
        context_id: "context-1".into(),
        message: Message { id: "message-1".into(), ..Message::user(vec![Part::text(text)]) },
        history: Vec::new(),
        working_directory: None,
        metadata: None,
    }
}
