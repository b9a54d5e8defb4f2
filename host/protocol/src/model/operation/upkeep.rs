//! What the hub tells of itself to those who look after it: whether it can store.

use schemars::JsonSchema;
use serde::Serialize;

/// Whether the hub can store what happens. What it cannot store it does not do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(tag = "status", rename_all = "kebab-case", rename_all_fields = "camelCase")]
pub enum StorageCondition {
    /// It can.
    Ok,
    /// It cannot: tasks that were at work fail, with reason `storage`, as soon as that can be stored. It is tried again and
    /// again, and works once the cause is gone.
    Failing {
        /// Since when: RFC 3339 in UTC.
        since: String,
        /// What went wrong the last time.
        error: String,
        /// How to mend it.
        fix: String,
    },
}

impl StorageCondition {
    /// Whether nothing can be stored.
    pub fn is_failing(&self) -> bool {
        matches!(self, Self::Failing { .. })
    }
}
