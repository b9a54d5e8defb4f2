//! Changes of blackboards that the driver of a flow has not taken.

use std::collections::BTreeMap;

use serde_json::Value;

/// Reports of blackboards that were not taken.
#[derive(Clone, Debug, Default)]
pub(super) struct BoardReports {
    /// Latest state of each that changed, by the id of its step.
    pub(super) changed: BTreeMap<String, Value>,
    /// Answers to changes by agents at work.
    pub(super) answers: Vec<Value>,
}
