//! How much of the processor a thread has used, for many who ask.
//!
//! To ask the kernel takes most of a microsecond, for it looks at the processor's queue under its lock; what time it is takes a twentieth of that.
//! A thread uses no more of the processor than time goes by: so the kernel is asked now and then, and in between what has gone by counts.

use rustix::time::{ClockId, clock_gettime};
use std::{cell::Cell, time::Instant};

/// By how much what is told may be ahead of what was used, in nanoseconds: where the thread was not given the processor meanwhile.
const PRECISION: u64 = 200_000;

thread_local! {
    /// What the thread had used when the kernel was asked last, and when that was.
    static ASKED: Cell<Option<(u64, Instant)>> = const { Cell::new(None) };
}

/// What the calling thread has used of the processor by `now`, in nanoseconds, to a fifth of a millisecond: what is told too much is made up for later. A guest
/// that is not given the processor does not use it.
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
    fn it_follows_the_kernel_and_does_not_count_what_is_slept() {
        let (begun, of_kernel) = (thread_used(now()), ask());
        for _ in 0..20 {
            thread::sleep(Duration::from_millis(2));
            let until = now() + Duration::from_millis(2);
            while now() < until {
                black_box(thread_used(now()));
            }
            let (told, used) = (thread_used(now()) - begun, ask() - of_kernel);
            // What the test itself does between the two looks is within that, too.
            assert!(told.abs_diff(used) < 3 * PRECISION, "{told} told, {used} used");
        }
        // A single sleep counts as work for no longer than what is told may be ahead.
        let then = thread_used(now());
        thread::sleep(Duration::from_millis(50));
        assert!(thread_used(now()).saturating_sub(then) < 20_000_000, "most of it was slept");
    }
}
