//! The settings that machine code depends on: the same for the engine that runs components and for the worker that compiles them.

use std::env::consts::ARCH;
use wasmtime::{Config, InstanceAllocationStrategy};

/// For compiling: what is compiled so runs in an engine with a pool of places, or in one without.
pub(crate) fn for_code(for_pool: bool) -> Config {
    let mut config = Config::new();
    config.epoch_interruption(true);
    // Nothing unwinds through guests: wasmtime walks their frames by pointers, and ends a host's panic before them.
    config.native_unwind_info(false);
    config.allocation_strategy(InstanceAllocationStrategy::OnDemand);
    if !for_pool {
        // No address is kept that is not used.
        config.memory_reservation(0).memory_guard_size(0).memory_reservation_for_growth(1 << 20);
    }
    config
}

/// For compiling what a program carries to any machine of its architecture: without what only some processors can do, and without
/// the table that tells where in a component some code stood. It runs in an engine with a pool.
pub(crate) fn to_carry() -> wasmtime::Result<Config> {
    let mut config = for_code(true);
    config.target(&format!("{ARCH}-unknown-linux-gnu"))?;
    config.generate_address_map(false);
    Ok(config)
}
