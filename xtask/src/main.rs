//! Developer commands of the hub: `cargo xtask <command>`.

#![expect(clippy::print_stderr, reason = "each step is told to the person at the terminal")]
#![expect(clippy::disallowed_methods, reason = "running programs is what this one is for")]

mod clis;
mod dist;
mod guests;
mod hooks;
mod install;
mod languages;
mod lint;
mod needs;
mod proofs;
mod publishable;
mod sdks;
mod shell;
mod sizes;
mod web;

use std::{
    env,
    path::{Path, PathBuf},
    process::{Command, ExitCode},
};

use anyhow::{Context as _, Result};
use clap::Parser;

use crate::lint::{Checks, checked_cargo};
use crate::shell::{BUILD, BackgroundProgram, announce, cargo, output, run, succeeds, target_dir};

/// Question that `up` sends, so that a newcomer sees an answer.
const FIRST_QUESTION: &str = "what changed last week?";

/// Crates whose tests need neither a hub nor a component and take seconds, for `check`.
const FAST: [&str; 4] = ["a2a-hub-protocol", "a2a-hub-core", "a2a-hub-runtime", "xtask"];

/// Number of cases of each property test in `check`: a quarter of that in `test`.
const FEWER_CASES: &str = "64";

#[derive(Parser)]
#[command(bin_name = "cargo xtask", about = "What a developer of a2a-hub runs")]
enum Cli {
    /// Build everything, start a hub on this repository, and ask its git-historian something
    Up,
    /// Build everything, then check format, lints and every test; or run the tests whose names hold
    /// the filter
    Test {
        /// A part of the tests' names, such as `grpc`, or more for nextest
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        filter: Vec<String>,
    },
    /// Check format and lints, and run the tests that take seconds: before each commit
    Check,
    /// Install the git hook that checks the subjects of your commits
    Hooks,
    /// Run a long proof, for minutes; `test` runs a small part of each
    Prove {
        /// Proof to run
        proof: proofs::Proof,
    },
    /// Build the WebAssembly components into target/components
    Guests,
    /// Build the web page from web/ into web/built; needs Node.js
    Web,
    /// Build the documentation as a book into target/book
    Book,
    /// Build the hub with its agents and put it where your shell finds it
    Install,
    /// Make what is published: the program, small, and packages of it
    Dist(dist::Options),
    /// Tell how much of a program each crate is
    Sizes {
        /// A program with its symbols [default: target/dist/a2a-hub]
        program: Option<PathBuf>,
    },
    /// Build and run the benchmarks; what follows is for them
    Bench {
        /// Handed to the benchmarks as it is
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Check that the SDKs could be published: crates, and packages of npm and Python
    Publishable,
    /// Record the session that the README shows: docs/media/session.cast and session.svg
    Record {
        /// Only draw the picture again, from the recording in docs/media
        #[arg(long)]
        draw: bool,
    },
    /// Install the real agent CLIs that the tests talk to, at the versions in tests/clis.json
    Clis {
        /// Install the newest versions instead, run their tests, and tell what broke
        #[arg(long)]
        newest: bool,
        /// Folder for them [default: target/clis in the workspace, or target/clis-newest]
        dir: Option<PathBuf>,
    },
    /// Install the official A2A SDKs and the packages of the web page that the tests need, at the
    /// versions in tests/sdks.json and web/package-lock.json
    Sdks {
        /// Folder for them [default: target/sdks in the workspace]
        dir: Option<PathBuf>,
    },
    /// Install what makes components of Python and JavaScript, and build the agents in these
    /// languages that the tests run
    Languages {
        /// Folder for them [default: target/languages in the workspace]
        dir: Option<PathBuf>,
    },
}

fn main() -> ExitCode {
    let done = lint::as_rustc_wrapper()
        .unwrap_or_else(|| dispatch(Cli::parse()).map(|()| ExitCode::SUCCESS));
    match done {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn dispatch(cli: Cli) -> Result<()> {
    // Read at run time: a path baked in at build time would be wrong after the folder was moved or
    // copied.
    let xtask = env::var_os("CARGO_MANIFEST_DIR").context("run this as `cargo xtask`")?;
    let root = Path::new(&xtask).parent().context("the workspace is the folder above xtask")?;
    match cli {
        Cli::Up => up(root),
        Cli::Test { filter } if filter.is_empty() => test(root),
        Cli::Test { filter } => test_some(root, &filter),
        Cli::Check => check(root),
        Cli::Prove { proof } => prove(root, proof),
        Cli::Guests => build_guests(root),
        Cli::Hooks => hooks::install(root),
        Cli::Web => web::build(root),
        Cli::Book => book(root),
        Cli::Install => {
            let hub = dist::build(root, guests::Which::Agents, None)?.stripped;
            dist::carry(&hub, &hub)?;
            install::install(&hub)
        }
        Cli::Dist(options) => dist::dist(root, &options),
        Cli::Sizes { program } => {
            sizes::report(&program.unwrap_or_else(|| target_dir(root).join("dist/a2a-hub")))
        }
        Cli::Bench { arguments } => bench(root, &arguments),
        Cli::Publishable => publishable::check(root),
        Cli::Record { draw } => record(root, draw),
        Cli::Clis { newest: true, dir } => {
            guests::build(root, guests::Which::All)?;
            clis::try_newest(root, &dir.unwrap_or_else(|| root.join("target/clis-newest")))
        }
        Cli::Clis { newest: false, dir } => {
            clis::install(root, &dir.unwrap_or_else(|| root.join("target/clis")))
        }
        Cli::Sdks { dir } => {
            sdks::install(root, &dir.unwrap_or_else(|| root.join("target/sdks")))?;
            web::install(root)
        }
        Cli::Languages { dir } => {
            languages::install(root, &dir.unwrap_or_else(|| root.join("target/languages")))
        }
    }
}

/// Goes from a fresh clone to a streamed answer.
fn up(root: &Path) -> Result<()> {
    // Given as a share of the first build, whose time depends on the machine: thirteen minutes with
    // two cores.
    announce(
        "1 of 3, a sixth of the first build: the agents, and the standard library for WebAssembly",
    );
    guests::build(root, guests::Which::Agents)?;
    announce("2 of 3, the rest of it: the hub, and the compiler of WebAssembly that it stands on");
    run(checked_cargo(root, Checks::None)?.args(BUILD).args(["--bin", "a2a-hub"]))?;
    announce("3 of 3, seconds: the hub compiles its agents once, and answers");
    let hub = target_dir(root).join("debug/a2a-hub");
    let a2a_hub = || {
        let mut command = Command::new(&hub);
        command.current_dir(root);
        command
    };
    if succeeds(a2a_hub().arg("status")) {
        announce("a hub is already running: restarting it as the one just built");
        run(a2a_hub().arg("stop"))?;
    }
    run(a2a_hub().arg("start").arg("--workspace").arg(root))?;
    // A missing CLI of an agent is reported, and does not stop this command.
    if let Err(unhealthy) = run(a2a_hub().args(["agents", "--health"])) {
        announce(&unhealthy.to_string());
    }
    run(a2a_hub().args(["send", "git-historian", FIRST_QUESTION, "--stream"]))?;

    let hub = hub.strip_prefix(root).unwrap_or(&hub).display();
    announce("the hub is up. What to try next:");
    eprintln!("    {hub} send claude-code \"explain this repository\" --stream");
    eprintln!("    {hub} status");
    eprintln!("    {hub} stop");
    eprintln!(
        "    cargo xtask install    # built for speed, where your shell finds it: then it is just `a2a-hub`"
    );
    Ok(())
}

/// Runs all checks; the tests come last, so that their summary is at the end.
fn test(root: &Path) -> Result<()> {
    guests::build(root, guests::Which::All)?;
    run(cargo(root).args(["fmt", "--all", "--check"]))?;
    let missing = needs::missing(root);
    // nextest does not run examples in doc comments.
    let examples = ["test", "--locked", "--workspace", "--doc", "--quiet"];
    run(checked_cargo(root, Checks::for_tests())?.args(examples))?;
    nextest(root, &["-E", &needs::runnable(&missing)])?;
    check_client(root)?;
    tell_missing(root, &missing)
}

/// Runs the tests whose names contain the filter, with newly built components and hub.
fn test_some(root: &Path, filter: &[String]) -> Result<()> {
    guests::build(root, guests::Which::All)?;
    nextest(root, &filter.iter().map(String::as_str).collect::<Vec<_>>())
}

/// Runs one long proof, and prints its progress.
fn prove(root: &Path, proof: proofs::Proof) -> Result<()> {
    guests::build(root, guests::Which::All)?;
    let (variable, value) = proof.length();
    let run_one = ["nextest", "run", "--locked", "--workspace", "--no-capture", proof.test()];
    run(checked_cargo(root, Checks::Lints)?.args(run_one).env(variable, value))
}

/// Runs the checks for each commit, in seconds.
fn check(root: &Path) -> Result<()> {
    let formatted = BackgroundProgram::start(cargo(root).args(["fmt", "--all", "--check"]))?;
    // In parallel, since each is mostly limited by a chain of dependent crates. The lints have a
    // separate folder, since cargo allows one build at a time in each.
    let mut linted = checked_cargo(root, Checks::Lints)?;
    linted.args(["check", "--locked", "--workspace", "--lib", "--tests", "--examples", "--quiet"]);
    linted.arg("--target-dir").arg(lint::folder(root));
    let linted = BackgroundProgram::start(&mut linted)?;
    let fast = FAST.iter().flat_map(|name| ["--package", name]);
    // One process per crate, unlike nextest: starting a process takes longer than these tests.
    let tests = ["test", "--locked", "--quiet", "--lib", "--bins", "--tests"];
    let tested = run(cargo(root).args(tests).args(fast).env("PROPTEST_CASES", FEWER_CASES));
    formatted.finish().and(linted.finish()).and(tested).and_then(|()| check_client(root))
}

/// Checks the client of remote hubs as for a system that is no Unix, in the folder of the lints,
/// which has most of its dependencies.
fn check_client(root: &Path) -> Result<()> {
    let client = ["check", "--locked", "--package", "a2a-hub-cli", "--bins", "--quiet"];
    let features = ["--no-default-features", "--features", "without-unix"];
    let mut check = checked_cargo(root, Checks::Lints)?;
    run(check.args(client).args(features).arg("--target-dir").arg(lint::folder(root)))
        .context("check the client of remote hubs, which is for macOS and Windows as well")
}

fn nextest(root: &Path, arguments: &[&str]) -> Result<()> {
    let run_all = ["nextest", "run", "--locked", "--workspace"];
    run(checked_cargo(root, Checks::for_tests())?.args(run_all).args(arguments))
        .context("nextest runs the tests; `cargo install --locked cargo-nextest` brings it")
}

/// Counts and names the tests that were not run.
fn tell_missing(root: &Path, missing: &[&needs::Need]) -> Result<()> {
    for need in missing {
        let list = ["nextest", "list", "--locked", "--workspace", "--message-format", "oneline"];
        let mut listing = checked_cargo(root, Checks::for_tests())?;
        let listed = output(listing.args(list).args(["-E", need.tests]))?;
        let (tests, needs, brought_by) = (listed.lines().count(), need.name, need.brought_by);
        announce(&format!("not run: {tests} tests that need {needs}; `{brought_by}` brings it"));
    }
    Ok(())
}

fn build_guests(root: &Path) -> Result<()> {
    for component in guests::build(root, guests::Which::All)? {
        let size = component.metadata()?.len() / 1024;
        let shown = component.strip_prefix(root).unwrap_or(&component).display();
        announce(&format!("{shown} ({size} KiB)"));
    }
    Ok(())
}

/// Makes a book of the pages in `docs/`.
fn book(root: &Path) -> Result<()> {
    let directory = target_dir(root).join("book");
    let mut mdbook = Command::new("mdbook");
    run(mdbook.current_dir(root).args(["build", "docs", "--dest-dir"]).arg(&directory))
        .context("mdBook makes the book; `cargo install --locked mdbook` brings it")?;
    announce(&format!("open {}", directory.join("index.html").display()));
    Ok(())
}

fn bench(root: &Path, arguments: &[String]) -> Result<()> {
    // A separate program, since it contains the hub.
    if let Some((first, rest)) = arguments.split_first()
        && first == "--in-process"
    {
        run(cargo(root).args(BUILD).args(["--release", "--bin", "bench-in-process"]))?;
        let program = target_dir(root).join("release/bench-in-process");
        return run(Command::new(program).current_dir(root).args(rest));
    }
    let hub = dist::build(root, guests::Which::All, None)?.with_symbols;
    dist::carry(&hub, &hub)?;
    run(&mut dist::compile(root, "bench"))?;
    run(Command::new(target_dir(root).join("dist/bench")).current_dir(root).args(arguments))
}

/// Records a session in a terminal, with Claude Code and a scripted model.
fn record(root: &Path, draw: bool) -> Result<()> {
    let mut programs = vec!["--bin", "record"];
    if !draw {
        guests::build(root, guests::Which::Agents)?;
        programs.extend(["--bin", "a2a-hub"]);
    }
    run(checked_cargo(root, Checks::None)?.args(BUILD).args(programs))?;
    let mut record = Command::new(target_dir(root).join("debug/record"));
    record.current_dir(root).arg("docs/media");
    run(record.args(draw.then_some("--draw")))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn command_line_definition_is_valid() {
        Cli::command().debug_assert();
    }

    #[test]
    fn bench_passes_arguments_unchanged() {
        let cli = Cli::parse_from(["xtask", "bench", "--tasks", "100"]);
        assert!(matches!(cli, Cli::Bench { arguments } if arguments == ["--tasks", "100"]));
    }
}
