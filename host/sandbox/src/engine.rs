//! The one wasmtime engine of the hub, and its settings.

use crate::limits::{MAX_CORE_INSTANCES, MAX_MEMORIES, MAX_TABLES};
use a2a_hub_runtime::limits::MAX_MEMORY_BYTES;
use std::{
    path::PathBuf,
    sync::{Arc, mpsc},
    thread,
    time::Duration,
};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use wasmtime::{Cache, CacheConfig, Config, InstanceAllocationStrategy, PoolingAllocationConfig};

/// How often guests are interrupted to look at their CPU clock and to let others run.
const TICK: Duration = Duration::from_millis(5);

/// Linear memory that a fresh instance finds already in place, in bytes: saves page faults, costs memory per free slot.
const KEEP_RESIDENT: usize = 128 << 10;

/// Pooled instances need 6 mappings each, and Linux gives a process 65,530 of them.
pub const MAX_INSTANCES: u32 = 8_000;

/// How the engine is set up.
#[derive(Clone, Debug)]
pub struct EngineSettings {
    /// Where compiled components are kept between runs; a private directory. Without it, each start compiles anew.
    pub cache_dir: Option<PathBuf>,
    /// How many guests may be alive at once, at most [`MAX_INSTANCES`].
    pub max_instances: u32,
}

impl Default for EngineSettings {
    fn default() -> Self {
        Self { cache_dir: None, max_instances: 4_000 }
    }
}

/// Compiles and runs components. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Engine {
    pub(crate) inner: wasmtime::Engine,
    slots: Arc<Semaphore>,
    _ticker: Arc<Ticker>,
}

/// The engine cannot be set up on this machine.
#[derive(Debug, thiserror::Error)]
#[error("set up the WebAssembly engine: {0:#}")]
pub struct EngineError(wasmtime::Error);

impl Engine {
    /// An engine with these settings.
    pub fn new(settings: &EngineSettings) -> Result<Self, EngineError> {
        let max = settings.max_instances.clamp(1, MAX_INSTANCES);
        let config = config(settings, max).map_err(EngineError)?;
        let inner = wasmtime::Engine::new(&config).map_err(EngineError)?;
        let ticker = Arc::new(Ticker::start(inner.clone()));
        Ok(Self { inner, slots: Arc::new(Semaphore::new(max as usize)), _ticker: ticker })
    }

    /// Room for one more guest, or none if the pool is full.
    pub(crate) fn slot(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.slots).try_acquire_owned().ok()
    }
}

fn config(settings: &EngineSettings, max: u32) -> wasmtime::Result<Config> {
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
        .linear_memory_keep_resident(KEEP_RESIDENT);
    let mut config = Config::new();
    config.epoch_interruption(true).allocation_strategy(InstanceAllocationStrategy::Pooling(pool));
    if let Some(dir) = &settings.cache_dir {
        let mut cache = CacheConfig::new();
        cache.with_directory(dir);
        config.cache(Some(Cache::new(cache)?));
    }
    Ok(config)
}

/// The only thread that moves the epoch, so that every guest is interrupted at the same rate.
#[derive(Debug)]
struct Ticker {
    stop: Option<mpsc::Sender<()>>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Ticker {
    fn start(engine: wasmtime::Engine) -> Self {
        let (stop, stopped) = mpsc::channel();
        let tick = move || {
            while stopped.recv_timeout(TICK) == Err(mpsc::RecvTimeoutError::Timeout) {
                engine.increment_epoch();
            }
        };
        let thread = thread::Builder::new().name("epoch".to_owned()).spawn(tick).ok();
        Self { stop: Some(stop), thread }
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // It only ends by hanging up, and it never panics.
            let _ = thread.join();
        }
    }
}
