//! Values that one agent remembers, persisted by the store.

use super::live_grant::{LiveGrant, revoked};
use a2a_hub_core::{
    access_control::Principal, plugin::installation::InstallationId,
    scheduling::memory_shares::MemoryHolder,
};
use a2a_hub_protocol::id::TenantId;
use a2a_hub_runtime::{Failure, port::memory::MemoryPort};
use a2a_hub_store::{AgentMemory, StorageError};
use std::{borrow::Cow, sync::Arc};

/// Values of one installation of an agent for one tenant, within the granted bytes and the share
/// of the caller.
#[derive(Clone)]
pub(crate) struct BoundedMemory {
    owner: InstallationId,
    tenant: TenantId,
    holder: MemoryHolder,
    max_bytes: u64,
    live: LiveGrant,
    storage: Arc<dyn AgentMemory>,
}

impl BoundedMemory {
    pub(crate) fn new(
        owner: InstallationId,
        max_bytes: u64,
        live: LiveGrant,
        storage: Arc<dyn AgentMemory>,
    ) -> Self {
        let (tenant, holder) = (TenantId::default(), MemoryHolder::default());
        Self { owner, tenant, holder, max_bytes, live, storage }
    }

    /// Values for this tenant, stored in a task that `by` requested. Tenants and callers have
    /// shares of the bytes.
    pub(crate) fn for_caller(&self, tenant: &TenantId, by: Option<&Principal>) -> Self {
        let holder = MemoryHolder::new(tenant, by);
        Self { tenant: tenant.clone(), holder, ..self.clone() }
    }

    /// Key in the store for a guest's key.
    fn stored<'k>(&self, key: &'k str) -> Cow<'k, str> {
        stored(&self.tenant, key)
    }

    /// Current byte limit. Fails once the grant is revoked.
    fn bytes(&self) -> Result<u64, Failure> {
        let bytes = self.live.now().memory_bytes.ok_or_else(|| revoked("remember values"))?;
        Ok(bytes.min(self.max_bytes))
    }
}

#[async_trait::async_trait]
impl MemoryPort for BoundedMemory {
    async fn get(&self, key: &str) -> Result<Option<Vec<u8>>, Failure> {
        self.bytes()?;
        let value = self
            .storage
            .recall(&self.owner, &self.stored(key))
            .await
            .map_err(|why| failure(&why))?;
        // The grant may have been revoked during the read.
        self.bytes()?;
        Ok(value)
    }

    async fn set(&self, key: &str, value: Vec<u8>) -> Result<(), Failure> {
        let max_bytes = self.bytes()?;
        let key = self.stored(key);
        let write = self.storage.remember_for(&self.owner, &key, value, &self.holder, max_bytes);
        write.await.map_err(|why| failure(&why))
    }

    async fn delete(&self, key: &str) -> Result<(), Failure> {
        self.bytes()?;
        self.storage.forget(&self.owner, &self.stored(key)).await.map_err(|why| failure(&why))
    }

    async fn keys(&self, prefix: &str) -> Result<Vec<String>, Failure> {
        self.bytes()?;
        let stored = self.storage.keys(&self.owner, &self.stored(prefix)).await;
        let stored = stored.map_err(|why| failure(&why))?;
        let guest_keys = stored.into_iter().filter_map(|key| guest_key(&self.tenant, key));
        let mut guest_keys: Vec<_> = guest_keys.collect();
        guest_keys.sort_unstable();
        Ok(guest_keys)
    }
}

/// Delimiter of the tenant's name in a key.
const MARK: char = '\u{1f}';

/// Maps a guest's key to the store's key. Keys of the default tenant stay as they are; others get
/// the tenant's name as a prefix, so that an agent cannot reach one tenant's values while it works
/// for another.
fn stored<'k>(tenant: &TenantId, key: &'k str) -> Cow<'k, str> {
    if tenant.is_default() && !key.starts_with(MARK) {
        return key.into();
    }
    format!("{MARK}{tenant}{MARK}{key}").into()
}

/// Maps a store's key back to the guest's key; none if it belongs to another tenant.
fn guest_key(tenant: &TenantId, key: String) -> Option<String> {
    match key.strip_prefix(MARK).and_then(|marked| marked.split_once(MARK)) {
        Some((of, unprefixed)) => (of == tenant.as_str()).then(|| unprefixed.to_owned()),
        None => tenant.is_default().then_some(key),
    }
}

/// True if the memory, or a share of it, is full.
pub(crate) fn is_full(why: &StorageError) -> bool {
    matches!(
        why,
        StorageError::Full { .. } | StorageError::FullOfItems { .. } | StorageError::Share(_)
    )
}

/// Failure for the guest: memory is full, the store is down, or the stored data is unusable.
pub(crate) fn failure(why: &StorageError) -> Failure {
    if is_full(why) {
        Failure::Exhausted(why.to_string())
    } else if matches!(why, StorageError::Unavailable(_)) {
        Failure::HubNotUp(why.to_string())
    } else {
        Failure::Unavailable(why.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use a2a_hub_core::grant::EffectiveGrant;
    use a2a_hub_protocol::id::AgentId;
    use a2a_hub_store::memory::MemoryStorage;

    #[tokio::test]
    async fn tenants_cannot_read_each_others_values() {
        let owner = InstallationId::from(&AgentId::parse("a").unwrap());
        let held = EffectiveGrant { memory_bytes: Some(1 << 10), ..EffectiveGrant::default() };
        let live = LiveGrant::new(Arc::new(held));
        let values = BoundedMemory::new(owner, 1 << 10, live, Arc::new(MemoryStorage::default()));
        let acme = values.for_caller(&TenantId::parse("acme").unwrap(), None);
        for (of, value) in [(&values, "default"), (&acme, "acme")] {
            of.set("k", value.into()).await.unwrap();
            of.set("\u{1f}k", value.into()).await.unwrap();
        }
        for (of, value) in [(&values, "default"), (&acme, "acme")] {
            assert_eq!(of.get("k").await.unwrap().unwrap(), value.as_bytes());
            assert_eq!(of.get("\u{1f}k").await.unwrap().unwrap(), value.as_bytes());
            assert_eq!(of.keys("").await.unwrap(), ["\u{1f}k", "k"]);
            assert_eq!(of.keys("\u{1f}").await.unwrap(), ["\u{1f}k"]);
        }
        // The store's name for the other tenant's key.
        assert_eq!(values.get("\u{1f}acme\u{1f}k").await.unwrap(), None);
        acme.delete("k").await.unwrap();
        assert_eq!(values.keys("k").await.unwrap(), ["k"]);
    }
    #[tokio::test]
    async fn caller_fills_own_share_only() {
        let owner = InstallationId::from(&AgentId::parse("a").unwrap());
        let held = EffectiveGrant { memory_bytes: Some(1_000), ..EffectiveGrant::default() };
        let live = LiveGrant::new(Arc::new(held));
        let values = BoundedMemory::new(owner, 1_000, live, Arc::new(MemoryStorage::default()));
        let greedy = Principal::of_tree(AgentId::parse("greedy").unwrap(), "1");
        let greedy = values.for_caller(&TenantId::default(), Some(&greedy));
        let mut taken = 0;
        while greedy.set(&taken.to_string(), vec![0; 9]).await.is_ok() {
            taken += 1;
        }
        let refused = greedy.set("more", vec![0; 100]).await.unwrap_err();
        assert!(
            matches!(&refused, Failure::Exhausted(why) if why.contains("`greedy`")),
            "{refused}"
        );
        greedy.set("0", Vec::new()).await.unwrap();
        // A tenant has its share, and the operator the rest.
        let acme = values.for_caller(&TenantId::parse("acme").unwrap(), None);
        acme.set("k", vec![0; 430]).await.unwrap();
        assert!(matches!(acme.set("l", vec![0; 30]).await, Err(Failure::Exhausted(_))));
        let operator = values.for_caller(&TenantId::default(), Some(&Principal::Operator));
        operator.set("mine", vec![0; 90]).await.unwrap();
    }
}
