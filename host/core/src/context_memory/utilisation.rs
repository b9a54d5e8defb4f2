//! Stage 6, utilisation: selects as much as fits into the receiver's budget, the most useful first.

use super::encoding::{Piece, bytes_of_tokens};
use serde::{Deserialize, Serialize};

/// Default budget in bytes: some eight thousand tokens, which fit into any model's context.
pub const DEFAULT_BYTES: usize = 32 << 10;

/// Maximum budget in bytes.
pub const MAX_BYTES: usize = 1 << 20;

/// Size limit of an inheritance. If both limits are given, the smaller one applies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct MemoryBudget {
    /// Limit in bytes of JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<usize>,
    /// Limit in tokens, counted as four bytes each.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<usize>,
}

impl MemoryBudget {
    /// The budget in bytes.
    pub fn in_bytes(self) -> usize {
        let of_tokens = self.tokens.map(bytes_of_tokens);
        let limit = self.bytes.into_iter().chain(of_tokens).min();
        limit.unwrap_or(DEFAULT_BYTES).min(MAX_BYTES)
    }
}

/// Splits the pieces, most useful first, into those that fit and those that do not. A piece that is
/// too large does not exclude smaller ones after it.
pub fn fit(pieces: Vec<Piece>, budget: MemoryBudget) -> (Vec<Piece>, Vec<Piece>) {
    let mut remaining = budget.in_bytes();
    pieces.into_iter().partition(|piece| match remaining.checked_sub(piece.bytes()) {
        Some(rest) => {
            remaining = rest;
            true
        }
        None => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn smaller_of_two_budgets_applies() {
        let budget = |bytes, tokens| MemoryBudget { bytes, tokens }.in_bytes();
        assert_eq!(budget(None, None), DEFAULT_BYTES);
        assert_eq!(budget(Some(100), None), 100);
        assert_eq!(budget(Some(100), Some(10)), 40);
        assert_eq!(budget(Some(usize::MAX), Some(usize::MAX)), MAX_BYTES);
    }

    proptest! {
        #[test]
        fn fit_keeps_order_budget_and_all_pieces(
            sizes in prop::collection::vec(0usize..200, 0..30), bytes in 0usize..1_500,
        ) {
            let named = |(n, size): (usize, &usize)| Piece::Variable(n.to_string(), json!("x".repeat(*size)));
            let pieces: Vec<Piece> = sizes.iter().enumerate().map(named).collect();
            let (kept, left) = fit(pieces.clone(), MemoryBudget { bytes: Some(bytes), tokens: None });
            let total: usize = kept.iter().map(Piece::bytes).sum();
            prop_assert!(total <= bytes);
            prop_assert_eq!(kept.len() + left.len(), pieces.len());
            let mut rest = pieces.iter();
            prop_assert!(kept.iter().all(|piece| rest.any(|it| it == piece)));
            prop_assert!(left.iter().all(|piece| piece.bytes() > bytes - total), "none is left that fits at the end");
        }
    }
}
