//! The one wasmtime engine of the hub, and its settings.

use crate::{
    carried::CarriedCode,
    code_cache::{CacheSettings, CodeCache, CompileLimits},
    code_in_place, code_settings,
    compiler::{COMPILE, Compiler},
    host_functions::HostFunctions,
    limits::{MAX_CORE_INSTANCES, MAX_MEMORIES, MAX_TABLES},
    scheduler::Scheduler,
    ticker::Ticker,
};
use a2a_hub_process::Worker;
use a2a_hub_runtime::limits::{MAX_MEMORY_BYTES, Room};
use std::{fs, io, path::PathBuf, sync::Arc, time::Duration};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use wasmtime::{Config, Enabled, InstanceAllocationStrategy, PoolingAllocationConfig};

/// Linear memory that a fresh instance finds already in place, in bytes: saves page faults, costs memory per free slot that was used.
const KEEP_RESIDENT: usize = 128 << 10;

/// How many bytes of a table stay where they are when its guest ends, and are overwritten with zeros: the first page, in which those of most guests fit.
/// To give a page back to the kernel, and to have a fresh one for the next guest, takes longer than that.
const KEEP_TABLE: usize = 4 << 10;

/// A pooled instance needs so many mappings at the most, two of them before it is taken, and Linux gives a process 65,530 unless it was told
/// otherwise.
const MAPPINGS: u32 = 8;

/// Mappings for all else that the hub has.
const OTHER_MAPPINGS: u32 = 1_500;

/// Where Linux tells how many mappings a process may have.
const MAX_MAP_COUNT: &str = "/proc/sys/vm/max_map_count";

/// There are addresses in one piece for so many pooled instances: two memories of 4 GiB each, below the program, which Linux puts at two
/// thirds of 128 TiB.
pub const MAX_INSTANCES: u32 = 10_000;

/// Places for what the hub asks of agents by itself: their cards, their health, to clean up. A check of health takes no task's
/// place, so that none is refused, and no agent that waits is let go, for it.
pub(crate) const VISITS: u32 = 16;

/// Addresses that a guest may take up where none are kept for it, in bytes: the memory that it has by default, its stack and its
/// tables.
const ADDRESSES: u64 = 80 << 20;

/// How the engine is set up.
#[derive(Clone, Debug)]
pub struct EngineSettings {
    /// Compiled components that the program carries.
    pub carried: Option<Arc<CarriedCode>>,
    /// Where compiled components are kept between runs. Without it, each start compiles anew.
    pub cache: Option<CacheSettings>,
    /// The executable that compiles components in processes of their own, when it is started with [`COMPILE`]. Without it, they are
    /// compiled in this process, and one that takes for ever cannot be ended.
    pub compiler: Option<PathBuf>,
    /// What compiling one component may cost there.
    pub compile: CompileLimits,
    /// How many guests may be alive at once: at most 8,003, and 10,000 where Linux gives a process more mappings than it does by itself
    /// (`vm.max_map_count`).
    pub max_instances: u32,
    /// How many bytes of addresses this process may have (`ulimit -v`), if there is a limit.
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
    /// Made once, for there are hundreds.
    pub(crate) functions: Arc<HostFunctions>,
    slots: Arc<Semaphore>,
    visits: Arc<Semaphore>,
    max: usize,
    lacks_pool: bool,
    pub(crate) scheduler: Arc<Scheduler>,
    _ticker: Arc<Ticker>,
}

/// The engine cannot be set up on this machine.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// Guests cannot run here.
    #[error("set up the WebAssembly engine: {0:#}")]
    Wasmtime(wasmtime::Error),
    /// Guests could not be interrupted.
    #[error("start the thread that interrupts guests: {0}")]
    Ticker(io::Error),
    /// What is compiled cannot be kept.
    #[error("use the cache of compiled components in {dir}: {why}")]
    Cache {
        /// The directory of the cache.
        dir: PathBuf,
        /// The system's error.
        why: io::Error,
    },
}

impl Engine {
    /// An engine with these settings. Where there are too few addresses to keep a place for each guest, there are fewer guests,
    /// and each gets its place when it starts.
    pub fn new(settings: &EngineSettings) -> Result<Self, EngineError> {
        let max = settings.max_instances.clamp(1, most_instances(max_map_count()));
        let pooled = wasmtime::Engine::new(&config(Some(max)));
        let lacks_pool = pooled.is_err();
        let (inner, max) = match pooled {
            Ok(pooled) => (pooled, max),
            Err(why) => {
                let fewer = without_pool(max, settings.address_space);
                let limit = settings.address_space.map(|bytes| format!("{} MiB", bytes >> 20));
                let why = format!("{why:#}");
                tracing::debug!(why, address_space = limit, "there is no pool of guests");
                (wasmtime::Engine::new(&config(None)).map_err(EngineError::Wasmtime)?, fewer)
            }
        };
        let functions = HostFunctions::new(&inner).map_err(EngineError::Wasmtime)?.into();
        let slots = Arc::new(Semaphore::new(max as usize));
        let visits = Arc::new(Semaphore::new(VISITS as usize));
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
            visits,
            max,
            lacks_pool,
            scheduler,
            _ticker: ticker,
        })
    }

    /// Whether there were too few addresses to keep a place for each guest.
    pub fn lacks_pool(&self) -> bool {
        self.lacks_pool
    }

    /// How many guests are alive, and may be.
    pub fn room(&self) -> Room {
        let taken = self.max.saturating_sub(self.slots.available_permits());
        Room { taken, most: self.max }
    }

    /// Room for one more guest, or none if the pool is full.
    pub(crate) fn slot(&self, of: Place) -> Option<OwnedSemaphorePermit> {
        let task = || Arc::clone(&self.slots).try_acquire_owned().ok();
        match of {
            Place::Task => task(),
            Place::Visit => Arc::clone(&self.visits).try_acquire_owned().ok().or_else(task),
        }
    }
}

/// Whose place a guest takes while it is alive.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Place {
    /// A task's.
    Task,
    /// One of those that are kept for what the hub asks by itself.
    Visit,
}

/// How many mappings a process may have here; none if that cannot be read.
fn max_map_count() -> Option<u32> {
    fs::read_to_string(MAX_MAP_COUNT).ok()?.trim().parse().ok()
}

/// How many pooled instances there may be where a process may have so many mappings.
fn most_instances(mappings: Option<u32>) -> u32 {
    let mappings = mappings.unwrap_or(65_530).saturating_sub(OTHER_MAPPINGS);
    (mappings / MAPPINGS).clamp(1, MAX_INSTANCES)
}

/// How many guests there may be where each gets its place when it starts: half of the addresses are for the hub itself.
fn without_pool(max: u32, address_space: Option<u64>) -> u32 {
    let fit = address_space.map_or(u64::MAX, |bytes| bytes / 2 / ADDRESSES);
    u32::try_from(fit).unwrap_or(max).clamp(1, max)
}

/// With a pool of places for so many guests, or without one.
fn config(pooled: Option<u32>) -> Config {
    let mut config = code_settings::for_code(pooled.is_some());
    config.with_custom_code_memory(code_in_place::memory());
    if let Some(max) = pooled {
        config.allocation_strategy(InstanceAllocationStrategy::Pooling(pool(max)));
    }
    config
}

fn pool(tasks: u32) -> PoolingAllocationConfig {
    let max = tasks.saturating_add(VISITS);
    let mut pool = PoolingAllocationConfig::new();
    // As much for each slot as a component may have, so that none takes what is another's.
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
        // Linux tells which pages a guest wrote to (since 6.7): those are put back as they were, wherever they are, and the others are
        // left alone. Without that it is the first ones of a memory, which in most guests are a stack that nobody has reached.
        .pagemap_scan(Enabled::Auto);
    pool
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_guests_run_as_there_are_mappings_and_addresses_for() {
        let most = [None, Some(65_530), Some(1_048_576), Some(0)].map(most_instances);
        assert_eq!(most, [8_003, 8_003, 10_000, 1]);
    }

    #[test]
    fn without_a_pool_as_many_guests_run_as_there_are_addresses_for() {
        assert_eq!(without_pool(4_000, None), 4_000, "it failed for another reason");
        assert_eq!(without_pool(4_000, Some(8 << 30)), 51);
        assert_eq!(without_pool(10, Some(8 << 30)), 10);
        assert_eq!(without_pool(4_000, Some(0)), 1);
    }
}
