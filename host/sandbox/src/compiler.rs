//! Compiling components: from the cache, or in a worker that can be ended, within limits. The compiler's time is not the size of
//! what it is given (half a megabyte of nested blocks takes it most of a minute), so no limit on bytes bounds it.
//!
//! Whoever waits is served by a feedback queue of two levels: everything has a short turn at first, and what is not done by then
//! goes to the end of a queue of its own. So a component that compiles for a minute delays none that compiles in a moment.

use crate::{
    carried::CarriedCode,
    code_cache::{CodeCache, CompileLimits, Kept, Refusal},
    code_settings,
    compiled_code::CompiledCode,
};
use a2a_hub_process::{WorkError, WorkLimits, Worker, run_blocking};
use bytes::Bytes;
use sha2::{Digest as _, Sha256};
use std::{
    hash::{Hash as _, Hasher},
    sync::Arc,
    time::Duration,
};
use tokio::sync::Semaphore;
use wasmtime::component::Component;

/// The first argument that turns this executable into a compiler; `main` hands those after it to [`a2a_hub_process::work`] with
/// [`compile_in_worker`].
pub const COMPILE: &str = "__compile";

/// The first turn: what every agent in Rust, and most others, are compiled in. A compiler that is not optimised takes longer.
const FIRST_TURN: Duration = Duration::from_secs(if cfg!(debug_assertions) { 15 } else { 1 });

/// The most code that one component can be compiled to, in bytes: what the cache takes.
const MAX_CODE: u64 = 384 << 20;

/// What a worker says first of a component that is valid, and too much for the compiler.
const GREEDY: &str = "greedy: ";

/// Has components compiled.
#[derive(Debug)]
pub(crate) struct Compiler {
    engine: wasmtime::Engine,
    is_pooled: bool,
    /// The version and settings of the compiler, as a digest: code of another one is not this one's.
    fingerprint: String,
    /// What this program carries.
    carried: Option<Arc<CarriedCode>>,
    cache: Option<CodeCache>,
    /// None where nobody said what the executable is: then it is done on threads of this process.
    worker: Option<Worker>,
    limits: CompileLimits,
    first_turn: Semaphore,
    second_turn: Semaphore,
}

/// Why there is no code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CompileError {
    /// The component is not valid.
    Invalid(String),
    /// It is valid, and has more parts than there is room for.
    Greedy(String),
    /// It costs too much, which is remembered.
    Costly(String),
    /// No fault of the component's: it is worth another try.
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
        // One at a time each, so that two processors are busy at most, and each of the two with several threads.
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

    /// Compiles in a worker, or on another thread where there is none.
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
        let (here, kept, of) = (Arc::clone(&self), name.clone(), digest.to_owned());
        if let Some(found) = off_the_runtime(move || Ok(here.find(&kept, &of))).await? {
            return found;
        }
        let code = match self.in_turns(worker, component).await {
            Ok(code) => CompiledCode::fresh(code),
            Err(why) => return Err(self.refuse(name, why).await),
        };
        let here = Arc::clone(&self);
        off_the_runtime(move || here.finish(&name, &code)).await
    }

    /// A short turn first; then a long one, with all the time that there is.
    async fn in_turns(&self, worker: &Worker, component: Bytes) -> Result<Vec<u8>, WorkError> {
        let arguments = [if self.is_pooled { POOLED } else { UNPOOLED }];
        let run = |cpu, component| {
            let limits = WorkLimits { cpu, memory: self.limits.memory, output: MAX_CODE };
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

    /// What is known of a component already: where this program carries its code, that; or else what is kept.
    fn find(&self, name: &str, digest: &str) -> Option<Result<Component, CompileError>> {
        let carried = self.carried.as_ref().and_then(|carried| carried.code(digest));
        let unfit = match carried.map(|code| code.load(&self.engine)) {
            Some(Ok(component)) => return Some(Ok(component)),
            Some(Err(why)) => Some(why),
            None => None,
        };
        let kept = self.find_kept(name);
        if let (Some(why), None) = (unfit, &kept) {
            let why = format!("{why:#}");
            tracing::warn!(
                why,
                "the code that this program carries does not fit this machine: a component is compiled here once"
            );
        }
        kept
    }

    fn find_kept(&self, name: &str) -> Option<Result<Component, CompileError>> {
        let cache = self.cache.as_ref()?;
        if let Kept::Found(code) = cache.code(name) {
            return Some(self.load(&code));
        }
        match cache.refusal(name) {
            Kept::Found(refusal) if !refusal.is_outgrown(self.limits) => {
                Some(Err(CompileError::Costly(refusal.why)))
            }
            Kept::Found(_) | Kept::Nothing | Kept::Forged => None,
        }
    }

    fn finish(&self, name: &str, code: &CompiledCode) -> Result<Component, CompileError> {
        let component = self.load(code)?;
        if let Some(cache) = &self.cache
            && let Err(why) = cache.keep_code(name, code)
        {
            tracing::warn!(%why, "cannot keep what was compiled: it is compiled again at the next start");
        }
        Ok(component)
    }

    fn load(&self, code: &CompiledCode) -> Result<Component, CompileError> {
        code.load(&self.engine).map_err(|why| CompileError::Greedy(format!("{why:#}")))
    }

    /// What is told of a failure; one that would come again is remembered.
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
        let refusal = Refusal { limits: self.limits, why: why.to_string() };
        let (here, kept) = (Arc::clone(self), refusal.clone());
        let remembered = off_the_runtime(move || {
            if let Some(cache) = &here.cache
                && let Err(why) = cache.keep_refusal(&name, &kept)
            {
                tracing::warn!(%why, "cannot remember what is not to be compiled again");
            }
            Ok(())
        });
        // Where it is not remembered it is found out again, at the same cost.
        let _ = remembered.await;
        CompileError::Costly(refusal.why)
    }

    fn name(&self, digest: &str) -> String {
        format!("{digest}-{}", self.fingerprint)
    }
}

/// An engine with a pool of places for guests compiles for those.
const POOLED: &str = "pooled";

/// One without.
const UNPOOLED: &str = "unpooled";

/// The work of a worker: compiles `component` for a hub whose engine is as `arguments` say. Guests cannot run here: the worker has
/// no place for any.
pub fn compile_in_worker(arguments: &[String], component: &[u8]) -> Result<Vec<u8>, String> {
    let is_pooled = match arguments {
        [kind] if kind == POOLED => true,
        [kind] if kind == UNPOOLED => false,
        _ => return Err("the hub and its worker are of different versions".to_owned()),
    };
    let engine = wasmtime::Engine::new(&code_settings::for_code(is_pooled));
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

/// The version and settings of the compiler: 64 bits of a digest of all that wasmtime holds to matter.
fn fingerprint(engine: &wasmtime::Engine) -> String {
    let mut all = Fingerprint(Sha256::new());
    engine.precompile_compatibility_hash().hash(&mut all);
    format!("{:016x}", all.finish())
}

struct Fingerprint(Sha256);

impl Hasher for Fingerprint {
    fn finish(&self) -> u64 {
        let digest = self.0.clone().finalize();
        digest.iter().take(8).fold(0, |number, byte| number << 8 | u64::from(*byte))
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }
}
