//! Memory of an agent for one of its callers.

use super::Agent;
use crate::port::context_memory::GrantedMemory;
use a2a_hub_core::{
    access_control::Principal, context_memory::model::MemoryCapacity,
    scheduling::memory_shares::MemoryHolder,
};
use a2a_hub_protocol::id::{ContextId, TenantId};
use a2a_hub_runtime::port::memory::MemoryPort;
use std::sync::Arc;

impl Agent {
    /// Context memory of the agent for one context, in a task that `by` requested; none if the
    /// agent may not remember.
    pub fn context_memory(
        &self,
        context: &ContextId,
        by: Option<&Principal>,
    ) -> Option<GrantedMemory> {
        let effective = &self.effective;
        let capacity = MemoryCapacity {
            max_bytes: effective.memory_bytes?,
            max_items: effective.memory_items,
        };
        let (owner, storage) = (self.terms.installation.clone(), self.storage.clone());
        let holder = MemoryHolder::new(context.tenant(), by);
        let of_context = (context.clone(), holder);
        Some(GrantedMemory::new(owner, of_context, capacity, self.live.clone(), storage))
    }

    /// Values by key of the agent for a tenant, in a task that `by` requested; none if the agent
    /// may not remember.
    pub(super) fn values_for(
        &self,
        tenant: &TenantId,
        by: Option<&Principal>,
    ) -> Option<Arc<dyn MemoryPort>> {
        let values = self.values.as_ref()?;
        Some(Arc::new(values.for_caller(tenant, by)))
    }
}
