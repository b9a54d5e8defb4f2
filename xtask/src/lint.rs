//! Lints for `cargo xtask check`: each file once, as a part of its crate's tests, and not a second time for the crates that use it.

use std::{
    env,
    ffi::OsString,
    fs,
    io::Error,
    os::unix::process::CommandExt as _,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result};

use crate::LINTED;

/// The name under which cargo calls this program in rustc's place.
const NAME: &str = "lint-once";

/// This program, where cargo calls it in rustc's place for the workspace's own crates.
pub(crate) struct Once(PathBuf);

impl Once {
    /// A copy in `folder`: cargo may write the program itself anew meanwhile.
    pub(crate) fn into(folder: &Path) -> Result<Self> {
        let copy = folder.join(NAME);
        fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
        fs::copy(env::current_exe()?, &copy)
            .with_context(|| format!("cannot write {}", copy.display()))?;
        Ok(Self(copy))
    }

    /// Has `cargo` lint what it builds, by the rules of [`LINTED`].
    pub(crate) fn cargo<'a>(&self, cargo: &'a mut Command) -> &'a mut Command {
        cargo.envs(LINTED).env("RUSTC_WORKSPACE_WRAPPER", &self.0)
    }
}

/// The compiler that is to take this process's place, when cargo called this program in rustc's place: the arguments are rustc's
/// path and what rustc is to do (`RUSTC_WORKSPACE_WRAPPER` in the Cargo book).
pub(crate) fn compiler() -> Option<Command> {
    let mut arguments = env::args_os();
    let called = PathBuf::from(arguments.next()?);
    (called.file_name()? == NAME).then(|| compiler_for(arguments.collect()))
}

fn compiler_for(arguments: Vec<OsString>) -> Command {
    // Examples have no tests.
    let linted = |argument: &OsString| {
        let folder = Path::new(argument).parent();
        argument == "--test" || folder.is_some_and(|folder| folder.ends_with("examples"))
    };
    let lints = arguments.iter().any(linted).then(|| OsString::from("clippy-driver"));
    let mut all = lints.into_iter().chain(arguments);
    let mut compiler = Command::new(all.next().unwrap_or_default());
    compiler.args(all);
    compiler
}

/// Has `command` take this process's place; returns why it could not.
pub(crate) fn become_it(mut command: Command) -> Error {
    command.exec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crate_is_linted_with_its_tests_and_only_there() {
        for (does, linted) in [
            (&["--crate-name", "hub", "src/lib.rs", "--crate-type", "lib"][..], false),
            (&["--crate-name", "hub", "src/lib.rs", "--test"], true),
            (&["--crate-name", "client", "cli/examples/client.rs", "--crate-type", "bin"], true),
            (&["--crate-name", "chat", "examples/agents/chat/src/lib.rs"], false),
            (&["-vV"], false),
        ] {
            let arguments = ["rustc"].iter().chain(does).map(OsString::from).collect();
            let compiler = compiler_for(arguments);
            let called: Vec<_> =
                [compiler.get_program()].into_iter().chain(compiler.get_args()).collect();
            let expected = linted.then_some("clippy-driver").into_iter();
            let expected: Vec<_> = expected.chain(["rustc"]).chain(does.iter().copied()).collect();
            assert_eq!(called, expected);
        }
    }
}
