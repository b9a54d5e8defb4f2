//! How another agent is called.

use std::time::Duration;

use crate::MemoryScope;

/// How a call is made, beyond whom it is for and what it says. Whatever is left out is as with [`Context::call`](crate::Context::call).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CallOptions {
    pub(crate) key: Option<String>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) max_depth: Option<u32>,
    pub(crate) max_tasks: Option<u32>,
    pub(crate) max_tokens: Option<u64>,
    pub(crate) max_cost_usd: Option<f64>,
    pub(crate) working_directory: Option<String>,
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
    /// A call like any other.
    pub fn new() -> Self {
        Self::default()
    }

    /// What this agent calls the child. To call the same agent again with the same key is to join the child that there is, also
    /// after a restart of the hub.
    pub fn key(mut self, key: impl Into<String>) -> Self {
        self.key = Some(key.into());
        self
    }

    /// How long the child may take; the other agent's own limit counts all the same.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// How many levels of tasks there may be below the child.
    pub fn max_depth(mut self, depth: u32) -> Self {
        self.max_depth = Some(depth);
        self
    }

    /// How many tasks there may be below the child in all.
    pub fn max_tasks(mut self, tasks: u32) -> Self {
        self.max_tasks = Some(tasks);
        self
    }

    /// Tokens that the tasks below the child may use, as their agents report them.
    pub fn max_tokens(mut self, tokens: u64) -> Self {
        self.max_tokens = Some(tokens);
        self
    }

    /// Dollars that the tasks below the child may cost, as their agents report them.
    pub fn max_cost_usd(mut self, cost: f64) -> Self {
        self.max_cost_usd = Some(cost);
        self
    }

    /// Where the child works: the directory of this task, or one below.
    pub fn working_directory(mut self, directory: impl Into<String>) -> Self {
        self.working_directory = Some(directory.into());
        self
    }

    /// The conversation of an earlier child of the same agent, to go on with it. Any other is [denied](crate::Failure::Denied).
    pub fn context_id(mut self, context: impl Into<String>) -> Self {
        self.context_id = Some(context.into());
        self
    }

    /// This agent answers the child's questions, with [`Call::answer`](crate::Call::answer). Without this they go to the client of
    /// this task, and so do requests for permission and for logins in any case.
    pub fn answers_questions(mut self) -> Self {
        self.answers_questions = true;
        self
    }

    /// The child's agent has in mind what this one has, before it begins: goal, thoughts, decisions and variables, but for what is
    /// private. The child's task tells what went, and what stayed by which rule.
    pub fn inherit_working_memory(mut self) -> Self {
        self.inherit_working_memory = true;
        self
    }

    /// The same for items that this agent remembers: those that the message recalls, and then the newest.
    pub fn inherit_memory(mut self) -> Self {
        self.inherit_memory = Some(None);
        self
    }

    /// The same for those items only that a text recalls.
    pub fn inherit_recalled(mut self, query: impl Into<String>) -> Self {
        self.inherit_memory = Some(Some(query.into()));
        self
    }

    /// How much of it goes: all, what the message names, or what is derived from it.
    pub fn memory_scope(mut self, scope: MemoryScope) -> Self {
        self.memory_scope = Some(scope);
        self
    }

    /// What goes in the scope `Minimal`, beside what the message names: keys of decisions, names of variables, ids of items, `goal` and
    /// `thoughts`.
    pub fn memory_names(mut self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.memory_names = names.into_iter().map(Into::into).collect();
        self
    }

    /// How much goes at most, in bytes of JSON: 32 KiB unless said.
    pub fn memory_bytes(mut self, bytes: u64) -> Self {
        self.memory_bytes = Some(bytes);
        self
    }

    /// How much goes at most, in tokens, taken to be four bytes each.
    pub fn memory_tokens(mut self, tokens: u64) -> Self {
        self.memory_tokens = Some(tokens);
        self
    }
}
