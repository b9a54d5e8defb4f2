//! Options of a call to another agent.

use std::time::Duration;

use crate::{MemoryScope, Message, Worktree};

/// Options of a call to another agent, beside its agent and message. An option that is not set
/// behaves as with [`Context::call`](crate::Context::call).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CallOptions {
    pub(crate) key: Option<String>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) max_depth: Option<u32>,
    pub(crate) max_tasks: Option<u32>,
    pub(crate) max_tokens: Option<u64>,
    pub(crate) max_cost_usd: Option<f64>,
    pub(crate) working_directory: Option<String>,
    worktree: Option<Worktree>,
    pub(crate) context_id: Option<String>,
    pub(crate) answers_questions: bool,
    pub(crate) inherit_working_memory: bool,
    pub(crate) inherit_memory: Option<Option<String>>,
    pub(crate) memory_scope: Option<MemoryScope>,
    pub(crate) memory_names: Vec<String>,
    pub(crate) memory_bytes: Option<u64>,
    pub(crate) memory_tokens: Option<u64>,
}

impl CallOptions {
    /// Creates options without any set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Names the child task. A second call of the same agent with the same key joins the existing
    /// child, also after a restart of the hub.
    pub fn key(mut self, key: impl Into<String>) -> Self {
        self.key = Some(key.into());
        self
    }

    /// Limits the child's run time. The other agent's own limit applies as well.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Limits the levels of tasks below the child.
    pub fn max_depth(mut self, depth: u32) -> Self {
        self.max_depth = Some(depth);
        self
    }

    /// Limits the total number of tasks below the child.
    pub fn max_tasks(mut self, tasks: u32) -> Self {
        self.max_tasks = Some(tasks);
        self
    }

    /// Limits the tokens of the tasks below the child, as their agents report them.
    pub fn max_tokens(mut self, tokens: u64) -> Self {
        self.max_tokens = Some(tokens);
        self
    }

    /// Limits the cost in dollars of the tasks below the child, as their agents report it.
    pub fn max_cost_usd(mut self, cost: f64) -> Self {
        self.max_cost_usd = Some(cost);
        self
    }

    /// Sets the child's working directory: the directory of this task or one below it.
    pub fn working_directory(mut self, directory: impl Into<String>) -> Self {
        self.working_directory = Some(directory.into());
        self
    }

    /// Has the child work in a git worktree. Its changes arrive as the artifact `patch`
    /// ([`ArtifactUpdate::worktree_changes`](crate::ArtifactUpdate::worktree_changes)); the
    /// worktree stays until the client applies or discards it, or retention removes it.
    pub fn worktree(mut self, worktree: Worktree) -> Self {
        self.worktree = Some(worktree);
        self
    }

    /// Adds what the hub reads from the child's message.
    pub(crate) fn mark(&self, message: &mut Message) {
        if let Some(worktree) = &self.worktree {
            worktree.ask(message);
        }
    }

    /// Continues the conversation of an earlier child of the same agent. The id of any other
    /// conversation is [denied](crate::Failure::Denied).
    pub fn context_id(mut self, context: impl Into<String>) -> Self {
        self.context_id = Some(context.into());
        self
    }

    /// Lets this agent answer the child's questions, with [`Call::answer`](crate::Call::answer). By
    /// default the client of this task answers them. Requests for permission and for logins always
    /// go to the client.
    pub fn answers_questions(mut self) -> Self {
        self.answers_questions = true;
        self
    }

    /// Copies this agent's working memory to the child's agent before the child starts: goal,
    /// thoughts, decisions and variables, without private ones. The child's task lists what was
    /// copied, and which rule held back the rest.
    pub fn inherit_working_memory(mut self) -> Self {
        self.inherit_working_memory = true;
        self
    }

    /// Copies items that this agent remembers as well: those that match the message, then the
    /// newest.
    pub fn inherit_memory(mut self) -> Self {
        self.inherit_memory = Some(None);
        self
    }

    /// Copies only the remembered items that match `query`.
    pub fn inherit_recalled(mut self, query: impl Into<String>) -> Self {
        self.inherit_memory = Some(Some(query.into()));
        self
    }

    /// Sets how much of the memory is copied: all, what the message names, or what is derived from
    /// the message.
    pub fn memory_scope(mut self, scope: MemoryScope) -> Self {
        self.memory_scope = Some(scope);
        self
    }

    /// Names entries that the scope `Minimal` copies beside those that the message names: keys of
    /// decisions, names of variables, ids of items, `goal` and `thoughts`.
    pub fn memory_names(mut self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.memory_names = names.into_iter().map(Into::into).collect();
        self
    }

    /// Limits the copied memory, in bytes of JSON; the default is 32 KiB.
    pub fn memory_bytes(mut self, bytes: u64) -> Self {
        self.memory_bytes = Some(bytes);
        self
    }

    /// Limits the copied memory, in tokens of four bytes each.
    pub fn memory_tokens(mut self, tokens: u64) -> Self {
        self.memory_tokens = Some(tokens);
        self
    }
}
