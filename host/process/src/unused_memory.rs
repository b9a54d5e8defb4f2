//! Release of unused memory: what the allocator retains after agents are gone, and pages of the
//! program's own code that only the start has run. Released memory no longer counts for the
//! system's OOM decisions.

#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
mod segments;

use super::proc::kilobytes;
use rustix::time::{ClockId, clock_gettime};
use std::time::Duration;
use tokio::{task::spawn_blocking, time::sleep};

/// Interval of the check: memory of ended agents is released within ten seconds.
const LOOK: Duration = Duration::from_secs(3);

/// Least amount that is worth the time, in bytes.
const WORTH: u64 = 4 << 20;

/// CPU share below which a process counts as idle, in percent.
const IDLE: u32 = 2;

/// CPU time that counts as a burst of work. Code that less work has loaded stays: the next request
/// would reload it, which takes a millisecond.
const BURST: Duration = Duration::from_secs(1);

/// Releases memory once after the start, then periodically after work. Returns only if that work
/// panics.
pub async fn give_back() {
    let after_start = || {
        trim();
        unmap_own_code();
    };
    // A panic in the work ends the loop; nobody waits for it.
    if spawn_blocking(after_start).await.is_err() {
        return;
    }
    let (mut least, mut was_in_vain, mut code) = (u64::MAX, false, OwnCode::now());
    loop {
        sleep(LOOK).await;
        // Code that runs while the hub works would be reloaded again and again.
        if code.is_unused(LOOK) {
            if spawn_blocking(unmap_own_code).await.is_err() {
                return;
            }
            code = OwnCode::now();
        }
        // Memory in use cannot be released, and the attempt costs a few milliseconds: after a
        // futile attempt, one check is skipped.
        if std::mem::take(&mut was_in_vain) {
            continue;
        }
        let before = own();
        if before <= least.saturating_add(WORTH) {
            least = least.min(before);
            continue;
        }
        if spawn_blocking(trim).await.is_err() {
            return;
        }
        let after = own();
        least = least.min(after);
        was_in_vain = before.saturating_sub(after) <= WORTH;
    }
}

/// State at the last release of the program's code: bytes in memory, and CPU time at that moment
/// and at the last check.
struct OwnCode {
    bytes: u64,
    worked: Duration,
    looked: Duration,
}

impl OwnCode {
    fn now() -> Self {
        let worked = worked();
        Self { bytes: mapped(), worked, looked: worked }
    }

    /// True if much more code is in memory than at the last release, and the burst of work that
    /// loaded it is over.
    fn is_unused(&mut self, last: Duration) -> bool {
        let now = worked();
        let ran = now.saturating_sub(std::mem::replace(&mut self.looked, now));
        let is_over = ran * 100 < last * IDLE && now > self.worked + BURST;
        is_over && mapped() > self.bytes.saturating_add(WORTH)
    }
}

/// Memory of this process that is file-backed, in bytes; 0 if the system does not report it.
fn mapped() -> u64 {
    kilobytes("self", "status", &["RssFile"]).unwrap_or(0)
}

/// CPU time of all threads of this process.
fn worked() -> Duration {
    let spent = clock_gettime(ClockId::ProcessCPUTime);
    Duration::try_from(spent).unwrap_or_default()
}

/// Anonymous memory of this process, in bytes; 0 if the system does not report it.
fn own() -> u64 {
    kilobytes("self", "status", &["RssAnon"]).unwrap_or(0)
}

/// Drops the pages of this program's code and constants. A needed page is read again from the page
/// cache, in well under a microsecond.
#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
#[expect(
    unsafe_code,
    reason = "the system is told of addresses; see the comment for why these are safe"
)]
fn unmap_own_code() {
    use super::mapped_file::MappedFile;
    use rustix::mm::{Advice, madvise};
    let loaded = segments::of_this_program().unwrap_or_default();
    let mapped = MappedFile::all().into_iter().map(MappedFile::bytes);
    let mapped = mapped.map(|all| (all.as_ptr().expose_provenance(), all.len()));
    for (at, bytes) in loaded.into_iter().chain(mapped) {
        let at = std::ptr::with_exposed_provenance_mut(at);
        // SAFETY: these are private mappings of files that stay unchanged, and none of their pages
        // was ever writable: a later read sees the same bytes. If the system refuses to drop a
        // page, nothing has changed.
        let _ = unsafe { madvise(at, bytes, Advice::LinuxDontNeed) };
    }
}

/// On other platforms the addresses are unknown.
#[cfg(not(all(target_os = "linux", target_pointer_width = "64")))]
fn unmap_own_code() {}

/// Has the allocator release each completely free page.
#[cfg(target_env = "gnu")]
#[expect(
    unsafe_code,
    reason = "the C library offers it in no other way; see the comment for why it is safe"
)]
fn trim() {
    // SAFETY: `malloc_trim` takes no pointer, may be called at any time by any thread (it is marked
    // MT-Safe), and releases only unallocated memory.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Other C libraries have no such call.
#[cfg(not(target_env = "gnu"))]
fn trim() {}

#[cfg(all(test, target_os = "linux", target_env = "gnu"))]
mod tests {
    use super::*;
    use crate::mapped_file::MappedFile;

    #[test]
    fn released_code_still_runs() {
        let mapped = MappedFile::of_this_program().unwrap();
        assert_eq!(&mapped.bytes()[..4], b"\x7fELF");
        let sum: u64 = mapped.bytes().iter().map(|byte| u64::from(*byte)).sum();
        let before = super::mapped();
        unmap_own_code();
        assert!(super::mapped() < before / 2, "{} of {before}", super::mapped());
        assert_eq!(mapped.bytes().iter().map(|byte| u64::from(*byte)).sum::<u64>(), sum);
    }

    #[test]
    fn code_is_unused_after_work_burst() {
        let file = MappedFile::of_this_program().unwrap();
        let read = || file.bytes().iter().step_by(4096).fold(0_u8, |sum, byte| sum ^ *byte);
        let work = |time: Duration| {
            let until = worked() + time;
            while worked() < until {
                std::hint::spin_loop();
            }
        };
        read();
        unmap_own_code();
        let mut code = OwnCode::now();
        let second = Duration::from_secs(1);
        read();
        assert!(!code.is_unused(second), "that was no burst of work");
        work(BURST);
        assert!(!code.is_unused(second), "it runs");
        assert!(code.is_unused(second), "it has run, and is in memory");
        unmap_own_code();
        assert!(!code.is_unused(second), "it is in memory no more");
    }

    #[tokio::test(start_paused = true)]
    async fn fragmented_free_memory_is_released() {
        let giving = give_back();
        let using = async {
            sleep(2 * LOOK).await;
            let base = own();
            // Every thousandth stays, so that the allocator cannot simply shrink its heap.
            let taken: Vec<_> = (0_u32..400_000).map(|n| vec![n; 100]).collect();
            assert!(own() > base + (128 << 20), "{}", own() - base);
            let kept: Vec<_> = taken.into_iter().step_by(1000).collect();
            sleep(5 * LOOK).await;
            let left = own().saturating_sub(base);
            assert!(left < 32 << 20, "{left} bytes are kept for {}", kept.len());
        };
        tokio::select! {
            () = giving => panic!("nobody looks any more"),
            () = using => {}
        }
    }
}
