//! Tests of `a2a-hub plugin test`: each planted fault is found by its check, and a correct
//! component passes.

use crate::command_line::{Ran, command, finish_within};
use a2a_hub_tests::{faulty_guest, test_guests};
use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};
use tempfile::TempDir;
use tokio::time::Instant;

/// Timeout of the command: hanging components are ended sooner, and an unoptimised hub compiles for
/// seconds.
const WITHIN: Duration = Duration::from_secs(110);

/// Planted faults, each with the check that finds it.
const CARDS: &[(&str, &str)] = &[
    ("card-deceives", "card.valid"),
    ("card-changes", "card.stable"),
    ("skill-twice", "card.a2a"),
    ("health-hangs", "health.in-time"),
    ("clean-up-panics", "cancel.cleans-up"),
];

const MESSAGES: &[(&str, &str)] = &[
    ("empty-panics", "message.empty"),
    ("huge-panics", "message.huge"),
    ("bytes-panics", "message.unicode"),
    ("data-panics", "message.data"),
    ("history-panics", "message.context"),
    ("no-end", "message.plain"),
];

const CONDUCT: &[(&str, &str)] = &[
    ("deaf", "cancel.in-time"),
    ("tells-on", "limits.output"),
    ("unasked", "manifest.declares"),
    ("denial-panics", "capabilities.denied"),
];

/// Temporary directory that holds the component, and serves as home and TMPDIR.
struct Bench(TempDir);

impl Bench {
    fn new() -> Result<Self> {
        Ok(Self(tempfile::tempdir()?))
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    /// Writes the guest with this fault; an empty string means no fault.
    fn plant(&self, fault: &str) -> Result<PathBuf> {
        const WORD: &[u8] = b"planted-fault:";
        let mut bytes = fs::read(faulty_guest()?)?;
        let at = bytes.windows(WORD.len()).position(|at| at == WORD).context("no such word")?;
        let at = at + WORD.len();
        bytes[at..at + fault.len()].copy_from_slice(fault.as_bytes());
        let path = self.path().join(format!("planted-{fault}.wasm"));
        fs::write(&path, bytes)?;
        Ok(path)
    }

    async fn ran(&self, component: &Path, args: &[&str]) -> Result<Ran> {
        let component = component.to_str().context("no text")?;
        let args = [&["plugin", "test", component], args].concat();
        let mut command = command(&self.path().join("no-hub.sock"), self.path(), &args)?;
        command.env("TMPDIR", self.path());
        finish_within(WITHIN, command).await
    }

    /// Returns the exit code and the report.
    async fn report(&self, component: &Path) -> Result<(Option<i32>, Value)> {
        let ran = self.ran(component, &["--format", "json"]).await?;
        let report = serde_json::from_str(&ran.stdout);
        Ok((ran.code, report.with_context(|| format!("{}{}", ran.stdout, ran.stderr))?))
    }
}

/// Returns the checks with this result.
fn checks<'a>(report: &'a Value, result: &str) -> Vec<&'a str> {
    let all = report["checks"].as_array().into_iter().flatten();
    let of = all.filter(|check| check["result"] == result);
    of.filter_map(|check| check["id"].as_str()).collect()
}

async fn each_is_found(faults: &[(&str, &str)]) -> Result<()> {
    let bench = Bench::new()?;
    for (fault, check) in faults {
        let began = Instant::now();
        let (code, report) = bench.report(&bench.plant(fault)?).await?;
        let failed = checks(&report, "failed");
        ensure!(code == Some(1) && failed.contains(check), "{fault}: {code:?} {report:#}");
        ensure!(report["passed"] == false, "{fault}: {report:#}");
        for found in report["checks"].as_array().into_iter().flatten() {
            let is_mended = found["fix"].is_string() == (found["result"] == "failed");
            ensure!(is_mended, "{fault}: {found:#}");
            let plain = found["found"].as_str().is_some_and(|it| !it.contains(char::is_control));
            ensure!(plain, "{fault}: {found:#}");
        }
        ensure!(began.elapsed() < Duration::from_secs(100), "{fault}: {:?}", began.elapsed());
    }
    Ok(())
}

#[tokio::test]
async fn card_and_health_faults_are_found() -> Result<()> {
    each_is_found(CARDS).await
}

#[tokio::test]
async fn message_handling_faults_are_found() -> Result<()> {
    each_is_found(MESSAGES).await
}

#[tokio::test]
async fn cancellation_and_denial_faults_are_found() -> Result<()> {
    let quick: Vec<_> = CONDUCT.iter().filter(|(fault, _)| *fault != "tells-on").copied().collect();
    ensure!(quick.len() + 1 == CONDUCT.len());
    each_is_found(&quick).await
}

#[tokio::test]
async fn output_beyond_limits_is_found() -> Result<()> {
    each_is_found(&CONDUCT[1..2]).await
}

#[tokio::test]
async fn correct_component_passes_all_checks() -> Result<()> {
    let bench = Bench::new()?;
    let (code, report) = bench.report(&bench.plant("")?).await?;
    let failed = checks(&report, "failed");
    ensure!(code == Some(0) && failed.is_empty() && report["passed"] == true, "{report:#}");
    let open = checks(&report, "not-applicable");
    ensure!(open.is_empty(), "each check has something to see: {open:?}");
    assert_eq!(report["schema"], "urn:a2a-hub:plugin-test:v1");
    assert_eq!(report["component"]["sha256"].as_str().map(str::len), Some(64));

    let ran = bench.ran(&bench.plant("")?, &[]).await?;
    assert!(ran.stdout.contains("ok   message.huge"), "{}", ran.stdout);
    assert!(ran.stdout.contains("it passes: "), "{}", ran.stdout);
    // The command leaves no files behind.
    let mut left: Vec<_> = fs::read_dir(bench.path())?.collect::<Result<_, _>>()?;
    left.retain(|it| it.path().extension().is_none_or(|it| it != "wasm"));
    assert!(left.is_empty(), "{left:?}");
    Ok(())
}

/// The command ends and reports the reason, whatever its input is.
#[tokio::test]
async fn invalid_component_or_card_is_reported() -> Result<()> {
    let bench = Bench::new()?;
    let none = bench.path().join("none.wasm");
    fs::write(&none, b"\0asm\x01\0\0\0")?;
    let ran = bench.ran(&none, &[]).await?;
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
    assert!(ran.stderr.contains("no WebAssembly component"), "{}", ran.stderr);
    let ran = bench.ran(&bench.path().join("missing.wasm"), &[]).await?;
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);

    let mut spins = fs::read(test_guests()?)?;
    let word = b"card-behaves:    ";
    let at = spins.windows(word.len()).position(|at| at == word).context("no such word")?;
    spins[at..at + word.len()].copy_from_slice(b"card-behaves:spin");
    let path = bench.path().join("spins.wasm");
    fs::write(&path, spins)?;
    let (code, report) = bench.report(&path).await?;
    assert_eq!(code, Some(1), "{report:#}");
    assert_eq!(checks(&report, "failed"), ["card.valid"], "{report:#}");
    assert!(checks(&report, "not-applicable").contains(&"cancel.in-time"), "{report:#}");
    Ok(())
}
