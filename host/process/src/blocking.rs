//! Blocking work on separate threads. A panic there appears only in the log.

use std::future::Future;
use tokio::task::{JoinError, spawn_blocking};

/// The work ended without a result: it panicked, or the hub is shutting down. The panic's text may
/// contain paths and secrets, so it goes to the log and not into this error, which clients may see.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("internal error; see the hub's log")]
pub struct Panicked;

impl From<JoinError> for Panicked {
    fn from(why: JoinError) -> Self {
        if why.is_panic() {
            tracing::error!(%why, "a task of the hub panicked");
        }
        Self
    }
}

/// Runs blocking work on a thread for such work. The work starts at once and runs to its end even
/// if its result is dropped.
pub fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> impl Future<Output = Result<T, Panicked>> + Send {
    let done = spawn_blocking(work);
    async move { Ok(done.await?) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn error_excludes_panic_text() {
        let work = || -> u8 { panic!("the key is sk-123") };
        let why = run_blocking(work).await.unwrap_err();
        assert_eq!(why.to_string(), "internal error; see the hub's log");
        assert!(!format!("{why:?} {:?}", std::io::Error::other(why)).contains("sk-123"));
        assert_eq!(run_blocking(|| 7).await, Ok(7));
    }
}
