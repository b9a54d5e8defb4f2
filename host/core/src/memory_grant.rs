//! What a component would remember, and how many items it may have in mind.

use crate::one_line::OneLine;
use serde::{Deserialize, Serialize};

/// How much a component would remember.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MemoryAsk {
    /// Keys and values together with what it has in mind in all its conversations, in bytes.
    pub max_bytes: u64,
    /// The items that it has in mind, in all its conversations; [`DEFAULT_MAX_ITEMS`] unless it says.
    #[serde(default)]
    pub max_items: Option<u64>,
    /// Why it needs to.
    pub reason: Option<OneLine>,
}

/// The items that an agent may have in mind whose manifest does not say: an index of so many is a few ten megabytes.
pub const DEFAULT_MAX_ITEMS: u64 = 100_000;

/// How many items a component may have in mind: as it asks, and no more than is granted. What is more than usual is granted by its
/// number alone, in the configuration: where none is named, no manifest widens it.
pub(crate) fn items(ask: Option<&MemoryAsk>, granted: Option<u64>) -> u64 {
    let asked = ask.map_or(0, |ask| ask.max_items.unwrap_or(DEFAULT_MAX_ITEMS));
    asked.min(granted.unwrap_or(DEFAULT_MAX_ITEMS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_items_than_are_asked_for_and_granted() {
        let ask = |max_items| MemoryAsk { max_bytes: 1, max_items, reason: None };
        let cases = [
            (None, None, DEFAULT_MAX_ITEMS),
            (Some(5), None, 5),
            (Some(5), Some(3), 3),
            (Some(5), Some(9), 5),
            (Some(u64::MAX), None, DEFAULT_MAX_ITEMS),
            (Some(u64::MAX), Some(u64::MAX), u64::MAX),
        ];
        for (asked, granted, held) in cases {
            assert_eq!(items(Some(&ask(asked)), granted), held);
        }
        assert_eq!(items(None, None), 0);
    }
}
