//! Taking over the changes of a worktree into the user's repository.

use crate::{
    Worktree, WorktreeError, Worktrees, blocking,
    git::{AS_PATCH, GitStep, INDEX_PACK, utf8},
    record::Folder,
    repository::Repository,
    sensitive,
    snapshot::{diff, hub_git},
};
use std::{
    collections::BTreeSet,
    ffi::OsStr,
    fs,
    os::unix::ffi::OsStrExt as _,
    path::{Path, PathBuf},
};

/// Largest patch that is applied to a checkout, in bytes.
const PATCH_LIMIT: usize = 256 << 20;

/// Place that receives the changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// The files of the checkout.
    Files,
    /// The files of the checkout, and its index.
    Index,
    /// A new commit on the branch of the checkout, with this message.
    Commit {
        /// Message of the commit.
        message: String,
    },
    /// A new branch with the agent's commits. The checkout is not touched.
    Branch(String),
}

/// Changes that were taken over.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Applied {
    /// Commit with the changes: of the agent for a branch, the new one for a commit.
    pub commit: Option<String>,
    /// Branch that was created.
    pub branch: Option<String>,
    /// Checkout whose files were changed.
    pub checkout: Option<PathBuf>,
    /// Changed files of the checkout.
    pub files: Vec<String>,
}

/// Result of a merge that touched nothing yet.
struct Merged {
    /// Tree with the present files of the checkout.
    ours: String,
    /// Tree with the files as they will be.
    result: String,
    changes: Vec<ChangedFile>,
}

/// One changed file.
struct ChangedFile {
    path: String,
    old: String,
    new: String,
}

impl Worktrees {
    /// Takes over the present changes of a task. The changes are merged with those of the checkout;
    /// a conflict leaves everything as it was. Without `accepts`, files that programs obey are
    /// refused. `to` is a directory of another checkout of the repository that
    /// receives the changes.
    ///
    /// # Errors
    /// [`WorktreeError::Conflict`], [`WorktreeError::Sensitive`], or
    /// [`WorktreeError::Refused`] with the rule. The files, the index, and the branches of the
    /// repository are then as before.
    pub async fn apply(
        &self,
        task: &str,
        target: Target,
        accepts: bool,
        to: Option<PathBuf>,
    ) -> Result<Applied, WorktreeError> {
        let _held = self.lock(task).await;
        let folder = self.folder(task)?;
        let (worktree, snapshot) = self.snapshot_held(&folder).await?;
        let worktree = match to {
            Some(to) => blocking(move || worktree.with_checkout_at(&to)).await??,
            None => worktree,
        };
        if snapshot.commit == worktree.base {
            return Err(WorktreeError::Refused(format!("task `{task}` changed no file")));
        }
        match target {
            Target::Branch(name) => {
                self.to_branch(&folder, &worktree, &snapshot.commit, name).await
            }
            Target::Files | Target::Index | Target::Commit { .. } => {
                self.to_checkout(&folder, &worktree, &snapshot.commit, target, accepts).await
            }
        }
    }

    /// Keeps the present changes of a task as `refs/a2a-hub/TASK/result` of the user's repository,
    /// and removes the worktree. Returns the ref; none if nothing was changed.
    ///
    /// # Errors
    /// The changes could not be kept. The worktree stays.
    pub async fn retire(&self, task: &str) -> Result<Option<String>, WorktreeError> {
        let held = self.lock(task).await;
        let folder = self.folder(task)?;
        let (worktree, snapshot) = self.snapshot_held(&folder).await?;
        if snapshot.commit == worktree.base {
            drop(held);
            return self.discard(task).await.map(|()| None);
        }
        self.import(&worktree, &snapshot.commit).await?;
        self.remove(folder).await?;
        Ok(Some(format!("refs/a2a-hub/{task}/result")))
    }

    async fn to_branch(
        &self,
        folder: &Folder,
        worktree: &Worktree,
        commit: &str,
        name: String,
    ) -> Result<Applied, WorktreeError> {
        let check = ["check-ref-format", "--branch", &name];
        let step = GitStep::on(&folder.git(), &check).accepting(1).accepting(128).accepting(129);
        if self.0.git.run(folder.path(), step).await?.code != 0 {
            return Err(WorktreeError::Refused(format!("`{name}` is no name of a branch")));
        }
        self.import(worktree, commit).await?;
        let full = format!("refs/heads/{name}");
        let zero = "0".repeat(commit.len());
        let step = self.user_git(worktree, &["update-ref", &full, commit, &zero]);
        self.0.git.run(folder.path(), step).await.map_err(|why| {
            why.refused_if(
                |said| said.contains("already exists"),
                |_| format!("the repository has a branch `{name}`; name another one"),
            )
        })?;
        let commit = Some(commit.to_owned());
        Ok(Applied { commit, branch: Some(name), ..Applied::default() })
    }

    async fn to_checkout(
        &self,
        folder: &Folder,
        worktree: &Worktree,
        commit: &str,
        target: Target,
        accepts: bool,
    ) -> Result<Applied, WorktreeError> {
        let Some(checkout) = &worktree.checkout else {
            return Err(WorktreeError::Refused(format!(
                "`{}` has no checkout; take a branch: `a2a-hub task apply {} --branch NAME`",
                worktree.repository.display(),
                worktree.task
            )));
        };
        let merged = self.merge(folder, worktree, checkout, commit).await?;
        if !accepts {
            let asks = merged.changes.iter().filter_map(|change| {
                let reason = sensitive::reason(&change.path, &change.old, &change.new)?;
                Some(format!("{} ({reason})", change.path))
            });
            let paths: Vec<_> = asks.collect();
            if !paths.is_empty() {
                return Err(WorktreeError::Sensitive { task: worktree.task.clone(), paths });
            }
        }
        if merged.changes.is_empty() {
            // The checkout has all of it.
            return Ok(Applied { checkout: Some(checkout.clone()), ..Applied::default() });
        }
        if let Target::Commit { .. } = &target {
            self.require_clean(folder, worktree, &merged).await?;
        }
        if target != Target::Files && worktree.git_dir.join("index.lock").exists() {
            return Err(WorktreeError::Refused(format!(
                "another git is at work on the index of `{}`; wait for it, or remove its `index.lock` if it was killed",
                checkout.display()
            )));
        }
        self.import(worktree, commit).await?;
        self.patch(folder, worktree, checkout, &merged).await?;
        let files: Vec<_> = merged.changes.into_iter().map(|change| change.path).collect();
        let mut made = None;
        if target != Target::Files {
            let paths: String = files.iter().map(|path| format!("{path}\0")).collect();
            let step = self.checkout_git(
                worktree,
                checkout,
                &["update-index", "--add", "--remove", "-z", "--stdin"],
            );
            self.0.git.run(folder.path(), step.with_input(paths)).await?;
        }
        if let Target::Commit { message } = target {
            made = Some(self.commit_index(folder, worktree, checkout, &message).await?);
        }
        Ok(Applied { commit: made, checkout: Some(checkout.clone()), files, branch: None })
    }

    /// Merges the changes with the present files of the checkout, in the hub's own git directory.
    async fn merge(
        &self,
        folder: &Folder,
        worktree: &Worktree,
        checkout: &Path,
        commit: &str,
    ) -> Result<Merged, WorktreeError> {
        let ours = self.present_files(folder, worktree, checkout, commit).await?;
        let head = self.user_git(worktree, &["rev-parse", "--verify", "--quiet", "HEAD^{commit}"]);
        let head = self.0.git.run(folder.path(), head).await?.text();
        let args = ["commit-tree", &ours, "-p", &head, "-m", "Files of the checkout"];
        let ours_commit = self.hub_git_text(folder, worktree, &args).await?;
        let args = [
            "merge-tree",
            "--write-tree",
            "--name-only",
            "--no-messages",
            "-z",
            &ours_commit,
            commit,
        ];
        let step = hub_git(folder, worktree, &args).writing([folder.path()]).accepting(1);
        let done = self.0.git.run(folder.path(), step).await?;
        let text = String::from_utf8_lossy(&done.stdout).into_owned();
        let mut parts = text.split('\0').filter(|part| !part.is_empty()).map(str::to_owned);
        let result = parts.next().unwrap_or_default();
        if done.code == 1 {
            let paths: BTreeSet<_> = parts.collect();
            let task = worktree.task.clone();
            return Err(WorktreeError::Conflict { task, paths: paths.into_iter().collect() });
        }
        let changes = self.changed_files(folder, worktree, &ours, &result).await?;
        Ok(Merged { ours, result, changes })
    }

    /// Tree with the present files of the checkout: those that it tracks, and those in the way of
    /// the task's changes. Neither the index nor the objects of the repository are changed.
    async fn present_files(
        &self,
        folder: &Folder,
        worktree: &Worktree,
        checkout: &Path,
        commit: &str,
    ) -> Result<String, WorktreeError> {
        let args = ["diff-tree", "-r", "-z", "--no-renames", "--name-only", &worktree.base, commit];
        let step = hub_git(folder, worktree, &args);
        let touched = self.0.git.run(folder.path(), step).await?.stdout;
        let index = folder.path().join("apply.index");
        let _ = fs::remove_file(&index);
        let (from, to) = (worktree.git_dir.join("index"), index.clone());
        match blocking(move || fs::copy(from, to)).await? {
            Err(why) if why.kind() != std::io::ErrorKind::NotFound => {
                return Err(WorktreeError::disk(why));
            }
            Ok(_) | Err(_) => {}
        }
        let objects = worktree.objects.iter().map(|store| utf8(store));
        let objects = objects.collect::<Result<Vec<_>, _>>()?.join(":");
        let own = folder.git().join("objects");
        let on = |args: &[&str]| {
            let step = GitStep::on(&worktree.git_dir, args).with_files(checkout);
            let step = step.reading([&worktree.repository]).writing([folder.path()]);
            let step = step.reading(&worktree.objects);
            let step = step.with_env("GIT_INDEX_FILE", utf8(&index)?);
            let step = step.with_env("GIT_OBJECT_DIRECTORY", utf8(&own)?);
            Ok::<_, WorktreeError>(step.with_env("GIT_ALTERNATE_OBJECT_DIRECTORIES", &objects))
        };
        self.0.git.run(folder.path(), on(&["add", "--update", "."])?).await?;
        let add = on(&["update-index", "--add", "-z", "--stdin"])?;
        let add = add.with_input(present(checkout, &touched));
        self.0.git.run(folder.path(), add).await?;
        let written = self.0.git.run(folder.path(), on(&["write-tree"])?).await;
        let _ = fs::remove_file(&index);
        match written {
            Ok(done) => Ok(done.text()),
            Err(WorktreeError::Git { said, .. }) if said.contains("unmerged") => {
                Err(WorktreeError::Refused(format!(
                    "`{}` is in the middle of a merge; finish it, or abort it (`git merge --abort`)",
                    checkout.display()
                )))
            }
            Err(why) => Err(why),
        }
    }

    /// Refuses a commit that would contain more than the task's changes.
    async fn require_clean(
        &self,
        folder: &Folder,
        worktree: &Worktree,
        merged: &Merged,
    ) -> Result<(), WorktreeError> {
        let args = ["diff-index", "--cached", "--quiet", "HEAD", "--"];
        let staged = self.user_git(worktree, &args).accepting(1);
        if self.0.git.run(folder.path(), staged).await?.code == 1 {
            return Err(WorktreeError::Refused(
                "the checkout has staged changes; commit or unstage them first, or leave `--commit` out"
                    .to_owned(),
            ));
        }
        let head = self.user_git(worktree, &["rev-parse", "--verify", "--quiet", "HEAD^{tree}"]);
        let head = self.0.git.run(folder.path(), head).await?.text();
        let own = self.changed_files(folder, worktree, &head, &merged.ours).await?;
        let own: BTreeSet<_> = own.into_iter().map(|change| change.path).collect();
        match merged.changes.iter().find(|change| own.contains(&change.path)) {
            Some(both) => Err(WorktreeError::Refused(format!(
                "you and the task both changed `{}`; commit your changes first, or leave `--commit` out",
                both.path
            ))),
            None => Ok(()),
        }
    }

    /// Changes the files of the checkout, all or none.
    async fn patch(
        &self,
        folder: &Folder,
        worktree: &Worktree,
        checkout: &Path,
        merged: &Merged,
    ) -> Result<(), WorktreeError> {
        let form = [AS_PATCH, &["--no-renames"]].concat();
        let step = diff(folder, worktree, (&merged.ours, &merged.result), &form);
        let step = step.at_most(PATCH_LIMIT);
        let patch = self.0.git.run(folder.path(), step).await?.stdout;
        let apply = ["apply", "--binary", "--whitespace=nowarn", "-"];
        let step = self.checkout_git(worktree, checkout, &apply).with_input(patch);
        self.0.git.run(folder.path(), step).await.map(drop).map_err(|why| {
            let checkout = checkout.display();
            why.refused_if(
                |_| true,
                |said| {
                    format!(
                        "`{checkout}` has files in the way, or changed meanwhile: {said}; nothing was changed"
                    )
                },
            )
        })
    }

    /// Commits the index of the checkout to its branch.
    async fn commit_index(
        &self,
        folder: &Folder,
        worktree: &Worktree,
        checkout: &Path,
        message: &str,
    ) -> Result<String, WorktreeError> {
        let author = self.author(&worktree.git_dir).await;
        let on = |args: &[&str]| self.checkout_git(worktree, checkout, args);
        let run = |step| self.0.git.run(folder.path(), step);
        let head = run(on(&["rev-parse", "--verify", "HEAD^{commit}"])).await?.text();
        let tree = run(on(&["write-tree"])).await?.text();
        let by = |mut step: GitStep| {
            if let Some((name, address)) = &author {
                for role in ["AUTHOR", "COMMITTER"] {
                    step = step.with_env(&format!("GIT_{role}_NAME"), name);
                    step = step.with_env(&format!("GIT_{role}_EMAIL"), address);
                }
            }
            step
        };
        let made = run(by(on(&["commit-tree", &tree, "-p", &head, "-m", message]))).await?.text();
        let log = format!("a2a-hub: apply task {}", worktree.task);
        run(by(on(&["update-ref", "-m", &log, "HEAD", &made, &head]))).await?;
        Ok(made)
    }

    /// Files that differ between two trees.
    async fn changed_files(
        &self,
        folder: &Folder,
        worktree: &Worktree,
        from: &str,
        to: &str,
    ) -> Result<Vec<ChangedFile>, WorktreeError> {
        let args = ["diff-tree", "-r", "-z", "--no-renames", from, to];
        let step = hub_git(folder, worktree, &args);
        changes(&self.0.git.run(folder.path(), step).await?.stdout)
    }

    /// Brings the commits into the user's repository: git hashes and checks each object anew.
    async fn import(&self, worktree: &Worktree, commit: &str) -> Result<(), WorktreeError> {
        let pack = self.pack(worktree, commit).await?;
        let step = self.user_git(worktree, INDEX_PACK).with_input(pack);
        let done = self.0.git.run(self.folder(&worktree.task)?.path(), step).await;
        done.map_err(|why| {
            let task = &worktree.task;
            why.refused_if(
                |_| true,
                |said| {
                    format!(
                        "git refuses what the task made: {said}; have the agent mend it, or read the changes: `a2a-hub task diff {task}`"
                    )
                },
            )
        })?;
        self.set_ref(worktree, "result", commit).await
    }

    /// A step on the git directory of the user's checkout.
    fn user_git(&self, worktree: &Worktree, args: &[&str]) -> GitStep {
        let step = GitStep::on(&worktree.git_dir, args);
        let step = step.writing([&worktree.repository, &worktree.git_dir]);
        step.reading(&worktree.objects)
    }

    /// A step on the user's checkout, which may change its files and index.
    fn checkout_git(&self, worktree: &Worktree, checkout: &Path, args: &[&str]) -> GitStep {
        self.user_git(worktree, args).with_files(checkout).writing([checkout])
    }
}

impl Worktree {
    /// The worktree with another checkout of its repository, in which `directory` lies. Blocks on
    /// the disk.
    fn with_checkout_at(self, directory: &Path) -> Result<Self, WorktreeError> {
        let shown = directory.display();
        let found = match directory.is_absolute() {
            true => Repository::find(directory)?,
            false => {
                let why =
                    format!("`{shown}` is not an absolute path; give the whole path of a checkout");
                return Err(WorktreeError::Refused(why));
            }
        };
        // A directory of an agent may claim to be a checkout, with a git directory that it wrote.
        let is_own = found.git_dir == found.common
            || found.git_dir.starts_with(found.common.join("worktrees"));
        if found.common != self.repository || !is_own {
            return Err(WorktreeError::Refused(format!(
                "`{shown}` is no checkout of `{}`, which the task changed; name one of it, as `git worktree list` shows them, or take \
                 a branch: `--branch NAME`",
                self.repository.display()
            )));
        }
        Ok(Self { checkout: found.checkout, git_dir: found.git_dir, ..self })
    }
}

/// Those of the paths, which are separated by NUL, that are files of the checkout. A path through a
/// link is none: git refuses to write there.
fn present(checkout: &Path, paths: &[u8]) -> Vec<u8> {
    let is_there = |path: &&[u8]| {
        let path = checkout.join(OsStr::from_bytes(path));
        let above = path.ancestors().skip(1).take_while(|above| *above != checkout);
        let kind = |path: &Path| fs::symlink_metadata(path).map(|meta| meta.file_type());
        let is_file = kind(&path).is_ok_and(|kind| kind.is_file() || kind.is_symlink());
        is_file && above.into_iter().all(|above| kind(above).is_ok_and(|kind| kind.is_dir()))
    };
    let paths = paths.split(|byte| *byte == 0).filter(|path| !path.is_empty());
    paths.filter(is_there).flat_map(|path| [path, &b"\0"[..]].concat()).collect()
}

/// Changes of `git diff-tree -r -z`: `:OLD NEW HASH HASH STATUS`, then the path.
fn changes(raw: &[u8]) -> Result<Vec<ChangedFile>, WorktreeError> {
    let text = std::str::from_utf8(raw).map_err(|_| {
        WorktreeError::Refused(
            "a changed file has a name that is not UTF-8; take a branch: `--branch NAME`"
                .to_owned(),
        )
    })?;
    let mut parts = text.split('\0');
    let mut found = Vec::new();
    while let (Some(modes), Some(path)) = (parts.next(), parts.next()) {
        let mut words = modes.trim_start_matches(':').split(' ').map(str::to_owned);
        let (old, new) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        found.push(ChangedFile { path: path.to_owned(), old, new });
    }
    Ok(found)
}
