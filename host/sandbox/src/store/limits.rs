//! Resource limits of a guest: memory, CPU time, tables, output. Each limit is per task, and
//! exceeding it ends that task only.

use crate::cpu::scheduler::CpuAccount;
use a2a_hub_core::text::duration::Span;
use a2a_hub_runtime::Limits;
use std::{sync::Arc, time::Duration};
use wasmtime::{ResourceLimiter, Store, UpdateDeadline};

/// Table elements of a guest; an element costs the host 8 bytes.
const MAX_TABLE_ELEMENTS: usize = 100_000;

/// Core instances of one component (modules, adapters and shims): twice what componentize-py and
/// similar tools need.
pub(crate) const MAX_CORE_INSTANCES: u32 = 64;

/// Linear memories of one component: a module's, and one more.
pub(crate) const MAX_MEMORIES: u32 = 2;

/// Tables of one component: a module's, an adapter's, and as many again.
pub(crate) const MAX_TABLES: u32 = 4;

/// Bytes that the host copies for one call. No event is larger.
const MAX_HOSTCALL_BYTES: usize = 8 << 20;

/// Sums the memory of a store, because wasmtime asks about each memory separately.
#[derive(Debug)]
pub(crate) struct MemoryLimiter {
    max_bytes: usize,
    memory_bytes: usize,
    table_elements: usize,
    /// True if a growth was refused: the trap that follows does not name the cause.
    pub(crate) refused: bool,
}

impl MemoryLimiter {
    pub(crate) fn new(limits: &Limits) -> Self {
        let max_bytes = limits.memory_bytes;
        Self { max_bytes, memory_bytes: 0, table_elements: 0, refused: false }
    }
}

impl ResourceLimiter for MemoryLimiter {
    fn memory_growing(
        &mut self,
        current: usize,
        desired: usize,
        _maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        let total = self.memory_bytes.saturating_sub(current).saturating_add(desired);
        let allowed = total <= self.max_bytes;
        if allowed {
            self.memory_bytes = total;
        } else {
            self.refused = true;
        }
        Ok(allowed)
    }

    fn table_growing(
        &mut self,
        current: usize,
        desired: usize,
        _maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        let total = self.table_elements.saturating_sub(current).saturating_add(desired);
        let allowed = total <= MAX_TABLE_ELEMENTS;
        if allowed {
            self.table_elements = total;
        }
        Ok(allowed)
    }

    fn instances(&self) -> usize {
        MAX_CORE_INSTANCES as usize
    }

    fn tables(&self) -> usize {
        MAX_TABLES as usize
    }

    fn memories(&self) -> usize {
        MAX_MEMORIES as usize
    }
}

/// CPU budget exhausted; the epoch callback ends a guest with this error.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the agent used up its {} of CPU time", Span(*.0))]
pub(crate) struct CpuExhausted(Duration);

/// Applies `limits` to a store: memory, host allocations, and CPU time as counted by `account`. A
/// plain epoch deadline would include the time that a guest waits for a program.
pub(crate) fn put_on<T: Send + 'static>(
    store: &mut Store<T>,
    limits: &Limits,
    account: Arc<CpuAccount>,
    limiter: impl FnMut(&mut T) -> &mut (dyn ResourceLimiter) + Send + Sync + 'static,
) {
    store.limiter(limiter);
    store.set_hostcall_fuel(MAX_HOSTCALL_BYTES);
    let budget = limits.cpu;
    store.set_epoch_deadline(1);
    store.epoch_deadline_callback(move |_| {
        if account.used() > budget {
            return Err(wasmtime::Error::new(CpuExhausted(budget)));
        }
        Ok(UpdateDeadline::Yield(1))
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_limit_covers_all_memories() {
        let mut limiter = MemoryLimiter::new(&Limits { memory_bytes: 100, ..Limits::default() });
        let mut grow = |from, to| limiter.memory_growing(from, to, None).unwrap();
        assert!(grow(0, 60));
        assert!(!grow(0, 60), "a second memory counts as well");
        assert!(grow(60, 90));
        assert!(grow(0, 10));
        assert!(!grow(90, 91));
        assert!(limiter.refused);
    }
}
