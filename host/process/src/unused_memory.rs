//! Memory that the allocator keeps although nothing in it is in use: what agents made the hub take goes back to the machine.

use super::proc::kilobytes;
use std::time::Duration;
use tokio::{task::spawn_blocking, time::sleep};

/// How often it is looked whether there is any.
const LOOK: Duration = Duration::from_secs(3);

/// The pause where it was looked in vain: what agents took is back within ten seconds of their end, and what is in use costs a few
/// milliseconds of looking in each.
const LONGEST: Duration = Duration::from_secs(6);

/// Less is not worth the time, in bytes.
const WORTH: u64 = 4 << 20;

/// Gives it back, again and again. Never comes to an end.
pub async fn give_back() {
    let (mut least, mut pause) = (u64::MAX, LOOK);
    loop {
        sleep(pause).await;
        let before = resident();
        if before <= least.saturating_add(WORTH) {
            least = least.min(before);
            pause = LOOK;
            continue;
        }
        // A panic in there is none of a loop's that nobody waits for.
        if spawn_blocking(trim).await.is_err() {
            return;
        }
        let after = resident();
        least = least.min(after);
        // What is in use cannot be given back, and need not be looked for all the time.
        let was_worth = before.saturating_sub(after) > WORTH;
        pause = if was_worth { LOOK } else { LONGEST };
    }
}

/// The memory of this process that is in the machine's, in bytes; 0 if the system does not tell.
fn resident() -> u64 {
    kilobytes("self", "status", &["VmRSS"]).unwrap_or(0)
}

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

#[cfg(all(test, target_env = "gnu"))]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn holes_between_what_is_in_use_are_given_back() {
        let giving = give_back();
        let using = async {
            sleep(2 * LOOK).await;
            let base = resident();
            // Every thousandth stays, so that the allocator cannot give back the end of its heap.
            let taken: Vec<_> = (0_u32..400_000).map(|n| vec![n; 100]).collect();
            assert!(resident() > base + (128 << 20), "{}", resident() - base);
            let kept: Vec<_> = taken.into_iter().step_by(1000).collect();
            sleep(5 * LOOK).await;
            let left = resident().saturating_sub(base);
            assert!(left < 32 << 20, "{left} bytes are kept for {}", kept.len());
        };
        tokio::select! {
            () = giving => panic!("nobody looks any more"),
            () = using => {}
        }
    }
}
