//! Epoch ticker: a thread that advances the engine's epoch, so that every guest checks its CPU
//! account and yields at the same rate.
//!
//! It ticks while guests are polled, and sleeps after a while without any: an idle hub does not
//! wake a processor two hundred times a second.

use std::{
    io,
    sync::{
        Arc, OnceLock,
        atomic::{
            AtomicBool, AtomicUsize,
            Ordering::{Relaxed, SeqCst},
        },
    },
    thread,
    time::Duration,
};

/// Interval at which guests are interrupted to check their CPU account and to yield.
const TICK: Duration = Duration::from_millis(5);

/// Idle ticks before the thread sleeps, a fifth of a second: waking it costs the next poll some
/// microseconds. Tests use fewer.
const IDLE_TICKS: u32 = if cfg!(test) { 4 } else { 40 };

/// State shared by the thread and the pollers.
#[derive(Debug, Default)]
pub(crate) struct Pulse {
    polled: AtomicUsize,
    rests: AtomicBool,
    ends: AtomicBool,
    thread: OnceLock<thread::Thread>,
}

/// Guard of a poll, during which guests are interrupted.
#[derive(Debug)]
pub(crate) struct Polled<'p>(&'p Pulse);

impl Pulse {
    /// Marks the start of a poll.
    pub(crate) fn polls(&self) -> Polled<'_> {
        // Sequentially consistent on both sides: either this sees the thread asleep, or the thread
        // sees this poll.
        self.polled.fetch_add(1, SeqCst);
        if self.rests.load(SeqCst) && self.rests.swap(false, SeqCst) {
            self.wake();
        }
        Polled(self)
    }

    fn wake(&self) {
        if let Some(thread) = self.thread.get() {
            thread.unpark();
        }
    }

    /// Sleeps until a guest is polled or the ticker ends.
    fn wait_for_poll(&self) {
        self.rests.store(true, SeqCst);
        while self.polled.load(SeqCst) == 0 && self.rests.load(SeqCst) && !self.ends.load(SeqCst) {
            thread::park();
        }
        self.rests.store(false, SeqCst);
    }
}

impl Drop for Polled<'_> {
    fn drop(&mut self) {
        self.0.polled.fetch_sub(1, Relaxed);
    }
}

/// The only thread that advances the epoch. It ends on drop.
#[derive(Debug)]
pub(crate) struct Ticker {
    pulse: Arc<Pulse>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Ticker {
    /// Runs `tick` while guests are polled.
    pub(crate) fn start(
        pulse: Arc<Pulse>,
        tick: impl Fn() + Send + 'static,
    ) -> Result<Self, io::Error> {
        let of_thread = Arc::clone(&pulse);
        let work = move || run(&of_thread, tick);
        let thread = thread::Builder::new().name("epoch".to_owned()).spawn(work)?;
        Ok(Self { pulse, thread: Some(thread) })
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        self.pulse.ends.store(true, SeqCst);
        self.pulse.wake();
        if let Some(thread) = self.thread.take() {
            // The thread never panics.
            let _ = thread.join();
        }
    }
}

fn run(pulse: &Pulse, tick: impl Fn()) {
    // Set before the thread can be seen asleep, so that a waker always finds it.
    let _ = pulse.thread.set(thread::current());
    let mut idle = IDLE_TICKS;
    while !pulse.ends.load(SeqCst) {
        if idle >= IDLE_TICKS {
            pulse.wait_for_poll();
            idle = 0;
        }
        thread::park_timeout(TICK);
        tick();
        idle = if pulse.polled.load(Relaxed) == 0 { idle + 1 } else { 0 };
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "the thread keeps real time")]
mod tests {
    use super::*;
    use std::time::Instant;

    fn until(is_so: impl Fn() -> bool) {
        let end = Instant::now() + Duration::from_secs(20);
        while !is_so() {
            assert!(Instant::now() < end, "it never came to that");
            thread::sleep(Duration::from_millis(1));
        }
    }

    /// A ticker and its number of ticks.
    fn ticking() -> (Arc<Pulse>, Arc<AtomicUsize>, Ticker) {
        let (pulse, ticks) = <(Arc<Pulse>, Arc<AtomicUsize>)>::default();
        let counted = Arc::clone(&ticks);
        let count = move || {
            counted.fetch_add(1, SeqCst);
        };
        let ticker = Ticker::start(Arc::clone(&pulse), count).unwrap();
        (pulse, ticks, ticker)
    }

    #[test]
    fn ticker_runs_only_during_polls() {
        let (pulse, ticks, ticker) = ticking();
        until(|| pulse.rests.load(SeqCst));
        assert_eq!(ticks.load(SeqCst), 0, "nobody is there to be interrupted");
        for _ in 0..3 {
            let polled = pulse.polls();
            let then = ticks.load(SeqCst);
            // Also during an endless poll: it lasts longer than the idle ticks.
            until(|| ticks.load(SeqCst) > then + 2 * IDLE_TICKS as usize);
            drop(polled);
            until(|| pulse.rests.load(SeqCst));
            let rested = ticks.load(SeqCst);
            thread::sleep(10 * TICK);
            assert_eq!(ticks.load(SeqCst), rested);
        }
        drop(ticker);
        assert_eq!(Arc::strong_count(&ticks), 1, "the thread is gone");
    }

    #[test]
    fn poll_at_sleep_wakes_ticker() {
        let (pulse, ticks, _ticker) = ticking();
        for round in 0..40 {
            let polled = pulse.polls();
            let then = ticks.load(SeqCst);
            until(|| ticks.load(SeqCst) > then);
            drop(polled);
            // About the time until the thread sleeps.
            thread::sleep(TICK * (IDLE_TICKS - 2) + Duration::from_micros(500 * round));
        }
    }
}
