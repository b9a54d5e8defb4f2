//! The hub's only wasmtime engine, and its settings.

use crate::{
    compile::{
        bundled_code::CarriedCode,
        cache::{CacheSettings, CodeCache, CompileLimits},
        code_mmap,
        compiler::Hurry,
        compiler::{COMPILE, Compiler},
        settings,
    },
    cpu::{epoch_ticker::Ticker, scheduler::Scheduler},
    store::{
        limits::{MAX_CORE_INSTANCES, MAX_MEMORIES, MAX_TABLES},
        linker::HostFunctions,
    },
};
use a2a_hub_process::Worker;
use a2a_hub_runtime::limits::{MAX_MEMORY_BYTES, RunCapacity};
use std::{fs, io, path::PathBuf, sync::Arc, time::Duration};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use wasmtime::{Config, Enabled, InstanceAllocationStrategy, PoolingAllocationConfig};

/// Linear memory that a pool slot keeps resident, in bytes: saves page faults, costs memory for
/// each free slot that was used.
const KEEP_RESIDENT: usize = 128 << 10;

/// Table bytes that stay resident after a guest and are zeroed: the first page, which suffices for
/// most guests. Returning a page to the kernel and faulting in a fresh one takes longer.
const KEEP_TABLE: usize = 4 << 10;

/// Most mappings of a pooled instance, two of them before it is used. Linux allows a process 65,530
/// by default.
const MAPPINGS: u32 = 8;

/// Mappings for the rest of the hub.
const OTHER_MAPPINGS: u32 = 1_500;

/// File with the system's limit of mappings per process.
const MAX_MAP_COUNT: &str = "/proc/sys/vm/max_map_count";

/// Most pooled instances for which contiguous addresses exist: two memories of 4 GiB each, below
/// the program, which Linux puts at two thirds of 128 TiB.
pub const MAX_INSTANCES: u32 = 10_000;

/// Additional slots for the hub's own calls of agents: cards, health checks, clean-up. So a health
/// check never takes a task's slot, and no waiting agent is evicted for it.
pub(crate) const HUB_CALL_SLOTS: u32 = 16;

/// Addresses of a guest without a pool, in bytes: its default memory, its stack and its tables.
const ADDRESSES: u64 = 80 << 20;

/// Settings of the engine.
#[derive(Clone, Debug)]
pub struct EngineSettings {
    /// Compiled components bundled with the executable.
    pub carried: Option<Arc<CarriedCode>>,
    /// Cache of compiled components. Without it, each start compiles anew.
    pub cache: Option<CacheSettings>,
    /// Executable that compiles components in separate processes when started with [`COMPILE`].
    /// Without it, compilation runs in this process, and an endless one cannot be stopped.
    pub compiler: Option<PathBuf>,
    /// Limits of one compilation in a worker.
    pub compile: CompileLimits,
    /// Concurrent guests: at most 8,003, or 10,000 if Linux allows a process more than the default
    /// number of mappings (`vm.max_map_count`).
    pub max_instances: u32,
    /// Address space limit of this process in bytes (`ulimit -v`), if any.
    pub address_space: Option<u64>,
}

impl Default for EngineSettings {
    fn default() -> Self {
        let compile = CompileLimits { cpu: Duration::from_secs(60), memory: 2 << 30 };
        Self {
            carried: None,
            cache: None,
            compiler: None,
            compile,
            max_instances: 2_000,
            address_space: None,
        }
    }
}

/// Compiles and runs components. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Engine {
    pub(crate) inner: wasmtime::Engine,
    pub(crate) compiler: Arc<Compiler>,
    /// Linker, created once because it has hundreds of functions.
    pub(crate) functions: Arc<HostFunctions>,
    slots: Arc<Semaphore>,
    hub_call_slots: Arc<Semaphore>,
    max: usize,
    lacks_pool: bool,
    pub(crate) scheduler: Arc<Scheduler>,
    _ticker: Arc<Ticker>,
}

/// Reason why the engine cannot be set up on this machine.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// wasmtime cannot run here.
    #[error("set up the WebAssembly engine: {0:#}")]
    Wasmtime(wasmtime::Error),
    /// The thread that interrupts guests cannot be started.
    #[error("start the thread that interrupts guests: {0}")]
    Ticker(io::Error),
    /// The cache cannot be used.
    #[error("use the cache of compiled components in {dir}: {why}")]
    Cache {
        /// Directory of the cache.
        dir: PathBuf,
        /// The system's error.
        why: io::Error,
    },
}

impl Engine {
    /// Creates an engine. With too few addresses for a pool, fewer guests may run, and each
    /// allocates its memory at its start.
    pub fn new(settings: &EngineSettings) -> Result<Self, EngineError> {
        let max = settings.max_instances.clamp(1, max_instances(max_map_count()));
        let pooled = wasmtime::Engine::new(&config(Some(max)));
        let lacks_pool = pooled.is_err();
        let (inner, max) = match pooled {
            Ok(pooled) => (pooled, max),
            Err(why) => {
                let fewer = without_pool(max, settings.address_space);
                let limit = settings.address_space.map(|bytes| format!("{} MiB", bytes >> 20));
                let why = format!("{why:#}");
                tracing::debug!(why, address_space = limit, "cannot create the guest pool");
                (wasmtime::Engine::new(&config(None)).map_err(EngineError::Wasmtime)?, fewer)
            }
        };
        let functions = HostFunctions::new(&inner).map_err(EngineError::Wasmtime)?.into();
        let slots = Arc::new(Semaphore::new(max as usize));
        let hub_call_slots = Arc::new(Semaphore::new(HUB_CALL_SLOTS as usize));
        let (max, scheduler) = (max as usize, Arc::<Scheduler>::default());
        let interrupted = inner.clone();
        let ticker = Ticker::start(scheduler.pulse(), move || interrupted.increment_epoch());
        let ticker = ticker.map_err(EngineError::Ticker)?.into();
        let cache = settings.cache.clone().map(|cache| {
            let dir = cache.dir.clone();
            CodeCache::open(cache).map_err(|why| EngineError::Cache { dir, why })
        });
        let worker = settings.compiler.clone().map(|program| Worker { program, word: COMPILE });
        let (is_pooled, compile) = (!lacks_pool, settings.compile);
        let code = (settings.carried.clone(), cache.transpose()?);
        let compiler = Compiler::new(inner.clone(), is_pooled, code, worker, compile).into();
        Ok(Self {
            inner,
            compiler,
            functions,
            slots,
            hub_call_slots,
            max,
            lacks_pool,
            scheduler,
            _ticker: ticker,
        })
    }

    /// Compiles at the priority of this process until the guard is dropped: its holder has nothing
    /// else to do.
    pub fn hurry(&self) -> Hurry {
        Hurry::new(Arc::clone(&self.compiler))
    }

    /// True if too few addresses for a pool were available.
    pub fn lacks_pool(&self) -> bool {
        self.lacks_pool
    }

    /// Current and most concurrent guests.
    pub fn run_capacity(&self) -> RunCapacity {
        let running = self.max.saturating_sub(self.slots.available_permits());
        RunCapacity { running, max: self.max }
    }

    /// Slot for one more guest; none if all are taken.
    pub(crate) fn slot(&self, of: GuestSlot) -> Option<OwnedSemaphorePermit> {
        let task = || Arc::clone(&self.slots).try_acquire_owned().ok();
        match of {
            GuestSlot::Task => task(),
            GuestSlot::HubCall => {
                Arc::clone(&self.hub_call_slots).try_acquire_owned().ok().or_else(task)
            }
        }
    }
}

/// Kind of slot that a guest takes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum GuestSlot {
    /// Slot of a task.
    Task,
    /// Additional slot for the hub's own calls.
    HubCall,
}

/// System limit of mappings for a process; none if it cannot be read.
fn max_map_count() -> Option<u32> {
    fs::read_to_string(MAX_MAP_COUNT).ok()?.trim().parse().ok()
}

/// Most pooled instances with this limit of mappings.
fn max_instances(mappings: Option<u32>) -> u32 {
    let mappings = mappings.unwrap_or(65_530).saturating_sub(OTHER_MAPPINGS);
    (mappings / MAPPINGS).clamp(1, MAX_INSTANCES)
}

/// Most guests without a pool: half of the addresses are reserved for the hub itself.
fn without_pool(max: u32, address_space: Option<u64>) -> u32 {
    let fit = address_space.map_or(u64::MAX, |bytes| bytes / 2 / ADDRESSES);
    u32::try_from(fit).unwrap_or(max).clamp(1, max)
}

/// Engine configuration with a pool of this size, or without one.
fn config(pooled: Option<u32>) -> Config {
    let mut config = settings::for_code(pooled.is_some());
    config.with_custom_code_memory(code_mmap::memory());
    if let Some(max) = pooled {
        config.allocation_strategy(InstanceAllocationStrategy::Pooling(pool(max)));
    }
    config
}

fn pool(tasks: u32) -> PoolingAllocationConfig {
    let max = tasks.saturating_add(HUB_CALL_SLOTS);
    let mut pool = PoolingAllocationConfig::new();
    // Each slot has the resources that a component may use at most, so that none takes another's.
    pool.total_component_instances(max)
        .max_core_instances_per_component(MAX_CORE_INSTANCES)
        .total_core_instances(max.saturating_mul(MAX_CORE_INSTANCES))
        .max_memories_per_component(MAX_MEMORIES)
        .total_memories(max.saturating_mul(MAX_MEMORIES))
        .max_tables_per_component(MAX_TABLES)
        .total_tables(max.saturating_mul(MAX_TABLES))
        .total_stacks(max)
        .max_memory_size(MAX_MEMORY_BYTES)
        .linear_memory_keep_resident(KEEP_RESIDENT)
        .table_keep_resident(KEEP_TABLE)
        // Linux reports the pages that a guest has written (since 6.7): only those are reset.
        // Otherwise the first pages of a memory are reset, which in most guests are an untouched
        // stack.
        .pagemap_scan(Enabled::Auto);
    pool
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pool_size_follows_mapping_limit() {
        let most = [None, Some(65_530), Some(1_048_576), Some(0)].map(max_instances);
        assert_eq!(most, [8_003, 8_003, 10_000, 1]);
    }

    #[test]
    fn guest_limit_follows_address_space() {
        assert_eq!(without_pool(4_000, None), 4_000, "it failed for another reason");
        assert_eq!(without_pool(4_000, Some(8 << 30)), 51);
        assert_eq!(without_pool(10, Some(8 << 30)), 10);
        assert_eq!(without_pool(4_000, Some(0)), 1);
    }
}
