//! Linting of the workspace's crates during the build that compiles them.

use std::{
    env,
    ffi::{OsStr, OsString},
    fs, io,
    path::{Path, PathBuf},
    process::{self, Command, ExitCode},
    sync::atomic::{AtomicBool, Ordering},
};

use anyhow::{Context as _, Result};

use crate::shell::{cargo, target_dir};

const CLIPPY: &str = "clippy-driver";

/// Configuration of clippy for all crates, in cargo's working directory.
const SETTINGS: &str = "clippy.toml";

/// rustc option for the directory of incremental compilation.
const INCREMENTAL: &str = "incremental=";

/// Variable that names the program called in place of rustc for workspace crates (the Cargo book,
/// environment variables).
const WRAPPER: &str = "RUSTC_WORKSPACE_WRAPPER";

/// Arguments of clippy, as `cargo clippy -- -D warnings` passes them.
const CLIPPY_ARGUMENTS: (&str, &str) =
    ("CLIPPY_ARGS", "-D__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__");

/// Variable for the wrapper that names the [`Checks`].
const CHECKS: &str = "LINT_ONCE_CHECKS";

/// Checks of a build that compiles the workspace's crates. `cargo clippy` and `cargo doc` would
/// compile each dependency a second time; a build with other checks reuses what this one compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Checks {
    /// None: for users, whose compiler may warn about more.
    None,
    /// Lints. Warnings are errors.
    Lints,
    /// Lints, and the links of the documentation. Warnings are errors.
    LintsAndDocs,
}

impl Checks {
    /// Checks of the tests: a CI also checks the documentation.
    pub(crate) fn for_tests() -> Self {
        if env::var_os("A2A_HUB_CI").is_some() { Self::LintsAndDocs } else { Self::Lints }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Lints => "lints",
            Self::LintsAndDocs => "lints-and-docs",
        }
    }

    fn from_environment() -> Self {
        let name = env::var(CHECKS).unwrap_or_default();
        let known = [Self::Lints, Self::LintsAndDocs];
        known.into_iter().find(|checks| checks.name() == name).unwrap_or(Self::None)
    }
}

/// Name under which cargo calls this program in place of rustc.
const NAME: &str = "lint-once";

/// True once this process has made the copy.
static COPIED: AtomicBool = AtomicBool::new(false);

/// Command of cargo that lints each file once: as a part of its crate's tests, not again for
/// dependent crates, and not again until the file changes. A crate whose files passed clippy is
/// compiled with rustc's lints only if a dependency changed. Cargo calls a copy of this program in
/// [`folder`], since the build may replace the program itself.
pub(crate) fn checked_cargo(root: &Path, checks: Checks) -> Result<Command> {
    let folder = folder(root);
    let (copy, unfinished) = (folder.join(NAME), folder.join(format!("{NAME}.{}", process::id())));
    let put = || {
        fs::create_dir_all(&folder)?;
        fs::copy(env::current_exe()?, &unfinished)?;
        // A process that runs the previous copy keeps its file.
        fs::rename(&unfinished, &copy)
    };
    // The first build may replace the program, so that a second copy would find no file.
    if !COPIED.load(Ordering::Relaxed) {
        put().with_context(|| format!("cannot write {}", copy.display()))?;
        COPIED.store(true, Ordering::Relaxed);
    }
    let (name, value) = CLIPPY_ARGUMENTS;
    let mut cargo = cargo(root);
    cargo.env(name, value).env(WRAPPER, copy).env(CHECKS, checks.name());
    Ok(cargo)
}

/// Folder of the copy, and target directory of `check`. It is the same for all builds: cargo
/// compiles the crates again for another copy.
pub(crate) fn folder(root: &Path) -> PathBuf {
    target_dir(root).join("lints")
}

/// Acts in place of rustc if cargo called this program so: the arguments are rustc's path and
/// rustc's own.
pub(crate) fn as_rustc_wrapper() -> Option<Result<ExitCode>> {
    let mut arguments = env::args_os();
    let called = PathBuf::from(arguments.next()?);
    let rustc = arguments.next().filter(|_| called.file_name().is_some_and(|name| name == NAME))?;
    Some(compile(rustc, arguments.collect()))
}

fn compile(rustc: OsString, arguments: Vec<OsString>) -> Result<ExitCode> {
    let checks = Checks::from_environment();
    let Some(found) = Linted::from_arguments(&arguments) else {
        if checks == Checks::None {
            return end(Command::new(rustc).args(arguments));
        }
        let documented = (checks == Checks::LintsAndDocs).then(|| rustdoc(&arguments)).flatten();
        let compiled = end(Command::new(rustc).args(without_clippy(arguments)))?;
        return match documented {
            Some(mut rustdoc) if compiled == ExitCode::SUCCESS => end(&mut rustdoc),
            _ => Ok(compiled),
        };
    };
    if found.still_holds() {
        return end(Command::new(rustc).args(without_clippy(arguments)));
    }
    let begun = found.begin()?;
    let ended = end(Command::new(CLIPPY).arg(rustc).args(&arguments))?;
    if ended == ExitCode::SUCCESS {
        found.save(&begun)?;
    }
    Ok(ended)
}

fn end(compiler: &mut Command) -> Result<ExitCode> {
    let status = compiler.status().with_context(|| format!("failed to start {compiler:?}"))?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Arguments for rustc without clippy. Warnings of rustc are errors, as with clippy. The
/// incremental directory is separate, since rustc discards it whenever its lints differ.
fn without_clippy(arguments: Vec<OsString>) -> Vec<OsString> {
    let apart = |argument: OsString| match argument.to_str() {
        Some(text) if text.starts_with(INCREMENTAL) => format!("{text}-plain").into(),
        _ => argument,
    };
    arguments.into_iter().map(apart).chain(["-Dwarnings".into()]).collect()
}

/// rustdoc for a library or program that is compiled with these arguments, as `cargo doc` calls it.
/// None for a build script, and if cargo only asks about the compiler.
fn rustdoc(arguments: &[OsString]) -> Option<Command> {
    let (mut kept, mut out) = (Vec::new(), None);
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        let text = argument.to_str()?;
        match text {
            "--out-dir" => out = rest.next(),
            // Options of code generation.
            "-C" => {
                rest.next();
            }
            "build_script_build" | "--print" => return None,
            _ if text.starts_with("--emit=") => {}
            _ => kept.push(argument),
        }
    }
    let mut docs = Path::new(out?).ancestors().nth(2)?.join("doc");
    let mut rustdoc = Command::new(env::var_os("RUSTDOC").unwrap_or_else(|| "rustdoc".into()));
    if kept.iter().any(|argument| *argument == "bin") {
        rustdoc.arg("--document-private-items");
        // A program may have the name of a library.
        docs.push("programs");
    }
    rustdoc.args(kept).arg("--out-dir").arg(docs).arg("-Dwarnings");
    Some(rustdoc)
}

/// Record that a crate passed clippy: a file beside rustc's dependency file with the arguments,
/// whose modification time is the start of the check.
struct Linted {
    arguments: Vec<u8>,
    /// Dependency file of the crate, in the syntax of `make`.
    sources: PathBuf,
    record: PathBuf,
}

impl Linted {
    /// Record of a crate that is linted: one built with its tests; an example and a build script have
    /// none.
    fn from_arguments(arguments: &[OsString]) -> Option<Self> {
        let example = |argument: &OsString| {
            let folder = Path::new(argument).parent();
            folder.is_some_and(|folder| folder.ends_with("examples"))
        };
        let linted = |argument| {
            argument == "--test" || argument == "build_script_build" || example(argument)
        };
        if !arguments.iter().any(linted) {
            return None;
        }
        let after = |name: &str| {
            let at = arguments.iter().position(|argument| argument == name)?;
            arguments.get(at + 1)?.to_str()
        };
        let begins =
            |with: &str| arguments.iter().find_map(|found| found.to_str()?.strip_prefix(with));
        let name = format!("{}{}", after("--crate-name")?, begins("extra-filename=")?);
        let at = Path::new(after("--out-dir")?).join(name);
        Some(Self {
            arguments: arguments.join(OsStr::new("\n")).into_encoded_bytes(),
            sources: at.with_added_extension("d"),
            record: at.with_added_extension("linted"),
        })
    }

    fn still_holds(&self) -> bool {
        let changed = |path: &Path| path.metadata().and_then(|found| found.modified());
        let older = || {
            let then = changed(&self.record)?;
            let sources = fs::read_to_string(&self.sources)?;
            for source in sources_in(&sources) {
                if changed(&source)? >= then {
                    return Ok(false);
                }
            }
            let settings = changed(Path::new(SETTINGS)).is_ok_and(|changed| changed >= then);
            io::Result::Ok(!settings && fs::read(&self.record)? == self.arguments)
        };
        older().unwrap_or(false)
    }

    /// Creates the record before the files are read: a file changed later was not linted.
    fn begin(&self) -> Result<PathBuf> {
        let begun = self.record.with_added_extension("begun");
        fs::write(&begun, &self.arguments)
            .with_context(|| format!("cannot write {}", begun.display()))?;
        Ok(begun)
    }

    fn save(&self, begun: &Path) -> Result<()> {
        fs::rename(begun, &self.record)
            .with_context(|| format!("cannot write {}", self.record.display()))
    }
}

/// Source files in a dependency file: each has a line that ends with a colon.
fn sources_in(dep_info: &str) -> impl Iterator<Item = PathBuf> {
    dep_info
        .lines()
        .filter_map(|line| line.strip_suffix(':'))
        .map(|path| path.replace("\\ ", " ").into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments(text: &str) -> Vec<OsString> {
        text.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn crate_is_linted_only_with_tests() {
        for (does, linted) in [
            ("--crate-name hub src/lib.rs --crate-type lib", false),
            ("--crate-name hub src/lib.rs --test", true),
            ("--crate-name client cli/examples/client.rs --crate-type bin", true),
            ("--crate-name chat examples/agents/chat/src/lib.rs", false),
            ("-vV", false),
        ] {
            let asked = format!("{does} --out-dir deps -C extra-filename=-1f");
            assert_eq!(Linted::from_arguments(&arguments(&asked)).is_some(), linted, "{does}");
        }
    }

    #[test]
    fn crate_is_documented_with_its_arguments() -> Result<()> {
        let compiled = "--crate-name hub --edition=2024 src/main.rs --error-format=json --crate-type bin --emit=dep-info,link -C metadata=1f --cfg a --out-dir target/debug/deps -L dependency=deps --extern b=deps/libb.rlib";
        let rustdoc = rustdoc(&arguments(compiled)).context("it is documented")?;
        let passed: Vec<_> = rustdoc.get_args().map(|it| it.to_string_lossy()).collect();
        let expected = "--document-private-items --crate-name hub --edition=2024 src/main.rs --error-format=json --crate-type bin --cfg a -L dependency=deps --extern b=deps/libb.rlib --out-dir target/doc/programs -Dwarnings";
        assert_eq!(passed.join(" "), expected);
        for other in ["-vV", "--crate-name build_script_build build.rs --out-dir build/a"] {
            assert!(super::rustdoc(&arguments(other)).is_none(), "{other}");
        }
        Ok(())
    }

    #[test]
    fn changed_file_or_arguments_lint_again() -> Result<()> {
        let folder = tempfile::tempdir()?;
        let at = |name: &str| folder.path().join(name);
        let asked = |more: &str| {
            let out = folder.path().display();
            let all =
                format!("--crate-name hub --test --out-dir {out} -C extra-filename=-1f {more}");
            Linted::from_arguments(&arguments(&all)).context("it is linted")
        };
        let linted = asked("--warn=missing_docs")?;
        let source = at("a lib.rs");
        let old = std::time::UNIX_EPOCH;
        fs::write(&source, "//! A crate.")?;
        fs::File::open(&source)?.set_modified(old)?;
        let told = source.display().to_string().replace(' ', "\\ ");
        fs::write(at("hub-1f.d"), format!("hub-1f.rmeta: {told} \n\n{told}:\n\n# env-dep:HOME\n"))?;

        assert!(!linted.still_holds(), "nothing was found yet");
        let begun = linted.begin()?;
        assert!(!linted.still_holds(), "clippy has not ended");
        linted.save(&begun)?;
        assert!(linted.still_holds());
        assert!(!asked("--deny=missing_docs")?.still_holds());
        assert!(linted.still_holds());
        fs::write(&source, "//! A crate, changed.")?;
        assert!(!linted.still_holds());
        fs::File::open(&source)?.set_modified(old)?;
        assert!(linted.still_holds());
        fs::remove_file(&source)?;
        assert!(!linted.still_holds());
        Ok(())
    }

    #[test]
    fn plain_rustc_denies_warnings_incrementally_apart() {
        let plain = without_clippy(arguments("--test -C incremental=lints/incremental src/lib.rs"));
        let expected = "--test -C incremental=lints/incremental-plain src/lib.rs -Dwarnings";
        assert_eq!(plain, arguments(expected));
    }
}
