//! Virtual clock and random numbers of a recorded run: both are functions of its position in the
//! journal.

use a2a_hub_core::task::replay::Replay;
use a2a_hub_runtime::Failure;
use rand::{Rng as _, SeedableRng as _, TryRng, rngs::ChaCha20Rng};
use std::{
    convert::Infallible,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, SystemTime, UNIX_EPOCH},
};
use wasmtime_wasi::{HostMonotonicClock, HostWallClock, WasiCtxBuilder};

/// Virtual time and journal position of a run, from which WASI's clocks and random numbers are
/// derived.
#[derive(Debug)]
pub(crate) struct RunClock {
    now_ms: AtomicU64,
    entries: AtomicU64,
    /// Set during a step, in which real time applies.
    in_step: AtomicBool,
}

impl RunClock {
    fn now(&self) -> Duration {
        let virtual_now = Duration::from_millis(self.now_ms.load(Relaxed));
        if self.in_step.load(Relaxed) { now().max(virtual_now) } else { virtual_now }
    }

    /// Clock set to this time.
    pub(crate) fn at(now_ms: u64) -> Self {
        Self {
            now_ms: now_ms.into(),
            entries: AtomicU64::default(),
            in_step: AtomicBool::default(),
        }
    }

    /// Updates the clock to the run's position.
    pub(crate) fn follow<A, T>(&self, run: &Replay<A, T>) {
        self.now_ms.store(run.now_ms(), Relaxed);
        self.entries.store(run.entries() as u64, Relaxed);
        self.in_step.store(run.step().is_some(), Relaxed);
    }

    /// True if effects are allowed now.
    pub(crate) fn is_in_step(&self) -> bool {
        self.in_step.load(Relaxed)
    }
}

struct Clock(Arc<RunClock>);

impl HostWallClock for Clock {
    fn resolution(&self) -> Duration {
        Duration::from_millis(1)
    }

    fn now(&self) -> Duration {
        self.0.now()
    }
}

impl HostMonotonicClock for Clock {
    fn resolution(&self) -> u64 {
        1_000_000
    }

    fn now(&self) -> u64 {
        u64::try_from(self.0.now().as_nanos()).unwrap_or(u64::MAX)
    }
}

/// Random numbers that are equal in each replay, regardless of skipped work: they are reseeded with
/// each entry of the journal.
struct Random {
    seed: u64,
    clock: Arc<RunClock>,
    entries: u64,
    numbers: ChaCha20Rng,
}

impl Random {
    fn new(seed: u64, clock: Arc<RunClock>) -> Self {
        Self { seed, clock, entries: 0, numbers: Self::at(seed, 0) }
    }

    fn at(seed: u64, entries: u64) -> ChaCha20Rng {
        let mut combined = [0; 32];
        combined[..8].copy_from_slice(&seed.to_le_bytes());
        combined[8..16].copy_from_slice(&entries.to_le_bytes());
        ChaCha20Rng::from_seed(combined)
    }

    fn numbers(&mut self) -> &mut ChaCha20Rng {
        let entries = self.clock.entries.load(Relaxed);
        if entries != self.entries {
            (self.entries, self.numbers) = (entries, Self::at(self.seed, entries));
        }
        &mut self.numbers
    }
}

impl TryRng for Random {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        Ok(self.numbers().next_u32())
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        Ok(self.numbers().next_u64())
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
        self.numbers().fill_bytes(bytes);
        Ok(())
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "this is where it comes in: what a guest heard when is recorded"
)]
fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// Real time, in milliseconds since the Unix epoch.
pub(crate) fn now_ms() -> u64 {
    u64::try_from(now().as_millis()).unwrap_or(u64::MAX)
}

/// Connects WASI's clocks and random numbers to a run's clock.
pub(crate) fn govern(wasi: &mut WasiCtxBuilder, clock: &Arc<RunClock>, seed: u64) {
    let random = || Random::new(seed, Arc::clone(clock));
    wasi.wall_clock(Clock(Arc::clone(clock)))
        .monotonic_clock(Clock(Arc::clone(clock)))
        .secure_random(random())
        .insecure_random(random())
        .insecure_random_seed(seed.into());
}

/// Refusal of an effect outside a step.
pub(crate) fn outside_of_step(action: &str) -> Failure {
    Failure::Denied(format!(
        "{action}: this agent is run again after a restart of the hub (`resume = \"replay\"` in its manifest), so that it does this in a step only: \
         `ctx.step(...)`"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use a2a_hub_core::task::replay::{CallIdentity, Entry, Recorded, StepMode};

    #[test]
    fn random_numbers_depend_on_journal_position() {
        let clock = Arc::new(RunClock::at(0));
        let mut one = Random::new(7, Arc::clone(&clock));
        let mut other = Random::new(7, Arc::clone(&clock));
        let first = [one.next_u64(), one.next_u64()];
        assert_ne!(first[0], first[1]);
        // The second generator draws none before the next entry.
        clock.entries.store(1, Relaxed);
        let next = one.next_u64();
        assert_eq!(next, other.next_u64());
        assert!(!first.contains(&next));
        assert_ne!(Random::new(8, clock).next_u64(), next);
    }

    #[test]
    fn clock_advances_only_within_steps() {
        let asked = CallIdentity::new("x", "");
        let entry = Entry::Answer(asked.clone(), ());
        let journal = vec![Recorded { at_ms: 6_000, entry }];
        let mut run = Replay::<_, ()>::new(5_000, journal, Vec::new());
        let clock = RunClock::at(5_000);
        assert_eq!(clock.now(), Duration::from_secs(5));
        run.recall(&asked).unwrap();
        clock.follow(&run);
        assert_eq!((clock.now(), clock.is_in_step()), (Duration::from_secs(6), false));
        run.begin("step", StepMode::Recorded, 6_500).unwrap();
        clock.follow(&run);
        assert!(clock.is_in_step() && clock.now() > Duration::from_hours(400_000));
    }
}
