//! Memory that a process holds although it does not use it: what the allocator keeps of what agents made the hub take, and what of its
//! own code only its start has run. It goes back to the machine, and counts no more where the system looks for the greediest.

#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
mod segments;

use super::proc::kilobytes;
use rustix::time::{ClockId, clock_gettime};
use std::time::Duration;
use tokio::{task::spawn_blocking, time::sleep};

/// How often it is looked whether there is any: what agents took is back within ten seconds of their end.
const LOOK: Duration = Duration::from_secs(3);

/// Less is not worth the time, in bytes.
const WORTH: u64 = 4 << 20;

/// A process has nothing to do if it has been on a processor for less than this share of the time, in percent.
const IDLE: u32 = 2;

/// Time on a processor that makes a burst of work. What less than that brings into memory stays: it would be read again with the next
/// request, which takes a millisecond that somebody waits for.
const BURST: Duration = Duration::from_secs(1);

/// Gives it back: at once what the start took, and then again and again what work took. Never comes to an end.
pub async fn give_back() {
    let after_start = || {
        trim();
        unmap_own_code();
    };
    // A panic in there is none of a loop's that nobody waits for.
    if spawn_blocking(after_start).await.is_err() {
        return;
    }
    let (mut least, mut was_in_vain, mut code) = (u64::MAX, false, OwnCode::now());
    loop {
        sleep(LOOK).await;
        // What runs while the hub works would be read again and again.
        if code.is_unused(LOOK) {
            if spawn_blocking(unmap_own_code).await.is_err() {
                return;
            }
            code = OwnCode::now();
        }
        // What is in use cannot be given back, and costs a few milliseconds of looking: after a look in vain, every second time.
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

/// How much of this program's file was in memory when it was let go of, and for how long the process had been on a processor by then and by
/// the last look.
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

    /// Whether there is much more of it than there was, for a burst of work that is over: hardly any of it ran in this last while.
    fn is_unused(&mut self, last: Duration) -> bool {
        let now = worked();
        let ran = now.saturating_sub(std::mem::replace(&mut self.looked, now));
        let is_over = ran * 100 < last * IDLE && now > self.worked + BURST;
        is_over && mapped() > self.bytes.saturating_add(WORTH)
    }
}

/// The memory that this process shares with files, in bytes; 0 if the system does not tell.
fn mapped() -> u64 {
    kilobytes("self", "status", &["RssFile"]).unwrap_or(0)
}

/// How long the threads of this process have been on processors, all together.
fn worked() -> Duration {
    let spent = clock_gettime(ClockId::ProcessCPUTime);
    Duration::try_from(spent).unwrap_or_default()
}

/// The memory that this process shares with no file, in bytes; 0 if the system does not tell.
fn own() -> u64 {
    kilobytes("self", "status", &["RssAnon"]).unwrap_or(0)
}

/// Lets go of the pages of this program's code and constants, which are read again as soon as one of them is needed: from the system's
/// cache of the file, in well under a microsecond each.
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
        // SAFETY: private mappings of files that stay as they are, and none of whose pages was ever one to write to: whoever reads there
        // afterwards reads the same. Where the system will not forget a page, nothing has changed.
        let _ = unsafe { madvise(at, bytes, Advice::LinuxDontNeed) };
    }
}

/// Elsewhere it is not known where they are.
#[cfg(not(all(target_os = "linux", target_pointer_width = "64")))]
fn unmap_own_code() {}

/// Has the allocator give back each whole page that nothing is in.
#[cfg(target_env = "gnu")]
#[expect(
    unsafe_code,
    reason = "the C library offers it in no other way; see the comment for why it is safe"
)]
fn trim() {
    // SAFETY: `malloc_trim` takes no pointer, may be called at any time by any thread (it is marked MT-Safe), and gives back only
    // what is allocated to nobody.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Other C libraries keep house by themselves.
#[cfg(not(target_env = "gnu"))]
fn trim() {}

#[cfg(all(test, target_os = "linux", target_env = "gnu"))]
mod tests {
    use super::*;
    use crate::mapped_file::MappedFile;

    #[test]
    fn code_that_was_let_go_of_runs_on() {
        let mapped = MappedFile::of_this_program().unwrap();
        assert_eq!(&mapped.bytes()[..4], b"\x7fELF");
        let sum: u64 = mapped.bytes().iter().map(|byte| u64::from(*byte)).sum();
        let before = super::mapped();
        unmap_own_code();
        assert!(super::mapped() < before / 2, "{} of {before}", super::mapped());
        assert_eq!(mapped.bytes().iter().map(|byte| u64::from(*byte)).sum::<u64>(), sum);
    }

    #[test]
    fn code_is_unused_once_a_burst_of_work_is_over_that_brought_it_in() {
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
    async fn holes_between_what_is_in_use_are_given_back() {
        let giving = give_back();
        let using = async {
            sleep(2 * LOOK).await;
            let base = own();
            // Every thousandth stays, so that the allocator cannot give back the end of its heap.
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
