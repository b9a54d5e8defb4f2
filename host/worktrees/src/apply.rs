//! Taking over the changes of a worktree into the user's repository.

mod chosen;
pub(crate) mod merge;
pub(crate) mod receiving;
pub(crate) mod sensitive;
pub(crate) mod transaction;

use crate::{
    AppliedResult, Worktree, WorktreeError, Worktrees,
    apply::merge::Merge,
    apply::receiving::{ReceivingCheckout, unchanged},
    apply::transaction::{
        ApplyJournal, OLD_INDEX, WriteFaults, digest_of, lock_mark, recover, remove_staging,
        restore_index,
    },
    blocking,
    create::checkout::create_new,
    git::HubRepository,
    listing::{SUBMODULE, now},
    reader::OpenDirectory,
    record::Folder,
    refs_of,
    repository::Repository,
    repository::packs::ObjectPack,
    repository::refs::{self, CheckoutHead, Expected, Lock, LogEntry, Refs},
    repository::settings::GitSettings,
    selection,
    snapshot::walk::plain_text,
    snapshot::{OpenSnapshot, walk::Omission},
};
use std::{
    io::{self, Write as _},
    path::{Path, PathBuf},
    time::UNIX_EPOCH,
};

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
    /// Parts of the worktree that are not among the changes.
    pub omissions: Vec<Omission>,
}

/// The index and the commit that a transaction makes, beside the files.
struct Completion {
    /// The new index, if it changes.
    index: Option<Vec<u8>>,
    /// Digest of the index that the new one was made from.
    old_index: String,
    /// The new commit, and what `HEAD` is at before it.
    commit: Option<(String, CheckoutHead)>,
    author: String,
    task: String,
}

impl Worktrees {
    /// Takes over the present changes of a task. The changes are merged with those of the checkout;
    /// all of them arrive, or the checkout is as before. Without `accepts`, files that programs
    /// obey are refused. `to` is a directory of another checkout of the repository that receives
    /// the changes.
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
        self.apply_files(task, target, accepts, to, &[]).await
    }

    /// Takes over the changes of some files, named by their paths or directories. The rest stays in
    /// the worktree, and can be applied later. Without paths, all changes are taken over.
    ///
    /// # Errors
    /// As [`Worktrees::apply`]; [`WorktreeError::Refused`] if a path is of no changed file.
    pub async fn apply_files(
        &self,
        task: &str,
        target: Target,
        accepts: bool,
        to: Option<PathBuf>,
        paths: &[String],
    ) -> Result<Applied, WorktreeError> {
        let _guard = self.lock(task).await;
        let folder = self.folder(task)?;
        let snapshot = self.snapshot_locked(&folder).await?;
        if snapshot.taken.commit == snapshot.worktree.base {
            return Err(WorktreeError::Refused(nothing_changed(task, &snapshot)));
        }
        let OpenSnapshot { worktree, repository, taken, .. } = snapshot;
        let of = worktree.clone();
        let user = blocking(move || match to {
            Some(to) => of.checkout_at(&to),
            None => of.open_repository(),
        });
        let user = user.await??;
        let omissions = taken.left_out.clone();
        let with_omissions = |applied: Applied| Applied { omissions, ..applied };
        if let Target::Branch(name) = target {
            let commit = match paths.is_empty() {
                true => taken.commit,
                false => {
                    let base = &worktree.base;
                    let all =
                        self.changed_between(&folder, &repository, base, &taken.commit).await?;
                    if let Some(name) = selection::unknown(&all, paths) {
                        return Err(selection::not_changed(task, name));
                    }
                    let files = selection::chosen(all, paths);
                    self.commit_of_files(&folder, &repository, base, files).await?
                }
            };
            let done = self.to_branch(&worktree, &user, &commit, name).await;
            return done.map(with_omissions);
        }
        let Some(checkout) = user.checkout.clone() else {
            return Err(WorktreeError::Refused(format!(
                "`{}` has no checkout; take a branch: `a2a-hub task apply {task} --branch NAME`",
                user.common.display()
            )));
        };
        // One apply after the other: each sees the files that the one before it left.
        let _checkout = self.lock_repository(&user.common).await;
        let (home, of, pending) = (self.0.home.clone(), user.clone(), folder.clone());
        let settings = blocking(move || {
            let settings = GitSettings::for_checkout(&home, &of.settings_paths());
            recover(&pending).map(|()| settings)
        });
        let settings = settings.await?.map_err(|why| {
            WorktreeError::Refused(format!(
                "an earlier apply was interrupted, and `{}` cannot be put back: {why}",
                checkout.display()
            ))
        })?;
        let receiving = ReceivingCheckout { user, checkout, settings };
        let done = self
            .to_checkout(
                (&folder, &worktree, &repository),
                receiving,
                (&taken.commit, paths),
                target,
                accepts,
            )
            .await;
        done.map(with_omissions)
    }

    /// Keeps the present changes of a task as `refs/a2a-hub/TASK/result` of the user's repository,
    /// and removes the worktree. Returns the ref; none if nothing was changed.
    ///
    /// # Errors
    /// The changes could not be kept, or without `force`, parts of the worktree are not in them.
    /// The worktree stays.
    pub async fn retire(&self, task: &str, force: bool) -> Result<Option<String>, WorktreeError> {
        let guard = self.lock(task).await;
        let folder = self.folder(task)?;
        let OpenSnapshot { worktree, taken, .. } = self.snapshot_locked(&folder).await?;
        if !force {
            taken.require_complete(task, "a2a-hub worktrees prune --force")?;
        }
        if taken.commit == worktree.base {
            drop(guard);
            return self.discard(task, true).await.map(|()| None);
        }
        let of = worktree.clone();
        let user = blocking(move || of.open_repository()).await??;
        self.send_objects(&worktree, &user, &taken.commit).await?;
        self.set_ref(&worktree, "result", &taken.commit).await?;
        self.remove(folder).await?;
        let [base, result] = refs_of(task);
        // The result keeps the base as well; that it is kept is what counts.
        if let Err(why) = self.remove_named_refs(user.common, vec![base]).await {
            tracing::warn!(task, %why, "cannot remove the base ref of a removed worktree");
        }
        Ok(Some(result))
    }

    async fn to_branch(
        &self,
        worktree: &Worktree,
        user: &Repository,
        commit: &str,
        name: String,
    ) -> Result<Applied, WorktreeError> {
        if !refs::is_branch_name(&name) {
            return Err(WorktreeError::Refused(format!("`{name}` is no name of a branch")));
        }
        self.send_objects(worktree, user, commit).await?;
        self.set_ref(worktree, "result", commit).await?;
        let _guard = self.lock_repository(&user.common).await;
        let (common, full, id) =
            (user.common.clone(), format!("refs/heads/{name}"), commit.to_owned());
        blocking(move || Refs::open(&common, &common)?.set(&full, &id, Expected::Absent, None))
            .await??;
        let commit = Some(commit.to_owned());
        Ok(Applied { commit, branch: Some(name), ..Applied::default() })
    }

    /// Copies the commits that the user's repository lacks into its store.
    async fn send_objects(
        &self,
        worktree: &Worktree,
        user: &Repository,
        commit: &str,
    ) -> Result<(), WorktreeError> {
        let pack = self.pack(worktree, commit, &[]).await?;
        let to = user.common.join("objects/pack");
        blocking(move || pack.copy_into(&to)).await?
    }

    async fn to_checkout(
        &self,
        (folder, worktree, repository): (&Folder, &Worktree, &HubRepository),
        receiving: ReceivingCheckout,
        (commit, paths): (&str, &[String]),
        target: Target,
        accepts: bool,
    ) -> Result<Applied, WorktreeError> {
        let task = &worktree.task;
        let merge = Merge { all: self, folder, worktree, repository, receiving: &receiving };
        let merged = merge.run(commit, paths).await?;
        let files = &merged.files;
        let checkout = receiving.checkout.clone();
        if let Some(submodule) =
            files.iter().find(|file| file.old_mode == SUBMODULE || file.new_mode == SUBMODULE)
        {
            return Err(WorktreeError::Refused(format!(
                "`{}` is a submodule, which is no file of this repository; take a branch: `a2a-hub task apply {task} --branch NAME`",
                plain_text(&submodule.path)
            )));
        }
        if !accepts {
            let asks = files.iter().filter_map(|file| {
                let reason = sensitive::reason(&file.path, file.old_mode, file.new_mode)?;
                Some(format!("{} ({reason})", plain_text(&file.path)))
            });
            let paths: Vec<_> = asks.collect();
            if !paths.is_empty() {
                return Err(WorktreeError::Sensitive { task: task.clone(), paths });
            }
        }
        let names: Vec<_> = files.iter().map(|file| plain_text(&file.path)).collect();
        let applied =
            Applied { checkout: Some(checkout.clone()), files: names, ..Applied::default() };
        if files.is_empty() {
            // The checkout has all of it.
            return Ok(applied);
        }
        let author = receiving.settings.author();
        let author_line = author.as_ref().map_or_else(
            || "a2a-hub <a2a-hub@localhost>".to_owned(),
            |(name, address)| format!("{name} <{address}>"),
        );
        let mut completion = Completion {
            index: None,
            old_index: merged.index_digest().to_owned(),
            commit: None,
            author: author_line,
            task: task.clone(),
        };
        let mut pack: Option<ObjectPack> = None;
        if target != Target::Files {
            completion.index = Some(merge.new_index(&merged).await?);
        }
        if let Target::Commit { message } = &target {
            let head = merge.require_clean(&merged).await?;
            let old = head.commit().unwrap_or_default().to_owned();
            let new = merge.commit(&old, message, author.as_ref()).await?;
            pack = Some(self.pack(worktree, &new, &[&old]).await?);
            completion.commit = Some((new, head));
        } else if completion.index.is_some() {
            // The index names merged contents, which the repository lacks.
            let staged = merge.commit_of_index().await?;
            pack = Some(self.pack(worktree, &staged, &[]).await?);
        }
        let (staging, changes) = merge.stage(&merged).await?;
        let (of, faults) = (folder.clone(), std::sync::Arc::clone(&self.0.faults));
        let (user, worktree, new) = (receiving.user, worktree.clone(), merged.result.clone());
        let record = Finish { worktree, commit: new, user, pack };
        let done = blocking(move || {
            let paths = (checkout, record.user.git_dir.clone(), record.user.common.clone());
            let prepared = ApplyJournal::prepare(paths, staging.clone(), changes);
            let done = prepared.and_then(|journal| record.run(journal, completion, &of, &faults));
            if done.is_err() && !of.path().join("apply.json").exists() {
                let _ = remove_staging(&staging);
            }
            done
        });
        let commit = done.await??;
        Ok(Applied { commit, ..applied })
    }
}

/// The steps of an apply that change the user's repository.
struct Finish {
    worktree: Worktree,
    /// Result that is applied.
    commit: String,
    user: Repository,
    /// Objects of the commit that is made, if one is.
    pack: Option<ObjectPack>,
}

impl Finish {
    /// Runs a transaction, and returns the new commit. After an error, everything is as before.
    fn run(
        mut self,
        mut journal: ApplyJournal,
        completion: Completion,
        folder: &Folder,
        faults: &WriteFaults,
    ) -> Result<Option<String>, WorktreeError> {
        let checkout = journal.checkout.clone();
        let checkout_path = checkout.display().to_string();
        let unwritable = |why| unchanged(&checkout, &why);
        journal.index = completion.index.as_ref().map(|index| digest_of(index));
        journal.commit = completion.commit.as_ref().map(|(commit, _)| commit.clone());
        faults.check().and_then(|()| journal.write(folder)).map_err(unwritable)?;
        let done = self.change(&journal, &completion, folder, faults);
        if let Err(why) = done {
            return Err(match take_back(&journal, folder) {
                Ok(()) => why,
                Err(stays) => WorktreeError::Refused(format!(
                    "{why}, and `{checkout_path}` could not be put back: {stays}; the old files are in `{}`",
                    journal.staging.display()
                )),
            });
        }
        journal.remove_empty_directories();
        if let Err(why) = journal.end(folder, false) {
            tracing::warn!(task = completion.task, %why, "cannot remove files of an apply from the git directory");
        }
        Ok(completion.commit.map(|(commit, _)| commit))
    }

    /// Takes the lock, and changes the files, the index and the branch.
    fn change(
        &mut self,
        journal: &ApplyJournal,
        completion: &Completion,
        folder: &Folder,
        faults: &WriteFaults,
    ) -> Result<(), WorktreeError> {
        let checkout = journal.checkout.clone();
        let checkout_path = checkout.display().to_string();
        let unwritable = |why| unchanged(&checkout, &why);
        let git_dir = OpenDirectory::open(&journal.git_dir).map_err(WorktreeError::disk)?;
        // Nobody else's git changes the index meanwhile.
        let mut lock = None;
        if completion.index.is_some() {
            let taken = faults.check().and_then(|()| Lock::acquire(&git_dir, "index"));
            let taken = taken.map_err(|why| {
                if why.kind() != io::ErrorKind::AlreadyExists {
                    return unwritable(why);
                }
                WorktreeError::Refused(format!(
                    "another git is at work on the index of `{checkout_path}`; wait for it, or remove its `index.lock` if it was killed; \
                     nothing was changed"
                ))
            })?;
            let taken = lock.insert(taken);
            let mark = lock_mark(&completion.task);
            faults.check().and_then(|()| taken.mark(&mark)).map_err(unwritable)?;
            // The index that was read must still be the one that is there.
            let now = git_dir.bytes("index", u64::MAX >> 1);
            let now = now
                .map_err(|why| unwritable(io::Error::other(why.to_string())))?
                .unwrap_or_default();
            if digest_of(&now) != completion.old_index {
                return Err(WorktreeError::Refused(
                    "the index was changed meanwhile; nothing was changed, do it again".to_owned(),
                ));
            }
            let save = || -> io::Result<()> {
                let staging = OpenDirectory::open(&journal.staging)?;
                create_new(&staging, Path::new(OLD_INDEX), 0o644)?.write_all(&now)
            };
            faults.check().and_then(|()| save()).map_err(unwritable)?;
        }
        if let Some(pack) = &self.pack {
            faults.check().map_err(unwritable)?;
            pack.copy_into(&self.user.common.join("objects/pack"))?;
        }
        journal.change_files(faults)?;
        self.complete(journal, completion, lock, folder, faults)
    }

    /// Changes the index and the branch, when the files are in place.
    fn complete(
        &mut self,
        journal: &ApplyJournal,
        completion: &Completion,
        lock: Option<Lock>,
        folder: &Folder,
        faults: &WriteFaults,
    ) -> Result<(), WorktreeError> {
        let disk = |why| unchanged(&journal.git_dir, &why);
        // The record first: if what follows fails, an older result counts again.
        let before = self.worktree.applied.clone();
        let (git_dir, commit) = (journal.git_dir.clone(), self.commit.clone());
        self.worktree.note_applied(AppliedResult { git_dir, commit });
        faults.check().and_then(|()| folder.write(&self.worktree)).map_err(disk)?;
        let done = complete_git(journal, completion, lock, faults);
        if done.is_err() {
            self.worktree.applied = before;
            folder.write(&self.worktree).map_err(disk)?;
        }
        done
    }
}

fn complete_git(
    journal: &ApplyJournal,
    completion: &Completion,
    lock: Option<Lock>,
    faults: &WriteFaults,
) -> Result<(), WorktreeError> {
    let disk = |why| unchanged(&journal.git_dir, &why);
    if let (Some(lock), Some(index)) = (lock, &completion.index) {
        faults.check().and_then(|()| lock.replace(index)).map_err(disk)?;
    }
    let Some((new, head)) = &completion.commit else { return Ok(()) };
    let refs = Refs::open(&journal.git_dir, &journal.common)?;
    let at = now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let message = format!("a2a-hub: apply task {}", completion.task);
    let log = LogEntry { by: &completion.author, at, message: &message };
    let old = head.commit().unwrap_or_default();
    let now = refs.head()?;
    if now != *head {
        return Err(WorktreeError::Refused(
            "`HEAD` was changed meanwhile; nothing was changed, do it again".to_owned(),
        ));
    }
    faults.check().map_err(disk)?;
    match head {
        CheckoutHead::Branch(name, _) => refs.set(name, new, Expected::Id(old), Some(&log))?,
        CheckoutHead::Detached(_) => refs.set_detached(new, old)?,
    }
    refs.log_head(old, new, &log);
    Ok(())
}

/// Takes a transaction back: first the index, then the files.
fn take_back(journal: &ApplyJournal, folder: &Folder) -> io::Result<()> {
    restore_index(journal, folder.task())?;
    let unrestored = journal.take_back()?;
    if let Some(first) = unrestored.first() {
        let path = first.display();
        return Err(io::Error::other(format!(
            "somebody changed a file meanwhile; its old content is in `{path}`"
        )));
    }
    journal.end(folder, false)
}

/// Text for a result without changes. It names what the result lacks.
fn nothing_changed(task: &str, snapshot: &OpenSnapshot) -> String {
    let omission = snapshot
        .taken
        .left_out
        .first()
        .map(|first| format!("; but `{}` {}", first.name, first.reason));
    format!("task `{task}` changed no file{}", omission.unwrap_or_default())
}

impl Worktree {
    /// Another checkout of the repository, in which `directory` lies. Blocks on the disk.
    fn checkout_at(&self, directory: &Path) -> Result<Repository, WorktreeError> {
        let shown = directory.display();
        if !directory.is_absolute() {
            let why =
                format!("`{shown}` is not an absolute path; give the whole path of a checkout");
            return Err(WorktreeError::Refused(why));
        }
        let found = Repository::find(directory, &self.bounds)?;
        if found.common != self.repository {
            return Err(WorktreeError::Refused(format!(
                "`{shown}` is no checkout of `{}`, which the task changed; name one of it, as `git worktree list` shows them, or take \
                 a branch: `--branch NAME`",
                self.repository.display()
            )));
        }
        Ok(found)
    }
}
