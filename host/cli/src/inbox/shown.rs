//! Limits of the inbox's lists, and the hint about the rest.

use crate::ui::render::counted;
use serde_json::Value;

/// Most lines of a question in the list, and most characters of each.
pub(super) const SHOWN: (usize, usize) = (3, 200);

/// Hint about the entries of `total` that are not listed; none if all are.
pub(super) fn not_shown(total: &Value, listed: usize, noun: &str) -> Option<String> {
    let total = total.as_u64().and_then(|total| usize::try_from(total).ok());
    let more = total.unwrap_or_default().saturating_sub(listed);
    (more > 0).then(|| format!("{} not shown: --limit COUNT\n", counted(more, noun)))
}
