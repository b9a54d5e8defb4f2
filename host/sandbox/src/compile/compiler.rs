//! Compilation of components: from the cache, or in a worker process with limits that can be
//! killed. Compile time does not follow the input's size (half a megabyte of nested blocks takes
//! most of a minute), so a limit on bytes does not bound it.
//!
//! A feedback queue of two levels serves the waiting components: each gets a short attempt first,
//! and those that exceed it move to a second queue. So a component that compiles for a minute
//! delays none that compiles in a moment.

use crate::compile::{
    bundled_code::CarriedCode,
    cache::{CacheLookup, CodeCache, CompileLimits, FailedCompilation},
    compiled_code::CompiledCode,
    settings,
};
use a2a_hub_process::{WorkError, WorkLimits, Worker, WorkerPriority, run_blocking};
use bytes::Bytes;
use sha2::{Digest as _, Sha256};
use std::{
    hash::{Hash as _, Hasher},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::sync::Semaphore;
use wasmtime::component::Component;

/// First argument that makes this executable a compiler; `main` passes the following ones to
/// [`a2a_hub_process::work`] with [`compile_in_worker`].
pub const COMPILE: &str = "__compile";

/// CPU limit of the first attempt: enough for every agent in Rust, and most others. An unoptimised
/// compiler takes longer.
const FIRST_TURN: Duration = Duration::from_secs(if cfg!(debug_assertions) { 15 } else { 1 });

/// Time without any use of the processor after which a compilation counts as stuck, and is tried
/// again. A busy machine gives even a process of low priority some time.
const STALL: Duration = Duration::from_secs(60);

/// Most code of one component, in bytes: what the cache accepts.
const MAX_CODE: u64 = 384 << 20;

/// Prefix of a worker's error for a component that is valid and exceeds an engine limit.
const GREEDY: &str = "greedy: ";

/// Compiles components.
#[derive(Debug)]
pub(crate) struct Compiler {
    engine: wasmtime::Engine,
    is_pooled: bool,
    /// Digest of the compiler's version and settings: code of another compiler cannot be used.
    fingerprint: String,
    /// Code bundled with this executable.
    carried: Option<Arc<CarriedCode>>,
    cache: Option<CodeCache>,
    /// None if the executable is unknown: then compilation runs on threads of this process.
    worker: Option<Worker>,
    limits: CompileLimits,
    first_turn: Semaphore,
    second_turn: Semaphore,
    /// Number of [`Hurry`] guards.
    hurries: AtomicUsize,
}

/// Guard of a caller with nothing else to do than to wait for compilations. Those that begin while
/// it exists have the priority of this process.
#[derive(Debug)]
pub struct Hurry(Arc<Compiler>);

impl Hurry {
    pub(crate) fn new(compiler: Arc<Compiler>) -> Self {
        compiler.hurries.fetch_add(1, Ordering::Relaxed);
        Self(compiler)
    }
}

impl Drop for Hurry {
    fn drop(&mut self) {
        self.0.hurries.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Reason why a component has no code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CompileError {
    /// The component is not valid.
    Invalid(String),
    /// The component is valid and has more parts than the engine allows.
    Greedy(String),
    /// The compilation exceeds its limits, which is recorded.
    Costly(String),
    /// Not the component's fault: a retry may succeed.
    NotNow(String),
}

impl Compiler {
    pub(crate) fn new(
        engine: wasmtime::Engine,
        is_pooled: bool,
        (carried, cache): (Option<Arc<CarriedCode>>, Option<CodeCache>),
        worker: Option<Worker>,
        limits: CompileLimits,
    ) -> Self {
        let fingerprint = fingerprint(&engine);
        // One permit each, so that at most two compilations run, each with several threads.
        let (first_turn, second_turn) = (Semaphore::new(1), Semaphore::new(1));
        Self {
            engine,
            is_pooled,
            fingerprint,
            carried,
            cache,
            worker,
            limits,
            first_turn,
            second_turn,
            hurries: AtomicUsize::new(0),
        }
    }

    /// Compiles on this thread, without a limit.
    pub(crate) fn compile_here(
        &self,
        component: &[u8],
        digest: &str,
    ) -> Result<Component, CompileError> {
        let name = self.name(digest);
        if let Some(found) = self.find(&name, digest) {
            return found;
        }
        let code = precompile(&self.engine, component)?;
        self.finish(&name, &CompiledCode::fresh(code))
    }

    /// Compiles in a worker, or on another thread without one.
    pub(crate) async fn compile(
        self: Arc<Self>,
        component: Bytes,
        digest: &str,
    ) -> Result<Component, CompileError> {
        let name = self.name(digest);
        let Some(worker) = &self.worker else {
            // The semaphore is never closed.
            let _turn = self.second_turn.acquire().await;
            let (here, digest) = (Arc::clone(&self), digest.to_owned());
            return off_the_runtime(move || here.compile_here(&component, &digest)).await;
        };
        let (here, key, of) = (Arc::clone(&self), name.clone(), digest.to_owned());
        if let Some(found) = off_the_runtime(move || Ok(here.find(&key, &of))).await? {
            return found;
        }
        let code = match self.in_turns(worker, component).await {
            Ok(code) => CompiledCode::fresh(code),
            Err(why) => return Err(self.refuse(name, why).await),
        };
        let here = Arc::clone(&self);
        off_the_runtime(move || here.finish(&name, &code)).await
    }

    /// Runs a short attempt first; then a long one with the whole limit.
    async fn in_turns(&self, worker: &Worker, component: Bytes) -> Result<Vec<u8>, WorkError> {
        let arguments = [if self.is_pooled { POOLED } else { UNPOOLED }];
        let run = |cpu, component| {
            let (memory, priority) = (self.limits.memory, self.priority());
            let limits = WorkLimits { cpu, memory, output: MAX_CODE, stall: STALL, priority };
            worker.run(&arguments, component, limits)
        };
        let first = {
            // The semaphore is never closed.
            let _turn = self.first_turn.acquire().await;
            run(FIRST_TURN.min(self.limits.cpu), component.clone()).await
        };
        if FIRST_TURN < self.limits.cpu && matches!(first, Err(WorkError::Cpu(_))) {
            let _turn = self.second_turn.acquire().await;
            return run(self.limits.cpu, component).await;
        }
        first
    }

    fn priority(&self) -> WorkerPriority {
        match self.hurries.load(Ordering::Relaxed) {
            0 => WorkerPriority::Low,
            _ => WorkerPriority::Normal,
        }
    }

    /// Known result for a component: bundled code, or a cache entry.
    fn find(&self, name: &str, digest: &str) -> Option<Result<Component, CompileError>> {
        let carried = self.carried.as_ref().and_then(|carried| carried.code(digest));
        let unfit = match carried.map(|code| code.load(&self.engine)) {
            Some(Ok(component)) => return Some(Ok(component)),
            Some(Err(why)) => Some(why),
            None => None,
        };
        let cached = self.find_cached(name);
        if let (Some(why), None) = (unfit, &cached) {
            let why = format!("{why:#}");
            tracing::warn!(
                why,
                "bundled code does not fit this machine, compiling the component once"
            );
        }
        cached
    }

    fn find_cached(&self, name: &str) -> Option<Result<Component, CompileError>> {
        let cache = self.cache.as_ref()?;
        if let CacheLookup::Found(code) = cache.code(name) {
            return Some(self.load(&code));
        }
        match cache.refusal(name) {
            CacheLookup::Found(refusal) if !refusal.is_outgrown(self.limits) => {
                Some(Err(CompileError::Costly(refusal.why)))
            }
            CacheLookup::Found(_) | CacheLookup::Nothing | CacheLookup::Forged => None,
        }
    }

    fn finish(&self, name: &str, code: &CompiledCode) -> Result<Component, CompileError> {
        let component = self.load(code)?;
        if let Some(cache) = &self.cache
            && let Err(why) = cache.keep_code(name, code)
        {
            tracing::warn!(%why, "cannot cache a compiled component, it is compiled again at the next start");
        }
        Ok(component)
    }

    fn load(&self, code: &CompiledCode) -> Result<Component, CompileError> {
        code.load(&self.engine).map_err(|why| CompileError::Greedy(format!("{why:#}")))
    }

    /// Error for a failed compilation; one that would repeat is recorded.
    async fn refuse(self: &Arc<Self>, name: String, why: WorkError) -> CompileError {
        if !why.is_of_the_work() {
            return CompileError::NotNow(why.to_string());
        }
        if let WorkError::Refused(why) = why {
            return match why.strip_prefix(GREEDY) {
                Some(why) => CompileError::Greedy(why.to_owned()),
                None => CompileError::Invalid(why),
            };
        }
        let refusal = FailedCompilation { limits: self.limits, why: why.to_string() };
        let (here, record) = (Arc::clone(self), refusal.clone());
        let remembered = off_the_runtime(move || {
            if let Some(cache) = &here.cache
                && let Err(why) = cache.keep_refusal(&name, &record)
            {
                tracing::warn!(%why, "cannot record a failed compilation");
            }
            Ok(())
        });
        // Without the record the failure is found again, at the same cost.
        let _ = remembered.await;
        CompileError::Costly(refusal.why)
    }

    fn name(&self, digest: &str) -> String {
        format!("{digest}-{}", self.fingerprint)
    }
}

/// Worker argument for an engine with a pool of instances.
const POOLED: &str = "pooled";

/// Worker argument for an engine without a pool.
const UNPOOLED: &str = "unpooled";

/// Work of a worker: compiles `component` for a hub whose engine is described by `arguments`. A
/// worker runs no guests.
pub fn compile_in_worker(arguments: &[String], component: &[u8]) -> Result<Vec<u8>, String> {
    let is_pooled = match arguments {
        [kind] if kind == POOLED => true,
        [kind] if kind == UNPOOLED => false,
        _ => return Err("the hub and its worker are of different versions".to_owned()),
    };
    let engine = wasmtime::Engine::new(&settings::for_code(is_pooled));
    let engine = engine.map_err(|why| format!("set the compiler up: {why:#}"))?;
    precompile(&engine, component).map_err(|why| match why {
        CompileError::Greedy(why) => format!("{GREEDY}{why}"),
        CompileError::Invalid(why) | CompileError::Costly(why) | CompileError::NotNow(why) => why,
    })
}

fn precompile(engine: &wasmtime::Engine, component: &[u8]) -> Result<Vec<u8>, CompileError> {
    engine.precompile_component(component).map_err(|why| {
        let valid = wasmparser::validate(component).is_ok();
        (if valid { CompileError::Greedy } else { CompileError::Invalid })(format!("{why:#}"))
    })
}

async fn off_the_runtime<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, CompileError> + Send + 'static,
) -> Result<T, CompileError> {
    let done = run_blocking(work).await;
    done.unwrap_or_else(|why| Err(CompileError::NotNow(why.to_string())))
}

/// Version and settings of the compiler: 64 bits of a digest of everything that wasmtime considers
/// relevant.
fn fingerprint(engine: &wasmtime::Engine) -> String {
    let mut all = EngineFingerprint(Sha256::new());
    engine.precompile_compatibility_hash().hash(&mut all);
    format!("{:016x}", all.finish())
}

struct EngineFingerprint(Sha256);

impl Hasher for EngineFingerprint {
    fn finish(&self) -> u64 {
        let digest = self.0.clone().finalize();
        digest.iter().take(8).fold(0, |number, byte| number << 8 | u64::from(*byte))
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }
}
