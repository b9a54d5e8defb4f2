//! A component that was read, checked against the contract and linked: ready to run any number of
//! tasks.

use crate::{
    compile::{compiler::CompileError, digest::digest_of},
    component::{
        engine::Engine,
        manifest::{self, ManifestError},
    },
    cpu::scheduler::AgentShare,
    store::{bindings::PluginPre, state::GuestState},
};
use a2a_hub_core::grant::Ask;
use a2a_hub_process::run_blocking;
use a2a_hub_protocol::card::InvalidCard;
use a2a_hub_runtime::Failure;
use bytes::Bytes;
use std::{fmt, sync::Arc};
use wasmtime::component::{Component, ComponentExportIndex};

/// Interface of the contract that an agent exports.
const AGENT: &str = "a2a:hub/agent@0.1.0";

/// A loaded agent component. Cheap to clone.
#[derive(Clone)]
pub struct Plugin {
    pub(crate) engine: Engine,
    pub(crate) pre: PluginPre<GuestState>,
    pub(crate) runs: RunExports,
    pub(crate) share: Arc<AgentShare>,
    ask: Arc<Ask>,
    digest: String,
}

/// Exports of a component that run a task. A task looks up the one that it needs: the bindings look
/// up all exports and check their types, which costs a short task more than its call. The hub reads
/// each card by the bindings, so a component with an export of another type does not load.
#[derive(Clone)]
pub(crate) struct RunExports {
    pub(crate) execute: ComponentExportIndex,
    pub(crate) stream: ComponentExportIndex,
}

impl RunExports {
    fn of(component: &Component) -> Option<Self> {
        let agent = component.get_export_index(None, AGENT)?;
        let export = |name| component.get_export_index(Some(&agent), name);
        Some(Self { execute: export("execute")?, stream: export("stream")? })
    }
}

impl fmt::Debug for Plugin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Plugin").field("digest", &self.digest).finish_non_exhaustive()
    }
}

/// Reason why a file is not an agent of this hub.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The file is not WebAssembly.
    #[error("it is not WebAssembly")]
    NotWasm,
    /// The file is a core module.
    #[error(
        "it is a core WebAssembly module, not a component; build it for the target wasm32-wasip2"
    )]
    CoreModule,
    /// The file is damaged or truncated.
    #[error("it is not a valid component: {0}")]
    Invalid(String),
    /// The component has more parts than the engine allows.
    #[error("it needs more than one agent may have: {0}")]
    Greedy(String),
    /// The compilation exceeds its limits.
    #[error(
        "compile it: {why}. It is not tried again: the hub remembers that by its digest, {digest}. Build it smaller, or raise \
         `plugins.compile_cpu_ms` or `plugins.compile_memory_mb` and restart the hub"
    )]
    Costly {
        /// Exceeded limit.
        why: String,
        /// SHA-256 digest of the component, in hexadecimal digits.
        digest: String,
    },
    /// The component was not compiled, for a transient reason.
    #[error("compile it: {0}")]
    NotNow(String),
    /// The component has another contract.
    #[error("it does not fit the contract a2a:hub@0.1.0: {0}")]
    Contract(String),
    /// The manifest cannot be used.
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    /// The component did not return its card.
    #[error("it returned no card: {0}")]
    Silent(Failure),
    /// The card lacks required members.
    #[error(transparent)]
    Card(#[from] InvalidCard),
}

impl LoadError {
    /// Error message with a panic's text, for the author of the agent.
    pub fn in_full(&self) -> String {
        if let Self::Silent(why) = self {
            format!("it returned no card: {}", why.in_full())
        } else {
            self.to_string()
        }
    }
}

impl Plugin {
    /// Reads, checks and compiles a component; in a separate process if the engine knows the
    /// executable.
    pub async fn load(engine: &Engine, bytes: Bytes) -> Result<Self, LoadError> {
        let copy = bytes.clone();
        let read = off_the_runtime(move || ComponentFacts::read(&copy)).await?;
        let compiled = Arc::clone(&engine.compiler).compile(bytes, &read.digest).await;
        let component = compiled.map_err(|why| not_compiled(why, &read.digest))?;
        let engine = engine.clone();
        off_the_runtime(move || Self::link(&engine, &component, read)).await
    }

    /// Reads, checks and compiles a component on this thread. Blocks for long.
    pub fn compile(engine: &Engine, bytes: &[u8]) -> Result<Self, LoadError> {
        let read = ComponentFacts::read(bytes)?;
        let compiled = engine.compiler.compile_here(bytes, &read.digest);
        let component = compiled.map_err(|why| not_compiled(why, &read.digest))?;
        Self::link(engine, &component, read)
    }

    /// Checks the component against the contract.
    fn link(
        engine: &Engine,
        component: &Component,
        facts: ComponentFacts,
    ) -> Result<Self, LoadError> {
        let contract = |why: wasmtime::Error| LoadError::Contract(format!("{why:#}"));
        let linked = engine.functions.link(component);
        let pre = PluginPre::new(linked.map_err(contract)?).map_err(contract)?;
        let runs = RunExports::of(component)
            .ok_or_else(|| LoadError::Contract(format!("it exports no `{AGENT}`")))?;
        let ComponentFacts { ask, digest } = facts;
        let share = Arc::new(engine.scheduler.share());
        Ok(Self { engine: engine.clone(), pre, runs, share, ask: Arc::new(ask), digest })
    }

    /// The same component with other requests than those of its manifest: the hub makes several
    /// agents of one built-in component.
    #[must_use]
    pub fn with_ask(self, ask: Ask) -> Self {
        Self { ask: Arc::new(ask), ..self }
    }

    /// Requests in the component's manifest.
    pub fn ask(&self) -> &Ask {
        &self.ask
    }

    /// SHA-256 digest of the component, in hexadecimal digits.
    pub fn digest(&self) -> &str {
        &self.digest
    }
}

/// Facts about a component before it is compiled.
struct ComponentFacts {
    ask: Ask,
    digest: String,
}

impl ComponentFacts {
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
