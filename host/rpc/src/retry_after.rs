//! Time after which a refused client may try again.

/// Seconds that a refused client waits before it tries again (`Retry-After`).
pub const RETRY_AFTER_SECONDS: u32 = 1;
