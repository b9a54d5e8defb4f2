//! Runs the program git, in repositories that only the hub writes: a clean environment, no
//! configuration but the hub's, no files, no hooks, no external programs, and a confinement that
//! shows each step only what it needs.

use crate::WorktreeError;
use a2a_hub_process::{
    Child, Launch, Output, ProgramExit, SpawnError, Supervisor, WorkingDirectory,
    confine::{Ceilings, Confinement, Network, files_of},
};
use std::{
    ffi::OsStr,
    fs, io,
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};
use tokio::time::{Instant, timeout_at};

/// Longest time of one step.
const TIME_LIMIT: Duration = Duration::from_secs(300);

/// Largest output of a step that is not a diff or a pack, in bytes.
const OUTPUT_LIMIT: usize = 64 << 20;

/// Most memory of a step, in bytes, without mapped files: an agent decides what git has to read.
const MEMORY_LIMIT: u64 = 4 << 30;

/// Longest text of an error, in characters.
const MAX_REPORTED: usize = 1_000;

/// Settings that switch off what git would otherwise run or write.
const SETTINGS: &[&str] = &[
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.untrackedCache=false",
    "core.pager=cat",
    "core.editor=false",
    "core.askPass=",
    "credential.helper=",
    "diff.external=",
    "diff.ignoreSubmodules=none",
    "submodule.recurse=false",
    "protocol.allow=never",
    "gc.auto=0",
    "maintenance.auto=false",
    "commit.gpgSign=false",
    "tag.gpgSign=false",
    "core.quotePath=false",
    "advice.addEmbeddedRepo=false",
    "core.safecrlf=false",
];

/// The program git.
pub(crate) struct Git {
    supervisor: Supervisor,
    program: Option<PathBuf>,
    /// Number of the next step, for the name of its temporary directory.
    next: AtomicU64,
}

/// A bare repository that only the hub writes: its settings are the hub's, and it has no files.
/// Git runs in such repositories and nowhere else.
#[derive(Clone, Debug)]
pub(crate) struct HubRepository {
    path: PathBuf,
    /// Stores of the user's repository, whose objects it reads.
    stores: Vec<PathBuf>,
}

impl HubRepository {
    pub(crate) fn at(path: PathBuf, stores: &[PathBuf]) -> Self {
        Self { path, stores: stores.to_vec() }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Store of the objects that are in no other store.
    pub(crate) fn objects(&self) -> PathBuf {
        self.path.join("objects")
    }

    /// Writes the repository without git: the files are few, and each step of git costs
    /// milliseconds (gitrepository-layout(5)). `shallow` has the commits whose parents are missing.
    pub(crate) fn make(&self, is_sha256: bool, shallow: Option<&str>) -> Result<(), WorktreeError> {
        let stores = alternates(&self.stores)?;
        let write = || -> io::Result<()> {
            for directory in ["objects/info", "objects/pack", "refs/heads", "refs/tags", "info"] {
                fs::create_dir_all(self.path.join(directory))?;
            }
            // A branch without a commit: attributes of no tree count (`attr.tree`).
            fs::write(self.path.join("HEAD"), "ref: refs/heads/none\n")?;
            fs::write(self.path.join("config"), config_of(is_sha256, true))?;
            fs::write(self.path.join("objects/info/alternates"), stores)?;
            match shallow {
                Some(shallow) => fs::write(self.path.join("shallow"), shallow),
                None => Ok(()),
            }
        };
        write().map_err(WorktreeError::disk)
    }

    /// A step on the repository.
    pub(crate) fn step(&self, args: &[&str]) -> GitStep {
        let args = args.iter().map(|&arg| arg.to_owned()).collect();
        GitStep { repository: self.clone(), args, ..GitStep::empty() }
    }
}

/// The part `core` of a repository's configuration.
pub(crate) fn config_of(is_sha256: bool, is_bare: bool) -> String {
    let version = u8::from(is_sha256);
    let format = if is_sha256 { "[extensions]\n\tobjectformat = sha256\n" } else { "" };
    format!(
        "[core]\n\trepositoryformatversion = {version}\n\tfilemode = true\n\tbare = {is_bare}\n[gc]\n\tauto = 0\n{format}"
    )
}

/// Lines of `objects/info/alternates` for these stores.
pub(crate) fn alternates(stores: &[PathBuf]) -> Result<String, WorktreeError> {
    stores.iter().map(|store| utf8(store).map(|path| format!("{path}\n"))).collect()
}

/// One step: a git command on a repository of the hub.
#[derive(Clone)]
pub(crate) struct GitStep {
    repository: HubRepository,
    args: Vec<String>,
    env: Vec<(String, String)>,
    stdin: Vec<u8>,
    read: Vec<PathBuf>,
    write: Vec<PathBuf>,
    limit: usize,
    accepts: Vec<i32>,
}

/// Options of a patch that `git apply` takes, with binary files.
pub(crate) const AS_PATCH: &[&str] =
    &["--binary", "--full-index", "--src-prefix=a/", "--dst-prefix=b/"];

/// Result of a step.
pub(crate) struct GitOutput {
    pub(crate) code: i32,
    pub(crate) stdout: Vec<u8>,
}

impl GitOutput {
    /// Standard output as text, without the line end.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).trim_end().to_owned()
    }
}

impl GitStep {
    fn empty() -> Self {
        let repository = HubRepository { path: PathBuf::new(), stores: Vec::new() };
        let (args, env, stdin, read, write, accepts) = Default::default();
        Self { repository, args, env, stdin, read, write, limit: OUTPUT_LIMIT, accepts }
    }

    pub(crate) fn with_env(mut self, name: &str, value: &str) -> Self {
        self.env.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(crate) fn with_input(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.stdin = bytes.into();
        self
    }

    /// Lets the step read another directory of the hub.
    pub(crate) fn reading<P: AsRef<Path>>(mut self, paths: impl IntoIterator<Item = P>) -> Self {
        self.read.extend(paths.into_iter().map(|path| path.as_ref().to_owned()));
        self
    }

    /// Lets the step write another directory of the hub.
    pub(crate) fn writing(mut self, path: &Path) -> Self {
        self.write.push(path.to_owned());
        self
    }

    /// Lets the step write the repository.
    pub(crate) fn writing_repository(self) -> Self {
        let path = self.repository.path.clone();
        self.writing(&path)
    }

    /// Sets the largest output, in bytes.
    pub(crate) fn with_output_limit(mut self, limit: usize) -> Self {
        self.limit = limit;
        self
    }

    /// Accepts this exit code in addition to 0.
    pub(crate) fn accepting(mut self, code: i32) -> Self {
        self.accepts.push(code);
        self
    }

    fn name(&self) -> String {
        self.args.first().cloned().unwrap_or_default()
    }
}

/// A step at work, whose input and output are streams. Dropping it ends the program.
pub(crate) struct RunningStep {
    child: Child,
    step: GitStep,
    stderr: Vec<u8>,
    exceeded_memory: bool,
    exit: Option<ProgramExit>,
    deadline: Instant,
    /// Directory of its temporary files; removed at the end.
    _temporary: TemporaryDirectory,
}

impl RunningStep {
    /// Queues bytes for the standard input. Only a program that prints little may be given more
    /// than it has read.
    pub(crate) async fn write(&mut self, bytes: &[u8]) -> Result<(), WorktreeError> {
        let written = timeout_at(self.deadline, self.child.write_stdin(bytes)).await;
        match written {
            // A step that ends without reading its input reports the reason on its standard error.
            Ok(_) => Ok(()),
            Err(_) => Err(self.timed_out()),
        }
    }

    pub(crate) fn close_input(&mut self) {
        self.child.close_stdin();
    }

    /// The next part of the standard output; none at the end.
    pub(crate) async fn next(&mut self) -> Result<Option<Vec<u8>>, WorktreeError> {
        while self.exit.is_none() {
            match timeout_at(self.deadline, self.child.next()).await {
                Ok(Output::Stdout(bytes)) => return Ok(Some(bytes)),
                Ok(Output::Stderr(bytes)) => {
                    self.stderr.extend(bytes);
                    let surplus = self.stderr.len().saturating_sub(MAX_REPORTED * 4);
                    self.stderr.drain(..surplus);
                }
                Ok(Output::MemoryExceeded(_)) => self.exceeded_memory = true,
                Ok(Output::Exited(exit)) => self.exit = Some(exit),
                Err(_) => return Err(self.timed_out()),
            }
        }
        Ok(None)
    }

    /// Waits for the end. Output that is left counts for nothing.
    pub(crate) async fn finish(mut self) -> Result<i32, WorktreeError> {
        self.close_input();
        while self.next().await?.is_some() {}
        self.code()
    }

    /// Exit code of a program that has ended.
    fn code(&self) -> Result<i32, WorktreeError> {
        let step = self.step.name();
        match self.exit {
            Some(ProgramExit::Code(code)) if code == 0 || self.step.accepts.contains(&code) => {
                Ok(code)
            }
            Some(ProgramExit::Code(code)) => {
                Err(WorktreeError::Git { step, stderr: message_of(&self.stderr, code) })
            }
            Some(_) if self.exceeded_memory => {
                let stderr = format!("it used more than {} GiB of memory", MEMORY_LIMIT >> 30);
                Err(WorktreeError::Git { step, stderr })
            }
            Some(ProgramExit::Signal(signal)) => {
                Err(WorktreeError::Git { step, stderr: format!("it was ended by signal {signal}") })
            }
            None => Err(WorktreeError::Git { step, stderr: "it has not ended".to_owned() }),
        }
    }

    fn timed_out(&self) -> WorktreeError {
        WorktreeError::TimedOut { step: self.step.name(), seconds: TIME_LIMIT.as_secs() }
    }
}

impl Git {
    pub(crate) fn new(supervisor: Supervisor, program: Option<PathBuf>) -> Self {
        Self { supervisor, program, next: AtomicU64::new(0) }
    }

    pub(crate) fn supervisor(&self) -> &Supervisor {
        &self.supervisor
    }

    /// Runs a step to its end. `scratch_dir` is a directory in which the step's temporary files may
    /// be.
    pub(crate) async fn run(
        &self,
        scratch_dir: &Path,
        step: GitStep,
    ) -> Result<GitOutput, WorktreeError> {
        let (name, limit) = (step.name(), step.limit);
        let input = step.stdin.clone();
        let mut running = self.start(scratch_dir, step).await?;
        if !input.is_empty() {
            running.write(&input).await?;
        }
        running.close_input();
        let mut stdout = Vec::new();
        while let Some(bytes) = running.next().await? {
            stdout.extend(bytes);
            if stdout.len() > limit {
                return Err(WorktreeError::TooLarge { step: name, limit });
            }
        }
        Ok(GitOutput { code: running.code()?, stdout })
    }

    /// Starts a step.
    pub(crate) async fn start(
        &self,
        scratch_dir: &Path,
        step: GitStep,
    ) -> Result<RunningStep, WorktreeError> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let temporary = scratch_dir.join(format!(".step-{number}"));
        fs::create_dir_all(&temporary).map_err(WorktreeError::disk)?;
        let removed = TemporaryDirectory(temporary.clone());
        let launch = self.launch(&step, temporary).await?;
        let child = self.supervisor.spawn(launch).await?;
        let deadline = Instant::now() + TIME_LIMIT;
        Ok(RunningStep {
            child,
            step,
            stderr: Vec::new(),
            exceeded_memory: false,
            exit: None,
            deadline,
            _temporary: removed,
        })
    }

    async fn launch(&self, step: &GitStep, temporary: PathBuf) -> Result<Launch, WorktreeError> {
        let program = self.program.clone().ok_or(WorktreeError::NoGit)?;
        let cwd = step.repository.path();
        let cwd = WorkingDirectory::open(cwd).map_err(|source| SpawnError::Directory {
            program: program.clone(),
            cwd: cwd.to_owned(),
            source,
        })?;
        let mut args = vec!["--literal-pathspecs".to_owned(), "--no-pager".to_owned()];
        args.push(format!("--git-dir={}", utf8(step.repository.path())?));
        for setting in SETTINGS {
            args.extend(["-c".to_owned(), (*setting).to_owned()]);
        }
        args.extend(step.args.iter().cloned());
        let mut env: Vec<_> = [
            ("PATH", "/usr/local/bin:/usr/bin:/bin"),
            ("HOME", "/nonexistent"),
            ("LC_ALL", "C.UTF-8"),
            ("GIT_CONFIG_NOSYSTEM", "1"),
            ("GIT_CONFIG_GLOBAL", "/dev/null"),
            ("GIT_ATTR_NOSYSTEM", "1"),
            ("GIT_TERMINAL_PROMPT", "0"),
            ("GIT_OPTIONAL_LOCKS", "0"),
            ("GIT_NO_LAZY_FETCH", "1"),
            ("GIT_ALLOW_PROTOCOL", ""),
            ("GIT_AUTHOR_NAME", "a2a-hub"),
            ("GIT_AUTHOR_EMAIL", "a2a-hub@localhost"),
            ("GIT_COMMITTER_NAME", "a2a-hub"),
            ("GIT_COMMITTER_EMAIL", "a2a-hub@localhost"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into();
        env.push(("TMPDIR".to_owned(), utf8(&temporary)?.to_owned()));
        env.extend(step.env.iter().cloned());
        let confinement = self.confinement(&program, step, temporary).await;
        let (agent, owner) = ("a2a-hub".to_owned(), "worktrees".to_owned());
        Ok(Launch { agent, owner, program, args, env, cwd, confinement })
    }

    /// Confinement of a step; none if this machine cannot confine programs.
    async fn confinement(
        &self,
        program: &Path,
        step: &GitStep,
        temporary: PathBuf,
    ) -> Option<Confinement> {
        let support = self.supervisor.support().await.ok()?;
        support.allows(&Network::Nothing).ok()?;
        let real = |path: &Path| path.canonicalize().ok();
        let files = files_of(program, &[], &step.write, &|path| real(path));
        let HubRepository { path, stores } = &step.repository;
        let repository_paths = [path].into_iter().chain(stores).chain(&step.read).cloned();
        let read = files.into_iter().chain(repository_paths);
        let read = read.filter_map(|path| real(&path)).collect();
        let write = step.write.iter().filter_map(|path| real(path)).collect();
        let ceilings = Ceilings { memory_bytes: Some(MEMORY_LIMIT), ..Ceilings::default() };
        Some(Confinement { read, write, temporary, ceilings, ..Confinement::default() })
    }
}

/// A directory that is removed when it is dropped.
struct TemporaryDirectory(PathBuf);

impl Drop for TemporaryDirectory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The end of what git wrote to its standard error, for a person.
fn message_of(stderr: &[u8], code: i32) -> String {
    let text = String::from_utf8_lossy(stderr);
    let text = text.trim();
    if text.is_empty() {
        return format!("it exited with {code}");
    }
    let skipped = text.chars().count().saturating_sub(MAX_REPORTED);
    text.chars().skip(skipped).collect()
}

/// A path as text, which arguments must be.
pub(crate) fn utf8(path: &Path) -> Result<&str, WorktreeError> {
    let text = path.to_str().filter(|text| !text.contains(char::is_control));
    text.ok_or_else(|| not_text(path.as_os_str()))
}

fn not_text(path: &OsStr) -> WorktreeError {
    let path = path.to_string_lossy();
    WorktreeError::Unsupported(format!(
        "the path `{path}` of the repository is not UTF-8, or has control characters; move the repository to a path that is"
    ))
}
