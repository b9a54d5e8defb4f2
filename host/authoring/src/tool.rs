//! Build tools: they run below a minder, like agents' programs, so that no process of a build
//! survives its cancellation or a killed command.

use crate::error::{AuthoringError, FailureKind};
use a2a_hub_config::{find_program, full_environment};
use a2a_hub_process::{Launch, Output, ProgramExit, SpawnError, Supervisor, WorkingDirectory};
use a2a_hub_toolchain::Cargo;
use std::{
    collections::VecDeque,
    path::{Path, PathBuf},
    time::Duration,
};

/// Time that a tool has to exit after SIGTERM before it is killed.
const GRACE: Duration = Duration::from_secs(2);

/// Maximum number of output lines that are kept, the last ones, and maximum length of each in
/// bytes: compilers may print a lot.
const MAX_LINES: usize = 2_000;
const MAX_LINE: usize = 4 << 10;

/// Environment in which tools run: a directory, and this program's environment variables.
pub struct Workshop {
    supervisor: Supervisor,
    environment: Vec<(String, String)>,
    dir: PathBuf,
}

/// A tool to run.
pub(crate) struct Tool {
    program: PathBuf,
    args: Vec<String>,
    set: Vec<(String, String)>,
    unset: Vec<&'static str>,
}

/// Result of a tool.
pub(crate) struct Ran {
    /// True if the tool exited with code 0.
    pub(crate) succeeded: bool,
    /// Description of the exit.
    pub(crate) ending: String,
    /// Output lines.
    pub(crate) lines: Vec<String>,
}

impl Tool {
    /// Finds a tool by its name on the `PATH`.
    pub(crate) fn named(words: &[String]) -> Result<Self, AuthoringError> {
        let (program, args) = words.split_first().ok_or_else(|| {
            AuthoringError::new(FailureKind::Other, "the project's build has no words")
        })?;
        let path = if program.contains('/') {
            Some(PathBuf::from(program))
        } else {
            find_program(program)
        };
        let path = path.ok_or_else(|| missing(program))?;
        Ok(Self { program: path, args: args.to_vec(), set: Vec::new(), unset: Vec::new() })
    }

    /// Creates the tool for a toolchain's cargo.
    pub(crate) fn cargo(cargo: Cargo) -> Result<Self, AuthoringError> {
        let Cargo { program, args, set, unset } = cargo;
        let words: Vec<_> = [program.to_owned()].into_iter().chain(args).collect();
        let set = set.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        Ok(Self { set, unset, ..Self::named(&words)? })
    }

    /// Appends arguments.
    pub(crate) fn args(mut self, args: &[&str]) -> Self {
        self.args.extend(args.iter().map(|&arg| arg.to_owned()));
        self
    }
}

/// Error for a missing tool, with installation advice.
fn missing(program: &str) -> AuthoringError {
    let advice = match program {
        "cargo" => "install Rust, by rustup or as your system packages it",
        "npm" => "install Node.js with npm, for instance `apt-get install nodejs npm`",
        "python3" => "install Python, for instance `apt-get install python3 python3-venv`",
        _ => "install it, or correct the project's build",
    };
    AuthoringError::new(
        FailureKind::NoTool,
        format!("run `{program}`: it is not on the PATH; {advice}"),
    )
}

impl Workshop {
    /// Creates a workshop for this absolute directory. `minder` is a program that minds others
    /// (`a2a_hub_process::subcommand`), such as the running one, `/proc/self/exe`.
    pub fn new(minder: impl Into<PathBuf>, dir: &Path) -> Self {
        // Must not be the hub's data directory: a hub that starts ends the processes that an
        // earlier one left there.
        let supervisor = Supervisor::new(minder.into(), dir.to_owned(), GRACE);
        Self { supervisor, environment: full_environment(), dir: dir.to_owned() }
    }

    /// Returns an environment variable that is not empty.
    pub(crate) fn variable(&self, name: &str) -> Option<&str> {
        let found = self.environment.iter().find(|(there, _)| there == name);
        found.map(|(_, value)| value.as_str()).filter(|value| !value.is_empty())
    }

    /// Runs a tool until it exits. Calls `says` with each line of output.
    pub(crate) async fn run(
        &self,
        tool: Tool,
        mut says: impl FnMut(&str),
    ) -> Result<Ran, AuthoringError> {
        let Tool { program, args, set, unset } = tool;
        let name = program.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let inherited = self.environment.iter().filter(|(name, _)| !unset.contains(&name.as_str()));
        let cwd = WorkingDirectory::open(&self.dir).map_err(|source| {
            let (program, cwd) = (program.clone(), self.dir.clone());
            AuthoringError::from_error(&SpawnError::Directory { program, cwd, source })
        })?;
        let launch = Launch {
            agent: "build".to_owned(),
            owner: "build".to_owned(),
            program,
            args,
            env: inherited.cloned().chain(set).collect(),
            cwd,
            confinement: None,
        };
        let mut child =
            self.supervisor.spawn(launch).await.map_err(|why| AuthoringError::from_error(&why))?;
        child.close_stdin();
        let mut splitters = [LineSplitter::default(), LineSplitter::default()];
        let mut last_lines = VecDeque::new();
        let exit = loop {
            let lines = match child.next().await {
                Output::Stdout(bytes) => splitters[0].push(&bytes),
                Output::Stderr(bytes) => splitters[1].push(&bytes),
                // Build tools are not confined.
                Output::MemoryExceeded(_) => continue,
                Output::Exited(exit) => break exit,
            };
            for line in lines {
                says(&line);
                push_line(&mut last_lines, line);
            }
        };
        for line in splitters.into_iter().filter_map(LineSplitter::end) {
            push_line(&mut last_lines, line);
        }
        let ending = match exit {
            ProgramExit::Code(code) => format!("`{name}` ended with code {code}"),
            ProgramExit::Signal(signal) => format!("`{name}` was ended by signal {signal}"),
        };
        Ok(Ran { succeeded: exit == ProgramExit::Code(0), ending, lines: last_lines.into() })
    }

    /// Ends all running tools, and returns once their processes are gone.
    pub async fn close(&self) {
        self.supervisor.shutdown().await;
    }
}

fn push_line(lines: &mut VecDeque<String>, line: String) {
    if lines.len() == MAX_LINES {
        lines.pop_front();
    }
    lines.push_back(line);
}

/// Splits a byte stream into lines.
#[derive(Default)]
struct LineSplitter(Vec<u8>);

impl LineSplitter {
    /// Adds bytes and returns the lines that are complete now.
    fn push(&mut self, bytes: &[u8]) -> Vec<String> {
        let mut lines = Vec::new();
        for piece in bytes.split_inclusive(|byte| matches!(byte, b'\n' | b'\r')) {
            // The rest of an overlong line is dropped.
            let free = MAX_LINE.saturating_sub(self.0.len());
            self.0.extend_from_slice(piece.get(..free).unwrap_or(piece));
            if piece.ends_with(b"\n") || piece.ends_with(b"\r") {
                lines.extend(std::mem::take(self).end());
            }
        }
        lines
    }

    /// Returns the rest; `None` if it is empty.
    fn end(self) -> Option<String> {
        let line = String::from_utf8_lossy(&self.0).trim_end().to_owned();
        (!line.is_empty()).then_some(line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tool_output_is_split_into_lines() {
        let mut lines = LineSplitter::default();
        assert_eq!(lines.push(b"one\ntw"), ["one"]);
        assert_eq!(lines.push(b"o\r\n\nthree"), ["two"]);
        assert_eq!(lines.push(b"\r50%\r"), ["three", "50%"]);
        let long = "x".repeat(3 * MAX_LINE);
        assert_eq!(lines.push(long.as_bytes()), [""; 0]);
        assert_eq!(lines.push(b"y\n")[0].len(), MAX_LINE);
        assert_eq!(lines.end(), None);
        let mut kept = VecDeque::new();
        (0..2 * MAX_LINES).for_each(|n| push_line(&mut kept, n.to_string()));
        assert_eq!((kept.len(), &*kept[0]), (MAX_LINES, &*MAX_LINES.to_string()));
    }

    #[test]
    fn missing_tool_error_names_installation() {
        let why = Tool::named(&["no-such-tool".to_owned()]).map(drop).unwrap_err();
        assert!(why.to_string().contains("it is not on the PATH"), "{why}");
        assert!(missing("npm").to_string().contains("nodejs npm"));
    }
}
