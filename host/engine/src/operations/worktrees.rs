//! Requests for the worktrees of tasks.

use crate::worktree_runs::conflict_with;
use crate::{
    error::HubError,
    tasks::{TaskReviews, Tasks},
};
use a2a_hub_clock as clock;
use a2a_hub_core::{access_control::Caller, review::Review, task::metadata};
use a2a_hub_protocol::{
    error::{A2aError, ErrorKind},
    hub_metadata::WORKTREE_TASK,
    id::{TaskId, TenantId},
    operation::{
        Answer, ApplyTo, LeftOutPart, WorktreeAnswer, WorktreeApplied, WorktreeChanges,
        WorktreeDiff, WorktreeInfo, WorktreeRemoved, WorktreeRequest, WorktreeSize,
    },
    task::TaskState,
};
use a2a_hub_store::Head;
use a2a_hub_worktrees::{
    Applied, DiffQuery, Omission, Target, Worktree, WorktreeError, WorktreeSnapshot, Worktrees,
};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::json;
use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    time::Duration,
};

/// Largest patch in an answer, in bytes.
const PATCH_LIMIT: usize = 16 << 20;

/// Longest first line of a commit's message, in characters.
const SUBJECT: usize = 72;

/// The tasks with their worktrees. [`Hub::handle`](super::Hub::handle) has checked the caller's
/// rights.
pub(super) struct WorktreeOperations<'t> {
    tasks: &'t Tasks,
    worktrees: &'t Worktrees,
}

impl<'t> WorktreeOperations<'t> {
    /// Worktrees of these tasks.
    ///
    /// # Errors
    /// This hub has none.
    pub(super) fn new(tasks: &'t Tasks) -> Result<Self, WorktreeError> {
        Ok(Self { tasks, worktrees: tasks.worktrees()? })
    }

    /// Carries out a request for worktrees of the caller's tenant. Others than the operator
    /// apply changes to the checkout that the task came from, without files that programs obey.
    pub(super) async fn perform(
        &self,
        request: WorktreeRequest,
        caller: &Caller,
    ) -> Result<Answer, HubError> {
        let (worktrees, tenant) = (self.worktrees, &caller.tenant);
        if let WorktreeRequest::Apply { accepts_all, checkout, .. } = &request
            && !caller.principal.is_operator()
            && (*accepts_all || checkout.is_some())
        {
            let why = "files that programs obey (`acceptsAll`), and another checkout (`checkout`), are for the operator; leave \
                       both out, or take a branch";
            return Err(A2aError::new(ErrorKind::PermissionDenied, why).into());
        }
        // Another tenant's task looks unknown; one that is gone is the default tenant's.
        if let Some(task) = request.task()
            && self.tasks.tenant_of(task).await?.unwrap_or_default() != *tenant
        {
            return Err(WorktreeError::NotFound(task.to_string()).into());
        }
        Ok(Answer::Worktree(match request {
            WorktreeRequest::List => WorktreeAnswer::List(self.list(tenant).await?),
            WorktreeRequest::Diff { task, summary, paths, since_review } => {
                let holder = self.tasks.shown_worktree(task).await?;
                let owner = caller.principal.identity();
                let reviews = TaskReviews { tasks: self.tasks, worktrees, holder, owner };
                let last = match since_review {
                    true => Some(reviews.last_sent().await?),
                    false => None,
                };
                let since = last.as_ref().and_then(Review::submission);
                let since = since.map(|submission| submission.commit.clone());
                let query = DiffQuery { as_table: summary, since, paths };
                let diff = worktrees.diff_of(reviews.holder.as_str(), query, PATCH_LIMIT).await?;
                let review = match &last {
                    Some(last) => {
                        Some(reviews.info(last, reviews.changes_now().await?.as_ref()).await?)
                    }
                    None => None,
                };
                let changes = changes(diff.snapshot);
                let (text, raw) = match String::from_utf8(diff.bytes) {
                    Ok(text) => (text, None),
                    Err(other) => {
                        let bytes = other.as_bytes();
                        (String::from_utf8_lossy(bytes).into_owned(), Some(STANDARD.encode(bytes)))
                    }
                };
                WorktreeAnswer::Diff(WorktreeDiff { changes, text, raw, review })
            }
            WorktreeRequest::Apply { task, to, message, accepts_all, checkout, paths } => {
                let target = match to {
                    ApplyTo::Files => Target::Files,
                    ApplyTo::Index => Target::Index,
                    ApplyTo::Branch(name) => Target::Branch(name),
                    ApplyTo::Commit => Target::Commit {
                        message: match message {
                            Some(message) => message,
                            None => self.subject(&task).await?,
                        },
                    },
                };
                let holder = self.tasks.worktree_holder(task.clone()).await?;
                let applied = worktrees
                    .apply_files(holder.as_str(), target, accepts_all, checkout, &paths)
                    .await?;
                let Applied { commit, branch, checkout, files, omissions: omitted } = applied;
                let omitted = omitted_parts(omitted);
                let to =
                    checkout.as_ref().map(|checkout| tracing::field::display(checkout.display()));
                let as_branch = branch.as_ref().map(tracing::field::display);
                tracing::info!(by = %caller.principal, %task, branch = as_branch, checkout = to, files = files.len(), "task changes were applied");
                WorktreeAnswer::Applied(WorktreeApplied {
                    commit,
                    branch,
                    checkout,
                    files,
                    left_out: omitted,
                })
            }
            WorktreeRequest::Discard { task, force } => {
                WorktreeAnswer::Removed(self.discard(task, force).await?)
            }
            WorktreeRequest::Prune { older_than_ms, force, forget, directory } => {
                WorktreeAnswer::Removed(match forget {
                    true => self.forget(older_than_ms, force, directory).await?,
                    false => self.prune(older_than_ms, force).await?,
                })
            }
        }))
    }

    /// Worktrees of a tenant's tasks.
    async fn list(&self, tenant: &TenantId) -> Result<Vec<WorktreeInfo>, HubError> {
        let mut listed = Vec::new();
        let keep = self.worktrees.rules().retention.keep;
        let listed_now = self.worktrees.clone();
        let (worktrees, snapshots) = blocking(move || {
            let all = listed_now.list();
            let latest = |worktree: &Worktree| {
                Some((worktree.task.clone(), listed_now.latest(&worktree.task)?))
            };
            let snapshots: BTreeMap<_, _> = all.iter().filter_map(latest).collect();
            (all, snapshots)
        })
        .await?;
        let (mut known, mut takeable) = (Vec::new(), Vec::new());
        // A worktree of a task that is gone is the default tenant's.
        let default = TenantId::default();
        for worktree in worktrees {
            let head = self.tasks.find_head(&TaskId::new(worktree.task.as_str())).await?;
            if head.as_ref().map_or(&default, |head| head.context.tenant()) != tenant {
                continue;
            }
            let latest = snapshots.get(&worktree.task);
            if !is_applied(&worktree, latest) && self.may_be_taken(head.as_ref()).await? {
                takeable.push(worktree.clone());
            }
            known.push((worktree, head));
        }
        let compared = self.worktrees.clone();
        let mut conflicts = blocking(move || compared.known_conflicts(&takeable)).await?;
        for (worktree, head) in known {
            let latest = snapshots.get(&worktree.task);
            let applied = is_applied(&worktree, latest);
            let rests = self.tasks.rest_of_worktree(&worktree).await?;
            let remaining = rests.zip(keep).map(|(rests, keep)| keep.saturating_sub(rests));
            let Worktree { task, tree, base, from, checkout, repository, created_ms, .. } =
                worktree;
            let conflicts = conflicts.remove(&task).unwrap_or_default();
            let task_id = TaskId::new(task);
            let first_line = match &head {
                Some(_) => self.first_line(&task_id).await?,
                None => None,
            };
            let parent_task_id = head.as_ref().and_then(|head| head.parent.clone());
            let (agent_id, state) =
                head.map(|head| (head.agent, head.state.name().to_owned())).unzip();
            listed.push(WorktreeInfo {
                task_id,
                agent_id,
                state,
                parent_task_id,
                path: tree,
                repository: checkout.unwrap_or(repository),
                base,
                from_branch: from,
                created_at: clock::at_ms(created_ms).unwrap_or_default(),
                kept_until: remaining.and_then(in_future),
                asked: first_line,
                changes: latest.map(|it| WorktreeSize {
                    files: it.files,
                    insertions: it.insertions,
                    deletions: it.deletions,
                }),
                applied,
                conflicts: conflicts.into_iter().map(conflict_with).collect(),
            });
        }
        Ok(listed)
    }

    /// True if somebody may take over the changes of a worktree: its task was not cancelled, and a
    /// flow that began it did not pick another one.
    async fn may_be_taken(&self, head: Option<&Head>) -> Result<bool, HubError> {
        let Some(head) = head else { return Ok(true) };
        if head.state == TaskState::Canceled {
            return Ok(false);
        }
        let Some(parent) = &head.parent else { return Ok(true) };
        let Some(parent) = self.tasks.stored(parent).await? else { return Ok(true) };
        if !parent.task.status.state.is_final() {
            return Ok(true);
        }
        let picked = metadata::text(&parent.task, WORKTREE_TASK);
        Ok(picked.is_none_or(|picked| picked == head.task.as_str()))
    }

    /// Removes the worktree of a task, and those of its children.
    async fn discard(&self, task: TaskId, force: bool) -> Result<Vec<WorktreeRemoved>, HubError> {
        let children = self.tasks.children(&task).await?;
        let all = std::iter::once(task.clone()).chain(children.into_iter().map(|it| it.task));
        let found: Vec<_> = all.filter_map(|it| self.worktrees.find(it.as_str()).ok()).collect();
        if found.is_empty() {
            return Err(WorktreeError::NotFound(task.to_string()).into());
        }
        // All of them first: a refusal removes none.
        for worktree in &found {
            self.require_over(worktree).await?;
            if !force {
                self.worktrees.require_complete(&worktree.task).await?;
            }
        }
        let mut removed = Vec::new();
        for worktree in found {
            self.worktrees.discard(&worktree.task, true).await?;
            let task_id = TaskId::new(worktree.task);
            removed.push(WorktreeRemoved { task_id, kept_as: None, trouble: None });
        }
        Ok(removed)
    }

    /// Removes worktrees whose tasks are over, and keeps their changes. A worktree of a task that
    /// is gone counts as one of a finished task.
    async fn prune(
        &self,
        older_than_ms: u64,
        force: bool,
    ) -> Result<Vec<WorktreeRemoved>, HubError> {
        let mut removed = Vec::new();
        for worktree in self.finished(older_than_ms).await? {
            let task_id = TaskId::new(worktree.task);
            let (result_ref, failure) = match self.worktrees.retire(task_id.as_str(), force).await {
                Ok(result_ref) => (result_ref, None),
                // Its task ended without changes, or somebody discarded it.
                Err(WorktreeError::NotFound(_)) => continue,
                Err(why) => (None, Some(why.to_string())),
            };
            let result = result_ref.as_ref().map(tracing::field::display);
            let why = failure.as_ref().map(tracing::field::display);
            tracing::info!(task = %task_id, kept_as = result, trouble = why, "a worktree was pruned");
            removed.push(WorktreeRemoved { task_id, kept_as: result_ref, trouble: failure });
        }
        Ok(removed)
    }

    /// Removes worktrees whose tasks are over with their changes, and the refs of earlier ones in
    /// their repositories and in that of `directory`.
    async fn forget(
        &self,
        older_than_ms: u64,
        force: bool,
        directory: Option<PathBuf>,
    ) -> Result<Vec<WorktreeRemoved>, HubError> {
        // First of all, so that its failure is reported before anything is removed.
        let mut forgotten = match directory {
            Some(directory) => self.forget_in(directory).await?,
            None => Vec::new(),
        };
        let (mut removed, mut repositories) = (Vec::new(), BTreeSet::new());
        for worktree in self.finished(older_than_ms).await? {
            let failure = match self.worktrees.discard(&worktree.task, force).await {
                Err(WorktreeError::NotFound(_)) => continue,
                discarded => discarded.err(),
            };
            repositories.insert(worktree.checkout.unwrap_or(worktree.repository));
            let (task_id, failure) = (TaskId::new(worktree.task), failure.map(|it| it.to_string()));
            removed.push(WorktreeRemoved { task_id, kept_as: None, trouble: failure });
        }
        for repository in repositories {
            match self.forget_in(repository.clone()).await {
                Ok(tasks) => forgotten.extend(tasks),
                // The repository may be gone, and its worktrees with it.
                Err(why) => {
                    let why = A2aError::from(why).message;
                    tracing::warn!(repository = %repository.display(), why, "cannot remove kept results");
                }
            }
        }
        let to_removed = |task| {
            let task_id = TaskId::new(task);
            WorktreeRemoved { task_id, kept_as: None, trouble: None }
        };
        removed.extend(forgotten.into_iter().map(to_removed));
        Ok(removed)
    }

    /// Worktrees of this age or older in which no task may work, oldest first.
    async fn finished(&self, older_than_ms: u64) -> Result<Vec<Worktree>, HubError> {
        let worktrees = self.worktrees.clone();
        let mut finished = Vec::new();
        for worktree in blocking(move || worktrees.list()).await? {
            let age = clock::now_ms().saturating_sub(worktree.created_ms);
            if age >= older_than_ms && self.tasks.rest_of_worktree(&worktree).await?.is_some() {
                finished.push(worktree);
            }
        }
        Ok(finished)
    }

    /// Removes the kept results of a repository; returns their tasks. Those that may belong to a
    /// worktree of another hub stay.
    async fn forget_in(&self, repository: PathBuf) -> Result<Vec<String>, HubError> {
        let mut tasks = Vec::new();
        for result in self.worktrees.retained_results(repository.clone()).await? {
            let id = TaskId::new(result.task.as_str());
            if !result.has_base || self.tasks.find_head(&id).await?.is_some() {
                tasks.push(result.task);
            }
        }
        self.worktrees.forget_results(repository.clone(), &tasks).await?;
        tracing::info!(repository = %repository.display(), ?tasks, "kept results were removed");
        Ok(tasks)
    }

    /// Refuses to remove files under an agent at work.
    async fn require_over(&self, worktree: &Worktree) -> Result<(), HubError> {
        if self.tasks.rest_of_worktree(worktree).await?.is_some() {
            return Ok(());
        }
        let task = &worktree.task;
        let why = format!(
            "task `{task}`, or another one that may work in its worktree, is not over; cancel it first: `a2a-hub task cancel {task}`"
        );
        Err(A2aError::new(ErrorKind::UnsupportedOperation, why).into())
    }

    /// Message of a commit with the changes of a task: the first line that the client wrote.
    async fn subject(&self, task: &TaskId) -> Result<String, HubError> {
        let line = self.first_line(task).await?.unwrap_or_else(|| "Changes".to_owned());
        Ok(format!("{line}\n\nTask: {task}"))
    }

    /// First line of the task's first message, shortened; none without a text.
    async fn first_line(&self, task: &TaskId) -> Result<Option<String>, HubError> {
        let stored = self.tasks.stored(task).await?;
        let text = stored.and_then(|stored| Some(stored.task.history.first()?.joined_text()));
        let text = text.unwrap_or_default();
        let line = text.lines().map(str::trim).find(|line| !line.is_empty());
        Ok(line.map(|line| line.chars().take(SUBJECT).collect()))
    }
}

/// True if a checkout got the latest known changes of a worktree.
fn is_applied(worktree: &Worktree, latest: Option<&WorktreeSnapshot>) -> bool {
    let applied = worktree.applied.last();
    applied.zip(latest).is_some_and(|(applied, latest)| applied.commit == latest.commit)
}

/// Result of a call that blocks on the disk.
async fn blocking<T: Send + 'static>(
    call: impl FnOnce() -> T + Send + 'static,
) -> Result<T, HubError> {
    let done = a2a_hub_process::run_blocking(call).await;
    done.map_err(|why| A2aError::new(ErrorKind::Internal, why.to_string()).into())
}

/// The time after `remaining`.
fn in_future(remaining: Duration) -> Option<String> {
    clock::at_ms(clock::now_ms().checked_add(u64::try_from(remaining.as_millis()).ok()?)?)
}

fn changes(snapshot: WorktreeSnapshot) -> WorktreeChanges {
    let WorktreeSnapshot { base, commits, files, insertions, deletions, dirty, .. } = snapshot;
    let omitted = omitted_parts(snapshot.left_out);
    WorktreeChanges { base, commits, files, insertions, deletions, dirty, left_out: omitted }
}

fn omitted_parts(omitted: Vec<Omission>) -> Vec<LeftOutPart> {
    let parts = omitted.into_iter();
    parts.map(|Omission { name, reason }| LeftOutPart { name, reason }).collect()
}

impl From<WorktreeError> for HubError {
    fn from(why: WorktreeError) -> Self {
        let kind = match &why {
            WorktreeError::Unsupported(_)
            | WorktreeError::Conflict { .. }
            | WorktreeError::Sensitive { .. }
            | WorktreeError::NotFound(_) => ErrorKind::UnsupportedOperation,
            WorktreeError::NoGit
            | WorktreeError::NoRepository(_)
            | WorktreeError::NoBase(_)
            | WorktreeError::Refused(_)
            | WorktreeError::Setup { .. }
            | WorktreeError::TooLarge { .. } => ErrorKind::InvalidParams,
            WorktreeError::Git { .. }
            | WorktreeError::TimedOut { .. }
            | WorktreeError::Start(_)
            | WorktreeError::Disk(_) => ErrorKind::Internal,
        };
        let details = if let WorktreeError::Conflict { paths, .. } = &why {
            json!({ "reason": "conflict", "paths": paths })
        } else if let WorktreeError::Sensitive { paths, .. } = &why {
            json!({ "reason": "consent", "paths": paths })
        } else if let WorktreeError::NotFound(_) = &why {
            json!({ "reason": "no_worktree" })
        } else {
            json!({ "reason": "worktree" })
        };
        Self::from(A2aError::new(kind, why.to_string()).with(details))
    }
}
