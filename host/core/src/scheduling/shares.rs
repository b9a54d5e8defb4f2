//! Shares of countable resources. No agent, tenant or stranger can take all units of a resource,
//! and the last ones are reserved for the operator.
//!
//! | holder | resource of the hub | resource of one tenant |
//! | --- | --- | --- |
//! | the operator | all | all |
//! | all but the operator, together | all but the reserve | all but the reserve |
//! | clients that show the operator's token | all but the reserve | all but the reserve |
//! | one tenant's clients, one person | half of what is not reserved | all but the reserve |
//! | all unknown callers, together | half of what is not reserved | half of that |
//! | one agent's programs | a quarter of what is not reserved | a quarter of that |
//!
//! An agent's memory ([`super::memory_shares`]) and a blackboard have few holders, so that one
//! agent's programs have half: of what is not reserved, or of the board.
//!
//! Each stored resource has its holder stored with it, as [`Principal::identity`]. What was stored
//! without one belongs to the operator.

use crate::access_control::Principal;
use a2a_hub_protocol::id::AgentId;
use std::{collections::HashMap, fmt};

/// Maximum number of connections or streams for the programs of one agent: sixteen for each of
/// eight tasks at work.
const MAX_CONNECTIONS_OF_AGENT: u64 = 128;

/// Maximum number of connections or streams that are reserved for the operator.
const MAX_RESERVED_CONNECTIONS: u64 = 64;

/// The holder of units of a resource. Principals that share a limit are one holder.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Holder {
    /// The operator, as identified by the kernel.
    Operator,
    /// Clients that show the operator's token. A token can be stolen, so they have no access to the
    /// reserve of connections. What they store is the operator's.
    OperatorToken,
    /// The programs of an agent, in all its tasks.
    Agent(AgentId),
    /// The clients that show the token of one tenant.
    Client(String),
    /// One person, with each key.
    Person(String),
    /// All unknown callers, such as other users of the machine.
    Unknown,
}

impl From<Option<&Principal>> for Holder {
    fn from(principal: Option<&Principal>) -> Self {
        match principal {
            Some(Principal::Operator | Principal::OperatorHttp | Principal::Device { .. }) => {
                Self::Operator
            }
            Some(Principal::OperatorToken) => Self::OperatorToken,
            Some(Principal::AgentTask { agent, .. }) => Self::Agent(agent.clone()),
            Some(Principal::Client(name)) => Self::Client(name.clone()),
            Some(Principal::Person { name, .. }) => Self::Person(name.to_string()),
            // A schedule is a part of the hub, and has no connection.
            Some(Principal::Automation { .. } | Principal::Anonymous) | None => Self::Unknown,
        }
    }
}

impl Holder {
    /// Holder of a stored resource, by the stored identity of the principal that made it
    /// ([`Principal::identity`]). An unknown or missing identity is the operator's: older hubs
    /// stored none. Schedules and triggers are the operator's configuration.
    pub fn of_identity(identity: &str) -> Self {
        match identity.split_once(':') {
            Some(("agent", agent)) => AgentId::parse(agent).map_or(Self::Operator, Self::Agent),
            Some(("client", name)) => Self::Client(name.to_owned()),
            Some(("person", name)) => Self::Person(name.to_owned()),
            None if identity == "anonymous" => Self::Unknown,
            None | Some(_) => Self::Operator,
        }
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Operator => f.write_str("the operator"),
            Self::OperatorToken => f.write_str("the clients that show the operator's token"),
            Self::Agent(agent) => write!(f, "the programs of the agent `{agent}`"),
            Self::Client(name) => write!(f, "the clients of the tenant `{name}`"),
            Self::Person(name) => write!(f, "the programs of {name}"),
            Self::Unknown => f.write_str("other users, and programs that the hub does not know,"),
        }
    }
}

/// Number of units in use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UsedUnits {
    /// Units of the holder in question.
    pub of_holder: u64,
    /// Units of all holders but the operator.
    pub others: u64,
    /// Units of all holders.
    pub all: u64,
}

impl UsedUnits {
    /// Sums up the units of each owner, given as a stored identity, for one holder.
    pub fn sum<'i>(holder: &Holder, owners: impl IntoIterator<Item = (&'i str, u64)>) -> Self {
        let mut used = Self::default();
        for (owner, units) in owners {
            let owner = Holder::of_identity(owner);
            used.all += units;
            used.others += if owner == Holder::Operator { 0 } else { units };
            used.of_holder += if owner == *holder { units } else { 0 };
        }
        used
    }
}

/// A limit that is reached, with its number of units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShareLimit {
    /// Limit of the holder.
    PerHolder(u64),
    /// Common limit of all holders but the operator.
    Shared(u64),
    /// Limit of all holders.
    All(u64),
}

/// Division of the units of one resource among their holders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shares {
    total: u64,
    reserved: u64,
    client: u64,
    agent: u64,
}

impl Shares {
    /// Shares of the connections of one endpoint, or of streams. A quarter of a small number is
    /// reserved, and 64 of a large one. `total` is at least one.
    pub fn of_connections(total: u64) -> Self {
        let total = total.max(1);
        let reserved = (total / 4).min(MAX_RESERVED_CONNECTIONS);
        let shares = Self::of_rest(total, reserved);
        Self { agent: shares.agent.min(MAX_CONNECTIONS_OF_AGENT), ..shares }
    }

    /// Shares of something that the hub stores for all tenants, or for the agent of all tenants. A
    /// tenth is reserved. `total` is at least one.
    pub fn of_hub(total: u64) -> Self {
        let total = total.max(1);
        // Of a single unit, none can be reserved.
        let reserved = (total / 10).max(1).min(total - 1);
        Self::of_rest(total, reserved)
    }

    /// Shares of something that the hub stores for each tenant by itself: the tenant's clients have
    /// all of it but the reserve.
    pub fn of_tenant(total: u64) -> Self {
        let shares = Self::of_hub(total);
        Self { client: shares.shared(), ..shares }
    }

    /// Shares of an agent's memory: few callers use one agent, and each has half of what is not
    /// reserved.
    pub fn of_memory(total: u64) -> Self {
        let shares = Self::of_hub(total);
        Self { agent: shares.client, ..shares }
    }

    /// Shares of a blackboard among the agents of its step: one of them has half of it at most.
    /// Nobody else changes a board, so that nothing is reserved.
    pub fn of_board(total: u64) -> Self {
        let total = total.max(1);
        Self { agent: (total / 2).max(1), ..Self::of_rest(total, 0) }
    }

    fn of_rest(total: u64, reserved: u64) -> Self {
        let shared = total - reserved;
        Self { total, reserved, client: (shared / 2).max(1), agent: (shared / 4).max(1) }
    }

    /// Number of all units.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Common limit of all holders but the operator.
    pub fn shared(&self) -> u64 {
        self.total - self.reserved
    }

    /// Limit of one holder.
    pub fn limit_of(&self, holder: &Holder) -> u64 {
        match holder {
            Holder::Operator => self.total,
            Holder::OperatorToken => self.shared(),
            Holder::Client(_) | Holder::Person(_) => self.client,
            Holder::Unknown => (self.shared() / 2).max(1),
            Holder::Agent(_) => self.agent,
        }
    }

    /// Limit that leaves no unit for this holder; none if it may have one more.
    pub fn reached(&self, holder: &Holder, used: UsedUnits) -> Option<ShareLimit> {
        let (limit, shared) = (self.limit_of(holder), self.shared());
        let is_operator = *holder == Holder::Operator;
        if used.of_holder >= limit && !is_operator {
            Some(ShareLimit::PerHolder(limit))
        } else if used.others >= shared && !is_operator {
            Some(ShareLimit::Shared(shared))
        } else {
            (used.all >= self.total).then_some(ShareLimit::All(self.total))
        }
    }

    /// Holder whose oldest unit makes room when more units than allowed are stored: the one with
    /// most among those beyond their limits, or beyond the common limit. None if no holder is
    /// beyond a limit; then the oldest unit of all makes room. The operator is never beyond a
    /// limit.
    pub fn beyond(&self, used: impl IntoIterator<Item = (Holder, u64)>) -> Option<Holder> {
        let mut of_holders = HashMap::<Holder, u64>::new();
        for (holder, units) in used {
            *of_holders.entry(holder).or_default() += units;
        }
        of_holders.remove(&Holder::Operator);
        let is_beyond = of_holders.iter().any(|(holder, units)| *units > self.limit_of(holder));
        if !is_beyond && of_holders.values().sum::<u64>() <= self.shared() {
            return None;
        }
        let beyond = of_holders.into_iter();
        let beyond = beyond.filter(|(holder, units)| !is_beyond || *units > self.limit_of(holder));
        // Of two holders with equally many, always the same one.
        beyond
            .max_by(|one, other| one.1.cmp(&other.1).then_with(|| other.0.cmp(&one.0)))
            .map(|it| it.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn agent(name: &str) -> Holder {
        Holder::Agent(AgentId::parse(name).unwrap())
    }

    fn client() -> Holder {
        Holder::Client("acme".to_owned())
    }

    #[test]
    fn each_holder_has_its_share() {
        let row = |shares: Shares| {
            [Holder::Operator, Holder::OperatorToken, client(), Holder::Unknown, agent("a")]
                .map(|holder| shares.limit_of(&holder))
        };
        //                                           operator token client unknown agent
        assert_eq!(row(Shares::of_connections(4_000)), [4_000, 3_936, 1_968, 1_968, 128]);
        assert_eq!(row(Shares::of_connections(40)), [40, 30, 15, 15, 7]);
        assert_eq!(
            row(Shares::of_connections(0)),
            [1, 1, 1, 1, 1],
            "one that serves nobody is none"
        );
        assert_eq!(row(Shares::of_hub(256)), [256, 231, 115, 115, 57]);
        assert_eq!(row(Shares::of_hub(100_000)), [100_000, 90_000, 45_000, 45_000, 22_500]);
        assert_eq!(row(Shares::of_tenant(1_000)), [1_000, 900, 900, 450, 225]);
        assert_eq!(row(Shares::of_tenant(500)), [500, 450, 450, 225, 112]);
        assert_eq!(row(Shares::of_tenant(3)), [3, 2, 2, 1, 1]);
        assert_eq!(row(Shares::of_tenant(1)), [1, 1, 1, 1, 1]);
        assert_eq!(row(Shares::of_hub(0)), [1, 1, 1, 1, 1]);
        assert_eq!(row(Shares::of_memory(65_536)), [65_536, 58_983, 29_491, 29_491, 29_491]);
        assert_eq!(row(Shares::of_memory(0)), [1, 1, 1, 1, 1]);
        assert_eq!(Shares::of_board(100).limit_of(&agent("a")), 50);
        assert_eq!(Shares::of_board(100).shared(), 100);
    }

    #[test]
    fn own_limit_counts_before_common_one() {
        use ShareLimit::{All, PerHolder, Shared};
        let shares = Shares::of_tenant(100);
        for (holder, own, others, all, reached) in [
            (agent("a"), 21, 89, 99, None),
            (agent("a"), 22, 30, 40, Some(PerHolder(22))),
            (agent("a"), 0, 90, 90, Some(Shared(90))),
            (agent("a"), 0, 10, 100, Some(All(100))),
            (client(), 89, 89, 89, None),
            (client(), 90, 90, 90, Some(PerHolder(90))),
            (Holder::Unknown, 45, 45, 45, Some(PerHolder(45))),
            (Holder::Operator, 9, 90, 99, None),
            (Holder::Operator, 10, 90, 100, Some(All(100))),
            (Holder::Operator, 100, 0, 100, Some(All(100))),
        ] {
            let held = UsedUnits { of_holder: own, others, all };
            assert_eq!(shares.reached(&holder, held), reached, "{holder:?} {held:?}");
        }
    }

    #[test]
    fn greedy_holder_gives_way() {
        let shares = Shares::of_tenant(100);
        let (a, b, c) = (agent("a"), agent("b"), agent("c"));
        for (held, beyond) in [
            (vec![], None),
            (vec![(Holder::Operator, 101)], None),
            (vec![(Holder::Operator, 79), (a.clone(), 22)], None),
            (vec![(Holder::Operator, 78), (a.clone(), 23)], Some(&a)),
            // The one with most, also if a smaller one is beyond its limit as well.
            (vec![(a.clone(), 40), (b.clone(), 60), (c.clone(), 1)], Some(&b)),
            // A client below its limit does not give way to an agent beyond its own.
            (vec![(client(), 70), (a.clone(), 30)], Some(&a)),
            // Nobody is beyond the own limit, and all together are beyond the common one.
            (vec![(client(), 60), (a.clone(), 22), (b.clone(), 19)], Some(&client())),
            // Parts of one holder are added up.
            (vec![(a.clone(), 12), (a.clone(), 12), (b.clone(), 20)], Some(&a)),
        ] {
            assert_eq!(shares.beyond(held.clone()).as_ref(), beyond, "{held:?}");
        }
    }

    #[test]
    fn stored_identity_is_read_as_holder() {
        for principal in [
            Principal::Operator,
            Principal::of_tree(AgentId::parse("codex").unwrap(), "1.2"),
            Principal::Client("agent:codex".to_owned()),
            Principal::from_log("person:ada/0a1b").unwrap(),
            Principal::Anonymous,
        ] {
            let holder = Holder::from(Some(&principal));
            assert_eq!(Holder::of_identity(&principal.identity()), holder, "{principal:?}");
        }
        let nightly = Principal::Automation { name: "nightly".to_owned() };
        let token = Principal::OperatorToken;
        for of_operator in [&*nightly.identity(), &token.identity(), "", "agent:", "team:x"] {
            assert_eq!(Holder::of_identity(of_operator), Holder::Operator, "{of_operator}");
        }
        let owners = [("agent:a", 2), ("", 5), ("client:acme", 1), ("agent:a", 1)];
        let held = UsedUnits { of_holder: 3, others: 4, all: 9 };
        assert_eq!(UsedUnits::sum(&agent("a"), owners), held);
    }

    proptest! {
        /// A holder that takes all it can get leaves units for others, and for the operator.
        #[test]
        fn no_holder_takes_all(most in 5_u64..500, is_of_tenant: bool) {
            let shares =
                if is_of_tenant { Shares::of_tenant(most) } else { Shares::of_hub(most) };
            let mut held = HashMap::<Holder, u64>::new();
            let mut fill = |holder: Holder| {
                let mut taken = 0;
                loop {
                    let of_holder = held.get(&holder).copied().unwrap_or(0);
                    let all = held.values().sum();
                    let operator = held.get(&Holder::Operator).copied().unwrap_or(0);
                    let units = UsedUnits { of_holder, others: all - operator, all };
                    if shares.reached(&holder, units).is_some() {
                        return taken;
                    }
                    *held.entry(holder.clone()).or_default() += 1;
                    taken += 1;
                }
            };
            for name in ["a", "b", "c"] {
                prop_assert!(fill(agent(name)) > 0);
            }
            fill(client());
            fill(Holder::Unknown);
            prop_assert!(fill(Holder::Operator) >= most / 10);
        }
    }
}
