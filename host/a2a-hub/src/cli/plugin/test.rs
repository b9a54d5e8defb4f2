//! `plugin test`: whether a component keeps what the contract asks of it, tried in a sandbox of its own. It is granted nothing that
//! reaches anything outside, each run has a deadline and the limits of the sandbox, and what the component says is data.

mod card;
mod conduct;
mod report;
mod stage;

use super::component::{Component, MAX_BYTES, read_at_most};
use crate::cli::{Exit, Global, failure::CommandError};
use a2a_hub_protocol::{card::AgentCard, id::AgentId};
use a2a_hub_sandbox::{
    CacheKey, CacheSettings, CompileLimits, Engine, EngineSettings, LoadError, Plugin,
};
use anyhow::Context as _;
use bytes::Bytes;
use clap::Args;
use report::{Report, failed, passed, said};
use stage::Stage;
use std::{
    fs::{self, DirBuilder},
    os::unix::fs::DirBuilderExt as _,
    path::PathBuf,
    time::Duration,
};
use tokio::time::{Instant, timeout_at};

/// How long all checks may take together, compiling left out: some times what a component takes that hangs in each of them.
const WITHIN: Duration = Duration::from_secs(180);

/// What compiling may cost: what a hub allows that is not told otherwise.
const COMPILE: CompileLimits = CompileLimits { cpu: Duration::from_secs(60), memory: 2 << 30 };

/// Guests that are alive at once: no check needs more.
const GUESTS: u32 = 32;

/// Things that are said to it, at most.
const PROMPTS: usize = 12;

/// The running program, which compiles components in a process of its own.
const THIS_PROGRAM: &str = "/proc/self/exe";

/// Under which name a component is tried that names none itself.
const NAMELESS: &str = "subject";

/// What `plugin test --help` ends with.
const MORE: &str = "\
The component runs in a sandbox of its own, with no program, host, file or agent within reach, and nothing is kept of it. Exit status: 0 \
if it passes, 1 if a check failed, 2 if it could not be tried. With `--format json` the report is one object.";

#[derive(Debug, Args)]
#[command(after_help = MORE, after_long_help = MORE)]
pub(in crate::cli) struct Test {
    /// The component
    component: PathBuf,
    /// Say this to it as well, as a client would; may be given several times
    #[arg(long = "say", value_name = "TEXT")]
    say: Vec<String>,
}

/// Tries a component, and tells what was found.
pub(super) fn test(global: &Global, asked: &Test) -> anyhow::Result<Exit> {
    let bytes = read_at_most(&asked.component, MAX_BYTES);
    let what = || format!("read the component {}", asked.component.display());
    let bytes = Bytes::from(bytes.with_context(what)?);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let note = |said: &str| {
        if global.console().columns_beside().is_some() {
            global.console().note(said);
        }
    };
    let report = runtime.block_on(async {
        tokio::select! {
            report = examine(asked, bytes, note) => report.map(Some),
            // What was laid down for it goes with it.
            _ = tokio::signal::ctrl_c() => Ok(None),
        }
    });
    // A guest that is not at its end is of no interest any more.
    runtime.shutdown_background();
    let Some(report) = report? else { return Ok(Exit::Interrupted) };
    global.show(&report.to_json(), || Ok(report.text()))?;
    Ok(if report.is_passed() { Exit::Done } else { Exit::TaskFailed })
}

async fn examine(asked: &Test, bytes: Bytes, note: impl Fn(&str)) -> anyhow::Result<Report> {
    let mut report = Report::of(&asked.component, &bytes);
    match Component::of(asked.component.clone(), bytes.to_vec()) {
        Ok(component) => report.manifest(&component.ask),
        Err(why) => match why.downcast::<CommandError>() {
            // What is no component at all cannot be tried.
            Ok(why) => return Err(why.into()),
            Err(why) => {
                let fix =
                    "mend `manifest.toml`, and build again; docs/GUESTS.md has all that it may say";
                // What is beyond stands in its words already.
                let why: Vec<_> = why.chain().take(2).map(|why| why.to_string()).collect();
                report.add(failed("manifest.read", said(&why.join(": ")), fix));
                return Ok(report.cut_off("its manifest cannot be read"));
            }
        },
    }
    report.add(passed("manifest.read", report.manifest_line()));
    let ground = Ground::lay()?;
    note(
        "compiling the component; one of a language with a runtime of its own takes half a minute",
    );
    let engine = Engine::new(&EngineSettings {
        carried: None,
        cache: Some(ground.cache()?),
        compiler: Some(THIS_PROGRAM.into()),
        compile: COMPILE,
        max_instances: GUESTS,
        address_space: None,
    })?;
    let began = Instant::now();
    let plugin = match Plugin::load(&engine, bytes.clone()).await {
        Ok(plugin) => plugin,
        Err(LoadError::NotNow(why)) => anyhow::bail!("compile the component: {why}"),
        Err(why) => {
            let is_large = matches!(why, LoadError::Costly { .. } | LoadError::Greedy(_));
            let fix = match is_large {
                true => "build it smaller: optimise for size, and leave out what is not used",
                false => "build it against `wit/` of this hub, for the target wasm32-wasip2",
            };
            report.add(failed("component.loads", said(&why.to_string()), fix));
            return Ok(report.cut_off("it does not load"));
        }
    };
    let took = began.elapsed().as_secs_f64();
    report
        .add(passed("component.loads", format!("compiled in {took:.1} s, and fits a2a:hub@0.1.0")));
    let nameless = AgentId::parse(NAMELESS).context("name the component")?;
    let agent = plugin.ask().id.clone().unwrap_or(nameless);
    note("trying it");
    let until = Instant::now() + WITHIN;
    let card = plugin.card(&agent).await;
    let card = match card {
        Ok(card) => card,
        Err(why) => {
            let fix =
                "say a card with `name`, `description`, `version` and plain texts, within a second";
            report.add(failed("card.valid", said(&why.to_string()), fix));
            return Ok(report.cut_off("it has no card that can be used"));
        }
    };
    report.add(passed("card.valid", said(&format!("{} {}", card.name, card.version))));
    let prompts = prompts(&card, &asked.say);
    let stage = Stage::new((engine, bytes), plugin, agent, &card);
    for check in card::checks(&stage, &card).await {
        report.add(check);
    }
    let mut conduct = conduct::Conduct::new(&stage, &card, prompts);
    let mut is_cut = false;
    for each in conduct::ALL {
        // A run that a check waits for ends with the process at the latest.
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

/// Where compiled code is kept, so that loading it again costs little. It is gone once this is dropped.
struct Ground(PathBuf);

impl Ground {
    fn lay() -> anyhow::Result<Self> {
        let name = format!("a2a-hub-plugin-test-{:016x}", u64::from_ne_bytes(chance()?));
        let dir = std::env::temp_dir().join(name);
        let made = DirBuilder::new().mode(0o700).create(&dir);
        let what = || format!("make {}, or set TMPDIR to a directory where you may", dir.display());
        made.with_context(what)?;
        Ok(Self(dir))
    }

    /// Under a key that nobody else has.
    fn cache(&self) -> anyhow::Result<CacheSettings> {
        Ok(CacheSettings { dir: self.0.join("cache"), key: CacheKey::new(&chance::<32>()?) })
    }
}

/// Bytes that nobody knows.
fn chance<const N: usize>() -> anyhow::Result<[u8; N]> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).context("ask the system for random bytes")?;
    Ok(bytes)
}

impl Drop for Ground {
    fn drop(&mut self) {
        // What is left in the directory for temporary files, the system removes.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// What is said to it: what its card gives as examples, and what the user names.
fn prompts(card: &AgentCard, say: &[String]) -> Vec<String> {
    /// Enough to see how it behaves.
    const EXAMPLES: usize = 5;
    let examples = card.skills.iter().filter_map(|skill| skill.other.get("examples")?.as_array());
    let examples = examples.flatten().filter_map(|example| example.as_str().map(str::to_owned));
    let hello = std::iter::once("hello".to_owned());
    hello.chain(say.iter().cloned()).chain(examples.take(EXAMPLES)).take(PROMPTS).collect()
}
