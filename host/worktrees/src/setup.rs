//! Programs that set a new worktree up before its agent begins, such as `npm ci`.
//!
//! The operator names the programs, and the base of the worktree decides what they do: a package
//! may run scripts when it is installed. So they run confined, or not at all. They see the
//! worktree, the objects of its repository, their installations and what the operator names, and
//! have a home directory that vanishes after them.

use crate::{
    FindProgram, Preparation, Worktree, WorktreeError, Worktrees, blocking,
    record::{Folder, remove_all},
};
use a2a_hub_process::{
    Launch, Output, ProgramExit, SpawnError, Supervisor, WorkingDirectory,
    confine::{Ceilings, Confinement, Network, files_of},
};
use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};
use tokio::time::timeout;

/// Variable with the first port that is reserved for a worktree.
pub const PORT_BASE: &str = "A2A_HUB_PORT_BASE";

/// Directory in the worktree's folder for the home and the temporary files of the programs.
const DIRECTORY: &str = "setup";

/// Search path of the programs, after their own directory.
const PATH: [&str; 3] = ["/usr/local/bin", "/usr/bin", "/bin"];

/// Most memory of one program with its descendants, in bytes: the base decides what it does.
const MEMORY_LIMIT: u64 = 8 << 30;

/// Most processes and threads of one program with its descendants.
const MAX_PROCESSES: u32 = 2_048;

/// Longest end of the output that an error has, in bytes.
const OUTPUT_TAIL: usize = 4 << 10;

/// Most lines of that end.
const LINES: usize = 20;

/// Longest shown command line, in characters.
const SHOWN: usize = 120;

/// Ports of HTTPS and HTTP.
const WEB: [u16; 2] = [443, 80];

/// Programs that a worktree still needs before an agent works in it.
#[derive(Debug)]
pub struct PendingSetup {
    worktree: Worktree,
    preparation: Preparation,
}

impl PendingSetup {
    /// The command lines, for people.
    pub fn command_lines(&self) -> String {
        let commands = self.preparation.setup.iter();
        commands.map(|words| format!("`{}`", shorten(words))).collect::<Vec<_>>().join(", then ")
    }
}

impl Worktrees {
    /// Programs that have to run before an agent works in a task's worktree; none if they have run,
    /// or if its repository needs none.
    ///
    /// # Errors
    /// The task has no worktree, or the disk fails.
    pub async fn pending_setup(&self, task: &str) -> Result<Option<PendingSetup>, WorktreeError> {
        let (folder, rules) = (self.folder(task)?, self.rules());
        let found = blocking(move || {
            let worktree = folder.read()?;
            if !worktree.is_unprepared {
                return Ok::<_, WorktreeError>(None);
            }
            let of = rules.for_repository(worktree.checkout.as_deref(), &worktree.repository);
            let preparation = of.with(&worktree.own);
            Ok(Some(PendingSetup { worktree, preparation }))
        });
        let pending = found.await??;
        match pending {
            Some(pending) if pending.preparation.setup.is_empty() => {
                self.finish(pending.worktree).await.map(|()| None)
            }
            pending => Ok(pending),
        }
    }

    /// Runs the programs of a worktree one after the other. Dropping the future ends the one that
    /// runs.
    ///
    /// # Errors
    /// [`WorktreeError::Setup`] if a program fails or takes too long, and
    /// [`WorktreeError::Refused`] if one cannot be started, or cannot be confined.
    pub async fn set_up(&self, pending: PendingSetup) -> Result<(), WorktreeError> {
        let PendingSetup { worktree, preparation } = pending;
        let limit = preparation.time_limit;
        let mut command = String::new();
        let ran = timeout(limit, self.run_all(&worktree, &preparation, &mut command)).await;
        // No process may write into the worktree any more, whatever comes next.
        self.setup_over(&worktree.task).await;
        ran.unwrap_or_else(|_| {
            let seconds = limit.as_secs();
            let end = format!(
                "was ended after {seconds} seconds, the time limit of `worktrees.setup_timeout`"
            );
            Err(WorktreeError::Setup { command, end, output: String::new() })
        })?;
        self.finish(worktree).await
    }

    /// Waits until no program that sets up the worktree of a task is left.
    pub async fn setup_over(&self, task: &str) {
        self.0.git.supervisor().ended(&owner(task)).await;
    }

    async fn run_all(
        &self,
        worktree: &Worktree,
        preparation: &Preparation,
        command: &mut String,
    ) -> Result<(), WorktreeError> {
        for words in &preparation.setup {
            *command = shorten(words);
            let step = SetupStep { worktree, preparation, words };
            step.run(self.0.git.supervisor(), self.0.find, &self.folder(&worktree.task)?).await?;
        }
        Ok(())
    }

    /// Records that an agent may work in the worktree, and removes the files of the programs.
    async fn finish(&self, mut worktree: Worktree) -> Result<(), WorktreeError> {
        let folder = self.folder(&worktree.task)?;
        worktree.is_unprepared = false;
        blocking(move || {
            let _ = remove_all(&folder.path().join(DIRECTORY));
            folder.write(&worktree)
        })
        .await?
        .map_err(WorktreeError::disk)
    }
}

/// Owner of the programs, by which their end is awaited.
fn owner(task: &str) -> String {
    format!("setup-{task}")
}

/// One program of the setup.
struct SetupStep<'s> {
    worktree: &'s Worktree,
    preparation: &'s Preparation,
    words: &'s [String],
}

impl SetupStep<'_> {
    /// Runs the program to its end.
    async fn run(
        &self,
        supervisor: &Supervisor,
        find: FindProgram,
        folder: &Folder,
    ) -> Result<(), WorktreeError> {
        let network = self.network();
        let support = supervisor.support().await?;
        support.allows(&network).map_err(|why| {
            let why = why.to_string();
            self.refused(&format!("it is to be confined, and this machine cannot do it: {why}"))
        })?;
        let mut child = supervisor.spawn(self.launch(find, folder, network)?).await?;
        child.close_stdin();
        let (mut output, mut exceeded) = (Vec::new(), false);
        let exit = loop {
            match child.next().await {
                Output::Stdout(bytes) | Output::Stderr(bytes) => output.extend(bytes),
                Output::MemoryExceeded(_) => exceeded = true,
                Output::Exited(exit) => break exit,
            }
            let surplus = output.len().saturating_sub(OUTPUT_TAIL);
            output.drain(..surplus);
        };
        let end = match exit {
            ProgramExit::Code(0) => return Ok(()),
            _ if exceeded => format!("used more than {} GiB of memory", MEMORY_LIMIT >> 30),
            ProgramExit::Code(code) => format!("exited with {code}"),
            ProgramExit::Signal(signal) => format!("was ended by signal {signal}"),
        };
        Err(WorktreeError::Setup { command: shorten(self.words), end, output: last_lines(&output) })
    }

    /// Network of the program. An agent wrote the base of a worktree that was made in another
    /// worktree, and could send what it read by a script of a package.
    fn network(&self) -> Network {
        if self.preparation.has_network && self.worktree.parent.is_none() {
            Network::Ports(WEB.into())
        } else {
            Network::Nothing
        }
    }

    fn launch(
        &self,
        find: FindProgram,
        folder: &Folder,
        network: Network,
    ) -> Result<Launch, WorktreeError> {
        let Worktree { task, tree, objects, ports, .. } = self.worktree;
        let (name, args) =
            self.words.split_first().ok_or_else(|| self.refused("it has no name"))?;
        let program = self.program(name, find)?;
        let places = folder.path().join(DIRECTORY);
        let (home, temporary) = (places.join("home"), places.join("tmp"));
        for directory in [&home, &temporary] {
            fs::create_dir_all(directory).map_err(WorktreeError::disk)?;
        }
        let program_dir = program.parent().unwrap_or(Path::new("/"));
        let search: Vec<_> =
            [program_dir].into_iter().chain(PATH.map(Path::new)).map(Path::to_owned).collect();
        let path =
            search.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(":");
        let mut env = vec![
            ("PATH".to_owned(), path),
            ("HOME".to_owned(), home.display().to_string()),
            ("TMPDIR".to_owned(), "/tmp".to_owned()),
            ("LANG".to_owned(), "C.UTF-8".to_owned()),
        ];
        env.extend(ports.map(|ports| (PORT_BASE.to_owned(), ports.first.to_string())));
        env.extend(self.preparation.env.iter().map(|(name, value)| (name.clone(), value.clone())));
        let real = |path: &Path| path.canonicalize().ok();
        let write = vec![tree.clone(), home];
        let read: BTreeSet<PathBuf> = files_of(&program, &search, &write, &|path| real(path))
            .into_iter()
            .chain(self.preparation.read.iter().filter_map(|path| real(path)))
            .chain(objects.iter().cloned())
            .collect();
        let ceilings = Ceilings {
            processes: MAX_PROCESSES,
            memory_bytes: Some(MEMORY_LIMIT),
            ..Ceilings::default()
        };
        let confinement = Confinement {
            read: read.into_iter().collect(),
            write,
            // With `setup_read` above it, the hub's data would be seen.
            hidden: folder.path().ancestors().nth(2).into_iter().map(Path::to_owned).collect(),
            scratch: Vec::new(),
            temporary,
            network,
            nests: false,
            ceilings,
        };
        let cwd = WorkingDirectory::open(tree).map_err(|source| SpawnError::Directory {
            program: program.clone(),
            cwd: tree.clone(),
            source,
        })?;
        let (agent, owner) = ("a2a-hub".to_owned(), owner(task));
        let (args, confinement) = (args.to_vec(), Some(confinement));
        Ok(Launch { agent, owner, program, args, env, cwd, confinement })
    }

    /// Path of the program, with the links of its directory resolved, because they do not exist
    /// for a confined program.
    fn program(&self, name: &str, find: FindProgram) -> Result<PathBuf, WorktreeError> {
        let found = if name.starts_with('/') { Some(PathBuf::from(name)) } else { find(name) };
        let found = found.ok_or_else(|| {
            self.refused("it is not on the PATH that the hub was started with; install it, or give its absolute path")
        })?;
        let real = |path: &Path| Some(path.parent()?.canonicalize().ok()?.join(path.file_name()?));
        Ok(real(&found).unwrap_or(found))
    }

    fn refused(&self, why: &str) -> WorktreeError {
        let name = self.words.first().map_or("", String::as_str);
        WorktreeError::Refused(format!("run `{name}` as `worktrees.setup` says: {why}"))
    }
}

/// The beginning of a command line, for people.
fn shorten(words: &[String]) -> String {
    let full = words.join(" ");
    let begin: String = full.chars().take(SHOWN).collect();
    if begin.len() < full.len() { begin + "…" } else { begin }
}

/// The last lines of an output.
fn last_lines(output: &[u8]) -> String {
    let text = String::from_utf8_lossy(output);
    let lines: Vec<_> = text.trim().lines().collect();
    lines[lines.len().saturating_sub(LINES)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_command_is_cut() {
        assert_eq!(shorten(&["npm", "ci"].map(str::to_owned)), "npm ci");
        let long = shorten(&["sh".to_owned(), "ä".repeat(500)]);
        assert_eq!((long.chars().count(), long.ends_with('…')), (SHOWN + 1, true));
    }

    #[test]
    fn only_last_lines_are_told() {
        assert_eq!(last_lines(b""), "");
        assert_eq!(last_lines(b"one\r\n\n"), "one");
        let many: String = (0..100).map(|line| format!("{line}\n")).collect();
        let told = last_lines(many.as_bytes());
        assert!(told.starts_with("80\n") && told.ends_with("\n99"), "{told}");
    }
}
