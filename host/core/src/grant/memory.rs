//! Memory that a component asks for, and its effective limit of items.

use crate::text::one_line::OneLine;
use serde::{Deserialize, Serialize};

/// Request of a component for memory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MemoryAsk {
    /// Limit in bytes for keys and values, and for the context memory in all contexts.
    pub max_bytes: u64,
    /// Limit of items in all contexts; [`DEFAULT_MAX_ITEMS`] by default.
    #[serde(default)]
    pub max_items: Option<u64>,
    /// Reason why it needs the memory.
    pub reason: Option<OneLine>,
}

/// Default limit of items: an index of this size takes a few ten megabytes.
pub const DEFAULT_MAX_ITEMS: u64 = 100_000;

/// Effective limit of items: as asked, but at most as granted. A limit above the default needs an
/// explicit number in the configuration: without one, no manifest can raise it.
pub(crate) fn items(ask: Option<&MemoryAsk>, granted: Option<u64>) -> u64 {
    let requested = ask.map_or(0, |ask| ask.max_items.unwrap_or(DEFAULT_MAX_ITEMS));
    requested.min(granted.unwrap_or(DEFAULT_MAX_ITEMS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn item_limit_is_smaller_of_both() {
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
