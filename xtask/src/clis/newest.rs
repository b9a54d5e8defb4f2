//! Trial of the newest versions: installs each program into a scratch folder, and runs its tests
//! with it. The pinned versions stay as they are.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
    process::Command,
};

use anyhow::{Context as _, Result, bail};
use serde::Deserialize;

use super::{Pins, python, read_pins};
use crate::shell::{announce, cargo, run};

/// Variable with the folder in which the tests look for the programs.
const FOLDER: &str = "A2A_HUB_CLIS";

/// Tests of each package's program, by the beginning of their names behind `adapters::`.
const TESTS: [(&str, &str); 5] = [
    ("@anthropic-ai/claude-code", "claude"),
    ("@google/gemini-cli", "gemini"),
    ("@openai/codex", "codex"),
    ("mistral-vibe", "vibe"),
    ("opencode-ai", "opencode"),
];

/// Tests of several programs at once: all others of the adapters.
const OF_SEVERAL: &str =
    "test(/^adapters::/) - test(/^adapters::(claude|codex|gemini|opencode|vibe)/)";

/// Test that compares the version with the pinned one.
const OF_VERSION: &str = "health_check_reports_version";

/// A package with its pinned version.
#[derive(Debug, PartialEq)]
struct Pinned {
    package: String,
    version: String,
    /// Name of the virtual environment; `None` for a package of npm.
    environment: Option<String>,
}

/// Manifest of an installed npm package: only its version is read.
#[derive(Deserialize)]
struct Manifest {
    version: String,
}

/// Installs the newest version of every program into `dir`, runs the tests of each, and tells which
/// tests fail. An error if any does, or if a program cannot be installed.
pub(crate) fn try_newest(root: &Path, dir: &Path) -> Result<()> {
    let all = pinned(&read_pins(root)?)?;
    fs::create_dir_all(dir).with_context(|| format!("failed to create {}", dir.display()))?;
    let dir = dir.canonicalize().with_context(|| format!("failed to find {}", dir.display()))?;
    let (mut report, mut is_good) = (Vec::new(), true);
    for program in &all {
        let outcome = match install(&dir, program) {
            Ok(version) => tried(root, &dir, &program.package, version),
            Err(why) => Outcome { version: None, result: Err(format!("{why:#}")) },
        };
        is_good &= outcome.result.as_ref().is_ok_and(|trial| trial.failed.is_empty());
        report.push(line(program, &outcome));
    }
    announce("trying the tests of several programs");
    let together = run_tests(root, &dir, OF_SEVERAL);
    is_good &= together.as_ref().is_ok_and(|trial| trial.failed.is_empty());
    report.push(format!("tests of several programs: {}", described(&together)));
    for line in &report {
        announce(line);
    }
    if !is_good {
        bail!("the newest versions do not keep every promise; tests/clis.json is unchanged");
    }
    Ok(())
}

/// Result for a program.
struct Outcome {
    /// Installed version; `None` if the installation failed.
    version: Option<String>,
    /// Trial, or the reason why none took place.
    result: Result<Trial, String>,
}

/// Tests that ran.
#[derive(Debug, PartialEq)]
struct Trial {
    passed: usize,
    failed: BTreeSet<String>,
}

/// Packages of the pins, in the order of their names.
fn pinned(pins: &Pins) -> Result<Vec<Pinned>> {
    let npm = pins.npm.iter().map(|(package, version)| {
        let (package, version) = (package.clone(), version.clone());
        Ok(Pinned { package, version, environment: None })
    });
    let python = pins.python.iter().map(|(program, pin)| {
        let parts = pin.split_once("==");
        let (package, version) = parts.with_context(|| format!("`{pin}` is no exact version"))?;
        let (package, version) = (package.to_owned(), version.to_owned());
        Ok(Pinned { package, version, environment: Some(program.clone()) })
    });
    npm.chain(python).collect()
}

fn install(dir: &Path, program: &Pinned) -> Result<String> {
    let package = &program.package;
    if let Some(environment) = &program.environment {
        return python::install_newest(&dir.join(environment), package);
    }
    let mut npm = Command::new("npm");
    npm.args(["install", "--no-audit", "--no-fund", "--prefix"]).arg(dir);
    run(npm.arg(format!("{package}@latest"))).context("npm comes with Node.js; is it on PATH?")?;
    let manifest = dir.join("node_modules").join(package).join("package.json");
    let text = fs::read_to_string(&manifest)
        .with_context(|| format!("failed to read {}", manifest.display()))?;
    let Manifest { version } = serde_json::from_str(&text)
        .with_context(|| format!("failed to find the version in {}", manifest.display()))?;
    Ok(version)
}

/// Runs the tests of a program.
fn tried(root: &Path, dir: &Path, package: &str, version: String) -> Outcome {
    announce(&format!("trying {package} {version}"));
    let result = match tests_of(package) {
        Some(filter) => run_tests(root, dir, &filter),
        None => Err("xtask/src/clis/newest.rs names no tests of it".to_owned()),
    };
    Outcome { version: Some(version), result }
}

/// Runs the tests of a nextest filter with the programs in `dir`.
fn run_tests(root: &Path, dir: &Path, filter: &str) -> Result<Trial, String> {
    let mut nextest = cargo(root);
    nextest.args(["nextest", "run", "--locked", "--workspace", "--no-fail-fast"]);
    nextest.args(["--color", "never", "--status-level", "fail", "-E", filter]);
    let output = nextest.env(FOLDER, dir).output();
    let output = output.map_err(|why| format!("nextest does not start: {why}"))?;
    let text = String::from_utf8_lossy(&output.stderr);
    trial(&text).ok_or_else(|| format!("no test ran: {}", end_of(&text)))
}

/// Tests of a package, as a nextest filter, without those that compare versions.
fn tests_of(package: &str) -> Option<String> {
    let (_, tests) = TESTS.iter().find(|(known, _)| *known == package)?;
    Some(format!("test(/^adapters::{tests}/) - test({OF_VERSION})"))
}

/// Reads nextest's messages; `None` without a summary of tests that ran.
fn trial(messages: &str) -> Option<Trial> {
    let summary = messages.lines().rfind(|line| line.trim_start().starts_with("Summary ["))?;
    let (counts, _) = summary.split_once(" passed")?;
    let passed = counts.rsplit(' ').next()?.parse().ok()?;
    let mut last = BTreeMap::new();
    for line in messages.lines().map(str::trim_start) {
        // `FAIL [ 1.2s] crate::binary test`, after retries `TRY 3 FAIL [...]`.
        let is_failure = ["FAIL [", "TIMEOUT [", "SIGABRT [", "SIGSEGV ["];
        let at = is_failure.iter().find_map(|word| line.find(word));
        let name = at.and_then(|at| line[at..].split_once(']')?.1.split_whitespace().nth(1));
        if let Some(name) = name {
            last.insert(name.to_owned(), ());
        }
    }
    // A test that passes when it is tried again is reported as flaky.
    let flaky = |name: &String| {
        messages
            .lines()
            .any(|line| line.trim_start().starts_with("FLAKY ") && line.ends_with(name.as_str()))
    };
    Some(Trial { passed, failed: last.into_keys().filter(|name| !flaky(name)).collect() })
}

/// Result of a program in a line.
fn line(program: &Pinned, outcome: &Outcome) -> String {
    let Pinned { package, version: pinned, .. } = program;
    let Outcome { version, result } = outcome;
    let version = version.as_deref().map(|version| format!(" {version}")).unwrap_or_default();
    format!("{package}{version} (pinned: {pinned}): {}", described(result))
}

/// Result of a trial for people.
fn described(result: &Result<Trial, String>) -> String {
    match result {
        Err(why) => why.clone(),
        Ok(Trial { passed, failed }) if failed.is_empty() => format!("all {passed} tests pass"),
        Ok(Trial { passed, failed }) => {
            let names: Vec<_> = failed.iter().map(String::as_str).collect();
            format!("{passed} tests pass; broken: {}", names.join(", "))
        }
    }
}

/// Last lines of a text.
fn end_of(text: &str) -> String {
    let lines: Vec<_> = text.lines().collect();
    lines[lines.len().saturating_sub(5)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    const MESSAGES: &str = "    Starting 3 tests across 1 binary
        FAIL [   1.204s] a2a-hub-cli::e2e adapters::claude::cancel_ends_all_processes
  TRY 1 FAIL [   2.000s] a2a-hub-cli::e2e adapters::claude::health
  TRY 2 FAIL [   2.000s] a2a-hub-cli::e2e adapters::claude::kept
     TIMEOUT [  90.000s] a2a-hub-cli::e2e adapters::claude::hangs
     Summary [   9.810s] 5 tests run: 2 passed (1 flaky), 3 failed, 7 skipped
   FLAKY 2/3 [   3.000s] a2a-hub-cli::e2e adapters::claude::health
";

    #[test]
    fn failed_tests_are_named_once() {
        let told = trial(MESSAGES).unwrap();
        let names: Vec<_> = told.failed.iter().map(|name| name.rsplit("::").next()).collect();
        let wanted = ["cancel_ends_all_processes", "hangs", "kept"].map(Some);
        assert_eq!((told.passed, names), (2, wanted.to_vec()));
        assert_eq!(trial("error: could not compile"), None);
    }

    #[test]
    fn line_names_versions_and_result() {
        let program = Pinned { package: "a".into(), version: "1".into(), environment: None };
        let told = |version: Option<&str>, result| {
            line(&program, &Outcome { version: version.map(str::to_owned), result })
        };
        let failed = BTreeSet::from(["x".to_owned(), "y".to_owned()]);
        let some = Trial { passed: 4, failed };
        assert_eq!(told(Some("2"), Ok(some)), "a 2 (pinned: 1): 4 tests pass; broken: x, y");
        let all = Trial { passed: 4, failed: BTreeSet::new() };
        assert_eq!(told(Some("2"), Ok(all)), "a 2 (pinned: 1): all 4 tests pass");
        assert_eq!(told(None, Err("no disk".into())), "a (pinned: 1): no disk");
    }

    #[test]
    fn every_pinned_package_has_tests() {
        let pins: Pins = serde_json::from_str(include_str!("../../../tests/clis.json")).unwrap();
        let all = pinned(&pins).unwrap();
        assert_eq!(all.len(), TESTS.len());
        for (_, tests) in TESTS {
            assert!(OF_SEVERAL.contains(tests), "{tests} are no tests of several programs");
        }
        for program in all {
            assert!(tests_of(&program.package).is_some(), "{program:?}");
        }
    }
}
