//! Timeouts of a guest's waits.

use std::{future::pending, time::Duration};
use tokio::{task::yield_now, time::sleep};

/// Completes after `timeout_ms` milliseconds; never without a value. With 0, it completes after one
/// yield, in which the runtime polls the system once, so that output already there is received. A
/// timer would take at least a millisecond.
pub(super) async fn deadline(timeout_ms: Option<u32>) {
    match timeout_ms {
        None => pending().await,
        Some(0) => yield_now().await,
        Some(ms) => sleep(Duration::from_millis(ms.into())).await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;
    use tokio::{io::AsyncReadExt as _, net::UnixStream, time::Instant};

    /// The paused clock advances while somebody waits for it.
    #[tokio::test(start_paused = true)]
    async fn zero_timeout_uses_no_timer() {
        let begun = Instant::now();
        deadline(Some(0)).await;
        assert_eq!(begun.elapsed(), Duration::ZERO);
        deadline(Some(7)).await;
        assert!(begun.elapsed() >= Duration::from_millis(7));
    }

    #[tokio::test]
    async fn zero_timeout_receives_ready_data() {
        let (speaker, listener) = std::os::unix::net::UnixStream::pair().unwrap();
        listener.set_nonblocking(true).unwrap();
        let mut listener = UnixStream::from_std(listener).unwrap();
        let mut said = [0; 8];
        for _ in 0..100 {
            (&speaker).write_all(b"here").unwrap();
            let heard = tokio::select! {
                biased;
                heard = listener.read(&mut said) => heard.unwrap(),
                () = deadline(Some(0)) => 0,
            };
            assert_eq!(&said[..heard], b"here");
            let silent = tokio::select! {
                biased;
                _ = listener.read(&mut said) => false,
                () = deadline(Some(0)) => true,
            };
            assert!(silent);
        }
    }
}
