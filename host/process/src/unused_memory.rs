//! Release of unused memory: what the allocator retains after agents are gone. Released memory no
//! longer counts for the system's OOM decisions.

use super::proc::kilobytes;
use std::time::Duration;
use tokio::{task::spawn_blocking, time::sleep};

/// Interval of the check: memory of ended agents is released within ten seconds.
const POLL_INTERVAL: Duration = Duration::from_secs(3);

/// Least amount that is worth the time, in bytes.
const WORTH: u64 = 4 << 20;

/// Releases memory once after the start, then periodically after work. Returns only if that work
/// panics.
pub async fn give_back() {
    let (mut lowest, mut was_in_vain) = (None::<u64>, false);
    loop {
        let before = anonymous_bytes();
        let is_worth = lowest.is_none_or(|lowest| before > lowest.saturating_add(WORTH));
        // Memory in use cannot be released, and the attempt costs a few milliseconds: after a
        // futile attempt, one check is skipped.
        if !std::mem::take(&mut was_in_vain) && is_worth {
            // A panic in the work ends the loop; nobody waits for it.
            if spawn_blocking(trim).await.is_err() {
                return;
            }
            let after = anonymous_bytes();
            was_in_vain = lowest.is_some() && before.saturating_sub(after) <= WORTH;
            lowest = Some(lowest.map_or(after, |least| least.min(after)));
        } else {
            lowest = lowest.map(|least| least.min(before));
        }
        sleep(POLL_INTERVAL).await;
    }
}

/// Anonymous memory of this process, in bytes; 0 if the system does not report it.
fn anonymous_bytes() -> u64 {
    kilobytes("self", "status", &["RssAnon"]).unwrap_or(0)
}

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

    #[tokio::test(start_paused = true)]
    async fn fragmented_free_memory_is_released() {
        let giving = give_back();
        let using = async {
            sleep(2 * POLL_INTERVAL).await;
            let base = anonymous_bytes();
            // Every thousandth stays, so that the allocator cannot simply shrink its heap.
            let taken: Vec<_> = (0_u32..400_000).map(|n| vec![n; 100]).collect();
            assert!(anonymous_bytes() > base + (128 << 20), "{}", anonymous_bytes() - base);
            let kept: Vec<_> = taken.into_iter().step_by(1000).collect();
            sleep(5 * POLL_INTERVAL).await;
            let left = anonymous_bytes().saturating_sub(base);
            assert!(left < 32 << 20, "{left} bytes are kept for {}", kept.len());
        };
        tokio::select! {
            () = giving => panic!("nobody looks any more"),
            () = using => {}
        }
    }
}
