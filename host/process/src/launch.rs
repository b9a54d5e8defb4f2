//! Launch parameters of a program, and the reasons why a start fails.

use std::path::{Path, PathBuf};
use std::{fmt, io};

use rustix::io::Errno;

use super::WorkingDirectory;
use super::confine::{Confinement, NotConfined};

/// A program to start. Nothing is inherited: its environment is exactly these variables and the
/// markers.
#[derive(Clone, PartialEq, Eq)]
pub struct Launch {
    /// Agent that the program works for: part of the identity of its processes
    /// ([`ProcessOrigin`](super::ProcessOrigin)).
    pub agent: String,
    /// Owner of the program; [`Supervisor::ended`](super::Supervisor::ended) waits by this name.
    pub owner: String,
    /// Absolute path of the executable.
    pub program: PathBuf,
    /// Arguments, without the program's own name.
    pub args: Vec<String>,
    /// Whole environment; the last value of a repeated name counts.
    pub env: Vec<(String, String)>,
    /// The directory it starts in.
    pub cwd: WorkingDirectory,
    /// Limits on the program's files, network and resources; without a value, it has the same
    /// rights as the hub.
    pub confinement: Option<Confinement>,
}

/// Omits the values of variables, which may be secrets, so that no log contains them.
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

/// Reason why a program could not be started.
#[derive(Debug, thiserror::Error)]
pub enum SpawnError {
    /// The path is relative, so the program would depend on a search path.
    #[error("start {program}: not an absolute path; name the program from the root")]
    Relative {
        /// Requested program.
        program: PathBuf,
    },
    /// The environment contains an invalid name or value.
    #[error(
        "start {program}: the variable {name:?} has an empty name, or holds `=` or NUL where it may not"
    )]
    Variable {
        /// Requested program.
        program: PathBuf,
        /// Name of the variable.
        name: String,
    },
    /// The working directory is missing, not a directory, or not accessible to the hub.
    #[error("start {program} in {cwd}: {source}; create the directory or let the hub enter it")]
    Directory {
        /// Requested program.
        program: PathBuf,
        /// Requested working directory.
        cwd: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The file, or a script's interpreter, does not exist.
    #[error(
        "start {program}: it, or the interpreter it names, does not exist; install it or correct the path"
    )]
    Missing {
        /// Requested program.
        program: PathBuf,
    },
    /// The file exists and is not executable.
    #[error(
        "start {program}: it may not be executed by the hub's user; see its mode (chmod +x) and how it is mounted"
    )]
    Forbidden {
        /// Requested program.
        program: PathBuf,
    },
    /// Arguments and environment exceed the system's limits: 128 KiB for one argument, and a limit
    /// for all together.
    #[error(
        "start {program}: arguments and environment are too long for this system; use its standard input"
    )]
    TooLong {
        /// Requested program.
        program: PathBuf,
    },
    /// A confined program does not see the file, which may exist.
    #[error(
        "start {program}: confined, it does not see this file, the interpreter that it names, or the loader that it needs; name the \
         directory of its installation among those that it may read"
    )]
    Unseen {
        /// Requested program.
        program: PathBuf,
    },
    /// The confinement failed, so the program was not started.
    #[error("start {program}: it was not confined, so it was not started: failed to {source}")]
    NotConfined {
        /// Requested program.
        program: PathBuf,
        /// Failed step.
        source: NotConfined,
    },
    /// Any other error of the system.
    #[error("start {program}: {source}")]
    System {
        /// Requested program.
        program: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The minder could not be started.
    #[error("start a minder from {minder}: {source}; is the hub's executable still in place?")]
    Minder {
        /// Executable of the minder.
        minder: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// No program is started after [`Supervisor::shutdown`](super::Supervisor::shutdown).
    #[error("start {program}: the hub is shutting down; try again when it is back")]
    ShuttingDown {
        /// Requested program.
        program: PathBuf,
    },
}

impl SpawnError {
    /// Maps an error of `exec` or `fork` to its reason.
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
    /// Refuses launches that are known to fail.
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
    fn debug_output_omits_variable_values() {
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
