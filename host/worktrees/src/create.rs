//! Creation of a worktree.

use crate::{
    OwnPreparation, PortRange, Worktree, WorktreeError, WorktreeOwner, Worktrees, blocking,
    copied::{copy_files, excludes},
    git::{GitStep, INDEX_PACK, utf8},
    record::Folder,
    repository::Repository,
};
use std::{
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
}

/// Origin of a new worktree.
struct WorktreeOrigin {
    repository: Repository,
    /// Commit that the work starts from.
    base: String,
    /// Last commit below `base` that the user's repository has.
    pinned: String,
    /// Worktree whose work it starts from, if it does.
    parent: Option<Worktree>,
}

impl Worktrees {
    /// Creates a worktree: files of the base commit, in a separate repository. What is not
    /// committed in the user's checkout is not in it. A worktree in a worktree starts from the
    /// present files of the latter.
    ///
    /// # Errors
    /// The directory is in no repository, the base is no commit, the task has a worktree already,
    /// or git or the disk fails. Nothing is left then.
    pub async fn create(&self, new: NewWorktree) -> Result<Worktree, WorktreeError> {
        let is_text = !new.base.is_empty() && !new.base.chars().any(char::is_control);
        if !is_text || new.base.len() > 255 {
            return Err(WorktreeError::NoBase(new.base.chars().take(255).collect()));
        }
        let origin = match Folder::above(self.root(), &new.directory) {
            Some(above) => self.origin_in_worktree(&above, &new).await?,
            None => self.origin_in_repository(&new).await?,
        };
        let _held = self.lock(&new.task).await;
        let folder = self.folder(&new.task)?;
        folder.make().map_err(|why| {
            if why.kind() != io::ErrorKind::AlreadyExists {
                return WorktreeError::disk(why);
            }
            WorktreeError::Refused(format!(
                "task `{}` has a worktree already; discard it first: `a2a-hub task discard {0}`",
                new.task
            ))
        })?;
        let made = self.make(&folder, origin, &new).await;
        if made.is_err() {
            let _ = self.remove(folder).await;
        }
        made
    }

    async fn origin_in_repository(
        &self,
        new: &NewWorktree,
    ) -> Result<WorktreeOrigin, WorktreeError> {
        let directory = new.directory.clone();
        let repository = blocking(move || Repository::find(&directory)).await??;
        let base = self.commit(&repository, &new.base).await?;
        Ok(WorktreeOrigin { repository, pinned: base.clone(), base, parent: None })
    }

    /// Starts from the present files of another worktree.
    async fn origin_in_worktree(
        &self,
        above: &Folder,
        new: &NewWorktree,
    ) -> Result<WorktreeOrigin, WorktreeError> {
        let parent = above.read()?;
        if new.base != "HEAD" {
            return Err(WorktreeError::Refused(format!(
                "a worktree in the worktree of task `{}` starts from the files there; leave the base out",
                parent.task
            )));
        }
        let base = self.snapshot(above.task()).await?.commit;
        let prefix = new.directory.strip_prefix(&parent.tree).unwrap_or(Path::new(""));
        let repository = Repository {
            git_dir: parent.git_dir.clone(),
            common: parent.repository.clone(),
            checkout: parent.checkout.clone(),
            prefix: prefix.to_owned(),
            objects: parent.objects.clone(),
            branch: parent.from.clone(),
            shallow: fs::read_to_string(above.git().join("shallow")).ok(),
        };
        Ok(WorktreeOrigin { repository, base, pinned: parent.pinned.clone(), parent: Some(parent) })
    }

    /// Id of the commit that a name stands for in the user's repository.
    async fn commit(&self, repository: &Repository, name: &str) -> Result<String, WorktreeError> {
        let name = format!("{name}^{{commit}}");
        let args = ["rev-parse", "--verify", "--quiet", "--end-of-options", &name];
        let step = GitStep::on(&repository.git_dir, &args).accepting(1).accepting(128);
        let step = step.reading([&repository.common]).reading(&repository.objects);
        let found = self.0.git.run(self.step_directory()?, step).await?;
        let id = found.text();
        let is_id = found.code == 0 && matches!(id.len(), 40 | 64);
        if is_id { Ok(id) } else { Err(WorktreeError::NoBase(name.replace("^{commit}", ""))) }
    }

    async fn make(
        &self,
        folder: &Folder,
        origin: WorktreeOrigin,
        new: &NewWorktree,
    ) -> Result<Worktree, WorktreeError> {
        let WorktreeOrigin { repository, base, pinned, parent } = origin;
        let (tree, git) = (folder.tree(), folder.git());
        let branch = format!("a2a-hub/{}", folder.task());
        let mut stores = repository.objects.clone();
        let shallow = repository.shallow.as_deref();
        let own = GitDirectory { path: &git, base: &base, shallow, is_bare: true, author: None };
        own.write("result", &[&stores, &[tree.join(".git/objects")][..]].concat())?;
        if let Some(parent) = &parent {
            let pack = self.pack(parent, &base).await?;
            let step = GitStep::on(&git, INDEX_PACK).with_input(pack).writing([&git]);
            let step = step.reading(&stores);
            self.0.git.run(folder.path(), step).await?;
            stores.push(git.join("objects"));
        }
        let dot_git = tree.join(".git");
        let author = self.author(&repository.git_dir).await;
        let author = author.as_ref();
        let agents = GitDirectory { path: &dot_git, base: &base, shallow, is_bare: false, author };
        agents.write(&branch, &stores)?;
        let step = GitStep::on(&dot_git, &["read-tree", "-m", "-u", &base]).with_files(&tree);
        let step = step.writing([&tree]).reading(&stores);
        self.0.git.run(folder.path(), step).await?;
        // The index knows the times of the files, so the first snapshot reads only changed ones.
        let (from, to) = (dot_git.join("index"), git.join("index"));
        blocking(move || fs::copy(from, to)).await?.map_err(WorktreeError::disk)?;
        let directory = directory_below(&tree, &repository.prefix)?;
        let found = (repository.common.as_path(), repository.checkout.as_deref());
        let (own, note) = self.own_wishes(folder, found, &stores, &base).await?;
        let (ports, is_unprepared) = self.prepare(folder, &repository, own.clone()).await?;
        let worktree = Worktree {
            task: new.task.clone(),
            tree,
            directory,
            base,
            from: repository.branch,
            branch,
            checkout: repository.checkout,
            git_dir: repository.git_dir,
            repository: repository.common,
            pinned,
            objects: stores,
            parent: parent.map(|parent| parent.task),
            created_ms: new.now_ms,
            ports,
            is_unprepared,
            owner: new.owner.clone(),
            own,
            note,
        };
        // The record first: a ref without a record would never be removed.
        folder.write(&worktree).map_err(WorktreeError::disk)?;
        self.set_ref(&worktree, "base", &worktree.pinned).await?;
        Ok(worktree)
    }

    /// Copies files of the checkout, and reserves ports, as the rules say. Returns the ports, and
    /// true if programs have to set the worktree up.
    async fn prepare(
        &self,
        folder: &Folder,
        repository: &Repository,
        own: OwnPreparation,
    ) -> Result<(Option<PortRange>, bool), WorktreeError> {
        let (rules, worktrees) = (self.rules(), self.clone());
        let (folder, checkout) = (folder.clone(), repository.checkout.clone());
        let common = repository.common.clone();
        blocking(move || {
            let preparation = rules.of(checkout.as_deref(), &common).with(&own);
            let tree = folder.tree();
            let copied = match &checkout {
                Some(checkout) => copy_files(checkout, &tree, &preparation.copy)?,
                None => Vec::new(),
            };
            // Neither in the result, nor in a commit that the agent makes without looking.
            for git_dir in [folder.git(), tree.join(".git")] {
                fs::write(git_dir.join("info/exclude"), excludes(&copied))
                    .map_err(WorktreeError::disk)?;
            }
            let reserve =
                |count| worktrees.0.ports.reserve(folder.task(), count, &worktrees.list());
            let ports = Some(preparation.ports).filter(|count| *count > 0);
            let ports = ports.map(reserve).transpose()?;
            Ok((ports, !preparation.setup.is_empty()))
        })
        .await?
    }

    /// Name and address of the user as git has them: in the repository's settings, or the user's
    /// own; none if neither says it.
    pub(crate) async fn author(&self, git_dir: &Path) -> Option<(String, String)> {
        let args = ["config", "--get-regexp", r"^user\.(name|email)$"];
        let mut step = GitStep::on(git_dir, &args).accepting(1);
        if let Some(home) = &self.0.home {
            let settings = home.join(".gitconfig");
            if settings.is_file() {
                step = step.with_env("GIT_CONFIG_GLOBAL", utf8(&settings).ok()?);
                step = step.reading([settings]);
            }
        }
        let said = self.0.git.run(self.step_directory().ok()?, step).await.ok()?.text();
        // The last value of each counts.
        let value = |name: &str| {
            said.lines().rev().find_map(|line| line.strip_prefix(name)).map(str::to_owned)
        };
        Some((value("user.name ")?, value("user.email ")?))
    }

    /// Sets a ref of the task in the user's repository, which keeps its commit from being removed.
    pub(crate) async fn set_ref(
        &self,
        worktree: &Worktree,
        name: &str,
        commit: &str,
    ) -> Result<(), WorktreeError> {
        let name = format!("refs/a2a-hub/{}/{name}", worktree.task);
        let step = GitStep::on(&worktree.repository, &["update-ref", &name, commit]);
        let step = step.writing([&worktree.repository]).reading(&worktree.objects);
        self.0.git.run(self.step_directory()?, step).await.map(drop)
    }

    /// Removes the refs of the task in the user's repository.
    pub(crate) async fn remove_refs(&self, worktree: &Worktree) -> Result<(), WorktreeError> {
        let refs = ["base", "result"]
            .map(|name| format!("delete refs/a2a-hub/{}/{name}\n", worktree.task));
        let step = GitStep::on(&worktree.repository, &["update-ref", "--stdin"]);
        let step = step.with_input(refs.concat());
        let step = step.writing([&worktree.repository]).reading(&worktree.objects);
        self.0.git.run(self.step_directory()?, step).await.map(drop)
    }

    /// Directory for the temporary files of a step without a worktree.
    pub(crate) fn step_directory(&self) -> Result<&Path, WorktreeError> {
        fs::create_dir_all(self.root()).map_err(WorktreeError::disk)?;
        Ok(self.root())
    }
}

/// Directory of the task: `prefix` below the files of the worktree, made where the base has none.
/// The base decides about the files, so links are not followed (CWE-59).
fn directory_below(tree: &Path, prefix: &Path) -> Result<PathBuf, WorktreeError> {
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

/// A git directory to be written. It is written without git: the files are few, and each step of
/// git costs milliseconds.
struct GitDirectory<'a> {
    path: &'a Path,
    base: &'a str,
    shallow: Option<&'a str>,
    is_bare: bool,
    author: Option<&'a (String, String)>,
}

impl GitDirectory<'_> {
    /// Writes it with a branch at the base, reading objects from `stores`
    /// (gitrepository-layout(5)).
    fn write(&self, branch: &str, stores: &[PathBuf]) -> Result<(), WorktreeError> {
        let stores = stores.iter().map(|store| utf8(store).map(|path| format!("{path}\n")));
        let stores = stores.collect::<Result<String, _>>()?;
        self.write_files(branch, &stores).map_err(WorktreeError::disk)
    }

    fn write_files(&self, branch: &str, stores: &str) -> io::Result<()> {
        let at = |name: &str| self.path.join(name);
        for directory in ["objects/info", "objects/pack", "refs/heads", "refs/tags", "info"] {
            fs::create_dir_all(at(directory))?;
        }
        let head = at("refs/heads").join(branch);
        fs::create_dir_all(head.parent().unwrap_or(&head))?;
        fs::write(head, format!("{}\n", self.base))?;
        fs::write(at("HEAD"), format!("ref: refs/heads/{branch}\n"))?;
        fs::write(at("objects/info/alternates"), stores)?;
        if let Some(shallow) = self.shallow {
            fs::write(at("shallow"), shallow)?;
        }
        let mut config = String::from("[core]\n");
        let is_sha256 = self.base.len() == 64;
        config += &format!("\trepositoryformatversion = {}\n", u8::from(is_sha256));
        config += &format!("\tfilemode = true\n\tbare = {}\n[gc]\n\tauto = 0\n", self.is_bare);
        if is_sha256 {
            config += "[extensions]\n\tobjectformat = sha256\n";
        }
        if let Some((name, address)) = self.author {
            config +=
                &format!("[user]\n\tname = {}\n\temail = {}\n", quoted(name), quoted(address));
        }
        fs::write(at("config"), config)
    }
}

/// A value of a git configuration: in quotes, without line ends (git-config(1)).
fn quoted(value: &str) -> String {
    let value = value.replace(|c: char| c.is_control(), " ");
    format!("\"{}\"", value.replace('\\', "\\\\").replace('"', "\\\""))
}
