//! Quotas per principal on the connections of an endpoint, and on streams. No agent, client or
//! stranger can take all of them, and the last ones are reserved for the operator.
//! [`Shares`] has the limits of each holder.
//!
//! At a limit, the newcomer replaces the connection that has been idle longest among those that the
//! limit counts. If none is idle, the newcomer is refused. Only the operator can replace a
//! connection of the operator.

pub use super::shares::Holder;

use super::shares::{ShareLimit, Shares, UsedUnits};
use std::{
    collections::HashMap,
    fmt,
    time::{Duration, Instant},
};

/// The kind of resource that a quota counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Connections of one endpoint.
    Connections,
    /// Streams, over all endpoints.
    Streams,
}

impl Unit {
    /// The settings that raise the limit.
    fn limit(self) -> &'static str {
        match self {
            Self::Connections => {
                "`max_streams`, and the limit on open files (`ulimit -n 65536`; under systemd, `LimitNOFILE=`)"
            }
            Self::Streams => "`max_streams`",
        }
    }
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Connections => "connections",
            Self::Streams => "streams",
        })
    }
}

/// The refusal of a newcomer: a limit is reached, and no connection that it counts is idle.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QuotaReached {
    /// The holder has reached its limit.
    #[error("{holder} hold as many {unit} as they may ({limit}); close one, or try again soon")]
    PerHolder {
        /// Holder that reached its limit.
        holder: Holder,
        /// The limit.
        limit: u64,
        /// Kind of resource.
        unit: Unit,
    },
    /// All holders but the operator have reached their common limit.
    #[error(
        "{max} {unit} of agents, tenants and strangers are open already, and the others are the operator's; try again soon, or raise {}",
        unit.limit()
    )]
    Shared {
        /// The limit.
        max: u64,
        /// Kind of resource.
        unit: Unit,
    },
    /// The endpoint, or the hub for streams, is at its limit.
    #[error("the hub serves {max} {unit} already; try again soon, or raise {}", unit.limit())]
    All {
        /// The limit.
        max: u64,
        /// Kind of resource.
        unit: Unit,
    },
}

/// An admitted newcomer.
#[derive(Debug, PartialEq, Eq)]
pub struct AdmittedConnection<H> {
    /// The key for [`ConnectionQuota::release`].
    pub key: u64,
    /// Idle connection that the caller must close in exchange. It is no longer counted.
    pub evicted: Option<H>,
}

/// Quota on the connections of one endpoint, or on all streams. `H` is a handle of a connection or
/// stream.
#[derive(Debug)]
pub struct ConnectionQuota<H> {
    unit: Unit,
    limit: usize,
    next: u64,
    open: HashMap<u64, (Holder, H)>,
    in_use: HashMap<Holder, usize>,
}

impl<H> ConnectionQuota<H> {
    /// Creates a quota of `limit` units, and at least one.
    pub fn new(unit: Unit, limit: usize) -> Self {
        let (open, in_use) = Default::default();
        Self { unit, limit: limit.max(1), next: 0, open, in_use }
    }

    /// Number of open units.
    pub fn open(&self) -> usize {
        self.open.len()
    }

    /// Maximum number of open units.
    pub fn limit(&self) -> usize {
        self.limit
    }

    fn in_use_by(&self, holder: &Holder) -> usize {
        self.in_use.get(holder).copied().unwrap_or(0)
    }

    /// Admits a newcomer, in place of an idle one if a limit is reached. `idle_since` returns the
    /// time since which a unit has been idle, or none if it is busy.
    ///
    /// # Errors
    /// If the holder or the quota is at its limit, and no unit that may be replaced is idle.
    pub fn admit(
        &mut self,
        holder: Holder,
        newcomer: H,
        idle_since: impl Fn(&H) -> Option<Instant>,
    ) -> Result<AdmittedConnection<H>, QuotaReached> {
        let (unit, of_holder, all) = (self.unit, self.in_use_by(&holder), self.open.len());
        let others = all - self.in_use_by(&Holder::Operator);
        let [of_holder, others, all] = [of_holder, others, all].map(|units| units as u64);
        let shares = Shares::of_connections(self.limit as u64);
        let evicted = match shares.reached(&holder, UsedUnits { of_holder, others, all }) {
            Some(ShareLimit::PerHolder(limit)) => {
                let reached = || QuotaReached::PerHolder { holder: holder.clone(), limit, unit };
                let key = self.longest_idle(|one| *one == holder, &idle_since);
                Some(key.ok_or_else(reached)?)
            }
            Some(ShareLimit::Shared(limit)) => {
                let key = self.idle_of_others(&idle_since);
                Some(key.ok_or(QuotaReached::Shared { max: limit, unit })?)
            }
            Some(ShareLimit::All(limit)) => {
                let is_operator =
                    |one: &Holder| holder == Holder::Operator && *one == Holder::Operator;
                let operators_idle = || self.longest_idle(is_operator, &idle_since);
                let key = self.idle_of_others(&idle_since).or_else(operators_idle);
                Some(key.ok_or(QuotaReached::All { max: limit, unit })?)
            }
            None => None,
        };
        let evicted = evicted.and_then(|key| self.release(key));
        let key = self.next;
        self.next += 1;
        *self.in_use.entry(holder.clone()).or_default() += 1;
        self.open.insert(key, (holder, newcomer));
        Ok(AdmittedConnection { key, evicted })
    }

    /// Removes a closed unit, unless it was evicted before.
    pub fn release(&mut self, key: u64) -> Option<H> {
        let (holder, handle) = self.open.remove(&key)?;
        if let Some(units) = self.in_use.get_mut(&holder) {
            *units -= 1;
            if *units == 0 {
                self.in_use.remove(&holder);
            }
        }
        Some(handle)
    }

    /// Evicts the unit that has been idle longest, the operator's last: for a system without free
    /// descriptors.
    pub fn evict(&mut self, idle_since: impl Fn(&H) -> Option<Instant>) -> Option<H> {
        let key = self.idle_of_others(&idle_since);
        let key = key.or_else(|| self.longest_idle(|_| true, &idle_since))?;
        self.release(key)
    }

    /// Finds the longest idle unit of the holder with the most units, among holders other than the
    /// operator that have an idle one.
    fn idle_of_others(&self, idle_since: &impl Fn(&H) -> Option<Instant>) -> Option<u64> {
        let others = self.open.iter().filter(|(_, (holder, _))| *holder != Holder::Operator);
        let idle = others.filter_map(|(key, (holder, handle))| {
            // Of two holders with equally many, the one that has been idle longer.
            Some((self.in_use_by(holder), std::cmp::Reverse(idle_since(handle)?), *key))
        });
        idle.max().map(|(_, _, key)| key)
    }

    fn longest_idle(
        &self,
        is_of: impl Fn(&Holder) -> bool,
        idle_since: &impl Fn(&H) -> Option<Instant>,
    ) -> Option<u64> {
        let matching = self.open.iter().filter(|(_, (holder, _))| is_of(holder));
        let idle = matching.filter_map(|(key, (_, handle))| Some((idle_since(handle)?, *key)));
        idle.min().map(|(_, key)| key)
    }
}

/// Idle limit of connections that are not the operator's, as a multiple of the client timeout: five
/// minutes, unless `clients.timeout_ms` says otherwise.
const IDLE_TIMES: u32 = 10;

/// Maximum time that a connection of this holder may be without a request; none for no limit.
pub fn idle_limit(holder: &Holder, timeout: Duration) -> Option<Duration> {
    match holder {
        Holder::Operator => None,
        Holder::OperatorToken
        | Holder::Agent(_)
        | Holder::Client(_)
        | Holder::Person(_)
        | Holder::Unknown => Some(timeout.saturating_mul(IDLE_TIMES)),
    }
}

/// Descriptors reserved for the hub's store, its files and its helpers, and for connections whose
/// holder is being looked up.
const RESERVED_DESCRIPTORS: u64 = 116;

/// Maximum number of connections for each endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionBudget {
    /// HTTP and gRPC.
    pub http: usize,
    /// The unix socket.
    pub socket: usize,
}

impl ConnectionBudget {
    /// Reduces `wanted` to what a process with this limit on open files can hold: three quarters of
    /// the descriptors that the hub does not need itself; the last quarter is for programs. The
    /// socket gets up to a third of that, independent of HTTP.
    #[must_use]
    pub fn within(wanted: Self, open_files: u64) -> Self {
        let available = open_files.saturating_sub(RESERVED_DESCRIPTORS) / 4 * 3;
        let available = usize::try_from(available).unwrap_or(usize::MAX);
        let socket = wanted.socket.min(available / 3).max(1);
        Self { http: wanted.http.min(available - available / 3).max(1), socket }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access_control::Principal;
    use a2a_hub_protocol::id::AgentId;

    /// Name of a connection, and the second since which it has been idle.
    type Line = (&'static str, Option<u64>);

    struct Stage {
        begun: Instant,
        quota: ConnectionQuota<Line>,
    }

    impl Stage {
        #[expect(clippy::disallowed_methods, reason = "an arbitrary starting point")]
        fn new(most: usize) -> Self {
            Self { begun: Instant::now(), quota: ConnectionQuota::new(Unit::Connections, most) }
        }

        /// Name of the evicted connection, or the reason of the refusal.
        fn admit(&mut self, holder: &Holder, name: &'static str, idle: Option<u64>) -> String {
            let begun = self.begun;
            let since = |line: &Line| line.1.map(|seconds| begun + Duration::from_secs(seconds));
            match self.quota.admit(holder.clone(), (name, idle), since) {
                Ok(AdmittedConnection { evicted: Some((name, _)), .. }) => name.to_owned(),
                Ok(AdmittedConnection { evicted: None, .. }) => String::new(),
                Err(QuotaReached::PerHolder { limit: most, .. }) => format!("own {most}"),
                Err(QuotaReached::Shared { max: most, .. }) => format!("shared {most}"),
                Err(QuotaReached::All { max: most, .. }) => format!("all {most}"),
            }
        }

        fn fill(&mut self, holder: &Holder, count: usize, idle: Option<u64>) {
            for _ in 0..count {
                assert_eq!(self.admit(holder, "filler", idle), "");
            }
        }
    }

    fn agent(name: &str) -> Holder {
        Holder::Agent(AgentId::parse(name).unwrap())
    }

    #[test]
    fn agent_at_its_limit_loses_its_longest_idle_connection() {
        let mut stage = Stage::new(40);
        assert_eq!(stage.admit(&agent("b"), "another's", Some(1)), "");
        assert_eq!(stage.admit(&agent("a"), "busy", None), "");
        assert_eq!(stage.admit(&agent("a"), "idle", Some(5)), "");
        assert_eq!(stage.admit(&agent("a"), "longer", Some(3)), "");
        stage.fill(&agent("a"), 4, None);
        assert_eq!(stage.admit(&agent("a"), "newcomer", None), "longer");
        assert_eq!(stage.admit(&agent("a"), "newcomer", None), "idle");
        assert_eq!(stage.admit(&agent("a"), "newcomer", None), "own 7");
        assert_eq!(stage.admit(&Holder::Operator, "operator", None), "");
    }

    #[test]
    fn only_operator_takes_the_reserve() {
        let mut stage = Stage::new(40);
        for name in ["a", "b", "c", "d"] {
            stage.fill(&agent(name), 7, None);
        }
        stage.fill(&Holder::Unknown, 2, None);
        assert_eq!(stage.admit(&Holder::Unknown, "newcomer", None), "shared 30");
        assert_eq!(stage.admit(&agent("e"), "newcomer", None), "shared 30");
        let with_token = Holder::from(Some(&Principal::OperatorToken));
        assert_eq!(stage.admit(&with_token, "newcomer", None), "shared 30", "it can be stolen");
        stage.fill(&Holder::Operator, 10, None);
        assert_eq!(stage.admit(&Holder::Operator, "newcomer", None), "all 40");
    }

    #[test]
    fn holder_of_most_gives_way_to_those_with_few() {
        let mut stage = Stage::new(40);
        stage.fill(&agent("many"), 7, Some(9));
        stage.fill(&agent("busy"), 7, None);
        assert_eq!(stage.admit(&agent("few"), "oldest", Some(0)), "");
        stage.fill(&Holder::Unknown, 15, None);
        assert_eq!(stage.admit(&agent("new"), "newcomer", None), "filler", "of the many");
        assert_eq!(stage.quota.in_use_by(&agent("many")), 6);
        stage.fill(&Holder::Operator, 10, Some(2));
        assert_eq!(stage.admit(&Holder::Operator, "newcomer", None), "filler");
        assert_eq!(stage.quota.in_use_by(&Holder::Operator), 11, "another's gave way first");
    }

    #[test]
    fn operators_idle_connection_gives_way_to_the_operator_alone() {
        let mut stage = Stage::new(4);
        stage.fill(&Holder::Operator, 4, Some(2));
        assert_eq!(stage.admit(&agent("a"), "newcomer", None), "all 4");
        assert_eq!(stage.admit(&Holder::Operator, "newcomer", None), "filler");
        let begun = stage.begun;
        let since = |line: &Line| line.1.map(|seconds| begun + Duration::from_secs(seconds));
        assert_eq!(stage.quota.evict(since), Some(("filler", Some(2))));
        assert_eq!(stage.quota.open(), 3);
    }

    #[test]
    fn closed_connection_makes_room_once() {
        let mut quota = ConnectionQuota::new(Unit::Streams, 1);
        let admit = |quota: &mut ConnectionQuota<()>| quota.admit(agent("a"), (), |()| None);
        let AdmittedConnection { key, evicted } = admit(&mut quota).unwrap();
        assert_eq!(evicted, None);
        let why = admit(&mut quota).unwrap_err().to_string();
        assert_eq!(
            why,
            "the programs of the agent `a` hold as many streams as they may (1); close one, or try again soon"
        );
        assert_eq!((quota.release(key), quota.release(key)), (Some(()), None));
        assert!(admit(&mut quota).is_ok());
        assert_eq!((quota.open(), quota.in_use.len()), (1, 1));
    }

    #[test]
    fn only_the_operator_may_be_idle_for_ever() {
        let patience = Duration::from_secs(30);
        assert_eq!(idle_limit(&Holder::Operator, patience), None);
        assert_eq!(idle_limit(&agent("a"), patience), Some(Duration::from_secs(300)));
        assert_eq!(idle_limit(&Holder::Unknown, Duration::MAX), Some(Duration::MAX));
    }

    #[test]
    fn descriptors_are_divided_between_endpoints_and_programs() {
        let wanted = ConnectionBudget { http: 4_000, socket: 1_000 };
        let within = |files| {
            let ConnectionBudget { http, socket } = ConnectionBudget::within(wanted, files);
            (http, socket)
        };
        assert_eq!(within(65_536), (4_000, 1_000));
        assert_eq!(within(4_096), (1_990, 995));
        assert_eq!(within(1_024), (454, 227));
        assert_eq!(within(256), (70, 35));
        assert_eq!(within(0), (1, 1));
    }
}
