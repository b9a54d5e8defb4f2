//! Parameters of the methods for worktrees.

use crate::{
    model::{
        error::A2aError,
        operation::{ApplyTo, Operation, WorktreeRequest},
    },
    v03::params::{read, task_id},
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use std::path::PathBuf;

/// Default age of a worktree that is removed: seven days, in milliseconds.
const DEFAULT_AGE_MS: u64 = 7 * 24 * 60 * 60 * 1_000;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DiffParams {
    /// Id of the task.
    task_id: String,
    /// True for a table of files in place of a patch; false by default.
    #[serde(default)]
    summary: bool,
    /// Files or directories from the top of the repository; by default all.
    #[serde(default)]
    paths: Vec<String>,
    /// True for what changed since the caller's last review of the task, with its comments that are
    /// outdated; false by default.
    #[serde(default)]
    since_review: bool,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ApplyParams {
    /// Id of the task.
    task_id: String,
    /// Place that receives the changes: `files` (the default), `index` or `commit` of the checkout,
    /// or an object with the name of a new `branch`.
    #[serde(default)]
    to: ApplyTo,
    /// Message of the commit; by default the first line of the task's message.
    message: Option<String>,
    /// True to take over files that programs obey, too, such as those of editors and of continuous
    /// integration; false by default.
    #[serde(default)]
    accepts_all: bool,
    /// Absolute path of another checkout of the repository, which receives the changes; by default
    /// the one that the worktree was made of. Not with a new branch.
    checkout: Option<PathBuf>,
    /// Files or directories from the top of the repository whose changes are taken over; by default
    /// all. Both names of a renamed file mean the whole renaming.
    #[serde(default)]
    paths: Vec<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DiscardParams {
    /// Id of the task.
    task_id: String,
    /// True to remove also what no result has; false by default.
    #[serde(default)]
    force: bool,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PruneParams {
    /// Age in milliseconds from which on a worktree is removed; seven days by default.
    older_than_ms: Option<u64>,
    /// True to remove also what no result has; false by default.
    #[serde(default)]
    force: bool,
    /// True to keep no changes as refs, and to remove the refs of earlier worktrees from the same
    /// repositories; false by default.
    #[serde(default)]
    forget: bool,
    /// Directory of a repository from which `forget` removes such refs, too.
    directory: Option<PathBuf>,
}

/// Most files and directories that a request names.
const MAX_PATHS: usize = 1_000;

/// Checks the form of the paths of changed files. Paths are compared with those of the changes and
/// never opened, so this only tells what is wrong.
fn changed_paths(paths: Vec<String>) -> Result<Vec<String>, A2aError> {
    if paths.len() > MAX_PATHS {
        let why = format!("may name at most {MAX_PATHS} files; name their directories");
        return Err(A2aError::invalid("paths", why));
    }
    let leads_out = |path: &String| {
        path.is_empty() || path.starts_with('/') || path.split('/').any(|part| part == "..")
    };
    match paths.iter().position(leads_out) {
        None => Ok(paths),
        Some(at) => {
            let why = "must be the path of a changed file or directory from the top of the repository, as `hub/tasks/diff` shows \
                       it, without `..`";
            Err(A2aError::invalid(&format!("paths[{at}]"), why))
        }
    }
}

/// Reads the parameters of `hub/tasks/diff`.
pub(crate) fn diff(params: Value) -> Result<Operation, A2aError> {
    let DiffParams { task_id: id, summary, paths, since_review } = read(params)?;
    let task = task_id("taskId", id)?;
    let paths = changed_paths(paths)?;
    Ok(Operation::Worktree(WorktreeRequest::Diff { task, summary, paths, since_review }))
}

/// Reads the parameters of `hub/tasks/apply`.
pub(crate) fn apply(params: Value) -> Result<Operation, A2aError> {
    let ApplyParams { task_id: id, to, message, accepts_all, checkout, paths } = read(params)?;
    let paths = changed_paths(paths)?;
    let task = task_id("taskId", id)?;
    if checkout.is_some() && matches!(to, ApplyTo::Branch(_)) {
        let why = "a new branch leaves all checkouts as they are; leave one of `checkout` and `to.branch` out";
        return Err(A2aError::invalid("checkout", why));
    }
    let request = WorktreeRequest::Apply { task, to, message, accepts_all, checkout, paths };
    Ok(Operation::Worktree(request))
}

/// Reads the parameters of `hub/tasks/discard`.
pub(crate) fn discard(params: Value) -> Result<Operation, A2aError> {
    let DiscardParams { task_id: id, force } = read(params)?;
    Ok(Operation::Worktree(WorktreeRequest::Discard { task: task_id("taskId", id)?, force }))
}

/// Reads the parameters of `hub/worktrees/prune`.
pub(crate) fn prune(params: Value) -> Result<Operation, A2aError> {
    let PruneParams { older_than_ms, force, forget, directory } = read(params)?;
    if directory.is_some() && !forget {
        let why = "only `forget` removes something from a repository; set it as well";
        return Err(A2aError::invalid("directory", why));
    }
    let older_than_ms = older_than_ms.unwrap_or(DEFAULT_AGE_MS);
    Ok(Operation::Worktree(WorktreeRequest::Prune { older_than_ms, force, forget, directory }))
}
