//! What is to be started, and the reasons why it was not.

use std::path::{Path, PathBuf};
use std::{fmt, io};

use rustix::io::Errno;

use super::WorkingDirectory;
use super::confine::{Confinement, NotConfined};

/// One program to start. Nothing is inherited: it gets these variables, the markers, and no others.
#[derive(Clone, PartialEq, Eq)]
pub struct Launch {
    /// The agent that it works for: part of whose its processes are ([`Kin`](super::Kin)).
    pub agent: String,
    /// On whose behalf; [`Supervisor::ended`](super::Supervisor::ended) waits by this name.
    pub owner: String,
    /// The absolute path of the executable.
    pub program: PathBuf,
    /// Its arguments, without the program's own name.
    pub args: Vec<String>,
    /// Its whole environment; of two values for one name the later counts.
    pub env: Vec<(String, String)>,
    /// The directory it starts in.
    pub cwd: WorkingDirectory,
    /// What it may see, write, reach and use up; all that the hub may, if nothing is said.
    pub confinement: Option<Confinement>,
}

/// Names variables without their values, which may be secrets: whatever is logged of a launch, they are not.
impl fmt::Debug for Launch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { agent, owner, program, args, env, cwd, confinement } = self;
        let names: Vec<_> = env.iter().map(|(name, _)| name).collect();
        f.debug_struct("Launch")
            .field("agent", agent)
            .field("owner", owner)
            .field("program", program)
            .field("args", args)
            .field("env", &names)
            .field("cwd", cwd)
            .field("confinement", confinement)
            .finish()
    }
}

/// Why a program could not be started.
#[derive(Debug, thiserror::Error)]
pub enum SpawnError {
    /// Which program would run depended on a search path.
    #[error("start {program}: not an absolute path; name the program from the root")]
    Relative {
        /// As it was asked for.
        program: PathBuf,
    },
    /// The environment holds a name or value that no environment can.
    #[error(
        "start {program}: the variable {name:?} has an empty name, or holds `=` or NUL where it may not"
    )]
    Variable {
        /// As it was asked for.
        program: PathBuf,
        /// The environment variable that was to be set.
        name: String,
    },
    /// The working directory is missing, no directory, or closed to the hub.
    #[error("start {program} in {cwd}: {source}; create the directory or let the hub enter it")]
    Directory {
        /// As it was asked for.
        program: PathBuf,
        /// The directory it should have started in.
        cwd: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// There is no such file, or for a script no such interpreter.
    #[error(
        "start {program}: it, or the interpreter it names, does not exist; install it or correct the path"
    )]
    Missing {
        /// As it was asked for.
        program: PathBuf,
    },
    /// The file is there, and may not be run.
    #[error(
        "start {program}: it may not be executed by the hub's user; see its mode (chmod +x) and how it is mounted"
    )]
    Forbidden {
        /// As it was asked for.
        program: PathBuf,
    },
    /// The system limits one argument to 128 KiB and all of them together.
    #[error(
        "start {program}: arguments and environment are too long for this system; use its standard input"
    )]
    TooLong {
        /// As it was asked for.
        program: PathBuf,
    },
    /// The file may be there, and a confined program does not see it.
    #[error(
        "start {program}: confined, it does not see this file, the interpreter that it names, or the loader that it needs; name the \
         directory of its installation among those that it may read"
    )]
    Unseen {
        /// As it was asked for.
        program: PathBuf,
    },
    /// It was to be confined, and could not be; so it was not started.
    #[error("start {program}: it was not confined, so it was not started: failed to {source}")]
    NotConfined {
        /// As it was asked for.
        program: PathBuf,
        /// What failed.
        source: NotConfined,
    },
    /// Whatever else the system said.
    #[error("start {program}: {source}")]
    System {
        /// As it was asked for.
        program: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The hub's own half of the arrangement failed.
    #[error("start a minder from {minder}: {source}; is the hub's executable still in place?")]
    Minder {
        /// The executable that should have become the minder.
        minder: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// [`Supervisor::shutdown`](super::Supervisor::shutdown) was called: nothing is started any more.
    #[error("start {program}: the hub is shutting down; try again when it is back")]
    ShuttingDown {
        /// As it was asked for.
        program: PathBuf,
    },
}

impl SpawnError {
    /// The reason behind what `exec` or `fork` returned.
    pub(super) fn from_system(program: &Path, source: io::Error) -> Self {
        let program = program.to_path_buf();
        match Errno::from_io_error(&source) {
            Some(Errno::NOENT) => Self::Missing { program },
            Some(Errno::ACCESS | Errno::PERM) => Self::Forbidden { program },
            Some(Errno::TOOBIG) => Self::TooLong { program },
            _ => Self::System { program, source },
        }
    }
}

impl Launch {
    /// Refuses what can be told to fail without trying.
    pub(super) async fn check(&self) -> Result<(), SpawnError> {
        let program = || self.program.clone();
        if !self.program.is_absolute() {
            return Err(SpawnError::Relative { program: program() });
        }
        for (name, value) in &self.env {
            if name.is_empty() || name.contains(['=', '\0']) || value.contains('\0') {
                return Err(SpawnError::Variable { program: program(), name: name.clone() });
            }
        }
        // The dot asks for the right to enter, not only for the name.
        match tokio::fs::metadata(self.cwd.entry().join(".")).await {
            Ok(_) => Ok(()),
            Err(source) => {
                let cwd = self.cwd.path().to_owned();
                Err(SpawnError::Directory { program: program(), cwd, source })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_variables_are_not_told() {
        let launch = Launch {
            agent: "a".to_owned(),
            owner: "task".to_owned(),
            program: "/bin/true".into(),
            args: Vec::new(),
            env: vec![("API_KEY".to_owned(), "hush".to_owned())],
            cwd: WorkingDirectory::open(Path::new("/")).unwrap(),
            confinement: None,
        };
        let told = format!("{launch:?}");
        assert!(told.contains("API_KEY") && !told.contains("hush"), "{told}");
    }
}
