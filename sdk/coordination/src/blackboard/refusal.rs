//! Reasons for which a board refuses a contribution.

use super::board::ChangeRefusal;

/// Reason of a refused contribution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ContributionRefusal {
    /// The board has no item with this id.
    Missing(String),
    /// The board has an item with this id.
    Taken,
    /// The id or the kind is no name.
    Name,
    /// The item needs itself, one item twice, or too many.
    Needs,
    /// The answer, or the turn, has more contributions than are allowed.
    LimitReached,
    /// The agent has as many items, or bytes, as one agent may have.
    ShareReached,
    /// A rule of items.
    Rule(ChangeRefusal),
}
