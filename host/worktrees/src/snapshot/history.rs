//! Commits that an agent made in its worktree. Its repository is data: the hub copies the objects
//! to another directory, and git hashes and checks each one there before it counts.

use crate::{
    Worktree, WorktreeError, Worktrees, blocking,
    git::HubRepository,
    reader::{OpenDirectory, as_path},
    record::{Folder, remove_all},
    repository::refs::{CheckoutHead, Refs},
    snapshot::walk::Omission,
};
use rustix::fs::FileType;
use serde::{Deserialize, Serialize};
use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::{self, Read as _},
    path::Path,
};

/// Largest store of objects of an agent that is read, in bytes.
const STORE_LIMIT: u64 = 2 << 30;

/// Most objects and packs of it.
const MAX_FILES: usize = 500_000;

/// Most branches whose commits are compared with the result.
const MAX_BRANCHES: usize = 32;

/// Directory in the worktree's folder for copies of the agent's objects.
const IMPORT: &str = "import";

/// Refs of an agent's repository.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct AgentRefs {
    pub(crate) head: Option<String>,
    /// Branches and stashes at other commits.
    pub(crate) others: BTreeMap<String, String>,
}

/// The agent's commits, as far as they count.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct AgentHistory {
    pub(crate) refs: AgentRefs,
    /// Last commit: the agent's, or the base.
    pub(crate) parent: String,
    /// Number of commits that the agent made.
    pub(crate) commits: u64,
    pub(crate) left_out: Vec<Omission>,
}

impl Worktrees {
    /// Reads the agent's commits, and brings them into the hub's repository. `known` is what was
    /// found before.
    pub(crate) async fn agent_history(
        &self,
        folder: &Folder,
        worktree: &Worktree,
        repository: &HubRepository,
        known: Option<AgentHistory>,
    ) -> Result<AgentHistory, WorktreeError> {
        let (tree, base) = (folder.tree(), worktree.base.clone());
        let refs = blocking(move || agent_refs(&tree, &base)).await?;
        if let Some(known) = known.filter(|known| known.refs == refs) {
            return Ok(known);
        }
        let mut history = AgentHistory { parent: worktree.base.clone(), ..AgentHistory::default() };
        if refs.head.is_some() || !refs.others.is_empty() {
            let import_dir = folder.path().join(IMPORT);
            let imported =
                self.import_history(folder, worktree, repository, &refs, &mut history).await;
            let _ = blocking(move || remove_all(&import_dir)).await;
            imported?;
        }
        history.refs = refs;
        Ok(history)
    }

    async fn import_history(
        &self,
        folder: &Folder,
        worktree: &Worktree,
        repository: &HubRepository,
        refs: &AgentRefs,
        history: &mut AgentHistory,
    ) -> Result<(), WorktreeError> {
        let import_dir = folder.path().join(IMPORT);
        let mut stores = worktree.stores.clone();
        stores.push(repository.objects());
        let import = HubRepository::at(import_dir.clone(), &stores);
        let (tree, to) = (folder.tree(), import.clone());
        let is_sha256 = worktree.base.len() == 64;
        let shallow = folder.git().join("shallow");
        let copied = blocking(move || {
            remove_all(to.path()).map_err(WorktreeError::disk)?;
            to.make(is_sha256, fs::read_to_string(shallow).ok().as_deref())?;
            Ok::<_, WorktreeError>(copy_objects(&tree, &to.objects()))
        });
        if let Err(why) = copied.await?? {
            let reason = format!("has commits that are not in the result: {why}");
            history.left_out.push(Omission::new(b".git", reason));
            return Ok(());
        }
        if let Some(head) = &refs.head {
            let range = format!("{}...{head}", worktree.base);
            let step = import.step(&["rev-list", "--left-right", "--count", &range, "--"]);
            let step = step.accepting(128).reading([repository.path()]);
            let counted = self.0.git.run(folder.path(), step).await?;
            let text = counted.text();
            let counts = text.split_once('\t').filter(|_| counted.code == 0);
            match counts.and_then(|(lost, ahead)| Some((lost.parse().ok()?, ahead.parse().ok()?))) {
                Some((0_u64, ahead)) => {
                    match self.take_over(folder, worktree, repository, &import, head).await {
                        Ok(()) => (history.parent, history.commits) = (head.clone(), ahead),
                        Err(WorktreeError::Git { stderr, .. }) => history.left_out.push(Omission::new(
                            b"HEAD",
                            format!("has commits that git refuses, so that only their files are in the result: {stderr}"),
                        )),
                        Err(why) => return Err(why),
                    }
                }
                Some(_) => history.left_out.push(Omission::new(
                    b"HEAD",
                    "does not follow the base, so that its files are in the result, and its commits are not",
                )),
                None => history.left_out.push(Omission::new(
                    b"HEAD",
                    "has commits that cannot be read, so that only their files are in the result",
                )),
            }
        }
        for (name, commit) in &refs.others {
            let mut args = vec!["rev-list", "--count", commit, "--not", &worktree.base];
            args.extend(refs.head.as_deref().filter(|_| history.commits > 0));
            args.push("--");
            let step = import.step(&args).accepting(128).reading([repository.path()]);
            let counted = self.0.git.run(folder.path(), step).await?;
            let count: u64 = counted.text().parse().unwrap_or_default();
            if count > 0 {
                let short = name.strip_prefix("refs/heads/").unwrap_or(name);
                let commits = if count == 1 { "one commit that is" } else { "commits that are" };
                history.left_out.push(Omission::new(
                    short.as_bytes(),
                    format!(
                        "has {commits} not in the result, which follows `HEAD`; have the agent merge that branch, or check it out"
                    ),
                ));
            }
        }
        Ok(())
    }

    /// Brings the commits between the base and `head` into the hub's repository.
    async fn take_over(
        &self,
        folder: &Folder,
        worktree: &Worktree,
        repository: &HubRepository,
        import: &HubRepository,
        head: &str,
    ) -> Result<(), WorktreeError> {
        let step =
            import.step(&["pack-objects", "--revs", "-q", "made"]).reading([repository.path()]);
        let step = step.with_input(format!("{head}\n^{}\n", worktree.base)).writing_repository();
        let name = self.0.git.run(folder.path(), step).await?.text();
        // The agent's store is not seen here: each object must be right, and nothing missing.
        let checked = repository.path().join(format!("made-{name}.pack"));
        let packed = import.path().join(format!("made-{name}.pack"));
        fs::rename(packed, &checked).map_err(WorktreeError::disk)?;
        let path = checked.display().to_string();
        let step = repository.step(&["index-pack", "--strict", &path]).writing_repository();
        let indexed = self.0.git.run(folder.path(), step).await.map(drop);
        let index = checked.with_extension("idx");
        if indexed.is_err() {
            let _ = fs::remove_file(&checked);
            return indexed;
        }
        let to = repository.objects().join("pack");
        let moved = (|| {
            fs::rename(checked, to.join(format!("pack-{name}.pack")))?;
            fs::rename(index, to.join(format!("pack-{name}.idx")))
        })();
        moved.map_err(WorktreeError::disk)
    }
}

/// Commits of an agent's repository that differ from the base.
fn agent_refs(tree: &Path, base: &str) -> AgentRefs {
    let dot = tree.join(".git");
    let Ok(refs) = Refs::open(&dot, &dot) else { return AgentRefs::default() };
    let is_new = |commit: &String| commit != base && commit.len() == base.len();
    let head = refs.head().ok();
    let at = head.as_ref().and_then(CheckoutHead::commit).map(str::to_owned).filter(is_new);
    let is_counted = |name: &str| name.starts_with("refs/heads/") || name == "refs/stash";
    let others = refs.all().unwrap_or_default().into_iter();
    let others = others
        .filter(|(name, commit)| is_counted(name) && is_new(commit) && Some(commit) != at.as_ref());
    AgentRefs { others: others.take(MAX_BRANCHES).collect(), head: at }
}

/// Copies an agent's objects and packs; an error says why they do not count.
fn copy_objects(tree: &Path, to: &Path) -> Result<(), String> {
    let store = OpenDirectory::open(&tree.join(".git/objects"));
    let store = store.map_err(|why| format!("its store of objects cannot be opened: {why}"))?;
    let mut budget = CopyBudget { bytes: STORE_LIMIT, files: MAX_FILES };
    let entries =
        |directory: &OpenDirectory| directory.entries(MAX_FILES).map_err(|why| why.to_string());
    for entry in entries(&store)? {
        let is_hex = |name: &[u8]| name.iter().all(u8::is_ascii_hexdigit);
        let is_fan_out = entry.name.len() == 2 && is_hex(&entry.name);
        if !is_fan_out && entry.name != b"pack" {
            continue;
        }
        let Ok(Some(inner)) = store.directory(as_path(&entry.name)) else { continue };
        let target = to.join(as_path(&entry.name));
        fs::create_dir_all(&target).map_err(|why| why.to_string())?;
        for file in entries(&inner)? {
            let is_object = is_fan_out && matches!(file.name.len(), 38 | 62) && is_hex(&file.name);
            let is_pack =
                !is_fan_out && (file.name.ends_with(b".pack") || file.name.ends_with(b".idx"));
            if (is_object || is_pack)
                && matches!(file.kind, FileType::RegularFile | FileType::Unknown)
            {
                let name = as_path(&file.name);
                let Ok(Some(source)) = inner.file(name) else { continue };
                budget.copy(source, &target.join(name))?;
            }
        }
    }
    Ok(())
}

/// Space and number that are left for an agent's objects.
struct CopyBudget {
    bytes: u64,
    files: usize,
}

impl CopyBudget {
    fn copy(&mut self, source: File, to: &Path) -> Result<(), String> {
        let too_large = || {
            let max_mib = STORE_LIMIT >> 20;
            format!(
                "the objects of its repository take more than {max_mib} MiB, or are more than {MAX_FILES}"
            )
        };
        self.files = self.files.checked_sub(1).ok_or_else(too_large)?;
        let mut target = File::create(to).map_err(|why| why.to_string())?;
        let copied = io::copy(&mut source.take(self.bytes + 1), &mut target);
        let copied = copied.map_err(|why| why.to_string())?;
        self.bytes = self.bytes.checked_sub(copied).ok_or_else(too_large)?;
        Ok(())
    }
}
