//! Early warning of conflicts: `git merge-tree` of one worktree's result with those of the other
//! open worktrees of its repository, before anybody applies one of them.
//!
//! Each worktree's folder has the result of its latest comparisons in the file `conflicts.json`.
//! Both sides of a pair may have compared it; the later comparison counts.
//!
//! Git reads two folders of agents here. So it works on neither git directory: merged objects go to
//! a temporary directory beside the folders, which also vanishes after a crash of the hub.

use crate::{
    Worktree, WorktreeError, Worktrees, blocking,
    git::{HubRepository, utf8},
    record::{Folder, remove_all},
    snapshot::walk::plain_text,
};
use serde::{Deserialize, Serialize};
use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
    time::Duration,
};
use tokio::time::timeout;

/// Most worktrees that one is compared with: the newest ones.
const MAX_COMPARED: usize = 16;

/// Time limit of all comparisons of one worktree: the end of a run waits for them.
const TIME_LIMIT: Duration = Duration::from_secs(10);

/// Most paths of one conflict: agents choose them.
const MAX_PATHS: usize = 10;

/// Largest list of paths that git may print, in bytes.
const LIST_LIMIT: usize = 8 << 20;

/// Name of the file with the comparisons.
const FILE: &str = "conflicts.json";

/// Files that the tasks of two worktrees changed so that git cannot merge them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorktreeConflict {
    /// Task of the other worktree.
    pub task: String,
    /// First paths, without characters that mislead a reader, each cut to 200 characters.
    pub paths: Vec<String>,
    /// Number of further paths.
    pub more: usize,
}

/// Comparisons of a worktree with others. A pair without a conflict has no paths.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Comparisons {
    /// Time of the comparisons, in milliseconds since 1970.
    at_ms: u64,
    pairs: Vec<WorktreeConflict>,
}

/// Result of a worktree: the commit of its latest snapshot.
struct ComparedWork {
    folder: Folder,
    worktree: Worktree,
    commit: String,
}

impl Worktrees {
    /// Compares the latest snapshot of a task's worktree with those of the other open worktrees of
    /// its repository and tenant: the newest 16, as far as 10 seconds suffice. Candidates that the
    /// same task began are to differ, and are left out. Returns the conflicts.
    ///
    /// # Errors
    /// The task has no worktree or snapshot, or the disk fails. A worktree that git cannot compare
    /// is left out.
    pub async fn find_conflicts(
        &self,
        task: &str,
        now_ms: u64,
    ) -> Result<Vec<WorktreeConflict>, WorktreeError> {
        let (all, id) = (self.clone(), task.to_owned());
        let (work, others) = blocking(move || all.compared_with(&id)).await??;
        let mut found = Comparisons { at_ms: now_ms, pairs: Vec::new() };
        if work.commit == work.worktree.base {
            let pair = |other: ComparedWork| conflict(&other, &[]);
            found.pairs = others.into_iter().map(pair).collect();
        } else {
            let scratch = Scratch::make(self.step_directory()?, task)?;
            let all = self.compare_all(&work, &others, &scratch, &mut found.pairs);
            if timeout(TIME_LIMIT, all).await.is_err() {
                let (compared, of) = (found.pairs.len(), others.len());
                tracing::warn!(
                    task,
                    compared,
                    of,
                    "conflict check timed out, some worktrees were not compared"
                );
            }
        }
        let (folder, text) = (work.folder, serde_json::to_vec(&found));
        let text = text.map_err(|why| WorktreeError::disk(why.into()))?;
        blocking(move || folder.replace(FILE, &text)).await?.map_err(WorktreeError::disk)?;
        found.pairs.retain(|pair| !pair.paths.is_empty());
        Ok(found.pairs)
    }

    /// Conflicts between these worktrees, as their latest comparisons found them, by task. Blocks
    /// on the disk.
    pub fn known_conflicts(&self, of: &[Worktree]) -> BTreeMap<String, Vec<WorktreeConflict>> {
        let mut latest = BTreeMap::<(String, String), (u64, WorktreeConflict)>::new();
        for worktree in of {
            let compared = self.folder(&worktree.task).ok().and_then(|folder| read(&folder));
            let Some(Comparisons { at_ms, pairs }) = compared else { continue };
            for pair in pairs {
                let mut names = [worktree.task.clone(), pair.task.clone()];
                names.sort();
                let [one, two] = names;
                let known = latest.entry((one, two)).or_insert_with(|| (at_ms, pair.clone()));
                if known.0 <= at_ms {
                    *known = (at_ms, pair);
                }
            }
        }
        let is_open = |task: &str| of.iter().any(|worktree| worktree.task == task);
        let mut found = BTreeMap::<String, Vec<WorktreeConflict>>::new();
        for ((one, two), (_, conflict)) in latest {
            if conflict.paths.is_empty() || !is_open(&one) || !is_open(&two) {
                continue;
            }
            for (task, other) in [(&one, &two), (&two, &one)] {
                let conflict = WorktreeConflict { task: other.clone(), ..conflict.clone() };
                found.entry(task.clone()).or_default().push(conflict);
            }
        }
        found
    }

    /// The worktree of a task, and those that it is compared with, newest first.
    fn compared_with(
        &self,
        task: &str,
    ) -> Result<(ComparedWork, Vec<ComparedWork>), WorktreeError> {
        let folder = self.folder(task)?;
        let work = self.result_of(folder.read()?)?;
        let mut others = Vec::new();
        for other in self.list().into_iter().rev() {
            if others.len() == MAX_COMPARED {
                break;
            }
            if !work.worktree.may_meet(&other) {
                continue;
            }
            match self.result_of(other) {
                Ok(other) if other.commit != other.worktree.base => others.push(other),
                // Nothing was changed there, or no snapshot was taken yet, or it is being removed.
                Ok(_) | Err(_) => {}
            }
        }
        Ok((work, others))
    }

    fn result_of(&self, worktree: Worktree) -> Result<ComparedWork, WorktreeError> {
        let folder = self.folder(&worktree.task)?;
        let commit = Self::latest_snapshot(&folder).map(|snapshot| snapshot.commit);
        let commit = commit.ok_or_else(|| WorktreeError::NotFound(worktree.task.clone()))?;
        Ok(ComparedWork { folder, worktree, commit })
    }

    async fn compare_all(
        &self,
        work: &ComparedWork,
        others: &[ComparedWork],
        scratch: &Scratch,
        found: &mut Vec<WorktreeConflict>,
    ) {
        for other in others {
            match self.compare(work, other, scratch).await {
                Ok(paths) => found.push(conflict(other, &paths)),
                Err(why) => {
                    let (task, other) = (&work.worktree.task, &other.worktree.task);
                    tracing::debug!(task, other, %why, "two worktrees cannot be compared for conflicts");
                }
            }
        }
    }

    /// Paths that git cannot merge.
    async fn compare(
        &self,
        work: &ComparedWork,
        other: &ComparedWork,
        scratch: &Scratch,
    ) -> Result<Vec<Vec<u8>>, WorktreeError> {
        // The base of one may conflict with the other's changes, whatever its own changes are.
        if work.worktree.base != other.worktree.base {
            let (ours, theirs) = (self.touched(work).await?, self.touched(other).await?);
            if !overlap(&ours, &theirs) {
                return Ok(Vec::new());
            }
        }
        let args = ["merge-tree", "--write-tree", "--name-only", "--no-messages", "-z"];
        let args = [&args[..], &[&work.commit, &other.commit]].concat();
        let stores =
            [&work.folder, &other.folder].map(|folder| quoted(&folder.git().join("objects")));
        let [one, two] = stores;
        let step = work.repository().step(&args).accepting(1).with_output_limit(LIST_LIMIT);
        let step = step.reading([&other.folder.git()]).reading(&other.worktree.stores);
        let step = step.writing(&scratch.0);
        let step = step.with_env("GIT_OBJECT_DIRECTORY", utf8(&scratch.0)?);
        let step = step.with_env("GIT_ALTERNATE_OBJECT_DIRECTORIES", &format!("{}:{}", one?, two?));
        let done = self.0.git.run(self.step_directory()?, step).await?;
        if done.code == 0 {
            return Ok(Vec::new());
        }
        // The tree comes first.
        let mut paths: Vec<_> = parts(&done.stdout).skip(1).map(<[u8]>::to_vec).collect();
        paths.sort();
        paths.dedup();
        Ok(paths)
    }

    /// Paths that a worktree changed since its base, sorted.
    async fn touched(&self, of: &ComparedWork) -> Result<Vec<Vec<u8>>, WorktreeError> {
        let base = &of.worktree.base;
        let args = ["diff-tree", "-r", "-z", "--no-renames", "--name-only", base, &of.commit];
        let step = of.repository().step(&args).with_output_limit(LIST_LIMIT);
        let listed = self.0.git.run(self.step_directory()?, step).await?.stdout;
        let mut paths: Vec<_> = parts(&listed).map(<[u8]>::to_vec).collect();
        paths.sort();
        Ok(paths)
    }
}

impl ComparedWork {
    fn repository(&self) -> HubRepository {
        HubRepository::at(self.folder.git(), &self.worktree.stores)
    }
}

impl Worktree {
    /// True if the changes of the two may be applied to the same repository, and each of their
    /// tasks may learn of the other.
    fn may_meet(&self, other: &Self) -> bool {
        let compete = self.owner.parent.is_some() && self.owner.parent == other.owner.parent;
        self.task != other.task
            && self.repository == other.repository
            && self.owner.tenant == other.owner.tenant
            && !other.is_unprepared
            && !compete
    }
}

/// Temporary directory of objects, removed when it is dropped.
struct Scratch(PathBuf);

impl Scratch {
    fn make(root: &Path, task: &str) -> Result<Self, WorktreeError> {
        // No task has such a name, and a start of the hub removes it.
        let path = root.join(format!(".conflicts-{task}"));
        remove_all(&path).and_then(|()| fs::create_dir(&path)).map_err(WorktreeError::disk)?;
        Ok(Self(path))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Err(why) = remove_all(&self.0)
            && why.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!(path = %self.0.display(), %why, "cannot remove objects of a comparison");
        }
    }
}

fn read(folder: &Folder) -> Option<Comparisons> {
    serde_json::from_slice(&fs::read(folder.path().join(FILE)).ok()?).ok()
}

fn conflict(other: &ComparedWork, paths: &[Vec<u8>]) -> WorktreeConflict {
    WorktreeConflict {
        task: other.worktree.task.clone(),
        paths: paths.iter().take(MAX_PATHS).map(|path| plain_text(path)).collect(),
        more: paths.len().saturating_sub(MAX_PATHS),
    }
}

/// Parts of a list that ends each by NUL.
fn parts(list: &[u8]) -> impl Iterator<Item = &[u8]> {
    list.split(|byte| *byte == 0).filter(|part| !part.is_empty())
}

/// True if both change a path, or one changes a file where the other has a directory. Both lists
/// are sorted.
fn overlap(ours: &[Vec<u8>], theirs: &[Vec<u8>]) -> bool {
    let meets = |paths: &[Vec<u8>], path: &[u8]| {
        let is_ancestor = |at: usize| {
            path.get(at) == Some(&b'/')
                && paths.binary_search_by(|it| (**it).cmp(&path[..at])).is_ok()
        };
        paths.binary_search_by(|it| (**it).cmp(path)).is_ok() || (0..path.len()).any(is_ancestor)
    };
    ours.iter().any(|path| meets(theirs, path)) || theirs.iter().any(|path| meets(ours, path))
}

/// A path in a list of directories, in which a colon separates (git(1)).
fn quoted(path: &Path) -> Result<String, WorktreeError> {
    Ok(format!("\"{}\"", utf8(path)?.replace('\\', "\\\\").replace('"', "\\\"")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_overlap_by_name_and_directory() {
        let list = |paths: &[&str]| -> Vec<Vec<u8>> {
            let mut list: Vec<_> = paths.iter().map(|path| path.as_bytes().to_vec()).collect();
            list.sort();
            list
        };
        let meet = |ours: &[&str], theirs: &[&str]| overlap(&list(ours), &list(theirs));
        assert!(!meet(&[], &["a"]) && !meet(&["a", "src/b"], &["b", "src/a"]));
        assert!(meet(&["x", "src/b"], &["a", "src/b"]));
        assert!(meet(&["src"], &["src/b/c"]) && meet(&["src/b/c"], &["src/b"]));
        assert!(!meet(&["src-x"], &["src/b"]) && !meet(&["sr"], &["src"]));
    }
}
