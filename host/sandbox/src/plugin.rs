//! A component that was read, checked against the contract, and linked: ready to run any number of tasks.

use crate::{
    bindings::PluginPre,
    compiler::CompileError,
    digest::digest_of,
    engine::Engine,
    manifest::{self, ManifestError},
    scheduler::AgentShare,
    state::State,
};
use a2a_hub_core::grant::Ask;
use a2a_hub_process::run_blocking;
use a2a_hub_protocol::card::InvalidCard;
use a2a_hub_runtime::Failure;
use bytes::Bytes;
use std::{fmt, sync::Arc};
use wasmtime::component::Component;

/// An agent's component, ready to run. Cheap to clone.
#[derive(Clone)]
pub struct Plugin {
    pub(crate) engine: Engine,
    pub(crate) pre: PluginPre<State>,
    pub(crate) share: Arc<AgentShare>,
    ask: Arc<Ask>,
    digest: String,
}

impl fmt::Debug for Plugin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Plugin").field("digest", &self.digest).finish_non_exhaustive()
    }
}

/// Why a file is not an agent of this hub.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// It is something else altogether.
    #[error("it is not WebAssembly")]
    NotWasm,
    /// It is a core module.
    #[error(
        "it is a core WebAssembly module, not a component; build it for the target wasm32-wasip2"
    )]
    CoreModule,
    /// It is damaged, or half written.
    #[error("it is not a valid component: {0}")]
    Invalid(String),
    /// It has more parts than a guest's place has room for.
    #[error("it needs more than one agent may have: {0}")]
    Greedy(String),
    /// Compiling it costs too much.
    #[error(
        "compile it: {why}. It is not tried again: the hub remembers that by its digest, {digest}. Build it smaller, or raise \
         `plugins.compile_cpu_ms` or `plugins.compile_memory_mb` and restart the hub"
    )]
    Costly {
        /// What it took.
        why: String,
        /// The component's SHA-256 digest, in hex.
        digest: String,
    },
    /// It was not compiled, which is no fault of its.
    #[error("compile it: {0}")]
    NotNow(String),
    /// It is made for another contract.
    #[error("it does not fit the contract a2a:hub@0.1.0: {0}")]
    Contract(String),
    /// Its manifest cannot be followed.
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    /// It would not say its card.
    #[error("it did not say its card: {0}")]
    Silent(Failure),
    /// Its card does not say what every card must.
    #[error(transparent)]
    Card(#[from] InvalidCard),
}

impl LoadError {
    /// The error with a panic's own text, for the author of the agent.
    pub fn in_full(&self) -> String {
        if let Self::Silent(why) = self {
            format!("it did not say its card: {}", why.in_full())
        } else {
            self.to_string()
        }
    }
}

impl Plugin {
    /// Reads, checks and compiles a component, the latter in a process of its own if the engine knows the executable.
    pub async fn load(engine: &Engine, bytes: Bytes) -> Result<Self, LoadError> {
        let given = bytes.clone();
        let read = off_the_runtime(move || Said::read(&given)).await?;
        let compiled = Arc::clone(&engine.compiler).compile(bytes, &read.digest).await;
        let component = compiled.map_err(|why| not_compiled(why, &read.digest))?;
        let engine = engine.clone();
        off_the_runtime(move || Self::link(&engine, &component, read)).await
    }

    /// The same on this thread, in this process. Takes its time: call it where blocking is allowed.
    pub fn compile(engine: &Engine, bytes: &[u8]) -> Result<Self, LoadError> {
        let read = Said::read(bytes)?;
        let compiled = engine.compiler.compile_here(bytes, &read.digest);
        let component = compiled.map_err(|why| not_compiled(why, &read.digest))?;
        Self::link(engine, &component, read)
    }

    /// Checks that it fits the contract.
    fn link(engine: &Engine, component: &Component, said: Said) -> Result<Self, LoadError> {
        let contract = |why: wasmtime::Error| LoadError::Contract(format!("{why:#}"));
        let linked = engine.functions.link(component);
        let pre = PluginPre::new(linked.map_err(contract)?).map_err(contract)?;
        let Said { ask, digest } = said;
        let share = Arc::new(engine.scheduler.share());
        Ok(Self { engine: engine.clone(), pre, share, ask: Arc::new(ask), digest })
    }

    /// What the component asks for.
    pub fn ask(&self) -> &Ask {
        &self.ask
    }

    /// The SHA-256 digest of the component, in hex.
    pub fn digest(&self) -> &str {
        &self.digest
    }
}

/// What is known of a component before it is compiled.
struct Said {
    ask: Ask,
    digest: String,
}

impl Said {
    fn read(bytes: &[u8]) -> Result<Self, LoadError> {
        match bytes {
            [0, b'a', b's', b'm', 0x0d, 0, 1, 0, ..] => {}
            [0, b'a', b's', b'm', 1, 0, 0, 0, ..] => return Err(LoadError::CoreModule),
            _ => return Err(LoadError::NotWasm),
        }
        let ask = manifest::read(bytes).map_err(|why| match why {
            ManifestError::Wasm(why) => LoadError::Invalid(why.to_string()),
            why @ (ManifestError::Several
            | ManifestError::Large
            | ManifestError::Encoding
            | ManifestError::Invalid(_)
            | ManifestError::Toml(_)) => LoadError::Manifest(why),
        })?;
        Ok(Self { ask, digest: digest_of(bytes) })
    }
}

fn not_compiled(why: CompileError, digest: &str) -> LoadError {
    match why {
        CompileError::Invalid(why) => LoadError::Invalid(why),
        CompileError::Greedy(why) => LoadError::Greedy(why),
        CompileError::Costly(why) => LoadError::Costly { why, digest: digest.to_owned() },
        CompileError::NotNow(why) => LoadError::NotNow(why),
    }
}

async fn off_the_runtime<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, LoadError> + Send + 'static,
) -> Result<T, LoadError> {
    let done = run_blocking(work).await;
    done.unwrap_or_else(|why| Err(LoadError::NotNow(why.to_string())))
}
