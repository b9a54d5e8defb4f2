//! Panic boundary between the hub's code and its clients: a panic fails one request, and its text
//! stays in the log.

use a2a_hub_protocol::error::A2aError;
use futures::FutureExt as _;
use std::panic::AssertUnwindSafe;

/// Runs `work` and converts a panic to an internal error without details; the panic hook has logged
/// the text.
pub async fn caught<T>(work: impl Future<Output = T>) -> Result<T, A2aError> {
    AssertUnwindSafe(work).catch_unwind().await.map_err(|_| {
        tracing::error!("a request ended with a panic");
        A2aError::internal()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn panic_becomes_error_without_details() {
        let why = caught(async { panic!("the key is sk-123") }).await.map(|(): ()| ()).unwrap_err();
        assert_eq!(why, A2aError::internal());
        assert!(!format!("{why:?}").contains("sk-123"));
        assert_eq!(caught(async { 7 }).await, Ok(7));
    }
}
