//! Automation that passed to a person, and the text that stands in place of a key for the runs of a
//! person's automation.

use super::person_name::PersonName;
use serde::{Deserialize, Serialize};

/// Beginning of the text that stands in place of a key for runs of a person's automation. The id of
/// a key has hexadecimal digits only.
const AUTOMATION: &str = "automation:";

/// A schedule or trigger that passed to a person when its owner was removed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InheritedAutomation {
    /// Name of the schedule or trigger.
    pub name: String,
    /// Owner by the configuration, who was removed.
    pub owner: PersonName,
    /// True once the person accepted it. It starts no run before.
    #[serde(default)]
    pub accepted: bool,
}

/// Text in place of a key for the runs of a person's schedule or trigger.
pub(crate) fn key_of_automation(name: &str) -> String {
    format!("{AUTOMATION}{name}")
}

/// Name of the schedule or trigger for whose runs this text stands in place of a key.
pub(crate) fn automation_of_key(key: &str) -> Option<&str> {
    key.strip_prefix(AUTOMATION)
}
