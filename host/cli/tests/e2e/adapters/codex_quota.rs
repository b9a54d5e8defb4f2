//! The same as for Claude Code: a used-up quota delays a session of Codex, and repeats no work.

use super::{claude_quota::continue_after_reset, vendors::CODEX};
use anyhow::Result;

#[tokio::test]
async fn session_continues_after_quota_reset() -> Result<()> {
    continue_after_reset(&CODEX).await
}
