//! The checkout that receives changes: its state before an apply, and refusals of its disk.

use crate::{
    WorktreeError, reader::OpenDirectory, repository::Repository, repository::settings::GitSettings,
};
use std::{
    fs, io,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

/// Files in the git directory of a checkout while an operation of git is unfinished, with its name.
const UNFINISHED: &[(&str, &str)] = &[
    ("MERGE_HEAD", "merge"),
    ("CHERRY_PICK_HEAD", "cherry-pick"),
    ("REVERT_HEAD", "revert"),
    ("rebase-merge", "rebase"),
    ("rebase-apply", "rebase"),
];

/// A checkout that receives changes.
pub(crate) struct ReceivingCheckout {
    pub(crate) user: Repository,
    pub(crate) checkout: PathBuf,
    pub(crate) settings: GitSettings,
}

/// Refusal of a change that the disk refused, after which everything is as before.
pub(crate) fn unchanged(path: &Path, why: &io::Error) -> WorktreeError {
    let path = path.display();
    WorktreeError::Refused(format!("`{path}` cannot be changed: {why}; nothing was changed"))
}

/// Refuses a checkout in which an operation of git is unfinished.
pub(crate) fn require_finished(user: &Repository, checkout: &Path) -> Result<(), WorktreeError> {
    let git_dir = OpenDirectory::open(&user.git_dir).map_err(WorktreeError::disk)?;
    let is_there = |name: &str| git_dir.stat(name).is_ok_and(|found| found.is_some());
    match UNFINISHED.iter().find(|(name, _)| is_there(name)) {
        None => Ok(()),
        Some((_, operation)) => Err(WorktreeError::Refused(format!(
            "`{}` is in the middle of a {operation}; finish it, or abort it (`git {operation} --abort`)",
            checkout.display()
        ))),
    }
}

/// Directory for the new files of an apply, on the file system of the checkout.
pub(crate) fn staging_directory(
    user: &Repository,
    checkout: &Path,
    task: &str,
) -> Result<PathBuf, WorktreeError> {
    let device =
        |path: &Path| fs::metadata(path).map(|meta| meta.dev()).map_err(WorktreeError::disk);
    let parent = if device(&user.git_dir)? == device(checkout)? { &user.git_dir } else { checkout };
    Ok(parent.join(".a2a-hub-apply").join(task))
}
