//! CPU time of a thread, cheap enough for frequent queries.
//!
//! A query of the kernel takes most of a microsecond, because it locks the processor's run queue;
//! the current time takes a twentieth of that. A thread uses no more CPU time than wall-clock time:
//! so the kernel is queried occasionally, and in between wall-clock time counts.

use rustix::time::{ClockId, clock_gettime};
use std::{cell::Cell, time::Instant};

/// Greatest excess of the estimate over the CPU time used, in nanoseconds: when the thread was not
/// scheduled meanwhile.
const PRECISION: u64 = 200_000;

thread_local! {
    /// CPU time at the last query of the kernel, and the time of that query.
    static ASKED: Cell<Option<(u64, Instant)>> = const { Cell::new(None) };
}

/// CPU time of the calling thread at `now`, in nanoseconds, accurate to a fifth of a millisecond;
/// an excess is corrected later. A guest that is not scheduled uses none.
pub(crate) fn thread_used(now: Instant) -> u64 {
    if let Some((used, then)) = ASKED.get() {
        let since = u64::try_from(now.saturating_duration_since(then).as_nanos());
        if let Ok(since @ ..PRECISION) = since {
            return used.saturating_add(since);
        }
    }
    let used = ask();
    ASKED.set(Some((used, now)));
    used
}

fn ask() -> u64 {
    let used = clock_gettime(ClockId::ThreadCPUTime);
    let (seconds, nanos) = (used.tv_sec.unsigned_abs(), used.tv_nsec.unsigned_abs());
    seconds.saturating_mul(1_000_000_000).saturating_add(nanos)
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "what a thread uses is real time")]
mod tests {
    use super::*;
    use std::{hint::black_box, thread, time::Duration};

    fn now() -> Instant {
        Instant::now()
    }

    #[test]
    fn estimate_follows_kernel_and_excludes_sleep() {
        let (begun, of_kernel) = (thread_used(now()), ask());
        for _ in 0..20 {
            thread::sleep(Duration::from_millis(2));
            let until = now() + Duration::from_millis(2);
            while now() < until {
                black_box(thread_used(now()));
            }
            let (told, used) = (thread_used(now()) - begun, ask() - of_kernel);
            // The work of the test between the two queries is within the tolerance.
            assert!(told.abs_diff(used) < 3 * PRECISION, "{told} told, {used} used");
        }
        // A single sleep counts as work at most for the greatest excess.
        let then = thread_used(now());
        thread::sleep(Duration::from_millis(50));
        assert!(thread_used(now()).saturating_sub(then) < 20_000_000, "most of it was slept");
    }
}
