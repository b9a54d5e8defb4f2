//! Merge of a task's changes with the present files of a checkout, in the hub's own repository.
//! Nothing of the checkout is changed here.
//!
//! The base of the merge is the hub's: the commit that the task started from, or a result that the
//! checkout got before. The agent's history has no say in it.

use crate::{
    Worktree, WorktreeError, Worktrees,
    apply::receiving::{ReceivingCheckout, require_finished, staging_directory, unchanged},
    apply::transaction::{
        FileState, PresentState, StagedChange, digest_of, new_name, remove_staging, state_of,
    },
    blocking,
    create::checkout::create_new,
    git::{GitStep, HubRepository},
    listing::{EXECUTABLE, FILE, LINK, ListedFile, Listing, write_atomic},
    reader::{OpenDirectory, as_path},
    record::Folder,
    repository::Repository,
    repository::refs::{CheckoutHead, Refs, make_directories},
    snapshot::import_stream::ImportStream,
    snapshot::line_ends::{Attributes, Conversion},
    snapshot::walk::{listed, plain_text},
};
use rustix::fs::{AtFlags, unlinkat};
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    io::{self, Write as _},
    path::{Path, PathBuf},
};
use tokio::sync::mpsc;

/// Largest index of a checkout, in bytes.
const INDEX_LIMIT: u64 = 1 << 30;

/// Copy of the checkout's index, in the hub's repository.
const INDEX: &str = "apply.index";

/// Largest file of a checkout that is merged, in bytes.
const FILE_LIMIT: u64 = 1 << 30;

/// Largest list of files that git may print, in bytes.
const LIST_LIMIT: usize = 512 << 20;

/// Most bytes of old contents that are read for line ends.
const OLD_LIMIT: u64 = 1 << 30;

/// Most times that a merge is done again because it reaches files that were not read yet.
const MAX_ROUNDS: usize = 8;

/// Most parts of a stream between the disk and git.
const QUEUE: usize = 8;

/// A merge of one result into one checkout.
pub(crate) struct Merge<'m> {
    pub(crate) all: &'m Worktrees,
    pub(crate) folder: &'m Folder,
    pub(crate) worktree: &'m Worktree,
    pub(crate) repository: &'m HubRepository,
    pub(crate) receiving: &'m ReceivingCheckout,
}

/// A file that the merge changes. A mode of 0 stands for no file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MergedFile {
    pub(crate) path: Vec<u8>,
    pub(crate) old_mode: u32,
    pub(crate) new_mode: u32,
    old_id: String,
    new_id: String,
}

/// Result of a merge.
pub(crate) struct MergedChanges {
    pub(crate) files: Vec<MergedFile>,
    /// Result that was merged: that of the task, or one with the chosen files alone.
    pub(crate) result: String,
    /// Files of the checkout that were read.
    present: BTreeMap<Vec<u8>, Option<FileState>>,
    index: CheckoutIndex,
}

/// Content of the index of a checkout.
#[derive(Clone, Debug)]
struct CheckoutIndex {
    tree: String,
    /// SHA-256 of the file in hex.
    digest: String,
    files: Listing,
    /// Files that a sparse checkout does not have.
    sparse: BTreeSet<Vec<u8>>,
}

impl MergedChanges {
    /// Digest of the index of the checkout; that of nothing if it has none.
    pub(crate) fn index_digest(&self) -> &str {
        &self.index.digest
    }
}

impl Merge<'_> {
    /// Merges a result, or the changes of the named files in it.
    pub(crate) async fn run(
        &self,
        commit: &str,
        names: &[String],
    ) -> Result<MergedChanges, WorktreeError> {
        self.require_changed(commit, names).await?;
        let index = self.read_index().await?;
        let base = &self.worktree.base;
        let (result, wanted) = self.result_on(base, commit, names).await?;
        let (mut conflict, mut partial) = (None, Vec::new());
        for applied in self.worktree.applied_to(&self.receiving.user.git_dir) {
            let (later, files) = self.result_on(applied, commit, names).await?;
            // A result that was applied and taken back is applied once more, from an earlier base.
            if self.tree_of(applied).await? == self.tree_of(&later).await? {
                continue;
            }
            // It has some of the named files, and the user may have taken them back.
            if !files.is_superset(&wanted) {
                partial.push((applied, later));
                continue;
            }
            match self.run_from(applied, &later, &index).await {
                // Somebody took that result back: an earlier one, or the task's base, may fit.
                Err(why @ WorktreeError::Conflict { .. }) => conflict = Some(why),
                merged => return merged,
            }
        }
        if let Some(why) = conflict.filter(|_| !names.is_empty() && wanted.is_empty()) {
            // The files are as before the task, which the checkout cannot become without a merge.
            return Err(why);
        }
        let merged = self.run_from(base, &result, &index).await;
        if matches!(merged, Err(WorktreeError::Conflict { .. })) {
            for (applied, later) in partial {
                if let Ok(merged) = self.run_from(applied, &later, &index).await {
                    return Ok(merged);
                }
            }
        }
        merged
    }

    async fn run_from(
        &self,
        base: &str,
        commit: &str,
        index: &CheckoutIndex,
    ) -> Result<MergedChanges, WorktreeError> {
        let args = ["diff-tree", "-r", "-z", "--no-renames", "--name-only", base, commit];
        let step = self.repository.step(&args).with_output_limit(LIST_LIMIT);
        let listed = self.git(step).await?.stdout;
        let mut touched: BTreeSet<Vec<u8>> = parts(&listed).map(<[u8]>::to_vec).collect();
        let (base_tree, their_tree) = (self.tree_of(base).await?, self.tree_of(commit).await?);
        for _ in 0..MAX_ROUNDS {
            let old = self.old_contents(&touched, index).await?;
            let (present, ids) =
                self.import_sides(&touched, index, old, &base_tree, &their_tree).await?;
            let [_, ours, theirs] = &ids[..] else {
                return Err(WorktreeError::NotFound(self.worktree.task.clone()));
            };
            let result = self.merge_trees(ours, theirs).await?;
            let step =
                self.repository.step(&["diff-tree", "-r", "-z", "--no-renames", ours, &result]);
            let files = merged_files(&self.git(step.with_output_limit(LIST_LIMIT)).await?.stdout)?;
            let unread: Vec<_> =
                files.iter().filter(|file| !touched.contains(&file.path)).collect();
            if unread.is_empty() {
                let (result, index) = (commit.to_owned(), index.clone());
                return Ok(MergedChanges { files, result, present, index });
            }
            touched.extend(unread.into_iter().map(|file| file.path.clone()));
        }
        Err(WorktreeError::Refused(
            "the changes reach more files each time that they are merged; take a branch: `--branch NAME`".to_owned(),
        ))
    }

    /// Copies the index of the checkout, and reads it.
    async fn read_index(&self) -> Result<CheckoutIndex, WorktreeError> {
        let (user, to) = (self.receiving.user.clone(), self.repository.path().to_owned());
        let checkout = self.receiving.checkout.clone();
        let shown = checkout.display().to_string();
        let digest = blocking(move || copy_index(&user, &to)).await??;
        let args = ["ls-files", "--stage", "-t", "-z"];
        let listed = self.git(self.on_index(&args).with_output_limit(LIST_LIMIT)).await?.stdout;
        let (files, sparse) = staged_files(&listed).ok_or_else(|| {
            WorktreeError::Refused(format!(
                "`{shown}` is in the middle of a merge; finish it, or abort it (`git merge --abort`)"
            ))
        })?;
        let tree = self.git(self.on_index(&["write-tree"]).writing_repository()).await?.text();
        Ok(CheckoutIndex { tree, digest, files, sparse })
    }

    /// A step with the copy of the index.
    fn on_index(&self, args: &[&str]) -> GitStep {
        let index = self.repository.path().join(INDEX).display().to_string();
        self.repository.step(args).with_env("GIT_INDEX_FILE", &index)
    }

    pub(crate) async fn git(&self, step: GitStep) -> Result<crate::git::GitOutput, WorktreeError> {
        self.all.0.git.run(self.folder.path(), step).await
    }

    /// Contents in the index of those files for whose line ends they count.
    async fn old_contents(
        &self,
        touched: &BTreeSet<Vec<u8>>,
        index: &CheckoutIndex,
    ) -> Result<BTreeMap<Vec<u8>, Vec<u8>>, WorktreeError> {
        let (receiving, touched) = (self.receiving.reader(), touched.clone());
        let staged = index.files.clone();
        let found = blocking(move || {
            let (top, info) = receiving.open()?;
            let mut attributes = Attributes::new(&top, &info, Some(&receiving.settings));
            let mut found = Vec::new();
            for path in &touched {
                let Some(file) = staged.get(path) else { continue };
                let conversion = attributes.conversion(path);
                if !conversion.is_guessed() {
                    continue;
                }
                if let PresentState::File { mode, bytes } =
                    PresentState::read(&top, path, FILE_LIMIT)?
                    && mode != LINK
                    && conversion.needs_old(&bytes)
                {
                    found.push((path.clone(), file.id.clone()));
                }
            }
            Ok::<_, WorktreeError>(found)
        });
        let (paths, ids): (Vec<_>, Vec<_>) = found.await??.into_iter().unzip();
        let contents =
            self.all.contents(self.folder.path(), self.repository, &ids, OLD_LIMIT).await?;
        Ok(paths.into_iter().zip(contents).collect())
    }

    /// Makes commits of the base, of the checkout's present files, and of the result; the base is
    /// the parent of the others. Returns the files that were read, and the commits.
    async fn import_sides(
        &self,
        touched: &BTreeSet<Vec<u8>>,
        index: &CheckoutIndex,
        old: BTreeMap<Vec<u8>, Vec<u8>>,
        base_tree: &str,
        their_tree: &str,
    ) -> Result<(BTreeMap<Vec<u8>, Option<FileState>>, Vec<String>), WorktreeError> {
        let (sender, receiver) = mpsc::channel(QUEUE);
        let (receiving, touched, index) = (self.receiving.reader(), touched.clone(), index.clone());
        let (base_tree, their_tree) = (base_tree.to_owned(), their_tree.to_owned());
        let task = self.worktree.task.clone();
        let send = blocking(move || {
            let (top, info) = receiving.open()?;
            let mut attributes = Attributes::new(&top, &info, Some(&receiving.settings));
            let mut stream = ImportStream::new(sender);
            stream.commit("refs/hub/base", 1, "base", None);
            stream.root_tree(&base_tree);
            stream.commit("refs/hub/theirs", 3, "theirs", Some(":1"));
            stream.root_tree(&their_tree);
            stream.commit("refs/hub/ours", 2, "ours", Some(":1"));
            stream.root_tree(&index.tree);
            let mut present = BTreeMap::new();
            let mut files = Vec::new();
            for path in touched {
                let read = PresentState::read(&top, &path, FILE_LIMIT)?;
                present.insert(path.clone(), read.state());
                let staged = index.files.get(&path);
                match read {
                    PresentState::File { mode, bytes } => files.push((path, mode, bytes)),
                    // The sparse checkout does not have it, and its user did not remove it.
                    PresentState::Missing if index.sparse.contains(&path) => {}
                    PresentState::Missing | PresentState::InTheWay if staged.is_some() => {
                        stream.remove(&path);
                    }
                    PresentState::Missing | PresentState::InTheWay => {}
                }
            }
            for (path, mode, bytes) in files {
                let conversion = attributes.conversion(&path);
                if let Conversion::Other(name) = &conversion
                    && mode != LINK
                {
                    return Err(WorktreeError::Refused(format!(
                        "`{}` goes through the {name}, and no program of a repository runs here; take the changes as a branch, and \
                         merge it: `a2a-hub task apply {task} --branch NAME`",
                        plain_text(&path)
                    )));
                }
                let mode = match index.files.get(&path) {
                    Some(staged) if receiving.settings.ignores_file_mode && mode != LINK => {
                        staged.mode
                    }
                    None if receiving.settings.ignores_file_mode && mode != LINK => FILE,
                    _ => mode,
                };
                let bytes = match mode {
                    LINK => bytes,
                    _ => conversion.to_git(bytes, old.get(&path).map(Vec::as_slice)),
                };
                stream.content(mode, &path, &bytes);
            }
            stream.done(&[1, 2, 3]);
            Ok(present)
        });
        self.all.import(self.folder, self.repository, send, receiver, 3).await
    }

    async fn merge_trees(&self, ours: &str, theirs: &str) -> Result<String, WorktreeError> {
        let args =
            ["merge-tree", "--write-tree", "--name-only", "--no-messages", "-z", ours, theirs];
        let step = self
            .repository
            .step(&args)
            .writing_repository()
            .accepting(1)
            .with_output_limit(LIST_LIMIT);
        let done = self.git(step).await?;
        let mut listed = parts(&done.stdout);
        let result = listed.next().unwrap_or_default();
        if done.code == 1 {
            let paths: BTreeSet<_> = listed.map(plain_text).collect();
            let task = self.worktree.task.clone();
            return Err(WorktreeError::Conflict { task, paths: paths.into_iter().collect() });
        }
        Ok(String::from_utf8_lossy(result).into_owned())
    }

    /// The index of the checkout with the changes, as a file.
    pub(crate) async fn new_index(&self, merged: &MergedChanges) -> Result<Vec<u8>, WorktreeError> {
        let mut lines = Vec::new();
        // Removals first: a file may take the place of a directory.
        for file in merged.files.iter().filter(|file| file.new_mode == 0) {
            lines.extend(format!("0 {}\t", "0".repeat(file.old_id.len())).bytes());
            lines.extend(&file.path);
            lines.push(0);
        }
        for file in merged.files.iter().filter(|file| file.new_mode != 0) {
            lines.extend(format!("{:06o} {}\t", file.new_mode, file.new_id).bytes());
            lines.extend(&file.path);
            lines.push(0);
        }
        let step = self.on_index(&["update-index", "-z", "--index-info"]).with_input(lines);
        self.git(step.writing_repository()).await?;
        let index = self.repository.path().join(INDEX);
        blocking(move || fs::read(index)).await?.map_err(WorktreeError::disk)
    }

    /// A commit with the files of the new index, and no parent.
    pub(crate) async fn commit_of_index(&self) -> Result<String, WorktreeError> {
        let tree = self.git(self.on_index(&["write-tree"]).writing_repository()).await?.text();
        let step =
            self.repository.step(&["commit-tree", &tree, "-m", "index"]).writing_repository();
        Ok(self.git(step).await?.text())
    }

    /// A commit with the files of the new index.
    pub(crate) async fn commit(
        &self,
        parent: &str,
        message: &str,
        author: Option<&(String, String)>,
    ) -> Result<String, WorktreeError> {
        let tree = self.git(self.on_index(&["write-tree"]).writing_repository()).await?.text();
        let mut step = self.repository.step(&["commit-tree", &tree, "-p", parent, "-m", message]);
        if let Some((name, address)) = author {
            for role in ["AUTHOR", "COMMITTER"] {
                step = step.with_env(&format!("GIT_{role}_NAME"), name);
                step = step.with_env(&format!("GIT_{role}_EMAIL"), address);
            }
        }
        Ok(self.git(step.writing_repository()).await?.text())
    }

    /// Refuses a commit that would contain more than the task's changes. Returns what `HEAD` is at.
    pub(crate) async fn require_clean(
        &self,
        merged: &MergedChanges,
    ) -> Result<CheckoutHead, WorktreeError> {
        let (user, checkout) = (self.receiving.user.clone(), self.receiving.checkout.clone());
        let head = blocking(move || {
            require_finished(&user, &checkout)?;
            Refs::open(&user.git_dir, &user.common)?.head()
        });
        let head = head.await??;
        let Some(commit) = head.commit() else {
            return Err(WorktreeError::Refused(
                "the branch of the checkout has no commit yet; make one first, or leave `--commit` out".to_owned(),
            ));
        };
        if self.tree_of(commit).await? != merged.index.tree {
            return Err(WorktreeError::Refused(
                "the checkout has staged changes; commit or unstage them first, or leave `--commit` out"
                    .to_owned(),
            ));
        }
        let is_user_changed = |file: &&MergedFile| {
            let staged = merged.index.files.get(&file.path);
            let ours = (file.old_mode != 0).then(|| listed(file.old_mode, &file.old_id));
            staged != ours.as_ref()
        };
        match merged.files.iter().find(is_user_changed) {
            Some(both) => Err(WorktreeError::Refused(format!(
                "you and the task both changed `{}`; commit your changes first, or leave `--commit` out",
                plain_text(&both.path)
            ))),
            None => Ok(head),
        }
    }

    /// Writes the new files to a staging directory. Returns it with the changes.
    pub(crate) async fn stage(
        &self,
        merged: &MergedChanges,
    ) -> Result<(PathBuf, Vec<StagedChange>), WorktreeError> {
        let ReceivingCheckout { user, checkout, .. } = self.receiving;
        let staging = staging_directory(user, checkout, &self.worktree.task)?;
        let new_staging = staging.clone();
        let unwritable = |why| unchanged(checkout, &why);
        let make = blocking(move || make_staging(&new_staging));
        make.await?.map_err(unwritable)?;
        let staged = self.write_staged(merged, &staging).await;
        if staged.is_err() {
            let staging = staging.clone();
            let _ = blocking(move || remove_staging(&staging)).await;
        }
        Ok((staging, staged?))
    }

    async fn write_staged(
        &self,
        merged: &MergedChanges,
        staging: &Path,
    ) -> Result<Vec<StagedChange>, WorktreeError> {
        let numbered = || merged.files.iter().enumerate();
        let name = |number: usize| {
            let name = new_name(number);
            name.file_name().unwrap_or_default().as_encoded_bytes().to_vec()
        };
        let new = numbered().filter(|(_, file)| file.new_mode != 0);
        let listing: Listing =
            new.map(|(number, file)| (name(number), listed(file.new_mode, &file.new_id))).collect();
        let tree = staging.join("new");
        self.all.check_out(self.folder.path(), self.repository, &listing, tree).await?;
        let (receiving, staging) = (self.receiving.reader(), staging.to_owned());
        let (files, present) = (merged.files.clone(), merged.present.clone());
        blocking(move || {
            let (top, info) = receiving.open()?;
            let mut attributes = Attributes::new(&top, &info, Some(&receiving.settings));
            let directory = OpenDirectory::open(&staging).map_err(WorktreeError::disk)?;
            let mut changes = Vec::with_capacity(files.len());
            for (number, file) in files.into_iter().enumerate() {
                let before = present.get(&file.path).cloned().flatten();
                let name = new_name(number);
                if file.new_mode != 0 && file.new_mode != LINK {
                    let conversion = attributes.conversion(&file.path);
                    if let Conversion::Text { is_crlf: true, .. } = conversion {
                        convert(&directory, &name, &conversion).map_err(WorktreeError::disk)?;
                    }
                }
                let after = match file.new_mode {
                    0 => None,
                    _ => state_of(&directory, &name).map_err(WorktreeError::disk)?,
                };
                changes.push(StagedChange { path: file.path, before, after });
            }
            Ok(changes)
        })
        .await?
    }
}

/// Access to a checkout for another thread.
struct CheckoutReader {
    checkout: PathBuf,
    common: PathBuf,
    settings: crate::repository::settings::GitSettings,
}

impl ReceivingCheckout {
    fn reader(&self) -> CheckoutReader {
        let (checkout, common) = (self.checkout.clone(), self.user.common.clone());
        CheckoutReader { checkout, common, settings: self.settings.clone() }
    }
}

impl CheckoutReader {
    /// The top directory, and the repository's attributes that are in no commit.
    fn open(&self) -> Result<(OpenDirectory, Vec<u8>), WorktreeError> {
        let top = OpenDirectory::open(&self.checkout).map_err(WorktreeError::disk)?;
        let common = OpenDirectory::open(&self.common).map_err(WorktreeError::disk)?;
        let info = common.bytes("info/attributes", crate::snapshot::ignore::RULES_LIMIT);
        Ok((top, info.ok().flatten().unwrap_or_default()))
    }
}

/// Makes an empty staging directory beneath a directory that exists.
fn make_staging(staging: &Path) -> io::Result<()> {
    remove_staging(staging)?;
    let top = staging.ancestors().nth(2).unwrap_or(staging);
    let relative = staging.strip_prefix(top).unwrap_or(staging);
    make_directories(&OpenDirectory::open(top)?, &relative.join("new")).map(drop)
}

/// Converts a staged file. An agent that may write in the git directory could have put a link in
/// its place, so it is read and replaced by the handle of its directory (CWE-367).
fn convert(staging: &OpenDirectory, name: &Path, conversion: &Conversion) -> io::Result<()> {
    let failed = |why: crate::reader::ReadError| io::Error::other(why.to_string());
    let bytes = staging.bytes(name, FILE_LIMIT).map_err(failed)?.unwrap_or_default();
    let is_executable = state_of(staging, name)?.is_some_and(|state| state.mode == EXECUTABLE);
    let parent = make_directories(staging, name.parent().unwrap_or(Path::new("")))?;
    let last = Path::new(name.file_name().unwrap_or_default());
    unlinkat(parent.handle(), last, AtFlags::empty())?;
    let mode = if is_executable { 0o777 } else { 0o666 };
    create_new(&parent, last, mode)?.write_all(&conversion.to_checkout(bytes))
}

/// Copies the index of a checkout, with the shared one that a split index needs, into the hub's
/// repository. Returns the digest of the index.
fn copy_index(user: &Repository, to: &Path) -> Result<String, WorktreeError> {
    let git_dir = OpenDirectory::open(&user.git_dir).map_err(WorktreeError::disk)?;
    let unread = |why: crate::reader::ReadError| {
        WorktreeError::Unsupported(format!("`{}` {why}", user.git_dir.join("index").display()))
    };
    let copy = |from: &Path, name: &str| -> Result<Option<String>, WorktreeError> {
        let Some(bytes) = git_dir.bytes(from, INDEX_LIMIT).map_err(unread)? else {
            return Ok(None);
        };
        write_atomic(&to.join(name), &bytes).map_err(WorktreeError::disk)?;
        Ok(Some(digest_of(&bytes)))
    };
    let digest = copy(Path::new("index"), INDEX)?;
    if digest.is_none() {
        match fs::remove_file(to.join(INDEX)) {
            Err(why) if why.kind() != io::ErrorKind::NotFound => {
                return Err(WorktreeError::disk(why));
            }
            Ok(()) | Err(_) => {}
        }
    }
    for entry in git_dir.entries(100_000).map_err(WorktreeError::disk)? {
        let Ok(name) = String::from_utf8(entry.name) else { continue };
        let hash = name.strip_prefix("sharedindex.");
        if hash.is_some_and(|hash| hash.bytes().all(|byte| byte.is_ascii_hexdigit())) {
            copy(as_path(name.as_bytes()), &name)?;
        }
    }
    Ok(digest.unwrap_or_else(|| digest_of(b"")))
}

/// Files of `git ls-files --stage -t -z`: `TAG MODE ID STAGE`, a tab and the path; none in the
/// middle of a merge.
fn staged_files(output: &[u8]) -> Option<(Listing, BTreeSet<Vec<u8>>)> {
    let (mut files, mut sparse) = (Listing::new(), BTreeSet::new());
    for line in parts(output) {
        let tab = line.iter().position(|byte| *byte == b'\t')?;
        let facts = std::str::from_utf8(&line[..tab]).ok()?;
        let mut words = facts.split(' ');
        let (tag, mode, id) = (words.next()?, words.next()?, words.next()?);
        if words.next()? != "0" {
            return None;
        }
        let path = line[tab + 1..].to_vec();
        if tag == "S" {
            sparse.insert(path.clone());
        }
        let mode = u32::from_str_radix(mode, 8).ok()?;
        files.insert(path, ListedFile { mode, id: id.to_owned() });
    }
    Some((files, sparse))
}

/// Files of `git diff-tree -r -z`: `:OLD NEW ID ID STATUS`, then the path.
fn merged_files(raw: &[u8]) -> Result<Vec<MergedFile>, WorktreeError> {
    let wrong = || WorktreeError::disk(io::Error::other("git prints changes in another form"));
    let mut found = Vec::new();
    let mut all = parts(raw);
    while let (Some(facts), Some(path)) = (all.next(), all.next()) {
        let facts = std::str::from_utf8(facts).map_err(|_| wrong())?;
        let mut words = facts.trim_start_matches(':').split(' ');
        let mut mode =
            || words.next().and_then(|it| u32::from_str_radix(it, 8).ok()).ok_or_else(wrong);
        let (old_mode, new_mode) = (mode()?, mode()?);
        let mut id = || words.next().map(str::to_owned).ok_or_else(wrong);
        let (old_id, new_id) = (id()?, id()?);
        found.push(MergedFile { path: path.to_vec(), old_mode, new_mode, old_id, new_id });
    }
    Ok(found)
}

/// Parts of a list that ends each by NUL.
fn parts(list: &[u8]) -> impl Iterator<Item = &[u8]> {
    list.split(|byte| *byte == 0).filter(|part| !part.is_empty())
}
