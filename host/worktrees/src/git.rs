//! Runs the program git: a clean environment, no configuration but a repository's own, no hooks, no
//! external programs, and a confinement that shows each step only what it needs.

use crate::WorktreeError;
use a2a_hub_process::{
    Launch, Output, ProgramExit, SpawnError, Supervisor, WorkingDirectory,
    confine::{Ceilings, Confinement, Network, files_of},
};
use std::{
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};
use tokio::time::timeout;

/// Longest time of one step.
const TIME_LIMIT: Duration = Duration::from_secs(300);

/// Largest output of a step that is not a diff or a pack, in bytes.
const OUTPUT_LIMIT: usize = 64 << 20;

/// Most memory of a step, in bytes, without mapped files: an agent decides what git has to read.
const MEMORY_LIMIT: u64 = 4 << 30;

/// Longest text of an error, in characters.
const SAID: usize = 1_000;

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
    "diff.ignoreSubmodules=all",
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

/// One step: a git command with all that it sees.
#[derive(Clone, Default)]
pub(crate) struct GitStep {
    /// Git directory that it works on.
    git_dir: PathBuf,
    /// Directory with the files; none for a step without files.
    work_tree: Option<PathBuf>,
    args: Vec<String>,
    env: Vec<(String, String)>,
    stdin: Vec<u8>,
    read: Vec<PathBuf>,
    write: Vec<PathBuf>,
    limit: Option<usize>,
    accepts: Vec<i32>,
}

/// Arguments of a step that takes a pack on its standard input, and hashes and checks each object.
pub(crate) const INDEX_PACK: &[&str] = &["index-pack", "--stdin", "--fix-thin", "--strict"];

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
    pub(crate) fn on(git_dir: &Path, args: &[&str]) -> Self {
        let args = args.iter().map(|&arg| arg.to_owned()).collect();
        Self { git_dir: git_dir.to_owned(), args, ..Self::default() }
    }

    pub(crate) fn with_files(mut self, work_tree: &Path) -> Self {
        self.work_tree = Some(work_tree.to_owned());
        self
    }

    pub(crate) fn with_env(mut self, name: &str, value: &str) -> Self {
        self.env.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(crate) fn with_input(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.stdin = bytes.into();
        self
    }

    pub(crate) fn reading<P: AsRef<Path>>(mut self, paths: impl IntoIterator<Item = P>) -> Self {
        self.read.extend(paths.into_iter().map(|path| path.as_ref().to_owned()));
        self
    }

    pub(crate) fn writing<P: AsRef<Path>>(mut self, paths: impl IntoIterator<Item = P>) -> Self {
        self.write.extend(paths.into_iter().map(|path| path.as_ref().to_owned()));
        self
    }

    /// Sets the largest output, in bytes.
    pub(crate) fn at_most(mut self, limit: usize) -> Self {
        self.limit = Some(limit);
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

impl Git {
    pub(crate) fn new(supervisor: Supervisor, program: Option<PathBuf>) -> Self {
        Self { supervisor, program, next: AtomicU64::new(0) }
    }

    pub(crate) fn supervisor(&self) -> &Supervisor {
        &self.supervisor
    }

    /// Runs a step to its end. `place` is a directory in which the step's temporary files may be.
    pub(crate) async fn run(
        &self,
        place: &Path,
        step: GitStep,
    ) -> Result<GitOutput, WorktreeError> {
        let name = step.name();
        let ran = timeout(TIME_LIMIT, self.run_unlimited(place, step)).await;
        let seconds = TIME_LIMIT.as_secs();
        ran.unwrap_or(Err(WorktreeError::TimedOut { step: name, seconds }))
    }

    async fn run_unlimited(&self, place: &Path, step: GitStep) -> Result<GitOutput, WorktreeError> {
        let name = step.name();
        let limit = step.limit.unwrap_or(OUTPUT_LIMIT);
        let temporary = place.join(format!(".step-{}", self.next.fetch_add(1, Ordering::Relaxed)));
        fs::create_dir_all(&temporary).map_err(WorktreeError::disk)?;
        let _removed = Removed(temporary.clone());
        let launch = self.launch(&step, temporary).await?;
        let mut child = self.supervisor.spawn(launch).await?;
        // A step that ends without reading its input reports the reason on its standard error.
        if !step.stdin.is_empty() {
            let _ = child.write_stdin(&step.stdin).await;
        }
        child.close_stdin();
        let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
        let exit = loop {
            match child.next().await {
                Output::Stdout(bytes) => stdout.extend(bytes),
                Output::Stderr(bytes) => stderr.extend(bytes),
                Output::MemoryExceeded(_) => {}
                Output::Exited(exit) => break exit,
            }
            if stdout.len() > limit {
                return Err(WorktreeError::TooLarge { step: name, limit });
            }
            let surplus = stderr.len().saturating_sub(SAID * 4);
            stderr.drain(..surplus);
        };
        match exit {
            ProgramExit::Code(code) if code == 0 || step.accepts.contains(&code) => {
                Ok(GitOutput { code, stdout })
            }
            ProgramExit::Code(code) => {
                Err(WorktreeError::Git { step: name, said: said(&stderr, code) })
            }
            ProgramExit::Signal(signal) => Err(WorktreeError::Git {
                step: name,
                said: format!("it was ended by signal {signal}"),
            }),
        }
    }

    async fn launch(&self, step: &GitStep, temporary: PathBuf) -> Result<Launch, WorktreeError> {
        let program = self.program.clone().ok_or(WorktreeError::NoGit)?;
        let cwd = step.work_tree.as_ref().unwrap_or(&step.git_dir);
        let cwd = WorkingDirectory::open(cwd).map_err(|source| SpawnError::Directory {
            program: program.clone(),
            cwd: cwd.clone(),
            source,
        })?;
        let mut args = vec!["--literal-pathspecs".to_owned(), "--no-pager".to_owned()];
        args.push(format!("--git-dir={}", utf8(&step.git_dir)?));
        if let Some(files) = &step.work_tree {
            args.push(format!("--work-tree={}", utf8(files)?));
        }
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
        let own = [&step.git_dir].into_iter().chain(&step.work_tree).cloned();
        let read = files.into_iter().chain(own).chain(step.read.iter().cloned());
        let read = read.filter_map(|path| real(&path)).collect();
        let write = step.write.iter().filter_map(|path| real(path)).collect();
        let ceilings = Ceilings { memory_bytes: Some(MEMORY_LIMIT), ..Ceilings::default() };
        Some(Confinement { read, write, temporary, ceilings, ..Confinement::default() })
    }
}

/// Removes a directory when it is dropped.
struct Removed(PathBuf);

impl Drop for Removed {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The end of what git said, for a person.
fn said(stderr: &[u8], code: i32) -> String {
    let text = String::from_utf8_lossy(stderr);
    let text = text.trim();
    if text.is_empty() {
        return format!("it exited with {code}");
    }
    let skipped = text.chars().count().saturating_sub(SAID);
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
