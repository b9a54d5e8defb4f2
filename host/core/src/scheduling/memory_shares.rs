//! Shares of one agent's memory. The memory is granted once, for all tenants and callers, so that
//! each of them has a share of it.
//!
//! | holder | share |
//! | --- | --- |
//! | the operator, in no tenant | all |
//! | one tenant, with the programs of agents that work for it | half of what is not reserved |
//! | one agent's programs, in no tenant | half of what is not reserved |
//! | one agent's programs, in one tenant | half of the tenant's share |
//! | all but the operator, together | all but the reserve, a tenth |
//!
//! An agent that works for the operator directly has all of its memory. One that another agent
//! calls has the share of the calling agent.

use super::{
    resources::{ShareReached, SharedResource},
    shares::{Holder, ShareLimit},
};
use crate::access_control::Principal;
use a2a_hub_protocol::id::TenantId;

/// Separator between tenant and identity. Tenant names never contain it.
const SEPARATOR: char = '\u{1f}';

/// Holder of a part of an agent's memory: the tenant and the principal for whom the agent stored
/// it. Stored as text with that part; the default is what older hubs stored, the operator's.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct MemoryHolder(String);

impl MemoryHolder {
    /// Holder of what an agent stores in a task of this tenant that `by` requested; `by` is `None`
    /// if unknown.
    pub fn new(tenant: &TenantId, by: Option<&Principal>) -> Self {
        let identity = by.map(Principal::identity).unwrap_or_default();
        Self(format!("{tenant}{SEPARATOR}{identity}"))
    }

    /// Holder as stored.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Checks the shares of this holder after a write; `units` are the stored holders with what
    /// each has then. The total is not checked.
    ///
    /// # Errors
    ///
    /// A share would be exceeded, and nothing may be written.
    pub fn require_share<'h>(
        &self,
        resource: SharedResource,
        total: u64,
        units: impl IntoIterator<Item = (&'h str, u64)>,
    ) -> Result<(), ShareReached> {
        let (tenant, holder) = parts(&self.0);
        if is_operator(tenant, &holder) {
            return Ok(());
        }
        let (mut of_holder, mut of_tenant, mut others) = (0_u64, 0_u64, 0_u64);
        for (stored, units) in units {
            let (its_tenant, its_holder) = parts(stored);
            let is_shared = !is_operator(its_tenant, &its_holder);
            others = others.saturating_add(if is_shared { units } else { 0 });
            if its_tenant == tenant {
                of_tenant = of_tenant.saturating_add(units);
                let is_same = its_holder == holder;
                of_holder = of_holder.saturating_add(if is_same { units } else { 0 });
            }
        }
        let shares = resource.shares(total);
        let client = Holder::Client(tenant.to_owned());
        let of_client = shares.limit_of(&client);
        let limits = match (&holder, tenant.is_empty()) {
            (_, true) => vec![(of_holder, shares.limit_of(&holder), holder)],
            (Holder::Agent(_) | Holder::Person(_), false) => {
                vec![(of_holder, (of_client / 2).max(1), holder), (of_tenant, of_client, client)]
            }
            (
                Holder::Operator | Holder::OperatorToken | Holder::Client(_) | Holder::Unknown,
                false,
            ) => vec![(of_tenant, of_client, client)],
        };
        for (units, limit, holder) in limits {
            if units > limit {
                let limit = ShareLimit::PerHolder(limit);
                return Err(ShareReached { resource, holder, limit, total });
            }
        }
        if others > shares.shared() {
            let (holder, limit) = (parts(&self.0).1, ShareLimit::Shared(shares.shared()));
            return Err(ShareReached { resource, holder, limit, total });
        }
        Ok(())
    }
}

/// Tenant and holder of a stored text. Without a separator, an older hub stored it.
fn parts(stored: &str) -> (&str, Holder) {
    let (tenant, identity) = stored.split_once(SEPARATOR).unwrap_or(("", stored));
    (tenant, Holder::of_identity(identity))
}

/// True for the operator in no tenant. In a tenant, the operator has the tenant's share.
fn is_operator(tenant: &str, holder: &Holder) -> bool {
    tenant.is_empty() && *holder == Holder::Operator
}

#[cfg(test)]
mod tests {
    use super::*;
    use a2a_hub_protocol::id::AgentId;
    use std::collections::BTreeMap;

    const BYTES: SharedResource = SharedResource::MemoryBytes;

    fn holder(tenant: &str, agent: Option<&str>) -> MemoryHolder {
        let agent = agent.map(|name| AgentId::parse(name).unwrap());
        let by = agent.map_or(Principal::Operator, |agent| Principal::of_tree(agent, "1"));
        MemoryHolder::new(&TenantId::try_from(tenant.to_owned()).unwrap(), Some(&by))
    }

    /// Fills a memory of 1,000 bytes by single bytes; returns how many fit, and the refusal.
    fn fill(held: &mut BTreeMap<String, u64>, holder: &MemoryHolder) -> (u64, ShareReached) {
        for taken in 0.. {
            *held.entry(holder.as_str().to_owned()).or_default() += 1;
            let units = held.iter().map(|(holder, units)| (holder.as_str(), *units));
            if let Err(why) = holder.require_share(BYTES, 1_000, units) {
                *held.get_mut(holder.as_str()).unwrap() -= 1;
                return (taken, why);
            }
            assert!(taken < 2_000, "{holder:?} has no limit");
        }
        unreachable!()
    }

    #[test]
    fn no_holder_takes_memory_of_others() {
        let mut held = BTreeMap::new();
        let (taken, why) = fill(&mut held, &holder("", Some("greedy")));
        let limit = ShareLimit::PerHolder(450);
        assert_eq!((taken, why.limit), (450, limit));
        let (taken, why) = fill(&mut held, &holder("acme", Some("greedy")));
        assert_eq!((taken, why.limit), (225, ShareLimit::PerHolder(225)));
        // Whatever the principal is, all that is stored for a tenant is in the tenant's share.
        let client = Principal::Client("acme".to_owned());
        let client = MemoryHolder::new(&TenantId::parse("acme").unwrap(), Some(&client));
        assert_eq!(fill(&mut held, &client).0, 225);
        let (taken, why) = fill(&mut held, &holder("acme", None));
        assert_eq!((taken, why.holder), (0, Holder::Client("acme".to_owned())));
        let (taken, why) = fill(&mut held, &holder("other", None));
        assert_eq!((taken, why.limit), (0, ShareLimit::Shared(900)));
        // The reserve is the operator's, who has no limit but the total.
        let units = [(holder("", None).as_str().to_owned(), 1_000)];
        let units = units.iter().map(|(holder, units)| (holder.as_str(), *units));
        assert_eq!(holder("", None).require_share(BYTES, 1_000, units), Ok(()));
    }

    #[test]
    fn memory_of_older_hubs_is_the_operators() {
        let agent = holder("", Some("a"));
        let acme = holder("acme", None);
        let units =
            |own, old, of_tenant| [(agent.as_str(), own), ("", old), ("acme\u{1f}", of_tenant)];
        assert_eq!(agent.require_share(BYTES, 1_000, units(450, 9_000, 0)), Ok(()));
        assert!(agent.require_share(BYTES, 1_000, units(450, 0, 451)).is_err());
        assert!(acme.require_share(BYTES, 1_000, units(0, 0, 451)).is_err());
        assert_eq!(MemoryHolder::default().require_share(BYTES, 1_000, units(1, 2, 3)), Ok(()));
        let unknown = MemoryHolder::new(&TenantId::default(), None);
        assert_eq!(unknown.require_share(BYTES, 1_000, units(1, 2_000, 3)), Ok(()));
    }

    #[test]
    fn refusal_names_share_of_memory() {
        let greedy = holder("", Some("greedy"));
        let why = greedy.require_share(BYTES, 1_000, [(greedy.as_str(), 451)]).unwrap_err();
        assert_eq!(
            why.to_string(),
            "add to the bytes of an agent's memory: the programs of the agent `greedy` have as many as they may, 450 of 1000; \
             forget something, or grant the agent that remembers more memory"
        );
    }
}
