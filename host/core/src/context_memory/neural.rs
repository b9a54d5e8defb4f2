//! The fifth stage, neural memory: items that were recalled together belong together, the more often the closer (Hebbian learning). It
//! is counted, so that the same recalls lead to the same associations.

/// Of what one recall brings up, as many of the first are taken to have been used together.
pub const MAX_TOGETHER: usize = 4;

/// As many others an item is associated with: those most often used with it.
pub const MAX_NEIGHBOURS: usize = 16;

/// Uses together that are half of all that there is to an association.
const HALF: f64 = 4.0;

/// The pairs that one recall counts, of the items that it brought up, best first. In each pair the smaller one comes first.
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

/// How close two items are that were used together so often: from 0 to 1, and never less for one more.
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
    fn the_first_few_are_paired() {
        assert_eq!(pairs(&[3, 1, 2]), [(1, 3), (2, 3), (1, 2)]);
        assert!(pairs::<u8>(&[]).is_empty() && pairs(&[1]).is_empty() && pairs(&[1, 1]).is_empty());
    }

    proptest! {
        #[test]
        fn pairs_are_few_and_the_same_each_time(recalled in prop::collection::vec(0u8..20, 0..40)) {
            let found = pairs(&recalled);
            prop_assert!(found.len() <= MAX_TOGETHER * (MAX_TOGETHER - 1) / 2);
            prop_assert!(found.iter().all(|(one, other)| one < other));
            let (mut other, kept): (Vec<u8>, usize) = (recalled.clone(), recalled.len().min(MAX_TOGETHER));
            other[..kept].reverse();
            let set = |pairs: Vec<_>| pairs.into_iter().collect::<BTreeSet<_>>();
            prop_assert_eq!(set(found), set(pairs(&other)));
        }

        #[test]
        fn more_uses_are_never_weaker(uses in 0u32..u32::MAX) {
            prop_assert!(strength(uses) <= strength(uses + 1) && (0.0..1.0001).contains(&strength(uses)));
        }
    }
}
