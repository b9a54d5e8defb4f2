//! Context memory of an agent in the context of its task: working memory, and items that are
//! searched by their words.

use super::journal::once_up;
use crate::store::{
    bindings::a2a::hub::{context_memory::Host, types},
    convert::failure_to_guest,
    redaction::Hide,
    state::GuestState,
    usage::{pace, wait},
};
use a2a_hub_core::{
    context_memory::{
        acquisition::{MAX_DATA, sound},
        model::{Change, Decision, Item, Thought},
        retrieval::MAX_RECALLED,
    },
    text::redact::Secrets,
};
use a2a_hub_runtime::{Failure, port::context_memory::ContextMemoryPort};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::sync::Arc;

/// Longest JSON text that is parsed: data and metadata of an item, and its names.
const MAX_JSON: usize = 2 * MAX_DATA + 4_096;

/// Longest query text.
const MAX_QUERY: usize = 64 << 10;

/// Cost of indexing a byte, relative to reading it.
const INDEXING: usize = 4;

impl GuestState {
    /// Context memory, after the guest's rate limit and with `bytes` charged to its CPU account.
    async fn context_memory(
        &mut self,
        bytes: usize,
    ) -> Result<Arc<dyn ContextMemoryPort>, Failure> {
        self.require_in_step("use what it has in mind")?;
        let Some(memory) = self.ports.context_memory.clone() else {
            if self.ports.memory.is_some() {
                let why = "use what it has in mind: there is no task in this call".to_owned();
                return Err(Failure::Unsupported(why));
            }
            self.ports.tell_refused("memory");
            return Err(Failure::Denied(format!(
                "use what it has in mind: not granted; the manifest must ask with `[memory]`, and the operator allows it with \
                 `memory = true` in `[agents.{0}.grant]` of the hub's configuration, or to a plug-in with `a2a-hub plugin grant {0} --memory`",
                self.agent
            )));
        };
        let time = pace(&mut self.paces.memory_calls, 1);
        wait(time, &self.cancel).await?;
        self.account.before(bytes).await;
        Ok(memory)
    }

    async fn change_context_memory(
        &mut self,
        bytes: usize,
        change: Result<Change, Failure>,
    ) -> Result<(), Failure> {
        // An oversized change is refused before it costs anything.
        let change = change?;
        let memory = self.context_memory(bytes.saturating_mul(INDEXING)).await?;
        let mut change = change;
        change.hide(&self.redaction.secrets);
        sound(&change).map_err(|why| Failure::Invalid(format!("remember: {why}")))?;
        let (recorded, cancel) = (self.replay.is_some(), self.cancel.clone());
        once_up(recorded, &cancel, || memory.change(vec![change.clone()])).await
    }

    async fn recalled(&mut self, query: &str, limit: u32) -> Result<String, Failure> {
        if query.len() > MAX_QUERY {
            let why = format!("recall: the text is longer than {} KiB", MAX_QUERY >> 10);
            return Err(Failure::Invalid(why));
        }
        let memory = self.context_memory(query.len().saturating_mul(INDEXING)).await?;
        let limit = usize::try_from(limit).unwrap_or(usize::MAX).min(MAX_RECALLED);
        let (recorded, cancel) = (self.replay.is_some(), self.cancel.clone());
        let items = once_up(recorded, &cancel, || memory.recall(query, limit)).await?;
        to_json(&items)
    }
}

fn parsed<T: DeserializeOwned>(label: &str, json: &str) -> Result<T, Failure> {
    if json.len() > MAX_JSON {
        return Err(Failure::Invalid(format!("{label}: it is longer than {} KiB", MAX_JSON >> 10)));
    }
    serde_json::from_str(json).map_err(|why| Failure::Invalid(format!("{label}: {why}")))
}

fn to_json(it: &impl serde::Serialize) -> Result<String, Failure> {
    serde_json::to_string(it).map_err(|why| Failure::Internal(why.to_string()))
}

impl Hide for Change {
    fn hide(&mut self, secrets: &Secrets) {
        match self {
            Self::Goal(goal) => goal.hide(secrets),
            Self::Thought(Thought { content, at: _, private: _ }) => content.hide(secrets),
            Self::Decide(Decision { key, value, reason, at: _, private: _ }) => {
                key.hide(secrets);
                value.hide(secrets);
                reason.hide(secrets);
            }
            Self::Variable { name, value, private: _ } => {
                name.hide(secrets);
                value.hide(secrets);
            }
            Self::Remember(Item { id, kind, data, metadata }) => {
                id.hide(secrets);
                kind.hide(secrets);
                data.hide(secrets);
                metadata.hide(secrets);
            }
            Self::Forget(id) => id.hide(secrets),
        }
    }
}

impl Host for GuestState {
    async fn working(&mut self) -> wasmtime::Result<Result<String, types::Failure>> {
        let done = async {
            let memory = self.context_memory(0).await?;
            let (recorded, cancel) = (self.replay.is_some(), self.cancel.clone());
            to_json(&once_up(recorded, &cancel, || memory.working()).await?)
        };
        Ok(done.await.map_err(failure_to_guest))
    }

    async fn set_goal(
        &mut self,
        goal: Option<String>,
    ) -> wasmtime::Result<Result<(), types::Failure>> {
        let bytes = goal.as_ref().map_or(0, String::len);
        Ok(self
            .change_context_memory(bytes, Ok(Change::Goal(goal)))
            .await
            .map_err(failure_to_guest))
    }

    async fn add_thought(
        &mut self,
        content: String,
        private: bool,
    ) -> wasmtime::Result<Result<(), types::Failure>> {
        let bytes = content.len();
        let thought = Change::Thought(Thought { content, at: None, private });
        Ok(self.change_context_memory(bytes, Ok(thought)).await.map_err(failure_to_guest))
    }

    async fn decide(
        &mut self,
        key: String,
        value: String,
        reason: Option<String>,
        private: bool,
    ) -> wasmtime::Result<Result<(), types::Failure>> {
        let bytes = key.len() + value.len() + reason.as_ref().map_or(0, String::len);
        let value = parsed::<Value>("decide: the value", &value);
        let decision =
            value.map(|value| Change::Decide(Decision { key, value, reason, at: None, private }));
        Ok(self.change_context_memory(bytes, decision).await.map_err(failure_to_guest))
    }

    async fn set_variable(
        &mut self,
        name: String,
        value: Option<String>,
        private: bool,
    ) -> wasmtime::Result<Result<(), types::Failure>> {
        let bytes = name.len() + value.as_ref().map_or(0, String::len);
        let value = value.map(|value| parsed("set a variable: the value", &value)).transpose();
        let change = value.map(|value| Change::Variable { name, value, private });
        Ok(self.change_context_memory(bytes, change).await.map_err(failure_to_guest))
    }

    async fn remember(&mut self, item: String) -> wasmtime::Result<Result<(), types::Failure>> {
        let change = parsed("remember an item", &item).map(Change::Remember);
        Ok(self.change_context_memory(item.len(), change).await.map_err(failure_to_guest))
    }

    async fn recall(
        &mut self,
        query: String,
        limit: u32,
    ) -> wasmtime::Result<Result<String, types::Failure>> {
        Ok(self.recalled(&query, limit).await.map_err(failure_to_guest))
    }

    async fn forget(&mut self, id: String) -> wasmtime::Result<Result<(), types::Failure>> {
        Ok(self
            .change_context_memory(id.len(), Ok(Change::Forget(id)))
            .await
            .map_err(failure_to_guest))
    }
}
