//! Pool of idle programs between tasks: their keys, the limits on number and memory, and the choice
//! of programs to evict.

use a2a_hub_protocol::id::{AgentId, TenantId};

/// Key of an idle program; unique per agent and tenant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolKey {
    /// Agent that runs the program.
    pub agent: AgentId,
    /// Tenant that the agent worked for.
    pub tenant: TenantId,
    /// Key that the agent chose.
    pub key: String,
}

/// Capacity of the idle pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolCapacity {
    /// Number of programs.
    pub programs: usize,
    /// Total resident memory, in bytes.
    pub bytes: u64,
}

/// Program to be put into the idle pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keeping {
    /// Key in the pool.
    pub spot: PoolKey,
    /// Name of the program in the grant.
    pub program: String,
    /// Resident memory of its process tree, in bytes.
    pub bytes: u64,
}

/// Reason why an idle program is ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Eviction {
    /// Another program was put under its key.
    Replaced,
    /// The agent's capacity is exceeded, and its other programs were used more recently.
    AgentCapacity,
    /// The hub's capacity is exceeded, and the other programs were used more recently.
    HubCapacity,
    /// Another instance of this program starts, and would exceed the program's limit.
    ProgramLimit,
}

impl Eviction {
    /// Text for the log, after "idle program was ended:".
    pub fn why(self) -> &'static str {
        match self {
            Self::Replaced => "another was parked under its key",
            Self::AgentCapacity => {
                "its agent may keep no more, and the others were used more recently"
            }
            Self::HubCapacity => "the hub keeps no more, and the others were used more recently",
            Self::ProgramLimit => {
                "another of this program was started, and no more may run at once"
            }
        }
    }
}

/// Reason why a program cannot be kept idle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PoolRefusal {
    /// The agent may keep no idle programs.
    #[error("this agent may keep none (`kept_programs` in its limits)")]
    None,
    /// The program alone exceeds the memory that its agent, or the hub, may use for idle programs.
    #[error(
        "it takes up {taken} MiB of memory, and all that is kept may take up {limit} (`kept_memory_mb` in its limits)"
    )]
    TooLarge {
        /// Memory of the program, in MiB.
        taken: u64,
        /// Limit, in MiB.
        limit: u64,
    },
}

/// Idle programs, least recently used first. `T` is the caller's data for each program.
#[derive(Debug)]
pub struct IdlePool<T> {
    places: Vec<IdleEntry<T>>,
    next: u64,
}

#[derive(Debug)]
struct IdleEntry<T> {
    number: u64,
    keeping: Keeping,
    it: T,
}

impl<T> Default for IdlePool<T> {
    fn default() -> Self {
        Self { places: Vec::new(), next: 0 }
    }
}

impl<T> IdlePool<T> {
    /// Refuses a program that would exceed the capacity even in an empty pool.
    pub fn admits(
        keeping: &Keeping,
        agents: PoolCapacity,
        hubs: PoolCapacity,
    ) -> Result<(), PoolRefusal> {
        if agents.programs == 0 || hubs.programs == 0 {
            return Err(PoolRefusal::None);
        }
        let max_bytes = agents.bytes.min(hubs.bytes);
        if keeping.bytes > max_bytes {
            return Err(PoolRefusal::TooLarge {
                taken: keeping.bytes >> 20,
                limit: max_bytes >> 20,
            });
        }
        Ok(())
    }

    /// Puts an [admitted](Self::admits) program into the pool; `make` receives its number. Returns
    /// the evicted programs with the reasons.
    pub fn put(
        &mut self,
        keeping: Keeping,
        agents: PoolCapacity,
        hubs: PoolCapacity,
        make: impl FnOnce(u64) -> T,
    ) -> Vec<(T, Eviction)> {
        let mut evicted: Vec<_> =
            self.take(&keeping.spot).map(|it| (it, Eviction::Replaced)).into_iter().collect();
        let number = self.next;
        self.next += 1;
        self.places.push(IdleEntry { number, keeping, it: make(number) });
        evicted.extend(self.fit(number, agents, hubs));
        evicted
    }

    /// Updates the memory of a program. Returns the programs to end.
    pub fn weighs(
        &mut self,
        number: u64,
        bytes: u64,
        agents: PoolCapacity,
        hubs: PoolCapacity,
    ) -> Vec<(T, Eviction)> {
        match self.places.iter_mut().find(|entry| entry.number == number) {
            Some(entry) => entry.keeping.bytes = bytes,
            None => return Vec::new(),
        }
        self.fit(number, agents, hubs)
    }

    /// Evicts programs after one was added or grew: the least recently used ones, first of its
    /// agent, then of all agents.
    fn fit(&mut self, number: u64, agents: PoolCapacity, hubs: PoolCapacity) -> Vec<(T, Eviction)> {
        let Some(entry) = self.places.iter().find(|entry| entry.number == number) else {
            return Vec::new();
        };
        let agent = entry.keeping.spot.agent.clone();
        let mut evicted = Vec::new();
        while self.exceeds(agents, |keeping| keeping.spot.agent == agent) {
            let oldest = self.places.iter().position(|entry| entry.keeping.spot.agent == agent);
            let Some(oldest) = oldest else { break };
            evicted.push((self.places.remove(oldest).it, Eviction::AgentCapacity));
        }
        while self.exceeds(hubs, |_| true) && !self.places.is_empty() {
            evicted.push((self.places.remove(0).it, Eviction::HubCapacity));
        }
        evicted
    }

    fn exceeds(&self, capacity: PoolCapacity, counts: impl Fn(&Keeping) -> bool) -> bool {
        let counted = || self.places.iter().map(|entry| &entry.keeping).filter(|it| counts(it));
        let bytes = counted().fold(0, |sum: u64, keeping| sum.saturating_add(keeping.bytes));
        counted().count() > capacity.programs || bytes > capacity.bytes
    }

    /// True if a program is idle under this key.
    pub fn has(&self, spot: &PoolKey) -> bool {
        self.places.iter().any(|entry| entry.keeping.spot == *spot)
    }

    /// Takes the program out of the pool: only one of several callers gets it.
    pub fn take(&mut self, spot: &PoolKey) -> Option<T> {
        let at = self.places.iter().position(|entry| entry.keeping.spot == *spot)?;
        Some(self.places.remove(at).it)
    }

    /// Removes the program with this number, if it is still in the pool.
    pub fn remove(&mut self, number: u64) -> Option<T> {
        let at = self.places.iter().position(|entry| entry.number == number)?;
        Some(self.places.remove(at).it)
    }

    /// Evicts the least recently used instances of an agent's program until at most `max` remain.
    pub fn evict_excess(
        &mut self,
        agent: &AgentId,
        program: &str,
        max: usize,
    ) -> Vec<(T, Eviction)> {
        let is_one = |keeping: &Keeping| keeping.spot.agent == *agent && keeping.program == program;
        let count = self.places.iter().filter(|entry| is_one(&entry.keeping)).count();
        let excess = count.saturating_sub(max);
        let mut evicted = Vec::new();
        for _ in 0..excess {
            let Some(at) = self.places.iter().position(|entry| is_one(&entry.keeping)) else {
                break;
            };
            evicted.push((self.places.remove(at).it, Eviction::ProgramLimit));
        }
        evicted
    }

    /// Number of idle programs of an agent.
    pub fn of_agent(&self, agent: &AgentId) -> usize {
        self.places.iter().filter(|entry| entry.keeping.spot.agent == *agent).count()
    }

    /// Number of idle programs, and their resident memory in bytes.
    pub fn taken(&self) -> PoolCapacity {
        let bytes = self.places.iter().map(|entry| entry.keeping.bytes).sum();
        PoolCapacity { programs: self.places.len(), bytes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WIDE: PoolCapacity = PoolCapacity { programs: 100, bytes: 1 << 40 };

    fn of(agent: &str, key: &str, bytes: u64) -> Keeping {
        let agent = AgentId::parse(agent).unwrap();
        let spot = PoolKey { agent, tenant: TenantId::default(), key: key.to_owned() };
        Keeping { spot, program: "cli".to_owned(), bytes }
    }

    fn put(
        shelf: &mut IdlePool<&'static str>,
        it: Keeping,
        agents: PoolCapacity,
        hubs: PoolCapacity,
        name: &'static str,
    ) -> Vec<(&'static str, Eviction)> {
        shelf.put(it, agents, hubs, |_| name)
    }

    #[test]
    fn key_holds_one_program_per_tenant() {
        let mut shelf = IdlePool::default();
        assert_eq!(put(&mut shelf, of("a", "k", 1), WIDE, WIDE, "first"), []);
        assert_eq!(put(&mut shelf, of("b", "k", 1), WIDE, WIDE, "other agent"), []);
        let mut elsewhere = of("a", "k", 1);
        elsewhere.spot.tenant = TenantId::parse("acme").unwrap();
        assert_eq!(put(&mut shelf, elsewhere.clone(), WIDE, WIDE, "other tenant"), []);
        let second = put(&mut shelf, of("a", "k", 1), WIDE, WIDE, "second");
        assert_eq!(second, [("first", Eviction::Replaced)]);
        assert!(shelf.has(&elsewhere.spot) && !shelf.has(&of("a", "j", 1).spot));
        assert_eq!(shelf.take(&of("a", "k", 1).spot), Some("second"));
        assert_eq!(shelf.take(&of("a", "k", 1).spot), None, "one gets it");
        assert_eq!(shelf.taken(), PoolCapacity { programs: 2, bytes: 2 });
    }

    #[test]
    fn least_recently_used_program_is_evicted_first() {
        let mut shelf = IdlePool::default();
        let (agents, hubs) =
            (PoolCapacity { programs: 2, ..WIDE }, PoolCapacity { programs: 3, ..WIDE });
        assert_eq!(put(&mut shelf, of("b", "1", 1), agents, hubs, "b1"), []);
        assert_eq!(put(&mut shelf, of("a", "1", 1), agents, hubs, "a1"), []);
        assert_eq!(put(&mut shelf, of("a", "2", 1), agents, hubs, "a2"), []);
        assert_eq!(
            put(&mut shelf, of("a", "3", 1), agents, hubs, "a3"),
            [("a1", Eviction::AgentCapacity)]
        );
        assert_eq!(shelf.take(&of("a", "2", 1).spot), Some("a2"));
        assert_eq!(put(&mut shelf, of("a", "2", 1), agents, hubs, "a2"), [], "used just now");
        assert_eq!(
            put(&mut shelf, of("a", "4", 1), agents, hubs, "a4"),
            [("a3", Eviction::AgentCapacity)]
        );
        assert_eq!(
            put(&mut shelf, of("c", "1", 1), agents, hubs, "c1"),
            [("b1", Eviction::HubCapacity)]
        );
        assert_eq!(shelf.of_agent(&AgentId::parse("a").unwrap()), 2);
    }

    #[test]
    fn thousands_of_keys_stay_within_capacity() {
        let mut shelf = IdlePool::default();
        let agents = PoolCapacity { programs: 4, ..WIDE };
        for key in 0..5000 {
            shelf.put(of("a", &key.to_string(), 1), agents, WIDE, |number| number);
        }
        assert_eq!(shelf.taken().programs, 4);
        assert_eq!(shelf.take(&of("a", "4996", 1).spot), Some(4996));
    }

    #[test]
    fn memory_limit_evicts_least_recently_used() {
        let room = PoolCapacity { programs: 9, bytes: 10 };
        let mut shelf = IdlePool::default();
        let too_large = IdlePool::<()>::admits(
            &of("a", "1", 11 << 20),
            PoolCapacity { bytes: 10 << 20, ..room },
            WIDE,
        );
        assert_eq!(too_large, Err(PoolRefusal::TooLarge { taken: 11, limit: 10 }));
        assert_eq!(
            IdlePool::<()>::admits(&of("a", "1", 0), PoolCapacity { programs: 0, ..WIDE }, WIDE),
            Err(PoolRefusal::None)
        );
        assert_eq!(IdlePool::<()>::admits(&of("a", "1", 10), room, room), Ok(()));
        assert_eq!(put(&mut shelf, of("a", "1", 6), room, WIDE, "1"), []);
        assert_eq!(put(&mut shelf, of("a", "2", 4), room, WIDE, "2"), []);
        assert_eq!(
            put(&mut shelf, of("a", "3", 5), room, WIDE, "3"),
            [("1", Eviction::AgentCapacity)]
        );
        assert_eq!(shelf.weighs(2, 6, room, WIDE), [], "all of it, and no more");
        assert_eq!(shelf.weighs(2, 7, room, WIDE), [("2", Eviction::AgentCapacity)]);
        assert_eq!(
            shelf.weighs(2, 11, room, WIDE),
            [("3", Eviction::AgentCapacity)],
            "itself at last"
        );
        assert_eq!(shelf.weighs(2, 1, room, WIDE), [], "it is gone");
    }

    #[test]
    fn idle_instances_make_room_for_new_one() {
        let mut shelf = IdlePool::default();
        for key in ["1", "2", "3"] {
            shelf.put(of("a", key, 1), WIDE, WIDE, |number| number);
        }
        shelf.put(Keeping { program: "other".to_owned(), ..of("a", "4", 1) }, WIDE, WIDE, |it| it);
        let agent = AgentId::parse("a").unwrap();
        assert_eq!(shelf.evict_excess(&agent, "cli", 3), []);
        assert_eq!(
            shelf.evict_excess(&agent, "cli", 1),
            [(0, Eviction::ProgramLimit), (1, Eviction::ProgramLimit)]
        );
        assert_eq!((shelf.remove(2), shelf.remove(2)), (Some(2), None));
        assert_eq!(shelf.evict_excess(&agent, "cli", 0), []);
        assert_eq!(shelf.of_agent(&agent), 1);
    }
}
