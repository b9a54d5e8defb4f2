//! Conformance checks of a component, in a sandbox. The component is granted nothing that reaches
//! the outside, each run has a deadline and the sandbox's limits, and the component's output is
//! treated as data.

mod card;
mod conduct;
pub(crate) mod report;
mod stage;

use crate::{
    component::Component,
    error::{AuthoringError, Doing as _, FailureKind},
};
use a2a_hub_protocol::{card::AgentCard, id::AgentId};
use a2a_hub_sandbox::{
    CacheKey, CacheSettings, CompileLimits, Engine, EngineSettings, LoadError, Plugin,
};
use bytes::Bytes;
use report::{Report, failed, passed, sanitize};
use stage::ConformanceBench;
use std::{
    error::Error as _,
    fs::{self, DirBuilder},
    os::unix::fs::DirBuilderExt as _,
    path::PathBuf,
    time::Duration,
};
use tokio::time::{Instant, timeout_at};

/// Time limit of all checks together, without compiling: several times the duration of a component
/// that hangs in each check.
const WITHIN: Duration = Duration::from_secs(180);

/// Limits of compiling: the defaults of a hub.
const COMPILE: CompileLimits = CompileLimits { cpu: Duration::from_secs(60), memory: 2 << 30 };

/// Maximum number of concurrent guests, enough for every check.
const GUESTS: u32 = 32;

/// Maximum number of messages sent to the component.
const PROMPTS: usize = 12;

/// Name of a component whose manifest declares none.
const NAMELESS: &str = "subject";

/// Component under test, with options.
#[derive(Clone, Debug)]
pub struct Subject {
    /// Component's file, as named in the report.
    pub file: PathBuf,
    /// Content of the file, up to [`MAX_BYTES`](crate::MAX_BYTES).
    pub bytes: Vec<u8>,
    /// Additional messages to send, as a client would.
    pub say: Vec<String>,
    /// Program that compiles components in a separate process
    /// (`a2a_hub_sandbox::compile_in_worker`), such as the running one, `/proc/self/exe`; `None`
    /// compiles on threads of this process, where endless compilation cannot be ended.
    pub compiler: Option<PathBuf>,
    /// Cache of compiled components, such as that of the user's hub; `None` compiles in any case.
    pub cache: Option<CacheSettings>,
}

/// Phase of the checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConformancePhase {
    /// Compiling the component: half a minute for a language that brings its runtime.
    Compiling,
    /// Running the checks.
    Trying,
}

/// Checks a component and returns the report. Calls `on_phase` at each phase.
///
/// # Errors
/// If the file is no component ([`FailureKind::NoComponent`]), or the checks cannot run on this
/// machine at present.
pub async fn check(
    subject: Subject,
    on_phase: impl Fn(ConformancePhase),
) -> Result<Report, AuthoringError> {
    let Subject { file, bytes, say, compiler, cache } = subject;
    let bytes = Bytes::from(bytes);
    let mut report = Report::new(&file, &bytes);
    match Component::new(file, bytes.to_vec()) {
        Ok(component) => report.manifest(&component.ask),
        // A file that is no component cannot be checked.
        Err(why) if why.kind() == FailureKind::NoComponent => return Err(why),
        Err(why) => {
            let fix = "mend `manifest.toml`, and build again; docs/reference/manifest.md has all that it may say";
            // The message already covers the deeper causes.
            let cause = why.source().map(|cause| format!(": {cause}"));
            let why = format!("{why}{}", cause.unwrap_or_default());
            report.add(failed("manifest.read", sanitize(&why), fix));
            return Ok(report.cut_off("its manifest cannot be read"));
        }
    }
    report.add(passed("manifest.read", report.manifest_line()));
    let ground = CacheDir::lay()?;
    on_phase(ConformancePhase::Compiling);
    let with = |cache| {
        Engine::new(&EngineSettings {
            carried: None,
            cache: Some(cache),
            compiler: compiler.clone(),
            compile: COMPILE,
            max_instances: GUESTS,
            address_space: None,
        })
    };
    // A cache that cannot be used costs the time to compile.
    let engine = match cache.and_then(|cache| with(cache).ok()) {
        Some(engine) => engine,
        None => with(ground.cache()?).map_err(|why| AuthoringError::from_error(&why))?,
    };
    // The author waits in front of it.
    let _hurry = engine.hurry();
    let began = Instant::now();
    let plugin = match Plugin::load(&engine, bytes.clone()).await {
        Ok(plugin) => plugin,
        Err(LoadError::NotNow(why)) => {
            let why = format!("compile the component: {why}");
            return Err(AuthoringError::new(FailureKind::Other, why));
        }
        Err(why) => {
            let is_large = matches!(why, LoadError::Costly { .. } | LoadError::Greedy(_));
            let fix = match is_large {
                true => "build it smaller: optimise for size, and leave out what is not used",
                false => "build it against `wit/` of this hub, for the target wasm32-wasip2",
            };
            report.add(failed("component.loads", sanitize(&why.to_string()), fix));
            return Ok(report.cut_off("it does not load"));
        }
    };
    let took = began.elapsed().as_secs_f64();
    report.add(passed("component.loads", format!("loaded in {took:.1} s, and fits a2a:hub@0.1.0")));
    let nameless = AgentId::parse(NAMELESS).doing(|| "name the component".to_owned())?;
    let agent = plugin.ask().id.clone().unwrap_or(nameless);
    on_phase(ConformancePhase::Trying);
    let until = Instant::now() + WITHIN;
    let card = plugin.card(&agent).await;
    let card = match card {
        Ok(card) => card,
        Err(why) => {
            let fix = "say a card with `name`, `description`, `version` and plain texts, within two seconds";
            report.add(failed("card.valid", sanitize(&why.in_full()), fix));
            return Ok(report.cut_off("it has no card that can be used"));
        }
    };
    report.add(passed("card.valid", sanitize(&format!("{} {}", card.name, card.version))));
    let prompts = prompts(&card, &say);
    let stage = ConformanceBench::new((engine, bytes), plugin, agent, &card);
    for check in card::checks(&stage, &card).await {
        report.add(check);
    }
    let mut conduct = conduct::Conduct::new(&stage, &card, prompts);
    let mut is_cut = false;
    for each in conduct::ALL {
        // A guest that a check waits for ends with the process at the latest.
        match timeout_at(until, conduct.check(*each)).await {
            Ok(checks) => checks.into_iter().for_each(|check| report.add(check)),
            Err(_) => {
                is_cut = true;
                break;
            }
        }
    }
    if is_cut {
        let fix = "see which checks before failed, and mend those first";
        let found = format!("not all was tried within {} s", WITHIN.as_secs());
        report.add(failed("time.bounded", found, fix));
    }
    Ok(report)
}

/// Temporary directory for compiled code, which makes repeated loading cheap. Removed on drop.
struct CacheDir(PathBuf);

impl CacheDir {
    fn lay() -> Result<Self, AuthoringError> {
        let name = format!("a2a-hub-plugin-test-{:016x}", u64::from_ne_bytes(chance()?));
        let dir = std::env::temp_dir().join(name);
        let created = DirBuilder::new().mode(0o700).create(&dir);
        let action =
            || format!("make {}, or set TMPDIR to a directory where you may", dir.display());
        created.doing(action)?;
        Ok(Self(dir))
    }

    /// Returns a compile cache with a fresh random key.
    fn cache(&self) -> Result<CacheSettings, AuthoringError> {
        Ok(CacheSettings { dir: self.0.join("cache"), key: CacheKey::new(&chance::<32>()?) })
    }
}

/// Returns random bytes.
fn chance<const N: usize>() -> Result<[u8; N], AuthoringError> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).doing(|| "ask the system for random bytes".to_owned())?;
    Ok(bytes)
}

impl Drop for CacheDir {
    fn drop(&mut self) {
        // The system cleans leftover temporary files.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Returns the messages to send: a greeting, the user's, and the examples of the component's card.
fn prompts(card: &AgentCard, say: &[String]) -> Vec<String> {
    /// Maximum number of examples: enough to observe the component's behaviour.
    const EXAMPLES: usize = 5;
    let examples = card.skills.iter().filter_map(|skill| skill.other.get("examples")?.as_array());
    let examples = examples.flatten().filter_map(|example| example.as_str().map(str::to_owned));
    let hello = std::iter::once("hello".to_owned());
    hello.chain(say.iter().cloned()).chain(examples.take(EXAMPLES)).take(PROMPTS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use parking_lot::Mutex;
    use serde_json::json;

    fn subject(bytes: &[u8]) -> Subject {
        Subject {
            file: "x.wasm".into(),
            bytes: bytes.to_vec(),
            say: Vec::new(),
            compiler: None,
            cache: None,
        }
    }

    #[tokio::test]
    async fn invalid_component_is_not_checked() {
        let why = check(subject(b"\0asm\x01\0\0\0"), |_| {}).await.unwrap_err();
        assert_eq!(why.kind(), FailureKind::NoComponent);
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn compiled_code_enters_given_cache() {
        let dir = tempfile::tempdir().unwrap();
        let component = subject(b"\0asm\x0d\0\x01\0");
        let cache = |name| CacheSettings { dir: dir.path().join(name), key: CacheKey::new(b"x") };
        let there = Subject { cache: Some(cache("cache")), ..component.clone() };
        check(there, |_| {}).await.unwrap();
        assert_eq!(fs::read_dir(dir.path().join("cache")).unwrap().count(), 1);
        fs::write(dir.path().join("file"), "").unwrap();
        let unusable = Subject { cache: Some(cache("file")), ..component };
        check(unusable, |_| {}).await.unwrap();
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn contract_mismatch_stops_further_checks() {
        let steps = Mutex::new(Vec::new());
        let report = check(subject(b"\0asm\x0d\0\x01\0"), |step| steps.lock().push(step)).await;
        let report = report.unwrap().to_json();
        assert_eq!(*steps.lock(), [ConformancePhase::Compiling]);
        let results: Vec<_> = report["checks"].as_array().unwrap().iter().take(3).collect();
        let told = results.into_iter().map(|check| [&check["id"], &check["result"]]);
        assert_eq!(
            json!(told.collect::<Vec<_>>()),
            json!([
                ["manifest.read", "passed"],
                ["component.loads", "failed"],
                ["card.valid", "not-applicable"],
            ])
        );
        assert_eq!(report["passed"], false);
    }
}
