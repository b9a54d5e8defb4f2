//! Tasks that a person with a narrowed key sees. All others of the tenant look as if they did not
//! exist.

use crate::{conversations::contexts::Contexts, error::HubError, tasks::Tasks};
use a2a_hub_core::identity::PersonRights;
use a2a_hub_protocol::{
    id::{ContextId, TaskId},
    operation::{ContextInfo, ContextQuery, Page},
};
use a2a_hub_store::{HeadFilter, StorageError};
use futures::future::BoxFuture;
use std::collections::BTreeSet;

/// Elements of a list that are read at a time, until enough of them are visible.
pub(crate) const CHUNK: usize = 200;

/// Tasks that a person sees, who does not see all tasks of the tenant. Cheap to clone.
#[derive(Clone)]
pub(crate) struct VisibleTasks {
    tasks: Tasks,
    rights: PersonRights,
}

impl VisibleTasks {
    /// Creates the view of a person; `None` for one who sees all tasks of the tenant.
    pub(crate) fn of(tasks: &Tasks, rights: Option<PersonRights>) -> Option<Self> {
        let rights = rights.filter(|rights| !rights.sees_all())?;
        Some(Self { tasks: tasks.clone(), rights })
    }

    /// True if the person sees the task.
    pub(crate) async fn sees(&self, task: &TaskId) -> Result<bool, StorageError> {
        let PersonRights { name, scopes, .. } = &self.rights;
        Ok(self.rights.sees(&self.tasks.facts(task, name, scopes.name_skills()).await?))
    }

    /// True if the person sees all tasks of a conversation, and so all its messages; false for an
    /// unknown one.
    pub(crate) async fn sees_context(&self, context: &ContextId) -> Result<bool, StorageError> {
        let filter = HeadFilter { context: Some(context.clone()), ..HeadFilter::default() };
        let heads = self.tasks.storage.heads(filter).await?;
        for head in &heads {
            if !self.sees(&head.task).await? {
                return Ok(false);
            }
        }
        Ok(!heads.is_empty())
    }

    /// Newest elements whose tasks the person sees, at most `limit`. `read` reads at most [`CHUNK`]
    /// elements with numbers below the given one, and `key` is the task and number of an element.
    pub(crate) async fn newest<'f, T>(
        &self,
        limit: usize,
        mut before: Option<u64>,
        read: impl Fn(Option<u64>) -> BoxFuture<'f, Result<Vec<T>, StorageError>>,
        key: impl Fn(&T) -> (&TaskId, u64),
    ) -> Result<Vec<T>, StorageError> {
        let mut found = Vec::new();
        loop {
            let chunk = read(before).await?;
            let is_last = chunk.len() < CHUNK;
            before = chunk.last().map(|last| key(last).1);
            found.extend(self.retain(chunk, |one| key(one).0).await?);
            if is_last || found.len() >= limit {
                found.truncate(limit);
                return Ok(found);
            }
        }
    }

    /// Elements whose tasks the person sees.
    pub(crate) async fn retain<T>(
        &self,
        all: Vec<T>,
        task_of: impl Fn(&T) -> &TaskId,
    ) -> Result<Vec<T>, StorageError> {
        let mut visible = Vec::with_capacity(all.len());
        for one in all {
            if self.sees(task_of(&one)).await? {
                visible.push(one);
            }
        }
        Ok(visible)
    }

    /// Conversations of which the person sees all tasks.
    pub(crate) async fn contexts(
        &self,
        contexts: &Contexts,
        query: ContextQuery,
    ) -> Result<Vec<ContextInfo>, HubError> {
        let Page { limit, offset: mut skipped } = query.page;
        let (mut found, mut known, mut offset) = (Vec::new(), BTreeSet::new(), 0);
        loop {
            let page = Page { limit: CHUNK, offset };
            let chunk = contexts.list(ContextQuery { page, ..query.clone() }).await?;
            let is_last = chunk.len() < CHUNK;
            offset += chunk.len();
            for info in chunk {
                // A conversation that goes on meanwhile moves the others.
                if !known.insert(info.id.clone()) || !self.sees_context(&info.id).await? {
                    continue;
                }
                if skipped > 0 {
                    skipped -= 1;
                } else if found.len() < limit {
                    found.push(info);
                }
            }
            if is_last || found.len() >= limit {
                return Ok(found);
            }
        }
    }
}
