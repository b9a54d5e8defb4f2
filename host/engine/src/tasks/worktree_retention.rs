//! Retention of worktrees: those in which no task works are removed, by age, number and
//! disk use. Their changes stay in the repositories.

use super::Tasks;
use a2a_hub_clock as clock;
use a2a_hub_protocol::{id::TaskId, task::TaskState};
use a2a_hub_store::{HeadFilter, StorageError};
use a2a_hub_worktrees::{RestingWorktree, Worktree, WorktreeTotals, Worktrees};
use std::time::Duration;
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// Interval between two looks at the worktrees.
const EVERY: Duration = Duration::from_secs(60 * 60);

impl Tasks {
    /// Removes worktrees by age, number and disk use, now and every hour, until `stop`.
    pub fn watch_worktrees(&self, running: &TaskTracker, stop: CancellationToken) {
        let Ok(worktrees) = self.worktrees().cloned() else { return };
        let tasks = self.clone();
        running.spawn(stop.run_until_cancelled_owned(async move {
            let mut hour = interval(EVERY);
            hour.set_missed_tick_behavior(MissedTickBehavior::Delay);
            loop {
                hour.tick().await;
                if let Err(why) = tasks.retire_worktrees(&worktrees).await {
                    tracing::warn!(%why, "cannot find old worktrees, trying again in an hour");
                }
            }
        }));
    }

    /// Time since the last task in a worktree; none if a task may work in it: the one that it was
    /// made for, one above it, or another one of the conversation.
    pub(crate) async fn rest_of_worktree(
        &self,
        worktree: &Worktree,
    ) -> Result<Option<Duration>, StorageError> {
        let Some(head) = self.find_head(&TaskId::new(worktree.task.as_str())).await? else {
            let age = clock::now_ms().saturating_sub(worktree.created_ms);
            return Ok(Some(Duration::from_millis(age)));
        };
        if !head.state.is_final() {
            return Ok(None);
        }
        let mut ancestor = head.parent;
        while let Some(id) = ancestor {
            let parent = self.find_head(&id).await?;
            if parent.as_ref().is_some_and(|parent| !parent.state.is_final()) {
                return Ok(None);
            }
            ancestor = parent.and_then(|parent| parent.parent);
        }
        let its = HeadFilter { context: Some(head.context), limit: 1, ..HeadFilter::default() };
        let live = HeadFilter { live_only: true, ..its.clone() };
        if !self.storage.heads(live).await?.is_empty() {
            return Ok(None);
        }
        let newest = self.storage.heads(its).await?.pop();
        let last = newest.map(|newest| newest.updated).max(Some(head.updated));
        Ok(last.map(|last| clock::age(&last)))
    }

    /// Removes the unchanged worktrees of a task that has ended, and of those below it.
    pub(super) async fn remove_worktrees_after(&self, ended: &TaskId) {
        let worktrees = self.worktrees_in_tree(ended);
        if !worktrees.is_empty() {
            // Boxed here, since it is large, and most tasks have no worktree.
            Box::pin(self.remove_unchanged_worktrees(worktrees)).await;
        }
    }

    /// Tasks with worktrees of this process: the task itself, and those below it.
    fn worktrees_in_tree(&self, task: &TaskId) -> Vec<TaskId> {
        let in_use = self.worktrees_in_use.lock();
        let in_tree = in_use.iter().filter(|(of, root)| *of == task || *root == task);
        in_tree.map(|(of, _)| of.clone()).collect()
    }

    /// Removes the worktrees of ended tasks that changed nothing: those of child tasks and of
    /// cancelled tasks at once; that of another completed task after an hour, since its
    /// conversation may go on there, and only if git ignores nothing in it.
    async fn remove_unchanged_worktrees(&self, tasks: Vec<TaskId>) {
        let Ok(worktrees) = self.worktrees() else { return };
        for task in tasks {
            let Ok(worktree) = worktrees.find(task.as_str()) else {
                self.worktrees_in_use.lock().remove(&task);
                continue;
            };
            // A worktree is made before its task is stored.
            let Ok(Some(head)) = self.find_head(&task).await else { continue };
            let Ok(Some(rests)) = self.rest_of_worktree(&worktree).await else { continue };
            // The tasks of a flow end at the same time: one of them removes it.
            if self.worktrees_in_use.lock().remove(&task).is_none() {
                continue;
            }
            let is_needless = head.parent.is_some() || head.state == TaskState::Canceled;
            let is_expired = head.state == TaskState::Completed && rests >= EVERY;
            if !is_needless && !is_expired {
                continue;
            }
            let is_at_rest =
                async { matches!(self.rest_of_worktree(&worktree).await, Ok(Some(_))) };
            match worktrees.discard_unchanged(task.as_str(), !is_needless, is_at_rest).await {
                Ok(true) => tracing::info!(%task, "a worktree without changes was removed"),
                Ok(false) => {}
                Err(why) => tracing::warn!(%task, %why, "cannot remove a worktree without changes"),
            }
        }
    }

    async fn retire_worktrees(&self, worktrees: &Worktrees) -> Result<(), StorageError> {
        let listed = worktrees.clone();
        // Those of an earlier process, which was killed before it removed them.
        let unchanged = a2a_hub_process::run_blocking(move || {
            let tasks = listed.list().into_iter().map(|worktree| worktree.task);
            let is_unchanged =
                |task: &String| listed.latest(task).is_none_or(|latest| latest.files == 0);
            tasks.filter(is_unchanged).map(TaskId::new).collect::<Vec<_>>()
        });
        let unchanged = unchanged.await.unwrap_or_default();
        for task in &unchanged {
            self.worktrees_in_use.lock().entry(task.clone()).or_insert_with(|| task.clone());
        }
        self.remove_unchanged_worktrees(unchanged).await;
        let listed = worktrees.clone();
        let Ok(all) = a2a_hub_process::run_blocking(move || listed.list()).await else {
            return Ok(());
        };
        let retention = worktrees.rules().retention;
        let mut total = WorktreeTotals { count: all.len(), bytes: 0 };
        let mut resting = Vec::new();
        for worktree in all {
            let bytes = match retention.keep_bytes {
                Some(_) => worktrees.disk_use(&worktree.task).await.unwrap_or_default(),
                None => 0,
            };
            total.bytes = total.bytes.saturating_add(bytes);
            let Some(rests) = self.rest_of_worktree(&worktree).await? else { continue };
            let is_orphan = worktrees.is_orphan(&worktree);
            let task = worktree.task;
            if is_orphan && self.find_head(&TaskId::new(task.as_str())).await?.is_none() {
                // The hub was killed before the task was stored: nobody has worked there.
                discard(worktrees, &task).await;
                continue;
            }
            if !worktree.is_unprepared {
                resting.push(RestingWorktree { task, rests, bytes });
                continue;
            }
            // The hub was killed while it was set up: no agent has worked there.
            discard(worktrees, &task).await;
        }
        for task in retention.due(total, resting) {
            match worktrees.retire(&task, false).await {
                Ok(result_ref) => {
                    tracing::info!(
                        task,
                        kept_as = result_ref.map(tracing::field::display),
                        "old worktree was removed by `worktrees.keep`, `worktrees.keep_most` or `worktrees.keep_mb`"
                    );
                }
                Err(why) => tracing::warn!(task, %why, "cannot remove an old worktree"),
            }
        }
        Ok(())
    }
}

/// Removes a worktree in which no agent has worked.
async fn discard(worktrees: &Worktrees, task: &str) {
    match worktrees.discard(task, true).await {
        Ok(()) => tracing::info!(task, "unused worktree was removed"),
        Err(why) => {
            tracing::warn!(task, %why, "cannot remove an unused worktree");
        }
    }
}
