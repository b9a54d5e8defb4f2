//! Conversations (contexts): list, history and retention.

use a2a_hub_clock as clock;
use a2a_hub_config::Config;
use a2a_hub_core::scheduling::{resources::SharedResource, shares::Holder};
use a2a_hub_protocol::{
    id::{ContextId, TaskId, TenantId},
    message::Message,
    operation::{ContextInfo, ContextQuery, Page},
};
use a2a_hub_store::{ContextFilter, Head, HeadFilter, LogSize, StorageError, TaskStore};
use parking_lot::Mutex;
use std::{collections::BTreeSet, sync::Arc, time::Duration};
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// Interval of the retention job.
const FORGET_EVERY: Duration = Duration::from_secs(60 * 60);

/// Number of tasks deleted between two checks of the size; small, so that little more is deleted
/// than needed.
const BATCH: usize = 64;

/// Number of deletable tasks that are found at once; large, as each search must exclude the tasks
/// in use again.
const FOUND_AT_ONCE: usize = 4_096;

/// Fraction of all tasks that are found at once in a store with several tenants: after them,
/// another tenant may be beyond its share.
const FOUND_FRACTION: u64 = 16;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Conversations in a store. A conversation consists of its tasks: it begins with the first and
/// ends when all are deleted.
#[derive(Clone)]
pub struct Contexts {
    storage: Arc<dyn TaskStore>,
    keeps: Arc<Mutex<Keeps>>,
}

/// Retention limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Keeps {
    idle_contexts: Option<Duration>,
    finished_tasks: Option<Duration>,
    max_bytes: Option<u64>,
}

impl Keeps {
    fn from_config(config: &Config) -> Self {
        let days = |days: Option<u32>| days.map(|days| DAY * days);
        Self {
            idle_contexts: days(config.contexts.max_age_days),
            finished_tasks: days(config.retention.max_age_days),
            max_bytes: Some(config.retention.max_mb.saturating_mul(1 << 20))
                .filter(|bytes| *bytes > 0),
        }
    }
}

/// Error of deleting a conversation.
#[derive(Debug, thiserror::Error)]
pub enum ForgetError {
    /// The conversation does not exist.
    #[error("forget context `{0}`: it does not exist")]
    Unknown(ContextId),
    /// One of its tasks is not over.
    #[error("forget context `{0}`: its task `{1}` is not over; cancel it first")]
    Live(ContextId, TaskId),
    /// One of its tasks is over, but an ancestor of that task is not: the ancestor counts its
    /// descendants, and its agent may ask for them.
    #[error(
        "forget context `{context}`: its task `{task}` is kept for task `{ancestor}`, which is not over; cancel that one first"
    )]
    AncestorLive {
        /// The conversation.
        context: ContextId,
        /// The finished task.
        task: TaskId,
        /// The unfinished ancestor.
        ancestor: TaskId,
    },
    /// The store failed.
    #[error(transparent)]
    Storage(#[from] StorageError),
}

impl Contexts {
    /// Conversations in `storage`, with the retention limits of `config`.
    pub fn new(storage: Arc<dyn TaskStore>, config: &Config) -> Self {
        Self { storage, keeps: Arc::new(Mutex::new(Keeps::from_config(config))) }
    }

    /// Applies the retention limits of another `config`, from the next retention run on.
    pub fn follow(&self, config: &Config) {
        *self.keeps.lock() = Keeps::from_config(config);
    }

    /// Lists conversations, the one with the newest task first.
    pub async fn list(&self, query: ContextQuery) -> Result<Vec<ContextInfo>, StorageError> {
        let ContextQuery { id_prefix, tenant, directory, after, page } = query;
        let Page { limit, offset } = page;
        let all = ContextFilter::default();
        let filter = ContextFilter { id_prefix, tenant, directory, after, limit, offset, ..all };
        self.storage.contexts(filter).await
    }

    /// Conversation and its latest `limit` messages, oldest first; none if it does not exist.
    pub async fn get(
        &self,
        id: &ContextId,
        limit: usize,
    ) -> Result<Option<(ContextInfo, Vec<Message>)>, StorageError> {
        let this =
            ContextFilter { context: Some(id.clone()), limit: 1, ..ContextFilter::default() };
        let Some(info) = self.storage.contexts(this).await?.pop() else { return Ok(None) };
        Ok(Some((info, self.latest_messages(id, limit).await?)))
    }

    /// Latest messages of all tasks, finished or not, task by task.
    async fn latest_messages(
        &self,
        id: &ContextId,
        limit: usize,
    ) -> Result<Vec<Message>, StorageError> {
        let mut newest_first = Vec::new();
        // Each task has at least one message, so this many tasks suffice.
        let tasks = HeadFilter { context: Some(id.clone()), limit, ..HeadFilter::default() };
        for head in self.storage.heads(tasks).await? {
            if newest_first.len() >= limit {
                break;
            }
            // Deleted in the meantime.
            let Some(stored) = self.storage.task(&head.task).await? else { continue };
            let messages = stored.task.history.into_iter().chain(stored.task.status.message);
            newest_first.extend(messages.collect::<Vec<_>>().into_iter().rev());
        }
        newest_first.truncate(limit);
        newest_first.reverse();
        Ok(newest_first)
    }

    /// Deletes a conversation with its tasks, and returns their number.
    pub async fn forget(&self, id: &ContextId) -> Result<usize, ForgetError> {
        self.forget_unless(id, |head| !head.state.is_final()).await
    }

    /// Deletes a conversation, unless one of its tasks is in use.
    async fn forget_unless(
        &self,
        id: &ContextId,
        in_use: impl Fn(&Head) -> bool,
    ) -> Result<usize, ForgetError> {
        let its = HeadFilter { context: Some(id.clone()), ..HeadFilter::default() };
        let heads = self.storage.heads(its).await?;
        if heads.is_empty() {
            return Err(ForgetError::Unknown(id.clone()));
        }
        if let Some(head) = heads.iter().find(|head| in_use(head)) {
            return Err(ForgetError::Live(id.clone(), head.task.clone()));
        }
        if let Some((task, ancestor)) = self.unfinished_ancestor(&heads).await? {
            return Err(ForgetError::AncestorLive { context: id.clone(), task, ancestor });
        }
        // A task that joins in the meantime is not among them, and stays.
        let tasks = heads.into_iter().map(|head| head.task).collect();
        Ok(self.storage.forget_tasks(tasks).await?)
    }

    /// The first of these tasks with an unfinished ancestor, and that ancestor.
    async fn unfinished_ancestor(
        &self,
        heads: &[Head],
    ) -> Result<Option<(TaskId, TaskId)>, StorageError> {
        // Many tasks may share an ancestor, which is checked once.
        let mut over = BTreeSet::new();
        for head in heads {
            let mut next = head.parent.clone();
            while let Some(ancestor) = next.filter(|ancestor| !over.contains(ancestor)) {
                let known = self.storage.head(&ancestor).await?;
                if known.as_ref().is_some_and(|known| !known.state.is_final()) {
                    return Ok(Some((head.task.clone(), ancestor)));
                }
                over.insert(ancestor);
                next = known.and_then(|known| known.parent);
            }
        }
        Ok(None)
    }

    /// Runs the retention job now and every hour, until `stop`.
    pub fn watch(&self, tasks: &TaskTracker, stop: CancellationToken) {
        let contexts = self.clone();
        tasks.spawn(async move {
            let mut hour = interval(FORGET_EVERY);
            hour.set_missed_tick_behavior(MissedTickBehavior::Delay);
            loop {
                let forgotten = tokio::select! {
                    forgotten = async { hour.tick().await; contexts.tidy().await } => forgotten,
                    () = stop.cancelled() => return,
                };
                match forgotten {
                    Ok(0) => {}
                    Ok(tasks) => tracing::info!(tasks, "deleted tasks beyond the retention limits"),
                    Err(why) => {
                        tracing::warn!(%why, "cannot delete old tasks, trying again in an hour");
                    }
                }
            }
        });
    }

    /// Deletes tasks that are too old or exceed the size limit, and returns their number. Running
    /// tasks and their descendants are never deleted.
    async fn tidy(&self) -> Result<usize, StorageError> {
        let keeps = *self.keeps.lock();
        let mut forgotten = 0;
        if let Some(age) = keeps.idle_contexts {
            let since = clock::before(age);
            let idle =
                ContextFilter { idle_since: Some(since.clone()), ..ContextFilter::default() };
            // Someone may have continued the conversation in the meantime, and even have finished.
            let in_use = |head: &Head| !head.state.is_final() || head.updated >= since;
            for context in self.storage.contexts(idle).await? {
                match self.forget_unless(&context.id, in_use).await {
                    Ok(tasks) => forgotten += tasks,
                    // The conversation was continued, was deleted, or is still needed by an
                    // ancestor.
                    Err(
                        ForgetError::Live(..)
                        | ForgetError::AncestorLive { .. }
                        | ForgetError::Unknown(_),
                    ) => {}
                    Err(ForgetError::Storage(why)) => return Err(why),
                }
            }
        }
        if let Some(age) = keeps.finished_tasks {
            let before = clock::before(age);
            forgotten += self.forget_oldest(Some(&before), None).await?;
        }
        if let Some(max_bytes) = keeps.max_bytes {
            forgotten += self.forget_oldest(None, Some(max_bytes)).await?;
        }
        Ok(forgotten)
    }

    /// Deletable tasks that make room, oldest first: of the tenant beyond its share, or of all. So
    /// no tenant's flood deletes the tasks of others.
    async fn oldest_beyond(&self) -> Result<Vec<TaskId>, StorageError> {
        let sizes = self.storage.log_sizes().await?;
        if sizes.len() < 2 {
            return self.storage.finished(None, FOUND_AT_ONCE).await;
        }
        let all: u64 = sizes.iter().map(|size| size.tasks).sum();
        let few = usize::try_from(all / FOUND_FRACTION).unwrap_or(FOUND_AT_ONCE);
        let few = few.clamp(1, FOUND_AT_ONCE);
        if let Some(tenant) = tenant_beyond(&sizes) {
            let its = self.storage.finished_of_tenant(&tenant, few).await?;
            if !its.is_empty() {
                return Ok(its);
            }
        }
        self.storage.finished(None, few).await
    }

    /// Deletes finished tasks, oldest first, in small batches: those that ended before `before`, or
    /// until at most `max_bytes` are left. For the latter, a tenant beyond its share makes room
    /// first.
    async fn forget_oldest(
        &self,
        before: Option<&str>,
        max_bytes: Option<u64>,
    ) -> Result<usize, StorageError> {
        let (mut forgotten, mut batch) = (0, if max_bytes.is_some() { 1 } else { BATCH });
        let mut size = if max_bytes.is_some() { self.storage.size().await? } else { 0 };
        loop {
            let oldest = match max_bytes {
                // Not searched for a store that is small enough.
                Some(max) if size <= max => return Ok(forgotten),
                Some(_) => self.oldest_beyond().await?,
                None => self.storage.finished(before, FOUND_AT_ONCE).await?,
            };
            let (so_far, mut remaining) = (forgotten, &*oldest);
            while !remaining.is_empty() {
                let (few, rest) = remaining.split_at(batch.min(remaining.len()));
                remaining = rest;
                let Some(max) = max_bytes else {
                    forgotten += self.storage.forget_tasks(few.to_vec()).await?;
                    continue;
                };
                if size <= max {
                    return Ok(forgotten);
                }
                let deleted = self.storage.forget_tasks(few.to_vec()).await?;
                forgotten += deleted;
                let before = std::mem::replace(&mut size, self.storage.size().await?);
                batch = next_batch_size(
                    size.saturating_sub(max),
                    before.saturating_sub(size),
                    deleted,
                    batch,
                );
            }
            if forgotten == so_far {
                return Ok(forgotten);
            }
        }
    }
}

/// Tenant whose oldest tasks make room, if one has more than its share of all logs. The share is of
/// what is stored, since the store is larger than its logs. The tasks of no tenant are the
/// operator's.
fn tenant_beyond(sizes: &[LogSize]) -> Option<TenantId> {
    let total = sizes.iter().map(|size| size.bytes).sum();
    let holders = sizes.iter().map(|size| (holder_of(&size.tenant), size.bytes));
    let beyond = SharedResource::TaskBytes.shares(total).beyond(holders)?;
    let mut tenants = sizes.iter().map(|size| &size.tenant);
    tenants.find(|tenant| holder_of(tenant) == beyond).cloned()
}

fn holder_of(tenant: &TenantId) -> Holder {
    if tenant.is_default() { Holder::Operator } else { Holder::Client(tenant.to_string()) }
}

/// Size of the next batch: the excess bytes divided by the average size of the tasks just deleted,
/// so that little more is deleted than needed.
fn next_batch_size(too_much: u64, freed: u64, deleted: usize, before: usize) -> usize {
    let deleted = u64::try_from(deleted).unwrap_or(u64::MAX);
    match freed.checked_div(deleted) {
        // Deleting small tasks frees a page only now and then.
        None | Some(0) => (before * 2).min(BATCH),
        Some(each) => usize::try_from(too_much / each).unwrap_or(BATCH).clamp(1, BATCH),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use a2a_hub_protocol::{budget::Budget, event::TaskEvent, parent::Parent, task::TaskState};
    use a2a_hub_store::{
        TaskIndex as _, TaskLog as _,
        contract::{chunk, created, status},
        memory::MemoryStorage,
    };

    /// Creates a store with tasks that ended long ago, and with a running one in the conversation
    /// `live`.
    async fn store(contexts: &[&str]) -> (Arc<MemoryStorage>, Vec<TaskId>) {
        let storage = Arc::new(MemoryStorage::default());
        let ids: Vec<_> = contexts.iter().map(|_| TaskId::fresh()).collect();
        for (id, context) in ids.iter().zip(contexts) {
            let mut log = vec![created(id, context), status(TaskState::Working, 1, None)];
            if *context != "live" {
                log.push(chunk(&"x".repeat(1 << 18)));
                log.push(status(TaskState::Completed, 2, Some("done")));
            }
            storage.append(id, 0, log).await.unwrap();
        }
        (storage, ids)
    }

    async fn left(storage: &MemoryStorage) -> Vec<String> {
        let contexts = storage.contexts(ContextFilter::default()).await.unwrap();
        contexts
            .into_iter()
            .map(|context| format!("{}:{}", context.id, context.task_count))
            .collect()
    }

    fn contexts(storage: &Arc<MemoryStorage>, config: &str) -> Contexts {
        Contexts::new(storage.clone(), &toml::from_str(config).unwrap())
    }

    #[tokio::test]
    async fn history_is_returned_oldest_first() {
        let (storage, ids) = store(&["a", "a", "live"]).await;
        let contexts = contexts(&storage, "");
        let id = ContextId::new("a");
        let said = async |limit| {
            let (_, said) = contexts.get(&id, limit).await.unwrap().unwrap();
            said.iter().map(Message::joined_text).collect::<Vec<_>>()
        };
        let [first, second] = [0, 1].map(|n| format!("do {}", ids[n]));
        assert_eq!(said(9).await, [first.as_str(), "done", &second, "done"]);
        assert_eq!(said(3).await, ["done", &second, "done"]);
        assert!(contexts.get(&ContextId::new("nobody's"), 9).await.unwrap().is_none());
        let (_, said) = contexts.get(&ContextId::new("live"), 9).await.unwrap().unwrap();
        assert_eq!(said.len(), 1, "a task that goes on has said something too");
    }

    #[tokio::test]
    async fn context_with_live_task_is_not_deleted() {
        let (storage, ids) = store(&["a", "a", "live"]).await;
        let contexts = contexts(&storage, "");
        let forget = async |name| contexts.forget(&ContextId::new(name)).await;
        assert_eq!(forget("a").await.unwrap(), 2);
        assert!(matches!(forget("a").await, Err(ForgetError::Unknown(_))));
        let refused = forget("live").await.unwrap_err();
        let told =
            format!("forget context `live`: its task `{}` is not over; cancel it first", ids[2]);
        assert_eq!(refused.to_string(), told);
        assert_eq!(left(&storage).await, ["live:1"]);
    }

    /// Adds a finished task in the conversation `below`, a child of the given one.
    async fn done_for(storage: &MemoryStorage, above: &TaskId) -> TaskId {
        let task = TaskId::fresh();
        let mut begin = TaskEvent::clone(&created(&task, "below"));
        if let TaskEvent::Created(created) = &mut begin {
            let (root, key, budget) = (above.clone(), None, Budget::default());
            created.parent = Some(Parent { task: above.clone(), root, depth: 1, key, budget });
        }
        let end = status(TaskState::Completed, 2, Some("done"));
        let log = vec![Arc::new(begin), status(TaskState::Working, 1, None), end];
        storage.append(&task, 0, log).await.unwrap();
        task
    }

    #[tokio::test]
    async fn descendants_of_live_task_are_kept() {
        let (storage, ids) = store(&["live"]).await;
        let child = done_for(&storage, &ids[0]).await;
        let grandchild = done_for(&storage, &child).await;
        for config in ["contexts.max_age_days = 1", "retention.max_age_days = 1"] {
            assert_eq!(contexts(&storage, config).tidy().await, Ok(0), "{config}");
        }
        let contexts = contexts(&storage, "");
        assert_eq!(contexts.forget_oldest(None, Some(0)).await, Ok(0), "however large it is");
        let below = ContextId::new("below");
        let refused = contexts.forget(&below).await.unwrap_err();
        let told = format!(
            "forget context `below`: its task `{grandchild}` is kept for task `{}`, which is not over; cancel that one first",
            ids[0]
        );
        assert_eq!(refused.to_string(), told);
        assert_eq!(left(&storage).await, ["below:2", "live:1"]);

        let end = vec![status(TaskState::Completed, 3, None)];
        storage.append(&ids[0], 2, end).await.unwrap();
        assert_eq!(contexts.forget(&below).await.unwrap(), 2);
    }

    #[tokio::test]
    async fn retention_deletes_old_tasks_but_not_live() {
        for config in ["contexts.max_age_days = 1", "retention.max_age_days = 1"] {
            let (storage, _) = store(&["a", "live", "b"]).await;
            assert_eq!(contexts(&storage, config).tidy().await, Ok(2));
            assert_eq!(left(&storage).await, ["live:1"]);
        }
        let (storage, _) = store(&["a", "live", "b"]).await;
        let contexts = contexts(&storage, "contexts.max_age_days = 100000");
        assert_eq!(contexts.tidy().await, Ok(0));
        contexts.follow(&toml::from_str("contexts.max_age_days = 1").unwrap());
        assert_eq!(contexts.tidy().await, Ok(2), "as it is told now");
    }

    #[tokio::test]
    async fn size_limit_deletes_oldest_tasks_first() {
        let (storage, _) = store(&["a"; 100]).await;
        assert_eq!(contexts(&storage, "").tidy().await, Ok(0));
        assert_eq!(contexts(&storage, "retention.max_mb = 0").tidy().await, Ok(0));
        assert_eq!(contexts(&storage, "retention.max_mb = 10").tidy().await, Ok(61));
        assert_eq!(left(&storage).await, ["a:39"], "as many as there is room for");
    }

    /// A tenant with newer and larger tasks than the operator and another tenant.
    #[tokio::test]
    async fn flooding_tenant_loses_own_tasks_first() {
        let storage = Arc::new(MemoryStorage::default());
        for (tenant, tasks) in [("", 2), ("quiet", 2), ("flood", 30)] {
            for _ in 0..tasks {
                let id = TaskId::fresh();
                let mut begin = TaskEvent::clone(&created(&id, tenant));
                if let TaskEvent::Created(created) = &mut begin {
                    created.tenant = TenantId::try_from(tenant.to_owned()).unwrap();
                    let context = created.task.context_id.clone();
                    created.task.context_id = context.of_tenant(&created.tenant);
                }
                let log = vec![
                    Arc::new(begin),
                    status(TaskState::Working, 1, None),
                    chunk(&"x".repeat(1 << 18)),
                    status(TaskState::Completed, 2, Some("done")),
                ];
                storage.append(&id, 0, log).await.unwrap();
            }
        }
        let count = |tenant: &str| {
            let tenant = TenantId::try_from(tenant.to_owned()).unwrap();
            let storage = Arc::clone(&storage);
            async move { storage.finished_of_tenant(&tenant, 100).await.unwrap().len() }
        };
        contexts(&storage, "retention.max_mb = 3").tidy().await.unwrap();
        assert_eq!((count("").await, count("quiet").await), (2, 2));
        assert!((6..=8).contains(&count("flood").await), "{}", count("flood").await);
        // The oldest of all are deleted once every tenant is within its share.
        contexts(&storage, "retention.max_mb = 1").tidy().await.unwrap();
        assert!(count("flood").await > 0 && count("").await < 2);
    }

    #[test]
    fn tenant_beyond_share_makes_room() {
        let sizes = |sizes: [u64; 3]| {
            let tenants = ["", "a", "b"].map(|name| TenantId::try_from(name.to_owned()).unwrap());
            let sizes = tenants.into_iter().zip(sizes);
            sizes.map(|(tenant, bytes)| LogSize { tenant, tasks: 1, bytes }).collect::<Vec<_>>()
        };
        for (of, beyond) in [
            ([0, 0, 0], None),
            ([100, 0, 0], None),
            ([90, 10, 0], None),
            ([50, 46, 4], Some("a")),
            ([20, 40, 40], None),
            ([9, 44, 47], Some("b")),
            ([0, 50, 50], Some("a")),
        ] {
            let found = tenant_beyond(&sizes(of));
            assert_eq!(found.as_ref().map(TenantId::as_str), beyond, "{of:?}");
        }
    }

    #[test]
    fn batch_size_follows_freed_bytes() {
        assert_eq!(next_batch_size(1_000_000, 100_000, 1, 1), 10);
        assert_eq!(next_batch_size(10, 100_000, 1, 8), 1, "large ones go one by one");
        assert_eq!(next_batch_size(1 << 30, 4_096, 64, 64), BATCH);
        assert_eq!(next_batch_size(1 << 30, 0, 1, 1), 2, "nothing is known yet");
        assert_eq!(next_batch_size(1 << 30, 0, 0, BATCH), BATCH);
    }

    #[tokio::test]
    async fn large_tasks_are_deleted_one_by_one() {
        let (storage, _) = store(&["a", "b", "c", "d", "e", "f", "g", "h"]).await;
        let contexts = contexts(&storage, "retention.max_mb = 1");
        contexts.tidy().await.unwrap();
        let kept = left(&storage).await.len();
        assert!((3..=4).contains(&kept), "four of a quarter of a megabyte fit, not {kept}");
    }
}
