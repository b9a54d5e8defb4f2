//! Blocking work on threads of its own. A panic there is told to nobody but the log.

use std::future::Future;
use tokio::task::{JoinError, spawn_blocking};

/// Work ended without a result: it panicked, or the hub is going down. A panic's text may hold paths and secrets; it is in the log,
/// and this error, which clients may be shown, has none of it.
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

/// Runs blocking work on a thread for such work, from now on, also if the result is not waited for.
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
    async fn panic_text_stays_out_of_the_error() {
        let work = || -> u8 { panic!("the key is sk-123") };
        let why = run_blocking(work).await.unwrap_err();
        assert_eq!(why.to_string(), "internal error; see the hub's log");
        assert!(!format!("{why:?} {:?}", std::io::Error::other(why)).contains("sk-123"));
        assert_eq!(run_blocking(|| 7).await, Ok(7));
    }
}
