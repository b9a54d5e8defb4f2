//! Snapshots: the present files of a worktree as a commit of the hub's own repository.
//!
//! The hub reads the files and gives their contents to git. Git sees neither the files nor the
//! agent's repository.

pub(crate) mod history;
pub(crate) mod ignore;
pub(crate) mod import_stream;
pub(crate) mod line_ends;
pub(crate) mod walk;

use crate::{
    Worktree, WorktreeError, Worktrees, blocking,
    git::{GitStep, HubRepository},
    listing::{FileStat, GitIndex, ListedFile, Listing, of_ls_tree},
    reader::{OpenDirectory, as_path},
    record::Folder,
    repository::Repository,
    snapshot::history::{AgentHistory, AgentRefs},
    snapshot::import_stream::{ChangedFiles, FAST_IMPORT, ImportStream, ids_of},
    snapshot::line_ends::Attributes,
    snapshot::walk::{Omission, TreeWalk, WalkRules, listing_of},
};
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, io};
use tokio::sync::mpsc;

/// File with the latest snapshot, in the worktree's folder.
const STATE: &str = "snapshot.json";

/// Index of the hub, with the metadata of the files when they were last read.
pub(crate) const INDEX: &str = "index";

/// Index with the files of the base.
pub(crate) const BASE_INDEX: &str = "base.index";

/// Most parts of a stream between the disk and git.
const QUEUE: usize = 8;

/// Most bytes of old contents that are read for the line ends of changed files.
const OLD_LIMIT: u64 = 256 << 20;

/// Longest file that is searched for line ends before it is sent, in bytes.
const SEARCHED: u64 = 16 << 20;

/// Changes of a worktree since its base.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
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
    /// Parts of the worktree that are not in the commit.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<Omission>,
}

impl WorktreeSnapshot {
    /// Refuses to remove a worktree of which parts are in no result. `command` removes it all the
    /// same.
    pub(crate) fn require_complete(&self, task: &str, command: &str) -> Result<(), WorktreeError> {
        let Some(first) = self.left_out.first() else { return Ok(()) };
        let more = self.left_out.len() - 1;
        let more = if more > 0 { format!(" (and {more} more)") } else { String::new() };
        Err(WorktreeError::Refused(format!(
            "the worktree of task `{task}` has what its result lacks: `{}` {}{more}; save it first, or remove it all the same: \
             `{command}`",
            first.name, first.reason
        )))
    }
}

/// Text of the changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diff {
    /// Changes as counted.
    pub snapshot: WorktreeSnapshot,
    /// A patch that `git apply` takes, with binary files and any encoding; or a table of files.
    pub bytes: Vec<u8>,
}

/// Part of the changes to be shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DiffQuery {
    /// True for a table of files in place of a patch.
    pub as_table: bool,
    /// Commit of an earlier snapshot since which the changes are; by default the base.
    pub since: Option<String>,
    /// Files and directories; all if empty.
    pub paths: Vec<String>,
}

/// The latest snapshot, with what it was made of.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct SnapshotState {
    history: AgentHistory,
    snapshot: WorktreeSnapshot,
}

/// A snapshot with what further steps need.
pub(crate) struct OpenSnapshot {
    pub(crate) worktree: Worktree,
    pub(crate) repository: HubRepository,
    pub(crate) taken: WorktreeSnapshot,
    /// True if git ignores a file or a directory of the tree.
    pub(crate) has_ignored: bool,
    /// True if the agent made commits, whether they count or not.
    pub(crate) has_commits: bool,
}

/// Changes of a tree since the index of the hub.
struct FoundChanges {
    walk: TreeWalk,
    /// Files to be read, with their contents in the base where those count.
    old: BTreeMap<Vec<u8>, String>,
}

impl Worktrees {
    /// Takes a snapshot of the present files, without those that git ignores. The agent may be at
    /// work meanwhile.
    ///
    /// # Errors
    /// The task has no worktree, its repository is gone or another one, or git or the disk fails.
    pub async fn snapshot(&self, task: &str) -> Result<WorktreeSnapshot, WorktreeError> {
        let _guard = self.lock(task).await;
        self.snapshot_locked(&self.folder(task)?).await.map(|snapshot| snapshot.taken)
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
        self.diff_of(task, DiffQuery { as_table, ..DiffQuery::default() }, limit).await
    }

    /// Commit of the latest snapshot of a worktree, if one was taken. Blocks on the disk.
    pub(crate) fn latest_snapshot(folder: &Folder) -> Option<WorktreeSnapshot> {
        read_state(folder).map(|state| state.snapshot)
    }

    pub(crate) async fn snapshot_locked(
        &self,
        folder: &Folder,
    ) -> Result<OpenSnapshot, WorktreeError> {
        let (reader, home) = (folder.clone(), self.0.home.clone());
        let read = blocking(move || {
            let worktree = reader.read()?;
            let repository = worktree.open_repository()?;
            let rules = UserRules::read(&repository, &home, &worktree.copied);
            Ok::<_, WorktreeError>((worktree, rules, read_state(&reader)))
        });
        let (worktree, rules, known) = read.await??;
        let repository = HubRepository::at(folder.git(), &worktree.stores);
        let history = known.as_ref().map(|known| known.history.clone());
        let history = self.agent_history(folder, &worktree, &repository, history).await?;
        let base = self.base_listing(folder, &worktree, &repository).await?;
        let parent = if history.parent == worktree.base {
            base.clone()
        } else {
            self.files_of(folder, &repository, &history.parent).await?
        };
        let git = folder.git();
        let index = blocking(move || GitIndex::read(&git, INDEX)).await?;
        let index = index.unwrap_or_else(|| {
            let files =
                base.iter().map(|(path, file)| (path.clone(), (file.clone(), FileStat::default())));
            GitIndex::new(files.collect())
        });
        let changes =
            FindChanges { folder, base: &base, parent: &parent, index: &index, rules: &rules };
        let found = changes.find().await?;
        let has_ignored = found.walk.has_ignored;
        let has_commits = history.refs != AgentRefs::default();
        let is_removed = |path: &&Vec<u8>| !found.walk.unchanged.contains(*path);
        let is_same =
            found.walk.changed.is_empty() && !index.files.keys().any(|path| is_removed(&path));
        if is_same && let Some(known) = known.filter(|known| known.history.refs == history.refs) {
            let mut taken = known.snapshot;
            taken.left_out = omissions(&history, found.walk);
            return Ok(OpenSnapshot { worktree, repository, taken, has_ignored, has_commits });
        }
        let taken = self.commit_changes(
            folder,
            &worktree,
            &repository,
            history,
            (base, parent, index),
            found,
            rules,
        );
        let taken = taken.await?;
        Ok(OpenSnapshot { worktree, repository, taken, has_ignored, has_commits })
    }

    /// Makes a commit of the changes, and records it.
    #[expect(clippy::too_many_arguments, reason = "the parts of one snapshot, each used once")]
    async fn commit_changes(
        &self,
        folder: &Folder,
        worktree: &Worktree,
        repository: &HubRepository,
        history: AgentHistory,
        (base, parent, index): (Listing, Listing, GitIndex),
        found: FoundChanges,
        rules: UserRules,
    ) -> Result<WorktreeSnapshot, WorktreeError> {
        let FoundChanges { mut walk, old } = found;
        let ids: Vec<_> = old.values().cloned().collect();
        let contents = self.contents(folder.path(), repository, &ids, OLD_LIMIT).await?;
        let old = old.into_keys().zip(contents).collect();
        let changed = std::mem::take(&mut walk.changed);
        let message = format!("Work of task {} that was not committed", worktree.task);
        let (sender, receiver) = mpsc::channel(QUEUE);
        let (tree, from) = (folder.tree(), history.parent.clone());
        let present: BTreeMap<_, _> = walk
            .unchanged
            .iter()
            .filter_map(|path| Some((path.clone(), index.files.get(path)?.clone())))
            .collect();
        let unchanged: Listing =
            present.iter().map(|(path, (file, _))| (path.clone(), file.clone())).collect();
        let send = blocking(move || {
            let top = OpenDirectory::open(&tree).map_err(WorktreeError::disk)?;
            let mut stream = ImportStream::new(sender);
            stream.commit("refs/heads/result", 1, &message, Some(&from));
            let is_present = |path: &Vec<u8>| {
                unchanged.contains_key(path)
                    || changed.binary_search_by(|it| it.0.cmp(path)).is_ok()
            };
            // Removals first: a file may take the place of a directory, and the other way round.
            for path in parent.keys().filter(|path| !is_present(path)) {
                stream.remove(path);
            }
            for (path, file) in &unchanged {
                if parent.get(path) != Some(file) {
                    stream.known(file.mode, &file.id, path);
                }
            }
            let attributes = Attributes::new(&top, &rules.attributes, None);
            let mut files = ChangedFiles { top: &top, attributes, old };
            let stats = files.add(&mut walk, changed, &mut stream);
            stream.done(&[1]);
            Ok::<_, WorktreeError>((walk, stats))
        });
        let ((walk, stats), ids) = self.import(folder, repository, send, receiver, 1).await?;
        let [commit] = &ids[..] else { return Err(WorktreeError::NotFound(worktree.task.clone())) };
        let step = repository.step(&[
            "rev-parse",
            &format!("{commit}^{{tree}}"),
            &format!("{}^{{tree}}", history.parent),
        ]);
        let trees = self.0.git.run(folder.path(), step).await?.text();
        let dirty = trees.split_once('\n').is_none_or(|(now, before)| now != before);
        let commit = if dirty { commit.clone() } else { history.parent.clone() };
        let form = ["--raw", "--numstat", "-z", "--no-renames", "--no-abbrev"];
        let counted = diff(repository, &worktree.base, &commit, &form);
        let counted = self.0.git.run(folder.path(), counted).await?.stdout;
        let (changed, totals) = raw_and_numstat(&counted).map_err(WorktreeError::disk)?;
        let index = index_of(&base, &changed, &present, &stats);
        let taken = WorktreeSnapshot {
            commit,
            base: worktree.base.clone(),
            commits: history.commits,
            files: totals.0,
            insertions: totals.1,
            deletions: totals.2,
            dirty,
            left_out: omissions(&history, walk),
        };
        let state = SnapshotState { history, snapshot: taken.clone() };
        let (folder, is_sha256) = (folder.clone(), worktree.base.len() == 64);
        blocking(move || {
            crate::listing::write_atomic(&folder.git().join(INDEX), &index.to_bytes(is_sha256))?;
            folder.replace(STATE, &serde_json::to_vec(&state)?)
        })
        .await?
        .map_err(WorktreeError::disk)?;
        Ok(taken)
    }

    /// Runs `git fast-import` on what `send` writes into a stream, and returns the ids of the
    /// commits that it names.
    pub(crate) async fn import<T: Send + 'static>(
        &self,
        folder: &Folder,
        repository: &HubRepository,
        send: impl Future<Output = Result<Result<T, WorktreeError>, WorktreeError>>,
        mut receiver: mpsc::Receiver<Vec<u8>>,
        count: usize,
    ) -> Result<(T, Vec<String>), WorktreeError> {
        let step = repository.step(FAST_IMPORT).writing_repository();
        let feed = async {
            let mut running = self.0.git.start(folder.path(), step).await?;
            while let Some(part) = receiver.recv().await {
                running.write(&part).await?;
            }
            running.close_input();
            let mut output = Vec::new();
            while let Some(bytes) = running.next().await? {
                output.extend(bytes);
            }
            running.finish().await.map(|_| output)
        };
        let (sent, output) = tokio::join!(send, feed);
        // If the stream could not be written, that is the reason, and not its early end.
        let (sent, output) = (sent??, output?);
        Ok((sent, ids_of(&output, count)?))
    }

    /// Files of the base.
    pub(crate) async fn base_listing(
        &self,
        folder: &Folder,
        worktree: &Worktree,
        repository: &HubRepository,
    ) -> Result<Listing, WorktreeError> {
        let git = folder.git();
        if let Some(index) = blocking(move || GitIndex::read(&git, BASE_INDEX)).await? {
            return Ok(listing_of(&index));
        }
        self.files_of(folder, repository, &worktree.base).await
    }

    /// Files of a commit.
    pub(crate) async fn files_of(
        &self,
        folder: &Folder,
        repository: &HubRepository,
        commit: &str,
    ) -> Result<Listing, WorktreeError> {
        let step = repository
            .step(&["ls-tree", "-r", "-z", "--full-tree", commit])
            .with_output_limit(LISTING_LIMIT);
        let listed = self.0.git.run(folder.path(), step).await?.stdout;
        of_ls_tree(&listed).map_err(WorktreeError::disk)
    }
}

/// Largest list of the files of a commit, in bytes.
const LISTING_LIMIT: usize = 512 << 20;

/// Rules of the user and of the repository that a worktree follows.
pub(crate) struct UserRules {
    /// Files that git ignores, weakest first.
    pub(crate) ignores: [Vec<u8>; 3],
    /// Attributes of the repository that are in no commit.
    pub(crate) attributes: Vec<u8>,
}

impl UserRules {
    /// Reads the rules. What cannot be read counts for nothing. Blocks on the disk.
    pub(crate) fn read(repository: &Repository, home: &crate::GitHome, copied: &[String]) -> Self {
        let settings = crate::repository::settings::GitSettings::for_checkout(
            home,
            &repository.settings_paths(),
        );
        let common = OpenDirectory::open(&repository.common).ok();
        let info = |name: &str| {
            let bytes = common.as_ref()?.bytes(name, ignore::RULES_LIMIT);
            bytes.ok().flatten()
        };
        let exclude = info("info/exclude").unwrap_or_default();
        let copied = crate::create::copied::excludes(copied).into_bytes();
        Self {
            ignores: [settings.excludes, exclude, copied],
            attributes: info("info/attributes").unwrap_or_default(),
        }
    }
}

/// Search for changes since the last snapshot.
struct FindChanges<'f> {
    folder: &'f Folder,
    base: &'f Listing,
    parent: &'f Listing,
    index: &'f GitIndex,
    rules: &'f UserRules,
}

impl FindChanges<'_> {
    async fn find(&self) -> Result<FoundChanges, WorktreeError> {
        let tree = self.folder.tree();
        // What the base, the last snapshot or the agent's last commit has is tracked.
        let mut tracked = listing_of(self.index);
        tracked.extend(self.parent.iter().map(|(path, file)| (path.clone(), file.clone())));
        let (index, ignores) = (self.index.clone(), self.rules.ignores.clone());
        let (base, attributes) = (self.base.clone(), self.rules.attributes.clone());
        blocking(move || {
            let top = OpenDirectory::open(&tree).map_err(|why| {
                WorktreeError::Refused(format!("the files of the worktree cannot be read: {why}"))
            })?;
            let ignores: Vec<_> = ignores.iter().map(Vec::as_slice).collect();
            let rules = WalkRules { tracked: &tracked, index: &index, ignores: &ignores };
            let mut walk = rules.walk(&top)?;
            walk.changed.sort_by(|a, b| a.0.cmp(&b.0));
            let mut attributes = Attributes::new(&top, &attributes, None);
            let mut old = BTreeMap::new();
            for (path, file) in &walk.changed {
                let Some(before) = base.get(path) else { continue };
                if file.stat.st_size > i64::try_from(SEARCHED).unwrap_or(i64::MAX) {
                    continue;
                }
                let conversion = attributes.conversion(path);
                let bytes = || top.bytes(as_path(path), SEARCHED).ok().flatten();
                if conversion.is_guessed()
                    && bytes().is_some_and(|bytes| conversion.needs_old(&bytes))
                {
                    old.insert(path.clone(), before.id.clone());
                }
            }
            Ok(FoundChanges { walk, old })
        })
        .await?
    }
}

fn omissions(history: &AgentHistory, walk: TreeWalk) -> Vec<Omission> {
    [history.left_out.clone(), walk.omissions].concat()
}

fn read_state(folder: &Folder) -> Option<SnapshotState> {
    let bytes = OpenDirectory::open(folder.path()).ok()?.bytes(STATE, 64 << 20).ok()??;
    serde_json::from_slice(&bytes).ok()
}

/// The changes between two commits or trees.
pub(crate) fn diff(repository: &HubRepository, from: &str, to: &str, form: &[&str]) -> GitStep {
    let fixed = ["diff", "--no-ext-diff", "--no-textconv", "--no-color"];
    repository.step(&[&fixed[..], form, &[from, to, "--"]].concat())
}

/// Changed files, and the numbers of files, added and removed lines.
type DiffCounts = (BTreeMap<Vec<u8>, Option<ListedFile>>, (u64, u64, u64));

/// Reads `git diff --raw --numstat -z --no-renames`: first `:OLD NEW ID ID STATUS` and the path of
/// each file, then its added and removed lines with the path.
fn raw_and_numstat(output: &[u8]) -> io::Result<DiffCounts> {
    let wrong = || io::Error::other("git prints changes in another form");
    let mut parts = output.split(|byte| *byte == 0).filter(|part| !part.is_empty());
    let (mut changed, mut totals) = (BTreeMap::new(), (0, 0, 0));
    while let Some(part) = parts.next() {
        let text = String::from_utf8_lossy(part);
        if let Some(facts) = text.strip_prefix(':') {
            let mut words = facts.split(' ');
            let mode = words
                .nth(1)
                .and_then(|mode| u32::from_str_radix(mode, 8).ok())
                .ok_or_else(wrong)?;
            let id = words.nth(1).ok_or_else(wrong)?.to_owned();
            let path = parts.next().ok_or_else(wrong)?.to_vec();
            changed.insert(path, (mode != 0).then_some(ListedFile { mode, id }));
        } else {
            let mut numbers = text.split('\t');
            let mut number = || numbers.next().and_then(|it| it.parse::<u64>().ok()).unwrap_or(0);
            totals = (totals.0 + 1, totals.1 + number(), totals.2 + number());
        }
    }
    Ok((changed, totals))
}

/// Index of the present files: `changed` since the base, as git says, and the others.
fn index_of(
    base: &Listing,
    changed: &BTreeMap<Vec<u8>, Option<ListedFile>>,
    present: &BTreeMap<Vec<u8>, (ListedFile, FileStat)>,
    stats: &BTreeMap<Vec<u8>, FileStat>,
) -> GitIndex {
    let mut files: BTreeMap<_, _> = present.clone();
    for (path, stat) in stats {
        let now = match changed.get(path) {
            Some(now) => now.clone(),
            None => base.get(path).cloned(),
        };
        if let Some(file) = now {
            files.insert(path.clone(), (file, *stat));
        }
    }
    GitIndex::new(files)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::listing::FILE;

    #[test]
    fn changes_and_totals_are_read_together() {
        let (one, two, none) = ("1".repeat(40), "2".repeat(40), "0".repeat(40));
        let text = format!(
            ":100644 100644 {one} {two} M\0a\tb\0:100644 000000 {one} {none} D\0c\0:000000 100644 {none} {two} A\0d\n\0\
             3\t1\ta\tb\x000\t7\tc\0-\t-\td\n\0"
        );
        let (changed, totals) = raw_and_numstat(text.as_bytes()).unwrap();
        let file = Some(ListedFile { mode: FILE, id: two });
        let wanted =
            [(b"a\tb".to_vec(), file.clone()), (b"c".to_vec(), None), (b"d\n".to_vec(), file)];
        assert_eq!((changed, totals), (wanted.into(), (3, 3, 8)));
        assert_eq!(raw_and_numstat(b"").unwrap(), (BTreeMap::new(), (0, 0, 0)));
        assert!(raw_and_numstat(b":100644").is_err());
    }
}
