//! Stage 5, neural memory: associations between items that are recalled together, stronger with
//! each recall (Hebbian learning). They are counted, so the same recalls lead to the same
//! associations.

/// Number of the first results of a recall that count as used together.
pub const MAX_TOGETHER: usize = 4;

/// Maximum number of associations of an item; the strongest are kept.
pub const MAX_NEIGHBOURS: usize = 16;

/// Number of common uses at which an association reaches half of its maximum strength.
const HALF: f64 = 4.0;

/// Pairs that one recall counts, from its results, best first. The smaller id comes first in each
/// pair.
pub fn pairs<I: Clone + Ord>(recalled: &[I]) -> Vec<(I, I)> {
    let used = &recalled[..recalled.len().min(MAX_TOGETHER)];
    let mut pairs = Vec::new();
    for (at, one) in used.iter().enumerate() {
        for other in &used[at + 1..] {
            let (first, second) = if one < other { (one, other) } else { (other, one) };
            if first != second {
                pairs.push((first.clone(), second.clone()));
            }
        }
    }
    pairs
}

/// Strength of an association after a number of common uses: from 0 to 1, never decreasing.
pub fn strength(uses: u32) -> f64 {
    let uses = f64::from(uses);
    uses / (uses + HALF)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[test]
    fn first_recalled_items_are_paired() {
        assert_eq!(pairs(&[3, 1, 2]), [(1, 3), (2, 3), (1, 2)]);
        assert!(pairs::<u8>(&[]).is_empty() && pairs(&[1]).is_empty() && pairs(&[1, 1]).is_empty());
    }

    proptest! {
        #[test]
        fn pairs_are_bounded_and_deterministic(recalled in prop::collection::vec(0u8..20, 0..40)) {
            let found = pairs(&recalled);
            prop_assert!(found.len() <= MAX_TOGETHER * (MAX_TOGETHER - 1) / 2);
            prop_assert!(found.iter().all(|(one, other)| one < other));
            let (mut other, kept): (Vec<u8>, usize) = (recalled.clone(), recalled.len().min(MAX_TOGETHER));
            other[..kept].reverse();
            let set = |pairs: Vec<_>| pairs.into_iter().collect::<BTreeSet<_>>();
            prop_assert_eq!(set(found), set(pairs(&other)));
        }

        #[test]
        fn more_uses_never_weaken_association(uses in 0u32..u32::MAX) {
            prop_assert!(strength(uses) <= strength(uses + 1) && (0.0..1.0001).contains(&strength(uses)));
        }
    }
}
