//! Creation of a worktree.

pub(crate) mod checkout;
pub(crate) mod copied;
pub(crate) mod preparation;
pub(crate) mod repository_config;
pub(crate) mod upgrade;

use crate::{
    PortRange, RESULTS, RepositoryBounds, RepositoryPreparation, Worktree, WorktreeError,
    WorktreeOwner, Worktrees, blocking,
    create::copied::{copy_files, excludes},
    git::{HubRepository, alternates, config_of},
    reader::OpenDirectory,
    record::Folder,
    refs_of,
    repository::Repository,
    repository::refs::{self, Expected, Refs},
    repository::settings::GitSettings,
    snapshot::ignore::RULES_LIMIT,
    snapshot::walk::require_paths,
    snapshot::{BASE_INDEX, INDEX},
};
use std::{
    collections::BTreeMap,
    fs, io,
    path::{Component, Path, PathBuf},
};

/// Request for a worktree.
#[derive(Clone, Debug)]
pub struct NewWorktree {
    /// Task that it is for.
    pub task: String,
    /// Directory in a repository, or in another worktree of the hub.
    pub directory: PathBuf,
    /// Commit to start from: a branch, a tag, an id, or `HEAD`.
    pub base: String,
    /// The time, in milliseconds since 1970.
    pub now_ms: u64,
    /// Owner of the task.
    pub owner: WorktreeOwner,
    /// Directories in which the repository, and what it refers to, may lie.
    pub bounds: RepositoryBounds,
}

/// Origin of a new worktree.
struct WorktreeOrigin {
    repository: Repository,
    /// Commit that the work starts from; none if it is still to be found by its name.
    base: Option<String>,
    /// Last commit below `base` that the user's repository has; `base` itself without a parent.
    pinned: Option<String>,
    /// Worktree whose work it starts from, if it does.
    parent: Option<Worktree>,
}

impl Worktrees {
    /// Creates a worktree: files of the base commit, in a separate repository. What is not
    /// committed in the user's checkout is not in it. A worktree in a worktree starts from the
    /// present files of the latter.
    ///
    /// # Errors
    /// The directory is in no repository, or in one that is not what it claims to be, the base is
    /// no commit, the task has a worktree already, or git or the disk fails. Nothing is left then.
    pub async fn create(&self, new: NewWorktree) -> Result<Worktree, WorktreeError> {
        let is_text = !new.base.is_empty() && !new.base.chars().any(char::is_control);
        if !is_text || new.base.len() > 255 {
            return Err(WorktreeError::NoBase(new.base.chars().take(255).collect()));
        }
        let origin = match Folder::containing(self.root(), &new.directory) {
            Some(outer) => self.origin_in_worktree(&outer, &new).await?,
            None => {
                let (directory, bounds) = (new.directory.clone(), new.bounds.clone());
                let repository = blocking(move || Repository::find(&directory, &bounds)).await??;
                WorktreeOrigin { repository, base: None, pinned: None, parent: None }
            }
        };
        let _guard = self.lock(&new.task).await;
        let folder = self.folder(&new.task)?;
        let (all, task, owner) = (self.clone(), new.task.clone(), new.owner.clone());
        blocking(move || all.reserve(&task, &owner)).await??;
        folder.make().map_err(|why| {
            if why.kind() != io::ErrorKind::AlreadyExists {
                return WorktreeError::disk(why);
            }
            WorktreeError::Refused(format!(
                "task `{}` has a worktree already; discard it first: `a2a-hub task discard {0}`",
                new.task
            ))
        })?;
        let created = self.make(&folder, origin, &new).await;
        if created.is_err() {
            let _ = self.remove(folder).await;
        }
        created
    }

    /// Starts from the present files of another worktree.
    async fn origin_in_worktree(
        &self,
        outer: &Folder,
        new: &NewWorktree,
    ) -> Result<WorktreeOrigin, WorktreeError> {
        let parent = outer.read()?;
        if new.base != "HEAD" {
            return Err(WorktreeError::Refused(format!(
                "a worktree in the worktree of task `{}` starts from the files there; leave the base out",
                parent.task
            )));
        }
        let base = self.snapshot(outer.task()).await?.commit;
        let of = parent.clone();
        let mut repository = blocking(move || of.open_repository()).await??;
        let prefix = new.directory.strip_prefix(&parent.tree).unwrap_or(Path::new(""));
        prefix.clone_into(&mut repository.prefix);
        repository.branch.clone_from(&parent.from);
        repository.shallow = fs::read_to_string(outer.git().join("shallow")).ok();
        let pinned = Some(parent.pinned.clone());
        Ok(WorktreeOrigin { repository, base: Some(base), pinned, parent: Some(parent) })
    }

    /// Id of the commit that a name stands for in the user's repository. Git reads a copy of the
    /// refs.
    async fn commit(
        &self,
        folder: &Folder,
        user: &Repository,
        repository: &HubRepository,
        name: &str,
    ) -> Result<String, WorktreeError> {
        let none = || WorktreeError::NoBase(name.to_owned());
        let (git_dir, common) = (user.git_dir.clone(), user.common.clone());
        let is_head = name == "HEAD";
        let read = blocking(move || {
            let refs = Refs::open(&git_dir, &common)?;
            let head = refs.head()?.commit().map(str::to_owned);
            let all = if is_head { BTreeMap::new() } else { refs.all()? };
            Ok::<_, WorktreeError>((head, all))
        });
        let (head, all) = read.await??;
        if is_head {
            return head.ok_or_else(none);
        }
        let packed: String = all.iter().map(|(name, id)| format!("{id} {name}\n")).collect();
        let head = head.unwrap_or_else(|| "ref: refs/heads/none".to_owned());
        let write = |name: &str, text: &str| {
            fs::write(repository.path().join(name), text).map_err(WorktreeError::disk)
        };
        write("packed-refs", &packed)?;
        write("HEAD", &format!("{head}\n"))?;
        let revision = format!("{name}^{{commit}}");
        let args = ["rev-parse", "--verify", "--quiet", "--end-of-options", &revision];
        let step = repository.step(&args).accepting(1).accepting(128);
        let found = self.0.git.run(folder.path(), step).await?;
        write("HEAD", "ref: refs/heads/none\n")?;
        fs::remove_file(repository.path().join("packed-refs")).map_err(WorktreeError::disk)?;
        refs::id(&found.text()).filter(|_| found.code == 0).ok_or_else(none)
    }

    async fn make(
        &self,
        folder: &Folder,
        origin: WorktreeOrigin,
        new: &NewWorktree,
    ) -> Result<Worktree, WorktreeError> {
        let WorktreeOrigin { repository: user, base, pinned, parent } = origin;
        let tree = folder.tree();
        let repository = HubRepository::at(folder.git(), &user.objects);
        let is_sha256 = user.is_sha256;
        repository.make(is_sha256, user.shallow.as_deref())?;
        let base = match (base, &parent) {
            (Some(base), Some(parent)) => {
                self.take_pack_of(folder, parent, &base).await?;
                base
            }
            _ => self.commit(folder, &user, &repository, &new.base).await?,
        };
        let listing = self.files_of(folder, &repository, &base).await.map_err(|why| {
            why.refused_if(|_| true, |stderr| format!("the commit `{base}` cannot be read: {stderr}; look for the damage: `git fsck`"))
        })?;
        require_paths(&listing)?;
        let mut stores = alternates(&user.objects)?;
        if parent.is_some() {
            // Relative, since the data directory may move.
            stores.push_str("../../../git/objects\n");
        }
        let (home, of) = (self.0.home.clone(), user.clone());
        let settings =
            blocking(move || GitSettings::for_checkout(&home, &of.settings_paths())).await?;
        let branch = format!("a2a-hub/{}", folder.task());
        let dot_git = AgentGitDirectory {
            path: tree.join(".git"),
            base: base.clone(),
            branch: branch.clone(),
            shallow: user.shallow.clone(),
            author: settings.author(),
            stores,
        };
        let index = self.check_out(folder.path(), &repository, &listing, make_tree(&tree)?).await?;
        let bytes = index.to_bytes(is_sha256);
        let (git, prefix) = (folder.git(), user.prefix.clone());
        let directory = tree.clone();
        blocking(move || {
            dot_git.write(&bytes).map_err(WorktreeError::disk)?;
            for name in [INDEX, BASE_INDEX] {
                fs::write(git.join(name), &bytes).map_err(WorktreeError::disk)?;
            }
            make_subdirectory(&directory, &prefix).map(drop)
        })
        .await??;
        let found = (user.common.as_path(), user.checkout.as_deref());
        let (requested, note) = self.requested_setup(folder, found, &repository, &base).await?;
        let prepared = self.prepare(folder, &user, requested.clone(), settings.excludes).await?;
        let worktree = Worktree {
            task: new.task.clone(),
            tree: PathBuf::new(),
            directory: PathBuf::new(),
            prefix: user.prefix,
            pinned: pinned.unwrap_or_else(|| base.clone()),
            base,
            from: user.branch,
            branch,
            checkout: user.checkout,
            git_dir: user.git_dir,
            repository: user.common,
            stores: user.objects,
            objects: Vec::new(),
            bounds: new.bounds.clone(),
            parent: parent.map(|parent| parent.task),
            created_ms: new.now_ms,
            ports: prepared.ports,
            is_unprepared: prepared.has_setup,
            has_begun: false,
            owner: new.owner.clone(),
            own: requested,
            copied: prepared.copied,
            note,
            applied: Vec::new(),
        };
        // The record first: a ref without a record would never be removed.
        folder.write(&worktree).map_err(WorktreeError::disk)?;
        let worktree = folder.read()?;
        self.set_ref(&worktree, "base", &worktree.pinned).await?;
        Ok(worktree)
    }

    /// Copies the commits of another worktree that the user's repository lacks.
    async fn take_pack_of(
        &self,
        folder: &Folder,
        parent: &Worktree,
        commit: &str,
    ) -> Result<(), WorktreeError> {
        let pack = self.pack(parent, commit, &[]).await?;
        let to = folder.git().join("objects/pack");
        blocking(move || pack.copy_into(&to)).await?
    }

    /// Copies files of the checkout, and reserves ports, as the rules say.
    async fn prepare(
        &self,
        folder: &Folder,
        repository: &Repository,
        requested: RepositoryPreparation,
        excludes_of_user: Vec<u8>,
    ) -> Result<Prepared, WorktreeError> {
        let (rules, worktrees) = (self.rules(), self.clone());
        let (folder, checkout) = (folder.clone(), repository.checkout.clone());
        let common = repository.common.clone();
        blocking(move || {
            let preparation = rules.for_repository(checkout.as_deref(), &common).with(&requested);
            let tree = folder.tree();
            let copied = match &checkout {
                Some(checkout) => copy_files(checkout, &tree, &preparation.copy)?,
                None => Vec::new(),
            };
            // Neither in a commit that the agent makes without looking.
            let info = OpenDirectory::open(&common).ok();
            let info = info.and_then(|it| it.bytes("info/exclude", RULES_LIMIT).ok().flatten());
            let mut all = excludes_of_user;
            all.extend(b"\n");
            all.extend(info.unwrap_or_default());
            all.extend(b"\n");
            all.extend(excludes(&copied).bytes());
            fs::write(tree.join(".git/info/exclude"), all).map_err(WorktreeError::disk)?;
            let reserve =
                |count| worktrees.0.ports.reserve(folder.task(), count, &worktrees.list());
            let ports = Some(preparation.ports).filter(|count| *count > 0);
            let ports = ports.map(reserve).transpose()?;
            Ok(Prepared { ports, has_setup: !preparation.setup.is_empty(), copied })
        })
        .await?
    }

    /// Sets a ref of the task in the user's repository, which keeps its commit from being removed.
    pub(crate) async fn set_ref(
        &self,
        worktree: &Worktree,
        name: &str,
        commit: &str,
    ) -> Result<(), WorktreeError> {
        let _guard = self.lock_repository(&worktree.repository).await;
        let name = format!("{RESULTS}{}/{name}", worktree.task);
        let (common, commit) = (worktree.repository.clone(), commit.to_owned());
        blocking(move || Refs::open(&common, &common)?.set(&name, &commit, Expected::Any, None))
            .await?
    }

    /// Removes the refs of the task in the user's repository.
    pub(crate) async fn remove_refs(&self, worktree: &Worktree) -> Result<(), WorktreeError> {
        self.remove_named_refs(worktree.repository.clone(), refs_of(&worktree.task).into()).await
    }

    /// Removes refs of the repository with this git directory.
    pub(crate) async fn remove_named_refs(
        &self,
        common: PathBuf,
        names: Vec<String>,
    ) -> Result<(), WorktreeError> {
        let _guard = self.lock_repository(&common).await;
        blocking(move || Refs::open(&common, &common)?.remove(&names)).await?
    }

    /// Directory for the temporary files of a step without a worktree.
    pub(crate) fn step_directory(&self) -> Result<&Path, WorktreeError> {
        fs::create_dir_all(self.root()).map_err(WorktreeError::disk)?;
        Ok(self.root())
    }
}

/// Directory of the task: `prefix` below the files of the worktree, made where the base has none.
/// The base decides about the files, so links are not followed (CWE-59).
fn make_subdirectory(tree: &Path, prefix: &Path) -> Result<PathBuf, WorktreeError> {
    let mut directory = tree.to_owned();
    for part in prefix.components() {
        directory.push(part);
        let is_there = match (part, fs::symlink_metadata(&directory)) {
            (Component::Normal(_), Ok(found)) => found.is_dir(),
            (Component::Normal(_), Err(why)) if why.kind() == io::ErrorKind::NotFound => {
                fs::create_dir(&directory).map_err(WorktreeError::disk)?;
                true
            }
            (_, Err(why)) => return Err(WorktreeError::disk(why)),
            (_, Ok(_)) => false,
        };
        if !is_there {
            return Err(WorktreeError::Refused(format!(
                "the base has no directory `{}`; work in the top directory of the checkout",
                prefix.display()
            )));
        }
    }
    Ok(directory)
}

/// Makes the directory of the files, and returns its path.
fn make_tree(tree: &Path) -> Result<PathBuf, WorktreeError> {
    fs::create_dir(tree).map_err(WorktreeError::disk)?;
    Ok(tree.to_owned())
}

/// Preparations of a worktree that its record names.
struct Prepared {
    ports: Option<PortRange>,
    has_setup: bool,
    copied: Vec<String>,
}

/// The agent's git directory, before the agent begins.
struct AgentGitDirectory {
    path: PathBuf,
    base: String,
    branch: String,
    shallow: Option<String>,
    author: Option<(String, String)>,
    /// Lines of `objects/info/alternates`.
    stores: String,
}

impl AgentGitDirectory {
    /// Writes it with a branch at the base (gitrepository-layout(5)).
    fn write(&self, index: &[u8]) -> io::Result<()> {
        let at = |name: &str| self.path.join(name);
        for directory in ["objects/info", "objects/pack", "refs/heads", "refs/tags", "info"] {
            fs::create_dir_all(at(directory))?;
        }
        let head = at("refs/heads").join(&self.branch);
        fs::create_dir_all(head.parent().unwrap_or(&head))?;
        fs::write(head, format!("{}\n", self.base))?;
        fs::write(at("HEAD"), format!("ref: refs/heads/{}\n", self.branch))?;
        fs::write(at("objects/info/alternates"), &self.stores)?;
        if let Some(shallow) = &self.shallow {
            fs::write(at("shallow"), shallow)?;
        }
        let mut config = config_of(self.base.len() == 64, false);
        if let Some((name, address)) = &self.author {
            config +=
                &format!("[user]\n\tname = {}\n\temail = {}\n", quoted(name), quoted(address));
        }
        fs::write(at("config"), config)?;
        fs::write(at("index"), index)
    }
}

/// A value of a git configuration: in quotes, without line ends (git-config(1)).
fn quoted(value: &str) -> String {
    let value = value.replace(|c: char| c.is_control(), " ");
    format!("\"{}\"", value.replace('\\', "\\\\").replace('"', "\\\""))
}
