//! Questions of children that stand in the records of their parents after a restart, until the parents' agents come to them again.

use a2a_hub_core::facts;
use a2a_hub_protocol::question::Question as Asked;
use a2a_hub_store::{StoredTask, TaskStore};
use std::sync::Arc;

/// Whether a child still asks what stands in its parent's record. The parent's agent comes to it again: it hears what the child tells on
/// its own, before or after the hub hands the child's question on.
pub(super) async fn is_still_asked(storage: Arc<dyn TaskStore>, stands: Option<Asked>) -> bool {
    let Some(stands) = stands else { return false };
    let Some(child) = &stands.task else { return false };
    let asks = |child: StoredTask| {
        let asked = Asked::of(child.task.metadata.as_ref());
        facts::asks(&child.task) && asked.is_some_and(|asked| asked.id == stands.id)
    };
    match storage.task(child).await {
        Ok(child) => child.is_some_and(asks),
        Err(why) => {
            tracing::warn!(%child, %why, "whether a child still asks cannot be read, and is taken for so");
            true
        }
    }
}
