//! Snapshots: the present files of a worktree as a commit of the hub's own git directory.

use crate::{
    Worktree, WorktreeError, Worktrees, blocking,
    git::{AS_PATCH, GitStep},
    head::head_of,
    record::Folder,
};
use serde::Serialize;

/// Largest pack of a worktree's commits, in bytes.
const PACK_LIMIT: usize = 512 << 20;

/// Changes of a worktree since its base.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WorktreeSnapshot {
    /// Commit with the present files.
    pub commit: String,
    /// Commit that the work started from.
    pub base: String,
    /// Number of commits that the agent made.
    pub commits: u64,
    /// Number of changed files.
    pub files: u64,
    /// Number of added lines, without binary files.
    pub insertions: u64,
    /// Number of removed lines, without binary files.
    pub deletions: u64,
    /// True if files differ from the agent's last commit.
    pub dirty: bool,
}

/// Text of the changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diff {
    /// Changes as counted.
    pub snapshot: WorktreeSnapshot,
    /// A patch that `git apply` takes, with binary files; or a table of files.
    pub text: String,
}

impl Worktrees {
    /// Takes a snapshot of the present files, without those that the repository ignores. The agent
    /// may be at work meanwhile.
    ///
    /// # Errors
    /// The task has no worktree, or git or the disk fails.
    pub async fn snapshot(&self, task: &str) -> Result<WorktreeSnapshot, WorktreeError> {
        let _held = self.lock(task).await;
        self.snapshot_held(&self.folder(task)?).await.map(|(_, snapshot)| snapshot)
    }

    /// Present changes as a patch of at most `limit` bytes, or as a table of files.
    ///
    /// # Errors
    /// As [`Worktrees::snapshot`]; [`WorktreeError::TooLarge`] if the patch is larger.
    pub async fn diff(
        &self,
        task: &str,
        as_table: bool,
        limit: usize,
    ) -> Result<Diff, WorktreeError> {
        let _held = self.lock(task).await;
        let folder = self.folder(task)?;
        let (worktree, snapshot) = self.snapshot_held(&folder).await?;
        let form = if as_table { &["--stat=100"] } else { AS_PATCH };
        let step = diff(&folder, &worktree, (&worktree.base, &snapshot.commit), form);
        let step = step.at_most(limit);
        let text = self.0.git.run(folder.path(), step).await?.stdout;
        Ok(Diff { snapshot, text: String::from_utf8_lossy(&text).into_owned() })
    }

    pub(crate) async fn snapshot_held(
        &self,
        folder: &Folder,
    ) -> Result<(Worktree, WorktreeSnapshot), WorktreeError> {
        let worktree = folder.read()?;
        let tree = folder.tree();
        let head = blocking(move || head_of(&tree)).await?;
        let (parent, commits) = self.last_commit(folder, &worktree, head).await?;
        let step = hub_git(folder, &worktree, &["add", "--all", "--ignore-errors", "."]);
        let step = step.with_files(&folder.tree()).writing([folder.path()]).accepting(1);
        self.0.git.run(folder.path(), step).await?;
        let written = self.hub_git_text(folder, &worktree, &["write-tree"]).await?;
        let of_parent = format!("{parent}^{{tree}}");
        let before = self.hub_git_text(folder, &worktree, &["rev-parse", &of_parent]).await?;
        let dirty = written != before;
        let commit = if dirty {
            let message = format!("Work of task {} that was not committed", worktree.task);
            let args = ["commit-tree", &written, "-p", &parent, "-m", &message];
            self.hub_git_text(folder, &worktree, &args).await?
        } else {
            parent
        };
        self.hub_git_text(folder, &worktree, &["update-ref", "refs/heads/result", &commit]).await?;
        let range = (worktree.base.as_str(), commit.as_str());
        let counted = diff(folder, &worktree, range, &["--numstat", "-z", "--no-renames"]);
        let counted = self.0.git.run(folder.path(), counted).await?.stdout;
        let (files, insertions, deletions) = totals(&counted);
        let base = worktree.base.clone();
        let snapshot =
            WorktreeSnapshot { commit, base, commits, files, insertions, deletions, dirty };
        Ok((worktree, snapshot))
    }

    /// The agent's last commit, and how many it made; the base if its repository has no other, or
    /// none that follows the base.
    async fn last_commit(
        &self,
        folder: &Folder,
        worktree: &Worktree,
        head: Option<String>,
    ) -> Result<(String, u64), WorktreeError> {
        let base = &worktree.base;
        let Some(head) = head.filter(|head| head != base && head.len() == base.len()) else {
            return Ok((base.clone(), 0));
        };
        // The objects of the agent may be broken. Its files count all the same.
        let args = ["merge-base", "--is-ancestor", base, &head];
        let step = hub_git(folder, worktree, &args).accepting(1).accepting(128);
        if self.0.git.run(folder.path(), step).await?.code != 0 {
            return Ok((base.clone(), 0));
        }
        let range = format!("{base}..{head}");
        let count = self.hub_git_text(folder, worktree, &["rev-list", "--count", &range]).await?;
        Ok((head, count.parse().unwrap_or_default()))
    }

    /// Runs a step on the hub's git directory, and returns its text.
    pub(crate) async fn hub_git_text(
        &self,
        folder: &Folder,
        worktree: &Worktree,
        args: &[&str],
    ) -> Result<String, WorktreeError> {
        let step = hub_git(folder, worktree, args).writing([folder.path()]);
        Ok(self.0.git.run(folder.path(), step).await?.text())
    }

    /// Pack with the commits of `commit` that the user's repository lacks.
    pub(crate) async fn pack(
        &self,
        worktree: &Worktree,
        commit: &str,
    ) -> Result<Vec<u8>, WorktreeError> {
        let folder = self.folder(&worktree.task)?;
        let args = ["pack-objects", "--revs", "--stdout", "--thin", "-q"];
        let step = hub_git(&folder, worktree, &args).at_most(PACK_LIMIT);
        let step = step.with_input(format!("{commit}\n^{}\n", worktree.pinned));
        Ok(self.0.git.run(folder.path(), step).await?.stdout)
    }
}

/// A step on the hub's own git directory, which reads it and the user's objects.
pub(crate) fn hub_git(folder: &Folder, worktree: &Worktree, args: &[&str]) -> GitStep {
    let step = GitStep::on(&folder.git(), args);
    step.reading([folder.path()]).reading(&worktree.objects)
}

/// The changes between two commits or trees.
pub(crate) fn diff(
    folder: &Folder,
    worktree: &Worktree,
    (from, to): (&str, &str),
    form: &[&str],
) -> GitStep {
    let fixed = ["diff", "--no-ext-diff", "--no-textconv", "--no-color"];
    hub_git(folder, worktree, &[&fixed[..], form, &[from, to, "--"]].concat())
}

/// Files, added and removed lines of `git diff --numstat -z`.
fn totals(numstat: &[u8]) -> (u64, u64, u64) {
    let text = String::from_utf8_lossy(numstat);
    let lines = text.split('\0').filter(|line| !line.is_empty());
    lines.fold((0, 0, 0), |(files, added, removed), line| {
        let mut parts = line.split('\t');
        let mut number = || parts.next().and_then(|it| it.parse::<u64>().ok()).unwrap_or(0);
        (files + 1, added + number(), removed + number())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_are_read_from_numstat() {
        assert_eq!(totals(b""), (0, 0, 0));
        assert_eq!(totals(b"3\t1\ta\0-\t-\tb.png\0"), (2, 3, 1));
        assert_eq!(totals(b"10\t0\ta\tb\nc\0"), (1, 10, 0));
    }
}
