//! Tools that build an agent: they run below a minder, as an agent's programs do, so that nothing of a build is left behind when it is
//! called off, or this program killed.

use crate::error::{AuthoringError, Kind};
use a2a_hub_config::{find_program, whole_environment};
use a2a_hub_process::{Exit, Launch, Output, SpawnError, Supervisor, WorkingDirectory};
use a2a_hub_toolchain::Cargo;
use std::{
    collections::VecDeque,
    path::{Path, PathBuf},
    time::Duration,
};

/// How long a tool that is told to end may take before it is killed.
const GRACE: Duration = Duration::from_secs(2);

/// Of what a tool says, so many of its last lines are kept, each cut to so many bytes: a compiler may say a lot.
const MAX_LINES: usize = 2_000;
const MAX_LINE: usize = 4 << 10;

/// Where tools run: in one directory, with the environment that this program was started in.
pub struct Workshop {
    supervisor: Supervisor,
    environment: Vec<(String, String)>,
    dir: PathBuf,
}

/// A tool to be run.
pub(crate) struct Tool {
    program: PathBuf,
    args: Vec<String>,
    set: Vec<(String, String)>,
    unset: Vec<&'static str>,
}

/// What a tool came to.
pub(crate) struct Ran {
    /// Whether it succeeded.
    pub(crate) succeeded: bool,
    /// How it ended, in words.
    pub(crate) ending: String,
    /// What it said, line by line.
    pub(crate) lines: Vec<String>,
}

impl Tool {
    /// The tool of this name, as a shell finds it.
    pub(crate) fn named(words: &[String]) -> Result<Self, AuthoringError> {
        let (program, args) = words
            .split_first()
            .ok_or_else(|| AuthoringError::new(Kind::Other, "the project's build has no words"))?;
        let path = if program.contains('/') {
            Some(PathBuf::from(program))
        } else {
            find_program(program)
        };
        let path = path.ok_or_else(|| missing(program))?;
        Ok(Self { program: path, args: args.to_vec(), set: Vec::new(), unset: Vec::new() })
    }

    /// Cargo, of a toolchain.
    pub(crate) fn cargo(cargo: Cargo) -> Result<Self, AuthoringError> {
        let Cargo { program, args, set, unset } = cargo;
        let words: Vec<_> = [program.to_owned()].into_iter().chain(args).collect();
        let set = set.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        Ok(Self { set, unset, ..Self::named(&words)? })
    }

    /// The same with more arguments.
    pub(crate) fn args(mut self, args: &[&str]) -> Self {
        self.args.extend(args.iter().map(|&arg| arg.to_owned()));
        self
    }
}

/// A tool that is not there, with the way to it.
fn missing(program: &str) -> AuthoringError {
    let how = match program {
        "cargo" => "install Rust, by rustup or as your system packages it",
        "npm" => "install Node.js with npm, for instance `apt-get install nodejs npm`",
        "python3" => "install Python, for instance `apt-get install python3 python3-venv`",
        _ => "install it, or correct the project's build",
    };
    AuthoringError::new(Kind::NoTool, format!("run `{program}`: it is not on the PATH; {how}"))
}

impl Workshop {
    /// In this directory, which is an absolute path. `minder` is a program that minds others (`a2a_hub_process::errand`), such as the
    /// running one, `/proc/self/exe`.
    pub fn new(minder: impl Into<PathBuf>, dir: &Path) -> Self {
        // Not the hub's data directory: a hub that starts ends what belongs to one before it.
        let supervisor = Supervisor::new(minder.into(), dir.to_owned(), GRACE);
        Self { supervisor, environment: whole_environment(), dir: dir.to_owned() }
    }

    /// A variable of the environment.
    pub(crate) fn variable(&self, name: &str) -> Option<&str> {
        let found = self.environment.iter().find(|(there, _)| there == name);
        found.map(|(_, value)| value.as_str()).filter(|value| !value.is_empty())
    }

    /// Runs a tool to its end. `says` is told each line that it says, as it comes.
    pub(crate) async fn run(
        &self,
        tool: Tool,
        mut says: impl FnMut(&str),
    ) -> Result<Ran, AuthoringError> {
        let Tool { program, args, set, unset } = tool;
        let name = program.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let kept = self.environment.iter().filter(|(name, _)| !unset.contains(&name.as_str()));
        let cwd = WorkingDirectory::open(&self.dir).map_err(|source| {
            let (program, cwd) = (program.clone(), self.dir.clone());
            AuthoringError::whole(&SpawnError::Directory { program, cwd, source })
        })?;
        let launch = Launch {
            agent: "build".to_owned(),
            owner: "build".to_owned(),
            program,
            args,
            env: kept.cloned().chain(set).collect(),
            cwd,
            confinement: None,
        };
        let mut child =
            self.supervisor.spawn(launch).await.map_err(|why| AuthoringError::whole(&why))?;
        child.close_stdin();
        let mut said = [Lines::default(), Lines::default()];
        let mut kept = VecDeque::new();
        let exit = loop {
            let lines = match child.next().await {
                Output::Stdout(bytes) => said[0].push(&bytes),
                Output::Stderr(bytes) => said[1].push(&bytes),
                // No builder is confined.
                Output::MemoryExceeded(_) => continue,
                Output::Exited(exit) => break exit,
            };
            for line in lines {
                says(&line);
                keep(&mut kept, line);
            }
        };
        for line in said.into_iter().filter_map(Lines::end) {
            keep(&mut kept, line);
        }
        let ending = match exit {
            Exit::Code(code) => format!("`{name}` ended with code {code}"),
            Exit::Signal(signal) => format!("`{name}` was ended by signal {signal}"),
        };
        Ok(Ran { succeeded: exit == Exit::Code(0), ending, lines: kept.into() })
    }

    /// Ends whatever runs, and returns once nothing of it is left.
    pub async fn close(&self) {
        self.supervisor.shutdown().await;
    }
}

fn keep(kept: &mut VecDeque<String>, line: String) {
    if kept.len() == MAX_LINES {
        kept.pop_front();
    }
    kept.push_back(line);
}

/// Bytes as they come, line by line.
#[derive(Default)]
struct Lines(Vec<u8>);

impl Lines {
    /// The lines that are whole by now.
    fn push(&mut self, bytes: &[u8]) -> Vec<String> {
        let mut whole = Vec::new();
        for piece in bytes.split_inclusive(|byte| matches!(byte, b'\n' | b'\r')) {
            // What is beyond is never shown.
            let room = MAX_LINE.saturating_sub(self.0.len());
            self.0.extend_from_slice(piece.get(..room).unwrap_or(piece));
            if piece.ends_with(b"\n") || piece.ends_with(b"\r") {
                whole.extend(std::mem::take(self).end());
            }
        }
        whole
    }

    /// What is left; none if that is nothing.
    fn end(self) -> Option<String> {
        let line = String::from_utf8_lossy(&self.0).trim_end().to_owned();
        (!line.is_empty()).then_some(line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_tool_says_is_heard_line_by_line() {
        let mut lines = Lines::default();
        assert_eq!(lines.push(b"one\ntw"), ["one"]);
        assert_eq!(lines.push(b"o\r\n\nthree"), ["two"]);
        assert_eq!(lines.push(b"\r50%\r"), ["three", "50%"]);
        let long = "x".repeat(3 * MAX_LINE);
        assert_eq!(lines.push(long.as_bytes()), [""; 0]);
        assert_eq!(lines.push(b"y\n")[0].len(), MAX_LINE);
        assert_eq!(lines.end(), None);
        let mut kept = VecDeque::new();
        (0..2 * MAX_LINES).for_each(|n| keep(&mut kept, n.to_string()));
        assert_eq!((kept.len(), &*kept[0]), (MAX_LINES, &*MAX_LINES.to_string()));
    }

    #[test]
    fn a_tool_that_is_missing_is_told_with_the_way_to_it() {
        let why = Tool::named(&["no-such-tool".to_owned()]).map(drop).unwrap_err();
        assert!(why.to_string().contains("it is not on the PATH"), "{why}");
        assert!(missing("npm").to_string().contains("nodejs npm"));
    }
}
