//! How the workspace's own crates are linted by the build that compiles them.

use std::{
    env,
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    process::{self, Command},
};

use anyhow::{Context as _, Result};

const CLIPPY: &str = "clippy-driver";

/// What cargo calls in rustc's place for the workspace's own crates (the Cargo book, environment variables).
const WRAPPER: &str = "RUSTC_WORKSPACE_WRAPPER";

/// Has clippy compile the workspace's own crates, so that they are linted by the very build that is tested: `cargo clippy`
/// would compile each dependency once more, for itself.
pub(crate) const LINTED: [(&str, &str); 2] = [
    (WRAPPER, CLIPPY),
    // As `cargo clippy -- -D warnings` hands it on.
    ("CLIPPY_ARGS", "-D__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__"),
];

/// The name under which cargo calls this program in rustc's place.
const NAME: &str = "lint-once";

/// Has `cargo` lint each file once: as a part of its crate's tests, and not a second time for the crates that use it. Cargo calls a
/// copy of this program in `folder`, for it may write the program itself anew meanwhile.
pub(crate) fn once(cargo: &mut Command, folder: &Path) -> Result<()> {
    let (copy, unfinished) = (folder.join(NAME), folder.join(format!("{NAME}.{}", process::id())));
    let put = || {
        fs::create_dir_all(folder)?;
        fs::copy(env::current_exe()?, &unfinished)?;
        // Whoever runs the copy of before keeps it.
        fs::rename(&unfinished, &copy)
    };
    put().with_context(|| format!("cannot write {}", copy.display()))?;
    cargo.envs(LINTED).env(WRAPPER, copy);
    Ok(())
}

/// The compiler that is to take this process's place, when cargo called this program in rustc's place: the arguments are rustc's
/// path and what rustc is to do.
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
    let clippy = arguments.iter().any(linted).then(|| OsString::from(CLIPPY));
    let mut all = clippy.into_iter().chain(arguments);
    let mut compiler = Command::new(all.next().unwrap_or_default());
    compiler.args(all);
    compiler
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
