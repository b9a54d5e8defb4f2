//! The settings that machine code depends on: the same for the engine that runs components and for the worker that compiles them.

use wasmtime::{Config, InstanceAllocationStrategy};

/// For compiling: what is compiled so runs in an engine with a pool of places, or in one without.
pub(crate) fn for_code(for_pool: bool) -> Config {
    let mut config = Config::new();
    config.epoch_interruption(true);
    config.allocation_strategy(InstanceAllocationStrategy::OnDemand);
    if !for_pool {
        // No address is kept that is not used.
        config.memory_reservation(0).memory_guard_size(0).memory_reservation_for_growth(1 << 20);
    }
    config
}
