//! Lengths of the texts that the inbox shows.

/// Most lines of a question in the list, and most characters of each.
pub(super) const SHOWN: (usize, usize) = (3, 200);
