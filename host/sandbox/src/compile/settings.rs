//! Engine settings that machine code depends on, equal for the engine that runs components and for
//! the worker that compiles them.

use std::env::consts::ARCH;
use wasmtime::{Config, InstanceAllocationStrategy};

/// Settings to compile for an engine with a pool of instances, or without one.
pub(crate) fn for_code(for_pool: bool) -> Config {
    let mut config = Config::new();
    config.epoch_interruption(true);
    // No unwinding through guests: wasmtime walks their frames by pointers, and stops a host's
    // panic before them.
    config.native_unwind_info(false);
    config.allocation_strategy(InstanceAllocationStrategy::OnDemand);
    if !for_pool {
        // Reserves no unused addresses.
        config.memory_reservation(0).memory_guard_size(0).memory_reservation_for_growth(1 << 20);
    }
    config
}

/// Settings to compile bundled code for any machine of its architecture: without optional processor
/// features, and without the map from code to offsets in the component. For an engine with a pool.
pub(crate) fn to_carry() -> wasmtime::Result<Config> {
    let mut config = for_code(true);
    config.target(&format!("{ARCH}-unknown-linux-gnu"))?;
    config.generate_address_map(false);
    Ok(config)
}
